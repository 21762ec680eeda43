//! Endings in words: what keeps a packet from getting there, and what to do.

use super::doubt::ambiguous;
use super::hop;
use super::remedy::{FailedPacket, LEFT_OUT, Remedies};
use super::unopened::{flapping, loops, no_initiator};
use super::{ChosenRange, called, peer, place, speaker, tunnel};
use crate::agent::fabric::{Fabric, NodeRef, Owner};
use crate::agent::model::TunnelClaim;
use crate::agent::peers::PeerId;
use crate::diagnostic::Finding;
use crate::net::Cidr;
use crate::packet::{Ending, Goal, Packet, Unaccepted, rule};

/// Returns how a way ends and what to do about it, unless the packet is delivered.
pub fn ending(fabric: &Fabric, packet: &Packet, ending: &Ending) -> Option<Finding> {
    let failed = FailedPacket { fabric, packet, ending };
    Some(match ending {
        Ending::Delivered => return None,
        Ending::LocalShadow { at, range } => local_shadow(fabric, packet, *at, *range),
        Ending::NoRoute { at } => no_route(failed, *at),
        Ending::NoHop { from, to } => hop::no_hop(fabric, *from, *to),
        Ending::StolenBy { at, claim, range, thief } => {
            let (at, claim, range) = (*at, *claim, *range);
            stolen_by(failed, &ChosenRange { at, claim, range }, *thief)
        }
        Ending::UnknownKey { at, claim, range } => {
            let (at, claim, range) = (*at, *claim, *range);
            unknown_key(failed, &ChosenRange { at, claim, range })
        }
        Ending::NotAccepted { by, why } => not_accepted(failed, *by, *why),
        Ending::NoInitiator { from, peer, to, back } => {
            no_initiator(fabric, *from, *peer, *to, *back)
        }
        Ending::Flapping { at, peer, other } => flapping(failed, *at, *peer, *other),
        Ending::Loops { at, peer, address, range, claim } => {
            let (at, claim, range) = (*at, *claim, *range);
            loops(fabric, *peer, *address, &ChosenRange { at, claim, range })
        }
        Ending::SourceRejected { by, owner, peer } => source_rejected(failed, *by, *owner, *peer),
        Ending::Ambiguous { at, doubt } => ambiguous(fabric, *at, doubt),
        Ending::NotReady { node } => not_ready(fabric, *node),
    })
}

fn local_shadow(fabric: &Fabric, packet: &Packet, at: NodeRef, range: Option<Cidr>) -> Finding {
    let (here, to) = (called(fabric, at), packet.destination);
    let cluster = fabric.site(at.site).cluster.as_str();
    let owner = fabric.site(at.site).owner(to);
    let message = match (range, owner) {
        (Some(range), _) => {
            format!(
                "{here} is itself connected to {range}, which contains {to}, and does not send \
                the packet through a tunnel"
            )
        }
        (None, Some(Owner::Services)) => {
            format!(
                "{to} is also a service address of {cluster}, so the packet does not leave \
                {here}"
            )
        }
        (None, _) => format!(
            "{to} is also the address of a node of {cluster}, so the packet does \
            not leave the cluster"
        ),
    };
    let mut entry = fabric.site(at.site).entry.place.clone();
    if owner == Some(Owner::Services) {
        entry = entry.key("serviceCIDR");
    }
    Finding::new(&rule::LOCAL_SHADOW, message).at(Some(entry), "also uses the address").help(
        "give one of the two clusters other addresses: linked clusters cannot share addresses",
    )
}

fn no_route(failed: FailedPacket, at: NodeRef) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let to = packet.destination;
    let site = fabric.site(at.site);
    let cluster = site.cluster;
    if let Some((unread, help)) = failed.unread(at.site) {
        let message = format!("no Peer of {cluster} contains {to}: {unread}");
        return Finding::new(&rule::NO_ROUTE, message).help(help);
    }
    if site.model.peers.is_empty() {
        return Finding::new(&rule::NO_ROUTE, format!("{cluster} has no Peers")).help(failed.remedy(
            at.site,
            Remedies {
                of_old_tree: &format!(
                    "apply `{cluster}`'s folder of the rendered tree; if it is empty, `clustermesh validate` shows \
                     why, and `clustermesh render --check` whether it is current"
                ),
                of_current_tree: "`clustermesh validate` shows why no Peers are rendered for it",
            },
        ));
    }
    let finding = without_range(failed, at);
    if let Some(delivery) = failed.delivery(at.site) {
        return finding.help(delivery);
    }
    let home = fabric.site(packet.to.site());
    if let Some(Owner::Node(_)) = home.owner(to) {
        if !home.entry.advertise.node_addresses {
            return finding.help(format!(
                "to make the internal addresses of nodes reachable, remove `nodeAddresses: false` from `advertise` of {}",
                home.cluster
            ));
        }
        return finding.help(format!(
            "to make the internal addresses of nodes reachable, declare them in `{}` of {}",
            home.entry.networks.other_ranges(),
            home.cluster
        ));
    }
    finding.help(failed.remedy(at.site, LEFT_OUT))
}

