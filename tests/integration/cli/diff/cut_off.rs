//! A cluster that its own nodes cut off from all others.

use super::*;
use crate::support::assert_contains;

/// Its nodes report internal addresses of a family in which no other cluster has ranges.
#[test]
fn the_loss_of_all_peers_is_destructive() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "podCIDRs: [10.2.0.0/16]", "podCIDRs: [10.2.0.0/16, 'fd00:2::/48']");
    let repository = Repository::of(folder);
    let folder = &repository.folder;
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    let nodes = [1, 2].map(|it| {
        let mut node = node(2, it);
        node["annotations"]["kilo.squat.ai/internal-ip"] = json!(format!("fd00:2::{it}/64"));
        node
    });
    folder.keep("north", &nodes);
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "error[cut-off-cluster]: north: gets no Peers");
    // The loss of the Peers of each source follows from it.
    assert!(!run.stdout.contains("[shrunk-source]"), "{}", run.stdout);
    assert_eq!(run.code, 1);
    // It must not stop the others.
    let run = folder.run(&["render"]);
    assert_contains(&run.stderr, "warning[cut-off-cluster]: north: ");
    assert_eq!(run.code, 0);
    let run = folder.run(&["diff", "--output", "json"]);
    let diff = run.json();
    assert_eq!(diff["grade"], "destructive");
    let run = folder.run(&["verify", "--held-back", "HEAD"]);
    assert_eq!(run.stdout, "north\n");
}
