//! Peers of the operator and of `kgctl` that are replaced by rendered ones.

use super::*;
use crate::support::assert_contains;

const LABEL: &str = "app.kubernetes.io/managed-by";

/// What `west` has: rendered Peers, without the label of clustermesh.
fn peers(folder: &Folder) -> String {
    let files = ["east", "north"].map(|it| folder.read(&format!("rendered/west/prod--{it}.yaml")));
    let text = files.join("---\n");
    without(&text, &[LABEL])
}

/// The lines that contain none of these parts.
fn without(text: &str, parts: &[&str]) -> String {
    let is_kept = |line: &&str| !parts.iter().any(|it| line.contains(it));
    text.split_inclusive('\n').filter(is_kept).collect()
}

fn compared(folder: &Folder, peers: &str) -> Value {
    let arguments = ["diff", "--peers", "west=-", "--output", "json"];
    let run = folder.run_with_input(&arguments, peers);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

#[test]
fn peers_of_the_flat_generation_do_not_change() {
    let folder = Folder::rendered();
    let changes = compared(&folder, &peers(&folder));
    assert_eq!(changes["grade"], "none");
    assert_eq!(changes["causes"], json!([]));
    assert_eq!(changes["targets"], json!([]));
}

/// The oldest generation gives no address in the WireGuard range of another cluster.
#[test]
fn ranges_that_are_missing_are_gained() {
    let folder = Folder::rendered();
    let peers = peers(&folder);
    let peers = without(&peers, &["10.101.0."]);
    let changes = compared(&folder, &peers);
    let gained = |peer: usize| changes["targets"][0]["peers"][peer]["gained"].clone();
    assert_eq!(gained(0), json!(["10.101.0.1/32"]));
    assert_eq!(gained(1), json!(["10.101.0.2/32"]));
    assert_eq!(changes["targets"][0]["changed"], 2);
    assert_ne!(changes["grade"], "none");
}

/// The typed generation has a second Peer with the key of a node, for the services.
#[test]
fn the_anchor_of_the_typed_generation_is_named_with_its_cure() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      serviceCIDR: 10.96.0.0/16",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let peers = peers(&folder);
    let range = "  - \"10.96.0.0/16\"\n";
    assert_contains(&peers, range);
    let first = peers.split("---\n").next().unwrap();
    let anchor = first.replace("prod--east--n1", "prod--east--anchor");
    let anchor = without(&anchor, &["\"10.1.1.0/24\"", "\"10.101.0.1/32\""]);
    let peers = format!("{}---\n{anchor}", peers.replace(range, ""));
    let changes = compared(&folder, &peers);
    let target = &changes["targets"][0];
    assert_eq!(target["removed"], 1);
    assert_eq!(target["keyMoves"][0]["peers"], json!(["prod--east--anchor", "prod--east--n1"]));
    // The survivor changes, so an apply restores its key.
    insta::assert_snapshot!(target["keyMoves"][0]["help"].as_str().unwrap(), @"with Argo CD, set `PrunePropagationPolicy=background` in the Application of west before this change; with Flux or kubectl, after the change, run `kubectl --context west annotate peers --overwrite prod--east--n1 touched=1`");
    assert_eq!(changes["grade"], "disruptive");
    // It does not change, as it has the range already.
    let changes = compared(&folder, &format!("{}---\n{anchor}", self::peers(&folder)));
    let target = &changes["targets"][0];
    assert_eq!((&target["removed"], &target["changed"]), (&json!(1), &json!(0)));
    insta::assert_snapshot!(target["keyMoves"][0]["help"].as_str().unwrap(), @"after the change, run `kubectl --context west annotate peers --overwrite prod--east--n1 touched=1`");
    assert_eq!(changes["grade"], "disruptive");
}

#[test]
fn peers_of_kgctl_are_recognised_by_their_keys() {
    let folder = Folder::rendered();
    let peers = peers(&folder).replace("prod--east--n", "n");
    let changes = compared(&folder, &peers);
    let target = &changes["targets"][0];
    let renamed = |it: &Value| (it["name"].clone(), it["change"].clone(), it["renamed"].clone());
    let renamed: Vec<_> = target["peers"].as_array().unwrap().iter().map(renamed).collect();
    let expected = [
        ("n1", "removed", "prod--east--n1"),
        ("n2", "removed", "prod--east--n2"),
        ("prod--east--n1", "added", "n1"),
        ("prod--east--n2", "added", "n2"),
    ];
    let expected = expected.map(|(name, change, other)| (json!(name), json!(change), json!(other)));
    assert_eq!(renamed, expected);
    assert_eq!(changes["grade"], "disruptive");
    insta::assert_snapshot!(target["keyMoves"][0]["help"].as_str().unwrap(), @"with Argo CD, set `PrunePropagationPolicy=background` in the Application of west before this change; with Flux or kubectl, after the change, run `kubectl --context west annotate peers --overwrite prod--east--n1 touched=1`");
}

/// A person can move an entry to the other form of the operator.
#[test]
fn the_other_form_of_an_entry_changes_no_peer() {
    let repository = Repository::committed();
    for (pods, wireguard) in [("10.1.0.0/16", "10.101.0.0/24"), ("10.3.0.0/16", "10.103.0.0/24")] {
        repository.folder.edit(
            "mesh.yaml",
            &format!("podCIDRs: [{pods}]\n      wireguardCIDR: {wireguard}\n"),
            &format!("allowedNetworks: [{pods}, {wireguard}]\n"),
        );
    }
    let run = repository.diff(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_contains(&run.stdout, "No Peer changes");
}
