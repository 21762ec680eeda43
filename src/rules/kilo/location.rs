//! Locations: do nodes share one by mistake, and which node leads it?

use std::collections::{BTreeMap, BTreeSet};

use super::inspected_cluster::InspectedCluster;
use super::unlocated::without_location;
use super::{
    EMPTY_LOCATION, MISSING_INTERNAL_IP, MISSING_LOCATION, SEVERAL_LEADERS, UNCERTAIN_LEADER,
    annotated,
};
use crate::diagnostic::{MetadataChange, Quoted, Severity};
use crate::granularity::Granularity;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::location_label::LOCATION_LABELS;
use crate::kilo::node::{InternalIp, KiloNode, annotation, listening};
use crate::kilo::segment::segments;
use crate::kilo::topology::Leader;
use crate::rules::Finding;
use crate::rules::command::{annotate, annotate_each, blank, resolved, run};
use crate::rules::nodes::contradicted_label;
use crate::snapshot::Node;
use crate::text::listed;

/// Returns findings about locations.
pub(super) fn findings(inspected: &InspectedCluster) -> Vec<Finding> {
    let mut findings = addressless(inspected);
    if inspected.granularity() == Granularity::Location {
        findings.extend(hidden_labels(inspected));
        let of_label = unnamed(inspected)
            .into_iter()
            .chain(several_leaders(inspected))
            .chain(uncertain_leaders(inspected));
        let cause = || contradicted_label(inspected.member);
        findings.extend(of_label.map(|it| it.with_cause(cause())));
    }
    findings
}

/// Finds nodes without an internal address in a location in which another has one.
fn addressless(inspected: &InspectedCluster) -> Vec<Finding> {
    let granularity = inspected.granularity();
    let having: BTreeMap<&str, &Node> = inspected
        .all_nodes()
        .filter(|it| it.1.internal_address().is_some())
        .map(|(node, kilo)| (kilo.location.as_str(), node))
        .collect();
    inspected
        .nodes()
        .filter(|(_, kilo)| kilo.internal_address().is_none())
        .filter_map(|(node, kilo)| {
            let effect = match granularity {
                Granularity::Full => return None,
                // A person wants that segment.
                Granularity::Location if kilo.internal_ip == InternalIp::Disabled => return None,
                Granularity::Location => ("it is a separate segment", Severity::Notice),
                Granularity::Cross => {
                    let severity = MISSING_INTERNAL_IP.severity;
                    ("the Kilo agents of this location crash", severity)
                }
            };
            let other = having.get(kilo.location.as_str())?;
            Some(missing_internal_ip(inspected, [node, other], effect))
        })
        .collect()
}

fn missing_internal_ip(
    inspected: &InspectedCluster,
    [node, other]: [&Node; 2],
    (what, severity): (&str, Severity),
) -> Finding {
    let message = format!(
        "has no internal address, unlike {} in the same location, so {what}",
        Quoted(&other.name)
    );
    let key = annotation::INTERNAL_IP;
    let place = match annotated(node, key) {
        Some(_) => inspected.annotation(node, key),
        None => inspected.place(node).key("name"),
    };
    let cluster = &inspected.member.entry.name;
    let change = blank(annotation::FORCE_INTERNAL_IP);
    let finding = Finding::on_node(&MISSING_INTERNAL_IP, cluster, &node.name, message);
    let finding = finding.resolved_by(&change, cluster, [&*node.name]);
    Finding { severity, ..finding.at(place, "") }
}

/// Finds nodes whose empty annotation hides their label.
fn hidden_labels(inspected: &InspectedCluster) -> impl Iterator<Item = Finding> {
    inspected.nodes().filter_map(|(node, _)| {
        let label = &inspected.member.entry.topology_label;
        let value = node.labels.get(label).filter(|it| !it.is_empty())?;
        let annotation = node.annotations.get(annotation::LOCATION)?;
        annotation.is_empty().then(|| hidden_label(inspected, node, value))
    })
}

