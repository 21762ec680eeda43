//! The reasons of a grade in words.

use crate::changes::{
    EndedPaths, FORGOTTEN_IDLE_SECONDS, FORGOTTEN_SECONDS, ForgottenAddresses, PathCounts,
    PathReason, PeerReason, Reason, SILENCE_SECONDS,
};
use crate::kilo::node::annotation;
use crate::text::{count, first};

use super::{LISTED, name, paths, peer_names};

/// Returns why a grade is not better.
pub(in crate::results) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Emptied => "it loses all of its Peers".to_owned(),
        Reason::SourceGone(source) => format!("it loses all Peers of {source}"),
        Reason::AllPathsLost(cluster) => format!("all paths to and from {cluster} are lost"),
        Reason::Paths(reason, counts) => of_paths(*reason, *counts),
        Reason::Peers(reason, number) => of_peers(*reason, *number),
        Reason::KeysLost(peers) => {
            let names = peer_names(peers);
            let [keys, old] = if peers.len() == 1 {
                ["the key", "an old Peer with it is deleted"]
            } else {
                ["the keys", "old Peers with them are deleted"]
            };
            format!("Kilo may drop {keys} of {names} for up to 10 minutes, because {old}")
        }
        Reason::Unapplied { peers, because_of } => format!(
            "Kilo does not apply changes of {} while {} has no endpoint and is not connected",
            peer_names(peers),
            peer_names(because_of)
        ),
        Reason::Unproven(peers) => format!(
            "not every order in which {} can arrive was proved: there are too many",
            peer_names(peers)
        ),
        Reason::UnprovenPaths => {
            "not every state of its paths on the way was proved: there are too many".to_owned()
        }
        Reason::Busy(seconds) => format!("Kilo needs {seconds:.0} s to apply the change"),
        Reason::LimitPassed(quantity) => {
            format!("`{}` now exceeds its limit; see `clustermesh capacity`", quantity.key())
        }
        Reason::Pause { nodes } => pause(*nodes),
        Reason::AddressesForgotten(forgotten) => self::forgotten(forgotten),
        Reason::PathsEnded(ended) => self::ended(ended),
        Reason::Added => "only Peers or ranges are added".to_owned(),
    }
}

fn of_paths(reason: PathReason, counts: PathCounts) -> String {
    let effect = match reason {
        PathReason::Lost => "no longer work",
        PathReason::NoLongerProved => {
            "were proved, and are only assumed to work afterwards; `clustermesh verify` names the assumption"
        }
        PathReason::Assumed => "are new, and only assumed to work",
        PathReason::Apart => "do not work while only one of two clusters has its new Peers",
        PathReason::Stuck => {
            "may stay interrupted until agents list all Peers again, up to 10 minutes"
        }
        PathReason::Paused => "are interrupted while the Peers arrive",
        PathReason::Repaired if counts.all() == 1 => "is down until this is applied",
        PathReason::Repaired => "are down until this is applied",
    };
    format!("{} {effect}", paths(counts))
}

fn of_peers(reason: PeerReason, number: usize) -> String {
    let (peers, ranges) = (count(number, "Peer"), count(number, "range"));
    let (moves, gets) = match number {
        1 => ("moves", "gets or loses its"),
        _ => ("move", "get or lose their"),
    };
    match reason {
        PeerReason::StrangersRemoved => {
            format!(
                "{peers} removed with keys that no node has; paths through these Peers are lost"
            )
        }
        PeerReason::RangesLost => {
            format!("Peers lose {ranges} that no other Peer of the same cluster has")
        }
        PeerReason::RangesUnproved => format!(
            "Peers lose {ranges} that `verify` does not check, such as WireGuard addresses or unknown networks"
        ),
        PeerReason::KeysChanged => format!("{peers} with another key"),
        PeerReason::EndpointsChanged => format!("{peers} with another endpoint"),
        PeerReason::NetworksLeft => format!(
            "{ranges} {moves} to another node, which is not known to be in the same network and may have no route"
        ),
        PeerReason::CarriersMoved => {
            format!("{ranges} {moves} to another node; connections to these addresses break once")
        }
        PeerReason::OthersChanged => format!("{peers} with other changes"),
        PeerReason::RoamingChanged => {
            format!("{peers} {gets} keepalive, so Kilo treats learned addresses differently")
        }
        PeerReason::RangesReplaced => {
            format!(
                "{peers} with wider or narrower ranges: connections may fail for a moment, because Kilo removes the old routes first"
            )
        }
        PeerReason::RangesRemoved if number == 1 => "1 Peer that loses ranges".to_owned(),
        PeerReason::RangesRemoved => format!("{peers} that lose ranges"),
        PeerReason::Removed => format!("{peers} removed"),
        PeerReason::KeepalivesChanged => {
            format!("{peers} with another keepalive, which Kilo does not write into WireGuard")
        }
    }
}

fn pause(nodes: usize) -> String {
    let (have, these) = match nodes {
        1 => ("has", "this node"),
        _ => ("have", "these nodes"),
    };
    format!(
        "{} {have} no annotation `{}`: after this change, requests through {these} may get no answer for \
         up to {SILENCE_SECONDS} s, also between nodes of the cluster",
        count(nodes, "node"),
        annotation::PERSISTENT_KEEPALIVE
    )
}

/// Returns who may forget whom. Any of the leaders and any of the others are a pair.
fn forgotten(forgotten: &ForgottenAddresses) -> String {
    let nodes = forgotten.nodes.iter();
    let nodes = nodes.map(|it| format!("{}/{}", it.cluster, name(&it.node)));
    let peers = forgotten.peers.iter();
    let peers = peers.map(|it| format!("Peer {}", name(it)));
    let unlikely = if forgotten.is_published {
        "; this is unlikely, as two nodes send keepalives and one publishes what the other forgets"
    } else {
        ""
    };
    format!(
        "{} may forget the addresses of nodes behind NAT ({}): these pairs may be unreachable for up to \
         {FORGOTTEN_SECONDS} s, or up to {FORGOTTEN_IDLE_SECONDS} s if nothing is sent{unlikely}",
        first(LISTED, forgotten.leaders.iter().map(|it| name(it))),
        first(LISTED, nodes.chain(peers))
    )
}

fn ended(EndedPaths { paths, left, moved }: &EndedPaths) -> String {
    let end = if paths.all() == 1 { "ends" } else { "end" };
    let departures = (!left.is_empty()).then(|| format!("{} removed", count(left.len(), "node")));
    let moves = match moved.len() {
        0 => None,
        1 => Some("1 node has other addresses".to_owned()),
        nodes => Some(format!("{nodes} nodes have other addresses")),
    };
    let goal = match (left.len(), moved.len()) {
        (1, 0) => "it",
        (_, 0) => "them",
        (0, _) => "the old ones",
        _ => "the old addresses",
    };
    let nodes: Vec<String> = departures.into_iter().chain(moves).collect();
    format!("{}; {} to and from {goal} {end}", nodes.join(" and "), self::paths(*paths))
}
