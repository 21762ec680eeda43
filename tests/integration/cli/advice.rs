//! Advice: each of these makes a mistake, follows the printed help literally, and runs the program again.

use crate::cli::*;
use crate::support::assert_contains;

mod broken_entry;
mod delivery;
mod files;
mod mistakes;
mod mtu;
mod nodes;
mod one_finding;
mod rendered_tree;
mod whole_mesh;

/// Returns the findings of `validate`: rule, severity, help and message.
fn findings(folder: &Folder) -> Vec<[String; 4]> {
    let report = folder.run(&["validate", "--output", "json"]).json();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|it| ["rule", "severity", "help", "message"].map(|key| text(&it[key]))).collect()
}

/// A rendered cluster of two regions, in each of which the first node leads.
fn regions() -> Folder {
    let folder = Folder::mesh();
    let nodes = [(1, "oslo"), (2, "oslo"), (3, "bergen"), (4, "bergen")].map(|(number, region)| {
        let mut node = node(1, number);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        node["labels"] = json!({ "topology.kubernetes.io/region": region, "pool": "a", "host": number.to_string() });
        if number % 2 == 0 {
            node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
        }
        if number == 3 {
            node["annotations"]["kilo.squat.ai/leader"] = json!("");
        }
        node
    });
    folder.keep("east", &nodes);
    folder.edit("mesh.yaml", NORTH, &format!("      serviceCIDR: 10.201.0.0/16\n{NORTH}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    folder
}

/// What follows from the label has no advice of its own.
#[test]
fn a_label_that_makes_all_nodes_one_location() {
    let folder = regions();
    let line = "      topologyLabel: pool\n";
    folder.edit("mesh.yaml", NORTH, &format!("{line}{NORTH}"));
    insta::assert_snapshot!(folder.run(&["validate"]).stdout, @"
    warning[contradicted-declaration]: east: label pool puts `n1`, `n3` into one location, but each has a WireGuard address, which Kilo gives only to the leader (2 other findings follow from it)
      --> mesh.yaml:11:22
       |
    11 |       topologyLabel: pool
       |                      ^^^^ declared here
    help: remove `topologyLabel` from the entry of `east` if Kilo runs without `--topology-label`; if the label is right, run `clustermesh snapshot east`: Kilo may have just elected another leader
    ");
    folder.edit("mesh.yaml", "topologyLabel: pool", "topologyLabel: rack");
    let [[rule, severity, _, message], ..] = &findings(&folder)[..] else {
        panic!("no finding");
    };
    assert_eq!([rule, severity], ["contradicted-declaration", "warning"]);
    assert_contains(
        message,
        "no node has the label rack, so `n1`, `n3` are in one location, but each has a WireGuard address",
    );
    folder.edit("mesh.yaml", "      topologyLabel: rack\n", "");
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// A loss that follows from a wrong line is not intended, so no flag is offered for it.
#[test]
fn losses_of_a_wrong_line_follow_from_it() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", NORTH, "");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    let nodes = [(1, "10.77.1.0/24"), (2, "10.77.2.0/24")].map(|(number, pods)| {
        let mut node = node(1, number);
        node["podCIDRs"] = json!([pods]);
        node
    });
    folder.keep("east", &nodes);
    for command in [&["render"][..], &["render", "--check"], &["validate"]] {
        let run = folder.run(command);
        let all = run.stdout + &run.stderr;
        assert_eq!(run.code, 1, "{all}");
        assert_contains(&all, "error[contradicted-declaration]: east: ");
        assert!(!all.contains("allow-empty"), "{all}");
    }
    folder.edit("mesh.yaml", "podCIDRs: [10.1.0.0/16]", "podCIDRs: [10.77.0.0/16]");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// During an election, the old leader may still have its address, and the label is right.
#[test]
fn an_election_contradicts_no_label() {
    let folder = regions();
    folder.edit(
        "snapshots/east.json",
        "\"kilo.squat.ai/wireguard-ip\":\"\"",
        "\"kilo.squat.ai/wireguard-ip\":\"10.101.0.2/24\"",
    );
    let found = findings(&folder);
    let is_contradiction = |it: &&[String; 4]| it[0] == "contradicted-declaration";
    assert_eq!(found.iter().find(is_contradiction), None);

    // One region with two zones: by zone, each leader would be alone, but the new one has the address of the old one.
    let folder = Folder::mesh();
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.101.0.1/24");
        node["labels"] = json!({
            "topology.kubernetes.io/region": "oslo",
            "topology.kubernetes.io/zone": format!("oslo-{number}"),
        });
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(findings(&folder).iter().find(is_contradiction), None);
}

/// By a label that separates more nodes than Kilo does, nodes lead that have no address.
#[test]
fn a_label_that_makes_too_many_locations() {
    let folder = regions();
    let line = "      topologyLabel: host\n";
    folder.edit("mesh.yaml", NORTH, &format!("{line}{NORTH}"));
    let found = findings(&folder);
    assert!(found.iter().all(|it| it[0] == "missing-wireguard-ip"), "{found:?}");
    insta::assert_snapshot!(found[0][2], @"remove `topologyLabel` from the entry of `east` if Kilo runs without `--topology-label`; otherwise run `clustermesh snapshot east` again in a minute, as a node that leads its location since a moment ago gets its address then, and check that Kilo's `--subnet` has a free address");
    folder.edit("mesh.yaml", line, "");
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// The default of Kilo is not the label that its agents use.
#[test]
fn a_label_that_is_not_declared() {
    let folder = regions();
    let text = folder.read("snapshots/east.json");
    let renamed = text.replace("kubernetes.io/region", "kubernetes.io/zone");
    folder.write("snapshots/east.json", renamed);
    insta::assert_snapshot!(folder.run(&["validate"]).stdout, @"
    warning[contradicted-declaration]: east: no node has the label topology.kubernetes.io/region, so `n1`, `n3` are in one location, but each has a WireGuard address, which Kilo gives only to the leader (3 other findings follow from it)
     --> mesh.yaml:7:7
      |
    7 |     - name: east
      |       ^^^^^^^^^^
    help: write `topologyLabel: topology.kubernetes.io/zone` in the entry of `east` if Kilo runs with `--topology-label=topology.kubernetes.io/zone`; if the label is right, run `clustermesh snapshot east`: Kilo may have just elected another leader
    ");
    folder.edit(
        "mesh.yaml",
        NORTH,
        &format!("      topologyLabel: topology.kubernetes.io/zone\n{NORTH}"),
    );
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// Commands name the cluster that they change, by the context of the config, and the snapshot that is needed then.
#[test]
fn commands_name_the_cluster() {
    let folder = Folder::mesh();
    let mut dialless = node(1, 1);
    dialless["addresses"] = json!([]);
    let mut undeclared = node(1, 2);
    undeclared["podCIDRs"] = json!(["10.77.2.0/24"]);
    folder.keep("east", &[dialless.clone(), undeclared, node(1, 3), node(1, 4)]);

    let helps = |folder: &Folder| -> String {
        let findings = findings(folder).into_iter();
        let lines = findings.map(|[rule, _, help, _]| format!("{rule}: {help}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    insta::assert_snapshot!(helps(&folder), @"
    missing-endpoint: if other clusters should not reach such nodes, leave them out with `nodeSelector` of `east`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `east` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`
    undeclared-pod-cidr: if `east` uses this range for pods, add it to `podCIDRs` of the entry; otherwise look at the node with `kubectl --context east get node n2 -o yaml`, let it register again, and run `clustermesh snapshot east`
    ");
    folder.write(
        "clustermesh.yaml",
        "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters:
  east: { context: admin@east }
",
    );
    assert_contains(&helps(&folder), "`kubectl --context admin@east annotate ");
}

/// The Peers have another name in each target.
#[test]
fn a_renamed_peer() {
    let folder = Folder::rendered();
    let mut renamed = node(1, 1);
    renamed["name"] = json!("new");
    folder.keep("east", &[renamed, node(1, 2)]);
    let [_, _, help, _] = &findings(&folder)[0];
    insta::assert_snapshot!(help, @"Kilo drops a key when an old Peer with it is deleted: with Flux, run `kubectl --context north annotate peers --overwrite -l kilo-clustermesh.io/source-cluster=east touched=1`, `kubectl --context west annotate peers --overwrite -l kilo-clustermesh.io/source-cluster=east touched=1` after that; Argo CD needs nothing if its Applications have `PrunePropagationPolicy=background`");
}

/// Returns Peers as a cluster has them, less the first lines with this text.
fn peers_of(folder: &Folder, cluster: &str, less: &str) -> String {
    let north = folder.read(&format!("rendered/{cluster}/prod--north.yaml"));
    let east = folder.read(&format!("rendered/{cluster}/prod--east.yaml"));
    let all = format!("{north}---\n{east}");
    let lines = all.lines().filter(|it| it.trim() != less);
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Another render changes nothing while the cluster waits for Flux or Argo CD.
#[test]
fn a_cluster_without_the_last_change_of_the_tree() {
    let folder = Folder::rendered();
    folder.write("west.yaml", peers_of(&folder, "west", "- \"10.1.1.0/24\""));
    let trace = ["trace", "west/n1", "east/n1", "--peers", "west=west.yaml"];
    let verify = ["verify", "--peers", "west=west.yaml"];
    let help = |folder: &Folder, arguments: &[&str]| {
        let run = folder.run(arguments);
        assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
        let text = format!("{}{}", run.stdout, run.stderr);
        let help = text.lines().find(|it| it.contains("help: "));
        help.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    insta::assert_snapshot!(help(&folder, &trace), @"help: the rendered tree is up to date: let Flux or Argo CD apply it in `west`; if that is done, dump the Peers again: the file of `--peers` is old");
    assert_eq!(help(&folder, &trace), help(&folder, &verify));
    folder.write("west.yaml", peers_of(&folder, "west", ""));
    assert_eq!(folder.run(&trace).code, 0);
    // With an old tree, a render helps.
    let peers = peers_of(&folder, "west", "- \"10.1.1.0/24\"");
    folder.write("west.yaml", &peers);
    folder.edit("rendered/west/prod--east.yaml", "10.1.1.0/24", "10.1.1.0/25");
    insta::assert_snapshot!(help(&folder, &trace), @"help: run `clustermesh render` and apply the result; if nothing changes, `clustermesh validate` lists the nodes and ranges that are left out");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_contains(&help(&folder, &trace), "let Flux or Argo CD apply it in `west`");
}

/// A rendered mesh with an output for each target.
fn with_outputs() -> Folder {
    let folder = Folder::mesh();
    folder.write("templates/app.yaml", "name: {{ target.name }}\n");
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:\n\
         - { template: templates/app.yaml, path: 'apps/{{ target.name }}.yaml' }\n",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

/// Returns both versions of a text as git writes them if it cannot merge them.
fn conflicted(text: &str) -> String {
    format!("<<<<<<< HEAD\n{text}=======\nother\n>>>>>>> branch\n")
}

#[test]
fn conflict_markers_in_outputs_and_their_record() {
    let record = "rendered/.clustermesh-outputs";
    for path in ["apps/west.yaml", record] {
        let folder = with_outputs();
        let (text, all) = (folder.read(path), folder.touches("."));
        folder.write(path, conflicted(&text));
        let found = findings(&folder);
        let [[rule, _, help, message]] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(rule, "invalid-output");
        assert_contains(message, "git's conflict markers");
        assert_contains(help, "run `clustermesh render`");
        fs::remove_file(folder.path(path)).unwrap();
        if path == record {
            assert_contains(help, "delete it together with the outputs that it lists");
            fs::remove_dir_all(folder.path("apps")).unwrap();
        }
        assert_eq!(folder.run(&["render"]).code, 0);
        let texts = |all: BTreeMap<String, Touch>| -> BTreeMap<String, String> {
            all.into_iter().map(|(path, (.., text))| (path, text)).collect()
        };
        assert_eq!(texts(folder.touches(".")), texts(all));
    }
}

/// Only the mesh is gone, and the Peers that were rendered from it are there.
#[test]
fn a_deleted_mesh() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("mesh.yaml")).unwrap();
    for command in ["validate", "render", "verify"] {
        let run = folder.run(&[command]);
        assert_eq!(run.code, 2);
        insta::allow_duplicates!(insta::assert_snapshot!(run.stderr, @"
        error: no mesh found: this folder has no `mesh.yaml` and no `meshes/`
        help: there are rendered Peers: use --mesh or -C to name a mesh elsewhere
        "));
    }
    folder.write("mesh.yaml", MESH);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

#[test]
fn a_config_that_lists_no_outputs_any_more() {
    let folder = with_outputs();
    folder.edit("clustermesh.yaml", "outputs:\n", "# outputs:\n");
    folder.edit("clustermesh.yaml", "- {", "# - {");
    let note = "note: the config lists no `outputs`, so a render removes apps/east.yaml, apps/north.yaml, apps/west.yaml";
    assert_contains(&folder.run(&["render", "--check"]).stderr, note);
    assert_contains(&folder.run(&["render"]).stderr, note);
    assert!(!folder.run(&["render"]).stderr.contains("note: "));
}

#[test]
fn a_deleted_template() {
    let folder = with_outputs();
    let text = folder.read("templates/app.yaml");
    fs::remove_file(folder.path("templates/app.yaml")).unwrap();
    let [_, _, help, _] = &findings(&folder)[0];
    insta::assert_snapshot!(help, @"correct the path in `template`, or remove this item from `outputs`");
    folder.write("templates/app.yaml", text);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// The file is written again by the same run, or after the errors that stop it.
#[test]
fn a_render_does_not_advise_to_render() {
    let folder = Folder::rendered();
    let path = "rendered/east/prod--west.yaml";
    folder.write(path, format!("{}garbage: [\n", folder.read(path)));
    let advice = "run `clustermesh render`";
    assert_contains(&folder.run(&["validate"]).stdout, advice);
    let run = folder.run(&["render"]);
    assert_eq!((run.code, run.stderr.contains(advice)), (0, false), "{}", run.stderr);
    assert_contains(&run.stderr, "[unreadable-manifest]");
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// Nodes were removed from the cluster, or the list was cut.
#[test]
fn a_snapshot_of_fewer_nodes() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (1..=8).map(|it| node(1, it)).collect();
    folder.keep("east", &nodes);
    let list = |numbers: std::ops::RangeInclusive<u8>| {
        let items: Vec<Value> = numbers.map(|it| api_node(1, it)).collect();
        folder.write(
            "dump.json",
            json!({ "kind": "NodeList", "apiVersion": "v1", "items": items }).to_string(),
        );
    };
    let snapshot = ["snapshot", "east", "--from", "dump.json"];
    list(1..=2);
    let run = folder.run(&snapshot);
    assert_eq!(run.code, 1);
    let help = run.stderr.lines().find(|it| it.contains("help: ")).unwrap();
    insta::assert_snapshot!(help, @"help: if these nodes were removed from the cluster, add `--accept east`; if the list was incomplete, run the command again with a new list");
    list(1..=8);
    assert_eq!(folder.run(&snapshot).code, 0);
    list(1..=2);
    assert_eq!(folder.run(&[&snapshot[..], &["--accept", "east"]].concat()).code, 0);
}

/// The error names what can be written instead.
#[test]
fn a_trace_to_what_is_no_end() {
    let folder = Folder::rendered();
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.103.0.0/24\n",
        "      wireguardCIDR: 10.103.0.0/24\n      serviceCIDR: 10.203.0.0/16\n",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let refusals = [
        ["east", "west:443"],
        ["east/n1", "west/n1:443"],
        ["east:443", "west"],
        ["east", "west:x"],
        ["east", "west:+80"],
        ["east", "10.3.0.0/16"],
        ["east", "west/10.3.0.0/16"],
        ["east", "http://10.3.1.2/"],
    ];
    let refusals = refusals.map(|[from, to]| {
        let run = folder.run(&["trace", from, to]);
        assert_eq!(run.code, 2);
        run.stderr
    });
    insta::assert_snapshot!(refusals.concat(), @"
    error: TO: `west:443` has a port, but `west` is not an address; no route depends on a port, so leave it out; for a Service, write its address
    error: TO: `west/n1:443` has a port, but `west/n1` is not an address; no route depends on a port, so leave it out; for a Service, write its address
    error: FROM: `east:443` has a port, but `east` is not an address; no route depends on a port, so leave it out; for a Service, write its address
    error: TO: `west:x` is neither a cluster, nor `CLUSTER/NODE`, nor an address; did you mean `west`?
    error: TO: `west:+80` is neither a cluster, nor `CLUSTER/NODE`, nor an address; known clusters: east, north, west
    error: TO: `10.3.0.0/16` is a range, not an address; write one address of it
    error: TO: `west/10.3.0.0/16` is a range, not an address; write one address of it
    error: TO: `http://10.3.1.2/` is a URL; write a cluster, `CLUSTER/NODE` or an address
    ");
    for arguments in [
        &["east", "west", "--class", "service"][..],
        &["east", "10.203.0.10:443"],
        &["east/n1", "west/n1"],
    ] {
        let run = folder.run(&[&["trace"], arguments].concat());
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
}

/// The first node by name is left out, so the packet goes to the next one.
#[test]
fn a_trace_to_a_cluster_whose_first_node_is_left_out() {
    let folder = Folder::mesh();
    let mut undeclared = node(3, 1);
    undeclared["podCIDRs"] = json!(["10.77.1.0/24"]);
    folder.keep("west", &[undeclared, node(3, 2), node(3, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["trace", "east", "west"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_contains(&run.stdout, "picked west/n2");
}

/// The other lines of a batch have their answers.
#[test]
fn a_line_of_a_batch_that_is_no_text() {
    let folder = Folder::rendered();
    let input = b"east west\neast \xff\r\nwest:443 east\nwest east\n";
    let run = folder.run_with_input(&["trace", "--batch"], input);
    assert_eq!(run.code, 2);
    let lines = run.stdout.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let lines = lines
        .map(|it| format!("{}: {}\n", it["line"], it.get("verdict").unwrap_or(&it["message"])));
    insta::assert_snapshot!(lines.collect::<String>(), @r#"
    1: "delivered"
    2: "the line is not UTF-8"
    3: "FROM: `west:443` has a port, but `west` is not an address; no route depends on a port, so leave it out; for a Service, write its address"
    4: "delivered"
    "#);
}
