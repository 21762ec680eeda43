//! Clusters and files that are in only one of the two versions.

use std::fs;

use super::*;
use crate::support::assert_contains;

/// Most keys of the old one are in the new one, which also has new nodes and the keys of a cluster that stays.
#[test]
fn a_renamed_cluster_may_have_more_nodes() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    folder.edit("mesh.yaml", "name: west", "name: orient");
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let mut nodes: Vec<Value> = (1..=7).map(|it| node(3, it)).collect();
    for number in 1..=2 {
        let key = &node(1, number)["annotations"]["kilo.squat.ai/key"];
        nodes[4 + usize::from(number)]["annotations"]["kilo.squat.ai/key"] = key.clone();
    }
    folder.keep("orient", &nodes);
    let reinstalled = [1, 2].map(|number| {
        let mut node = node(1, number);
        node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([200 + number; 32]));
        node
    });
    folder.keep("east", &reinstalled);
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "cluster west is now called orient\n");
    let run = repository.diff(&["--against", "old"]);
    assert_contains(&run.stderr, "cluster west is now called orient: ");
}

/// Its Peers and those of its nodes change their names, and nothing is lost.
#[test]
fn a_renamed_cluster_is_known_without_its_mesh() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    folder.edit("mesh.yaml", "name: west", "name: orient");
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    folder.keep("orient", &[node(3, 1), node(3, 2)]);
    let targets = |arguments: &[&str]| {
        let run = repository.diff(&[arguments, &["--output", "json"]].concat());
        run.json()["targets"].clone()
    };
    let with_mesh = targets(&[]);
    assert_eq!(with_mesh.as_array().unwrap().len(), 2);
    let without_causes = |mut targets: Value| {
        for target in targets.as_array_mut().unwrap() {
            for peer in target["peers"].as_array_mut().unwrap() {
                peer["causes"] = json!([]);
            }
        }
        targets
    };
    let against = targets(&["--against", "old"]);
    assert_eq!(without_causes(against), without_causes(with_mesh));
    let note = "cluster west is now called orient: its nodes have the same keys; its Kustomization or Application must \
                apply the folder `orient`";
    let run = repository.diff(&["--against", "old"]);
    assert!(run.stderr.starts_with(&format!("note: {note}\n")), "{}", run.stderr);
    let page = repository.diff(&["--against", "old", "--output", "markdown"]).stdout;
    assert_contains(&page, &format!("\nnote: {note}\n"));
    let changes = repository.diff(&["--against", "old", "--output", "json"]).json();
    assert_eq!(changes["notes"][0], json!(note));
    // Half of the Peers have other keys.
    let mut other = node(3, 2);
    other["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([99; 32]));
    folder.keep("orient", &[node(3, 1), other]);
    assert_eq!(repository.grade(&["--against", "old"]), "destructive");
}

