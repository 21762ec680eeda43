//! The render guards: GitOps deletes what is no longer rendered, so nothing is removed without
//! permission.

use std::fs;

use serde_json::json;

use crate::cli::{Folder, NORTH, location, node};
use crate::support::{Run, assert_contains};

/// The messages of a render that is refused; it writes nothing.
fn refusal(folder: &Folder, arguments: &[&str]) -> String {
    folder.refusal(1, |it| it.run(&[&["render"], arguments].concat()))
}

fn allowed(folder: &Folder, flags: &[&str]) -> Run {
    let flags = flags.iter().flat_map(|flag| ["--allow-empty", flag]);
    let arguments: Vec<&str> = ["render"].into_iter().chain(flags).collect();
    let run = folder.run(&arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

/// Leaves a cluster with a node that cannot be dialled.
fn silence(folder: &Folder, number: u8, cluster: &str) {
    let mut node = node(number, 1);
    node["addresses"] = json!([]);
    node["annotations"]["kilo.squat.ai/endpoint"] = json!("");
    folder.keep(cluster, &[node]);
}

#[test]
fn keeps_the_peers_of_a_source_that_gives_none_any_more() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[missing-endpoint]: east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address (2 other findings follow from it: error[lost-source])
    help: annotate each node with an address that other clusters can dial: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `east` instead; if a cluster should have no Peers, run `clustermesh render --allow-empty '*/east'`

    1 error
    nothing was written
    ");
}

/// A file with markers on its first line does not look like ours, and its Peers would be lost unseen.
#[test]
fn an_unfinished_merge_hides_no_loss() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    for target in ["north", "west"] {
        let path = format!("rendered/{target}/prod--east.yaml");
        let text = folder.read(&path);
        folder.write(&path, format!("<<<<<<< HEAD\n{text}=======\n>>>>>>> other\n"));
    }
    let refused = refusal(&folder, &[]);
    assert_contains(&refused, "error[blocked-file]: north: ");
    assert_contains(&refused, "error[blocked-file]: west: ");
}

/// Lets all clusters keep tunnels open, so that nodes without an endpoint are not left out.
fn keepalive(folder: &Folder) {
    let mesh = fs::read_to_string(folder.path("mesh.yaml")).unwrap();
    let name = "    - name: ";
    let lines = mesh.lines().map(|line| match line.strip_prefix(name) {
        Some(cluster) => format!("{name}{cluster}\n      persistentKeepalive: 25\n"),
        None => format!("{line}\n"),
    });
    folder.write("mesh.yaml", lines.collect::<String>());
}

#[test]
fn keeps_peers_where_both_sides_lose_their_endpoints() {
    let folder = Folder::mesh();
    keepalive(&folder);
    assert_eq!(folder.run(&["render"]).code, 0);
    silence(&folder, 1, "east");
    assert_eq!(folder.run(&["render"]).code, 0, "the others dial");
    silence(&folder, 3, "west");
    let refused = refusal(&folder, &[]);
    for lost in ["east", "west"] {
        let cause = format!("error[no-initiator]: {lost}: ");
        let title = refused.lines().find(|it| it.starts_with(&cause));
        assert!(title.is_some_and(|it| it.ends_with("error[lost-source])")), "{refused}");
    }
    allowed(&folder, &["west/east", "east/west"]);
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
}

#[test]
fn asks_for_every_block_of_its_own() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    let report = refusal(&folder, &["--allow-empty", "west/east"]);
    assert_contains(&report, "--allow-empty north/east`\n");
    refusal(&folder, &["--allow-empty", "east"]);
    refusal(&folder, &["--allow-empty", "west/east", "--allow-empty", "north/west"]);
}

#[test]
fn lets_go_of_what_was_named() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    allowed(&folder, &["west/east", "north/east"]);
    assert!(!folder.path("rendered/west/prod--east.yaml").exists());
    assert!(folder.path("rendered/west/prod--north.yaml").exists());
    allowed(&folder, &[]);
}

