//! Locations: do nodes share one by mistake, and which node leads it?

use std::collections::{BTreeMap, BTreeSet};

use super::{
    EMPTY_LOCATION, MISSING_INTERNAL_IP, MISSING_LOCATION, SEVERAL_LEADERS, UNCERTAIN_LEADER,
    annotate, annotated, run,
};
use crate::analysis::kilo_site::KiloSite;
use crate::diagnostic::{Label, Quoted, Severity};
use crate::granularity::Granularity;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node::{InternalIp, KiloNode, annotation};
use crate::rules::Finding;
use crate::rules::membership::on_node;
use crate::snapshot::Node;
use crate::text::listed;

/// Labels that name where a node is. Kubernetes knows the first two by the last two names too, which
/// are older.
const LABELS: [&str; 4] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
];

/// Returns findings about locations.
pub(super) fn findings(site: &KiloSite) -> Vec<Finding> {
    let mut findings = missing_internal_ips(site);
    if site.member.cluster.granularity == Granularity::Location {
        findings.extend(hidden_labels(site));
        findings.extend(nameless(site));
        findings.extend(several_leaders(site));
        findings.extend(uncertain_leaders(site));
    }
    findings
}

/// Reports nodes without an internal address in a location in which others have one.
fn missing_internal_ips(site: &KiloSite) -> Vec<Finding> {
    let granularity = site.member.cluster.granularity;
    let having: BTreeMap<&str, &str> = site
        .nodes()
        .filter(|it| it.1.internal_address().is_some())
        .map(|(node, kilo)| (kilo.location.as_str(), node.name.as_str()))
        .collect();
    let lacking = site.lively().filter_map(|(node, kilo)| {
        let other = having.get(kilo.location.as_str())?;
        let is_meant = kilo.internal_ip == InternalIp::Disabled;
        let (what, severity) = match granularity {
            _ if kilo.internal_address().is_some() => return None,
            Granularity::Full => return None,
            Granularity::Location if is_meant => return None,
            Granularity::Location => ("it is a separate segment", Severity::Notice),
            Granularity::Cross => (
                "the Kilo agents of this location crash",
                MISSING_INTERNAL_IP.severity,
            ),
        };
        let message = format!(
            "has no internal address, unlike {} in the same location, so {what}",
            Quoted(other)
        );
        let key = annotation::INTERNAL_IP;
        let place = match annotated(node, key) {
            Some(_) => site.annotation(node, key),
            None => site.place(node).key("name"),
        };
        let mut finding = on_node(
            &MISSING_INTERNAL_IP,
            site.member,
            &node.name,
            message,
            &place,
        );
        finding.severity = severity;
        Some(finding)
    });
    lacking.collect()
}

/// Reports empty annotations that hide a label.
fn hidden_labels(site: &KiloSite) -> impl Iterator<Item = Finding> {
    let label = &site.member.entry.topology_label;
    site.lively().filter_map(move |(node, _)| {
        let hidden = node.labels.get(label).filter(|it| !it.is_empty())?;
        annotated(node, annotation::LOCATION).filter(|text| text.is_empty())?;
        let message = format!(
            "annotation {} is empty and overrides label {label} ({})",
            annotation::LOCATION,
            Quoted(hidden)
        );
        let place = site.annotation(node, annotation::LOCATION);
        let mut finding = on_node(&EMPTY_LOCATION, site.member, &node.name, message, &place);
        finding.help = Some(run(&annotate(node, &format!("{}-", annotation::LOCATION))));
        Some(finding)
    })
}

/// Reports nodes in the location without a name because they have neither annotation nor label.
fn nameless(site: &KiloSite) -> Vec<Finding> {
    let located: Vec<(&Node, &KiloNode)> = site
        .lively()
        .filter(|(_, kilo)| kilo.is_ready() && kilo.internal_address().is_some())
        .collect();
    let is_unnamed = |node: &Node| {
        annotated(node, annotation::LOCATION).is_none()
            && !node.labels.contains_key(&site.member.entry.topology_label)
    };
    let unnamed: Vec<&Node> = located
        .iter()
        .filter(|it| is_unnamed(it.0))
        .map(|it| it.0)
        .collect();
    let label = &site.member.entry.topology_label;
    if unnamed.len() == located.len() {
        return by_another_label(site, &unnamed).into_iter().collect();
    }
    let unnamed = unnamed.iter().filter(|node| {
        // `annotation-as-label` names the cause.
        !node.labels.contains_key(annotation::LOCATION)
    });
    let unnamed = unnamed.map(|node| {
        let message = format!(
            "has no location, unlike other nodes: annotation {} and label {label} are missing",
            annotation::LOCATION
        );
        let place = site.place(node).key("name");
        on_node(&MISSING_LOCATION, site.member, &node.name, message, &place)
    });
    unnamed.collect()
}

