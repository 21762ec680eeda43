//! Policies: what the owner of a cluster accepts, in a file of its own.

use super::Folder;
use super::diff::Repository;
use crate::support::assert_contains;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec:\n";

fn accept(folder: &Folder, cluster: &str, spec: &str) {
    folder.write(&format!("policies/{cluster}.yaml"), format!("{HEAD}  {spec}\n"));
}

#[test]
fn a_refused_link_has_no_peers_on_either_side() {
    let folder = Folder::mesh();
    accept(&folder, "north", "acceptedClusters: [west]");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(
        &run.stderr,
        "warning[one-sided-link]: north: the policy does not accept `east`, which mesh `prod` links to `north`",
    );
    let is_there = |path: &str| folder.path(&format!("rendered/{path}")).exists();
    assert!(!is_there("north/prod--east.yaml") && !is_there("east/prod--north.yaml"));
    assert!(is_there("north/prod--west.yaml") && is_there("west/prod--north.yaml"));
    let run = folder.run(&["verify", "--output", "json"]);
    let json = run.json();
    assert_eq!((run.code, &json["holds"]), (0, &true.into()), "{}", run.stdout);
    let linked = json["pairings"].as_array().unwrap().iter();
    assert_eq!(linked.filter(|it| it["linked"] == true).count(), 4);
    let run = folder.run(&["trace", "east", "north"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
}

#[test]
fn a_policy_removes_no_peers_unless_that_is_allowed() {
    let folder = Folder::rendered();
    accept(&folder, "north", "acceptedClusters: [west]");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "error[lost-source]");
    assert_contains(&run.stderr, "--allow-empty");
}

#[test]
fn diff_names_the_policy_as_the_cause() {
    let repository = Repository::committed();
    accept(&repository.folder, "north", "acceptedClusters: [west]");
    let run = repository.diff(&[]);
    assert_contains(&run.stdout, "acceptedClusters");
    assert_contains(&run.stdout, "policies/north.yaml:4");
    repository.commit();
    accept(&repository.folder, "north", "acceptedClusters: [west, east]");
    let run = repository.diff(&[]);
    assert_contains(&run.stdout, "policies/north.yaml:4");
}

#[test]
fn ranges_must_be_accepted_by_mesh_and_policy() {
    let folder = Folder::mesh();
    accept(&folder, "north", "acceptedNetworks: [10.3.0.0/16, 10.103.0.0/24, 10.1.1.0/24]");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "notice[unaccepted-range]");
    assert_contains(&run.stderr, "policies/north.yaml:4");
    let peers = folder.read("rendered/north/prod--east.yaml");
    assert!(peers.contains("10.1.1.0/24") && !peers.contains("10.1.2.0/24"), "{peers}");
    accept(&folder, "north", "localNetworks: [10.1.1.0/24]");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!folder.read("rendered/north/prod--east.yaml").contains("10.1.1.0/24"));
}

#[test]
fn a_wrong_policy_stops_the_render() {
    let folder = Folder::mesh();
    for spec in
        ["acceptedClusters: [East]", "acceptedNetwork: [10.0.0.0/8]", "acceptedNetworks: []", "["]
    {
        accept(&folder, "north", spec);
        let run = folder.run(&["render"]);
        assert_ne!(run.code, 0, "{spec}");
        assert_contains(&run.stderr, "policies/north.yaml:4");
        assert!(!folder.path("rendered").exists());
    }
    accept(&folder, "north", "acceptedClusters: [east, wets]");
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "warning[unknown-cluster]: no mesh has a cluster `wets`");
    assert_contains(&run.stdout, "did you mean `west`?");
    accept(&folder, "norths", "acceptedClusters: []");
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "warning[unnamed-cluster]: no mesh contains a cluster `norths`");
    assert_contains(&run.stdout, "rename it to `north.yaml` if `north` is meant");
    // Of many names, the first is reported, with the number of the others.
    let unknown: Vec<String> = (10..50).map(|it| format!("tenant-{it}")).collect();
    for name in &unknown {
        accept(&folder, name, "{}");
    }
    let names = unknown.join(", ");
    accept(&folder, "north", &format!("acceptedClusters: [east, west, {names}]"));
    let run = folder.run(&["validate"]);
    let warnings = run.stdout.matches("warning[").count();
    assert_eq!((run.code, warnings), (0, 2), "{}", run.stdout);
    assert_contains(&run.stdout, "no mesh has a cluster `tenant-10` (and 39 more clusters)");
    assert_contains(&run.stdout, "no mesh contains a cluster `norths` (and 40 more files)");
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\npolicies: polices\n",
    );
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "polices");
}

