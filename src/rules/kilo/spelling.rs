//! Spelling: names and values that look like what Kilo reads, and are not.

use std::collections::BTreeMap;

use super::{ANNOTATION_AS_LABEL, SIMILAR_LOCATIONS, UNKNOWN_ANNOTATION, annotated};
use crate::analysis::kilo_site::KiloSite;
use crate::diagnostic::{Label, Quoted, Severity};
use crate::document::nearest;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::place::Place;
use crate::rules::Finding;
use crate::rules::command::{annotate, run};
use crate::snapshot::Node;
use crate::text::listed;

/// Returns findings about misspelled or misplaced names and values.
pub(super) fn findings(site: &KiloSite) -> Vec<Finding> {
    let mut findings = labels(site);
    findings.extend(unknown(site));
    findings.extend(similar_locations(site));
    findings
}

/// A node, and a place in its part of the snapshot.
type SpellingCase<'a> = (&'a Node, Place);

/// Finds labels that Kilo reads only as annotations, a finding for each name.
fn labels(site: &KiloSite) -> Vec<Finding> {
    let granularity = site.member.cluster.granularity;
    let matters = |key: &&str| match *key {
        annotation::LOCATION => {
            granularity != Granularity::Full && site.member.entry.topology_label != **key
        }
        annotation::LEADER => granularity == Granularity::Location,
        _ => true,
    };
    let labelled = |key: &str| -> Vec<SpellingCase> {
        let nodes = site.nodes().map(|it| it.0);
        nodes
            .filter(|node| node.labels.contains_key(key) && !node.annotations.contains_key(key))
            .map(|node| (node, site.place(node).key("labels").key(key)))
            .collect()
    };
    let keys = annotation::BY_PEOPLE.into_iter().filter(matters);
    keys.filter_map(|key| {
        let cases = labelled(key);
        let message =
            format!("label {key} has no effect: Kilo reads only the annotation of this name");
        let mut finding = counted(&ANNOTATION_AS_LABEL, site, &cases, &message)?;
        let (node, _) = cases.first()?;
        finding.help = Some(run(&moved(node, key)));
        Some(finding)
    })
    .collect()
}

/// Returns the commands that make an annotation of a label.
fn moved(node: &Node, key: &str) -> String {
    let is_safe = |text: &&String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        text.bytes().all(is_plain)
    };
    let value = node
        .labels
        .get(key)
        .filter(is_safe)
        .map_or("VALUE", String::as_str);
    let annotate = annotate(node, &format!("{key}={value}"));
    let unlabel = annotate
        .replace(" annotate ", " label ")
        .replace(&format!(" --overwrite {key}={value}"), &format!(" {key}-"));
    format!("{annotate} && {unlabel}")
}

/// Finds annotations with Kilo's prefix that Kilo does not know, a finding for each name.
fn unknown(site: &KiloSite) -> Vec<Finding> {
    let known = || {
        annotation::BY_PEOPLE
            .into_iter()
            .chain(annotation::BY_AGENT)
    };
    let mut cases: BTreeMap<&str, Vec<SpellingCase>> = BTreeMap::new();
    for (node, _) in site.nodes() {
        let keys = node.annotations.keys().map(String::as_str);
        for key in keys.filter(|key| !known().any(|it| it == *key)) {
            let place = site.annotation(node, key).named();
            cases.entry(key).or_default().push((node, place));
        }
    }
    let found = cases.into_iter().filter_map(|(key, cases)| {
        let message = format!("unknown annotation {}", Quoted(key));
        let mut finding = counted(&UNKNOWN_ANNOTATION, site, &cases, &message)?;
        let name = key.strip_prefix(annotation::PREFIX)?;
        let names = known().filter_map(|it| it.strip_prefix(annotation::PREFIX));
        match nearest(name, names) {
            Some(meant) => {
                finding.help = Some(format!("did you mean `{}{meant}`?", annotation::PREFIX));
            }
            // A newer Kilo may read it.
            None => finding.severity = Severity::Notice,
        }
        Some(finding)
    });
    found.collect()
}

