//! Mistakes that are in no single entry: in the settings of a mesh, or between clusters.

use super::*;

#[test]
fn a_topology_that_does_not_link_two_clusters_is_the_cause() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [east] }\n");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["trace", "north", "west"]);
    assert_eq!(run.code, 1);
    let finding = run.stdout.split_once("error[").unwrap().1;
    insta::assert_snapshot!(finding, @"
    no-route]: no Peer of north contains 10.3.1.2
     --> mesh.yaml:6:32
      |
    6 |   topology: { mode: Hub, hubs: [east] }
      |                                ^^^^^^ does not link the two clusters
    ");
}

#[test]
fn a_rendered_folder_with_what_is_rendered_from() {
    let folder = Folder::rendered();
    for rendered in [".", "snapshots"] {
        for command in ["validate", "render"] {
            let refusal = folder.refusal(2, |it| it.run(&[command, "--rendered", rendered]));
            assert_contains(
                &refusal,
                &format!("error: the rendered folder `{rendered}` contains the "),
            );
        }
    }
    let refusal = folder.refusal(2, |it| it.run(&["validate", "--rendered", "."]));
    insta::assert_snapshot!(refusal, @"error: the rendered folder `.` contains the mesh `mesh.yaml`; set `rendered` to a folder of its own");
}
