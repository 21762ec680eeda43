//! Levers: what would make the load of a cluster less, and by how much.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::bundle::Bundle;
use super::load::Load;
use super::time::apply;
use super::units::{float, whole};
use super::wave::Wave;
use crate::agent::model::Model;
use crate::agent::peers::{ClusterPeer, PeerShare};
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::net::{Cidr, merged};

/// A remedy and its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Lever {
    /// The measure.
    pub measure: Measure,
    /// Its effect.
    pub effect: Effect,
}

/// Something that one can do.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all_fields = "camelCase", tag = "measure")]
pub enum Measure {
    /// Select fewer nodes in the sources with the most Peers.
    SelectNodes {
        /// The files of these sources.
        sources: Vec<String>,
        /// The number of Peers that remain of each.
        left: usize,
        /// The number of Peers of the largest.
        of: usize,
    },
    /// Leave out the internal addresses of nodes.
    LeaveOutAddresses {
        /// Their number.
        addresses: usize,
    },
    /// Leave out the addresses of nodes in Kilo's subnets.
    LeaveOutSubnets {
        /// Their number.
        addresses: usize,
    },
    /// Give the declared pod ranges as a whole.
    DeclarePods {
        /// The number of ranges that this saves.
        fewer: usize,
    },
    /// Merge adjacent ranges.
    Aggregate {
        /// The number of ranges that this saves.
        fewer: usize,
    },
    /// Split a source into several clusters, of which this cluster is linked to one.
    SplitSource {
        /// The file of the source.
        source: String,
        /// The number of parts.
        parts: usize,
    },
    /// Split this cluster into several.
    SplitTarget {
        /// The number of parts.
        parts: usize,
        /// The number of sources that they share.
        sources: usize,
    },
    /// Apply the Peers in several steps.
    Waves {
        /// The number of Peers in each step.
        peers: usize,
        /// The number of steps.
        waves: usize,
    },
}

/// The effect of a measure: the values before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Allowed IPs of all Peers.
    pub ranges: (usize, usize),
    /// Seconds for each apply; for [`Measure::Waves`] those that Kilo is busy in a row.
    pub seconds: (f64, f64),
}

/// The addresses and ranges of all clusters that `advertise` can leave out or replace.
#[derive(Debug, Default)]
pub struct AdvertisedRanges<'a> {
    /// The addresses of nodes with what they are of any node, sorted: each of every Peer is looked up.
    pub addresses: Vec<(IpAddr, NodeAddress)>,
    /// The pod ranges that clusters declare, of those that can give them as a whole.
    pub pods: BTreeMap<&'a str, Vec<Cidr>>,
}

impl AdvertisedRanges<'_> {
    fn address(&self, address: IpAddr) -> Option<NodeAddress> {
        let place = self.addresses.binary_search_by_key(&address, |it| it.0);
        Some(self.addresses.get(place.ok()?)?.1)
    }
}

/// The kinds of a node's address.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeAddress {
    /// Whether it is the internal address.
    pub is_internal: bool,
    /// Whether it is the address in Kilo's subnet.
    pub is_in_subnet: bool,
}

/// The share of the nodes that is left if no limit is set.
const THIRD: usize = 3;

