//! Premised pairs: those between which packets arrive only if something is so that no snapshot shows.

use std::collections::BTreeMap;

use super::Reach;
use super::address_block::{AddressBlock, pieces};
use crate::agent::fabric::{DialPremise, Fabric, NodeRef, SiteId, SitePair};
use crate::agent::model::Tunnel;
use crate::kilo::id::NodeId;
use crate::kilo::pod_network::Masquerading;
use crate::mesh::AddressClass;
use crate::net::{Families, Family, family, private_network};
use crate::packet::premise::Premise;
use crate::packet::{Packet, Session};
use crate::wireguard::Endpoint;

/// Pairs with the same premise.
#[derive(Clone, Debug)]
pub struct Premised {
    /// The condition.
    pub premise: Premise,
    /// The senders.
    pub senders: Vec<AddressBlock>,
    /// The receivers.
    pub receivers: Vec<AddressBlock>,
}

/// The properties of a node on which a premise depends. Between the nodes of two parties the premise is the
/// same for all.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Party<'a> {
    Like {
        /// The kinds of address that the node shows.
        shown: Families,
        /// The underlays that it is in, with an address of each kind.
        underlays: &'a [(usize, Family)],
        /// Whether it calls others unasked.
        calls: bool,
        /// The place at which the others dial it.
        found: FoundPremise<'a>,
        /// Whether they expect it to call from elsewhere.
        is_expected: bool,
        /// Whether a Peer takes the LAN over which its leader reaches it.
        is_diverted: bool,
        /// Whether its leader reaches it only by routes that another plugin may have.
        is_of_plugin: bool,
    },
    /// Like no other.
    Alone {
        /// The node that leads its segment.
        leader: NodeId,
        /// As before.
        is_diverted: bool,
        /// As before.
        is_of_plugin: bool,
    },
    /// A range that a cluster has as a whole: its place among those that are asked for.
    Range(usize),
}

/// The place at which a node is dialled.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum FoundPremise<'a> {
    /// Neither, or not at this place.
    Nowhere,
    /// Behind a name, or at an address of this kind.
    Place {
        family: Option<Family>,
        /// The condition under which it is that of the node.
        premise: Option<DialPremise>,
        /// The underlays in which callers must be, if the address is private.
        underlays: Option<Vec<&'a str>>,
    },
}

impl Reach<'_, '_> {
    /// Returns whether packets between two clusters from one class to another may need a premise.
    pub fn may_be_premised(&self, pair: SitePair, classes: [AddressClass; 2]) -> bool {
        let sites = pair.both().map(|it| self.fabric.site(it));
        let mut ends = sites.iter().zip(classes);
        let is_of_pods = ends.any(|(site, class)| {
            class == AddressClass::Pod && !site.reading.pod_network.unrouted.is_empty()
        }) || classes[0] == AddressClass::Pod
            && self.masquerading(pair.from) != Masquerading::No;
        let [_, away] = sites;
        let is_outlying = away.has_distant() || away.has_unshown();
        is_of_pods
            || self.may_be_of_nodes(pair)
            || classes[1] == AddressClass::Network && is_outlying
    }

    /// Returns whether a premise between two clusters may depend on the nodes: on how they dial each other, or
    /// on how a leader reaches the others of its location.
    fn may_be_of_nodes(&self, pair: SitePair) -> bool {
        let mut sites = pair.both().into_iter().map(|it| self.fabric.site(it));
        self.fabric.has_assumed_dials(pair)
            || sites.any(|it| it.has_unseen || it.has_diversions || it.has_hops_of_plugin())
    }

