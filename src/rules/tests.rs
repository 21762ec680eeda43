//! A stage for tests: clusters as text in, findings as text out.

use std::fmt::Write as _;

use super::Finding;
use crate::fleet::Fleet;
use crate::testing::{meshes, snapshots};

/// Returns what a question finds among clusters of one mesh, each with its name, more fields of its
/// entry and its nodes, a line each. `east`, `west` and `north` declare ranges by themselves, unless
/// their fields do.
pub(super) fn report(
    question: fn(&Fleet) -> Vec<Finding>,
    clusters: &[(&str, &str, &str)],
) -> String {
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: m }\n\
                    spec:\n  clusters:\n"
        .to_owned();
    for (name, fields, _) in clusters {
        let number = 1 + ["east", "west", "north"].iter().position(|it| it == name).unwrap();
        let ranges = format!("podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.10{number}.0.0/24");
        let fields = match fields {
            &"" => ranges,
            fields if fields.contains("CIDR") || fields.contains("allowed") => (*fields).to_owned(),
            fields => format!("{ranges}, {fields}"),
        };
        let _ = writeln!(mesh, "  - {{ name: {name}, {fields} }}");
    }
    let meshes = meshes(&mesh);
    let snapshots = snapshots(clusters.iter().map(|(name, _, nodes)| (*name, *nodes)));
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let mut text = String::new();
    for finding in question(&fleet) {
        let subject = finding.subject().unwrap_or_default();
        let _ = writeln!(
            text,
            "{}[{}] {subject}: {}",
            finding.severity,
            finding.rule.name(),
            finding.message
        );
        for label in &finding.labels {
            let _ =
                writeln!(text, "  {}#{} {}", label.place.source, label.place.pointer, label.text);
        }
        if let Some(help) = &finding.help {
            let _ = writeln!(text, "  help: {help}");
        }
    }
    text
}