/// Returns everything that would help a cluster: what brings most first, and waves at the end.
pub fn levers(
    model: &Model,
    load: &Load,
    wave: Option<&Wave>,
    advertised: &AdvertisedRanges,
    capacity: &Capacity,
) -> Vec<Lever> {
    let scale = Scale::new(load, capacity);
    let (mut addresses, mut subnets, mut fewer) = (0, 0, 0);
    for share in model.peers.iter().filter_map(ClusterPeer::share) {
        let ranges = || share.kept().map(|it| it.allowed.interface.network);
        let (mut internal, mut in_subnet, mut networks) = (0, 0, 0);
        for range in ranges() {
            if !range.is_host() {
                networks += 1;
            } else if let Some(known) = advertised.address(range.first()) {
                internal += usize::from(known.is_internal);
                in_subnet += usize::from(known.is_in_subnet);
            }
        }
        // A Peer of nothing else would be none, and keeps one.
        let most = share.count().saturating_sub(1);
        addresses += most.min(internal);
        subnets += most.min(in_subnet);
        if 1 < networks {
            fewer += networks - merged(ranges().filter(|it| !it.is_host())).len();
        }
    }
    let declared = declared(model, &advertised.pods);
    let less = |measure: Measure, ranges: usize| {
        (0 < ranges).then(|| scale.lever(measure, scale.ranges - ranges))
    };
    let mut levers: Vec<Lever> = [
        scale.select_nodes(),
        less(Measure::LeaveOutAddresses { addresses }, addresses),
        less(Measure::LeaveOutSubnets { addresses: subnets }, subnets),
        less(Measure::DeclarePods { fewer: declared }, declared),
        less(Measure::Aggregate { fewer }, fewer),
        scale.split_source(),
        scale.split_target(),
    ]
    .into_iter()
    .flatten()
    .collect();
    levers.sort_by(|a, b| a.effect.seconds.1.total_cmp(&b.effect.seconds.1));
    levers.extend(wave.and_then(|wave| waves(wave, load, capacity)));
    levers
}

/// The quantities that levers are compared by.
struct Scale<'a> {
    load: &'a Load,
    capacity: &'a Capacity,
    /// The number of allowed IPs.
    ranges: usize,
    /// The duration of an apply, in seconds.
    seconds: f64,
}

impl<'a> Scale<'a> {
    fn new(load: &'a Load, capacity: &'a Capacity) -> Self {
        Self {
            load,
            capacity,
            ranges: load.ranges(),
            seconds: apply(load.rules(), &capacity.costs),
        }
    }

    /// Returns the first of the choices with which an apply takes no longer than the lowest limit
    /// that can be met.
    fn first(
        &self,
        choices: &(impl Iterator<Item = usize> + Clone),
        seconds: impl Fn(usize) -> f64,
    ) -> Option<usize> {
        let steps = self.capacity.steps(Quantity::ApplySeconds);
        let mut goals = steps.goals(self.seconds);
        goals.find_map(|goal| choices.clone().find(|it| seconds(*it) <= goal))
    }

    fn seconds(&self, ranges: usize) -> f64 {
        apply(self.load.nodes.rules(ranges), &self.capacity.costs)
    }

    fn lever(&self, measure: Measure, ranges: usize) -> Lever {
        Lever {
            measure,
            effect: Effect {
                ranges: (self.ranges, ranges),
                seconds: (self.seconds, self.seconds(ranges)),
            },
        }
    }

