//! One edit of a mesh, a policy, a snapshot or a rendered file, and all that follows from it.

use super::*;
use crate::cli::diff::Repository;

/// The target that loses its last Peers is below the source that it loses.
#[test]
fn another_hub_is_one_entry() {
    let folder = rendered("hub-and-spokes");
    let (hub, other) = ("hubs:\n      - management\n", "hubs:\n      - tenant-ada\n");
    folder.edit("mesh.yaml", hub, other);
    let errors = |folder: &Folder| -> Vec<String> {
        lines(folder).into_iter().filter(|it| it.starts_with("error")).collect()
    };
    assert_eq!(errors(&folder), ["error lost-source 4 other findings follow from it)"]);
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "error[lost-source]: management: no longer linked by `hubs`: all 3 Peers would be removed from tenant-bell, ",
    );
    assert_contains(
        &run.stdout,
        "help: to keep them, name `management` in `hubs` again; if intended, run",
    );
    folder.edit("mesh.yaml", other, &format!("{other}      - management\n"));
    assert_eq!(errors(&folder), [""; 0]);
    // Which clusters should exchange packets is unknown.
    folder.edit("mesh.yaml", other, "hubs:\n      - manager\n");
    let run = folder.run(&["verify"]);
    assert_eq!(run.stdout.matches("error[").count(), 1, "{}", run.stdout);
    assert_contains(&run.stdout, "correct or remove `manager`, or declare a cluster");
}

/// The last commit shows that a person has edited the file, for any kind of edit.
#[test]
fn an_edited_rendered_file_is_one_entry() {
    let repository = Repository::of(rendered("quickstart"));
    repository.commit();
    let folder = &repository.folder;
    let (file, key) =
        ("rendered/west/quickstart--east.yaml", "edCOOaLcM8iC3X8kOu7djeP3DTMwTqW2gsTc0cEQamc=");
    for (from, to) in [
        ("name: quickstart--east--east-agent-1", "name: quickstart--east--east-agent-9"),
        (key, "jgYlQUeUCeILW6G5WS2RYVqKqILc56hwnDGVgXHgQHg="),
        (key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ("  - \"10.43.0.0/16\"\n", ""),
        ("198.18.113.12", "198.18.113.77"),
    ] {
        folder.edit(file, from, to);
        let found = lines(folder);
        let edited: Vec<_> = found.iter().filter(|it| it.contains("edited-file")).collect();
        assert_eq!(edited.len(), 1, "{to}: {found:#?}");
        assert_eq!(found.len(), 1, "{to}: {found:#?}");
        let run = folder.run(&["validate"]);
        assert_contains(
            &run.stdout,
            "help: run `git checkout HEAD -- rendered/west/quickstart--east.yaml`; if",
        );
        repository.git(&["checkout", "--quiet", "HEAD", "--", file]);
        assert_eq!(lines(folder), [""; 0]);
    }
    // Git may check out other line ends, so to check it out again does not help.
    let text = folder.read(file);
    folder.write(file, text.replace('\n', "\r\n"));
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "help: add a line to `.gitattributes`");
    assert!(!run.stdout.contains("git checkout"), "{}", run.stdout);
    folder.write(file, text);
    // A commit that has the edit does not show who made it.
    folder.edit(file, "198.18.113.12", "198.18.113.77");
    repository.commit();
    assert_eq!(lines(folder), [""; 0]);
}

/// A render only removes the Peers of a cluster from its own folder, which harm it.
#[test]
fn a_rendered_file_in_another_folder_is_one_entry() {
    let folder = rendered("quickstart");
    let (source, kustomization) =
        ("rendered/east/quickstart--west.yaml", "mismatched-kustomization");
    for (copy, found) in [
        ("rendered/west/quickstart--west.yaml", format!("warning {kustomization}")),
        (
            "rendered/east/backup.yaml",
            "warning clashing-peers 1 other finding follows from it)".to_owned(),
        ),
    ] {
        fs::copy(folder.path(source), folder.path(copy)).unwrap();
        assert_eq!(lines(&folder), [found], "{copy}");
        let run = folder.run(&["verify"]);
        assert!(!run.stdout.contains("twin-peers"), "{}", run.stdout);
        assert_contains(
            &run.stdout,
            "help: run `clustermesh diff --against rendered` to see what changes, ",
        );
        assert_eq!(folder.run(&["render"]).code, 0);
        assert_eq!(lines(&folder), [""; 0]);
        assert!(!folder.path(copy).exists());
    }
    // The file that a wrong copy replaced is written again.
    fs::remove_dir_all(folder.path("rendered/west")).unwrap();
    copy(&folder.path("rendered/east"), &folder.path("rendered/west"));
    assert_eq!(lines(&folder), [""; 0]);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert!(folder.path("rendered/west/quickstart--east.yaml").exists());
}