#[test]
fn lets_go_of_a_source_everywhere() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    allowed(&folder, &["*/east"]);
    assert!(!folder.path("rendered/north/prod--east.yaml").exists());
}

#[test]
fn keeps_the_peers_of_a_target_that_no_mesh_names() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[lost-target]: north: is no longer in any mesh, but its folder has 4 Peers (2 other findings follow from it)
    help: if `north` should leave the mesh, restore its entry with `state: Leaving`, and remove it when its Peers are gone; to remove its folder now, and its Peers in the cluster by hand, run `clustermesh render --allow-empty north --allow-empty '*/north'`

    1 error
    nothing was written
    ");
}

/// One link is one finding, at the cluster that has lost more of them, and no help removes a cluster.
#[test]
fn a_removed_link_is_named_and_no_cluster_leaves() {
    let folder = Folder::mesh();
    let links = "  topology:\n    mode: Links\n    links:\n      - [east, west]\n      - [east, north]\n      - [west, north]\n";
    folder.edit("mesh.yaml", "spec:\n", &format!("spec:\n{links}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", "      - [west, north]\n", "");
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[lost-source]: north: no longer linked by `links`: all 2 Peers would be removed from west (1 other finding follows from it)
     --> mesh.yaml:9:7
      |
    9 |       - [east, west]
      |       ^^^^^^^^^^^^^^ does not link these clusters
    help: to keep them, link `north` again in `links`; if intended, run `clustermesh render --allow-empty north/west --allow-empty west/north`

    1 error
    nothing was written
    ");
}

#[test]
fn a_cluster_that_loses_two_links_does_not_leave() {
    let folder = Folder::mesh();
    let links = "  topology:\n    mode: Hub\n    hubs: [east, north]\n";
    folder.edit("mesh.yaml", "spec:\n", &format!("spec:\n{links}"));
    folder.keep("south", &[node(4, 1)]);
    let south = NORTH.replace("north", "south").replace("10.2.", "10.4.").replace("102", "104");
    folder.edit("mesh.yaml", NORTH, &format!("{NORTH}{south}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", "hubs: [east, north]", "hubs: [east]");
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[lost-source]: north: no longer linked by `hubs`: all 2 Peers would be removed from south, west (2 other findings follow from it)
     --> mesh.yaml:8:11
      |
    8 |     hubs: [east]
      |           ^^^^^^ does not link these clusters
    help: to keep them, name `north` in `hubs` again; if intended, run `clustermesh render --allow-empty north/south --allow-empty north/west --allow-empty '*/north'`

    1 error
    nothing was written
    ");
}

#[test]
fn lets_go_of_a_target_that_left() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    allowed(&folder, &["north", "*/north"]);
    assert!(!folder.path("rendered/north").exists());
    assert!(!folder.path("rendered/west/prod--north.yaml").exists());
    allowed(&folder, &[]);
}

/// All Peers would be deleted and created again.
#[test]
fn keeps_the_name_of_a_mesh() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "name: prod", "name: net");
    let refused = refusal(&folder, &[]);
    let (first, _) = refused.split_once("\n\n").unwrap();
    insta::assert_snapshot!(first, @"
    error[renamed-mesh]: 12 Peers of the mesh prod would be deleted and created again with names of the mesh net (targets east, north, west) (findings about 6 nodes follow from it)
    --> rendered/east/prod--north.yaml
    help: restore the old name, or give the files of all meshes; if the mesh should be renamed, run `clustermesh render --allow-empty '*/prod'`
    ");
    for flag in ["west", "*/net", "west/prod", "*/east"] {
        assert_contains(&refusal(&folder, &["--allow-empty", flag]), "error[renamed-mesh]");
    }
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "error[renamed-mesh]: 12 Peers");
    let run = folder.run(&["render", "--target", "west"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stderr, "--target west --allow-empty '*/prod'`");
    let run = allowed(&folder, &["*/prod"]);
    assert_contains(
        &run.stderr,
        "`kubectl --context west annotate peers --overwrite -l kilo-clustermesh.io/mesh=net touched=1`",
    );
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
}