/// Returns a finding about the Peers of a cluster, none of which has the destination.
fn without_range(failed: FailedPacket, at: NodeRef) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let to = packet.destination;
    let site = fabric.site(at.site);
    let cluster = site.cluster;
    let goal = match packet.to {
        Goal::Node(node) => speaker(fabric, node),
        Goal::Services(_) | Goal::Network(_) => None,
    };
    let known = goal.and_then(|goal| {
        let key = fabric.node(goal).kilo.key?;
        let peer = site.model.peers_with(&key).first()?;
        Some((&site.model.peers[*peer], goal))
    });
    match known {
        Some((peer, goal)) => Finding::new(
            &rule::NO_ROUTE,
            format!(
                "no Peer of {cluster} contains {to}: it is missing from the Peer {} of {}",
                peer.applied.name,
                called(fabric, goal)
            ),
        )
        .at(peer.place().key("spec").key("allowedIPs"), "lacks the address"),
        None => Finding::new(&rule::NO_ROUTE, format!("no Peer of {cluster} contains {to}")),
    }
}

fn stolen_by(
    failed: FailedPacket,
    &ChosenRange { at, claim, range }: &ChosenRange,
    thief: Option<NodeRef>,
) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let to = packet.destination;
    if let (Some(thief), Goal::Node(node)) = (thief, packet.to)
        && let Some(finding) = hop::taken(fabric, at, (claim, range), [thief, node])
    {
        return finding;
    }
    let whom = match thief {
        Some(thief) => format!(" (the key of {})", called(fabric, thief)),
        None => String::new(),
    };
    let meant = match packet.to {
        Goal::Node(node) => called(fabric, node),
        Goal::Services(site) | Goal::Network(site) => fabric.site(site).cluster.to_string(),
    };
    let declared = "remove it from the ranges that the mesh declares";
    let help = failed.of_foreign_peer(at.site, claim, range);
    let help = help.unwrap_or_else(|| {
        let of_old_tree =
            format!("run `clustermesh render`; if the Peer still contains {range}, {declared}");
        failed.remedy(
            at.site,
            Remedies {
                of_old_tree: &of_old_tree,
                of_current_tree: &format!("remove {range} from the ranges that the mesh declares"),
            },
        )
    });
    Finding::new(
        &rule::STOLEN_BY,
        format!(
            "{} routes {to} (by {range}) to {}{whom} instead of {meant}",
            called(fabric, at),
            tunnel(fabric, at.site, claim.tunnel)
        ),
    )
    .at(place(fabric, at, claim), "contains the destination")
    .help(help)
}

fn unknown_key(failed: FailedPacket, &ChosenRange { at, claim, range }: &ChosenRange) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let finding = Finding::new(
        &rule::UNKNOWN_KEY,
        format!(
            "{} routes {} (by {range}) to {}, whose key belongs to no node",
            called(fabric, at),
            packet.destination,
            tunnel(fabric, at.site, claim.tunnel)
        ),
    );
    let key = peer(fabric, at.site, claim.tunnel);
    let key = key.map(|it| it.place().key("spec").key("publicKey"));
    let help = failed.of_foreign_peer(at.site, claim, range);
    let renewed =
        "take a new snapshot and run `clustermesh render`: the node has a new key or was removed";
    finding
        .at(key, "no node has this key")
        .help(help.unwrap_or_else(|| failed.delivery_or(at.site, renewed)))
}