/// Each Peer of a file that was edited may be wrong.
#[test]
fn an_edited_file_is_one_entry() {
    let folder = rendered("quickstart");
    let file = "rendered/west/quickstart--east.yaml";
    let text = folder.read(file);
    let without = text.lines().filter(|it| !it.ends_with(" 51820")).collect::<Vec<_>>().join("\n");
    folder.write(file, without + "\n");
    assert_eq!(lines(&folder), ["warning edited-file 3 other findings follow from it)"]);
}

/// A policy may refuse all that a mesh declares. Paths that work are then not all that the mesh asks for.
#[test]
fn links_without_a_path_are_named() {
    let folder = rendered("hub-and-spokes");
    let policy = "policies/tenant-curie.yaml";
    let errors = |folder: &Folder| -> Vec<String> {
        lines(folder).into_iter().filter(|it| it.starts_with("error")).collect()
    };
    for (from, to, found) in [
        (
            "[management]",
            "[tenant-ada]",
            "error one-sided-link 2 other findings follow from it: error[lost-source])",
        ),
        (
            "  localNetworks",
            "  acceptedNetworks: [10.9.0.0/16]\n  localNetworks",
            "error unaccepted-range 2 other findings follow from it: errors[empty-target, lost-source])",
        ),
    ] {
        folder.edit(policy, from, to);
        assert_eq!(errors(&folder), [found]);
        let all = ["*/management", "*/tenant-curie", "tenant-curie"];
        let flags = all.iter().flat_map(|it| ["--allow-empty", it]);
        assert_eq!(folder.run(&["render"].into_iter().chain(flags).collect::<Vec<_>>()).code, 0);
        let run = folder.run(&["verify"]);
        assert_contains(
            &run.stdout,
            "1 pair of clusters that a mesh links has no declared paths: management and tenant-curie (see `clustermesh validate`).",
        );
        folder.edit(policy, to, from);
        assert_eq!(folder.run(&["render"]).code, 0);
        let run = folder.run(&["verify"]);
        assert!(!run.stdout.contains("that a mesh links"), "{}", run.stdout);
    }
}

/// A leader that lost its label leaves its location with a leader that has no address.
#[test]
fn a_missing_label_of_a_location_is_one_entry() {
    let folder = rendered("multi-cloud-location");
    let before = lines(&folder);
    let snapshot = "snapshots/aws.json";
    let whole = folder.read(snapshot);
    let without = |keep: usize| {
        let mut snapshot: Value = serde_json::from_str(&whole).unwrap();
        for node in snapshot["nodes"].as_array_mut().unwrap().iter_mut().take(keep) {
            let labels = node["labels"].as_object_mut().unwrap();
            labels.retain(|key, _| !key.ends_with("/region"));
        }
        snapshot.to_string()
    };
    folder.write(snapshot, without(1));
    let mut found = lines(&folder);
    found.retain(|it| !before.contains(it));
    assert_eq!(
        found[0],
        "warning missing-location findings about 1 node and 3 other findings follow from it: \
         warnings[missing-wireguard-ip, moved-anchor])"
    );
    let run = folder.run(&["validate"]);
    let command = "kubectl --context aws annotate node ip-10-30-4-23.eu-west-1.compute.internal --overwrite \
                   kilo.squat.ai/location=LOCATION";
    assert_contains(
        &run.stdout,
        &format!("help: if it belongs to a location, run `{command}`, then"),
    );
    // On another LAN, the node without an address has a reason of its own.
    let other = without(1).replace("10.30.4.23/20", "10.99.4.23/20");
    folder.write(snapshot, other);
    let found = lines(&folder);
    assert!(found.contains(&"warning missing-wireguard-ip".to_owned()), "{found:?}");
}

/// The snapshot is taken and checked in one run.
#[test]
fn init_reports_a_stale_node_once() {
    let folder = Folder::empty();
    let nodes = project().join("examples/hub-and-spokes/nodes");
    let from = |cluster: &str, file: &str| format!("{cluster}={}", nodes.join(file).display());
    let [east, west] = [("east", "tenant-dijkstra.json"), ("west", "tenant-ada.json")];
    let run =
        folder.run(&["init", "--from", &from(east.0, east.1), "--from", &from(west.0, west.1)]);
    let all = run.stdout + &run.stderr;
    assert_eq!((run.code, all.matches("stale-node").count()), (0, 1), "{all}");
}

