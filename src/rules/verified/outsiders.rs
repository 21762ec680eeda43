//! Words for Peers that no source of the mesh gives.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{InputGaps, failed};
use crate::agent::fabric::{Fabric, Site, SiteId};
use crate::agent::model::{Model, RangeHolder, Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, PeerId};
use crate::diagnostic::FindingCause;
use crate::name::ClusterName;
use crate::net::prefixes::Span;
use crate::packet::Ending;
use crate::proof::rule::OUTSIDE_PEER;
use crate::proof::verify::{Outsider, Verification};
use crate::rules::{Finding, bare};
use crate::text::{and_more, listed};

/// The most shared ranges that a finding names.
const SHARED_RANGES: usize = 3;

/// Returns the failures that unknown keys cause, by the name of the Peer.
pub(super) fn unknown_keys<'f>(
    fabric: &'f Fabric,
    verification: &Verification,
) -> BTreeMap<&'f str, Option<FindingCause>> {
    let mut causes = BTreeMap::new();
    for failure in &verification.failures {
        if let Ending::UnknownKey { at, claim, .. } = failure.trace.ending()
            && let Some(peer) = claim.peer()
        {
            let name = fabric.site(at.site).model.peers[peer].applied.name.as_str();
            let cause = || failed(fabric, failure, None).map(|it| it.as_cause());
            causes.entry(name).or_insert_with(cause);
        }
    }
    causes
}

/// Reports Peers whose key no node has. Those of one source that a cluster gets have one cause, as when
/// the source left the mesh, so they are one finding. Of a source without a snapshot no key is known, and
/// the missing snapshot is an error. Of a source whose entry has a mistake, none is known either.
pub(super) fn outsiders(
    fabric: &Fabric,
    verification: &Verification,
    gaps: InputGaps,
) -> Vec<Finding> {
    let causes = unknown_keys(fabric, verification);
    let mistake = gaps.mistakes.first().map(Finding::as_cause);
    let mut groups: BTreeMap<(SiteId, &str, Option<&FindingCause>), Vec<&ClusterPeer>> =
        BTreeMap::new();
    for &Outsider { site, peer } in &verification.outsiders {
        let peer = &fabric.site(site).model.peers[peer];
        let claimed = peer.applied.claims.source.as_ref();
        // Without a plan, the keys of external peers are unknown, too.
        let is_unknown = |it: &ClusterName| {
            let mut missing = gaps.missing.iter();
            missing.any(|missing| missing.cluster == *it)
                || it.is_external() && gaps.planned.is_none()
        };
        if claimed.is_some_and(is_unknown) {
            continue;
        }
        let name = peer.applied.name.as_str();
        let is_broken = claimed.is_some_and(|it| gaps.broken.contains(it.as_str()));
        let mistake = mistake.as_ref().filter(|_| is_broken);
        let cause = causes.get(name).and_then(Option::as_ref).or(mistake);
        let source = source(peer).unwrap_or(name);
        groups.entry((site, source, cause)).or_default().push(peer);
    }
    let findings = groups.into_iter().map(|((site, source, cause), peers)| {
        let finding = outsider(fabric.site(site), source, &peers);
        finding.with_cause(cause.cloned())
    });
    findings.collect()
}

/// Returns the ranges of a Peer that other Peers have too, at least in part, and which of them gets the packets.
fn shared_ranges(model: &Model, peer: &ClusterPeer) -> Vec<String> {
    let Some(id) = model.peers.ids().find(|it| std::ptr::eq(&raw const model.peers[*it], peer))
    else {
        return Vec::new();
    };
    let name = |peer: PeerId| bare(&model.peers[peer].applied.name);
    let mut shared = Vec::new();
    // Also those that Kilo drops in favour of another Peer's.
    let written = peer.share().into_iter().flat_map(|it| it.translation.allowed_ips.iter());
    for range in written.map(|it| it.interface.network) {
        let span = Span::new(range);
        for slot in model.tunnels.around(span).chain(model.tunnels.within(span)) {
            let (other, claims) = model.tunnels.at(slot);
            let others = claims.iter().filter_map(TunnelClaim::peer).filter(|it| *it != id);
            for rival in others {
                let outcome = match other.prefix_length().cmp(&range.prefix_length()) {
                    Ordering::Less => format!("packets to {range} go to {}", name(id)),
                    Ordering::Greater => format!("packets to {other} go to {}", name(rival)),
                    Ordering::Equal => {
                        let mut segments = model.topology.segments.ids();
                        match segments.find_map(|it| model.holder(it, slot)) {
                            Some(RangeHolder::Certain(TunnelClaim {
                                tunnel: Tunnel::Peer(peer),
                                ..
                            })) => format!("packets to it go to {}", name(peer)),
                            _ => "which of them gets its packets depends on order".to_owned(),
                        }
                    }
                };
                shared.push(format!("{} has {other} too, and {outcome}", name(rival)));
            }
        }
    }
    shared.sort();
    shared.dedup();
    shared
}

/// Returns `MESH--CLUSTER` of a Peer that is in the file of all Peers of that cluster.
fn source<'p>(peer: &ClusterPeer<'p>) -> Option<&'p str> {
    let file = peer.file.source.rsplit('/').next()?;
    let (source, _) = file.rsplit_once('.')?;
    let node = peer.applied.name.strip_prefix(source)?;
    node.starts_with("--").then_some(source)
}

fn outsider(site: &Site, source: &str, peers: &[&ClusterPeer]) -> Finding {
    let names = peers.iter().map(|it| bare(&it.applied.name));
    let message = match peers {
        [peer] => format!(
            "the key of the Peer {} belongs to no node of any cluster",
            bare(&peer.applied.name)
        ),
        _ => format!(
            "the keys of {} Peers of {} belong to no node of any cluster: {}",
            peers.len(),
            bare(source),
            listed(names)
        ),
    };
    let mut shared = match peers {
        [peer] => shared_ranges(&site.model, peer),
        _ => Vec::new(),
    };
    let more = shared.len().saturating_sub(SHARED_RANGES);
    shared.truncate(SHARED_RANGES);
    let more = and_more(more, "shared range");
    let message = [vec![message], shared].concat().join("; ") + &more;
    let help = if peers.len() == 1 {
        "if a node has a new key, run `clustermesh snapshot` and `clustermesh render`; if \
        this is your own VPN client or network, ignore this rule"
    } else {
        "if their cluster left the mesh, run `clustermesh render`; if the nodes have new keys, run \
        `clustermesh snapshot` first"
    };
    let finding = Finding::on_cluster(&OUTSIDE_PEER, site.cluster, message);
    let finding = peers.iter().fold(finding, |finding, it| finding.at(it.place(), ""));
    finding.help(help)
}
