//! The plan: which Peers every cluster gets, and what was cut for its sake.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::fleet::{Fleet, Member};
use crate::kilo::peer::Peer;
use crate::name::{BlockName, ClusterName, MeshName, NodeName, PeerName};
use crate::net::{Cidr, Family};
use crate::place::Place;
use crate::roster::Speaker;

/// The Peers of every cluster.
#[derive(Debug, Default)]
pub struct Plan {
    /// Every different set of Peers, each used by one target or many.
    pub blocks: Vec<Block>,
    /// Every cluster, by name.
    pub targets: Vec<Target>,
    /// What a target does not get although its source offers it.
    pub cuts: Vec<Cut>,
}

/// What one source gives to one target, or to many: the Peers of its segments.
#[derive(Debug)]
pub struct Block {
    /// The common beginning of their names.
    pub name: BlockName,
    /// The mesh that links the two.
    pub mesh: MeshName,
    /// The cluster that they lead to.
    pub source: ClusterName,
    /// The Peers, by name; never none.
    pub peers: Vec<Peer>,
    /// Which of the ranges that they carry are the whole cluster's.
    pub shared: Vec<Cidr>,
}

/// A cluster, and what it gets.
#[derive(Debug)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterName,
    /// Places in [`Plan::blocks`], in order of their names.
    pub blocks: Vec<usize>,
}

/// Something that a target does not get although its source offers it, or gets although it hurts.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Who does not get it.
    pub target: ClusterName,
    /// Who offers it.
    pub source: ClusterName,
    /// What it is.
    pub what: CutOff,
}

/// What a target does not get.
#[derive(Clone, Debug)]
pub enum CutOff {
    /// Ranges that the target's Kilo cannot route.
    Family {
        /// Their kind.
        family: Family,
        /// How many.
        ranges: usize,
    },
    /// A Peer with the key of one of the target's own nodes.
    OwnKey {
        /// The source's node.
        node: NodeName,
        /// Where it is.
        place: Place,
        /// The target's node.
        own: String,
        /// Where it is.
        own_place: Place,
        /// Whether the Peer stays, because the source ranks first: then it is the target's node
        /// that is wrong.
        kept: bool,
    },
    /// A Peer with the key of a Peer of a cluster that ranks first.
    SharedKey {
        /// The source's node.
        node: NodeName,
        /// Where it is.
        place: Place,
        /// The cluster that keeps the key.
        keeper: ClusterName,
        /// Its node.
        keeper_node: NodeName,
        /// Where it is.
        keeper_place: Place,
    },
    /// Peers that the target cannot dial, and that cannot dial it.
    NoInitiator {
        /// How many.
        peers: usize,
    },
    /// Cluster-wide ranges that no segment with an endpoint can carry.
    NoAnchor {
        /// The ranges.
        ranges: Vec<Cidr>,
    },
}

/// A mistake of this program: a range that the source never declared was about to be given away.
#[derive(Debug, Error)]
#[error(
    "internal error: {cidr} of Peer {peer} is in no range that {source_cluster} declares; please report this"
)]
pub struct Undeclared {
    /// The range.
    pub cidr: Cidr,
    /// The Peer.
    pub peer: PeerName,
    /// Its source.
    pub source_cluster: ClusterName,
}

/// What decides a block: the member, the family kept, the speakers dropped.
type BlockKey = (usize, Option<Family>, BTreeSet<usize>);

/// Blocks that were made, each once.
#[derive(Default)]
struct Blocks {
    made: Vec<Block>,
    known: BTreeMap<BlockKey, Draft>,
}

/// A block that may turn out empty, with what was cut in it.
#[derive(Clone, Debug, Default)]
struct Draft {
    block: Option<usize>,
    cuts: Vec<CutOff>,
}