/// Reports a cluster that is one location only because its nodes have another label.
fn by_another_label(site: &KiloSite, nodes: &[&Node]) -> Option<Finding> {
    let entry = &site.member.entry;
    let others = LABELS.iter().filter(|it| **it != entry.topology_label);
    let (label, values) = others
        .map(|label| {
            let values = nodes.iter().filter_map(|node| node.labels.get(*label));
            (*label, values.collect::<BTreeSet<_>>())
        })
        .find(|(_, values)| 1 < values.len())?;
    let values = listed(values.iter().map(|value| Quoted(value).to_string()));
    let message = format!(
        "all {} nodes are one location because none has the label {}, but label {label} has the \
         values {values}",
        nodes.len(),
        entry.topology_label
    );
    let mut finding = Finding::on_cluster(&MISSING_LOCATION, &entry.name, message);
    let labelled = nodes.iter().find(|node| node.labels.contains_key(label))?;
    finding.labels.push(Label {
        place: site.place(labelled).key("labels").key(label),
        text: String::new(),
    });
    finding.help = Some(format!(
        "if Kilo runs with `--topology-label={label}`, set `topologyLabel: {label}` for `{}` \
         in the mesh",
        entry.name
    ));
    Some(finding)
}

/// Reports locations in which more than one node volunteers.
fn several_leaders(site: &KiloSite) -> Vec<Finding> {
    let nodes = &site.cluster().nodes;
    let formed = site.cluster().segments.formed.iter().filter_map(|segment| {
        let volunteers = segment.members.iter().map(|it| &nodes[*it]);
        let volunteers: Vec<&Node> = volunteers
            .filter(|it| it.kilo.volunteers)
            .map(|it| it.node)
            .collect();
        let ClusterNode {
            node: leader, kilo, ..
        } = &nodes[segment.leader];
        let second = volunteers.get(1)?;
        let names = volunteers.iter().map(|it| Quoted(&it.name).to_string());
        let message = format!(
            "{} of {} are candidates for leader: {} leads",
            listed(names),
            called(&kilo.location),
            Quoted(&leader.name)
        );
        let mut finding = Finding::on_cluster(&SEVERAL_LEADERS, &site.member.entry.name, message);
        finding.labels.push(Label {
            place: site.annotation(second, annotation::LEADER),
            text: String::new(),
        });
        Some(finding)
    });
    formed.collect()
}

/// Reports locations whose leader is another node than the one that Kilo probably elects.
fn uncertain_leaders(site: &KiloSite) -> Vec<Finding> {
    let nodes = &site.cluster().nodes;
    let uncertain = site.cluster().segments.formed.iter().filter(|segment| {
        let has_name = |it: &NodeId| nodes[*it].kilo.has_name();
        segment.leader != segment.elected && !segment.members.iter().any(has_name)
    });
    uncertain
        .map(|segment| {
            let (holder, elected) = (&nodes[segment.leader], &nodes[segment.elected]);
            let message = format!(
                "{} has the only WireGuard address of {}, but Kilo elects {}",
                Quoted(&holder.node.name),
                called(&holder.kilo.location),
                Quoted(&elected.node.name),
            );
            let cluster = &site.member.entry.name;
            let place = site.annotation(holder.node, annotation::WIREGUARD_IP);
            let help = format!(
                "take a new snapshot with `clustermesh snapshot {cluster}`; if the address is still \
                 there, remove it: `{}`",
                annotate(holder.node, &format!("{}-", annotation::WIREGUARD_IP))
            );
            let finding = Finding::on_cluster(&UNCERTAIN_LEADER, cluster, message);
            finding.at(place, "").help(help)
        })
        .collect()
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
        let node = |name: &str, number: u8, key: &str, says: &str| {
            let internal = if says.contains("internal-ip") {
                ""
            } else {
                "internal-ip=192.168.0.1/24"
            };
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity={granularity} {internal} {says}\n"
            )
        };
        let nodes = node("a", 1, "A", first) + &node("b", 2, "B", second);
        report(
            super::super::findings,
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
        ");
        let label = |value: &str| format!("{REGION}{value}");
        assert_eq!(report_on("", "location", "location=x", &label("y")), "");
        assert_eq!(report_on("", "location", "", ""), "");
        assert_eq!(
            report_on("", "location", "location=x", "location="),
            "",
            "a person says so"
        );
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
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location-`
        ");
        assert_eq!(report_on("", "full", &hiding, ""), "");
    }

    #[test]
    fn two_volunteers_of_one_location_are_reported() {
        insta::assert_snapshot!(report_on("", "location", "leader=", "leader=true"), @"
        notice[several-leaders] east: `a`, `b` of the unnamed location are candidates for leader: `a` leads
          east.json#/nodes/1/annotations/kilo.squat.ai~1leader
        ");
        assert_eq!(report_on("", "location", "leader=", ""), "");
        assert_eq!(
            report_on("", "location", "leader= location=x", "leader= location=y"),
            ""
        );
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
        assert!(
            certain("", ""),
            "the election decides between two addresses"
        );
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
        assert_eq!(
            report_on("", "location", "force-internal-ip=- internal-ip=", ""),
            ""
        );
    }
}
