//! Advice about Peers that are not those of a render, or that a line of the mesh moves.

use super::findings;
use crate::cli::diff::Repository;
use crate::cli::*;
use crate::support::assert_contains;

/// A change by hand of what is generated is overwritten.
#[test]
fn packets_of_an_outdated_tree() {
    let path = "rendered/west/prod--east.yaml";
    let help = "help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`";
    let edits: [&dyn Fn(&Folder); 3] = [
        &|it: &Folder| it.edit(path, "51820", "51821"),
        &|it: &Folder| it.edit(path, "10.1.1.0/24", "10.1.9.0/24"),
        &|it: &Folder| fs::remove_dir_all(it.path("rendered/west")).unwrap(),
    ];
    for edit in edits {
        let folder = Folder::rendered();
        edit(&folder);
        for ends in [["west", "east/n1"], ["east/n1", "west"]] {
            let run = folder.run(&[&["trace"], &ends[..]].concat());
            assert_contains(&run.stdout, help);
        }
        assert_eq!(folder.run(&["render"]).code, 0);
        assert_eq!(folder.run(&["trace", "west", "east/n1"]).code, 0);
    }
    // A render does not help here.
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "spec:", "spec:\n  topology: { mode: Hub, hubs: [north] }");
    assert!(!folder.run(&["trace", "west", "east"]).stdout.contains(help));
}

#[test]
fn losses_where_no_path_works() {
    let folder = Folder::rendered();
    for cluster in ["east", "north", "west"] {
        fs::remove_dir_all(folder.path(&format!("rendered/{cluster}"))).unwrap();
    }
    let run = folder.run(&["outage"]);
    assert_contains(
        &run.stdout,
        "No declared path works now, so no loss breaks one: correct what `clustermesh verify` reports first.",
    );
    let run = folder.run(&["outage", "west/n1"]);
    assert_contains(&run.stdout, "Without `west/n1`, no declared path works, as before.");
    assert_eq!(folder.run(&["render"]).code, 0);
    fs::remove_dir_all(folder.path("rendered/west")).unwrap();
    let run = folder.run(&["outage"]);
    assert_contains(
        &run.stdout,
        "All declared paths of other nodes that work now survive the loss of any one of ",
    );
}

