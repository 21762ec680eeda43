//! Causes: nodes, meshes and names.

use super::*;
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

/// Nodes of `west` in two locations, of which the first one of each leads.
fn located() -> Vec<Value> {
    let places = [(1, "a"), (2, "a"), (3, "b"), (4, "b")];
    let nodes = places.map(|(number, location)| {
        let mut node = node(3, number);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        node["annotations"]["kilo.squat.ai/location"] = json!(location);
        node
    });
    nodes.to_vec()
}

/// Compares two versions of the nodes of `west`, and returns the causes with their effects and the grade.
fn causes_in_nodes(before: &[Value], after: &[Value]) -> String {
    let folder = Folder::mesh();
    folder.keep("west", before);
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.keep("west", after);
    let shown = repository.diff(&[]).stdout;
    let changes = repository.diff(&["--output", "json"]).json();
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &changes), Vec::<String>::new());
    let causes = changes["causes"].as_array().unwrap().iter().map(|cause| {
        let message = cause["message"].as_str().unwrap();
        assert_contains(&shown, &format!("{message}\n    east +"));
        let (kind, cluster, node) = (&cause["kind"], &cause["cluster"], &cause["node"]);
        let effect = &cause["targets"][0];
        format!("{kind} of {cluster} {node}: {message}: {effect}")
    });
    let grade = changes["grade"].to_string();
    causes.chain([grade]).collect::<Vec<_>>().join("\n")
}

