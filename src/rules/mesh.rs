//! Is what people wrote well formed?
//!
//! The gates have the words; here their codes become rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Finding, Rule, registry};
use crate::diagnostic::{Diagnostic, Label, Quoted, Severity, escaped};
use crate::document::nearest;
use crate::fleet::MissingSnapshot;
use crate::name::ClusterName;
use crate::place::Place;
use crate::snapshot::SnapshotError;
use crate::snapshot::stray::Stray;

rules! {
    "mesh" about Files;
    COLLIDING_NAMES = "colliding-names" Error;
    COMPLEX_KEY = "complex-key" Error;
    CONTRADICTING_FIELDS = "contradicting-fields" Error;
    DEFAULT_ROUTE = "default-route" Error;
    DESCENDING_LIMITS = "descending-limits" Error;
    DUPLICATE_CLUSTER = "duplicate-cluster" Error;
    DUPLICATE_EXPECTATION = "duplicate-expectation" Error;
    DUPLICATE_FIELD = "duplicate-field" Error;
    DUPLICATE_HUB = "duplicate-hub" Warning;
    DUPLICATE_LINK = "duplicate-link" Warning;
    DUPLICATE_MESH = "duplicate-mesh" Error;
    DUPLICATE_SNAPSHOT = "duplicate-snapshot" Warning;
    ENDLESS_ALIAS = "endless-alias" Error;
    FOREIGN_SNAPSHOT = "foreign-snapshot" Warning;
    HOST_BITS = "host-bits" Warning;
    INCONSISTENT_CLUSTER = "inconsistent-cluster" Error;
    INVALID_DATE = "invalid-date" Error;
    INVALID_DOMAIN = "invalid-domain" Error;
    INVALID_LABEL = "invalid-label" Error;
    INVALID_NAME = "invalid-name" Error;
    INVALID_RANGE = "invalid-range" Error;
    INVALID_SELECTOR = "invalid-selector" Error;
    INVALID_SNAPSHOT = "invalid-snapshot" Error;
    LINKED_TWICE = "linked-twice" Error;
    LOWERED_ERROR = "lowered-error" Error;
    MERGE_KEY = "merge-key" Error;
    MISSING_FIELD = "missing-field" Error;
    MISSING_NETWORKS = "missing-networks" Error;
    MISSING_SNAPSHOT = "missing-snapshot" Error;
    MIXED_NETWORKS = "mixed-networks" Error;
    NO_DOCUMENT = "no-document" Error;
    NO_MESH = "no-mesh" Error;
    OUT_OF_BOUNDS = "out-of-bounds" Error;
    OVERLAPPING_RANGES = "overlapping-ranges" Error;
    REPEATED_ANCHOR = "repeated-anchor" Error;
    REPEATED_ENDPOINT_SOURCE = "repeated-endpoint-source" Error;
    SECOND_DOCUMENT = "second-document" Error;
    SELF_LINK = "self-link" Error;
    SEVERAL_LOCAL_CLUSTERS = "several-local-clusters" Error;
    SKIPPED_DOCUMENT = "skipped-document" Notice;
    SYNTAX_ERROR = "syntax-error" Error;
    TOO_LARGE = "too-large" Error;
    TOPOLOGY_MISMATCH = "topology-mismatch" Error;
    UNDECLARED_ANCHOR_RANGE = "undeclared-anchor-range" Error;
    UNEVEN_ANCHORS = "uneven-anchors" Error;
    UNKNOWN_CLUSTER = "unknown-cluster" Error;
    UNKNOWN_FIELD = "unknown-field" Error;
    UNKNOWN_RULE = "unknown-rule" Error;
    UNKNOWN_VALUE = "unknown-value" Error;
    UNLINKED_CLUSTER = "unlinked-cluster" Error;
    UNSUPPORTED_TAG = "unsupported-tag" Error;
    UNUSED_SNAPSHOT = "unused-snapshot" Notice;
    WRONG_LENGTH = "wrong-length" Error;
    WRONG_TYPE = "wrong-type" Error;
}

