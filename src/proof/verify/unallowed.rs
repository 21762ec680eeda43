//! Unallowed paths: those that work although no mesh declares them and the expectations forbid them.

use std::collections::{BTreeMap, BTreeSet};

use super::links::Asked;
use super::tally::ClassPair;
use crate::agent::fabric::{Site, SitePair};
use crate::expectations::AllowedPaths;
use crate::proof::expectation::Meant;
use crate::proof::reach::{AddressBlock, ClassVerdict};

/// Undeclared paths between two classes of addresses that work and that nothing allows.
#[derive(Clone, Debug)]
pub struct Unallowed {
    /// The classes.
    pub classes: ClassPair,
    /// The number of paths.
    pub paths: u64,
    /// The clusters at both ends.
    pub between: BTreeSet<SitePair>,
    /// The clusters and addresses of one of the paths.
    pub example: (SitePair, [AddressBlock; 2]),
}

/// The unallowed paths that were found, and the allowed ones.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundUnallowed {
    pub(super) paths: BTreeMap<ClassPair, Unallowed>,
    /// The indexes of those that allow a working path.
    pub(super) used: BTreeSet<usize>,
}

/// Some blocks of one side that all have the same in common with the allowed paths.
struct AlikeBlocks<'v> {
    /// Whether a link declares them.
    is_declared: bool,
    /// The indexes of the allowed paths with all their addresses on this side.
    allowed: Vec<usize>,
    blocks: Vec<&'v AddressBlock>,
}

impl FoundUnallowed {
    /// Adds the working paths of a verdict that no link declares.
    pub(super) fn add<'v>(
        &mut self,
        (asked, pair): (Asked, SitePair),
        sites: [&Site; 2],
        verdict: &'v ClassVerdict,
        is_sent: impl Fn(&&'v AddressBlock) -> bool,
        is_taken: impl Fn(&&'v AddressBlock) -> bool,
    ) {
        let Some(allowed) = asked.allowed else {
            return;
        };
        let [home, away] = sites;
        let joining: Vec<(usize, &AllowedPaths)> = allowed
            .iter()
            .enumerate()
            .filter(|(_, it)| it.from.has_cluster(home.cluster) && it.to.has_cluster(away.cluster))
            .collect();
        let senders: Vec<_> =
            joining.iter().map(|(index, it)| (*index, Meant::new(it.from, true))).collect();
        let receivers: Vec<_> =
            joining.iter().map(|(index, it)| (*index, Meant::new(it.to, false))).collect();
        let senders = alike(home, &senders, &verdict.senders, is_sent);
        let receivers = alike(away, &receivers, &verdict.receivers, is_taken);
        for from in &senders {
            for to in receivers.iter().filter(|it| !(from.is_declared && it.is_declared)) {
                let common = from.allowed.iter().filter(|it| to.allowed.contains(it));
                let common: Vec<usize> = common.copied().collect();
                if common.is_empty() {
                    self.add_paths((verdict.from, verdict.to), pair, from, to);
                }
                self.used.extend(common);
            }
        }
    }

    fn add_paths(
        &mut self,
        classes: ClassPair,
        pair: SitePair,
        from: &AlikeBlocks,
        to: &AlikeBlocks,
    ) {
        let (Some(&&sender), Some(&&receiver)) = (from.blocks.first(), to.blocks.first()) else {
            return;
        };
        let paths = from.blocks.len().saturating_mul(to.blocks.len());
        let found = self.paths.entry(classes).or_insert_with(|| Unallowed {
            classes,
            paths: 0,
            between: BTreeSet::new(),
            example: (pair, [sender, receiver]),
        });
        found.paths += u64::try_from(paths).unwrap_or(u64::MAX);
        found.between.insert(pair);
    }

    /// Adds what was found from another cluster, whose name comes later.
    pub(super) fn join(&mut self, other: Self) {
        self.used.extend(other.used);
        for (classes, paths) in other.paths {
            if let Some(known) = self.paths.get_mut(&classes) {
                known.paths += paths.paths;
                known.between.extend(paths.between);
            } else {
                self.paths.insert(classes, paths);
            }
        }
    }
}

/// Groups blocks of a cluster by what declares and what allows them.
fn alike<'v>(
    site: &Site,
    allowed: &[(usize, Meant)],
    blocks: &'v [AddressBlock],
    is_declared: impl Fn(&&'v AddressBlock) -> bool,
) -> Vec<AlikeBlocks<'v>> {
    let mut groups: BTreeMap<(bool, Vec<usize>), Vec<&AddressBlock>> = BTreeMap::new();
    for block in blocks {
        let allowed = allowed.iter().filter(|(_, it)| it.contains(site, block));
        let allowed = allowed.map(|(index, _)| *index).collect();
        let group = groups.entry((is_declared(&block), allowed));
        group.or_default().push(block);
    }
    let groups = groups.into_iter();
    let groups =
        groups.map(|((is_declared, allowed), blocks)| AlikeBlocks { is_declared, allowed, blocks });
    groups.collect()
}
