//! Survival: what the losses of single nodes do to the paths of an expectation.

use fixedbitset::FixedBitSet;

use super::ExpectationSide;
use super::meant::{Meant, Stock};
use crate::agent::fabric::{Fabric, NodeRef, Sites};
use crate::expectations::Expectation;

/// The effects of losses on the paths of an expectation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Survival {
    /// The nodes whose loss ends paths of others.
    pub nodes: Vec<NodeRef>,
    /// The number of paths that end without the worst of them, which is the first.
    pub ended: u64,
    /// The sender and the receiver of one of these, as people call them.
    pub example: Option<[String; 2]>,
    /// Whether one of them leads to a range of a whole cluster, which has one carrier until the next render.
    pub is_carried: bool,
    /// Nodes of which it is not known.
    pub unexamined: Vec<NodeRef>,
    /// The number of paths of which only some addresses work without a loss, so that it is not known of them.
    pub partial: u64,
}

/// The blocks that an expectation means, by their numbers in each cluster.
pub struct MeantBlocks {
    /// The senders.
    pub senders: Sites<FixedBitSet>,
    /// The receivers.
    pub receivers: Sites<FixedBitSet>,
}

impl Survival {
    /// Returns whether all paths are known to survive.
    pub fn holds(&self) -> bool {
        self.nodes.is_empty() && self.unexamined.is_empty() && self.partial == 0
    }
}

impl MeantBlocks {
    /// Finds the blocks that an expectation means, in whole or in part.
    pub fn new(fabric: &Fabric, expectation: &Expectation) -> Self {
        let of_side = |side| {
            let meant = Meant::by(expectation, side);
            fabric.sites.map(|site| {
                let chosen = meant.choose(site, &Stock::new(site));
                chosen.ready.iter().map(|it| it.number).collect()
            })
        };
        Self { senders: of_side(ExpectationSide::From), receivers: of_side(ExpectationSide::To) }
    }
}
