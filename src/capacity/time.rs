//! Time: how long Kilo is at it.

use super::load::NodeLoad;
use super::units::{float, whole};
use crate::config::capacity::Costs;

/// Applies one after another, as Kilo does for one Peer after another that is added, changed or
/// removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applies {
    /// Their number.
    pub times: usize,
    /// The number of allowed IPs before the first.
    pub before: usize,
    /// The number of allowed IPs with the last; in between, their number grows or shrinks evenly.
    pub after: usize,
}

/// Returns how many seconds Kilo needs for one apply of this many rules.
pub fn apply(rules: usize, costs: &Costs) -> f64 {
    let nanoseconds =
        float(usize::try_from(costs.nanoseconds_per_squared_rule).unwrap_or_default());
    nanoseconds / 1e9 * float(rules) * float(rules)
}

/// Returns how many rules an apply can have to take at most this many seconds.
pub fn rules_within(seconds: f64, costs: &Costs) -> usize {
    let once = apply(1, costs);
    if once <= 0.0 {
        return usize::MAX;
    }
    whole((seconds / once).sqrt().floor())
}

impl Applies {
    /// Returns how many seconds Kilo is busy on the node that has most to do.
    ///
    /// The apply of the *i*th of *n* Peers has R₀ + *i* × D rules, so that all of them take
    /// c × (n R₀² + n (n + 1) R₀ D + n (n + 1) (2n + 1) D² ⁄ 6).
    pub fn seconds(self, nodes: &NodeLoad, costs: &Costs) -> f64 {
        if self.times == 0 {
            return 0.0;
        }
        let times = float(self.times);
        let first = float(nodes.rules(self.before));
        let step = (float(nodes.rules(self.after)) - first) / times;
        let squares = times * first * first
            + times * (times + 1.0) * first * step
            + times * (times + 1.0) * (2.0 * times + 1.0) * step * step / 6.0;
        apply(1, costs) * squares
    }
}
