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
    let effect =
        "192.168.1.0/24 of east would belong to its nodes, and no longer to the whole cluster";
    assert_contains(&run.stderr, effect);
}

/// A pod CIDR in a range that the typed form takes for other networks.
#[test]
fn a_node_that_the_other_form_leaves_out_is_named() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n",
        "      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24, 10.99.0.0/16]\n",
    );
    let mut third = node(1, 3);
    third["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.99.0.3/24");
    folder.keep("east", &[node(1, 1), node(1, 2), third]);
    let run = folder.run(&["convert", "--to", "typed"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stdout, "additionalCIDRs: [10.99.0.0/16]");
    let effect =
        "east/n3 would be left out: WireGuard address 10.99.0.3 is outside the declared ranges";
    assert_contains(&run.stderr, effect);
}

/// The reason is the nodes, not the ranges.
#[test]
fn ranges_of_unknown_use_have_true_reasons() {
    let flat = "      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]\n";
    let typed = "      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n";
    let mut idle = node(1, 1);
    idle["annotations"] = json!({});
    let mut podless = node(1, 1);
    podless["podCIDRs"] = json!([]);
    let run_kilo = "check that Kilo runs in the cluster, then run `clustermesh snapshot east`";
    for (nodes, reason, help) in [
        (
            vec![],
            "has no nodes in its snapshot",
            "run `clustermesh snapshot east`",
        ),
        (vec![idle], "has no node with a WireGuard address", run_kilo),
        (vec![podless], "has no node with a pod CIDR", run_kilo),
    ] {
        let folder = Folder::mesh();
        folder.edit("mesh.yaml", typed, flat);
        folder.keep("east", &nodes);
        let run = folder.run(&["convert", "--to", "typed"]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let finding = format!("`east` {reason}, so the use of its ranges is unknown");
        assert_contains(&run.stderr, &finding);
        assert_contains(&run.stderr, &format!("help: {help}\n"));
    }
    // `snapshot` does not read a cluster that leaves.
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", typed, &format!("      state: Leaving\n{flat}"));
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = folder.run(&["convert", "--to", "typed"]);
    assert_contains(&run.stderr, "`east` is leaving and has no snapshot");
    assert!(
        !run.stderr.contains("clustermesh snapshot"),
        "{}",
        run.stderr
    );
}

/// A node may claim any address.
#[test]
fn one_node_does_not_decide_the_use_of_a_range() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n",
        "      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]\n",
    );
    let mut liar = node(1, 3);
    liar["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.1.200.1/24");
    folder.keep("east", &[node(1, 1), node(1, 2), liar]);
    let run = folder.run(&["convert", "--to", "typed"]);
    assert_contains(
        &run.stdout,
        "podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n",
    );
}

/// Only ranges of the whole cluster have anchors, and a flat list does not contain which these are.
#[test]
fn a_result_that_would_be_invalid_is_refused_for_that() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24\n",
        "      allowedNetworks: [10.1.1.0/24, 10.1.2.0/24, 10.101.0.0/24]\n      granularity: Location\n      \
         advertise: { podCIDRs: Declared }\n      anchors: [{ ranges: [10.1.1.0/24], nodes: [n1] }]\n",
    );
    let run = folder.run(&["convert", "--to", "typed"]);
    let reason = "`east` would be invalid in the typed form: no anchor of `east` names a node for 10.1.2.0/24";
    assert_contains(&run.stderr, reason);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
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
