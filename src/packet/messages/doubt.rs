//! Doubts in words: why it is not certain how a packet ends, and what makes it certain.

use super::hop;
use super::{called, peer_of, place, stopper, tunnel};
use crate::agent::fabric::{Fabric, NodeRef, Site};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::agent::peers::{ClusterPeer, Contest, PeerId, PeerStanding, Prize};
use crate::agent::refusal::KernelRefusal;
use crate::agent::route::Route;
use crate::diagnostic::{Finding, bare};
use crate::kilo::node::annotation;
use crate::net::Cidr;
use crate::packet::{Doubt, rule};
use crate::text::joined;

/// The largest number of places in a finding about several Peers.
const LABELLED: usize = 16;

/// Reports what it depends on how a packet ends.
pub(super) fn ambiguous(fabric: &Fabric, at: NodeRef, doubt: &Doubt) -> Finding {
    let here = called(fabric, at);
    let cluster = fabric.site(at.site).cluster.as_str();
    match doubt {
        Doubt::Range { claims, range } => range_owner(fabric, at, claims, *range),
        Doubt::Nodes { nodes, range } => hop::shared(fabric, at, nodes, *range),
        Doubt::Key { key } => {
            let holders = fabric.holders(key).iter().map(|it| called(fabric, *it));
            Finding::new(
                &rule::AMBIGUOUS,
                format!(
                    "{here} sends it to a key that {} share: WireGuard uses the one that \
                     connected last",
                    joined(holders, "and")
                ),
            )
            .help("delete Kilo's key file on one of the nodes, so that each node has its own key")
        }
        Doubt::Peers { peers } => cause(fabric, at, peers).unwrap_or_else(|| {
            let names = peers.iter().map(|it| peer_of(fabric, at.site, *it));
            let message = format!(
                "the Peer {} of {cluster} exists or not, depending on what was applied last",
                joined(names, "or")
            );
            Finding::new(&rule::AMBIGUOUS, message)
        }),
        Doubt::Refused(KernelRefusal::Segment { node, route }) => {
            refused_segment(fabric, NodeRef { node: *node, ..at }, &here, route)
        }
        Doubt::Refused(KernelRefusal::Range { peer, index }) => {
            refused_range(&fabric.site(at.site).model.peers[*peer], *index, &here)
        }
        Doubt::Leader => Finding::new(
            &rule::AMBIGUOUS,
            format!(
                "{here} may not be the leader of its location, and only the leader has tunnels"
            ),
        )
        .help("take a new snapshot after the election"),
    }
}

/// Reports that it depends on the order of Peers which of them has a range.
fn range_owner(fabric: &Fabric, at: NodeRef, claims: &[TunnelClaim], range: Cidr) -> Finding {
    let here = called(fabric, at);
    let peers: Vec<PeerId> = claims.iter().filter_map(TunnelClaim::peer).collect();
    if let Some(mut cause) = cause(fabric, at, &peers) {
        let of_range = format!("the owner of {range} on {here} is uncertain: ");
        cause.message = format!("{of_range}{}", cause.message).into();
        return cause;
    }
    let names = claims.iter().map(|it| tunnel(fabric, at.site, it.tunnel));
    let message = format!(
        "{range} on {here} belongs to {}{}, depending on which was applied last",
        joined(names, "or"),
        if claims.len() == 1 { " or to no Peer" } else { "" }
    );
    let places = claims.iter().take(LABELLED).map(|it| place(fabric, at, *it));
    Finding::new(&rule::AMBIGUOUS, message)
        .at_each(places.map(|it| (it, "claims the range")))
        .help("keep the range in one Peer only")
}

/// Reports that the kernel refuses the route to a range of a Peer.
fn refused_range(peer: &ClusterPeer, index: usize, here: &str) -> Finding {
    let range = peer.share().and_then(|it| it.translation.allowed_ips.get(index));
    let message = format!(
        "the kernel refuses the route {} of the Peer {}: Kilo stops there, so other routes of \
         {here} may be missing",
        range.map_or_else(String::new, ToString::to_string),
        peer.applied.name
    );
    Finding::new(&rule::AMBIGUOUS, message)
        .at(peer.allowed_ip(index), "the kernel refuses it")
        .help(
            "write ranges without host bits, in the address family of the cluster's pods; if \
             `clustermesh render` wrote them, `mismatched-subnet` in `clustermesh validate` has the command",
        )
}

