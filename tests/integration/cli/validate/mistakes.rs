//! Mistakes in meshes, configs and snapshots: all are reported together, with their places.

use serde_json::json;

use crate::cli::{Folder, NORTH, node};
use crate::support::assert_contains;

/// The messages of a render that fails; it writes nothing.
fn refusal(folder: &Folder, code: i32) -> String {
    folder.refusal(code, |it| it.run(&["render"]))
}

#[test]
fn points_at_what_is_no_yaml() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "[10.2.0.0/16]", "[10.2.0.0/16");
    insta::assert_snapshot!(refusal(&folder, 2), @"
    error[syntax-error]: not valid YAML: unexpected `:`
      --> mesh.yaml:12:20
       |
    12 |       wireguardCIDR: 10.102.0.0/24
       |                    ^
    help: close the bracket before it, or quote the value

    1 error
    nothing was written
    ");
}

#[test]
fn points_at_what_is_no_yaml_in_the_config() {
    let folder = Folder::rendered();
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: 'Config\n");
    insta::assert_snapshot!(refusal(&folder, 2), @"
    error[syntax-error]: not valid YAML: a quote is not closed in its line
     --> clustermesh.yaml:2:7
      |
    2 | kind: 'Config
      |       ^
    help: close the quote, or remove it

    1 error
    ");
}

#[test]
fn a_document_of_another_kind_is_one_finding() {
    let folder = Folder::rendered();
    folder.write("clustermesh.yaml", folder.read("mesh.yaml"));
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[invalid-value]: this is a document of kind `ClusterMesh`, not `Config`
     --> clustermesh.yaml:2:7
      |
    2 | kind: ClusterMesh
      |       ^^^^^^^^^^^
    help: run `git checkout HEAD -- clustermesh.yaml` if it was overwritten; otherwise move it to a file of its own

    1 error
    ");
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedClusters: [east] }\n";
    folder.write("expectations.yaml", policy);
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    error[invalid-value]: this is a document of kind `ClusterPolicy`, not `Expectations`
     --> expectations.yaml:2:7
      |
    2 | kind: ClusterPolicy
      |       ^^^^^^^^^^^^^
    help: run `git checkout HEAD -- expectations.yaml` if it was overwritten; otherwise move it to a file of its own
    ");
}

#[test]
fn expectations_follow_from_a_mesh_that_is_empty() {
    let folder = Folder::rendered();
    folder.write("mesh.yaml", "");
    folder.write(
        "expectations.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n  - { name: x, from: { group: clouds }, to: { cluster: east }, expect: Reach }\n",
    );
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    error[no-mesh]: no ClusterMesh in `mesh.yaml`, so every Peer would be deleted (1 other finding follows from it)
    help: write the mesh again, or, if every Peer is to be deleted, run `clustermesh render --allow-empty '*'`
    ");
}

#[test]
fn tells_all_structural_mistakes_at_once() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "podCIDRs: [10.1.0.0/16]", "podCidrs: [10.1.0.0/16]");
    folder.edit("mesh.yaml", "wireguardCIDR: 10.102.0.0/24", "wireguardPort: no");
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103.0.0/24", "granularity: full");
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[unknown-field]: unknown field `podCidrs`
     --> mesh.yaml:8:7
      |
    8 |       podCidrs: [10.1.0.0/16]
      |       ^^^^^^^^
    help: did you mean `podCIDRs`?

    error[invalid-type]: `wireguardPort` must be an integer, not `no`
      --> mesh.yaml:12:22
       |
    12 |       wireguardPort: no
       |                      ^^

    error[invalid-value]: `granularity` cannot be `full`
      --> mesh.yaml:15:20
       |
    15 |       granularity: full
       |                    ^^^^
    help: did you mean `Full`?

    3 errors
    nothing was written
    ");
}

#[test]
fn tells_all_semantic_mistakes_at_once() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.1.128.0/17");
    folder.edit("mesh.yaml", "name: north", "name: east");
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [wset] }\n");
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[duplicate-name]: duplicate cluster name `east`
      --> mesh.yaml:11:13
       |
     8 |     - name: east
       |             ---- first here
    ...
    11 |     - name: east
       |             ^^^^ second here
    help: give each cluster a name of its own, or remove one of the two entries

    error[unknown-cluster]: this mesh has no cluster `wset`
     --> mesh.yaml:6:33
      |
    6 |   topology: { mode: Hub, hubs: [wset] }
      |                                 ^^^^
    help: did you mean `west`?

    error[contradicted-declaration]: west: both nodes have pod CIDRs outside the declared 10.1.128.0/17: 10.3.1.0/24, 10.3.2.0/24 (findings about 2 nodes and 2 other findings follow from it)
      --> mesh.yaml:15:18
       |
    15 |       podCIDRs: [10.1.128.0/17]
       |                  ^^^^^^^^^^^^^ no node has an address in it
    help: write `podCIDRs: [10.3.0.0/16]` in the entry of `west`, unless its nodes are wrong

    notice[unused-snapshot]: snapshot of `north`, which is in no mesh
    --> snapshots/north.json
    help: add the cluster to a mesh, or delete the file

    3 errors, 1 notice
    nothing was written
    ");
}

