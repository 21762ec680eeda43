//! Mistakes that are in no single entry: in the settings of a mesh, or between clusters.

use super::*;

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