/// Plans a fleet.
///
/// # Errors
/// Never, unless this program is wrong about its own promise to stay inside declared ranges.
pub fn plan(fleet: &Fleet) -> Result<Plan, Undeclared> {
    let mut blocks = Blocks::default();
    let mut targets = Vec::new();
    let mut cuts = Vec::new();
    for target in fleet.clusters() {
        let family = fleet.family(target);
        let mut keepers = BTreeMap::new();
        let mut given = Vec::new();
        for (index, source, own) in fleet.sources(target) {
            let mut found = Vec::new();
            let pair = Pair {
                source,
                own,
                family,
            };
            let dropped = dropped(fleet, pair, &mut keepers, &mut found);
            let draft = blocks.draft(source, (index, family, dropped))?;
            given.extend(draft.block);
            cuts.extend(found.into_iter().chain(draft.cuts).map(|what| Cut {
                target: target.clone(),
                source: source.entry.name.clone(),
                what,
            }));
        }
        given.sort_by(|&a, &b| blocks.name(a).cmp(&blocks.name(b)));
        targets.push(Target {
            cluster: target.clone(),
            blocks: given,
        });
    }
    Ok(Plan {
        blocks: blocks.made,
        targets,
        cuts,
    })
}

/// A source, and the target's own membership in the mesh that links the two.
#[derive(Clone, Copy)]
struct Pair<'f> {
    source: &'f Member<'f>,
    own: &'f Member<'f>,
    family: Option<Family>,
}

/// Who keeps a key in a target.
type Keepers<'f> = BTreeMap<[u8; 32], (&'f ClusterName, &'f Speaker)>;

/// Returns which of the source's speakers the target must not get.
fn dropped<'f>(
    fleet: &Fleet,
    pair: Pair<'f>,
    keepers: &mut Keepers<'f>,
    cuts: &mut Vec<CutOff>,
) -> BTreeSet<usize> {
    let mut dropped = BTreeSet::new();
    let mut unreachable = 0;
    for (index, speaker) in pair.source.roster.speakers.iter().enumerate() {
        if speaker.endpoint.is_none() && pair.own.roams() {
            unreachable += 1;
            dropped.insert(index);
        } else if pair.gives(speaker) && !keeps_key(fleet, pair, speaker, keepers, cuts) {
            dropped.insert(index);
        }
    }
    if 0 < unreachable {
        cuts.push(CutOff::NoInitiator { peers: unreachable });
    }
    dropped
}

impl Pair<'_> {
    /// Returns whether the target gets any of a speaker's own ranges.
    fn gives(self, speaker: &Speaker) -> bool {
        speaker
            .claims
            .iter()
            .any(|it| is_routable(*it, self.family))
    }
}

/// Settles whether the target may have a speaker's key: neither of its own nodes nor of a Peer that
/// ranks first.
fn keeps_key<'f>(
    fleet: &Fleet,
    Pair { source, own, .. }: Pair<'f>,
    speaker: &'f Speaker,
    keepers: &mut Keepers<'f>,
    cuts: &mut Vec<CutOff>,
) -> bool {
    let claimants = fleet.claimants(&speaker.key);
    if let Some(owner) = claimants.iter().find(|it| *it.cluster == own.entry.name) {
        let kept = source.rank < own.rank;
        cuts.push(CutOff::OwnKey {
            node: speaker.leader.clone(),
            place: speaker.place.clone(),
            own: owner.node.to_owned(),
            own_place: owner.place.clone(),
            kept,
        });
        if !kept {
            return false;
        }
    }
    if claimants.is_empty() {
        return true;
    }
    if let Some((keeper, keeping)) = keepers.get(speaker.key.as_bytes()) {
        cuts.push(CutOff::SharedKey {
            node: speaker.leader.clone(),
            place: speaker.place.clone(),
            keeper: (*keeper).clone(),
            keeper_node: keeping.leader.clone(),
            keeper_place: keeping.place.clone(),
        });
        return false;
    }
    keepers.insert(*speaker.key.as_bytes(), (&source.entry.name, speaker));
    true
}

fn is_routable(cidr: Cidr, family: Option<Family>) -> bool {
    family.is_none_or(|family| cidr.family() == family)
}

impl Blocks {
    fn name(&self, block: usize) -> Option<&BlockName> {
        self.made.get(block).map(|block| &block.name)
    }