/// Either the laptop or the cluster may have the wrong range.
#[test]
fn the_range_of_a_laptop_in_a_cluster_can_be_removed() {
    let folder = rendered("external-peers");
    let subnet = "wireguardCIDR: 10.5.0.0/16";
    let wrong = format!("{subnet}\n      additionalCIDRs: [10.200.0.0/24]");
    folder.edit("mesh.yaml", subnet, &wrong);
    assert_eq!(lines(&folder), ["error overlapping-ranges"]);
    assert_contains(
        &folder.run(&["validate"]).stdout,
        ", or remove 10.200.0.0/24 from `west` if no address of that cluster is in it",
    );
}

/// Its keys stay, so nothing is lost, and no flag is needed.
#[test]
fn a_renamed_external_peer_is_one_entry() {
    let folder = rendered("external-peers");
    folder.edit("mesh.yaml", "    - name: laptop", "    - name: phone");
    assert_eq!(
        lines(&folder),
        ["error renamed-peer 1 other finding follows from it: error[empty-expectation])"]
    );
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "`external.phone`: was called `external.laptop`, so Peer prod--external.laptop would be renamed to \
         prod--external.phone (targets east, west)",
    );
    assert_contains(&run.stdout, "help: write the new name in expectations too; Kilo drops a key");
    assert!(!run.stdout.contains("allow-empty"), "{}", run.stdout);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("expectations.yaml", "external.laptop", "external.phone");
    assert_eq!(lines(&folder), [""; 0]);
    // Another key is another peer.
    let key = folder.read("mesh.yaml");
    let key = key.split("- name: phone").nth(1).unwrap().split("publicKey: ").nth(1).unwrap();
    let key = key.lines().next().unwrap().to_owned();
    folder.edit("mesh.yaml", &key, &STANDARD.encode([77; 32]));
    folder.edit("mesh.yaml", "    - name: phone", "    - name: tablet");
    assert!(
        lines(&folder).iter().any(|it| it.starts_with("error lost-source")),
        "{:?}",
        lines(&folder)
    );
}

/// Its folder is lost, which a person has to allow.
#[test]
fn a_completely_renamed_cluster_is_one_entry() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: west", "- name: wien");
    fs::rename(folder.path("snapshots/west.json"), folder.path("snapshots/wien.json")).unwrap();
    folder.edit("snapshots/wien.json", "\"cluster\":\"west\"", "\"cluster\":\"wien\"");
    assert_eq!(lines(&folder), ["error lost-target findings about 2 nodes follow from it)"]);
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "west: is now called `wien`, but its folder has 4 Peers");
    assert_contains(
        &run.stdout,
        "help: let the Flux Kustomization or Argo CD Application of west apply the folder `wien`, write the new name in \
         expectations, and run `clustermesh render --allow-empty west`\n",
    );
    assert_eq!(folder.run(&["render", "--allow-empty", "west"]).code, 0);
    assert_eq!(lines(&folder), [""; 0]);
}

