//! Words for names and values that look like what Kilo reads, and are not.

use super::inspected_cluster::InspectedCluster;
use super::misspelling::{self, KeyOnNodes, Spellings};
use super::{ANNOTATION_AS_LABEL, SIMILAR_LOCATIONS, UNKNOWN_ANNOTATION, annotated};
use crate::diagnostic::{Quoted, Severity};
use crate::document::nearest;
use crate::kilo::node::annotation;
use crate::place::Place;
use crate::rules::command::{annotate, run};
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::text::listed;

/// Returns findings about misspelled or misplaced names and values, one for each name.
pub(super) fn findings(inspected: &InspectedCluster) -> Vec<Finding> {
    let labels = misspelling::labels(inspected);
    let unknown = misspelling::unknown(inspected);
    let similar = misspelling::similar_locations(inspected);
    labels
        .iter()
        .filter_map(|it| label(inspected, it))
        .chain(
            unknown
                .iter()
                .filter_map(|it| unknown_annotation(inspected, it)),
        )
        .chain(
            similar
                .iter()
                .filter_map(|it| similar_locations(inspected, it)),
        )
        .collect()
}

fn label(inspected: &InspectedCluster, label: &KeyOnNodes) -> Option<Finding> {
    let key = label.key;
    let message = format!("label {key} has no effect: Kilo reads only the annotation of this name");
    let node = label.nodes.first()?;
    let finding = counted(&ANNOTATION_AS_LABEL, inspected, label, &message);
    let place = inspected.place(node).key("labels").key(key);
    Some(
        finding
            .at(place, "")
            .help(run(&moved(node, key), &inspected.member.entry.name)),
    )
}

/// Returns the commands that make an annotation of a label.
fn moved(node: &Node, key: &str) -> String {
    let is_safe = |text: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        text.bytes().all(is_plain)
    };
    let value = node.labels.get(key).filter(is_safe).unwrap_or("VALUE");
    let annotate = annotate(node, &format!("{key}={value}"));
    let unlabel = annotate
        .replace(" annotate ", " label ")
        .replace(&format!(" --overwrite {key}={value}"), &format!(" {key}-"));
    format!("{annotate} && {unlabel}")
}

fn unknown_annotation(inspected: &InspectedCluster, unknown: &KeyOnNodes) -> Option<Finding> {
    let message = format!("unknown annotation {}", Quoted(unknown.key));
    let node = unknown.nodes.first()?;
    let mut finding = counted(&UNKNOWN_ANNOTATION, inspected, unknown, &message)
        .at(inspected.annotation(node, unknown.key).named(), "");
    let name = unknown.key.strip_prefix(annotation::PREFIX)?;
    let names = misspelling::known().filter_map(|it| it.strip_prefix(annotation::PREFIX));
    match nearest(name, names) {
        Some(meant) => {
            finding.help = Some(format!("did you mean `{}{meant}`?", annotation::PREFIX));
        }
        // A newer Kilo may read it.
        None => finding.severity = Severity::Notice,
    }
    Some(finding)
}

/// Returns one finding about all nodes that have a label or annotation.
fn counted(
    rule: &'static Rule,
    inspected: &InspectedCluster,
    found: &KeyOnNodes,
    message: &str,
) -> Finding {
    let cluster = &inspected.member.entry.name;
    if let [node] = *found.nodes {
        let message = message.to_owned();
        return Finding::on_node(rule, cluster, &node.name, message);
    }
    let names = found.nodes.iter().map(|it| Quoted(&it.name).to_string());
    let message = format!(
        "{message} (on {} nodes: {})",
        found.nodes.len(),
        listed(names)
    );
    Finding::on_cluster(rule, cluster, message)
}

fn similar_locations(inspected: &InspectedCluster, spellings: &Spellings) -> Option<Finding> {
    let shown: Vec<String> = spellings
        .iter()
        .map(|(location, nodes)| match nodes.len() {
            1 => format!("{} (1 node)", Quoted(location)),
            count => format!("{} ({count} nodes)", Quoted(location)),
        })
        .collect();
    let message = format!(
        "locations {} differ only in spelling, but Kilo treats them as separate locations",
        shown.join(" and ")
    );
    // The spelling that fewer nodes use is the likelier mistake.
    let (rare, nodes) = spellings.iter().min_by_key(|(_, nodes)| nodes.len())?;
    let (_, others) = spellings.iter().find(|(location, _)| location != &rare)?;
    let finding = Finding::on_cluster(&SIMILAR_LOCATIONS, &inspected.member.entry.name, message)
        .at(location_place(inspected, nodes.first()?), "")
        .at(
            location_place(inspected, others.first()?),
            "another spelling",
        )
        .help("use the same spelling for the location of all these nodes");
    Some(finding)
}