    /// Returns those of some pairs between which packets arrive only under a premise. Packets between
    /// all of them, and their answers, are known to arrive if all premises hold.
    pub fn premised(
        &self,
        pair: SitePair,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> Vec<Premised> {
        let (fabric, SitePair { from, to }) = (self.fabric, pair);
        let senders: Vec<Vec<AddressBlock>> = if self.may_be_of_nodes(pair) {
            parties(fabric, to, from, senders).into_values().collect()
        } else {
            // All of them get to the same carrier of a range.
            vec![senders.to_vec()]
        };
        let receivers = parties(fabric, from, to, receivers);
        let mut premised = Vec::new();
        for sending in &senders {
            for (party, receiving) in &receivers {
                let is_range = matches!(party, Party::Range(_));
                let premise = self.premise(SitePair { from, to }, sending, receiving, is_range);
                let mut sending = sending.clone();
                if premise.is_none_or(|it| matches!(it, Premise::Route(_))) {
                    let [lost, kept] = self.lost_if_masked(pair, &sending, receiving);
                    let masked = lost.first().and_then(|it| self.masked_pod(pair, it));
                    premised.extend(masked.map(|premise| Premised {
                        premise,
                        senders: lost,
                        receivers: receiving.clone(),
                    }));
                    sending = kept;
                }
                premised.extend(premise.filter(|_| !sending.is_empty()).map(|premise| Premised {
                    premise,
                    senders: sending,
                    receivers: receiving.clone(),
                }));
            }
        }
        premised
    }

    /// Returns the premise of packets between two parties.
    fn premise(
        &self,
        SitePair { from, to }: SitePair,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
        is_range: bool,
    ) -> Option<Premise> {
        let (sender, receiver) = (senders.first()?, receivers.first()?);
        let node = sender.owner.node()?;
        let pieces = if is_range {
            pieces(self.fabric.site(from), self.fabric.site(to), receiver.span)
        } else {
            vec![receiver.span]
        };
        let premises = pieces.into_iter().filter_map(|piece| {
            let trace = self.fabric.exchange(Packet {
                from: NodeRef { site: from, node },
                source: sender.span.first_address(),
                to: receiver.owner.goal(to),
                destination: piece.first_address(),
                session: Session::New,
            });
            self.fabric.premise(&trace)
        });
        premises.min()
    }
}

/// Puts together blocks of a cluster between which there is no difference to `viewer`.
pub(super) fn parties<'f>(
    fabric: &'f Fabric,
    viewer: SiteId,
    home: SiteId,
    blocks: &[AddressBlock],
) -> BTreeMap<Party<'f>, Vec<AddressBlock>> {
    let mut parties: BTreeMap<Party, Vec<AddressBlock>> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        let party = match block.owner.node() {
            Some(node) => party(fabric, viewer, home, node),
            None => Party::Range(index),
        };
        parties.entry(party).or_default().push(*block);
    }
    parties
}

/// Returns to which party a node belongs for `viewer`.
fn party<'f>(fabric: &'f Fabric, observer: SiteId, number: SiteId, node: NodeId) -> Party<'f> {
    let viewer = fabric.site(observer);
    let home = fabric.site(number);
    let segment = home.segment(node);
    let leader = segment.map_or(node, |it| home.leader(it).node());
    let is_diverted = home.diverted(leader, node).is_some();
    let is_of_plugin = home.is_reached_by_plugin(node);
    let like = || {
        let own = home.node(leader);
        let [peer] = *viewer.model.peers_with(&own.kilo.key?) else {
            return None;
        };
        let endpoint = viewer.model.endpoint(Tunnel::Peer(peer));
        let dialled = endpoint.and_then(Endpoint::address);
        let is_in_range = dialled.is_some_and(|it| viewer.model.has_range_around(it));
        // Packets to an address in a range go through a tunnel on some nodes and not on others.
        if viewer.has_own_key(peer) || is_in_range || viewer.may_swallow(&own.kilo) {
            return None;
        }
        let at = NodeRef { site: number, node: leader };
        // A node dials no other one at an address that it has itself.
        let may_be_own = endpoint.is_some_and(|it| fabric.may_be_at(observer, it));
        if may_be_own || fabric.may_dial_itself(at) {
            return None;
        }
        let share = viewer.model.share(peer)?;
        Some(Party::Like {
            shown: home.shown(leader),
            calls: 0 < own.kilo.keepalive,
            underlays: home.underlays_with(leader),
            found: endpoint.map_or(FoundPremise::Nowhere, |it| found(fabric, it, at)),
            is_expected: share.translation.keepalive.is_some(),
            is_diverted,
            is_of_plugin,
        })
    };
    like().unwrap_or(Party::Alone { leader, is_diverted, is_of_plugin })
}

/// Returns where a node is dialled.
fn found<'f>(fabric: &'f Fabric, endpoint: &Endpoint, at: NodeRef) -> FoundPremise<'f> {
    if !fabric.answers(endpoint, at) {
        return FoundPremise::Nowhere;
    }
    let address = endpoint.address();
    let private = address.filter(|it| private_network(*it).is_some());
    FoundPremise::Place {
        family: address.map(family),
        premise: fabric.premise_of_place(endpoint, at),
        underlays: private.map(|it| fabric.site(at.site).underlays_of(it).collect()),
    }
}