/// The mesh stays, and the Peers of one of its pairs get the name of another one.
#[test]
fn keeps_the_mesh_of_a_pair() {
    let folder = Folder::rendered();
    let mesh = folder.read("mesh.yaml");
    let (head, entries) = mesh.split_once("    - name: east").unwrap();
    let (east, rest) = entries.split_once(NORTH).unwrap();
    let net = head.replace("name: prod", "name: net");
    folder.write(
        "mesh.yaml",
        format!("{head}    - name: east{east}{rest}---\n{net}    - name: east{east}{NORTH}"),
    );
    let refused = refusal(&folder, &[]);
    let renamed = "error[renamed-mesh]: 4 Peers of the mesh prod would be deleted and created again with names of the \
                   mesh net (targets east, north) (findings about 4 nodes follow from it)\n";
    assert_contains(&refused, renamed);
    assert_contains(&refused, "--allow-empty north/west");
    allowed(&folder, &["*/prod", "north/west", "west/north"]);
    assert_eq!(folder.run(&["render", "--check"]).code, 0);
}

#[test]
fn keeps_a_target_of_which_only_the_kustomization_is_left() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    for path in [
        "east/prod--north.yaml",
        "west/prod--north.yaml",
        "north/prod--east.yaml",
        "north/prod--west.yaml",
    ] {
        fs::remove_file(folder.path("rendered").join(path)).unwrap();
    }
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[lost-target]: north: is no longer in any mesh, but its folder has 0 Peers (1 other finding follows from it)
    help: if `north` should leave the mesh, restore its entry with `state: Leaving`, and remove it when its Peers are gone; to remove its folder now, and its Peers in the cluster by hand, run `clustermesh render --allow-empty north`

    notice[mismatched-kustomization]: east: kustomization.yaml lists missing files: prod--north.yaml
    notice[mismatched-kustomization]: west: kustomization.yaml lists missing files: prod--north.yaml
    help: `clustermesh render` rewrites or removes the file

    1 error, 2 notices
    nothing was written
    ");
}

#[test]
fn makes_no_target_without_peers() {
    let folder = Folder::mesh();
    silence(&folder, 1, "east");
    silence(&folder, 2, "north");
    let report = refusal(&folder, &[]);
    assert_contains(&report, "errors[empty-target, silent-cluster])");
    assert_contains(&report, " --allow-empty west`\n");
}

/// Leaves a mesh with a cluster whose nodes all lack the port in their endpoints.
fn portless() -> Folder {
    let folder = Folder::mesh();
    let mut nodes = [node(1, 1), node(1, 2)];
    for node in &mut nodes {
        node["annotations"]["kilo.squat.ai/force-endpoint"] = json!("198.18.113.11");
    }
    folder.keep("east", &nodes);
    folder
}

#[test]
fn a_new_cluster_that_gives_no_peer_is_an_error() {
    let folder = portless();
    let report = refusal(&folder, &[]);
    let error = "error[invalid-endpoint]: east: 2 nodes left out: ";
    assert_contains(&report, " (1 other finding follows from it: error[silent-cluster])");
    assert_contains(&report, "; until then, write `state: Joining` into the entry of east\n");
    assert!(report.starts_with(error), "{report}");
    assert!(!report.contains("warning[silent-cluster]"), "{report}");
    let validate = folder.run(&["validate"]);
    assert_eq!(validate.code, 1);
    assert!(validate.stdout.starts_with(error), "{}", validate.stdout);
    let check = folder.run(&["render", "--check"]);
    assert_eq!(check.code, 1);
    assert!(check.stderr.starts_with(error), "{}", check.stderr);
    // Neither a flag for others nor the config lifts it.
    refusal(&folder, &["--allow-empty", "*/west", "--allow-empty", "east"]);
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules:\n  \
         silent-cluster: { level: \"off\", reason: later }\n",
    );
    assert_contains(&refusal(&folder, &[]), "error[silent-cluster]");
    folder.edit("mesh.yaml", "    - name: east\n", "    - name: east\n      state: Joining\n");
    assert_eq!(folder.run(&["render"]).code, 0);
}