/// A policy that would not be read would accept everything.
#[test]
fn what_looks_like_a_policy_and_is_none_stops_the_render() {
    let folder = Folder::mesh();
    accept(&folder, "north", "acceptedClusters: []");
    let refused = |name: &str| {
        let run = folder.run(&["render"]);
        assert_ne!(run.code, 0, "{name}: {}", run.stderr);
        assert_contains(&run.stderr, "north");
        assert!(!folder.path("rendered").exists(), "{name}");
    };
    for name in ["north.yml", "north.json", "North.yaml"] {
        folder.write(&format!("policies/{name}"), format!("{HEAD}  {{}}\n"));
        refused(name);
        std::fs::remove_file(folder.path(&format!("policies/{name}"))).unwrap();
    }
    let file = folder.path("policies/north.yaml");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused("a folder");
    std::fs::remove_dir(&file).unwrap();
    std::os::unix::fs::symlink("../gone.yaml", &file).unwrap();
    refused("a link to nothing");
}

/// Which clusters there are is unknown then.
#[test]
fn a_mesh_that_cannot_be_read_makes_no_policy_a_leftover() {
    let folder = Folder::mesh();
    accept(&folder, "north", "acceptedClusters: [west]");
    folder.write("policies/north.md", "# Why");
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let mesh = folder.read("mesh.yaml");
    folder.write("mesh.yaml", format!("{mesh}  [\n"));
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 2);
    assert!(!run.stdout.contains("unnamed-cluster"), "{}", run.stdout);
}

#[test]
fn policies_beside_a_mesh_elsewhere_are_read() {
    let folder = Folder::mesh();
    accept(&folder, "north", "acceptedClusters: []");
    std::fs::create_dir(folder.path("ci")).unwrap();
    let run = |command: &[&str]| {
        let files =
            ["--mesh", "../mesh.yaml", "--snapshots", "../snapshots", "--rendered", "../rendered"];
        folder.run(&[&["-C", "ci"], command, &files].concat())
    };
    let north = run(&["render", "--target", "north"]);
    assert!(!north.stdout.contains("kind: Peer"), "{}", north.stdout);
    assert_contains(&north.stderr, "one-sided-link");
    // So are expectations and guards.
    assert_eq!(run(&["render", "--allow-empty", "north"]).code, 0);
    folder.write("expectations.yaml", "a");
    assert_contains(&run(&["verify"]).stdout, "../expectations.yaml");
    folder.write("guards/north.yaml", "a");
    assert_contains(&run(&["validate"]).stdout, "../guards/north.yaml");
}

#[test]
fn a_policy_is_not_read_through_a_link_out_of_the_repository() {
    let folder = Folder::mesh();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("north.yaml");
    std::fs::write(&file, format!("{HEAD}  acceptedClusters: [west]\n")).unwrap();
    std::fs::create_dir(folder.path("policies")).unwrap();
    std::os::unix::fs::symlink(&file, folder.path("policies/north.yaml")).unwrap();
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 2, "{}", run.stdout);
}

