//! Paths that are no longer proved although no Peer changes, because an entry of the mesh changes.

use super::*;
use crate::support::assert_contains;

/// The statement that `east` and `west` are in one network.
const LAN: &str = "\n      underlays: [{ name: lan, cidrs: [192.168.0.0/16] }]";

/// The lines of both entries before it.
const ENDS: [&str; 2] = ["wireguardCIDR: 10.101.0.0/24", "wireguardCIDR: 10.103.0.0/24"];

/// A repository in which `east` and `west` dial each other at private addresses of one network. `north` dials both at
/// public addresses.
fn repository() -> Repository {
    let folder = Folder::mesh();
    for (cluster, end) in [(1, ENDS[0]), (3, ENDS[1])] {
        let mut node = node(cluster, 1);
        let address = format!("192.168.{cluster}.1");
        node["addresses"] = json!([{ "address": address, "type": "InternalIP" }]);
        node["annotations"]["kilo.squat.ai/clustermesh-endpoint"] =
            json!(format!("{address}:51820"));
        folder.keep(if cluster == 1 { "east" } else { "west" }, &[node]);
        folder.edit("mesh.yaml", end, &format!("{end}{LAN}"));
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

#[test]
fn paths_that_an_entry_no_longer_proves_are_disruptive() {
    let repository = repository();
    repository.folder.edit("mesh.yaml", &format!("{}{LAN}", ENDS[1]), ENDS[1]);
    let run = repository.diff(&["--fail-on", "disruptive"]);
    insta::assert_snapshot!(run.stdout, @"
    `underlays` of west removed: `lan: 192.168.0.0/16` (mesh.yaml:14)
        no Peer changes because of this alone

    TARGET  GRADE       BEFORE  ADDED  CHANGED  REMOVED  NOW
    east    disruptive       3      0        0        0    3
    west    disruptive       3      0        0        0    3

    east, west: disruptive
      2 declared paths were proved, and are only assumed to work afterwards; `clustermesh verify` names the assumption

    east → west: 1 declared path no longer proved, only assumed to work, because `underlays` of west changed
    west → east: 1 declared path no longer proved, only assumed to work, because `underlays` of west changed

    changed: `underlays` of west in the mesh prod removed: lan: 192.168.0.0/16 (mesh.yaml:17 before)

    disruptive: Paths are lost, no longer proved, or interrupted for more than 30 seconds.
    No Peer changes compared with HEAD (3 clusters). 1 control changed and none is weaker.
    ");
    assert_eq!(run.code, 1, "{}", run.stderr);
    let markdown = repository.diff(&["--output", "markdown"]).stdout;
    assert_contains(&markdown, "### clustermesh diff: disruptive");
    assert_contains(&markdown, "because `underlays` of west changed");
    let changes = repository.diff(&["--output", "json"]).json();
    assert_eq!(
        changes["causes"][0]["message"],
        "`underlays` of west removed: `lan: 192.168.0.0/16` (mesh.yaml:14)"
    );
    assert_eq!(changes["paths"][0]["noLongerProved"]["declared"], 1, "{changes:#}");
    // In the other direction, nothing ends.
    repository.commit();
    repository.folder.edit("mesh.yaml", ENDS[1], &format!("{}{LAN}", ENDS[1]));
    let run = repository.diff(&["--fail-on", "additive"]);
    insta::assert_snapshot!(run.stdout, @"
    `underlays` of west added: `lan: 192.168.0.0/16` (mesh.yaml:17)
        no Peer changes because of this alone

    changed: `underlays` of west in the mesh prod added: lan: 192.168.0.0/16 (mesh.yaml:17)
    No Peer changes compared with HEAD (3 clusters). 1 control changed and none is weaker.
    ");
    assert_eq!(run.code, 0);
}
