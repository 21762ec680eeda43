//! Words for the access to clusters with the Secrets that their meshes name for the operator.

use std::collections::BTreeSet;

use super::{Finding, Rule, bare};
use crate::analysis::access::{
    AccessProblem, AccessProblemKind, EntryAccess, SecretLocation, problems,
};
use crate::mesh::{Mesh, SecretKeyRef};
use crate::name::ClusterName;
use crate::place::Place;

rules! {
    "access" about Plan;
    MISSING_ACCESS = "missing-access" Notice;
    UNUSED_SECRET = "unused-secret" Notice;
    INVALID_SECRET = "invalid-secret" Warning;
    MISSING_NAMESPACE = "missing-namespace" Warning;
    CONTRADICTING_SECRETS = "contradicting-secrets" Warning;
    SHARED_SECRET = "shared-secret" Warning;
    SCATTERED_LOCAL_CLUSTERS = "scattered-local-clusters" Warning;
}

/// Returns findings about it, except for clusters whose access the config sets.
pub(super) fn findings(meshes: &[Mesh], configured: &BTreeSet<&ClusterName>) -> Vec<Finding> {
    let problems = problems(meshes, configured);
    problems.iter().map(finding).collect()
}

fn finding(problem: &AccessProblem) -> Finding {
    let access = &problem.access;
    match problem.kind {
        AccessProblemKind::Missing => missing(access),
        AccessProblemKind::Unused => unused(access),
        AccessProblemKind::NoNamespace(secret) => without_namespace(access, secret),
        AccessProblemKind::Invalid { secret, problem } => {
            let message = format!(
                "invalid Secret reference: {problem} (name `{}`, key `{}`)",
                bare(&secret.name),
                bare(&secret.key)
            );
            on_secret(access, &INVALID_SECRET, message).help(
                "write the name of a Secret and one of its keys as `kubectl describe secret` prints them",
            )
        }
        AccessProblemKind::Contradicting {
            earlier,
            there,
            here,
        } => {
            let message = format!(
                "meshes {} and {} name different Secrets for its kubeconfig: {} and {}",
                earlier.mesh.name,
                access.mesh.name,
                secret_of(there),
                secret_of(here)
            );
            on_secret(access, &CONTRADICTING_SECRETS, message)
                .at(secret_place(&earlier), "another one here")
        }
        AccessProblemKind::Shared { earlier, secret } => {
            let message = format!(
                "uses the same kubeconfig as {}: {}",
                earlier.cluster(),
                secret_of(secret)
            );
            on_secret(access, &SHARED_SECRET, message)
                .at(secret_place(&earlier), "the same here")
                .help("give each cluster its own Secret, or remove one of the two names")
        }
        AccessProblemKind::Scattered(first) => scattered(access, &first),
    }
}

fn missing(access: &EntryAccess) -> Finding {
    let message = "has no `local` and no `kubeconfigSecretRef`, unlike other clusters of its mesh";
    Finding::on_cluster(&MISSING_ACCESS, access.cluster(), message.to_owned())
        .at(access.entry.place.key("name"), "")
        .help(format!(
            "if the context is not named `{}`, set it in the config under `clusters`",
            access.cluster()
        ))
}

fn unused(access: &EntryAccess) -> Finding {
    let message = "`kubeconfigSecretRef` is not used because the cluster is `local`".to_owned();
    let place = access.entry.place.key("local");
    on_secret(access, &UNUSED_SECRET, message).at(place, "local here")
}

fn without_namespace(access: &EntryAccess, secret: &SecretKeyRef) -> Finding {
    let message = format!(
        "the namespace of Secret {} is unknown: mesh {} has no `metadata.namespace`",
        bare(&secret.name),
        access.mesh.name
    );
    on_secret(access, &MISSING_NAMESPACE, message)
        .at(access.mesh.place.key("metadata"), "without a namespace")
        .help("set `metadata.namespace` to the namespace of the ClusterMesh object in the cluster")
}