/// Returns where the snapshot has the location of a node.
fn location_place(inspected: &InspectedCluster, node: &Node) -> Place {
    if annotated(node, annotation::LOCATION).is_some() {
        return inspected.annotation(node, annotation::LOCATION);
    }
    let label = &inspected.member.entry.topology_label;
    inspected.place(node).key("labels").key(label)
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    /// Returns the findings about two nodes with these values.
    fn report_on(fields: &str, granularity: &str, first: &str, second: &str) -> String {
        let node = |name: &str, number: u8, key: &str, says: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity={granularity} internal-ip=192.168.0.{number}/24 {says}\n"
            )
        };
        let nodes = node("a", 1, "A", first) + &node("b", 2, "B", second);
        report(
            super::super::tests::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn labels_that_should_be_annotations_are_found() {
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/location=x", "label:kilo.squat.ai/location=y"), @"
        warning[annotation-as-label] east: label kilo.squat.ai/location has no effect: Kilo reads only the annotation of this name (on 2 nodes: `a`, `b`)
          east.json#/nodes/0/labels/kilo.squat.ai~1location 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location=x && kubectl label node a kilo.squat.ai/location-`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/location=x", "location=y"), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/location has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1location 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location=x && kubectl label node a kilo.squat.ai/location-`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on("", "full", "label:kilo.squat.ai/persistent-keepalive=2;5", ""), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/persistent-keepalive has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1persistent-keepalive 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/persistent-keepalive=VALUE && kubectl label node a kilo.squat.ai/persistent-keepalive-`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/leader=", ""), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/leader has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1leader 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/leader= && kubectl label node a kilo.squat.ai/leader-`, then `clustermesh snapshot east`
        ");
    }

    #[test]
    fn labels_that_change_nothing_are_not_reported() {
        let label = "label:kilo.squat.ai/location=x";
        let both = format!("{label} location=x");
        assert_eq!(report_on("", "location", &both, &both), "");
        assert_eq!(report_on("", "full", label, label), "");
        let read = "topologyLabel: kilo.squat.ai/location";
        assert_eq!(report_on(read, "location", label, label), "");
        assert_eq!(report_on("", "full", "label:kilo.squat.ai/leader=", ""), "");
    }

    #[test]
    fn unknown_annotations_are_found() {
        insta::assert_snapshot!(report_on("", "full", "force-endpiont=198.18.0.1:51820", "force-endpiont=198.18.0.2:51820"), @"
        warning[unknown-annotation] east: unknown annotation `kilo.squat.ai/force-endpiont` (on 2 nodes: `a`, `b`)
          east.json#/nodes/0/annotations/kilo.squat.ai~1force-endpiont 
          help: did you mean `kilo.squat.ai/force-endpoint`?
        ");
        insta::assert_snapshot!(report_on("", "full", "brand-new=x", ""), @"
        notice[unknown-annotation] east/a: unknown annotation `kilo.squat.ai/brand-new`
          east.json#/nodes/0/annotations/kilo.squat.ai~1brand-new
        ");
        assert_eq!(
            report_on("", "full", "cni-compatibility-ip=10.0.0.1/24", ""),
            ""
        );
    }

    #[test]
    fn two_spellings_of_a_location_are_found() {
        for (first, second) in [
            ("EU-West", "eu-west"),
            ("eu_west", "eu-west"),
            ("eu·west", "eu-west"),
            ("eu-west·", "eu-west"),
        ] {
            let report = report_on(
                "",
                "location",
                &format!("location={first}"),
                &format!("location={second}"),
            );
            assert!(
                report.starts_with("warning[similar-locations] east: "),
                "{report}"
            );
        }
        insta::assert_snapshot!(report_on("", "location", "location=Eu_West", "location=eu-west"), @"
        warning[similar-locations] east: locations `Eu_West` (1 node) and `eu-west` (1 node) differ only in spelling, but Kilo treats them as separate locations
          east.json#/nodes/0/annotations/kilo.squat.ai~1location 
          east.json#/nodes/1/annotations/kilo.squat.ai~1location another spelling
          help: use the same spelling for the location of all these nodes
        ");
        assert_eq!(report_on("", "full", "location=a", "location=A"), "");
    }

    #[test]
    fn locations_of_other_names_are_not_alike() {
        for (first, second) in [
            ("zone1-1", "zone11"),
            ("a", "b"),
            ("eu-west-1", "eu-west-2"),
        ] {
            assert_eq!(
                report_on(
                    "",
                    "location",
                    &format!("location={first}"),
                    &format!("location={second}")
                ),
                ""
            );
        }
    }
}
