//! Keepalive: do nodes behind NAT keep their way open?

use super::{MISSING_KEEPALIVE, UNDECLARED_KEEPALIVE, annotated};
use crate::diagnostic::{MetadataChange, Quoted};
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::node::{annotation, keepalive};
use crate::kilo::segment::Segment;
use crate::membership::PeerCandidate;
use crate::net::private_network;
use crate::place::Place;
use crate::rules::command::{annotate_keepalive, resolved, run};
use crate::rules::endpoints::ROAMING_NODE;
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::text::{NAMED, listed};
use crate::wireguard::{Endpoint, Host};

/// Returns findings about the two keepalives of nodes with Peers: Kilo's own, which sends packets,
/// and that of the mesh, which only lets others accept a new endpoint.
///
/// `persistentKeepalive` holds for a whole entry, but NAT concerns single segments: one that others
/// can dial at a public address needs no keepalives of its own.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    if member.entry.keepalive.is_none() {
        return undeclared(member).into_iter().collect();
    }
    let found = member.membership.candidates.iter().flat_map(|candidate| {
        let leader = member.node(candidate.leader.as_str()).filter(|it| !sends(it));
        let successors = successors(member, candidate, leader);
        let cause = successors.as_ref().map(Finding::as_cause);
        let leader = leader.and_then(|it| silent(member, candidate, it));
        leader.map(|it| it.with_cause(cause)).into_iter().chain(successors)
    });
    found.collect()
}

/// Returns whether a node's Kilo sends keepalives.
fn sends(node: &Node) -> bool {
    let written = annotated(node, annotation::PERSISTENT_KEEPALIVE);
    written.and_then(keepalive).is_some_and(|it| 0 < it)
}

/// Returns the finding about nodes that send keepalives although their entry declares none. If most
/// nodes of a cluster, or most of its leaders, have the annotation, it is not a sign of NAT: it
/// avoids the pause after a change of Peers.
fn undeclared(member: &Member) -> Option<Finding> {
    let all = &member.file.snapshot.nodes;
    let candidates = &member.membership.candidates;
    let leaders = candidates.iter();
    let leaders: Vec<&Node> = leaders.filter_map(|it| member.node(it.leader.as_str())).collect();
    let do_most = |all: usize, sending: usize| all < 2 * sending;
    let sending = all.iter().filter(|it| sends(it)).count();
    let leading = leaders.iter().filter(|it| sends(it)).count();
    if do_most(all.len(), sending) || do_most(leaders.len(), leading) {
        return None;
    }
    let candidates = member.membership.candidates.iter();
    let sending: Vec<&PeerCandidate> =
        candidates.filter(|it| member.node(it.leader.as_str()).is_some_and(sends)).collect();
    let names = listed(sending.iter().map(|it| Quoted(it.leader.as_str()).to_string()));
    let (send, it) = match sending.len() {
        0 => return None,
        1 => ("sends", "1 node"),
        number => ("send", &*format!("{number} nodes")),
    };
    let cluster = &member.entry.name;
    let message =
        format!("{it} {send} keepalives, but the cluster has no `persistentKeepalive`: {names}");
    let finding = Finding::on_cluster(&UNDECLARED_KEEPALIVE, cluster, message)
        .at(member.entry.place.key("name"), "has no `persistentKeepalive`")
        .help(format!(
            "if they are behind NAT, add `persistentKeepalive: 25` to `{cluster}` in the mesh"
        ));
    let key = annotation::PERSISTENT_KEEPALIVE;
    let places = sending.iter().map(|it| it.place.key("annotations").key(key));
    Some(finding.at_each(places.take(NAMED).map(|it| (it, ""))))
}

/// Returns the finding about a node behind NAT that sends no keepalives.
fn silent(member: &Member, candidate: &PeerCandidate, node: &Node) -> Option<Finding> {
    let key = annotation::PERSISTENT_KEEPALIVE;
    let missing = missing(node);
    let rule = behind_nat(candidate.endpoint.as_ref())?;
    let message = if candidate.endpoint.is_none() {
        format!(
            "no endpoint, and {missing}: others cannot dial the node, and the node opens \
             tunnels only when it sends packets"
        )
    } else {
        format!(
            "{missing}, so Kilo sends no keepalives (`persistentKeepalive` in Peers does not \
             make it send any)"
        )
    };
    let name = candidate.leader.as_str();
    let finding = Finding::on_node(rule, &member.entry.name, name, message)
        .at(written(candidate, node), "")
        .at(member.entry.place.key("persistentKeepalive"), "");
    let change = MetadataChange::annotation(key, "25");
    Some(resolved(finding, &change, &member.entry.name, node))
}

