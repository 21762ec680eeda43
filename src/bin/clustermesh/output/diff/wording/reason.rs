//! The reasons of a grade in words.

use clustermesh::changes::{Reason, SILENCE_SECONDS};
use clustermesh::text::count;

use super::{paths, peer_names};

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
            "agents may forget the keys of {} until they list all Peers again",
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
            format!("Kilo is busy with the change for {seconds:.0} s")
        }
        Reason::PathsPaused(counts) => {
            format!("{} are interrupted while the Peers arrive", paths(*counts))
        }
        Reason::KeysChanged(peers) => format!("{} with another key", count(*peers, "Peer")),
        Reason::EndpointsChanged(peers) => {
            format!("{} with another endpoint", count(*peers, "Peer"))
        }
        Reason::CarriersMoved(ranges) => format!(
            "{} with another carrier, so connections break once",
            count(*ranges, "range")
        ),
        Reason::StrangersRemoved(peers) => format!(
            "{} removed, with keys of no node in the snapshots; what they reached is lost",
            count(*peers, "Peer")
        ),
        Reason::RangesLost(ranges) => format!(
            "Peers lose {} that no other Peer of the same cluster has",
            count(*ranges, "range")
        ),
        Reason::OthersChanged(peers) => {
            format!(
                "{} with fewer ranges or other changes",
                count(*peers, "Peer")
            )
        }
        Reason::Removed(peers) => format!("{} removed", count(*peers, "Peer")),
        Reason::LimitPassed(quantity) => {
            format!(
                "`{}` now exceeds its limit; see `clustermesh capacity`",
                quantity.key()
            )
        }
        Reason::SilentStreams(leaders) => format!(
            "one-way streams (such as syslog) pause for {SILENCE_SECONDS} s at {} without the annotation \
             `kilo.squat.ai/persistent-keepalive`",
            count(*leaders, "node")
        ),
        Reason::Added => "only Peers or ranges are added".to_owned(),
    }
}
