//! Services that no entry declares, where other clusters have ranges.

use super::*;

#[test]
fn the_line_that_the_help_names_settles_it() {
    let folder = Folder::mesh();
    // The WireGuard ranges of the other tests are in the default range of Services.
    for file in ["mesh.yaml", "snapshots/east.json", "snapshots/north.json", "snapshots/west.json"]
    {
        let text = fs::read_to_string(folder.path(file)).unwrap();
        folder.write(file, text.replace("10.10", "10.20"));
    }
    let west = "wireguardCIDR: 10.203.0.0/24";
    folder.edit("mesh.yaml", west, &format!("{west}\n      serviceCIDR: 10.96.0.0/16"));
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @"
    notice[undeclared-services]: east: no Services are declared, and 10.96.0.0/16 of `west` meets 10.96.0.0/12, their default range in kubeadm and Talos
      --> mesh.yaml:16:20
       |
    16 |       serviceCIDR: 10.96.0.0/16
       |                    ^^^^^^^^^^^^ declared here
    help: look up the `--service-cidr` of `east` and write it into the entry: `localNetworks: [10.96.0.0/12]` if it is the default; the range of `west` is then left out in `east` (`captured-network`)

    notice[undeclared-services]: north: no Services are declared, and 10.96.0.0/16 of `west` meets 10.96.0.0/12, their default range in kubeadm and Talos
      --> mesh.yaml:16:20
       |
    16 |       serviceCIDR: 10.96.0.0/16
       |                    ^^^^^^^^^^^^ declared here
    help: look up the `--service-cidr` of `north` and write it into the entry: `localNetworks: [10.96.0.0/12]` if it is the default; the range of `west` is then left out in `north` (`captured-network`)
    ");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for end in ["wireguardCIDR: 10.201.0.0/24", "wireguardCIDR: 10.202.0.0/24"] {
        // Their Services are in another range than the default.
        let local = format!("{end}\n      localNetworks: [10.77.0.0/16]");
        folder.edit("mesh.yaml", end, &local);
    }
    let run = folder.run(&["validate"]);
    insta::assert_snapshot!(run.stdout, @"");
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// The label of k3s decides before the pods, which are often not its default. The advice ends in a config.
#[test]
fn the_services_of_k3s_are_known_by_its_label() {
    let folder = Folder::mesh();
    let west = "wireguardCIDR: 10.103.0.0/24";
    folder.edit("mesh.yaml", west, &format!("{west}\n      serviceCIDR: 10.43.0.0/16"));
    let found = || {
        let report = folder.run(&["validate", "--output", "json"]).json();
        let findings = report["findings"].as_array().unwrap().iter();
        let texts =
            findings.map(|it| format!("{}: {}\nhelp: {}", it["rule"], it["message"], it["help"]));
        texts.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(found(), "");
    let nodes = [1, 2, 3].map(|number| {
        let mut node = node(1, number);
        if number < 3 {
            node["labels"]["node.kubernetes.io/instance-type"] = json!("k3s");
        }
        node
    });
    folder.keep("east", &[nodes[1].clone(), nodes[2].clone()]);
    assert_eq!(found(), "");
    folder.keep("east", &nodes);
    insta::assert_snapshot!(found(), @r#"
    "undeclared-services": "no Services are declared, and 10.43.0.0/16 of `west` meets 10.43.0.0/16, their default range in k3s and RKE2"
    help: "look up the `--service-cidr` of `east` and write it into the entry: `localNetworks: [10.43.0.0/16]` if it is the default; the range of `west` is then left out in `east` (`captured-network`)"
    "#);
    let east = "wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", east, &format!("{east}\n      localNetworks: [10.43.0.0/16]"));
    insta::assert_snapshot!(found(), @r#"
    "captured-network": "10.43.0.0/16 left out: inside 10.43.0.0/16, a local network of east (target east)"
    help: "narrow `localNetworks` of `east` if 10.43.0.0/16 is too wide; if `east` has Services there too, it cannot reach those of `west`: add `captured-network` of `west` to `ignore` in the config"
    "#);
    let ignore = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nignore:\n  - { rule: captured-network, cluster: west, reason: same Services }\n";
    folder.write("clustermesh.yaml", ignore);
    assert_eq!(found(), "");
}