#[test]
fn a_cluster_that_left_is_read_if_its_peers_are_given() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let peers = |cluster: &str, sources: [&str; 2]| {
        let files = sources.map(|it| folder.read(&format!("rendered/{cluster}/prod--{it}.yaml")));
        files.join("---\n")
    };
    let foreign = "---\napiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: laptop }\nspec:\n  \
                   allowedIPs: [192.0.2.128/32]\n  publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=\n";
    folder.write("north.yaml", peers("north", ["east", "west"]) + foreign);
    folder.write("west.yaml", peers("west", ["east", "north"]));
    folder.edit("mesh.yaml", NORTH, "");
    let allowed = ["render", "--allow-empty", "north", "--allow-empty", "*/north"];
    assert_eq!(folder.run(&allowed).code, 0);
    let run = repository.diff(&["--peers", "north=north.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr, "note: no mesh contains north, so it counts as a cluster that left\n");
    let of_north = "north: destructive\n  it loses all of its Peers\n  4 Peers removed\n";
    assert_contains(&run.stdout, of_north);
    assert_contains(&run.stdout, "north has the Peer laptop, which belongs to no mesh\n");
    assert_eq!(repository.grade(&["--peers", "north=north.yaml"]), "destructive");
    // It keeps its Peers, and only those of others show that it was there.
    let run = repository.diff(&["--peers", "west=west.yaml"]);
    let note = "note: no mesh contains north, so its own Peers were not read; to see what it loses, add --peers north=FILE \
                with the output of `kubectl get peers -o yaml`\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, note));
    let both = ["--peers", "west=west.yaml", "--peers", "north=north.yaml"];
    let run = repository.diff(&both);
    assert_eq!(run.stderr, "note: no mesh contains north, so it counts as a cluster that left\n");
    assert_contains(&run.stdout, of_north);
    // A file can have an object twice, and both are foreign.
    folder.write("north.yaml", folder.read("north.yaml") + foreign);
    let run = repository.diff(&["--peers", "north=north.yaml", "--output", "json"]);
    let targets = run.json()["targets"].clone();
    let mut targets = targets.as_array().unwrap().iter();
    let north = targets.find(|it| it["cluster"] == "north").unwrap();
    assert_eq!(north["peersBefore"], 4);
    let run = folder.run(&["diff", "--peers", "wes=west.yaml"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "did you mean `west`?");
    // Other commands have no version in which it was there, and nothing is its name.
    for command in ["verify", "diff"] {
        let name = if command == "diff" { "North" } else { "north" };
        let run = folder.run(&[command, "--peers", &format!("{name}=north.yaml")]);
        assert_eq!(run.code, 2, "{command}");
        assert_contains(&run.stderr, &format!("no mesh contains a cluster `{name}`"));
    }
}

/// Otherwise a tree that has moved would be a new one, which only gains.
#[test]
fn a_commit_that_has_its_mesh_elsewhere_is_refused() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    for name in ["mesh.yaml", "snapshots", "rendered"] {
        fs::create_dir_all(folder.path("net")).unwrap();
        fs::rename(folder.path(name), folder.path(&format!("net/{name}"))).unwrap();
    }
    let refused = |arguments: &[&str]| {
        let run = repository.diff_in("net", arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        run.stderr
    };
    insta::assert_snapshot!(refused(&[]), @"error: `HEAD` has no mesh and no rendered tree here, so its Peers are unknown; compare with another commit (--against REV), with a rendered folder (--against DIR) or with the clusters (--live), or with nothing if nothing was applied yet (--against none)");
    assert_eq!(refused(&["--output", "markdown"]), refused(&["--fail-on", "brief"]));
    let run = repository.diff_in("net", &["--against", "none"]);
    let note = "note: all Peers count as new (--against none)\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, note));
    assert_contains(&run.stdout, "compared with nothing: +12 ~0 -0 Peers.\n");
    repository.git(&["worktree", "add", "--quiet", "before", "HEAD"]);
    let run = repository.diff_in("net", &["--against", "../before/rendered"]);
    assert_eq!(run.stdout, "No Peer changes compared with ../before/rendered (3 clusters).\n");
}

/// A folder does not show that the old keys worked, and the new ones do not.
#[test]
fn a_cluster_that_is_cut_off_with_new_keys_is_graded_as_with_its_snapshot() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let reinstalled = |shift: u8| {
        let nodes = [1, 2].map(|number| {
            let mut node = node(3, number);
            node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([shift + number; 32]));
            node
        });
        folder.keep("west", &nodes);
    };
    reinstalled(200);
    assert_eq!(repository.grade(&["--against", "old"]), "brief");
    assert_eq!(repository.grade(&[]), "brief");
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      wireguardPort: 51999",
    );
    let of = |arguments: &[&str]| {
        let changes = repository.diff(&[&["--output", "json"], arguments].concat());
        let changes = changes.json();
        let targets = changes["targets"].as_array().unwrap();
        let targets = targets.iter();
        let targets = targets.map(|it| format!("{}: {}", it["cluster"], it["grade"]));
        targets.collect::<Vec<_>>()
    };
    assert_eq!(of(&["--against", "old"]), of(&[]));
    assert_eq!(repository.grade(&[]), "destructive");
}

/// To search it for a snapshot would take too long.
#[test]
fn the_history_of_a_large_repository_is_unknown() {
    let repository = Repository::of(Folder::empty());
    let folder = &repository.folder;
    let commit = "commit refs/heads/main\ncommitter a <a@b> 1 +0000\ndata 0\n\n";
    folder.write("history", commit.repeat(100_000));
    let status = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(folder.path("."))
        .stdin(fs::File::open(folder.path("history")).unwrap())
        .status();
    assert!(status.unwrap().success());
    fs::remove_file(folder.path("history")).unwrap();
    folder.write("mesh.yaml", MESH);
    repository.commit();
    let other = Folder::mesh();
    crate::support::copy(&other.path("snapshots"), &folder.path("snapshots"));
    assert_contains(&repository.refusal(&[]), "`HEAD` cannot be rendered");
}

