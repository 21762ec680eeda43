//! Loops: endpoints in ranges of other clusters, so that packets of a tunnel would have to go
//! through one (`kilo.md` §2.6).

use std::net::IpAddr;
use std::sync::Arc;

use super::cut::{CutOff, Endpoint, LoopingPeer};
use super::ground::{What, declaration};
use super::seen::{Seen, Source, Verdicts};
use crate::net::Cidr;

/// Leaves out Peers of a source whose endpoints lie in ranges that other sources declare.
///
/// What people declare goes over what a node claims, in both forms of an entry: so no node can take
/// a range from another cluster, and none can have another cluster's Peer left out.
pub(super) fn of_source(seen: &Seen, source: &Source, verdicts: &mut Verdicts) {
    for (cluster, meetings) in seen.ground.endpoints(source.index) {
        let Some(owner) = seen.source(cluster) else {
            continue;
        };
        for meeting in meetings {
            if let (What::Endpoint(address), Some(&candidate)) =
                (meeting.what, meeting.whose.first())
                && seen.could_reach(owner, address)
            {
                let found = (meeting.range.cidr, (candidate, address));
                drop_speaker(source, owner, found, verdicts);
            }
        }
    }
}

fn drop_speaker(
    source: &Source,
    owner: &Source,
    (range, (index, address)): (Cidr, (usize, IpAddr)),
    verdicts: &mut Verdicts,
) {
    let verdict = verdicts.entry(source.index).or_default();
    let Some(candidate) = source.member.membership.candidates.get(index) else {
        return;
    };
    if verdict.dropped.insert(index) {
        verdict.cuts.push(Arc::new(CutOff::LoopingPeer(LoopingPeer {
            node: candidate.leader.clone(),
            nodes: candidate.nodes,
            endpoint: Endpoint {
                address,
                place: source.member.endpoint_place(candidate),
            },
            range,
            owner: owner.member.entry.name.clone(),
            range_place: declaration(owner.member, range).map(|it| it.place.clone()),
        })));
    }
}
