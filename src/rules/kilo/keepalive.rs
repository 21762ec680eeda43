//! Keepalive: do nodes behind NAT keep their way open?

use super::{MISSING_KEEPALIVE, UNDECLARED_KEEPALIVE, annotated};
use crate::diagnostic::{MetadataChange, Quoted};
use crate::fleet::Member;
use crate::kilo::node::{annotation, keepalive};
use crate::membership::PeerCandidate;
use crate::net::private_network;
use crate::place::Place;
use crate::rules::Finding;
use crate::rules::command::resolved;
use crate::rules::endpoints::ROAMING_NODE;
use crate::snapshot::Node;
use crate::text::{NAMED, listed};
use crate::wireguard::Host;

/// Returns findings about the two keepalives of nodes with Peers: Kilo's own, which sends packets,
/// and that of the mesh, which only lets others accept a new endpoint.
///
/// `persistentKeepalive` holds for a whole entry, but NAT concerns single segments: one that others
/// can dial at a public address needs no keepalives of its own.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    if member.entry.keepalive.is_none() {
        return undeclared(member).into_iter().collect();
    }
    let found = member.membership.candidates.iter().filter_map(|candidate| {
        let node = member.node(candidate.leader.as_str())?;
        (!sends(node)).then(|| silent(member, candidate, node))?
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
    let (rule, message) = match candidate.endpoint.as_ref().map(|endpoint| &endpoint.host) {
        None => (
            &ROAMING_NODE,
            format!(
                "no endpoint, and {missing}: others cannot dial the node, and the node opens \
                 tunnels only when it sends packets"
            ),
        ),
        Some(Host::Ip(address)) if private_network(*address).is_some() => (
            &MISSING_KEEPALIVE,
            format!(
                "{missing}, so Kilo sends no keepalives (`persistentKeepalive` in Peers does not \
                 make it send any)"
            ),
        ),
        Some(_) => return None,
    };
    let name = candidate.leader.as_str();
    let finding = Finding::on_node(rule, &member.entry.name, name, message)
        .at(written(candidate, node), "")
        .at(member.entry.place.key("persistentKeepalive"), "");
    let change = MetadataChange::annotation(key, "25");
    Some(resolved(finding, &change, &member.entry.name, node))
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
