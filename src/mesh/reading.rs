//! The reading: which documents are meshes, and which are passed over.

use std::collections::BTreeSet;
use std::mem;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::document::{Form, Source, TreeNode, TreeValue, nearest};
use crate::place::{Place, Pointer};

use super::gate::{self, Outline};
use super::operator::UnprotectedMeshes;
use super::raw::RawMesh;
use super::{ControlKind, MeshReading};

/// The group that our version and Kilo's own resources share.
const GROUP: &str = "kilo.squat.ai/";

/// Returns the form of a `ClusterMesh`.
pub(super) fn form() -> Form<RawMesh> {
    Form::new()
}

/// Returns the meshes of some files, each judged on its own.
pub(super) fn read(sources: &[Source]) -> MeshReading {
    let mut reader = MeshReader {
        form: form(),
        reading: MeshReading::default(),
        mistakes: Mistakes::default(),
        unprotected: UnprotectedMeshes::default(),
    };
    for source in sources {
        for (index, node) in source.documents.iter().enumerate() {
            reader.document(node, &Place::document(&source.name, index));
        }
        let mistakes = mem::take(&mut reader.mistakes).into_findings();
        reader.reading.diagnostics.extend(mistakes.into_iter().map(of_config));
    }
    let unprotected = reader.unprotected.into_findings();
    reader.reading.diagnostics.extend(unprotected);
    reader.reading
}

struct MeshReader {
    form: Form<RawMesh>,
    reading: MeshReading,
    /// The mistakes in the present file.
    mistakes: Mistakes,
    unprotected: UnprotectedMeshes,
}

impl MeshReader {
    fn document(&mut self, node: &TreeNode, place: &Place) {
        if node.is_null() {
            return;
        }
        let kind = node.get("kind").and_then(TreeNode::text);
        match kind {
            Some("ClusterMesh") => self.mesh(node, place),
            Some("List") => self.items(node, place, Self::document),
            // The API leaves out the kind of the items of such a list.
            Some("ClusterMeshList") => self.items(node, place, Self::mesh),
            _ => match ControlKind::of(node) {
                Some(control) => self.reading.controls.push((control, place.clone())),
                None => self.mistakes.push(passed_over(node, place, kind)),
            },
        }
    }

    fn items(&mut self, list: &TreeNode, place: &Place, read: fn(&mut Self, &TreeNode, &Place)) {
        let place = place.key("items");
        match list.get("items") {
            Some(TreeNode { value: TreeValue::Sequence(items), .. }) => {
                for (index, item) in items.iter().enumerate() {
                    read(self, item, &place.index(index));
                }
            }
            Some(items) if !items.is_null() => {
                let finding = Finding::new(&mistake::INVALID_TYPE, "`items` must be a list");
                self.mistakes.push(finding.at(place, ""));
            }
            _ => {}
        }
    }

    fn mesh(&mut self, node: &TreeNode, place: &Place) {
        let (resource, problems) = self.form.salvage(node, place);
        let mut findings = Mistakes::default();
        let outline = resource.map(|resource| gate::outline(resource, place, &mut findings));
        let named = outline.iter().flat_map(|outline| outline.named.iter().cloned());
        self.reading.named.extend(named);
        if problems.is_empty() && findings.errors() == 0 {
            let mesh = outline.and_then(Outline::finished);
            if let Some(mesh) = &mesh {
                self.unprotected.add(mesh, node);
            }
            self.reading.meshes.extend(mesh);
        } else {
            // Of mistakes that are only counted it is not known which entries they are in.
            if problems.are_listed() && findings.are_listed() {
                let mesh = outline.and_then(|outline| outline.salvaged(problems.listed()));
                self.reading.salvaged.extend(mesh);
            }
            let written = WrittenMesh { node, place };
            let misnamed = written.misnamed();
            findings.retain(|it| {
                let is_misnamed = it.named.as_deref().is_some_and(|it| misnamed.contains(it));
                !is_misnamed && !written.follows(it, problems.listed())
            });
            self.reading.named.extend(misnamed);
        }
        self.mistakes.append(problems);
        self.mistakes.append(findings);
    }
}

/// Adds the place of a field that the config has and people write into an entry.
fn of_config(finding: Finding) -> Finding {
    let pointer = finding.labels.first().map(|it| it.place.pointer.clone()).unwrap_or_default();
    let steps: Vec<String> = pointer.steps().collect();
    let [.., clusters, _, field] = &steps[..] else { return finding };
    let is_of_config = finding.rule == &mistake::UNKNOWN_FIELD
        && clusters == "clusters"
        && ["context", "inCluster", "kubeconfig"].contains(&&**field);
    if !is_of_config {
        return finding;
    }
    let help = format!("move it to `clustermesh.yaml`: `clusters: {{ NAME: {{ {field}: … }} }}`");
    Finding { replacement: None, ..finding }.help(help)
}

/// A mesh as it is written.
struct WrittenMesh<'w> {
    node: &'w TreeNode,
    place: &'w Place,
}