/// Returns the rule about a node that others dial at this endpoint, if it is behind NAT.
fn behind_nat(endpoint: Option<&Endpoint>) -> Option<&'static Rule> {
    match endpoint.map(|it| &it.host) {
        None => Some(&ROAMING_NODE),
        Some(Host::Ip(address)) if private_network(*address).is_some() => Some(&MISSING_KEEPALIVE),
        Some(_) => None,
    }
}

/// Returns the finding about the other nodes of a location whose leader is behind NAT: each of them may lead it next. The
/// leader is among them if it sends nothing either.
fn successors(
    member: &Member,
    candidate: &PeerCandidate,
    leader: Option<&Node>,
) -> Option<Finding> {
    if member.cluster.granularity != Granularity::Location {
        return None;
    }
    let rule = behind_nat(candidate.endpoint.as_ref())?;
    let nodes = &member.cluster.nodes;
    let is_led = |it: &&Segment| nodes[it.leader].node.name == candidate.leader.as_str();
    let segment = member.cluster.segments.formed.iter().find(is_led)?;
    let others = segment.members.iter().filter(|it| **it != segment.leader).map(|it| &nodes[*it]);
    let silent =
        others.filter(|it| it.kilo.keepalive == 0 && behind_nat(it.checked.endpoint()).is_some());
    let silent: Vec<&Node> = silent.map(|it| it.node).collect();
    let key = annotation::PERSISTENT_KEEPALIVE;
    let send = match silent.len() {
        0 => return None,
        1 => "sends",
        _ => "send",
    };
    let names = || silent.iter().copied().chain(leader).map(|it| it.name.as_str());
    let others = listed(silent.iter().map(|it| Quoted(&it.name).to_string()));
    let leads = Quoted(candidate.leader.as_str());
    let why = format!("annotation {key} is missing or 0");
    let message = match leader {
        Some(_) => format!(
            "{leads} is behind NAT, but neither that node nor {others}, which may lead instead, send keepalives: {why}"
        ),
        None => format!(
            "{others} may lead instead of {leads}, which is behind NAT, but {send} no keepalives: {why}"
        ),
    };
    let cluster = &member.entry.name;
    let places = silent.iter().take(NAMED).map(|it| member.place(it).key("name"));
    let finding = Finding::on_cluster(rule, cluster, message)
        .at_each(places.map(|it| (it, "")))
        .resolved_by(&MetadataChange::annotation(key, "25"), cluster, names());
    Some(finding.help(run(&annotate_keepalive("kubectl", names()), cluster)))
}

/// Returns where the node has the annotation, or its name if it has none.
fn written(candidate: &PeerCandidate, node: &Node) -> Place {
    let key = annotation::PERSISTENT_KEEPALIVE;
    match annotated(node, key) {
        Some(_) => candidate.place.key("annotations").key(key),
        None => candidate.place.key("name"),
    }
}

