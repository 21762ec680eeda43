//! Annotations that Kilo ignores or reads with another meaning.

use super::inspected_cluster::InspectedCluster;
use super::{IGNORED_ANNOTATION, MISREAD_LEADER, annotated};
use crate::diagnostic::{MetadataChange, Quoted, escaped};
use crate::granularity::Granularity;
use crate::kilo::node::{annotation, endpoint};
use crate::net::Interface;
use crate::rules::Finding;
use crate::rules::command::{blank, resolved};
use crate::snapshot::Node;

/// Returns findings about annotations that people, or an unknown agent, wrote for Kilo.
pub(super) fn findings(inspected: &InspectedCluster) -> Vec<Finding> {
    let mut findings = Vec::new();
    let cluster = &inspected.member.entry.name;
    for (node, _) in inspected.nodes() {
        for (key, why) in ignored(node) {
            let text = Quoted(annotated(node, key).unwrap_or_default());
            let message = format!("annotation {key} is {text}, which Kilo ignores: {why}");
            let place = inspected.annotation(node, key);
            let finding = Finding::on_node(&IGNORED_ANNOTATION, cluster, &node.name, message);
            let changes = readable(key).into_iter();
            let finding = changes
                .fold(finding, |finding, it| finding.resolved_by(&it, cluster, [&*node.name]));
            findings.push(finding.at(place, ""));
        }
        findings.extend(misread_leader(inspected, node));
    }
    findings
}

/// Returns why Kilo cannot read a text, if so.
type AnnotationCheck = fn(&str) -> Option<String>;

/// Returns the annotations that Kilo cannot read, with the reason.
fn ignored(node: &Node) -> Vec<(&'static str, String)> {
    let checks: [(&str, AnnotationCheck); 4] = [
        (annotation::FORCE_ENDPOINT, |text| {
            let error = endpoint(text).err()?;
            Some(escaped(&error.to_string(), 200))
        }),
        (annotation::FORCE_INTERNAL_IP, |text| {
            let is_read = text == "-" || text.parse::<Interface>().is_ok();
            let wanted = "an address with a prefix length, or `-`";
            (!is_read).then(|| format!("expected {wanted}"))
        }),
        (annotation::PERSISTENT_KEEPALIVE, |text| {
            let seconds: Option<i64> = text.parse().ok();
            let is_read = seconds.is_some_and(|it| 0 <= it);
            (!is_read).then(|| "expected a whole number of seconds".to_owned())
        }),
        (annotation::GRANULARITY, |text| {
            let is_read = Granularity::from_annotation(text).is_some();
            (!is_read).then(|| "expected `location`, `full` or `cross`".to_owned())
        }),
    ];
    let found = checks.into_iter().filter_map(|(key, check)| {
        let text = annotated(node, key).filter(|text| !text.is_empty())?;
        Some((key, check(text)?))
    });
    found.collect()
}

/// Returns the change after which Kilo can read an annotation, unless its agent writes it.
fn readable(key: &'static str) -> Option<MetadataChange> {
    Some(match key {
        annotation::FORCE_ENDPOINT | annotation::FORCE_INTERNAL_IP => blank(key),
        annotation::PERSISTENT_KEEPALIVE => MetadataChange::annotation(key, "25"),
        _ => return None,
    })
}

