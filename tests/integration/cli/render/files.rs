//! Something else at the path of a file.

use std::fs::{self, File};
use std::process::Command;

use serde_json::json;

use crate::cli::{Folder, api_node, node};
use crate::support::assert_contains;

fn refusal(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run_with(&[], arguments);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert!(!folder.path("rendered").exists());
    run.stderr
}

fn huge(folder: &Folder, path: &str, bytes: u64) {
    File::create(folder.path(path)).unwrap().set_len(bytes).unwrap();
}

fn pipe(folder: &Folder, path: &str) {
    let status = Command::new("mkfifo").arg(folder.path(path)).status();
    assert!(status.unwrap().success());
}

#[test]
fn says_which_file_is_not_there() {
    let folder = Folder::mesh();
    insta::assert_snapshot!(refusal(&folder, &["render", "--mesh", "prod.yaml"]), @"error: cannot read `prod.yaml`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal(&folder, &["render", "--config", "my.yaml"]), @"error: cannot read `my.yaml`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal(&folder, &["snapshot", "east", "--from", "my.json"]), @"error: cannot read `my.json`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal(&folder, &["-C", "elsewhere", "render"]), @"error: cannot change to folder `elsewhere`: No such file or directory (os error 2)");
}

#[test]
fn says_how_to_name_a_mesh() {
    let report = refusal(&Folder::empty(), &["render"]);
    insta::assert_snapshot!(report, @"
    error: no mesh found: this folder has no `mesh.yaml` and no `meshes/`
    help: run `clustermesh init`, use --mesh or -C to name a mesh elsewhere, or write this to `mesh.yaml`:

    apiVersion: kilo.squat.ai/v1alpha1
    kind: ClusterMesh
    metadata:
      name: mesh
    spec:
      clusters:
        - name: east
          podCIDRs: [10.42.0.0/16]
          wireguardCIDR: 10.4.0.0/16
        - name: west
          podCIDRs: [10.44.0.0/16]
          wireguardCIDR: 10.6.0.0/16
    ");
    for command in ["validate", "verify", "capacity", "snapshot"] {
        if !cfg!(feature = "snapshot") && command == "snapshot" {
            continue;
        }
        assert_eq!(refusal(&Folder::empty(), &[command]), report);
    }
    let folder = Folder::mesh();
    fs::create_dir(folder.path("inner")).unwrap();
    insta::assert_snapshot!(refusal(&folder, &["-C", "inner", "render"]), @"error: no mesh found: this folder has no `mesh.yaml` and no `meshes/`, but `..` has; use -C ..");
    let dump = json!({ "kind": "NodeList", "apiVersion": "v1", "items": [api_node(1, 1)] });
    folder.write("inner/east.json", dump.to_string());
    // Beside the mesh, these would be judged by it.
    let snapshot = ["-C", "inner", "snapshot", "--from", "east=east.json"];
    insta::assert_snapshot!(refusal(&folder, &snapshot), @"error: this folder has no mesh, but `..` has; use -C .., or --snapshots to write elsewhere");
    let init = ["-C", "inner", "init", "--from", "north=east.json"];
    insta::assert_snapshot!(refusal(&folder, &init), @"error: a mesh has at least two clusters; add another --context or --from; to add the cluster to the mesh of `..`, use -C ..");
    // A config above a mesh names the folder in which a mesh is looked for.
    folder.write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    fs::rename(folder.path("mesh.yaml"), folder.path("inner/mesh.yaml")).unwrap();
    insta::assert_snapshot!(refusal(&folder, &["-C", "inner", "render"]), @"error: no mesh found beside `../clustermesh.yaml`, which applies in this folder too; move that file into this folder, or write the paths of the mesh into it: `meshes`, `snapshots` and `rendered`");
}

#[test]
fn shows_a_mesh_that_works_where_there_is_none() {
    let folder = Folder::empty();
    let report = refusal(&folder, &["validate"]);
    let (_, mesh) = report.split_once("\n\n").unwrap();
    folder.write("mesh.yaml", mesh);
    for (cluster, number) in [("east", 42), ("west", 44)] {
        let wireguard = if cluster == "east" { 4 } else { 6 };
        let mut node = node(u8::from(cluster == "west") + 1, 1);
        node["podCIDRs"] = json!([format!("10.{number}.1.0/24")]);
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(format!("10.{wireguard}.0.1/16"));
        folder.keep(cluster, &[node]);
    }
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = folder.run(&["verify", "--fail-on", "warning"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
}

#[test]
fn says_that_a_folder_has_no_mesh() {
    let folder = Folder::mesh();
    folder.write("meshes/README.md", "");
    insta::assert_snapshot!(refusal(&folder, &["render", "--mesh", "meshes"]), @"error: `meshes` contains no *.yaml or *.yml file");
}

#[test]
fn reads_meshes_of_a_sane_size() {
    let folder = Folder::mesh();
    huge(&folder, "mesh.yaml", (8 << 20) + 1);
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `mesh.yaml`: it is larger than the limit of 8388608 bytes");
}

#[test]
fn reads_configs_of_a_sane_size() {
    let folder = Folder::mesh();
    huge(&folder, "clustermesh.yaml", (1 << 20) + 1);
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `clustermesh.yaml`: it is larger than the limit of 1048576 bytes");
}

#[test]
fn reads_snapshots_of_a_sane_size() {
    let folder = Folder::mesh();
    huge(&folder, "snapshots/west.json", (64 << 20) + 1);
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `snapshots/west.json`: it is larger than the limit of 67108864 bytes");
}

#[test]
fn takes_no_folder_for_a_file() {
    let folder = Folder::mesh();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    fs::create_dir(folder.path("snapshots/west.json")).unwrap();
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `snapshots/west.json`: it is a folder, not a regular file");
    insta::assert_snapshot!(refusal(&folder, &["render", "--config", "snapshots"]), @"error: cannot read `snapshots`: it is a folder, not a regular file");
    insta::assert_snapshot!(refusal(&folder, &["snapshot", "east", "--from", "snapshots"]), @"error: cannot read `snapshots`: it is a folder, not a regular file");
}

#[test]
fn does_not_wait_for_a_pipe() {
    let folder = Folder::mesh();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    pipe(&folder, "snapshots/west.json");
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `snapshots/west.json`: it is a device, pipe or socket, not a regular file; `-` reads the standard input");
}

#[test]
fn refuses_bytes_that_are_no_text() {
    let folder = Folder::mesh();
    folder.write("bytes.yaml", b"kind: \xff");
    folder.write("snapshots/west.json", b"\x7fELF\x02\x01\x01\0\xff");
    insta::assert_snapshot!(refusal(&folder, &["render", "--mesh", "bytes.yaml"]), @"error: cannot read `bytes.yaml`: it is not UTF-8: the first invalid byte is at offset 6");
    insta::assert_snapshot!(refusal(&folder, &["snapshot", "east", "--from", "bytes.yaml"]), @"error: cannot read `bytes.yaml`: it is not UTF-8: the first invalid byte is at offset 6");
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `snapshots/west.json`: it is not UTF-8: the first invalid byte is at offset 8");
}

#[test]
fn refuses_a_link_to_nowhere() {
    let folder = Folder::mesh();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    std::os::unix::fs::symlink("gone", folder.path("snapshots/west.json")).unwrap();
    insta::assert_snapshot!(refusal(&folder, &["render"]), @"error: cannot read `snapshots/west.json`: No such file or directory (os error 2)");
}

#[test]
fn takes_no_file_for_the_tree() {
    let folder = Folder::mesh();
    folder.write("file", "");
    insta::assert_snapshot!(refusal(&folder, &["render", "--rendered", "file"]), @"error: cannot read the folder `file`: not a directory");
}

#[test]
fn takes_no_file_for_the_folder_of_snapshots() {
    let folder = Folder::mesh();
    folder.write("file", "");
    let run = folder.run(&["render", "--snapshots", "file"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "3 clusters have no snapshot in `file`");
}
