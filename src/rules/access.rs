//! Could `snapshot` reach the clusters with the Secrets that their meshes name for the operator?

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Rule, bare};
use crate::diagnostic::Label;
use crate::mesh::{Entry, Mesh, SecretKeyRef};
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

/// An entry of a mesh, for the operator's access to its cluster.
#[derive(Clone, Copy)]
struct EntryAccess<'a> {
    mesh: &'a Mesh,
    entry: &'a Entry,
}

/// The namespace of a kubeconfig's Secret, and the reference to it.
type AccessLocation<'a> = (Option<&'a str>, &'a SecretKeyRef);

/// Returns findings about it, except for clusters whose access the config sets.
pub(super) fn findings(meshes: &[Mesh], configured: &BTreeSet<&ClusterName>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut accesses = Vec::new();
    for mesh in meshes {
        let entries = mesh.entries.iter().map(|entry| EntryAccess { mesh, entry });
        let own: Vec<EntryAccess> = entries
            .filter(|access| !configured.contains(access.cluster()))
            .collect();
        // A mesh without any of these fields was never used by the operator.
        if own.iter().any(EntryAccess::says_something) {
            findings.extend(own.iter().flat_map(EntryAccess::findings));
            accesses.extend(own);
        }
    }
    findings.extend(contradictions(&accesses));
    findings.extend(shared(&accesses));
    findings.extend(scattered(&accesses));
    findings
}

impl<'a> EntryAccess<'a> {
    fn cluster(&self) -> &'a ClusterName {
        &self.entry.name
    }

    fn says_something(&self) -> bool {
        self.entry.local || self.entry.kubeconfig.is_some()
    }

    fn location(&self) -> Option<AccessLocation<'a>> {
        let secret = self.entry.kubeconfig.as_ref()?;
        Some((self.mesh.namespace.as_deref(), secret))
    }

    fn secret_place(&self) -> Place {
        self.entry.place.key("kubeconfigSecretRef")
    }

    /// Returns the findings about this one.
    fn findings(&self) -> Vec<Finding> {
        let Some(secret) = &self.entry.kubeconfig else {
            return Vec::from_iter((!self.entry.local).then(|| self.missing()));
        };
        if self.entry.local {
            return vec![self.unused()];
        }
        match &self.mesh.namespace {
            None => vec![self.without_namespace(secret)],
            Some(namespace) => {
                let problem = secret.problem(namespace);
                Vec::from_iter(problem.map(|problem| self.invalid(secret, problem)))
            }
        }
    }

    fn missing(&self) -> Finding {
        let message = "has no `local` and no `kubeconfigSecretRef`, unlike other clusters of its \
            mesh";
        let place = self.entry.place.key("name");
        let mut finding = self.finding(&MISSING_ACCESS, message.to_owned(), place);
        finding.help = Some(format!(
            "set the cluster's context in the config under `clusters`, unless it is named `{}`",
            self.cluster()
        ));
        finding
    }

    fn unused(&self) -> Finding {
        let message = "`kubeconfigSecretRef` is not used because the cluster is `local`".to_owned();
        let mut finding = self.finding(&UNUSED_SECRET, message, self.secret_place());
        let place = self.entry.place.key("local");
        finding.labels.push(label(place, "local here"));
        finding
    }

    fn without_namespace(&self, secret: &SecretKeyRef) -> Finding {
        let message = format!(
            "the namespace of Secret {} is unknown: mesh {} has no `metadata.namespace`",
            bare(&secret.name),
            self.mesh.name
        );
        let mut finding = self.finding(&MISSING_NAMESPACE, message, self.secret_place());
        let mesh = self.mesh.place.key("metadata");
        finding.labels.push(label(mesh, "without a namespace"));
        finding.help = Some(
            "set `metadata.namespace` to the namespace of the ClusterMesh object \
            in the cluster"
                .to_owned(),
        );
        finding
    }

    fn invalid(&self, secret: &SecretKeyRef, problem: &str) -> Finding {
        let message = format!(
            "invalid Secret reference {}, key {}: {problem}",
            bare(&secret.name),
            bare(&secret.key)
        );
        self.finding(&INVALID_SECRET, message, self.secret_place())
    }

    fn finding(&self, rule: &'static Rule, message: String, place: Place) -> Finding {
        let mut finding = Finding::on_cluster(rule, self.cluster(), message);
        finding.labels.push(label(place, ""));
        finding
    }
}

/// Returns where two meshes keep the kubeconfig of one cluster in different places.
fn contradictions(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut first: BTreeMap<&ClusterName, (&EntryAccess, AccessLocation)> = BTreeMap::new();
    let mut findings = Vec::new();
    for access in accesses {
        let Some(location) = access.location() else {
            continue;
        };
        let (earlier, known) = first.entry(access.cluster()).or_insert((access, location));
        if *known == location {
            continue;
        }
        let message = format!(
            "meshes {} and {} name different Secrets for its kubeconfig: {} and {}",
            earlier.mesh.name,
            access.mesh.name,
            secret_of(*known),
            secret_of(location)
        );
        let mut finding = access.finding(&CONTRADICTING_SECRETS, message, access.secret_place());
        let place = earlier.secret_place();
        finding.labels.push(label(place, "another one here"));
        findings.push(finding);
    }
    findings
}

/// Returns where two clusters have one kubeconfig, so that they are one cluster, or one is wrong.
fn shared(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut first: BTreeMap<AccessLocation, &EntryAccess> = BTreeMap::new();
    let mut findings = Vec::new();
    for access in accesses {
        let Some(location) = access.location() else {
            continue;
        };
        let earlier = *first.entry(location).or_insert(access);
        if earlier.cluster() == access.cluster() {
            continue;
        }
        let message = format!(
            "uses the same kubeconfig as {}: {}",
            earlier.cluster(),
            secret_of(location)
        );
        let mut finding = access.finding(&SHARED_SECRET, message, access.secret_place());
        let place = earlier.secret_place();
        finding.labels.push(label(place, "the same here"));
        finding.help =
            Some("give each cluster its own Secret, or remove one of the two names".to_owned());
        findings.push(finding);
    }
    findings
}

/// Returns where different clusters are local, which is where the operator runs.
fn scattered(accesses: &[EntryAccess]) -> Vec<Finding> {
    let mut local = accesses.iter().filter(|access| access.entry.local);
    let Some(first) = local.next() else {
        return Vec::new();
    };
    let mut seen = BTreeSet::from([first.cluster()]);
    let others = local.filter(|access| seen.insert(access.cluster()));
    let findings = others.map(|access| {
        let message = format!(
            "is `local` in mesh {}, but {} is `local` in mesh {}: --secrets-from reads only one \
             cluster",
            access.mesh.name,
            first.cluster(),
            first.mesh.name
        );
        let place = access.entry.place.key("local");
        let mut finding = access.finding(&SCATTERED_LOCAL_CLUSTERS, message, place);
        let place = first.entry.place.key("local");
        finding.labels.push(label(place, "the other"));
        finding.help =
            Some("set the contexts of these clusters in the config under `clusters`".to_owned());
        finding
    });
    findings.collect()
}

fn secret_of((namespace, secret): AccessLocation) -> String {
    let name = bare(&secret.name);
    let key = bare(&secret.key);
    match namespace {
        Some(namespace) => format!("{}/{name} ({key})", bare(namespace)),
        None => format!("{name} ({key})"),
    }
}

fn label(place: Place, text: &str) -> Label {
    Label {
        place,
        text: text.to_owned(),
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
            format!("{cluster}: {}", it.rule.name)
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