impl WrittenMesh<'_> {
    /// Returns whether a mistake may be nothing but the shadow of mistakes in the structure: it is about
    /// what one of them is about, or about something missing beside it.
    fn follows(&self, diagnostic: &Finding, problems: &[Finding]) -> bool {
        let Some(first) = diagnostic.labels.first() else {
            return false;
        };
        let own = first.place.pointer.clone();
        let is_of_topology = own.steps().any(|it| it == "topology");
        let is_shadow = diagnostic.is_shadow || !self.has(&own);
        let own = if is_shadow { own.parent() } else { own };
        let places = problems.iter().filter_map(|it| it.labels.first());
        places.map(|label| &label.place.pointer).any(|pointer| {
            pointer.is_within(&own)
                || own.is_within(pointer)
                || diagnostic.rule == &mistake::UNKNOWN_CLUSTER
                    && !is_of_topology
                    && pointer.steps().any(|it| it == "topology")
        })
    }

    /// Returns whether something is written at a pointer. A required field that is missing has a default value, but is not written.
    fn has(&self, pointer: &Pointer) -> bool {
        let mut steps = pointer.steps().skip(self.place.pointer.steps().count());
        steps.try_fold(self.node, |node, step| Some(node.child(&step)?.0)).is_some()
    }

    /// Returns the names of clusters in fields that are misspelled.
    fn misnamed(&self) -> BTreeSet<String> {
        let clusters = self.node.get("spec").and_then(|it| it.get("clusters"));
        let Some(TreeNode { value: TreeValue::Sequence(entries), .. }) = clusters else {
            return BTreeSet::new();
        };
        let unnamed = entries.iter().filter(|it| it.get("name").is_none());
        let fields = unnamed.filter_map(|it| match &it.value {
            TreeValue::Mapping(fields) => Some(fields.iter()),
            TreeValue::Scalar(_) | TreeValue::Sequence(_) => None,
        });
        let fields = fields.flatten().filter(|it| nearest(it.name(), ["name"]).is_some());
        fields.filter_map(|it| it.value.text().map(str::to_owned)).collect()
    }
}

/// Reports a document that was not read, as an error if it was probably meant to be a mesh.
fn passed_over(node: &TreeNode, place: &Place, kind: Option<&str>) -> Finding {
    let group = node.get("apiVersion").and_then(TreeNode::text);
    let ours = group.is_some_and(|group| group.starts_with(GROUP));
    let has_clusters = node.get("spec").is_some_and(|it| it.get("clusters").is_some());
    match kind {
        None if ours => Finding::new(&mistake::MISSING_FIELD, "`kind` is missing")
            .at(place.key("kind"), "")
            .help("write `kind: ClusterMesh`"),
        None => notice("skipped a document without a kind", place.clone()),
        Some(kind) if ours && has_clusters || is_near_miss(kind, ours) => {
            let message = format!("unsupported `kind` {}", Quoted(kind));
            Finding::new(&mistake::INVALID_VALUE, message)
                .at(place.key("kind"), "")
                .meant("ClusterMesh")
        }
        Some(kind) => {
            notice(&format!("skipped a document of kind {}", Quoted(kind)), place.key("kind"))
        }
    }
}

/// Other people have kinds like `ClusterSet`, but not in our group.
fn is_near_miss(kind: &str, ours: bool) -> bool {
    kind.eq_ignore_ascii_case("ClusterMesh") || ours && nearest(kind, ["ClusterMesh"]).is_some()
}

fn notice(message: &str, place: Place) -> Finding {
    Finding::new(&mistake::SKIPPED_DOCUMENT, message)
        .at(place, "")
        .help("only documents of kind `ClusterMesh` are read")
}

#[cfg(test)]
mod tests {
    use crate::document::Source;
    use crate::mesh::tests::{mesh, report};

    #[test]
    fn mistakes_of_structure_and_of_meaning_are_reported_together() {
        let report = report(
            "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: Prod }
spec:
  topology: { mode: Hub, hubs: [estt] }
  clusters:
    - name: east
      podCidrs: [10.42.0.0/16]
      wireguardCIDR: 10.4.0.0/16
    - name: west
      podCIDRs: [10.44.0.0/16]
      wireguardCIDR: 10.4.0.0/16
      wireguardPort: 70000
    - nam: north
      allowedNetworks: [10.9.0.0/33]
",
        );
        let codes: Vec<&str> = report
            .lines()
            .filter_map(|line| line.strip_prefix("error[")?.split(']').next())
            .collect();
        let structure = ["unknown-field", "invalid-value", "unknown-field"];
        let meaning = ["invalid-value", "invalid-range", "overlapping-ranges", "unknown-cluster"];
        assert_eq!(codes, [&structure[..], &meaning].concat(), "{report}");
    }

