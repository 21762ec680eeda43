//! `acceptedNetworks` in the config: the administrators of a cluster decide which ranges it routes
//! to others.

use crate::cli::Folder;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";

/// Three rendered clusters, of which one takes this.
fn taking(clusters: &str) -> Folder {
    let folder = Folder::rendered();
    folder.write("clustermesh.yaml", format!("{HEAD}clusters:\n{clusters}"));
    folder
}

#[test]
fn only_what_it_takes_is_rendered_for_a_cluster() {
    let folder = taking("  west: { acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16] }\n");
    let before = folder.read("rendered/north/prod--east.yaml");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    notice[unaccepted-range]: east: 10.1.2.0/24 left out: not in `acceptedNetworks` (target west)
     --> mesh.yaml:8:18
      |
    8 |       podCIDRs: [10.1.0.0/16]
      |                  ^^^^^^^^^^^ declared here
      |
     ::: clustermesh.yaml:4:30
      |
    4 |   west: { acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16] }
      |                              ----------- does not contain it
    notice[unaccepted-range]: east: 10.101.0.1/32, 10.101.0.2/32 left out: not in `acceptedNetworks` (target west)
     --> mesh.yaml:9:22
      |
    9 |       wireguardCIDR: 10.101.0.0/24
      |                      ^^^^^^^^^^^^^ declared here
      |
     ::: clustermesh.yaml:4:30
      |
    4 |   west: { acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16] }
      |                              ----------- does not contain it
    notice[unaccepted-range]: north: 10.102.0.1/32, 10.102.0.2/32 left out: not in `acceptedNetworks` (target west)
      --> mesh.yaml:12:22
       |
    12 |       wireguardCIDR: 10.102.0.0/24
       |                      ^^^^^^^^^^^^^ declared here
       |
      ::: clustermesh.yaml:4:30
       |
     4 |   west: { acceptedNetworks: [10.1.1.0/24, 10.2.0.0/16] }
       |                              ----------- does not contain it
    help: to accept them, add ranges to `acceptedNetworks` in `clustermesh.yaml` that contain all their addresses

    west: +0 ~2 -0 files, 3 Peers of 2 clusters (+0 ~3 -1)
    2 targets unchanged
    11 Peers in 3 targets
    ");
    let ranges = folder.read("rendered/west/prod--east.yaml");
    let ranges: Vec<&str> = ranges
        .lines()
        .filter(|it| it.starts_with("  - \""))
        .collect();
    insta::assert_snapshot!(ranges.join("\n"), @r#"  - "10.1.1.0/24""#);
    assert_eq!(folder.read("rendered/north/prod--east.yaml"), before);
    let verified = folder.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_slip_in_the_name_of_a_cluster_is_reported() {
    let folder = taking("  wets: { acceptedNetworks: [10.1.0.0/16] }\n");
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout, @"clustermesh.yaml:4:3: warning[unnamed-cluster] no mesh contains a cluster `wets`");
}

#[test]
fn what_is_wrong_with_a_list_is_reported() {
    let folder = taking(
        "  west: { acceptedNetworks: [10.1.0.0/33, 10.2.0.1/16] }\n  east: { acceptedNetworks: [] }\n",
    );
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout + &run.stderr, @"clustermesh.yaml:5:29: error[invalid-value] `acceptedNetworks` needs at least 1 item, not 0");
    let folder = taking("  west: { acceptedNetworks: [10.0.0.1/8] }\n");
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout + &run.stderr, @"clustermesh.yaml:4:30: warning[host-bits] `10.0.0.1/8` has host bits set; clustermesh reads it as 10.0.0.0/8");
}
