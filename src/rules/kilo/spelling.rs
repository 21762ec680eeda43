//! Spelling: names and values that look like what Kilo reads, and are not.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::inspected_cluster::InspectedCluster;
use super::{ANNOTATION_AS_LABEL, SIMILAR_LOCATIONS, UNKNOWN_ANNOTATION, annotated};
use crate::diagnostic::{MetadataChange, Quoted, Severity};
use crate::document::nearest;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::net::private_network;
use crate::place::Place;
use crate::rules::command::{annotate, blank, run};
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::text::listed;

/// A label or annotation, and the nodes that have it; at least one.
type KeyOnNodes<'f> = (&'f str, Vec<&'f Node>);

/// The spellings of one location, each with its nodes; at least two.
type Spellings<'f> = BTreeMap<&'f str, Vec<&'f Node>>;

/// Returns findings about misspelled or misplaced names and values, one for each name.
pub(super) fn findings(inspected: &InspectedCluster) -> Vec<Finding> {
    let (labels, unknown) = (labels(inspected), unknown(inspected));
    let labels = labels.iter().filter_map(|it| label(inspected, it));
    let unknown = unknown.iter();
    let unknown = unknown.filter_map(|it| unknown_annotation(inspected, it));
    let similar = similar_locations(inspected);
    labels.chain(unknown).chain(similar).collect()
}

/// Finds labels that Kilo reads only as annotations.
fn labels<'f>(inspected: &InspectedCluster<'f>) -> Vec<KeyOnNodes<'f>> {
    let granularity = inspected.granularity();
    let matters = |key: &&str| match *key {
        annotation::LOCATION => {
            granularity != Granularity::Full && inspected.member.entry.topology_label != **key
        }
        annotation::LEADER => granularity == Granularity::Location,
        _ => true,
    };
    let labelled = |key: &str| -> Vec<&Node> {
        inspected
            .all_nodes()
            .map(|it| it.0)
            .filter(|node| node.labels.contains_key(key) && !node.annotations.contains_key(key))
            .collect()
    };
    annotation::BY_PEOPLE
        .into_iter()
        .filter(matters)
        .map(|key| (key, labelled(key)))
        .filter(|it| !it.1.is_empty())
        .collect()
}

fn label(inspected: &InspectedCluster, label: &KeyOnNodes) -> Option<Finding> {
    let (key, nodes) = label;
    let message = format!("label {key} has no effect: Kilo reads only the annotation of this name");
    let node = nodes.first()?;
    let finding = counted(&ANNOTATION_AS_LABEL, inspected, label, &message);
    let place = inspected.place(node).key("labels").key(key);
    let cluster = &inspected.member.entry.name;
    let names = nodes.iter().map(|it| &*it.name);
    // The value of the label is a claim of the node.
    let annotation = MetadataChange::annotation(key, "VALUE").open();
    let unlabel = MetadataChange::removal(key).of_label().open();
    Some(
        finding
            .at(place, "")
            .resolved_by(&annotation, cluster, names.clone())
            .resolved_by(&unlabel, cluster, names)
            .help(run(&moved(node, key), cluster)),
    )
}

/// Returns the commands that make an annotation of a label.
fn moved(node: &Node, key: &str) -> String {
    let is_safe = |text: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        text.bytes().all(is_plain)
    };
    let value = node.labels.get(key).filter(is_safe).unwrap_or("VALUE");
    let annotate = annotate(node, format!("{key}={value}"));
    let unlabel = annotate
        .replace(" annotate ", " label ")
        .replace(&format!(" --overwrite {key}={value}"), &format!(" {key}-"));
    format!("{annotate} && {unlabel}")
}

/// Returns the annotations that Kilo knows.
fn known() -> impl Iterator<Item = &'static str> {
    annotation::BY_PEOPLE.into_iter().chain(annotation::BY_AGENT)
}

/// Finds annotations with Kilo's prefix that Kilo does not know.
fn unknown<'f>(inspected: &InspectedCluster<'f>) -> Vec<KeyOnNodes<'f>> {
    let mut unknown: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for (node, _) in inspected.all_nodes() {
        let keys = node.annotations.keys();
        for key in keys.filter(|key| !known().any(|it| it == *key)) {
            unknown.entry(key).or_default().push(node);
        }
    }
    unknown.into_iter().collect()
}