/// The nodes of each cluster are in the ranges of the other.
#[test]
fn exchanged_names_are_one_entry() {
    let flat = Folder::mesh();
    for number in 1..=3 {
        let [pods, wireguard] = [format!("10.{number}.0.0/16"), format!("10.10{number}.0.0/24")];
        let typed = format!("podCIDRs: [{pods}]\n      wireguardCIDR: {wireguard}");
        flat.edit("mesh.yaml", &typed, &format!("allowedNetworks: [{pods}, {wireguard}]"));
    }
    assert_eq!(flat.run(&["render"]).code, 0);
    for folder in [rendered("quickstart"), flat] {
        let before = lines(&folder);
        let mesh = folder.read("mesh.yaml").replace("- name: east", "- name: TMP");
        let mesh =
            mesh.replace("- name: west", "- name: east").replace("- name: TMP", "- name: west");
        folder.write("mesh.yaml", mesh);
        let run = folder.run(&["validate"]);
        assert_contains(
            &run.stdout,
            "error[contradicted-declaration]: the nodes of `west` are in the ranges of `east`, and the nodes of `east` in \
             the ranges of `west` (",
        );
        assert_contains(&run.stdout, "help: exchange the two names");
        let mut found = lines(&folder);
        found.retain(|it| !before.contains(it));
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

/// A line of two entries.
#[test]
fn exchanged_ranges_are_one_line() {
    for (lines_of, message) in [
        (["wireguardCIDR: 10.4.0.0/16", "wireguardCIDR: 10.6.0.0/16"], "the two `wireguardCIDR`"),
        (["- 10.42.0.0/16", "- 10.244.0.0/16"], "the two `podCIDRs`"),
    ] {
        let folder = rendered("quickstart");
        let before = lines(&folder);
        let [one, other] = lines_of;
        let mesh = folder.read("mesh.yaml").replace(one, "TMP");
        folder.write("mesh.yaml", mesh.replace(other, one).replace("TMP", other));
        let run = folder.run(&["validate"]);
        assert_contains(&run.stdout, &format!("help: exchange {message}\n"));
        let mut found = lines(&folder);
        found.retain(|it| !before.contains(it));
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

/// A copy of an entry that only has another name.
#[test]
fn a_copied_entry_is_one_entry() {
    let folder = Folder::rendered();
    let copy = "    - name: south
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.102.0.0/24
";
    folder.edit("mesh.yaml", NORTH, &format!("{NORTH}{copy}"));
    let run = folder.run(&["validate"]);
    assert_contains(
        &run.stdout,
        "error[overlapping-ranges]: `south` declares the same ranges as `north`: 10.2.0.0/16, 10.102.0.0/24",
    );
    assert_eq!(run.stdout.matches("overlapping-ranges").count(), 1, "{}", run.stdout);
    // With one range of its own, the other one may be meant.
    folder.edit("mesh.yaml", copy, &copy.replace("10.2.0.0", "10.9.0.0"));
    assert_contains(&folder.run(&["validate"]).stdout, "10.102.0.0/24 of `south` overlaps");
}

/// Neither the leader nor the nodes that may lead next keep the NAT open.
#[test]
fn missing_keepalives_are_one_entry() {
    for (key, value) in [
        ("persistent-keepalive\": \"25", "persistent-keepalive\": \"0"),
        ("\"kilo.squat.ai/persistent-keepalive\": \"25\",", ""),
    ] {
        let folder = rendered("multi-cloud-location");
        let before = lines(&folder);
        let text = folder.read("snapshots/onprem.json").replace(key, value);
        folder.write("snapshots/onprem.json", text);
        let mut found = lines(&folder);
        found.retain(|it| !before.contains(it));
        assert_eq!(
            found,
            ["warning roaming-node findings about 1 node and 1 other finding follow from it)"]
        );
        assert_contains(
            &folder.run(&["validate"]).stdout,
            "annotate node rack1-node2 rack2-node1 rack1-node1 --overwrite kilo.squat.ai/persistent-keepalive=25`",
        );
    }
}

/// By a label with too many values, nodes lead that have no address, and ranges move to them.
#[test]
fn a_label_with_too_many_locations_is_one_entry() {
    let folder = rendered("multi-cloud-location");
    let before = lines(&folder);
    let label = "      topologyLabel: topology.kubernetes.io/zone\n";
    let line = "      granularity: Location\n";
    folder.edit("mesh.yaml", line, &format!("{line}{label}"));
    let mut found = lines(&folder);
    found.retain(|it| !before.contains(it));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(&found[0], "warning missing-wireguard-ip 2 other findings follow from it");
    assert_contains(
        &folder.run(&["validate"]).stdout,
        "topologyLabel: topology.kubernetes.io/zone",
    );
}

/// An expectation about a cluster that is gone, or whose nodes are all left out, does not come first.
#[test]
fn expectations_follow_from_their_cluster() {
    let folder = rendered("hub-and-spokes");
    let mesh = folder.read("mesh.yaml");
    let [start, end] = ["tenant-curie", "tenant-dijkstra"]
        .map(|it| mesh.find(&format!("    - name: {it}")).unwrap());
    let without = format!("{}{}", &mesh[..start], &mesh[end..]).replace("tenant-curie, ", "");
    folder.write("mesh.yaml", without);
    let errors = |folder: &Folder| -> Vec<String> {
        lines(folder).into_iter().filter(|it| it.starts_with("error")).collect()
    };
    let found = errors(&folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(&found[0], "error lost-target ");
    folder.write("mesh.yaml", mesh);
    let labels = folder.read("snapshots/management.json");
    let labels = labels.replace("kilo.example.com/gateway", "kilo.example.com/other");
    folder.write("snapshots/management.json", labels);
    let found = errors(&folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(&found[0], "error contradicted-declaration ");
    // An empty snapshot is the cause of what clusters lose.
    let folder = rendered("quickstart");
    folder.keep("east", &[]);
    let found = errors(&folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(&found[0], "error silent-cluster ");
}