/// Returns a cluster without a snapshot as a finding; `file` is where it was looked for.
pub fn missing_snapshot(missing: &MissingSnapshot, file: &str) -> Finding {
    let MissingSnapshot { cluster, place } = missing;
    let message = format!("cluster `{cluster}` has no snapshot: there is no `{file}`");
    let help = format!("clustermesh snapshot {cluster}");
    let told = Diagnostic::error(MISSING_SNAPSHOT.name, message)
        .at(place.clone(), "named here")
        .help(help);
    finding(&told)
}

/// Returns a snapshot file that is none as a finding.
pub fn invalid_snapshot(cluster: &ClusterName, place: Place, error: &SnapshotError) -> Finding {
    let message = error.to_string();
    // The place says it better.
    let message = match error {
        SnapshotError::Json(json) => {
            let told = format!(" at line {} column {}", json.line(), json.column());
            message.strip_suffix(&told).unwrap_or(&message).to_owned()
        }
        _ => message,
    };
    let message = format!("not a snapshot: {}", escaped(&message, 400));
    let mut finding = Finding::on_cluster(&INVALID_SNAPSHOT, cluster, message);
    finding.labels.push(Label {
        place,
        text: String::new(),
    });
    finding.help = Some(format!(
        "write it anew with `clustermesh snapshot {cluster}`"
    ));
    finding
}

/// Returns a file among the snapshots that is that of no cluster as a finding; `named` are those that
/// meshes name, and `own` is the file that the cluster in it has already.
pub fn stray(stray: &Stray, file: &Arc<str>, own: &str, named: &BTreeSet<String>) -> Finding {
    let whole = Place::document(file, 0);
    let (rule, message, help) = match stray {
        Stray::Duplicate(cluster) => (
            &DUPLICATE_SNAPSHOT,
            format!(
                "a second snapshot of {}, which nobody reads",
                Quoted(cluster)
            ),
            format!("keep the newer of the two as `{own}`"),
        ),
        Stray::Unnamed(cluster) => (
            &UNUSED_SNAPSHOT,
            format!("a snapshot of {}, which no mesh names", Quoted(cluster)),
            match nearest(cluster, named.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "name the cluster in a mesh, or delete the file".to_owned(),
            },
        ),
        Stray::Foreign => (
            &FOREIGN_SNAPSHOT,
            "among the snapshots, but none itself".to_owned(),
            "move it elsewhere; `clustermesh snapshot CLUSTER --from FILE` makes a snapshot of a \
             node list"
                .to_owned(),
        ),
    };
    let place = match stray {
        Stray::Foreign => whole,
        Stray::Duplicate(_) | Stray::Unnamed(_) => whole.key("cluster"),
    };
    let told = Diagnostic {
        severity: rule.severity,
        ..Diagnostic::warning(rule.name, message)
    };
    finding(&told.at(place, "").help(help))
}

/// Returns that there is no mesh at all in some files as a finding.
pub fn no_mesh(files: &[String]) -> Finding {
    let files: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
    let message = format!(
        "no ClusterMesh in {}, so every Peer would be deleted",
        files.join(", ")
    );
    let help = "if that is meant, render with --allow-empty '*'";
    finding(&Diagnostic::error(NO_MESH.name, message).help(help))
}

/// Returns a mistake as a finding.
pub fn finding(diagnostic: &Diagnostic) -> Finding {
    // A test holds that every code has its rule.
    let rule: &'static Rule = registry::named(diagnostic.code).unwrap_or(&SYNTAX_ERROR);
    let first = diagnostic.labels.first();
    Finding {
        rule,
        severity: diagnostic.severity,
        is_final: diagnostic.severity == Severity::Error,
        cluster: None,
        node: None,
        group: first
            .map(|it| it.place.source.to_string())
            .unwrap_or_default(),
        message: diagnostic.message.clone(),
        labels: diagnostic.labels.clone(),
        help: diagnostic.help.clone(),
    }
}