/// Reports that the kernel refuses a route to another node of the cluster itself.
fn refused_segment(fabric: &Fabric, at: NodeRef, here: &str, route: &Route) -> Finding {
    let gateway =
        route.gateway.or(route.source).map_or_else(String::new, |it| format!(" via {it}"));
    let message = format!(
        "the kernel refuses the route to {}{gateway} that Kilo sets on {}: Kilo stops there, so other routes of {here} \
         may be missing",
        route.destination,
        called(fabric, at)
    );
    let range = route.destination.interface;
    let mut nodes = fabric.site(at.site).model.topology.nodes.iter();
    let reporting = nodes.find(|it| {
        let mut ranges = it.kilo.location_ranges.iter();
        ranges.any(|it| it.interface == range)
    });
    Finding::new(&rule::AMBIGUOUS, message).help(match reporting {
        Some(node) => format!(
            "remove {} from the annotation `{}` of {}",
            route.destination,
            annotation::ALLOWED_LOCATION_IPS,
            bare(&node.kilo.name)
        ),
        None if route.suits_source() => {
            "run Kilo with a `--subnet` of the family of the nodes' internal IPs and pod CIDRs, \
             such as `--subnet fd00:10:4::/112` for IPv6"
                .to_owned()
        }
        None => "let the first pod CIDR and the internal IP of each node be of one family: \
                 `mismatched-subnet` in `clustermesh validate` has the command"
            .to_owned(),
    })
}

/// Finds why it is not certain which of these Peers a node has: what stops every agent of the cluster,
/// or who has the same name or key.
fn cause(fabric: &Fabric, at: NodeRef, peers: &[PeerId]) -> Option<Finding> {
    let site = fabric.site(at.site);
    if let Some(stopper) = stopper(fabric, at) {
        return Some(stopper);
    }
    let contest = peers.iter().find_map(|it| match site.model.peers[*it].standing {
        PeerStanding::Contested(_, number) => Some(&site.model.contests[number]),
        _ => None,
    });
    if let Some(contest) = contest {
        return Some(rivals(site, contest));
    }
    let twin = peers.iter().find(|it| site.has_own_key(**it))?;
    let peer = &site.model.peers[*twin];
    let key = site.model.key(Tunnel::Peer(*twin));
    let node = site.model.topology.nodes.position(|it| it.kilo.key == key)?;
    let message = format!(
        "the Peer {} has the key of {}, a node of the same cluster",
        peer.applied.name,
        called(fabric, NodeRef { node, ..at })
    );
    let finding = Finding::new(&rule::AMBIGUOUS, message);
    Some(
        finding
            .at(Some(peer.place().key("spec").key("publicKey")), "this key")
            .help("delete this Peer: a cluster needs no Peers for its own nodes"),
    )
}

/// Reports Peers with one name or one key.
fn rivals(site: &Site, contest: &Contest) -> Finding {
    let peers = contest.peers.iter().map(|it| &site.model.peers[*it]);
    let rivals: Vec<&ClusterPeer> = peers.collect();
    let mut names = rivals.iter().map(|it| it.applied.name.as_str());
    let cluster = site.cluster;
    let (message, help) = match contest.over {
        Prize::Key => (
            format!(
                "the Peers {} of {cluster} have the same key: only the last one applied exists in \
                 WireGuard",
                joined(names, "and")
            ),
            format!(
                "in {cluster}, delete all but one of them, then touch the remaining one: `kubectl --context {cluster} \
                 annotate peers --overwrite NAME touched=1`"
            ),
        ),
        Prize::Name => (
            format!(
                "{cluster} has {} Peers named {}: only the last one applied exists",
                rivals.len(),
                names.next().unwrap_or_default()
            ),
            "give each of them its own name, or delete all but one".to_owned(),
        ),
    };
    let places = rivals.iter().take(LABELLED).map(|it| it.place());
    Finding::new(&rule::AMBIGUOUS, message).at_each(places.map(|it| (it, "one of them"))).help(help)
}
