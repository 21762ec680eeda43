//! Words for the access to clusters with the Secrets that their meshes name for the operator.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Rule, bare};
use crate::mesh::{Entry, Mesh, SecretKeyRef};
use crate::name::ClusterName;
use crate::place::Place;

rules! {
    "Access to clusters as declared in meshes" in "access" about Plan;
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
    let mut findings = Vec::new();
    let mut accesses = Vec::new();
    for mesh in meshes {
        let own = mesh.entries.iter().map(|entry| EntryAccess { mesh, entry });
        let own = own.filter(|it| !configured.contains(it.cluster()));
        let own: Vec<EntryAccess> = own.collect();
        // A mesh without any of these fields was never used by the operator.
        if own.iter().any(EntryAccess::is_declared) {
            findings.extend(own.iter().filter_map(EntryAccess::mistake));
            accesses.extend(own);
        }
    }
    findings.extend(contradicting(&accesses));
    findings.extend(shared(&accesses));
    findings.extend(scattered(&accesses));
    findings
}

/// An entry of a mesh, for the operator's access to its cluster.
#[derive(Clone, Copy)]
struct EntryAccess<'a> {
    mesh: &'a Mesh,
    entry: &'a Entry,
}

/// The location of a cluster's kubeconfig.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct SecretLocation<'a> {
    /// The namespace, if the mesh has one.
    namespace: Option<&'a str>,
    /// The Secret, and the key in it.
    secret: &'a SecretKeyRef,
}

impl<'a> EntryAccess<'a> {
    fn cluster(&self) -> &'a ClusterName {
        &self.entry.name
    }

    fn is_declared(&self) -> bool {
        self.entry.local || self.entry.kubeconfig.is_some()
    }

    fn location(&self) -> Option<SecretLocation<'a>> {
        Some(SecretLocation {
            namespace: self.mesh.namespace.as_deref(),
            secret: self.entry.kubeconfig.as_ref()?,
        })
    }

    fn secret_place(&self) -> Place {
        self.entry.place.key("kubeconfigSecretRef")
    }

    /// Returns a finding about the Secret.
    fn on_secret(&self, rule: &'static Rule, message: String) -> Finding {
        Finding::on_cluster(rule, self.cluster(), message).at(self.secret_place(), "")
    }

    /// Reports what is wrong with the entry by itself.
    fn mistake(&self) -> Option<Finding> {
        match (&self.entry.kubeconfig, &self.mesh.namespace) {
            (None, _) if self.entry.local => None,
            (None, _) => Some(self.missing()),
            (Some(_), _) if self.entry.local => {
                let message = "`kubeconfigSecretRef` is not used because the cluster is `local`";
                let place = self.entry.place.key("local");
                let finding = self.on_secret(&UNUSED_SECRET, message.to_owned());
                Some(finding.at(place, "local here"))
            }
            (Some(secret), None) => Some(self.without_namespace(secret)),
            (Some(secret), Some(namespace)) => {
                let problem = secret.problem(namespace)?;
                let (name, key) = (bare(&secret.name), bare(&secret.key));
                let message =
                    format!("invalid Secret reference: {problem} (name `{name}`, key `{key}`)");
                let finding = self.on_secret(&INVALID_SECRET, message);
                Some(finding.help(
                    "write the name of a Secret and one of its keys as `kubectl describe secret` prints them",
                ))
            }
        }
    }

    fn missing(&self) -> Finding {
        let message =
            "has no `local` and no `kubeconfigSecretRef`, unlike other clusters of its mesh";
        Finding::on_cluster(&MISSING_ACCESS, self.cluster(), message.to_owned())
            .at(self.entry.place.key("name"), "")
            .help(format!(
                "clustermesh reads it with the context `{0}`; if that has another name, write `clusters: {{ {0}: {{ context: NAME }} }}` in the config",
                self.cluster()
            ))
    }

    fn without_namespace(&self, secret: &SecretKeyRef) -> Finding {
        let message = format!(
            "the namespace of Secret {} is unknown: mesh {} has no `metadata.namespace`",
            bare(&secret.name),
            self.mesh.name
        );
        self.on_secret(&MISSING_NAMESPACE, message)
            .at(self.mesh.place.key("metadata"), "without a namespace")
            .help("set `metadata.namespace` to the namespace of the ClusterMesh object in the cluster")
    }
}

/// Reports clusters for which meshes name different Secrets.
fn contradicting(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut first: BTreeMap<&ClusterName, (&EntryAccess, SecretLocation)> = BTreeMap::new();
    let located = accesses.iter().filter_map(|it| Some((it, it.location()?)));
    let found = located.filter_map(|(access, here)| {
        let (earlier, there) = *first.entry(access.cluster()).or_insert((access, here));
        let message = format!(
            "meshes {} and {} name different Secrets for its kubeconfig: {} and {}",
            earlier.mesh.name,
            access.mesh.name,
            secret_of(there),
            secret_of(here)
        );
        let finding = || access.on_secret(&CONTRADICTING_SECRETS, message);
        (there != here).then(|| finding().at(earlier.secret_place(), "another one here"))
    });
    found.collect()
}

/// Reports clusters with the same Secret: they are one cluster, or one of them is wrong.
fn shared(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut first: BTreeMap<SecretLocation, &EntryAccess> = BTreeMap::new();
    let located = accesses.iter().filter_map(|it| Some((it, it.location()?)));
    let found = located.filter_map(|(access, secret)| {
        let earlier = *first.entry(secret).or_insert(access);
        let message =
            format!("uses the same kubeconfig as {}: {}", earlier.cluster(), secret_of(secret));
        let finding = || access.on_secret(&SHARED_SECRET, message);
        (earlier.cluster() != access.cluster()).then(|| {
            finding()
                .at(earlier.secret_place(), "the same here")
                .help("give each cluster its own Secret, or remove one of the two names")
        })
    });
    found.collect()
}

/// Reports further local clusters: the operator runs in one only.
fn scattered(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut local = accesses.iter().filter(|access| access.entry.local);
    let Some(first) = local.next() else {
        return Vec::new();
    };
    let mut seen = BTreeSet::from([first.cluster()]);
    let found = local.filter(|access| seen.insert(access.cluster())).map(|access| {
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
    });
    found.collect()
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
            let _ = write!(text, "{head}\nmetadata: {{ {metadata} }}\nspec:\n  clusters:\n");
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
        assert_eq!(rules(&[("name: m, namespace: kilo", &[HOME, EAST])]).len(), 0);
        let findings = rules(&[
            ("name: m, namespace: kilo", &[HOME, EAST]),
            ("name: other, namespace: kilo", &[HOME, EAST]),
        ]);
        assert_eq!(findings.len(), 0, "{findings:?}");
    }

    #[test]
    fn what_it_could_not_is_reported() {
        let findings = rules(&[("name: m", &[HOME, EAST, "name: west", "name: cfg"])]);
        assert_eq!(findings, ["east: missing-namespace", "west: missing-access"]);
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