#[test]
fn tells_mistakes_of_all_files_at_once() {
    let folder = Folder::mesh();
    folder.write("meshes/a.yaml", "kind: ClusterMesh\n");
    folder.write("meshes/b.yml", "a: 1\n");
    let run = folder.run(&["render", "--mesh", "meshes"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "--> meshes/a.yaml:1:1");
    assert_contains(&run.stderr, "--> meshes/b.yml:1:1");
}

#[test]
fn tells_mistakes_of_the_config() {
    let folder = Folder::rendered();
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmesh: mesh.yaml\n";
    folder.write("clustermesh.yaml", config);
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[unknown-field]: unknown field `mesh`
     --> clustermesh.yaml:3:1
      |
    3 | mesh: mesh.yaml
      | ^^^^
    help: did you mean `meshes`?

    1 error
    ");
}

#[test]
fn names_the_command_that_makes_a_missing_snapshot() {
    let folder = Folder::rendered();
    std::fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[missing-snapshot]: cluster `west` has no snapshot: `snapshots/west.json` does not exist
      --> mesh.yaml:13:13
       |
    13 |     - name: west
       |             ^^^^ named here
    help: run `clustermesh snapshot west`, or `clustermesh snapshot --from west=FILE` with the output of `kubectl get nodes -o json`

    1 error
    nothing was written
    ");
}

#[test]
fn names_all_missing_snapshots() {
    let folder = Folder::mesh();
    std::fs::remove_dir_all(folder.path("snapshots")).unwrap();
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[missing-snapshot]: the snapshot folder `snapshots` does not exist, so 3 clusters have no snapshot
      --> mesh.yaml:7:13
       |
     7 |     - name: east
       |             ^^^^ named here
    ...
    10 |     - name: north
       |             ----- named here
    ...
    13 |     - name: west
       |             ---- named here
    help: if the snapshots are in another folder, name it with `--snapshots` or in the config; otherwise run `clustermesh snapshot east north west`, or give each cluster as `--from CLUSTER=FILE`, with the output of `kubectl get nodes -o json`

    1 error
    nothing was written
    ");
}

#[test]
fn needs_no_snapshot_of_a_cluster_that_left() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    folder.write("snapshots/north.json", "not read");
    assert_eq!(folder.run(&["render"]).code, 0);
}

#[test]
fn points_at_what_is_no_json_in_a_snapshot() {
    let folder = Folder::rendered();
    folder.write(
        "snapshots/west.json",
        "{\n  \"apiVersion\": \"kilo-clustermesh.io/v1\",\n  \"kind\": ,\n}\n",
    );
    let report = refusal(&folder, 2);
    assert_contains(&report, "not a snapshot: expected value\n --> snapshots/west.json:3:11\n");
}

#[test]
fn refuses_fields_it_does_not_know_in_a_snapshot() {
    let folder = Folder::rendered();
    folder.edit("snapshots/west.json", "\"labels\"", "\"lables\"");
    let report = refusal(&folder, 1);
    assert_contains(&report, " --> snapshots/west.json:1:");
    assert_contains(&report, "unknown field `lables`");
}

#[test]
fn refuses_snapshots_of_another_version() {
    let folder = Folder::rendered();
    folder.edit("snapshots/west.json", "clustermesh.io/v1", "clustermesh.io/v2");
    folder.edit("snapshots/west.json", "\"uid\"", "\"new\"");
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[invalid-snapshot]: west: `apiVersion` is missing or unknown, so the text of the file is not shown
    --> snapshots/west.json:1:15
    help: take a new one with `clustermesh snapshot west --accept west`

    1 error
    nothing was written
    ");
}