#[test]
fn locations_leaders_and_ranges_of_nodes_are_causes() {
    let edited = |pointer: &str, value: Value| {
        let mut nodes = located();
        let annotations = &mut nodes[1]["annotations"];
        match pointer {
            "podCIDRs" => nodes[1]["podCIDRs"] = value,
            name => annotations[format!("kilo.squat.ai/{name}")] = value,
        }
        nodes
    };
    let location = edited("location", json!("b"));
    insta::assert_snapshot!(causes_in_nodes(&located(), &location), @r#"
    "otherLocation" of "west" "n2": node west/n2 is in another location: `a` → `b`: {"added":1,"changed":1,"cluster":"east","removed":0}
    "leaderChanged" of "west" null: location `b` of west has another leader: n3 → n2: {"added":1,"changed":0,"cluster":"east","removed":1}
    "brief"
    "#);
    let leader = edited("leader", json!("true"));
    insta::assert_snapshot!(causes_in_nodes(&located(), &leader), @r#"
    "leaderChanged" of "west" null: location `a` of west has another leader: n1 → n2: {"added":1,"changed":0,"cluster":"east","removed":1}
    "brief"
    "#);
    let ranges = edited("podCIDRs", json!(["10.3.9.0/24"]));
    insta::assert_snapshot!(causes_in_nodes(&located(), &ranges), @r#"
    "rangesGained" of "west" "n2": node west/n2 gained 10.3.9.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "rangesLost" of "west" "n2": node west/n2 lost 10.3.2.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "cleanup"
    "#);
}

#[test]
fn the_granularity_and_the_order_of_ranges_are_causes() {
    let mut full = located();
    for node in &mut full {
        node["annotations"]["kilo.squat.ai/granularity"] = json!("full");
    }
    insta::assert_snapshot!(causes_in_nodes(&located(), &full), @r#"
    "otherGranularity" of "west" null: most nodes of west report another granularity: Location → Full: {"added":2,"changed":2,"cluster":"east","removed":0}
    "brief"
    "#);
    let mut swapped = located();
    let ranges = swapped[0]["podCIDRs"].take();
    swapped[0]["podCIDRs"] = swapped[1]["podCIDRs"].take();
    swapped[1]["podCIDRs"] = ranges;
    insta::assert_snapshot!(causes_in_nodes(&located(), &swapped), @r#"
    "rangesGained" of "west" "n1": node west/n1 gained 10.3.2.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "rangesLost" of "west" "n1": node west/n1 lost 10.3.1.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "rangesGained" of "west" "n2": node west/n2 gained 10.3.1.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "rangesLost" of "west" "n2": node west/n2 lost 10.3.2.0/24: {"added":0,"changed":1,"cluster":"east","removed":0}
    "brief"
    "#);
}

/// Two meshes of two clusters each.
fn two_meshes() -> Repository {
    let folder = Folder::mesh();
    let (head, _) = MESH.split_once("    - name").unwrap();
    let entry = |number: u8, name: &str| {
        format!(
            "    - name: {name}\n      podCIDRs: [10.{number}.0.0/16]\n      wireguardCIDR: 10.{}.0.0/24\n",
            100 + number
        )
    };
    folder.keep("south", &[node(4, 1), node(4, 2)]);
    let first = format!("{head}{}{}", entry(1, "east"), entry(2, "north"));
    let second = format!("{head}{}{}", entry(3, "west"), entry(4, "south"));
    fs::remove_file(folder.path("mesh.yaml")).unwrap();
    folder.write("meshes/prod.yaml", first);
    folder.write("meshes/test.yaml", second.replace("prod", "test"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

/// The causes in words.
fn messages(repository: &Repository) -> Vec<String> {
    let changes = repository.diff(&["--output", "json"]).json();
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &changes), Vec::<String>::new());
    let causes = changes["causes"].as_array().unwrap().iter();
    causes.map(|it| it["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_cluster_in_another_mesh_is_a_cause() {
    let repository = two_meshes();
    let folder = &repository.folder;
    let (first, second) = (folder.read("meshes/prod.yaml"), folder.read("meshes/test.yaml"));
    let joined = format!("{second}{NORTH}");
    folder.write("meshes/test.yaml", &joined);
    assert_eq!(messages(&repository), ["cluster north joined the mesh test"]);
    let text = repository.diff(&[]).stdout;
    assert_contains(&text, "the mesh test\n    north +4 ~0 -0, south +2 ~0 -0, west +2 ~0 -0\n");
    // The first mesh is merged into the second one.
    let (_, entries) = first.split_once("clusters:\n").unwrap();
    folder.write("meshes/test.yaml", format!("{second}{entries}"));
    fs::remove_file(folder.path("meshes/prod.yaml")).unwrap();
    assert_eq!(
        messages(&repository),
        [
            "cluster east joined the mesh test",
            "cluster east left the mesh prod",
            "cluster north joined the mesh test",
            "cluster north left the mesh prod",
        ]
    );
    // Only its name is another one.
    folder.write("meshes/test.yaml", &second);
    folder.write("meshes/prod.yaml", first.replace("name: prod", "name: live"));
    assert_eq!(
        messages(&repository),
        ["`metadata.name` changed: prod → live (meshes/prod.yaml:4)"]
    );
    // All clusters left, so the name of the mesh explains nothing.
    folder.write("meshes/prod.yaml", "");
    assert_eq!(
        messages(&repository),
        ["cluster east left (its entry is removed)", "cluster north left (its entry is removed)"]
    );
}

/// The cluster never was in a mesh of the new name, and its Peers have the old one.
#[test]
fn a_cluster_leaves_a_mesh_that_is_renamed() {
    let repository = two_meshes();
    let folder = &repository.folder;
    let second = folder.read("meshes/test.yaml");
    let entries = |mesh: &str| mesh.split_once("clusters:\n").unwrap().1.to_owned();
    let west = entries(&second).split_inclusive('\n').take(3).collect::<String>();
    let first = folder.read("meshes/prod.yaml") + &west;
    folder.write("meshes/prod.yaml", &first);
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    let (head, _) = first.split_once("    - name: north").unwrap();
    let north: String = entries(&first).split_inclusive('\n').skip(3).take(3).collect();
    let renamed = head.replace("name: prod", "name: live") + &west;
    folder.write("meshes/prod.yaml", renamed);
    folder.write("meshes/test.yaml", second + &north);
    assert_eq!(
        messages(&repository),
        [
            "`metadata.name` changed: prod → live (meshes/prod.yaml:4)",
            "cluster north joined the mesh test",
            "cluster north left the mesh prod",
        ]
    );
    assert_contains(
        &repository.diff(&[]).stdout,
        "cluster north left the mesh prod\n    east +0 ~0 -2, north +0 ~0 -4, west +0 ~0 -2\n",
    );
}

/// In one mesh it stays as it is.
#[test]
fn the_state_of_an_entry_is_that_in_its_mesh() {
    let repository = two_meshes();
    let folder = &repository.folder;
    let second = folder.read("meshes/test.yaml");
    let joining = format!("{second}{NORTH}      state: Joining\n");
    folder.write("meshes/test.yaml", &joining);
    assert_eq!(
        messages(&repository),
        ["cluster north was added to the mesh test with `state: Joining`"]
    );
    assert_eq!(repository.grade(&[]), "none");
    repository.commit();
    folder.write("meshes/test.yaml", joining.replace("state: Joining", "state: Joined"));
    assert_eq!(messages(&repository), ["cluster north joined (`state: Joining` removed)"]);
}

#[test]
fn the_form_of_an_entry_is_one_cause() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24",
        "allowedNetworks: [10.2.0.0/16, 10.102.0.0/24]",
    );
    let form = "the form of the entry of north changed (mesh.yaml:11)";
    assert_eq!(messages(&repository), [form]);
    assert_eq!(repository.grade(&[]), "none");
    // A range that is not in the other form is a line of its own.
    folder.edit("mesh.yaml", "10.102.0.0/24]", "10.102.0.0/24, 10.42.0.0/16]");
    assert_eq!(
        messages(&repository),
        [form, "`allowedNetworks` of north added: 10.42.0.0/16 (mesh.yaml:11)"]
    );
}

/// By name alone, every node of both would have another key, and every address would be another one.
#[test]
fn two_clusters_that_swap_their_names_are_renamed() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let mesh = MESH.replace("east", "-").replace("west", "east");
    folder.write("mesh.yaml", mesh.replace("name: -", "name: west"));
    folder.keep("west", &[node(1, 1), node(1, 2)]);
    folder.keep("east", &[node(3, 1), node(3, 2)]);
    assert_eq!(
        messages(&repository),
        ["cluster east is now called west", "cluster west is now called east"]
    );
    assert_eq!(repository.grade(&[]), "disruptive");
    // A cluster with the name of one that left is the old one as far as its engine knows.
    folder.edit("mesh.yaml", "name: east", "name: orient");
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    folder.keep("orient", &[node(3, 1), node(3, 2)]);
    assert_eq!(
        messages(&repository),
        ["cluster east is now called west", "cluster west is now called orient"]
    );
    // All nodes have new keys.
    repository.git(&["checkout", "--quiet", "."]);
    let mut reinstalled = [node(3, 1), node(3, 2)];
    for (key, node) in (200..).zip(&mut reinstalled) {
        node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([key; 32]));
    }
    folder.keep("west", &reinstalled);
    assert_eq!(messages(&repository), ["node west/n1 has a new key", "node west/n2 has a new key"]);
}

/// Commands can be copied: kubeconfigs and contexts are those of the config, and a shell reads each as one word.
#[test]
fn commands_have_the_kubeconfig_and_context_of_the_config() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n  east: { context: admin@east }\n  \
         north: { context: a $(b) }\n  west: { kubeconfig: west.yaml }\n",
    );
    folder.edit("mesh.yaml", "name: prod", "name: live");
    for format in ["human", "markdown", "json"] {
        let text = repository.diff(&["--output", format]).stdout;
        assert_contains(
            &text,
            "run `kubectl --context admin@east annotate peers --overwrite -l kilo-clustermesh.io/mesh=live touched=1`",
        );
        assert_contains(
            &text,
            "run `kubectl --context 'a $(b)' annotate peers --overwrite -l kilo-clustermesh.io/mesh=live touched=1`",
        );
        assert_contains(
            &text,
            "run `kubectl --kubeconfig west.yaml annotate peers --overwrite -l kilo-clustermesh.io/mesh=live touched=1`",
        );
    }
}

/// The annotations of nodes are in code spans, also if they have backticks, so that they do not look like sentences of
/// clustermesh in a comment.
#[test]
fn text_of_nodes_stays_in_code_spans() {
    let claim = "x` Reviewed and approved, see GH-1 `y";
    let mut nodes = located();
    nodes[0]["annotations"]["kilo.squat.ai/location"] = json!(claim);
    nodes[1]["name"] = json!(claim);
    nodes[2]["name"] = json!("Reviewed and approved");
    let folder = Folder::mesh();
    folder.keep("west", &located());
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.keep("west", &nodes);
    let page = repository.diff(&["--output", "markdown"]).stdout;
    let quoted = r"`x\u{60} Reviewed and approved, see GH-1 \u{60}y`";
    assert_contains(&page, &format!("another location: `a` → {quoted}"));
    let lines = page.lines().filter(|it| it.contains("Reviewed"));
    for line in lines {
        let prose = line.split('`').step_by(2).collect::<String>();
        assert!(!prose.contains("Reviewed"), "{line}");
    }
}

/// A reviewer reads the values without opening two versions of the mesh.
#[test]
fn a_changed_value_is_part_of_its_cause() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let change = |from: &str, to: &str| {
        repository.commit();
        folder.edit("mesh.yaml", from, to);
        messages(&repository)
    };
    let declared = "wireguardCIDR: 10.103.0.0/24\n";
    let with = |range: &str| format!("{declared}      serviceCIDR: {range}\n");
    assert_eq!(
        change(declared, &with("10.96.0.0/16")),
        ["`serviceCIDR` of west added: 10.96.0.0/16 (mesh.yaml:16)"]
    );
    assert_eq!(
        change("10.96.0.0/16", "10.97.0.0/16"),
        ["`serviceCIDR` of west changed: 10.96.0.0/16 → 10.97.0.0/16 (mesh.yaml:16)"]
    );
    assert_eq!(
        change(&with("10.97.0.0/16"), declared),
        ["`serviceCIDR` of west removed: 10.97.0.0/16 (mesh.yaml:16 before)"]
    );
    assert_eq!(
        change(declared, &format!("{declared}      persistentKeepalive: 25\n")),
        ["`persistentKeepalive` of west added: 25 (mesh.yaml:16)"]
    );
    let keepalive = "      persistentKeepalive: 25\n";
    let sources = format!("{keepalive}      endpointFrom: [Annotation, ExternalIP, Kilo]\n");
    // The Peers of the last commit had another keepalive.
    assert_eq!(
        change(keepalive, &sources)[0],
        "`endpointFrom` of west changed: Annotation, ExternalIP → Annotation, ExternalIP, Kilo (mesh.yaml:17)"
    );
}

#[test]
fn links_anchors_and_selectors_are_causes_with_their_values() {
    let folder = Folder::rendered();
    let repository = Repository::of(folder);
    repository.commit();
    let mesh = repository.folder.read("mesh.yaml");
    let causes = |from: &str, to: &str| {
        repository.folder.edit("mesh.yaml", from, to);
        let changes = repository.diff(&["--output", "json"]).json();
        repository.folder.write("mesh.yaml", &mesh);
        let causes = changes["causes"].as_array().unwrap().iter();
        let causes = causes.filter(|it| it["kind"] == "setting");
        let messages = causes.map(|it| format!("{}\n", it["message"].as_str().unwrap()));
        messages.collect::<String>()
    };
    let entry = "- name: west\n";
    insta::assert_snapshot!(causes("spec:\n", "spec:\n  topology: { mode: Hub, hubs: [east] }\n"), @"`topology` changed: `full mesh` → `hub east` (mesh.yaml:6)");
    insta::assert_snapshot!(
        causes(entry, &format!("{entry}      anchors: [{{ nodes: [n1] }}]\n")), @"`anchors` of west added: `all ranges on n1` (mesh.yaml:14)"
    );
    let selector = "nodeSelector: { matchLabels: { zone: a }, matchExpressions: [{ key: gone, operator: DoesNotExist }] }";
    insta::assert_snapshot!(causes(entry, &format!("{entry}      {selector}\n")), @"`nodeSelector` of west added: `zone in (a)`, `!gone` (mesh.yaml:14)");
}
