//! The reasons of a grade in words.

use clustermesh::changes::{
    EndedPaths, FORGOTTEN_IDLE_SECONDS, FORGOTTEN_SECONDS, ForgottenAddresses, Reason,
    SILENCE_SECONDS,
};
use clustermesh::kilo::node::annotation;
use clustermesh::name::ClusterName;
use clustermesh::text::{count, first};

use super::{LISTED, name, paths, peer_names};

/// Returns why a grade is not better.
pub(crate) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Emptied => "it loses all of its Peers".to_owned(),
        Reason::SourceGone(source) => format!("it loses all Peers of {source}"),
        Reason::AllPathsLost(cluster) => format!("all paths to and from {cluster} are lost"),
        Reason::PathsLost(counts) => {
            format!("{} no longer work", paths(*counts))
        }
        Reason::PathsApart(counts) => format!(
            "{} do not work while only one of two clusters has its new Peers",
            paths(*counts)
        ),
        Reason::PathsStuck(counts) => format!(
            "{} may stay interrupted until agents list all Peers again, up to 10 minutes",
            paths(*counts)
        ),
        Reason::KeysLost(peers) => format!(
            "Kilo may drop the keys of {} for up to 10 minutes, because other Peers with these keys are deleted",
            peer_names(peers)
        ),
        Reason::Unapplied { peers, because_of } => format!(
            "changes of {} never reach WireGuard while {} has no endpoint and is not connected",
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
        Reason::Busy(seconds) => {
            format!("Kilo needs {seconds:.0} s to apply the change")
        }
        Reason::PathsPaused(counts) => {
            format!("{} are interrupted while the Peers arrive", paths(*counts))
        }
        Reason::KeysChanged(peers) => format!("{} with another key", count(*peers, "Peer")),
        Reason::EndpointsChanged(peers) => {
            format!("{} with another endpoint", count(*peers, "Peer"))
        }
        Reason::NetworksLeft(ranges) => format!(
            "{} to another node, which is not known to be in the same network and may have no route",
            moving(*ranges)
        ),
        Reason::CarriersMoved(ranges) => format!(
            "{} to another node; connections to these addresses break once",
            moving(*ranges)
        ),
        Reason::StrangersRemoved(peers) => format!(
            "{} removed with keys that no node has; paths through these Peers are lost",
            count(*peers, "Peer")
        ),
        Reason::RangesLost(ranges) => format!(
            "Peers lose {} that no other Peer of the same cluster has",
            count(*ranges, "range")
        ),
        Reason::RangesUnproved(ranges) => format!(
            "Peers lose {} that the proof does not follow, such as WireGuard addresses or unknown networks",
            count(*ranges, "range")
        ),
        Reason::OthersChanged(peers) => format!("{} with other changes", count(*peers, "Peer")),
        Reason::RoamingChanged(peers) => {
            let get = if *peers == 1 {
                "gets or loses its"
            } else {
                "get or lose their"
            };
            format!(
                "{} {get} keepalive, so Kilo treats learned addresses differently",
                count(*peers, "Peer")
            )
        }
        Reason::LimitPassed(quantity) => {
            format!(
                "`{}` now exceeds its limit; see `clustermesh capacity`",
                quantity.key()
            )
        }
        Reason::Pause { cluster, nodes } => pause(cluster, *nodes),
        Reason::AddressesForgotten(forgotten) => self::forgotten(forgotten),
        Reason::PathsEnded(ended) => self::ended(ended),
        Reason::RangesRemoved(peers) => {
            format!("{} with fewer ranges", count(*peers, "Peer"))
        }
        Reason::Removed(peers) => format!("{} removed", count(*peers, "Peer")),
        Reason::PathsRepaired(counts) => {
            let are = if counts.all() == 1 { "is" } else { "are" };
            format!("{} {are} down until this is applied", paths(*counts))
        }
        Reason::KeepalivesChanged(peers) => format!(
            "{} with another keepalive, which Kilo does not write into WireGuard",
            count(*peers, "Peer")
        ),
        Reason::Added => "only Peers or ranges are added".to_owned(),
    }
}

fn moving(ranges: usize) -> String {
    let moves = if ranges == 1 { "moves" } else { "move" };
    format!("{} {moves}", count(ranges, "range"))
}

fn pause(cluster: &ClusterName, nodes: usize) -> String {
    let (have, these) = match nodes {
        1 => ("has", "this node"),
        _ => ("have", "these nodes"),
    };
    format!(
        "{} of {cluster} {have} no annotation `{}`: after this change, requests through {these} may get no answer for \
         up to {SILENCE_SECONDS} s, also between nodes of {cluster}",
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
    let departures = (!left.is_empty()).then(|| format!("{} left", count(left.len(), "node")));
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
    format!(
        "{}; {} to {goal} {end}",
        nodes.join(" and "),
        self::paths(*paths)
    )
}