#[test]
fn refuses_snapshots_of_another_cluster() {
    let folder = Folder::rendered();
    std::fs::copy(folder.path("snapshots/east.json"), folder.path("snapshots/west.json")).unwrap();
    insta::assert_snapshot!(refusal(&folder, 1), @r#"
    error[invalid-snapshot]: west: this is the snapshot of `east`, but the file is named after `west`
     --> snapshots/west.json:1:50
      |
    1 | {"apiVersion":"kilo-clustermesh.io/v1","cluster":"east","kind":"NodeSnapshot","nodes":[{"addresses":[{"address":"192.168.1.1","type":...
      |                                                  ^^^^^^
    help: if `east` was renamed to `west`, write `"cluster": "west"` in this file; otherwise take a new one with `clustermesh snapshot west --accept west`

    1 error
    nothing was written
    "#);
}

#[test]
fn refuses_a_dump_in_the_place_of_a_snapshot() {
    let folder = Folder::rendered();
    folder.write("snapshots/west.json", r#"{"apiVersion":"v1","kind":"NodeList","items":[]}"#);
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[invalid-snapshot]: west: this file is not a snapshot, but nodes as `kubectl get nodes -o json` prints them
    --> snapshots/west.json:1:1
    help: move it to another folder, then run `clustermesh snapshot --from west=FILE`

    1 error
    nothing was written
    ");
}

#[test]
fn names_the_cluster_of_a_snapshot_that_was_misspelled() {
    let folder = Folder::rendered();
    let text = folder.read("snapshots/west.json");
    folder.write("snapshots/wset.json", text.replace("\"west\"", "\"wset\""));
    let report = folder.run(&["validate"]).stdout;
    let message = "notice[unused-snapshot]: snapshot of `wset`, which is in no mesh\n";
    assert_contains(&report, message);
    let help = "\nhelp: if `west` is meant, take a new snapshot with `clustermesh snapshot west`, and \
                delete this file\n";
    assert_contains(&report, help);
}

#[test]
fn names_the_cluster_that_a_mesh_misspells() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: west", "- name: wset");
    let report = folder.run(&["validate"]).stdout;
    assert_contains(
        &report,
        "help: if `west` is meant, write `name: west` here; otherwise run `clustermesh snapshot wset`",
    );
    assert_contains(&report, " does not exist (1 other finding follows from it)");
    folder.edit("mesh.yaml", "- name: wset", "- name: west");
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
}

#[test]
fn names_a_file_of_kubectl_beside_the_snapshots() {
    let folder = Folder::rendered();
    folder.write(
        "snapshots/nodes.json",
        r#"{"apiVersion":"v1","kind":"List","items":[{"kind":"Node"}]}"#,
    );
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @"
    warning[foreign-snapshot]: this file is not a snapshot, but nodes as `kubectl get nodes -o json` prints them
    --> snapshots/nodes.json:1:1
    help: move it to another folder, then run `clustermesh snapshot --from CLUSTER=FILE`
    ");
}

#[test]
fn names_a_field_that_is_not_indented() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "metadata:\n  name: prod", "metadata:\nname: prod");
    insta::assert_snapshot!(refusal(&folder, 1), @"
    error[unknown-field]: `name` is not indented, so it is not part of `metadata`
     --> mesh.yaml:4:1
      |
    4 | name: prod
      | ^^^^
    help: indent it by two spaces more than `metadata`

    1 error
    nothing was written
    ");
}

#[test]
fn tells_what_is_wrong_with_all_snapshots() {
    let folder = Folder::rendered();
    folder.write("snapshots/east.json", "{");
    folder.write("snapshots/west.json", "{}");
    let report = refusal(&folder, 2);
    assert_contains(&report, "--> snapshots/east.json:1:1");
    assert_contains(&report, "--> snapshots/west.json:1:1");
}

/// A declared range that some nodes are in is still needed.
#[test]
fn the_advised_pod_ranges_have_all_nodes() {
    let folder = Folder::mesh();
    let nodes = [
        ("n1", "10.1.1.0/24"),
        ("n2", "10.9.2.0/24"),
        ("n3", "10.9.3.0/24"),
        ("n4", "10.9.4.0/24"),
    ];
    let nodes = (1..).zip(nodes).map(|(number, (name, range))| {
        let mut node = node(1, number);
        node["name"] = json!(name);
        node["podCIDRs"] = json!([range]);
        node
    });
    folder.keep("east", &nodes.collect::<Vec<_>>());
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "help: write `podCIDRs: [10.1.0.0/16, 10.9.0.0/16]` in the entry of `east`",
    );
    folder.edit("mesh.yaml", "podCIDRs: [10.1.0.0/16]", "podCIDRs: [10.1.0.0/16, 10.9.0.0/16]");
    let run = folder.run(&["validate"]);
    assert!(!run.stdout.contains("pod CIDR"), "{}", run.stdout);
}