fn missing(node: &Node) -> String {
    let key = annotation::PERSISTENT_KEEPALIVE;
    match annotated(node, key) {
        None => format!("annotation {key} is missing"),
        Some(text) => format!("annotation {key} is {}", Quoted(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::rules::tests::report;

    fn report_on(fields: &str, says: &str) -> String {
        let node =
            "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full endpoint=192.168.0.1:51820";
        let nodes = format!("{node} {says}");
        report(
            super::super::tests::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn behind_nat_the_node_itself_has_to_send() {
        insta::assert_snapshot!(report_on("persistentKeepalive: 25", "external=10.9.0.1"), @"
        warning[missing-keepalive] east/n: annotation kilo.squat.ai/persistent-keepalive is missing, so Kilo sends no keepalives (`persistentKeepalive` in Peers does not make it send any)
          east.json#/nodes/0/name 
          mesh.yaml#/spec/clusters/0/persistentKeepalive 
          help: run `kubectl annotate node n --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on("persistentKeepalive: 25", "external=100.64.0.1 persistent-keepalive=0"), @"
        warning[missing-keepalive] east/n: annotation kilo.squat.ai/persistent-keepalive is `0`, so Kilo sends no keepalives (`persistentKeepalive` in Peers does not make it send any)
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive 
          mesh.yaml#/spec/clusters/0/persistentKeepalive 
          help: run `kubectl annotate node n --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`
        ");
    }

    #[test]
    fn without_an_endpoint_the_annotation_decides() {
        insta::assert_snapshot!(report_on("persistentKeepalive: 25", ""), @"
        warning[roaming-node] east/n: no endpoint, and annotation kilo.squat.ai/persistent-keepalive is missing: others cannot dial the node, and the node opens tunnels only when it sends packets
          east.json#/nodes/0/name 
          mesh.yaml#/spec/clusters/0/persistentKeepalive 
          help: run `kubectl annotate node n --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`
        ");
        assert_eq!(report_on("persistentKeepalive: 25", "persistent-keepalive=25"), "");
    }

    /// Nodes of one location, of which the first one leads.
    fn report_on_location(nodes: [&str; 3]) -> String {
        let mut text = String::new();
        for (index, (more, key)) in nodes.into_iter().zip(["A", "B", "C"]).enumerate() {
            let wireguard = if index == 0 { "wg=10.101.0.1/24" } else { "" };
            writeln!(
                text,
                "n{index} pod=10.1.{index}.0/24 {wireguard} key={key} internal-ip=192.168.0.{index}/24 \
                 endpoint=192.168.0.1:51820 granularity=location location=eu {more}"
            )
            .unwrap();
        }
        report(
            super::super::tests::findings,
            &[("east", "persistentKeepalive: 25", &text), ("west", "", "")],
        )
    }

    #[test]
    fn each_node_that_may_lead_behind_nat_has_to_send() {
        let sends = "persistent-keepalive=25";
        let private = "external=192.168.9.1 persistent-keepalive=25";
        insta::assert_snapshot!(report_on_location([sends, "persistent-keepalive=0", ""]), @"
        warning[roaming-node] east: `n1`, `n2` may lead instead of `n0`, which is behind NAT, but send no keepalives: annotation kilo.squat.ai/persistent-keepalive is missing or 0
          east.json#/nodes/1/name 
          east.json#/nodes/2/name 
          help: run `kubectl annotate node n1 n2 --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on_location([private, "external=192.168.9.2 persistent-keepalive=25", "external=192.168.9.3"]), @"
        warning[missing-keepalive] east: `n2` may lead instead of `n0`, which is behind NAT, but sends no keepalives: annotation kilo.squat.ai/persistent-keepalive is missing or 0
          east.json#/nodes/2/name 
          help: run `kubectl annotate node n2 --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`
        ");
        assert_eq!(report_on_location([sends; 3]), "");
        // Others can dial each node that may lead.
        let public = "external=198.18.0.1";
        assert_eq!(report_on_location([public, "", ""]), "");
        assert_eq!(report_on_location([sends, "external=198.18.0.2", sends]), "");
    }

    #[test]
    fn a_segment_with_a_public_endpoint_needs_no_keepalive() {
        assert_eq!(report_on("persistentKeepalive: 25", "external=198.18.0.1"), "");
        let declared = "persistentKeepalive: 25, endpointDomains: [example.com]";
        assert_eq!(report_on(declared, "force-endpoint=wg.example.com:51820"), "");
    }

    #[test]
    fn who_sends_may_be_behind_nat() {
        let other =
            "\no pod=10.1.2.0/24 wg=10.101.0.2/24 key=B granularity=full external=198.18.0.2";
        let one = format!("external=198.18.0.1 persistent-keepalive=25{other}");
        insta::assert_snapshot!(report_on("", &one), @"
        notice[undeclared-keepalive] east: 1 node sends keepalives, but the cluster has no `persistentKeepalive`: `n`
          mesh.yaml#/spec/clusters/0/name has no `persistentKeepalive`
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive 
          help: if they are behind NAT, add `persistentKeepalive: 25` to `east` in the mesh
        ");
        let both = format!("{one} persistent-keepalive=25");
        assert_eq!(report_on("", &both), "");
    }

    #[test]
    fn quiet_where_both_or_neither_say_so() {
        assert_eq!(report_on("persistentKeepalive: 25", "persistent-keepalive=10"), "");
        assert_eq!(report_on("", "external=198.18.0.1"), "");
        assert_eq!(report_on("", "external=198.18.0.1 persistent-keepalive=0"), "");
    }
}