fn hidden_label(inspected: &InspectedCluster, node: &Node, value: &str) -> Finding {
    let label = &inspected.member.entry.topology_label;
    let key = annotation::LOCATION;
    let message =
        format!("annotation {key} is empty and overrides label {label} ({})", Quoted(value));
    let cluster = &inspected.member.entry.name;
    let finding = Finding::on_node(&EMPTY_LOCATION, cluster, &node.name, message)
        .at(inspected.annotation(node, key), "");
    resolved(finding, &MetadataChange::removal(key), cluster, node)
}

/// Finds nodes in the location without a name because they have neither annotation nor label. If all are there, another
/// label may distinguish them.
fn unnamed(inspected: &InspectedCluster) -> Vec<Finding> {
    let located: Vec<(&Node, &KiloNode)> = inspected
        .nodes()
        .filter(|(_, kilo)| kilo.is_ready() && kilo.internal_address().is_some())
        .collect();
    let is_unnamed = |node: &Node| {
        !node.annotations.contains_key(annotation::LOCATION)
            && !node.labels.contains_key(&inspected.member.entry.topology_label)
    };
    let unnamed: Vec<&Node> =
        located.iter().map(|it| it.0).filter(|node| is_unnamed(node)).collect();
    if unnamed.len() == located.len() {
        return other_label(inspected, &unnamed).into_iter().collect();
    }
    unnamed
        .into_iter()
        // `annotation-as-label` names the cause.
        .filter(|node| !node.labels.contains_key(annotation::LOCATION))
        .map(|node| without_location(inspected, node))
        .collect()
}

/// Returns a finding about a label that distinguishes nodes of one location, if there is one.
fn other_label(inspected: &InspectedCluster, nodes: &[&Node]) -> Option<Finding> {
    let entry = &inspected.member.entry;
    let (label, values) = LOCATION_LABELS
        .iter()
        .filter(|it| **it != entry.topology_label)
        .map(|label| {
            let values = nodes.iter().filter_map(|node| node.labels.get(*label));
            (*label, values.collect::<BTreeSet<_>>())
        })
        .find(|(_, values)| 1 < values.len())?;
    let first = nodes.iter().find(|node| node.labels.contains_key(label))?;
    let message = format!(
        "all {} nodes are one location because none has the label {}, but label {label} has the values {}",
        nodes.len(),
        entry.topology_label,
        listed(values.iter().map(|value| Quoted(value).to_string()))
    );
    let finding = Finding::on_cluster(&MISSING_LOCATION, &entry.name, message)
        .at(inspected.place(first).key("labels").key(label), "")
        .help(format!(
            "if Kilo runs with `--topology-label={label}`, set `topologyLabel: {label}` for `{}` \
             in the mesh",
            entry.name
        ));
    Some(finding)
}

/// Finds locations in which more than one node volunteers to lead.
fn several_leaders(inspected: &InspectedCluster) -> impl Iterator<Item = Finding> {
    let nodes = &inspected.cluster().nodes;
    let formed = inspected.cluster().segments.formed.iter();
    formed.filter_map(|segment| {
        let volunteers: Vec<&Node> = segment
            .members
            .iter()
            .map(|it| &nodes[*it])
            .filter(|it| it.kilo.volunteers)
            .map(|it| it.node)
            .collect();
        (1 < volunteers.len())
            .then(|| several_volunteers(inspected, &nodes[segment.leader], &volunteers))
    })
}

fn several_volunteers(
    inspected: &InspectedCluster,
    leader: &ClusterNode,
    volunteers: &[&Node],
) -> Finding {
    let message = format!(
        "{} of {} are candidates for leader: {} leads",
        listed(volunteers.iter().map(|it| Quoted(&it.name).to_string())),
        called(&leader.kilo.location),
        Quoted(&leader.node.name)
    );
    let second = volunteers.get(1);
    let place = second.map(|it| inspected.annotation(it, annotation::LEADER));
    let others = volunteers.iter().copied();
    let others = others.filter(|it| it.name != leader.node.name);
    let change = MetadataChange::removal(annotation::LEADER).open();
    let cluster = &inspected.member.entry.name;
    Finding::on_cluster(&SEVERAL_LEADERS, cluster, message)
        .at(place, "")
        .resolved_by(&change, cluster, others.clone().map(|it| &*it.name))
        .help(format!("if only one should lead, {}", run(&annotate_each(others, &change), cluster)))
}

