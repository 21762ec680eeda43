//! The operator: the fields that its CRD lacks, and the meshes that it may read without them.

use crate::diagnostic::{Finding, Mistakes, mistake};
use crate::document::{TreeNode, TreeValue};
use crate::place::Place;
use crate::text::quoted;

use super::{Entry, Mesh};

/// The fields of `spec` in every version of the operator's CRD.
const SPEC: [&str; 1] = ["clusters"];

/// The fields of an entry in any version of the operator's CRD.
const ENTRY: [&str; 10] = [
    "additionalCIDRs",
    "allowedNetworks",
    "kubeconfigSecretRef",
    "local",
    "name",
    "persistentKeepalive",
    "podCIDRs",
    "serviceCIDR",
    "wireguardCIDR",
    "wireguardPort",
];

/// The annotation of objects that tools keep to themselves. kustomize leaves them out of what it builds.
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

/// The meshes of a run that the API server would store without some of their fields.
#[derive(Default)]
pub(super) struct UnprotectedMeshes {
    findings: Mistakes,
    /// Whether a mesh of the run is one of the operator.
    has_operator: bool,
}

impl UnprotectedMeshes {
    /// Adds a mesh and its document.
    pub(super) fn add(&mut self, mesh: &Mesh, node: &TreeNode) {
        // An object of the API has a namespace, and the operator connects only to clusters with one of these fields.
        let is_declared = |it: &Entry| it.local || it.kubeconfig.is_some();
        self.has_operator |= mesh.namespace.is_some() || mesh.entries.iter().any(is_declared);
        let annotations = node.get("metadata").and_then(|it| it.get("annotations"));
        let local = annotations.and_then(|it| it.get(LOCAL_CONFIG));
        let place = mesh.place.key("metadata");
        let finding = match (annotations, local.map(TreeNode::to_json)) {
            (_, Some(value)) if value == "true" => return,
            (_, Some(_)) => {
                let place = place.key("annotations").key(LOCAL_CONFIG);
                finding(mesh, node, place, "`\"true\"` as the value of the annotation")
            }
            (Some(_), None) => {
                let place = place.key("annotations").named();
                let line = format!("`{LOCAL_CONFIG}: \"true\"` under `metadata.annotations`");
                finding(mesh, node, place, &line)
            }
            (None, None) => {
                let line =
                    format!("`annotations: {{ {LOCAL_CONFIG}: \"true\" }}` under `metadata`");
                finding(mesh, node, place.named(), &line)
            }
        };
        self.findings.extend(finding);
    }

    /// Returns the findings. Without a mesh of the operator there are none: the operator connects only to clusters
    /// that one of its objects declares.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        if self.has_operator { self.findings.into_findings() } else { Vec::new() }
    }
}

/// Returns the finding about a mesh, if it has such fields; `annotation` is the place of the annotation, and `written`
/// what to write there.
fn finding(mesh: &Mesh, node: &TreeNode, annotation: Place, written: &str) -> Option<Finding> {
    let fields = additional(node, &mesh.place);
    let (_, first) = fields.first()?.clone();
    let names = fields.iter().map(|it| it.0);
    let message =
        format!("the operator's CRD lacks fields of mesh `{}`: {}", mesh.name, quoted(names));
    let finding = Finding::new(&mistake::ADDITIONAL_FIELDS, message)
        .at(first.named(), "")
        .at(annotation, "annotate here");
    // Flux and Argo CD may delete an object that kustomize leaves out, and the operator then deletes all Peers.
    Some(finding.help(format!(
        "stop the operator if it runs, then write {written}, so that kustomize leaves the mesh out"
    )))
}

/// Returns the fields of a mesh that the operator's CRD lacks, each with the first place of it.
fn additional<'a>(node: &'a TreeNode, place: &Place) -> Vec<(&'a str, Place)> {
    let mut found = Vec::new();
    let Some(spec) = node.get("spec") else {
        return found;
    };
    let place = place.key("spec");
    add_others(spec, || place.clone(), &SPEC, &mut found);
    let clusters = place.key("clusters");
    if let Some(TreeValue::Sequence(items)) = spec.get("clusters").map(|it| &it.value) {
        for (index, item) in items.iter().enumerate() {
            add_others(item, || clusters.index(index), &ENTRY, &mut found);
        }
    }
    found
}