    /// Returns the block for `key`, made now or before.
    fn draft(&mut self, source: &Member, key: BlockKey) -> Result<Draft, Undeclared> {
        if let Some(draft) = self.known.get(&key) {
            return Ok(draft.clone());
        }
        let Offer {
            peers,
            shared,
            cuts,
        } = offer(source, key.1, &key.2);
        check(source, &peers)?;
        let mut draft = Draft { block: None, cuts };
        if !peers.is_empty() {
            draft.block = Some(self.made.len());
            self.made.push(Block {
                name: source.mesh.block(&source.entry.name),
                mesh: source.mesh.name.clone(),
                source: source.entry.name.clone(),
                peers,
                shared,
            });
        }
        self.known.insert(key, draft.clone());
        Ok(draft)
    }
}

/// What a source has to give: its Peers, the cluster-wide ranges that they carry, what was cut.
struct Offer {
    peers: Vec<Peer>,
    shared: Vec<Cidr>,
    cuts: Vec<CutOff>,
}

/// Makes the Peers of a source, of one family, without the dropped speakers.
fn offer(source: &Member, family: Option<Family>, dropped: &BTreeSet<usize>) -> Offer {
    let routable = |cidr: &Cidr| is_routable(*cidr, family);
    let mut cuts = Vec::new();
    let mut unroutable = 0;
    let mut left: Vec<(&Speaker, Vec<Cidr>)> = Vec::new();
    for (index, speaker) in source.roster.speakers.iter().enumerate() {
        if dropped.contains(&index) {
            continue;
        }
        let kept: Vec<Cidr> = speaker.claims.iter().copied().filter(routable).collect();
        unroutable += speaker.claims.len() - kept.len();
        if !kept.is_empty() {
            left.push((speaker, kept));
        }
    }
    let mut shared = shared(source, &left, routable);
    unroutable += source
        .roster
        .shared
        .iter()
        .filter(|it| !routable(it))
        .count();
    if let (Some(family), true) = (family, 0 < unroutable) {
        cuts.push(CutOff::Family {
            family: family.other(),
            ranges: unroutable,
        });
    }
    // Speakers are in order of name, so the first that can be dialled is the anchor.
    let anchor = left.iter_mut().find(|it| it.0.endpoint.is_some());
    if let Some((_, ranges)) = anchor {
        ranges.extend(&shared);
    } else {
        let ranges = std::mem::take(&mut shared);
        if !source.roster.speakers.is_empty() && !ranges.is_empty() {
            cuts.push(CutOff::NoAnchor { ranges });
        }
    }
    let mut peers: Vec<Peer> = left
        .into_iter()
        .map(|(speaker, allowed_ips)| peer(source, speaker, allowed_ips))
        .collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    Offer {
        peers,
        shared,
        cuts,
    }
}

/// Returns the cluster-wide ranges that are left to be carried: what no segment claims as it is.
fn shared(
    source: &Member,
    left: &[(&Speaker, Vec<Cidr>)],
    routable: impl Fn(&Cidr) -> bool,
) -> Vec<Cidr> {
    let claimed: BTreeSet<&Cidr> = left.iter().flat_map(|(_, ranges)| ranges).collect();
    let shared = source.roster.shared.iter();
    shared
        .filter(|cidr| routable(cidr) && !claimed.contains(cidr))
        .copied()
        .collect()
}

fn peer(source: &Member, speaker: &Speaker, allowed_ips: Vec<Cidr>) -> Peer {
    let (mesh, cluster) = (&source.mesh.name, &source.entry.name);
    Peer {
        name: PeerName::new(mesh, cluster, &speaker.leader),
        mesh: mesh.clone(),
        cluster: cluster.clone(),
        allowed_ips,
        endpoint: speaker.endpoint.clone(),
        keepalive: source.entry.keepalive,
        key: speaker.key,
    }
}

/// Holds the promise on the result: nothing outside what the source declared.
fn check(source: &Member, peers: &[Peer]) -> Result<(), Undeclared> {
    let declared = source.entry.networks.all();
    for peer in peers {
        for &cidr in &peer.allowed_ips {
            if !declared.iter().any(|range| range.cidr.contains(cidr)) {
                return Err(Undeclared {
                    cidr,
                    peer: peer.name.clone(),
                    source_cluster: source.entry.name.clone(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