fn unknown_annotation(inspected: &InspectedCluster, unknown: &KeyOnNodes) -> Option<Finding> {
    let (key, nodes) = unknown;
    let message = format!("unknown annotation {}", Quoted(key));
    let node = nodes.first()?;
    let mut finding = counted(&UNKNOWN_ANNOTATION, inspected, unknown, &message)
        .at(inspected.annotation(node, key).named(), "");
    let name = key.strip_prefix(annotation::PREFIX)?;
    if let Some((_, today)) = OLD_NAMES.iter().find(|it| it.0 == name) {
        return Some(finding.help(*today));
    }
    let names = known().filter_map(|it| it.strip_prefix(annotation::PREFIX));
    let is_public = nodes.iter().any(|it| has_public_address(it, key));
    match nearest(name, names).filter(|it| !(is_public && it.ends_with("internal-ip"))) {
        Some(meant) => {
            finding.help = Some(format!("did you mean `{}{meant}`?", annotation::PREFIX));
        }
        // A newer Kilo may read it.
        None => finding.severity = Severity::Notice,
    }
    Some(finding)
}

/// Names that Kilo read before 0.1, and what to write today.
const OLD_NAMES: [(&str, &str); 3] = [
    (
        "force-external-ip",
        "write `kilo.squat.ai/force-endpoint: ADDRESS:51820` instead: Kilo has not read this name since 0.1",
    ),
    ("external-ip", "remove it: Kilo has written `kilo.squat.ai/endpoint` instead since 0.1"),
    (
        "wireguard-persistent-keepalive",
        "write `kilo.squat.ai/persistent-keepalive` instead: Kilo has not read this name since 0.1",
    ),
];

/// Returns whether the value of an annotation is a public address.
fn has_public_address(node: &Node, key: &str) -> bool {
    let text = annotated(node, key).unwrap_or_default();
    let address = text.split_once('/').map_or(text, |it| it.0);
    let address = address.parse::<IpAddr>();
    address.is_ok_and(|it| private_network(it).is_none())
}

/// Returns one finding about all nodes that have a label or annotation.
fn counted(
    rule: &'static Rule,
    inspected: &InspectedCluster,
    (_, nodes): &KeyOnNodes,
    message: &str,
) -> Finding {
    let cluster = &inspected.member.entry.name;
    if let [node] = **nodes {
        let message = message.to_owned();
        return Finding::on_node(rule, cluster, &node.name, message);
    }
    let names = nodes.iter().map(|it| Quoted(&it.name).to_string());
    let message = format!("{message} (on {} nodes: {})", nodes.len(), listed(names));
    Finding::on_cluster(rule, cluster, message)
}

/// Finds locations that differ only in case, white space, `-` and `_`.
fn similar_locations(inspected: &InspectedCluster) -> Vec<Finding> {
    if inspected.granularity() == Granularity::Full {
        return Vec::new();
    }
    let mut alike: BTreeMap<String, Spellings> = BTreeMap::new();
    for (node, kilo) in inspected.nodes().filter(|(_, kilo)| !kilo.location.is_empty()) {
        let spellings = alike.entry(folded(&kilo.location)).or_default();
        let nodes = spellings.entry(&kilo.location).or_default();
        nodes.push(node);
    }
    alike
        .into_values()
        .filter(|spellings| 1 < spellings.len())
        .filter_map(|it| of_spellings(inspected, &it))
        .collect()
}

/// Returns what all spellings of a location have in common. A separator remains one, as `zone1-1` and
/// `zone11` are two locations.
fn folded(location: &str) -> String {
    let is_separator = |it: char| it.is_whitespace() || it == '-' || it == '_';
    let words: Vec<String> = location
        .split(is_separator)
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

fn of_spellings(inspected: &InspectedCluster, spellings: &Spellings) -> Option<Finding> {
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
    let cluster = &inspected.member.entry.name;
    let change = blank(annotation::LOCATION);
    let finding = Finding::on_cluster(&SIMILAR_LOCATIONS, cluster, message)
        .resolved_by(&change, cluster, nodes.iter().map(|it| &*it.name))
        .at(location_place(inspected, nodes.first()?), "")
        .at(location_place(inspected, others.first()?), "another spelling")
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
        let place =
            |it: &str| it.split(' ').find(|it| it.starts_with("location=")).map(str::to_owned);
        let node = |name: &str, number: u8, key: &str, says: &str| {
            let is_member =
                number == 2 && granularity == "location" && place(first) == place(second);
            let wireguard =
                if is_member { String::new() } else { format!("wg=10.101.0.{number}/24") };
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} {wireguard} endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity={granularity} internal-ip=192.168.0.{number}/24 {says}\n"
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
        assert_eq!(report_on("", "full", "cni-compatibility-ip=10.0.0.1/24", ""), "");
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
            assert!(report.starts_with("warning[similar-locations] east: "), "{report}");
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
        for (first, second) in [("zone1-1", "zone11"), ("a", "b"), ("eu-west-1", "eu-west-2")] {
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
