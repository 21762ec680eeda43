//! Reports: an outage of nodes that are gone and of agents that are silent, and what a render would restore.
//!
//! Kilo ignores a node 60 seconds after its agent has stopped checking in, whether the node is gone or not. So both are
//! the same new state in its cluster. They differ in the node itself: if only the agent is silent, WireGuard and the
//! routes of the node stay as they were, and it forwards on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lost_nodes::LostNodes;
use super::obstacle::OutageObstacle;
use super::proof::{LostPaths, OutageProof};
use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{At, Fabric, Site, SiteId, SitePair};
use crate::changes::state_proof::{KnownPaths, StateProof};
use crate::kilo::topology::Leader;
use crate::name::ClusterName;
use crate::proof::reach::{AddressBlock, Reach};
use crate::snapshot::{Node, Snapshot};

/// Nodes that are lost together.
#[derive(Clone, Debug, Default)]
pub struct Outage {
    /// Nodes that are gone, with their agents, devices and links.
    pub gone: LostNodes,
    /// Nodes whose agents are silent, and which forward on.
    pub silent: LostNodes,
}

/// The effect of an outage until the next render.
#[derive(Clone, Debug, Default)]
pub struct OutageReport {
    /// The declared paths of others that end.
    pub ended: Vec<LostPaths>,
    /// Those of which it is not known: ranges of a whole cluster whose carrier has a silent agent. It has no tunnels
    /// to other nodes of its cluster any more, so that it depends on where the packets go from there.
    pub unknown: Vec<LostPaths>,
    /// The declared paths from and to the lost nodes.
    pub own: OwnPaths,
}

/// Declared paths that worked, from and to lost nodes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OwnPaths {
    /// Those of nodes that are gone.
    pub ended: u64,
    /// Those that still work, of nodes that lead their own segment and whose agents are silent.
    pub working: u64,
    /// Those of which it is not known: a silent agent in another node's segment, or a loss at both ends.
    pub unknown: u64,
}

/// The part of a block's owner in an outage.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Role {
    /// It is in a cluster that loses nothing.
    Apart,
    /// It is left, in a cluster that loses nodes.
    Left,
    Gone,
    /// Its agent is silent, and it leads its segment.
    SilentLeader,
    /// Its agent is silent, and another node leads its segment.
    Silent,
}

impl Outage {
    /// Returns all nodes that Kilo does not count any more.
    pub fn all(&self) -> LostNodes {
        self.gone.nodes().chain(self.silent.nodes()).collect()
    }

    fn role(&self, fabric: &Fabric, site: SiteId, block: &AddressBlock) -> Role {
        let is_touched = self.gone.touch(site) || self.silent.touch(site);
        let Some(node) = block.owner.node().filter(|_| is_touched) else {
            // A range of a whole cluster is lost with the last node.
            return if self.gone.are_all_of(fabric, site) {
                Role::Gone
            } else if self.all().are_all_of(fabric, site) {
                Role::Silent
            } else if is_touched {
                Role::Left
            } else {
                Role::Apart
            };
        };
        let at = At { site, node };
        let leads = || {
            let it = fabric.site(site);
            let segment = it.led(node);
            segment.is_some_and(|segment| it.leader(segment) == Leader::Certain(node))
        };
        if self.gone.contain(at) {
            Role::Gone
        } else if !self.silent.contain(at) {
            Role::Left
        } else if leads() {
            Role::SilentLeader
        } else {
            Role::Silent
        }
    }
}

impl OwnPaths {
    fn add(&mut self, roles: [Role; 2], paths: u64) {
        let is = |role| roles.contains(&role);
        if is(Role::Gone) {
            self.ended += paths;
        } else if is(Role::Silent) || is(Role::SilentLeader) && !is(Role::Apart) {
            self.unknown += paths;
        } else if is(Role::SilentLeader) {
            self.working += paths;
        }
    }
}

impl OutageProof<'_, '_, '_, '_> {
    /// Finds what an outage does.
    ///
    /// # Errors
    /// It is not known.
    pub fn report(&self, outage: &Outage) -> Result<OutageReport, OutageObstacle> {
        let mut report = OutageReport {
            own: self.own_paths(outage),
            ..OutageReport::default()
        };
        let of_gone = if outage.silent.is_empty() {
            Vec::new()
        } else {
            self.examine(&outage.gone)?.ended
        };
        for paths in self.examine(&outage.all())?.ended {
            let pair = paths.pair;
            if !outage.silent.touch(pair.to) {
                report.ended.push(paths);
                continue;
            }
            let mut surely = of_gone.iter().filter(|it| it.pair == pair);
            let surely = surely.next().map(|it| it.paths.clone());
            let mut open = paths.paths.without(&surely.unwrap_or_default());
            let [senders, receivers] = pair.both().map(|it| &self.blocks[it]);
            let ranges = receivers.of(|it| it.owner.node().is_none());
            open.retain(&senders.of(|_| true), &ranges);
            let unknown = self.counted(pair, open);
            let ended = match &unknown {
                Some(unknown) => paths.paths.without(&unknown.paths),
                None => paths.paths,
            };
            report.ended.extend(self.counted(pair, ended));
            report.unknown.extend(unknown);
        }
        Ok(report)
    }