#[test]
fn config_prints_where_a_default_comes_from() {
    let folder = Folder::mesh();
    let defaults = "spec:\n  defaults: { wireguardPort: 51871, granularity: Full }\n";
    folder.edit("mesh.yaml", "spec:\n", defaults);
    let subnet = "wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", subnet, &format!("{subnet}\n      wireguardPort: 51820"));
    let run = folder.run(&["config"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<String> = run
        .stdout
        .lines()
        .filter(|it| it.starts_with("mesh."))
        .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    mesh.prod.east.wireguardPort 51820 mesh.yaml:11:22
    mesh.prod.east.granularity Full mesh.yaml:6:50
    mesh.prod.north.wireguardPort 51871 mesh.yaml:6:30
    mesh.prod.north.granularity Full mesh.yaml:6:50
    mesh.prod.west.wireguardPort 51871 mesh.yaml:6:30
    mesh.prod.west.granularity Full mesh.yaml:6:50
    ");
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_contains(&run.stdout, "[overridden-default]");
}

/// The policy separates the clusters, so it is named, and not the mesh.
#[test]
fn findings_about_a_refused_link_name_the_policy() {
    let folder = Folder::rendered();
    accept(&folder, "north", "acceptedClusters: [west]");
    let accepting = "add `east` to `acceptedClusters` in `policies/north.yaml`";
    // A remedy by hand is for Peers that are not in the tree.
    let dumps = ["east", "north"].map(|it| format!("{it}={it}.yaml"));
    for (cluster, source) in [("east", "north"), ("north", "east")] {
        let peers = folder.read(&format!("rendered/{cluster}/prod--{source}.yaml"));
        folder.write(&format!("{cluster}.yaml"), peers);
    }
    let run = folder.run(&["verify", "--peers", &dumps[0], "--peers", &dumps[1]]);
    assert_contains(
        &run.stdout,
        "reaches 10.2.1.0 of north although `policies/north.yaml` refuses the link",
    );
    assert_contains(
        &run.stdout,
        &format!("help: run `clustermesh render` and apply what it writes, or {accepting}"),
    );
    assert_contains(&run.stdout, "policies/north.yaml:4");
    let run = folder.run(&["render"]);
    assert_contains(&run.stderr, "help: add `east` to `acceptedClusters` if the link is intended");
    let run = folder.run(&[
        "verify",
        "--assume-hostile",
        "east",
        "--peers",
        &dumps[0],
        "--peers",
        &dumps[1],
    ]);
    let refused = "has Peers with keys of east although `policies/north.yaml` refuses the link";
    assert_contains(&run.stdout, refused);
    assert_contains(&run.stdout, &format!("delete these Peers, or {accepting}"));
    let both = ["render", "--allow-empty", "east/north", "--allow-empty", "north/east"];
    assert_eq!(folder.run(&both).code, 0);
    let run = folder.run(&["trace", "east", "north"]);
    assert_contains(&run.stdout, accepting);
    // The advice works, and that of both ends together.
    accept(&folder, "east", "acceptedClusters: [west]");
    let run = folder.run(&["trace", "east", "north"]);
    let both = "add `north` to `acceptedClusters` in `policies/east.yaml` and add `east` to `acceptedClusters` in \
                `policies/north.yaml`";
    assert_contains(&run.stdout, both);
    for (cluster, accepted) in [("east", "[west, north]"), ("north", "[west, east]")] {
        accept(&folder, cluster, &format!("acceptedClusters: {accepted}"));
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.run(&["trace", "east", "north"]).code, 0);
}

#[test]
fn findings_about_unaccepted_ranges_name_the_list() {
    let folder = Folder::rendered();
    accept(&folder, "north", "acceptedNetworks: [10.3.0.0/16, 10.103.0.0/24]");
    let accepting = "add 10.1.0.0/16 to `acceptedNetworks` of `north` in `policies/north.yaml`";
    let run = folder.run(&["render"]);
    assert_contains(&run.stderr, &format!("help: to accept them, {accepting}; if"));
    assert_eq!(folder.run(&["render", "--allow-empty", "*/east"]).code, 0);
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, &format!("help: to accept them, {accepting}"));
    let run = folder.run(&["trace", "north", "east"]);
    assert_contains(&run.stdout, "`policies/north.yaml`");
    // A mesh and a policy with nothing in common accept nothing, and that is reported too.
    let east = "wireguardCIDR: 10.102.0.0/24";
    let limited = format!("{east}\n      acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24]");
    folder.edit("mesh.yaml", east, &limited);
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "[unaccepted-range]: east: 10.1.1.0/24");
    assert_contains(&run.stdout, "`acceptedNetworks` of `north` in `");
}

#[test]
fn config_prints_policies_and_groups_with_their_lines() {
    let folder = Folder::mesh();
    accept(&folder, "north", "{ acceptedClusters: [west], localNetworks: [192.168.1.0/24] }");
    accept(&folder, "west", "{}");
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  groups: { far: [north, west] }\n");
    let run = folder.run(&["config"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines = run.stdout.lines();
    let lines = lines
        .filter(|it| it.starts_with("policies") || it.starts_with("groups") || it.starts_with(' '));
    let lines: Vec<String> =
        lines.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    policies policies default
    policies.north.acceptedClusters west policies/north.yaml:4:23
    policies.north.localNetworks 192.168.1.0/24 policies/north.yaml:4:46
    groups.far north mesh.yaml:6:18
    groups.far west mesh.yaml:6:18
    ");
    accept(&folder, "north", "acceptedClusters: [West]");
    let run = folder.run(&["config"]);
    assert_contains(&run.stderr, "policies with mistakes are missing");
    assert!(!run.stdout.contains("policies.north"), "{}", run.stdout);
}

/// A wrong path would accept everything.
#[test]
fn a_named_folder_without_policies_is_reported() {
    let folder = Folder::mesh();
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\npolicies: limits\n",
    );
    std::fs::create_dir(folder.path("limits")).unwrap();
    let found = || {
        let run = folder.run(&["validate", "--output", "concise"]);
        run.stdout.contains("warning[empty-policies]")
    };
    assert!(found());
    folder.write("limits/norths.yaml", "a");
    assert!(found());
    folder.write("limits/north.yaml", format!("{HEAD}  {{}}\n"));
    assert!(!found());
    // Another tool may have a folder with the default name.
    std::fs::remove_file(folder.path("clustermesh.yaml")).unwrap();
    std::fs::create_dir(folder.path("policies")).unwrap();
    assert!(!found());
}
