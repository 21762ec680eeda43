//! `acceptedNetworks` in a policy: the owner of a cluster decides which ranges it routes to others.

use crate::cli::Folder;

#[test]
fn only_what_it_takes_is_rendered_for_a_cluster() {
    let folder = Folder::rendered();
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec:\n  acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16]\n";
    folder.write("policies/west.yaml", policy);
    let before = folder.read("rendered/north/prod--east.yaml");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    warning[unaccepted-range]: east: 10.1.2.0/24 left out: not in `acceptedNetworks` (target west), where Peers have them now
     --> mesh.yaml:8:18
      |
    8 |       podCIDRs: [10.1.0.0/16]
      |                  ^^^^^^^^^^^ declared here
      |
     ::: policies/west.yaml:4:22
      |
    4 |   acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16]
      |                      ----------- does not contain it
    help: to accept it, add 10.1.2.0/24 to `acceptedNetworks` of `west` in `policies/west.yaml`
    warning[unaccepted-range]: east: 10.101.0.1/32, 10.101.0.2/32 left out: not in `acceptedNetworks` (target west), where Peers have them now
     --> mesh.yaml:9:22
      |
    9 |       wireguardCIDR: 10.101.0.0/24
      |                      ^^^^^^^^^^^^^ declared here
      |
     ::: policies/west.yaml:4:22
      |
    4 |   acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16]
      |                      ----------- does not contain it
    help: to accept them, add 10.101.0.0/24 to `acceptedNetworks` of `west` in `policies/west.yaml`

    warning[unaccepted-range]: north: 10.102.0.1/32, 10.102.0.2/32 left out: not in `acceptedNetworks` (target west), where Peers have them now
      --> mesh.yaml:12:22
       |
    12 |       wireguardCIDR: 10.102.0.0/24
       |                      ^^^^^^^^^^^^^ declared here
       |
      ::: policies/west.yaml:4:22
       |
     4 |   acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16]
       |                      ----------- does not contain it
    help: to accept them, add 10.102.0.0/24 to `acceptedNetworks` of `west` in `policies/west.yaml`

    west: +0 ~2 -0 files, 3 Peers of 2 clusters (+0 ~3 -1)
    2 targets unchanged
    11 Peers in 3 targets
    ");
    let ranges = folder.read("rendered/west/prod--east.yaml");
    let ranges: Vec<&str> = ranges.lines().filter(|it| it.starts_with("  - \"")).collect();
    insta::assert_snapshot!(ranges.join("\n"), @r#"  - "10.1.1.0/24""#);
    assert_eq!(folder.read("rendered/north/prod--east.yaml"), before);
    let verified = folder.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}