/// Kilo asks only whether the annotation is there.
fn misread_leader(inspected: &InspectedCluster, node: &Node) -> Option<Finding> {
    const DENIALS: [&str; 7] = ["false", "no", "off", "0", "f", "n", "never"];
    let text = annotated(node, annotation::LEADER)?;
    let is_denied = DENIALS.iter().any(|denial| denial.eq_ignore_ascii_case(text));
    if !is_denied || inspected.granularity() != Granularity::Location {
        return None;
    }
    let key = annotation::LEADER;
    let message = format!(
        "annotation {key} is {}, but any value makes the node a candidate for leader",
        Quoted(text)
    );
    let place = inspected.annotation(node, key);
    let cluster = &inspected.member.entry.name;
    let finding = Finding::on_node(&MISREAD_LEADER, cluster, &node.name, message).at(place, "");
    let change = MetadataChange::removal(key);
    Some(resolved(finding, &change, cluster, node))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    fn report_on(granularity: &str, says: &str) -> String {
        let node = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A endpoint=198.18.0.1:51820 external=198.18.0.1 internal-ip=192.168.0.1/24";
        let nodes = format!("{node} granularity={granularity} {says}");
        let fields = "endpointFrom: [ExternalIP]";
        report(
            super::super::tests::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn what_kilo_cannot_read_is_reported() {
        insta::assert_snapshot!(report_on("full", "force-endpoint=WG.example.com:51820 force-internal-ip=10.0.0.1"), @"
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/force-endpoint is `WG.example.com:51820`, which Kilo ignores: `WG.example.com` is neither an IP address nor a lowercase DNS name
          east.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint 
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/force-internal-ip is `10.0.0.1`, which Kilo ignores: expected an address with a prefix length, or `-`
          east.json#/nodes/0/annotations/kilo.squat.ai~1force-internal-ip
        ");
        insta::assert_snapshot!(report_on("full", "force-endpoint=198.18.0.1 persistent-keepalive=25s"), @"
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/force-endpoint is `198.18.0.1`, which Kilo ignores: the port is missing, as in `203.0.113.1:51820`
          east.json#/nodes/0/annotations/kilo.squat.ai~1force-endpoint 
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/persistent-keepalive is `25s`, which Kilo ignores: expected a whole number of seconds
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive
        ");
        insta::assert_snapshot!(report_on("full", "persistent-keepalive=-1"), @"
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/persistent-keepalive is `-1`, which Kilo ignores: expected a whole number of seconds
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive
        ");
        insta::assert_snapshot!(report_on("regional\u{1b}", ""), @r"
        notice[missing-granularity] east: no node shows Kilo's granularity; `Location` is assumed
          mesh.yaml#/spec/clusters/0/name 
          help: set `granularity` in the mesh to the value of Kilo's `--mesh-granularity`
        warning[ignored-annotation] east/n: annotation kilo.squat.ai/granularity is `regional\u{1b}`, which Kilo ignores: expected `location`, `full` or `cross`
          east.json#/nodes/0/annotations/kilo.squat.ai~1granularity
        ");
    }

    #[test]
    fn quiet_on_what_kilo_reads() {
        assert_eq!(
            report_on("full", "force-endpoint=wg.example.com:51820 force-internal-ip=10.0.0.1/24"),
            ""
        );
        assert_eq!(
            report_on("full", "force-endpoint= force-internal-ip=- persistent-keepalive=0"),
            ""
        );
    }

    #[test]
    fn a_leader_leads_whatever_is_said() {
        insta::assert_snapshot!(report_on("location", "leader=False"), @"
        warning[misread-leader] east/n: annotation kilo.squat.ai/leader is `False`, but any value makes the node a candidate for leader
          east.json#/nodes/0/annotations/kilo.squat.ai~1leader 
          help: run `kubectl annotate node n --overwrite kilo.squat.ai/leader-`, then `clustermesh snapshot east`
        ");
        assert_eq!(report_on("location", "leader=true"), "");
        assert_eq!(report_on("location", "leader="), "");
        assert_eq!(report_on("full", "leader=false"), "", "nobody is elected there");
    }

    #[test]
    fn a_node_that_is_left_out_for_it_is_reported_once() {
        let node = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A endpoint=198.18.0.1:51820 granularity=full force-endpoint=198.18.0.1";
        assert_eq!(
            report(
                super::super::tests::findings,
                &[("east", "", node), ("west", "granularity: Full", "")]
            ),
            ""
        );
    }
}