/// As with the plugin of Argo CD, if the mesh came first: nothing could be rendered yet.
#[test]
fn the_first_snapshots_are_compared_with_nothing() {
    let other = Folder::mesh();
    let repository = Repository::of(Folder::empty());
    let folder = &repository.folder;
    folder.write("mesh.yaml", MESH);
    folder.write("north.json/note", "");
    repository.commit();
    crate::support::copy(&other.path("snapshots"), &folder.path("snapshots"));
    let run = repository.diff(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "note: neither `HEAD` nor any commit before it has a snapshot, so nothing was rendered and all Peers are new\n"
    );
    assert_contains(&run.stdout, ": +12 ~0 -0 Peers.\n");
    assert_eq!(repository.grade(&["--against", "main..."]), "additive");
    let url = format!("file://{}", repository.folder.0.path().display());
    repository.git(&["clone", "--quiet", "--depth=1", &url, "clone"]);
    crate::support::copy(&other.path("snapshots"), &folder.path("clone/snapshots"));
    let run = repository.diff_in("clone", &[]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    // The snapshots may be those of another repository.
    let head = repository.git(&["rev-parse", "HEAD"]);
    fs::remove_dir_all(folder.path("snapshots")).unwrap();
    let submodule = format!("160000,{},snapshots", head.trim());
    repository.git(&["update-index", "--add", "--cacheinfo", &submodule]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    crate::support::copy(&other.path("snapshots"), &folder.path("snapshots"));
    assert_contains(&repository.refusal(&[]), "cannot be rendered");
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    // Clusters have what an earlier commit gave, with snapshots in another folder.
    fs::remove_dir_all(folder.path("clone")).unwrap();
    fs::remove_dir_all(folder.path("snapshots")).unwrap();
    folder.write("a/b/west.json", "{}");
    repository.commit();
    fs::remove_dir_all(folder.path("a")).unwrap();
    repository.commit();
    crate::support::copy(&other.path("snapshots"), &folder.path("snapshots"));
    let variables = [("GIT_LITERAL_PATHSPECS", "1")];
    assert_eq!(repository.diff_with(&variables, &[]).code, 2);
    assert_contains(&repository.refusal(&[]), "cannot be rendered");
}

/// A node without a Peer of its own leaves, so only the Peer of its leader loses a range. No snapshot shows that the
/// range was used.
#[test]
fn ranges_that_no_peer_has_count_as_lost_without_snapshots() {
    let folder = Folder::mesh();
    let located = |number| {
        let mut node = node(3, number);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        node
    };
    folder.keep("west", &[located(1), located(2), located(3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.keep("west", &[located(1), located(2)]);
    assert_eq!(repository.grade(&["--against", "old"]), "disruptive");
    // The old snapshots show that the node and its paths are gone.
    assert_eq!(repository.grade(&[]), "cleanup");
    let text = repository.diff(&["--against", "old"]).stdout;
    let reason = "\n  Peers lose 1 range that no other Peer of the same cluster has\n";
    assert_contains(&text, reason);
    // Another Peer that has it leads to it as before.
    let mut second = located(2);
    second["podCIDRs"] = json!(["10.3.2.0/23"]);
    repository.folder.keep("west", &[located(1), second]);
    let text = repository.diff(&["--against", "old"]).stdout;
    assert!(!text.contains("Peers lose"), "{text}");
}

/// What another cluster has now is lost for the one that had it. What another range of the Peer covers is not.
#[test]
fn ranges_are_lost_for_their_source() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let manifest = "old/north/prod--west.yaml";
    let old = |range: &str| {
        let _ = fs::remove_dir_all(folder.path("old"));
        crate::support::copy(&folder.path("rendered"), &folder.path("old"));
        folder.edit(manifest, "  allowedIPs:\n", &format!("  allowedIPs:\n  - {range}\n"));
        repository.diff(&["--against", "old"]).stdout
    };
    assert!(!old("10.3.1.0/25").contains("Peers lose"));
    let reason = "\n  Peers lose 1 range that no other Peer of the same cluster has\n";
    assert_contains(&old("10.77.0.0/24"), reason);
    folder.edit(
        "mesh.yaml",
        "    - name: east\n",
        "    - name: east\n      additionalCIDRs: [10.77.0.0/24]\n",
    );
    assert_contains(&old("10.77.0.0/24"), reason);
}