/// Returns one finding about all nodes for which the same holds.
fn counted(
    rule: &'static crate::rules::Rule,
    site: &KiloSite,
    cases: &[SpellingCase],
    message: &str,
) -> Option<Finding> {
    let (node, place) = cases.first()?;
    let cluster = &site.member.entry.name;
    let finding = if cases.len() == 1 {
        Finding::on_node(rule, cluster, &node.name, message.to_owned())
    } else {
        let names = cases.iter().map(|it| Quoted(&it.0.name).to_string());
        let message = format!("{message} (on {} nodes: {})", cases.len(), listed(names));
        Finding::on_cluster(rule, cluster, message)
    };
    Some(finding.at(place.clone(), ""))
}

/// Finds locations that differ only in case, white space, `-` and `_`.
fn similar_locations(site: &KiloSite) -> Vec<Finding> {
    if site.member.cluster.granularity == Granularity::Full {
        return Vec::new();
    }
    let mut alike: BTreeMap<String, BTreeMap<&str, Vec<&Node>>> = BTreeMap::new();
    for (node, kilo) in site.lively().filter(|(_, kilo)| !kilo.location.is_empty()) {
        let spellings = alike.entry(folded(&kilo.location)).or_default();
        let nodes = spellings.entry(&kilo.location).or_default();
        nodes.push(node);
    }
    let alike = alike.into_values().filter(|spellings| 1 < spellings.len());
    let found = alike.filter_map(|spellings| {
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
        let rare = spellings.iter().min_by_key(|(_, nodes)| nodes.len())?;
        let node = rare.1.first()?;
        let mut finding = Finding::on_cluster(&SIMILAR_LOCATIONS, &site.member.entry.name, message)
            .at(location_place(site, node), "");
        finding.labels.extend(other_label(site, &spellings, rare.0));
        Some(finding.help("use the same spelling for the location of all these nodes"))
    });
    found.collect()
}

/// Returns where another spelling stands.
fn other_label(
    site: &KiloSite,
    spellings: &BTreeMap<&str, Vec<&Node>>,
    rare: &str,
) -> Option<Label> {
    let (_, nodes) = spellings.iter().find(|(location, _)| **location != rare)?;
    Some(Label {
        place: location_place(site, nodes.first()?),
        text: "another spelling".to_owned(),
    })
}

/// Returns where the snapshot has the location of a node.
fn location_place(site: &KiloSite, node: &Node) -> Place {
    if annotated(node, annotation::LOCATION).is_some() {
        return site.annotation(node, annotation::LOCATION);
    }
    let label = &site.member.entry.topology_label;
    site.place(node).key("labels").key(label)
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
            super::super::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn labels_that_should_be_annotations_are_found() {
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/location=x", "label:kilo.squat.ai/location=y"), @"
        warning[annotation-as-label] east: label kilo.squat.ai/location has no effect: Kilo reads only the annotation of this name (on 2 nodes: `a`, `b`)
          east.json#/nodes/0/labels/kilo.squat.ai~1location 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location=x && kubectl label node a kilo.squat.ai/location-`
        ");
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/location=x", "location=y"), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/location has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1location 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/location=x && kubectl label node a kilo.squat.ai/location-`
        ");
        insta::assert_snapshot!(report_on("", "full", "label:kilo.squat.ai/persistent-keepalive=2;5", ""), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/persistent-keepalive has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1persistent-keepalive 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/persistent-keepalive=VALUE && kubectl label node a kilo.squat.ai/persistent-keepalive-`
        ");
        insta::assert_snapshot!(report_on("", "location", "label:kilo.squat.ai/leader=", ""), @"
        warning[annotation-as-label] east/a: label kilo.squat.ai/leader has no effect: Kilo reads only the annotation of this name
          east.json#/nodes/0/labels/kilo.squat.ai~1leader 
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/leader= && kubectl label node a kilo.squat.ai/leader-`
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