    #[test]
    fn a_misspelled_mode_is_one_finding() {
        let of = |topology: &str| {
            report(&format!(
                "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: {{ name: prod }}
spec:
  topology: {topology}
  clusters:
    - {{ name: east, allowedNetworks: [10.1.0.0/16] }}
    - {{ name: west, allowedNetworks: [10.2.0.0/16] }}
"
            ))
        };
        insta::assert_snapshot!(of("{ mode: hub, hubs: [east] }"), @"
        error[invalid-value]: `mode` cannot be `hub`
          6:21 | hub
          help: did you mean `Hub`?
        ");
        insta::assert_snapshot!(of("{ mode: links, links: [[east, west]] }"), @"
        error[invalid-value]: `mode` cannot be `links`
          6:21 | links
          help: did you mean `Links`?
        ");
        assert_eq!(of("{ mode: fullmesh }").matches("error[").count(), 1);
    }

    #[test]
    fn what_is_right_in_a_wrong_mesh_can_be_judged() {
        let text = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: prod }
spec:
  topology: { mode: Hub, hubs: [nobody] }
  clusters:
    - { name: east, allowedNetworks: [10.1.0.0/16] }
    - { name: west, allowedNetworks: [10.2.0.0/33] }
    - { name: north, allowedNetworks: [10.3.0.0/16], endpointFrm: [Kilo] }
    - { name: south, allowedNetworks: [10.1.128.0/17] }
    - { name: east, allowedNetworks: [10.5.0.0/16] }
";
        let reading = crate::mesh::read(&[Source::parse("mesh.yaml", text).unwrap()]);
        assert!(!reading.is_usable() && reading.meshes.is_empty());
        let mesh = &reading.salvaged[0];
        let names: Vec<&str> = mesh.entries.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["east", "south"]);
        assert!(!mesh.topology.links(&mesh.entries[0].name, &mesh.entries[1].name));
        let written: Vec<&str> = reading.named.iter().map(String::as_str).collect();
        assert_eq!(written, ["east", "north", "south", "west"]);
    }

    #[test]
    fn an_object_copied_from_a_cluster_works() {
        assert_eq!(
            report(
                "
apiVersion: v1
kind: List
metadata: { resourceVersion: '' }
items:
- apiVersion: kilo.squat.ai/v1alpha1
  kind: ClusterMesh
  metadata:
    name: m
    namespace: kilo
    uid: 1d6f3a1e
    generation: 3
    creationTimestamp: 2026-11-20T10:00:00Z
    resourceVersion: 12
    finalizers: [kilo-clustermesh.io/cleanup]
    labels: { on: 1 }
    annotations: { a: b }
    managedFields: [{ f: { 'k:{\"a\"}': {} } }]
  spec:
    clusters:
    - { name: a, podCIDRs: [10.0.0.0/16], wireguardCIDR: 10.1.0.0/24, serviceCIDR: \"\" }
    - { name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.3.0.0/24, wireguardPort: 51820 }
  status: { conditions: [{ type: Ready }] }
"
            ),
            ""
        );
    }

    #[test]
    fn places_lead_into_lists() {
        insta::assert_snapshot!(report("
kind: ClusterMeshList
items:
- metadata: { name: m, uid: 1 }
  spec: { cluster: [] }
"), @"
        error[unknown-field]: unknown field `cluster`
          5:11 | cluster
          help: did you mean `clusters`?
        error[missing-field]: `apiVersion` is missing in an item of `items`
          4:3 | metadata: { name: m, uid: 1 }
          help: write `apiVersion: kilo.squat.ai/v1alpha1`
        error[missing-field]: `kind` is missing in an item of `items`
          4:3 | metadata: { name: m, uid: 1 }
          help: write `kind: ClusterMesh`
        ");
    }

    #[test]
    fn other_documents_are_skipped_with_a_notice() {
        let mesh = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        let text = format!(
            "---\n# empty\n---\nkind: Secret\n---\nresources: []\n---\njust text\n---\n{mesh}"
        );
        insta::assert_snapshot!(report(&text), @r"
        notice[skipped-document]: skipped a document of kind `Secret`
          4:7 | Secret
          help: only documents of kind `ClusterMesh` are read
        notice[skipped-document]: skipped a document without a kind
          6:1 | resources: []
          help: only documents of kind `ClusterMesh` are read
        notice[skipped-document]: skipped a document without a kind
          8:1 | just text
          help: only documents of kind `ClusterMesh` are read
        ");
        let source = Source::parse("mesh.yaml", text).unwrap();
        assert_eq!(crate::mesh::read(&[source]).meshes.len(), 1);
    }

    #[test]
    fn what_was_meant_to_be_a_mesh_is_not_skipped() {
        let text = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        insta::assert_snapshot!(report(&text.replace("ClusterMesh", "Clustermesh")), @r"
        error[invalid-value]: unsupported `kind` `Clustermesh`
          2:7 | Clustermesh
          help: did you mean `ClusterMesh`?
        ");
        insta::assert_snapshot!(report(&text.replace("kind: ClusterMesh\n", "")), @r"
        error[missing-field]: `kind` is missing
          1:1 | apiVersion: kilo.squat.ai/v1alpha1
          help: write `kind: ClusterMesh`
        ");
        insta::assert_snapshot!(report(&text.replace("v1alpha1", "v1")), @r"
        error[invalid-value]: `apiVersion` cannot be `kilo.squat.ai/v1`
          1:13 | kilo.squat.ai/v1
          help: did you mean `kilo.squat.ai/v1alpha1`?
        ");
    }
}