/// Finds locations of which the agents of the cluster do not show who leads them.
fn uncertain_leaders<'f>(
    inspected: &'f InspectedCluster<'f>,
) -> impl Iterator<Item = Finding> + use<'f> {
    let cluster = inspected.cluster();
    let uncertain = cluster.topology.segments.iter();
    let uncertain = uncertain.filter(|it| matches!(it.leader, Leader::Ambiguous(_)));
    let uncertain: BTreeSet<&str> = uncertain.map(|it| it.key.as_str()).collect();
    let formed = segments(&cluster.nodes.map(|it| &*it.kilo), inspected.granularity()).formed;
    let formed = formed.into_iter().filter(move |it| uncertain.contains(it.key.as_str()));
    formed.map(|segment| {
        let [leader, elected] = [segment.leader, segment.elected].map(|it| &cluster.nodes[it]);
        let members = || segment.members.iter().map(|it| &cluster.nodes[*it]);
        // The leader may have another granularity than those beside it.
        let holds = |id: NodeId| {
            let kilo = &cluster.nodes[id].kilo;
            kilo.is_ready()
                && (kilo.claims_lead() || id == segment.leader && kilo.has_wireguard_ip())
        };
        let holders = segment.members.iter().filter(|it| holds(**it)).map(|it| &cluster.nodes[*it]);
        match holders.collect::<Vec<&ClusterNode>>().as_slice() {
            holders @ [_, _, ..] => several_holders(inspected, holders),
            _ if segment.leader != segment.elected => {
                uncertain_leader(inspected, leader, elected.node)
            }
            _ => elected_by_name(inspected, members().filter(|it| it.kilo.has_name()).collect()),
        }
    })
}

fn elected_by_name(inspected: &InspectedCluster, named: Vec<&ClusterNode>) -> Finding {
    let location = named.first().map_or("", |it| &it.kilo.location);
    let message = format!(
        "Kilo elects the leader of {} by the addresses of endpoints, and {} have host names",
        called(location),
        listed(named.iter().map(|it| Quoted(&it.node.name).to_string())),
    );
    let cluster = &inspected.member.entry.name;
    let finding = Finding::on_cluster(&UNCERTAIN_LEADER, cluster, message);
    let places = named
        .into_iter()
        .filter_map(|it| Some(inspected.annotation(it.node, listening(it.node)?.0)));
    places.fold(finding, |finding, place| finding.at(place, "")).help(format!(
        "write addresses into `{}` of these nodes, then run `clustermesh snapshot {cluster}`",
        annotation::FORCE_ENDPOINT
    ))
}

fn several_holders(inspected: &InspectedCluster, holders: &[&ClusterNode]) -> Finding {
    let location = holders.first().map_or("", |it| &it.kilo.location);
    let message = format!(
        "{} of {} have a WireGuard address, but only its leader has one",
        listed(holders.iter().map(|it| Quoted(&it.node.name).to_string())),
        called(location),
    );
    let cluster = &inspected.member.entry.name;
    let places = holders.iter().map(|it| inspected.annotation(it.node, annotation::WIREGUARD_IP));
    let finding = Finding::on_cluster(&UNCERTAIN_LEADER, cluster, message);
    places.fold(finding, |finding, place| finding.at(place, "")).help(format!(
        "wait two minutes, then take a new snapshot with `clustermesh snapshot {cluster}`; if both still have an \
         address, check on these nodes that Kilo runs and that the clock is right"
    ))
}

fn uncertain_leader(inspected: &InspectedCluster, holder: &ClusterNode, elected: &Node) -> Finding {
    let message = format!(
        "{} has the only WireGuard address of {}, but Kilo elects {}",
        Quoted(&holder.node.name),
        called(&holder.kilo.location),
        Quoted(&elected.name),
    );
    let cluster = &inspected.member.entry.name;
    let key = annotation::WIREGUARD_IP;
    let snapshot = format!("take a new snapshot with `clustermesh snapshot {cluster}`");
    let help = if holder.kilo.stale {
        format!("check that Kilo runs on it and that its clock is right, then {snapshot}")
    } else {
        format!(
            "{snapshot}; if the address is still there, remove it: `{}`",
            annotate(holder.node, MetadataChange::removal(key))
        )
    };
    Finding::on_cluster(&UNCERTAIN_LEADER, cluster, message)
        .at(inspected.annotation(holder.node, key), "")
        .help(help)
}