#[test]
fn anchors_that_are_fewer_than_their_count() {
    let folder = Folder::mesh();
    let anchors = |nodes: &str| {
        format!(
            "      serviceCIDR: 10.201.0.0/16\n      anchors: [{{ ranges: [10.201.0.0/16], nodes: [{nodes}], count: 2 }}]\n{NORTH}"
        )
    };
    folder.keep("east", &[1, 2, 3].map(|it| node(1, it)));
    folder.edit("mesh.yaml", NORTH, &anchors("n2, n3"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", "nodes: [n2, n3]", "nodes: [n2]");
    insta::assert_snapshot!(findings(&folder)[0][2], @"if it should stay on one node, add n3 to `nodes` of its item in `anchors` of east: `count: 2` needs 2 nodes; connections to it break once whenever it moves");
    folder.edit("mesh.yaml", "nodes: [n2]", "nodes: [n3]");
    insta::assert_snapshot!(findings(&folder)[0][2], @"name 2 nodes in `nodes` of its item in `anchors` of east, as many as its `count`; connections to it break once whenever it moves");
    folder.edit("mesh.yaml", "nodes: [n3]", "nodes: [n2, n3]");
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// The nodes are as they were; a line of the mesh is wrong.
#[test]
fn nodes_that_are_outside_of_a_wrong_line() {
    for (right, wrong, help) in [
        (
            "podCIDRs: [10.1.0.0/16]",
            "podCIDRs: [10.71.0.0/16]",
            "write `podCIDRs: [10.1.0.0/16]` in",
        ),
        (
            "wireguardCIDR: 10.101.0.0/24",
            "wireguardCIDR: 10.171.0.0/24",
            "write `wireguardCIDR: 10.101.0.0/24` in",
        ),
        (
            "podCIDRs: [10.1.0.0/16]",
            "podCIDRs: [10.1.0.0/16]\n      nodeSelector: { matchLabels: { pool: mesh } }",
            "correct `nodeSelector` of `east` in the mesh",
        ),
    ] {
        let folder = Folder::rendered();
        folder.edit("mesh.yaml", right, wrong);
        assert_contains(&folder.run(&["explain", "east/n1"]).stdout, &format!("help: {help}"));
    }
}

/// A host has no folder that Flux or Argo CD could apply.
#[test]
fn an_external_peer_with_another_name() {
    let folder = Folder::mesh();
    let key = STANDARD.encode([77; 32]);
    let laptop = format!(
        "  externalPeers: [{{ name: laptop, publicKey: {key}, ranges: [10.250.0.5/32], clusters: [east] }}]\n"
    );
    folder.write("mesh.yaml", format!("{MESH}{laptop}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.edit("mesh.yaml", "name: laptop", "name: phone");
    let text = repository.diff(&[]).stdout;
    assert_contains(&text, "external peer laptop is now called external.phone\n");
    assert!(!text.contains("apply the folder"), "{text}");
}

#[test]
fn peers_of_another_cluster() {
    let folder = Folder::rendered();
    let peers = folder.read("rendered/west/prod--east.yaml");
    folder.write("east.yaml", &peers);
    let run = folder.run(&["diff", "--peers", "east=east.yaml"]);
    assert_contains(
        &run.stderr,
        "note: the file of `--peers` has a Peer with the key of a node of `east`, so it is probably of another cluster",
    );
    // Another endpoint than that of the tree is not the work of a render.
    folder.write("west.yaml", peers + "---\n" + &folder.read("rendered/west/prod--north.yaml"));
    folder.edit("west.yaml", "ip: \"198.18.113.11\"", "ip: \"203.0.113.99\"");
    let run = folder.run(&["verify", "--peers", "west=west.yaml"]);
    assert_contains(
        &run.stdout,
        "help: the rendered tree is up to date: let Flux or Argo CD apply it in `west`; if that is done, dump the Peers again: \
         the file of `--peers` is old; if the address is that of a load balancer",
    );
}

#[test]
fn a_range_of_commits() {
    let run = Folder::rendered().run(&["diff", "HEAD~1..main"]);
    assert_contains(&run.stderr, "tip: `clustermesh diff --against HEAD~1` compares with a commit");
}

/// No tool applies them.
#[test]
fn copies_beside_generated_files() {
    let folder = Folder::rendered();
    let path = "rendered/east/prod--west.yaml";
    for copy in ["rendered/east/prod--west.yaml.bak", "rendered/east/prod--west.yaml.orig"] {
        folder.write(copy, folder.read(path));
    }
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.tree(), TREE);
}

#[test]
fn one_output_for_all_clusters() {
    let folder = Folder::mesh();
    folder.write("templates/all.txt", "x\n");
    let config = |path: &str| {
        let item = format!("- {{ template: templates/all.txt, path: \"{path}\" }}\n");
        let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:\n";
        folder.write("clustermesh.yaml", format!("{head}{item}"));
        findings(&folder).into_iter().map(|[_, _, help, message]| format!("{message}: {help}"))
    };
    let found: Vec<String> = config("all.txt").collect();
    insta::assert_snapshot!(found.join("\n"), @"`all.txt` would be written once for each cluster: write `per: Repository` for one file, or add `{{ target.name }}` to the path");
    let found: Vec<String> = config("rendered/{{ target.name }}.txt").collect();
    insta::assert_snapshot!(found.join("\n"), @"`rendered/east.txt` cannot be an output because it is in the rendered tree: give the output another path");
    let found: Vec<String> = config("{{ target.name }}.json").collect();
    insta::assert_snapshot!(found.join("\n"), @"template `templates/all.txt` for `east`: the result is not valid JSON: it cannot be parsed from line 1 on: correct the template; a file of another format needs a path with another ending, such as `.txt`");
}

/// A person has renamed the folder, and no cluster was ever called so.
#[test]
fn a_renamed_folder() {
    let folder = Folder::rendered();
    fs::rename(folder.path("rendered/north"), folder.path("rendered/nord")).unwrap();
    let found = findings(&folder);
    insta::assert_snapshot!(found[0].join("; "), @"lost-target; error; rename the folder to `north`; is in no mesh, but its folder has the Peers of `north`, which has no folder");
    assert_eq!(found.len(), 1, "{found:?}");
    fs::rename(folder.path("rendered/nord"), folder.path("rendered/north")).unwrap();
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// The hosts keep their keys; two lines of the mesh are exchanged.
#[test]
fn exchanged_keys_of_external_peers() {
    let folder = Folder::mesh();
    let keys = [
        "avkTN5T8tciVq9GCSK17SucfkRrmiGHQh4Z8+C4lxhs=",
        "ZmlmdGVlbiBsZXR0ZXJzIG9mIGEga2V5IG9mIDMyYnk=",
    ];
    let write = |[laptop, phone]: [&str; 2]| {
        let peer = |name: &str, key: &str, last: u8| {
            format!(
                "    - {{ name: {name}, publicKey: '{key}', ranges: [10.250.0.{last}/32], clusters: [east] }}\n"
            )
        };
        let peers =
            format!("  externalPeers:\n{}{}", peer("laptop", laptop, 5), peer("phone", phone, 6));
        let mesh = folder.read("mesh.yaml");
        let clusters = mesh.split("  externalPeers:\n").next().unwrap();
        folder.write("mesh.yaml", format!("{clusters}{peers}"));
    };
    write(keys);
    assert_eq!(folder.run(&["render"]).code, 0);
    write([keys[1], keys[0]]);
    let found = findings(&folder);
    insta::assert_snapshot!(found[0].join("; "), @"changed-key; warning; exchange the two `publicKey` in the mesh, unless the hosts exchanged their keys; `external.phone`: Peers prod--external.phone and prod--external.laptop would exchange their keys (target east)");
    assert_eq!(found.len(), 1, "{found:?}");
    write(keys);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// That Peers have the ranges is a reason to look at the list.
#[test]
fn accepted_ranges_that_peers_have() {
    let folder = Folder::rendered();
    let accepted = "acceptedNetworks: [10.2.0.0/16, 10.3.0.0/16, 10.102.0.0/24, 10.103.0.0/24]";
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.1.0.0/16]",
        &format!("podCIDRs: [10.1.0.0/16]\n      {accepted}"),
    );
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    folder.edit("mesh.yaml", "[10.2.0.0/16, 10.3.0.0/16", "[10.2.0.0/16, 10.33.0.0/16");
    insta::assert_snapshot!(findings(&folder)[0].join("; "), @"unaccepted-range; warning; to accept them, add 10.3.0.0/16 to `acceptedNetworks` of `east` in `mesh.yaml`; 10.3.1.0/24, 10.3.2.0/24 left out: not in `acceptedNetworks`, so no path works between the linked clusters (target east), where Peers have them now");
    assert_eq!(folder.run(&["render"]).code, 0);
    insta::assert_snapshot!(findings(&folder)[0].join("; "), @"unaccepted-range; warning; to accept them, add 10.3.0.0/16 to `acceptedNetworks` of `east` in `mesh.yaml`; 10.3.1.0/24, 10.3.2.0/24 left out: not in `acceptedNetworks`, so no path works between the linked clusters (target east)");
}

/// A render does not touch the file of a person, so it does not end what is wrong with that.
#[test]
fn a_file_of_a_person_in_an_outdated_tree() {
    let folder = Folder::rendered();
    let peer = "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: printer }\nspec:\n  allowedIPs: [10.3.1.0/24]\n  \
                publicKey: avkTN5T8tciVq9GCSK17SucfkRrmiGHQh4Z8+C4lxhs=\n";
    folder.write("rendered/east/printer.yaml", peer);
    let kustomization = folder.read("rendered/east/kustomization.yaml");
    folder.write("rendered/east/kustomization.yaml", format!("{kustomization}- printer.yaml\n"));
    let shown = folder.run(&["verify"]).stdout;
    assert_contains(&shown, "--> rendered/east/printer.yaml:");
}

/// Only the line ends of a kustomization differ, and changes of people belong elsewhere.
#[test]
fn an_edited_kustomization() {
    let folder = Folder::rendered();
    let path = "rendered/east/kustomization.yaml";
    let text = folder.read(path);
    folder.write(path, text.replace('\n', "\r\n"));
    insta::assert_snapshot!(findings(&folder)[0].join("; "), @"edited-file; warning; add a line to `.gitattributes`: `rendered/** text eol=lf`; lines of kustomization.yaml end with a carriage return");
    folder.write(path, format!("{text}namePrefix: a-\n"));
    insta::assert_snapshot!(findings(&folder)[0].join("; "), @"edited-file; warning; run `clustermesh render`, which writes it again; changes of your own belong into a kustomization in another folder, with this folder in its `resources`; kustomization.yaml was edited: it differs from what clustermesh writes");
}
