//! Entries of clusters with mistakes, which leave these clusters out.

use super::*;

/// Everything else that could be reported follows from the mistake.
#[test]
fn a_mistake_in_an_entry_is_all_that_is_reported_about_its_cluster() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.102.0.0/24\n", "10.102.0.0/24\n      mtu: 1380\n");
    for command in [
        &["firewall", "north"][..],
        &["status", "north"],
        &["guard", "north"],
        &["explain", "north/n1"],
        &["graph", "north"],
        &["trace", "north", "east"],
        &["trace", "east", "north/n1"],
    ] {
        if cfg!(not(feature = "snapshot")) && command[0] == "status" {
            continue;
        }
        insta::allow_duplicates! {
            insta::assert_snapshot!(folder.refusal(1, |it| it.run(command)), @"
            error[invalid-type]: `mtu` must be a mapping, not `1380`
              --> mesh.yaml:13:12
               |
            13 |       mtu: 1380
               |            ^^^^
            help: write a mapping; its fields are `internal`, `pods`, `underlay`

            1 error
            ");
        }
    }
}

#[test]
fn the_peers_of_a_cluster_with_a_mistake_in_its_entry_are_not_those_of_a_stranger() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.102.0.0/24\n", "10.102.0.0/24\n      mtu: 1380\n");
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1);
    let findings = run.stdout.split_once("error[").unwrap().1;
    insta::assert_snapshot!(findings, @"
    invalid-type]: `mtu` must be a mapping, not `1380` (2 other findings follow from it)
      --> mesh.yaml:13:12
       |
    13 |       mtu: 1380
       |            ^^^^
    help: write a mapping; its fields are `internal`, `pods`, `underlay`

    Problems were found. All 8 declared paths work in both directions. north was not checked, because its entry has a mistake.
    ");
}