    /// Returns the sources, which meshes can make smaller.
    fn sources(&self) -> impl DoubleEndedIterator<Item = &'a Bundle> {
        let sources = self.load.bundles.iter();
        sources.filter(|it| !it.is_foreign && 0 < it.peers)
    }

    /// Returns the source with most allowed IPs; of equals the first by name.
    fn heaviest(&self) -> Option<&'a Bundle> {
        let sources = self.sources().rev();
        sources.max_by_key(|it| it.ranges).filter(|it| 1 < it.peers)
    }

    /// Returns the number of allowed IPs if no source has more than this many Peers.
    fn with_most(&self, peers: usize) -> usize {
        let spared = self.sources().map(|it| it.ranges - left_of(it, peers));
        self.ranges - spared.sum::<usize>()
    }

    /// As many nodes of each source as the goal allows, or a third of those of the largest.
    fn select_nodes(&self) -> Option<Lever> {
        let of = self.sources().map(|it| it.peers).max()?;
        if of < 2 {
            return None;
        }
        let most = self.first(&(1..of).rev(), |left| self.seconds(self.with_most(left)));
        let left = most.unwrap_or_else(|| of.div_ceil(THIRD));
        let larger = self.sources().filter(|it| left < it.peers);
        let measure = Measure::SelectNodes {
            sources: larger.map(|it| it.name.clone()).collect(),
            left,
            of,
        };
        Some(self.lever(measure, self.with_most(left)))
    }

    /// In as few parts as the goal allows, where this source is half of the load or more.
    fn split_source(&self) -> Option<Lever> {
        let bundle = self.heaviest()?;
        if 2 * bundle.ranges < self.ranges {
            return None;
        }
        let part = |parts: usize| {
            let left = left_of(bundle, bundle.peers.div_ceil(parts));
            self.ranges - bundle.ranges + left
        };
        let fewest = self.first(&(2..=bundle.peers), |parts| self.seconds(part(parts)));
        let parts = fewest.unwrap_or(2);
        let source = bundle.name.clone();
        Some(self.lever(Measure::SplitSource { source, parts }, part(parts)))
    }

    /// In as few parts as the goal allows; each has its part of the nodes and of the sources.
    fn split_target(&self) -> Option<Lever> {
        let sources = self.sources().count();
        let most = sources.min(self.load.nodes.segments);
        if most < 2 {
            return None;
        }
        let part = |parts: usize| {
            let ranges = self.ranges.div_ceil(parts);
            let nodes = &self.load.nodes;
            let fewer = nodes.segment_rules - nodes.segment_rules.div_ceil(parts);
            let rules = nodes.rules(ranges) - fewer;
            (ranges, apply(rules, &self.capacity.costs))
        };
        let fewest = self.first(&(2..=most), |parts| part(parts).1);
        let parts = fewest.unwrap_or(2);
        let (ranges, seconds) = part(parts);
        Some(Lever {
            measure: Measure::SplitTarget { parts, sources },
            effect: Effect {
                ranges: (self.ranges, ranges),
                seconds: (self.seconds, seconds),
            },
        })
    }
}

/// Returns how many of its allowed IPs a source keeps with this many of its Peers.
fn left_of(source: &Bundle, peers: usize) -> usize {
    if source.peers <= peers {
        return source.ranges;
    }
    (source.ranges * peers).div_ceil(source.peers)
}

/// Waves that are within the lowest limits that can be met.
fn waves(wave: &Wave, load: &Load, capacity: &Capacity) -> Option<Lever> {
    let (nodes, costs) = (&load.nodes, &capacity.costs);
    let seconds = wave.seconds(nodes, costs);
    let by_number = capacity
        .steps(Quantity::WavePeers)
        .goals(float(wave.added))
        .next()
        .map(whole);
    let mut by_time = capacity.steps(Quantity::WaveSeconds).goals(seconds);
    let by_time = by_time.find_map(|goal| {
        let most = wave.most_within(goal, nodes, costs);
        let is_met = wave.last(most).seconds(nodes, costs) <= goal;
        is_met.then_some(most)
    });
    let peers = by_number.into_iter().chain(by_time).min()?.max(1);
    if wave.added <= peers {
        return None;
    }
    Some(Lever {
        measure: Measure::Waves {
            peers,
            waves: wave.added.div_ceil(peers),
        },
        effect: Effect {
            ranges: (wave.ranges_before, wave.ranges_after()),
            seconds: (seconds, wave.last(peers).seconds(nodes, costs)),
        },
    })
}

/// Returns how many ranges fewer there are if of each declared pod range, given by its cluster, the Peer with
/// most of its pod CIDRs carries the whole.
fn declared(model: &Model, pods: &BTreeMap<&str, Vec<Cidr>>) -> usize {
    let mut most: BTreeMap<Cidr, usize> = BTreeMap::new();
    for peer in model.peers.iter() {
        let source = peer.applied.claims.source.as_ref();
        let declared = source.and_then(|it| pods.get(it.as_str()));
        for whole in declared.into_iter().flatten() {
            let kept = peer.share().into_iter().flat_map(PeerShare::kept);
            let inside = kept.filter(|it| whole.contains(it.allowed.interface.network));
            let most = most.entry(*whole).or_default();
            *most = inside.count().max(*most);
        }
    }
    most.into_values().map(|it| it.saturating_sub(1)).sum()
}
