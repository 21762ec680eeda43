//! `convert`: a mesh in the other form, and what it renders.

use std::fs;

use serde_json::json;

use super::{Folder, MESH, node};
use crate::support::assert_contains;

#[test]
fn a_mesh_is_converted_there_and_back_without_a_change_of_the_tree() {
    let folder = Folder::rendered();
    let flat = folder.run(&["convert", "--to", "flat"]);
    assert_eq!((flat.code, flat.stderr.as_str()), (0, ""));
    assert!(
        flat.stdout
            .contains("      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]\n")
    );
    folder.write("mesh.yaml", &flat.stdout);
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
    let typed = folder.run(&["convert", "--to", "typed", "mesh.yaml"]);
    assert_eq!((typed.code, typed.stderr.as_str()), (0, ""));
    assert_eq!(typed.stdout, MESH);
    // What has the form already is printed as it is.
    let again = folder.run(&["convert", "--to", "flat"]);
    assert_eq!(again.stdout, flat.stdout);
}

#[test]
fn what_would_be_rendered_differently_is_reported() {
    let folder = Folder::mesh();
    // Both nodes have their internal addresses in a range of the whole cluster.
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.101.0.0/24\n",
        "      wireguardCIDR: 10.101.0.0/24\n      additionalCIDRs: [192.168.1.0/24]\n",
    );
    let run = folder.run(&["convert", "--to", "flat"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "192.168.1.0/24");
    let note =
        "the converted mesh changes rendered Peers: north/prod--east.yaml, west/prod--east.yaml";
    assert_contains(&run.stderr, note);
}

#[test]
fn what_cannot_be_expressed_is_an_error_with_its_place() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n",
        "      allowedNetworks:\n        - 10.1.0.0/16\n        - 10.64.0.0/16\n",
    );
    let mut inside = node(1, 1);
    inside["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.1.200.1/32");
    folder.keep("east", &[inside]);
    let run = folder.run(&["convert", "--to", "typed"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[inconvertible-entry]: `east` has pod CIDRs and WireGuard addresses in 10.1.0.0/16
     --> mesh.yaml:7:13
      |
    7 |     - name: east
      |             ^^^^
    8 |       allowedNetworks:
    9 |         - 10.1.0.0/16
      |           ----------- this range
    help: declare a range for pods, and another one for WireGuard addresses

    1 error
    ");
}

#[test]
fn without_snapshots_the_result_is_not_compared() {
    let folder = Folder::mesh();
    fs::remove_dir_all(folder.path("snapshots")).unwrap();
    let run = folder.run(&["convert", "--to", "flat"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "were not compared");
    let run = folder.run(&["convert", "--to", "typed"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, MESH));
}

#[test]
fn one_of_several_files_is_named() {
    let folder = Folder::mesh();
    fs::create_dir(folder.path("meshes")).unwrap();
    fs::rename(folder.path("mesh.yaml"), folder.path("meshes/prod.yaml")).unwrap();
    folder.write("meshes/empty.yaml", "");
    let run = folder.run(&["convert", "--to", "flat"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("`meshes/empty.yaml`, `meshes/prod.yaml`"),
        "{}",
        run.stderr
    );
    let run = folder.run(&["convert", "--to", "flat", "meshes/prod.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("allowedNetworks"));
    let run = folder.run(&["convert", "--to", "flat", "other.yaml"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "add `--mesh other.yaml`");
}

#[test]
fn a_file_without_a_mesh_is_not_printed() {
    let folder = Folder::mesh();
    for text in ["", "root:x:0:0\nsecret-of-others\n"] {
        folder.write("other.yaml", text);
        let run = folder.run(&["convert", "--to", "flat", "--mesh", "other.yaml"]);
        let error = "error: `other.yaml` contains no ClusterMesh\n";
        assert_eq!((run.code, run.stderr.as_str()), (2, error));
        assert_eq!(run.stdout, "");
    }
}
