//! `init --plan`: free ranges for clusters that do not exist yet.

use serde_json::json;

use crate::cli::{Folder, api_node};
use crate::support::assert_contains;

/// Everything that is known takes its ranges: clusters, their networks and nodes, external peers and other meshes.
#[test]
fn planned_ranges_overlap_nothing_that_is_known() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.101.0.0/24\n",
        "      wireguardCIDR: 10.101.0.0/24\n      additionalCIDRs: [10.16.0.0/24]\n      localNetworks: [10.17.0.0/16]\n",
    );
    folder.edit("snapshots/west.json", "192.168.3.1/24", "10.18.0.1/24");
    folder.edit("snapshots/west.json", "198.18.113.31", "10.19.0.2");
    let before = folder.touches(".");
    let run = folder.run(&["init", "--plan", "south", "polar", "--plan-sizes", "16,20,24"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(folder.touches("."), before);
    let (south, polar) = run.stdout.split_once("# polar: the entry").unwrap();
    insta::assert_snapshot!(south, @"
    # south: the entry in spec.clusters of the mesh
        - name: south
          state: Joining
          podCIDRs: [10.20.0.0/16]
          serviceCIDR: 10.16.16.0/20
          wireguardCIDR: 10.16.1.0/24

    # south: Kilo
    --subnet=10.16.1.0/24

    # south: k3s, /etc/rancher/k3s/config.yaml of each server, before the first start
    cluster-cidr: 10.20.0.0/16
    service-cidr: 10.16.16.0/20
    cluster-dns: 10.16.16.10

    # south: kubeadm, in the ClusterConfiguration
    networking:
      podSubnet: 10.20.0.0/16
      serviceSubnet: 10.16.16.0/20

    # south: Talos, in the configuration of each machine
    cluster:
      network:
        podSubnets: [10.20.0.0/16]
        serviceSubnets: [10.16.16.0/20]

    # south: Cozystack 1, in spec.components.platform.values of the Package, beside the settings of Talos
    networking:
      podCIDR: 10.20.0.0/16
      podGateway: 10.20.0.1
      serviceCIDR: 10.16.16.0/20
    ");
    assert_contains(polar, "cluster-cidr: 10.21.0.0/16\n");
    assert_eq!(
        folder.run(&["init", "--plan", "south", "polar", "--plan-sizes=16,20,24"]).stdout,
        run.stdout
    );
    // The entry and the settings of k3s work as they are.
    let entry: Vec<&str> = south
        .split_inclusive('\n')
        .skip_while(|it| !it.starts_with("    - name"))
        .take_while(|it| *it != "\n")
        .collect();
    folder.write("mesh.yaml", folder.read("mesh.yaml") + &entry.concat());
    let mut node = api_node(4, 1);
    node["spec"]["podCIDR"] = json!("10.20.1.0/24");
    node["spec"]["podCIDRs"] = json!(["10.20.1.0/24"]);
    node["metadata"]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.16.1.1/24");
    folder.write("south.json", json!({ "kind": "NodeList", "items": [node] }).to_string());
    assert_eq!(folder.run(&["snapshot", "--from=south=south.json"]).code, 0);
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(!run.stdout.contains("south"), "{}", run.stdout);
}

#[test]
fn a_plan_needs_no_mesh() {
    let folder = Folder::empty();
    let run = folder.run(&["init", "--plan", "east", "west"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_contains(&run.stdout, "      wireguardCIDR: 10.18.0.0/16\n");
    assert_contains(&run.stdout, "      podCIDRs: [10.19.0.0/16]\n");
    assert!(folder.touches(".").is_empty());
}

#[test]
fn a_plan_that_is_impossible_is_refused() {
    let folder = Folder::mesh();
    let refused =
        |arguments: &[&str]| folder.refusal(2, |it| it.run(&[&["init"], arguments].concat()));
    let names: Vec<String> = (0..90).map(|it| format!("c{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let texts = [
        refused(&["--plan", "east"]),
        refused(&["--plan", "south", "south"]),
        refused(&[&["--plan"], &names[..]].concat()),
    ];
    insta::assert_snapshot!(texts.concat(), @"
    error: --plan: `east` is already a cluster of a mesh
    error: --plan names `south` twice
    error: --plan: no range in 10.0.0.0/8 is free for `c73`; take longer prefixes with --plan-sizes
    ");
    for arguments in [
        &["--plan", "south", "--plan-sizes", "16,16"][..],
        &["--plan", "south", "--ci", "github"],
        &["--plan-sizes", "16,16,16"],
        &["--plan", "-x"],
    ] {
        assert_eq!(folder.run(&[&["init"], arguments].concat()).code, 2, "{arguments:?}");
    }
}