fn called(location: &str) -> String {
    match location {
        "" => "the unnamed location".to_owned(),
        name => format!("location {}", Quoted(name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    /// Returns the findings about two nodes in locations with these values.
    fn report_on(fields: &str, granularity: &str, first: &str, second: &str) -> String {
        let place =
            |it: &str| it.split(' ').find(|it| it.starts_with("location=")).map(str::to_owned);
        let node = |name: &str, number: u8, key: &str, says: &str| {
            // Only one node of a location has an address.
            let is_member = number == 2
                && granularity == "location"
                && place(first) == place(second)
                && !first.contains("wg=");
            let wireguard =
                if is_member { String::new() } else { format!("wg=10.101.0.{number}/24") };
            let internal =
                if says.contains("internal-ip") { "" } else { "internal-ip=192.168.0.1/24" };
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} {wireguard} endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity={granularity} {internal} {says}\n"
            )
        };
        let nodes = node("a", 1, "A", first) + &node("b", 2, "B", second);
        report(
            super::super::tests::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    const REGION: &str = "label:topology.kubernetes.io/region=";
    const ZONE: &str = "label:topology.kubernetes.io/zone=";

    #[test]
    fn a_node_without_a_location_among_others_is_reported() {
        insta::assert_snapshot!(report_on("", "location", "location=x", ""), @"
        notice[missing-location] east/b: has no location, unlike other nodes: annotation kilo.squat.ai/location and label topology.kubernetes.io/region are missing
          east.json#/nodes/1/name 
          help: if it belongs to a location, run `kubectl annotate node b --overwrite kilo.squat.ai/location=LOCATION`, then `clustermesh snapshot east`
        ");
        let label = |value: &str| format!("{REGION}{value}");
        assert_eq!(report_on("", "location", "location=x", &label("y")), "");
        assert_eq!(report_on("", "location", "", ""), "");
        assert_eq!(report_on("", "location", "location=x", "location="), "", "a person says so");
        assert_eq!(report_on("", "full", "location=x", ""), "");
    }

    #[test]
    fn another_label_is_reported_where_it_tells_nodes_apart() {
        let zone = |value: &str| format!("{ZONE}{value}");
        insta::assert_snapshot!(report_on("", "location", &zone("a"), &zone("b")), @"
        notice[missing-location] east: all 2 nodes are one location because none has the label topology.kubernetes.io/region, but label topology.kubernetes.io/zone has the values `a`, `b`
          east.json#/nodes/0/labels/topology.kubernetes.io~1zone 
          help: if Kilo runs with `--topology-label=topology.kubernetes.io/zone`, set `topologyLabel: topology.kubernetes.io/zone` for `east` in the mesh
        ");
        assert_eq!(report_on("", "location", &zone("a"), &zone("a")), "");
        let fields = "topologyLabel: topology.kubernetes.io/zone";
        assert_eq!(report_on(fields, "location", &zone("a"), &zone("b")), "");
    }

    #[test]
    fn an_empty_annotation_hides_the_label() {
        let hiding = format!("{REGION}eu location=");
        insta::assert_snapshot!(report_on("", "location", &hiding, "location="), @"
        notice[empty-location] east/a: annotation kilo.squat.ai/location is empty and overrides label topology.kubernetes.io/region (`eu`)
          east.json#/nodes/0/annotations/kilo.squat.ai~1location 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location-`, then `clustermesh snapshot east`
        ");
        assert_eq!(report_on("", "full", &hiding, ""), "");
    }

    #[test]
    fn two_volunteers_of_one_location_are_reported() {
        insta::assert_snapshot!(report_on("", "location", "leader=", "leader=true"), @"
        notice[several-leaders] east: `a`, `b` of the unnamed location are candidates for leader: `a` leads
          east.json#/nodes/1/annotations/kilo.squat.ai~1leader 
          help: if only one should lead, run `kubectl annotate node b --overwrite kilo.squat.ai/leader-`, then `clustermesh snapshot east`
        ");
        assert_eq!(report_on("", "location", "leader=", ""), "");
        assert_eq!(report_on("", "location", "leader= location=x", "leader= location=y"), "");
    }

    #[test]
    fn a_leader_that_kilo_would_not_elect_is_reported() {
        let location = |first: &str, second: &str| report_on("", "location", first, second);
        let certain =
            |first: &str, second: &str| !location(first, second).contains("uncertain-leader");
        insta::assert_snapshot!(location("wg=", ""), @"
        warning[uncertain-leader] east: `b` has the only WireGuard address of the unnamed location, but Kilo elects `a`
          east.json#/nodes/1/annotations/kilo.squat.ai~1wireguard-ip 
          help: take a new snapshot with `clustermesh snapshot east`; if the address is still there, remove it: `kubectl annotate node b --overwrite kilo.squat.ai/wireguard-ip-`
        ");
        assert!(!certain("wg= leader=", ""));
        assert!(certain("wg=", "leader="));
        assert!(certain("wg= location=x", ""));
        assert!(certain("wg= force-endpoint=wg.example:51820", ""));
    }

    #[test]
    fn several_wireguard_addresses_of_one_location_are_reported() {
        const HOLDER: &str = "wg=10.101.0.2/24";
        insta::assert_snapshot!(report_on("", "location", "", HOLDER), @"
        warning[uncertain-leader] east: `a`, `b` of the unnamed location have a WireGuard address, but only its leader has one
          east.json#/nodes/0/annotations/kilo.squat.ai~1wireguard-ip 
          east.json#/nodes/1/annotations/kilo.squat.ai~1wireguard-ip 
          help: wait two minutes, then take a new snapshot with `clustermesh snapshot east`; if both still have an address, check on these nodes that Kilo runs and that the clock is right
        ");
        assert_eq!(report_on("", "location", "location=x", &format!("{HOLDER} location=y")), "");
        for mark in ["lost-lead", "stale"] {
            let former = format!("{HOLDER} {mark}");
            assert!(!report_on("", "location", "", &former).contains("uncertain-leader"));
        }
        // The only address is that of a node that may only be late.
        insta::assert_snapshot!(report_on("", "location", "wg=", &format!("{HOLDER} stale")), @"
        warning[uncertain-leader] east: `b` has the only WireGuard address of the unnamed location, but Kilo elects `a`
          east.json#/nodes/1/annotations/kilo.squat.ai~1wireguard-ip 
          help: check that Kilo runs on it and that its clock is right, then take a new snapshot with `clustermesh snapshot east`
        ");
        assert_eq!(report_on("", "full", "", HOLDER), "");
    }

    #[test]
    fn a_node_without_an_internal_address_breaks_cross() {
        insta::assert_snapshot!(report_on("", "cross", "internal-ip=", ""), @"
        warning[missing-internal-ip] east/a: has no internal address, unlike `b` in the same location, so the Kilo agents of this location crash
          east.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip
        ");
        insta::assert_snapshot!(report_on("", "cross", "force-internal-ip=- internal-ip=", ""), @"
        warning[missing-internal-ip] east/a: has no internal address, unlike `b` in the same location, so the Kilo agents of this location crash
          east.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip
        ");
        assert_eq!(report_on("", "cross", "internal-ip= location=x", ""), "");
        assert_eq!(report_on("", "cross", "internal-ip=", "internal-ip="), "");
        assert_eq!(report_on("", "full", "internal-ip=", ""), "");
    }

    #[test]
    fn a_node_without_an_internal_address_is_a_segment_of_its_own() {
        insta::assert_snapshot!(report_on("", "location", "internal-ip=", ""), @"
        notice[missing-internal-ip] east/a: has no internal address, unlike `b` in the same location, so it is a separate segment
          east.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip
        ");
        assert_eq!(report_on("", "location", "force-internal-ip=- internal-ip=", ""), "");
    }
}
