//! The load of clusters, as bars against its limits.

use std::collections::BTreeMap;

use serde::Serialize;

use super::documents::{PageDocuments, PageQuantity, PageTarget};
use super::ids::PageIds;
use crate::capacity::units;
use crate::config::capacity::Quantity;

/// The length of a bar up to its highest limit.
const LENGTH: f64 = 100.0;

/// The load of a cluster.
#[derive(Clone, Serialize)]
pub(super) struct LoadView<'d> {
    cluster: &'d str,
    href: Option<&'d str>,
    grade: &'d str,
    /// The quantity that is closest to its limit, or exceeds it the most.
    worst: Option<LoadBar<'d>>,
    bars: Vec<LoadBar<'d>>,
}

/// A quantity as a bar.
#[derive(Clone, Serialize)]
pub(super) struct LoadBar<'d> {
    quantity: &'d PageQuantity,
    /// The length, up to the end of the bar.
    length: Option<u32>,
    /// The places of the limits, and their names.
    limits: BTreeMap<&'d str, u32>,
    /// The highest limit.
    limit: Option<f64>,
    #[serde(skip)]
    share: f64,
}

/// Returns the load of all clusters, the highest first.
pub(super) fn all<'d>(documents: &'d PageDocuments, ids: &'d PageIds) -> Vec<LoadView<'d>> {
    let targets = documents.capacity.iter().flat_map(|it| &it.targets);
    let mut loads: Vec<LoadView> = targets.map(|it| LoadView::new(it, ids)).collect();
    loads.sort_by(|left, right| right.rank().total_cmp(&left.rank()));
    loads
}

/// Returns a value of a quantity as people read it.
pub(super) fn shown(value: f64, name: &str) -> String {
    let quantity = Quantity::ALL.iter().find(|it| it.key() == name);
    quantity.map_or_else(|| value.to_string(), |it| units::value(*it, value))
}

impl<'d> LoadView<'d> {
    /// Returns the load of a cluster.
    pub(super) fn new(target: &'d PageTarget, ids: &'d PageIds) -> Self {
        let bars: Vec<LoadBar> = target.quantities.iter().map(LoadBar::new).collect();
        let worst = bars.iter().filter(|it| it.limit.is_some());
        let worst = worst.max_by(|left, right| left.rank().total_cmp(&right.rank()));
        Self {
            cluster: &target.cluster,
            href: ids.cluster(&target.cluster),
            grade: &target.grade,
            worst: worst.cloned(),
            bars,
        }
    }

    fn rank(&self) -> f64 {
        self.worst.as_ref().map_or(0.0, LoadBar::rank)
    }
}

impl<'d> LoadBar<'d> {
    fn new(quantity: &'d PageQuantity) -> Self {
        let limits = &quantity.limits;
        let limit = limits.values().copied().reduce(f64::max);
        let whole = limit.filter(|it| 0.0 < *it);
        let share = limit.map_or(0.0, |it| quantity.value / it.max(1.0));
        Self {
            quantity,
            length: limit.map(|_| rounded(share * LENGTH)),
            limits: limits
                .iter()
                .map(|(name, it)| {
                    (name.as_str(), whole.map_or(0, |whole| rounded(it / whole * LENGTH)))
                })
                .collect(),
            limit,
            share,
        }
    }

    /// Returns how much it matters: first by its grade, then by its share of the limit.
    fn rank(&self) -> f64 {
        let grade = match self.quantity.grade.as_str() {
            "error" => 3.0,
            "warning" => 2.0,
            "notice" => 1.0,
            _ => 0.0,
        };
        grade + self.share.min(1.0) / 2.0
    }
}

/// Returns a length of a bar, which ends at its end.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and the length of a bar"
)]
fn rounded(length: f64) -> u32 {
    length.clamp(0.0, LENGTH).round() as u32
}