    /// Counts the declared paths from and to lost nodes.
    fn own_paths(&self, outage: &Outage) -> OwnPaths {
        let fabric = self.fabric();
        let all = outage.all();
        let mut own = OwnPaths::default();
        for pair in pairs(fabric).filter(|it| it.both().into_iter().any(|it| all.touch(it))) {
            let [senders, receivers] = pair.both().map(|site| {
                let blocks = self.blocks[site].all.iter();
                let roles = blocks.map(|it| outage.role(fabric, site, it));
                roles.collect::<Vec<_>>()
            });
            let count = |roles: &[Role], places: &mut dyn Iterator<Item = usize>| {
                let mut counts: BTreeMap<Role, u64> = BTreeMap::new();
                for role in places.filter_map(|it| roles.get(it)) {
                    *counts.entry(*role).or_default() += 1;
                }
                counts
            };
            for (group, row) in self.working(pair).groups() {
                let targets = count(&receivers, &mut row.ones());
                for (from, senders) in count(&senders, &mut group.into_iter()) {
                    for (to, receivers) in &targets {
                        own.add([from, *to], senders * receivers);
                    }
                }
            }
        }
        own
    }

    /// Returns the snapshots that clusters would write: without the nodes that are gone, with those whose agents are
    /// silent.
    ///
    /// # Errors
    /// It is not known which addresses Kilo gives to the others.
    pub fn next_snapshots(
        &self,
        outage: &Outage,
    ) -> Result<BTreeMap<ClusterName, Snapshot>, OutageObstacle> {
        let all = outage.all();
        let mut settled = self.settled(&all)?;
        let snapshots = all.by_site().map(|(site, _)| {
            let it = self.fabric().site(site);
            let snapshot = settled.remove(&site);
            let mut snapshot = snapshot.unwrap_or_else(|| it.snapshot.clone());
            let nodes = std::mem::take(&mut snapshot.nodes).into_iter();
            let numbered = nodes.zip(it.reading.nodes.ids());
            let left = numbered.filter(|it| !outage.gone.contain(At { site, node: it.1 }));
            let nodes = left.map(|(node, id)| {
                if outage.silent.contain(At { site, node: id }) {
                    let node = it.snapshot_of(id).clone();
                    return Node {
                        stale: true,
                        ..node
                    };
                }
                node
            });
            snapshot.nodes = nodes.collect();
            (it.cluster.clone(), snapshot)
        });
        Ok(snapshots.collect())
    }

    /// Returns how many of some paths that ended do not work with the Peers of the next render either.
    ///
    /// # Errors
    /// It is not known.
    pub fn still_ended<'p>(
        &self,
        ended: &[LostPaths],
        outage: &Outage,
        files: impl Fn(&ClusterName) -> &'p [AppliedFile],
    ) -> Result<u64, OutageObstacle> {
        let snapshots = self.settled(&outage.all())?;
        let sites = self.fabric().sites.numbered().map(|(number, it)| {
            let files = files(it.cluster);
            let reading = || Site::with_reading(Arc::clone(&it.reading) as _, files, None);
            let snapshot = snapshots.get(&number);
            snapshot.map_or_else(reading, |snapshot| Site::new(it.entry, snapshot, files))
        });
        let fabric = Fabric::new(sites.collect());
        let is_wanted = |one, other| {
            let mut pairs = ended.iter().map(|it| it.pair.both());
            pairs.any(|it| it == [one, other] || it == [other, one])
        };
        let reach = Reach::among(&fabric, self.most, is_wanted);
        if self.most < reach.steps() {
            return Err(OutageObstacle::Steps);
        }
        let mut known = KnownPaths::default();
        let left = ended.iter().map(|it| {
            let works = StateProof::new(&reach, it.pair, &self.blocks, &mut known).whole;
            let left = it.paths.without(&works);
            self.counted(it.pair, left).map_or(0, |it| it.count())
        });
        Ok(left.sum())
    }
}

/// Returns all pairs of clusters.
fn pairs(fabric: &Fabric) -> impl Iterator<Item = SitePair> {
    let sites = fabric.sites.ids();
    let pairs = sites
        .clone()
        .flat_map(move |from| sites.clone().map(move |to| SitePair { from, to }));
    pairs.filter(|it| it.from != it.to)
}
