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
    help: look up the `--service-cidr` of `east` and write it into the entry: `localNetworks: [10.96.0.0/12]` if it is the default

    notice[undeclared-services]: north: no Services are declared, and 10.96.0.0/16 of `west` meets 10.96.0.0/12, their default range in kubeadm and Talos
      --> mesh.yaml:16:20
       |
    16 |       serviceCIDR: 10.96.0.0/16
       |                    ^^^^^^^^^^^^ declared here
    help: look up the `--service-cidr` of `north` and write it into the entry: `localNetworks: [10.96.0.0/12]` if it is the default
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