/// Adds the fields of a value that are neither `known` nor found before.
fn add_others<'a>(
    node: &'a TreeNode,
    place: impl Fn() -> Place,
    known: &[&str],
    found: &mut Vec<(&'a str, Place)>,
) {
    let TreeValue::Mapping(entries) = &node.value else {
        return;
    };
    for name in entries.iter().map(|it| &*it.key.scalar.text) {
        if !known.contains(&name) && found.iter().all(|it| it.0 != name) {
            found.push((name, place().key(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRY, SPEC};
    use crate::mesh::tests::report;

    /// A mesh with these lines of metadata, of `spec`, and fields of `b`.
    fn mesh(metadata: &str, spec: &str, fields: &str) -> String {
        format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata:\n  name: m\n{metadata}spec:\n{spec}  clusters:\n    \
             - {{ name: a, allowedNetworks: [10.0.0.0/16] }}\n    - {{ name: b, allowedNetworks: [10.1.0.0/16]{fields} }}\n"
        )
    }

    const NAMESPACE: &str = "  namespace: kilo\n";
    const HUB: &str = "  topology: { mode: Hub, hubs: [a] }\n";
    const STATE: &str = ", state: Joining, granularity: Full";

    #[test]
    fn fields_that_the_operator_lacks_are_reported_where_it_may_be() {
        insta::assert_snapshot!(report(&mesh(NAMESPACE, HUB, STATE)), @r#"
        notice[additional-fields]: the operator's CRD lacks fields of mesh `m`: `topology`, `state`, `granularity`
          7:3 | topology
          3:1 | metadata | annotate here
          help: stop the operator if it runs, then write `annotations: { config.kubernetes.io/local-config: "true" }` under `metadata`, so that kustomize leaves the mesh out
        "#);
        for mark in [", local: true", ", kubeconfigSecretRef: { name: b, key: k }"] {
            let found = report(&mesh("", HUB, mark));
            assert_eq!(found.matches("[additional-fields]").count(), 1, "{found}");
        }
        // No operator, or nothing but its own fields.
        assert_eq!(report(&mesh("", HUB, STATE)), "");
        assert_eq!(report(&mesh("", HUB, ", local: false")), "");
        let own = ", local: true, wireguardPort: 1, persistentKeepalive: 25";
        assert_eq!(report(&mesh(NAMESPACE, "", own)), "");
    }

    #[test]
    fn one_mesh_of_the_operator_shows_that_it_is_there_for_all() {
        let other = mesh("", HUB, "").replace("10.", "172.").replace("name: m\n", "name: other\n");
        let other = other.replace("{ name: a", "{ name: c").replace("{ name: b", "{ name: d");
        let other =
            other.replace("[a]", "[c]").replace("172.0", "172.20").replace("172.1.", "172.21.");
        let found = report(&format!("{other}---\n{}", mesh(NAMESPACE, "", "")));
        assert_eq!(found.matches("lacks fields of mesh `other`").count(), 1, "{found}");
        assert_eq!(report(&other), "");
    }

    /// Follows the help: writes what is between its first backticks under what is between the others.
    fn follow(text: &str) -> String {
        let found = report(text);
        let help = found.lines().find_map(|it| it.split_once("write `"));
        let (line, under) = help.unwrap().1.split_once("` under `").unwrap();
        let parent = match under.split_once('`').unwrap().0 {
            "metadata" => "metadata:\n",
            "metadata.annotations" => "  annotations:\n",
            other => panic!("{other}"),
        };
        let indent = if parent.starts_with(' ') { "    " } else { "  " };
        text.replace(parent, &format!("{parent}{indent}{line}\n"))
    }

    #[test]
    fn a_mesh_with_the_annotation_of_the_help_is_not_reported() {
        let annotated = format!("{NAMESPACE}  annotations:\n    team: net\n");
        for metadata in [NAMESPACE, &annotated] {
            let text = mesh(metadata, HUB, STATE);
            let followed = follow(&text);
            assert_ne!(text, followed);
            assert_eq!(report(&followed), "", "{followed}");
            // kustomize builds objects with this value, and the API takes no boolean.
            for value in ["\"false\"", "true"] {
                let wrong = report(&followed.replace("\"true\"", value));
                let place = format!(" | {value} | annotate here\n");
                assert!(wrong.contains(&place), "{wrong}");
                let advice = "write `\"true\"` as the value of the annotation";
                assert!(wrong.contains(advice), "{wrong}");
            }
        }
    }

    #[test]
    fn every_field_of_the_operator_is_one_of_the_schema() {
        let schema = crate::mesh::schema().to_value();
        for (kind, known) in [("Spec", &SPEC[..]), ("Cluster", &ENTRY[..])] {
            let fields = schema["$defs"][kind]["properties"].as_object().unwrap();
            assert!(known.iter().all(|it| fields.contains_key(*it)), "{kind}");
            assert!(known.len() < fields.len(), "{kind}");
        }
    }
}