fn not_accepted(failed: FailedPacket, by: NodeRef, why: Unaccepted) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let here = called(fabric, by);
    let sender = called(fabric, speaker(fabric, packet.from).unwrap_or(packet.from));
    let cluster = fabric.site(by.site).cluster.as_str();
    if let (Unaccepted::NoPeer, Some((unread, help))) = (why, failed.unread(by.site)) {
        let message = format!("{here} rejects {sender}: {unread}");
        return Finding::new(&rule::NOT_ACCEPTED, message).help(help);
    }
    match why {
        Unaccepted::NoPeer => Finding::new(
            &rule::NOT_ACCEPTED,
            format!("{here} rejects {sender}: no Peer of {cluster} has its key"),
        )
        .help(failed.remedy(
            by.site,
            Remedies {
                of_old_tree: &format!(
                    "run `clustermesh render` and apply the result in `{cluster}`; `clustermesh validate` \
                     shows whether {sender} is left out"
                ),
                of_current_tree: &format!("`clustermesh validate` shows why {sender} is left out"),
            },
        )),
        Unaccepted::NotLeader => {
            let leader = speaker(fabric, by).filter(|it| *it != by);
            let leader = leader.map(|it| format!("; {} is its leader", called(fabric, it)));
            Finding::new(
                &rule::NOT_ACCEPTED,
                format!(
                    "{here} does not listen because it is not the leader of its location{}",
                    leader.unwrap_or_default()
                ),
            )
            .help("take a new snapshot and render: the leader has changed")
        }
        Unaccepted::PresharedKey { peer } => {
            let place = fabric.site(by.site).model.peers[peer]
                .place()
                .key("spec")
                .key("presharedKey");
            Finding::new(
                &rule::NOT_ACCEPTED,
                format!("{here} and {sender} have different pre-shared keys for each other"),
            )
            .at(place, "differs from the other side")
            .help("set the same `presharedKey` in both Peers, or remove it from both")
        }
    }
}

fn source_rejected(
    failed: FailedPacket,
    by: NodeRef,
    owner: Option<(TunnelClaim, Cidr)>,
    back: Option<PeerId>,
) -> Finding {
    let FailedPacket { fabric, packet, .. } = failed;
    let (here, source) = (called(fabric, by), packet.source);
    let sender = called(fabric, speaker(fabric, packet.from).unwrap_or(packet.from));
    let peer = back.map(|it| &fabric.site(by.site).model.peers[it]);
    let list = peer.map(|it| it.place().key("spec").key("allowedIPs"));
    let name = peer.map_or("", |it| it.applied.name.as_str());
    let finding = match (owner, peer) {
        (Some((claim, range)), _) => Finding::new(
            &rule::SOURCE_REJECTED,
            format!(
                "{here} drops it: the source {source} belongs (by {range}) to {}, not to {sender}",
                tunnel(fabric, by.site, claim.tunnel)
            ),
        )
        .at(place(fabric, by, claim), "contains the source")
        .at(list, "the Peer of the sender"),
        (None, Some(_)) => Finding::new(
            &rule::SOURCE_REJECTED,
            format!(
                "{here} drops it: the Peer {name} of {sender} does not contain the source {source}"
            ),
        )
        .at(list, "lacks the address"),
        (None, None) => Finding::new(
            &rule::SOURCE_REJECTED,
            format!(
                "{here} drops it: the packet arrives through another node of its cluster, which may \
             not use the source {source}"
            ),
        ),
    };
    if let Some((claim, range)) = owner
        && let Some(help) = failed.of_foreign_peer(by.site, claim, range)
    {
        return finding.help(help);
    }
    if let Some(delivery) = failed.delivery(by.site) {
        return finding.help(delivery);
    }
    let home = fabric.site(packet.from.site);
    match home.owner(source) {
        Some(Owner::Node(_)) => finding.help(format!(
            "declare the internal addresses of the nodes in `{}` of {}, and run `clustermesh render`",
            home.entry.networks.other_ranges(),
            home.cluster
        )),
        _ => finding.help(failed.remedy(by.site, LEFT_OUT)),
    }
}

fn not_ready(fabric: &Fabric, at: NodeRef) -> Finding {
    let mut lacks = Vec::new();
    let kilo = &fabric.node(at).kilo;
    lacks.extend(kilo.is_silent().then_some("its agent stopped sending heartbeats"));
    lacks.extend(kilo.key.is_none().then_some("it has no key"));
    lacks.extend(kilo.pod_cidr.is_none().then_some("it has no pod CIDR"));
    lacks.extend(kilo.endpoint.is_none().then_some("it has no endpoint"));
    Finding::new(
        &rule::NOT_READY,
        format!("Kilo ignores {}: {}", called(fabric, at), lacks.join(", ")),
    )
    .help("check Kilo's agent on this node, or take a new snapshot")
}