#[test]
fn the_tree_shows_that_a_cluster_without_peers_was_accepted() {
    let folder = portless();
    assert_eq!(folder.run(&["render", "--check", "--allow-empty", "*/east"]).code, 1);
    allowed(&folder, &["*/east"]);
    assert!(folder.path("rendered/east/kustomization.yaml").exists());
    for arguments in [["render", "--check"].as_slice(), &["validate"], &["render"]] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn a_new_cluster_without_nodes_is_no_error() {
    let folder = Folder::mesh();
    folder.keep("east", &[]);
    assert_eq!(folder.run(&["render"]).code, 0);
}

#[test]
fn check_is_green_after_everything_was_allowed() {
    let folder = Folder::mesh();
    for (number, cluster) in (1..).zip(["east", "north", "west"]) {
        silence(&folder, number, cluster);
    }
    let report = refusal(&folder, &[]);
    let command = "`clustermesh render --allow-empty '*/east' --allow-empty '*/north' --allow-empty \
                   '*/west' --allow-empty east --allow-empty north --allow-empty west`";
    assert_contains(&report, command);
    allowed(&folder, &["*"]);
    for arguments in [["render", "--check"].as_slice(), &["validate"], &["render"]] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.stdout, run.stderr);
    }
}

/// Renders a mesh of which `west` takes only some ranges, and then another one, which takes from it what
/// it had of `east`.
fn takes_away(accepted: &str, east: [&str; 2]) {
    let folder = Folder::mesh();
    let mut labelled = [node(1, 1), node(1, 2)];
    for (node, pool) in labelled.iter_mut().zip(["a", "b"]) {
        node["labels"] = json!({ "pool": pool });
    }
    folder.keep("east", &labelled);
    let wireguard = "      wireguardCIDR: 10.101.0.0/24\n";
    folder.edit("mesh.yaml", wireguard, &format!("{wireguard}      {}\n", east[0]));
    let last = "      wireguardCIDR: 10.103.0.0/24\n";
    folder.edit("mesh.yaml", last, &format!("{last}      acceptedNetworks: [{accepted}]\n"));
    allowed(&folder, &[]);
    assert!(folder.path("rendered/west/prod--east.yaml").exists());
    folder.edit("mesh.yaml", east[0], east[1]);
    let report = refusal(&folder, &[]);
    for rule in ["lost-source", "empty-target"] {
        assert_contains(&report, rule);
    }
}

#[test]
fn tells_what_people_take_away_from_what_nodes_do() {
    // What is declared is no longer wholly accepted.
    let services = ["serviceCIDR: 172.20.0.0/16", "serviceCIDR: 172.20.0.0/15"];
    takes_away("172.20.0.0/16", services);
    // The nodes have endpoints, but `endpointFrom` no longer lists their source.
    let behind_nat = "serviceCIDR: 172.20.0.0/16\n      persistentKeepalive: 25";
    let unasked = format!("{behind_nat}\n      endpointFrom: [Annotation]");
    takes_away("172.20.0.0/16", [behind_nat, &unasked]);
    // The node whose pods are accepted is no longer selected.
    let selected = [
        "nodeSelector: { matchLabels: { pool: a } }",
        "nodeSelector: { matchLabels: { pool: b } }",
    ];
    takes_away("10.1.1.0/24", selected);
}