fn scattered(access: &EntryAccess, first: &EntryAccess) -> Finding {
    let message = format!(
        "is `local` in mesh {}, but {} is `local` in mesh {}: --secrets-from reads only one cluster",
        access.mesh.name,
        first.cluster(),
        first.mesh.name
    );
    Finding::on_cluster(&SCATTERED_LOCAL_CLUSTERS, access.cluster(), message)
        .at(access.entry.place.key("local"), "")
        .at(first.entry.place.key("local"), "the other")
        .help("set the contexts of these clusters in the config under `clusters`")
}

/// Returns a finding about the Secret of an entry.
fn on_secret(access: &EntryAccess, rule: &'static Rule, message: String) -> Finding {
    Finding::on_cluster(rule, access.cluster(), message).at(secret_place(access), "")
}

fn secret_place(access: &EntryAccess) -> Place {
    access.entry.place.key("kubeconfigSecretRef")
}

fn secret_of(location: SecretLocation) -> String {
    let SecretLocation { namespace, secret } = location;
    let name = bare(&secret.name);
    let key = bare(&secret.key);
    match namespace {
        Some(namespace) => format!("{}/{name} ({key})", bare(namespace)),
        None => format!("{name} ({key})"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::document::Source;

    /// Returns the rules of the findings about meshes, each with its entries; `cfg` is configured.
    fn rules(meshes: &[(&str, &[&str])]) -> Vec<String> {
        let mut text = String::new();
        for (number, (metadata, entries)) in meshes.iter().enumerate() {
            let head = "---\napiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh";
            let _ = write!(
                text,
                "{head}\nmetadata: {{ {metadata} }}\nspec:\n  clusters:\n"
            );
            for (index, entry) in entries.iter().enumerate() {
                let range = format!("10.{}.0.0/16", 16 * number + index);
                let _ = writeln!(text, "    - {{ {entry}, allowedNetworks: [{range}] }}");
            }
        }
        let reading = crate::mesh::read(&[Source::parse("mesh.yaml", text).unwrap()]);
        let meshes: Vec<Mesh> = reading.meshes.into_iter().chain(reading.salvaged).collect();
        let configured: ClusterName = "cfg".parse().unwrap();
        let findings = findings(&meshes, &BTreeSet::from([&configured]));
        let findings = findings.iter().map(|it| {
            let cluster = it.cluster.as_deref().unwrap();
            format!("{cluster}: {}", it.rule.name())
        });
        findings.collect()
    }

    const EAST: &str = "name: east, kubeconfigSecretRef: { name: east, key: value }";
    const HOME: &str = "name: home, local: true";

    #[test]
    fn a_mesh_that_says_nothing_was_never_the_operator_s() {
        assert_eq!(rules(&[("name: m", &["name: a", "name: b"])]).len(), 0);
    }

    #[test]
    fn what_the_operator_could_reach_is_fine() {
        assert_eq!(
            rules(&[("name: m, namespace: kilo", &[HOME, EAST])]).len(),
            0
        );
        let findings = rules(&[
            ("name: m, namespace: kilo", &[HOME, EAST]),
            ("name: other, namespace: kilo", &[HOME, EAST]),
        ]);
        assert_eq!(findings.len(), 0, "{findings:?}");
    }

    #[test]
    fn what_it_could_not_is_reported() {
        let findings = rules(&[("name: m", &[HOME, EAST, "name: west", "name: cfg"])]);
        assert_eq!(
            findings,
            ["east: missing-namespace", "west: missing-access"]
        );
        let both = "name: home, local: true, kubeconfigSecretRef: { name: h, key: value }";
        let wrong = "name: east, kubeconfigSecretRef: { name: ../east, key: value }";
        let findings = rules(&[("name: m, namespace: kilo", &[both, wrong])]);
        assert_eq!(findings, ["home: unused-secret", "east: invalid-secret"]);
    }

    #[test]
    fn meshes_that_disagree_are_reported() {
        let other = "name: east, kubeconfigSecretRef: { name: other, key: value }";
        let west = "name: west, kubeconfigSecretRef: { name: other, key: value }";
        let away = "name: away, local: true";
        let findings = rules(&[
            ("name: m, namespace: kilo", &[HOME, EAST]),
            ("name: other, namespace: kilo", &[away, other, west]),
        ]);
        let expected = [
            "east: contradicting-secrets",
            "west: shared-secret",
            "away: scattered-local-clusters",
        ];
        assert_eq!(findings, expected);
    }
}
