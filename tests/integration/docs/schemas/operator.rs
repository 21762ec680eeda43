//! The page about fields that the operator's CRD lacks: it has all fields of the schema, and the finding names those that
//! the page does. `tests/cluster` compares the page with the errors of the API server under that CRD.

use super::agreement::whole_mesh;
use super::*;

/// Lists the fields of `spec` and of an entry in a section of the page: those of its table's first column.
fn listed(page: &str, from: &str, to: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(from).unwrap();
    let (section, _) = section.split_once(to).unwrap();
    let cells = section.lines().filter_map(|it| it.strip_prefix("| `")?.split('`').next());
    cells.map(str::to_owned).collect()
}

#[test]
fn the_page_of_the_operator_s_crd_has_every_field() {
    let page = fs::read_to_string(project().join("docs/reference/operator-crd.md")).unwrap();
    let lacking = listed(&page, "\n## The fields\n", "The operator has only these fields");
    let known = listed(&page, "The operator has only these fields", "\n## ");

    let schema = schema("kilo.squat.ai/clustermesh_v1alpha1.json");
    let fields = [("Spec", "spec."), ("Cluster", "spec.clusters[].")].map(|(kind, path)| {
        let fields = schema["$defs"][kind]["properties"].as_object().unwrap();
        fields.keys().map(move |it| format!("{path}{it}"))
    });
    let fields: BTreeSet<String> = fields.into_iter().flatten().collect();
    let documented: BTreeSet<String> = lacking.union(&known).cloned().collect();
    assert_eq!(documented, fields);
    assert!(lacking.is_disjoint(&known));

    let source = Source::parse("mesh.yaml", whole_mesh().to_string()).unwrap();
    let findings = mesh::read(&[source]).diagnostics;
    let found = findings.iter().find(|it| it.rule.name() == "additional-fields");
    let message = found.unwrap().message.to_string();
    let (_, names) = message.split_once(": ").unwrap();
    let names: BTreeSet<&str> = names.split(", ").map(|it| it.trim_matches('`')).collect();
    let lacking: BTreeSet<&str> = lacking.iter().filter_map(|it| it.rsplit('.').next()).collect();
    assert_eq!(names, lacking);
}