#[test]
fn asks_only_once_for_a_target_without_peers() {
    let folder = Folder::rendered();
    silence(&folder, 1, "east");
    silence(&folder, 2, "north");
    refusal(&folder, &["--allow-empty", "west"]);
    allowed(&folder, &["west", "*/east", "*/north"]);
    insta::assert_snapshot!(folder.read("rendered/west/kustomization.yaml"), @"
    # Generated by clustermesh; do not edit.
    apiVersion: kustomize.config.k8s.io/v1beta1
    kind: Kustomization
    resources: []
    ");
    let before = folder.touches(".");
    allowed(&folder, &[]);
    assert_eq!(folder.touches("."), before);
}

#[test]
fn keeps_everything_where_there_is_no_mesh() {
    let folder = Folder::rendered();
    folder.write("mesh.yaml", "# later\n");
    insta::assert_snapshot!(refusal(&folder, &[]), @"
    error[no-mesh]: no ClusterMesh in `mesh.yaml`, so every Peer would be deleted
    help: write the mesh again, or, if every Peer is to be deleted, run `clustermesh render --allow-empty '*'`

    1 error
    nothing was written
    ");
    refusal(&folder, &["--allow-empty", "west"]);
}

#[test]
fn lets_go_of_everything() {
    let folder = Folder::rendered();
    folder.write("mesh.yaml", "# later\n");
    let run = allowed(&folder, &["*"]);
    insta::assert_snapshot!(run.stderr, @"
    east: +0 ~0 -3 files, no longer a target (+0 ~0 -4)
    north: +0 ~0 -3 files, no longer a target (+0 ~0 -4)
    west: +0 ~0 -3 files, no longer a target (+0 ~0 -4)
    0 Peers in 0 targets
    ");
    assert_eq!(folder.tree(), [""; 0]);
    let check = folder.run(&["render", "--check"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, ""), "{}", check.stderr);
}

#[test]
fn tells_moved_peers_from_lost_ones() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "name: prod", "name: live");
    let run = allowed(&folder, &["*/prod"]);
    assert!(!run.stderr.contains("lost-"), "{}", run.stderr);
    assert!(folder.path("rendered/west/live--east.yaml").exists());
    assert!(!folder.path("rendered/west/prod--east.yaml").exists());
}

#[test]
fn lets_some_peers_of_a_source_go() {
    let folder = Folder::rendered();
    folder.keep("east", &[node(1, 1)]);
    allowed(&folder, &[]);
}

#[test]
fn keeps_what_it_cannot_read_any_more() {
    let folder = Folder::rendered();
    let text = format!("{}kind: Peer\nmetadata: [\n", crate::cli::HEADER);
    folder.write("rendered/west/prod--south.yaml", text);
    let report = refusal(&folder, &[]);
    assert_contains(&report, "prod--south: its only Peer would be removed from west");
}

/// The node has the name for which it was dialled, so that a person has changed what the mesh allows.
#[test]
fn keeps_the_peers_of_a_name_that_the_mesh_allowed() {
    let folder = Folder::mesh();
    let mut east = location(vec![node(1, 1), node(1, 2), node(1, 3)]);
    east[0]["annotations"]["kilo.squat.ai/force-endpoint"] = json!("gw.a.example.com:51820");
    folder.keep("east", &east);
    let entry = "- name: east\n";
    let domains = |domain: &str| format!("{entry}      endpointDomains: [{domain}]\n");
    folder.edit("mesh.yaml", entry, &domains("gw.a.example.com"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", &domains("gw.a.example.com"), &domains("gw.b.example.com"));
    assert_contains(&refusal(&folder, &[]), "error[lost-source]");
    // The node that claims another name is the cause.
    folder.edit("mesh.yaml", &domains("gw.b.example.com"), &domains("gw.a.example.com"));
    east[0]["annotations"]["kilo.squat.ai/force-endpoint"] = json!("gw.c.example.com:51820");
    folder.keep("east", &east);
    assert_eq!(folder.run(&["render"]).code, 0);
}
