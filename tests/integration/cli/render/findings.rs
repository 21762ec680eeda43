//! The messages of `render` about nodes and ranges that it leaves out.

use serde_json::{Value, json};

use crate::cli::{Folder, NORTH, TREE, node};
use crate::support::assert_contains;

const SILENT: &str = "kilo.squat.ai/wireguard-ip";

/// A node that only its own cluster can dial.
fn hidden(number: u8) -> Value {
    let mut node = node(1, number);
    node["addresses"].as_array_mut().unwrap().pop();
    node
}

fn without(mut node: Value, annotation: &str) -> Value {
    node["annotations"].as_object_mut().unwrap().remove(annotation);
    node
}

#[test]
fn calls_findings_by_the_operators_reasons() {
    let folder = Folder::mesh();
    let mut nodes: Vec<Value> = (1..=9).map(|number| node(1, number)).collect();
    nodes[1]["podCIDRs"] = json!([]);
    nodes[2]["podCIDRs"] = json!(["172.16.0.0/24"]);
    nodes[3] = without(node(1, 4), SILENT);
    nodes[4]["annotations"][SILENT] = json!("10.101.0.5");
    nodes[5] = without(node(1, 6), "kilo.squat.ai/key");
    nodes[6]["annotations"]["kilo.squat.ai/force-endpoint"] = json!("198.18.113.17");
    nodes[7] = hidden(8);
    nodes[8]["annotations"][SILENT] = json!("10.101.0.1/24");
    folder.keep("east", &nodes);
    let run = folder.run(&["render"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"
    warning[missing-pod-cidr]: east/n2: left out: no pod CIDR is assigned
    help: let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, then run `clustermesh snapshot east`

    warning[undeclared-pod-cidr]: east/n3: left out: pod CIDR 172.16.0.0/24 is outside the declared ranges
    help: if `east` uses this range for pods, add it to `podCIDRs` of the entry; otherwise look at the node with `kubectl --context east get node n3 -o yaml`, let it register again, and run `clustermesh snapshot east`

    warning[missing-wireguard-ip]: east/n4: left out: annotation kilo.squat.ai/wireguard-ip is missing or empty
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[invalid-wireguard-ip]: east/n5: left out: WireGuard address `10.101.0.5` is not valid: `10.101.0.5` has no prefix length such as `/16`
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[missing-public-key]: east/n6: left out: annotation kilo.squat.ai/key is missing or empty
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[invalid-endpoint]: east/n7: left out: endpoint `198.18.113.17` of annotation kilo.squat.ai/force-endpoint: the port is missing, as in `203.0.113.1:51820`
    help: run `kubectl --context east annotate node n7 --overwrite kilo.squat.ai/force-endpoint=ADDRESS:51820`, then `clustermesh snapshot east`

    warning[missing-endpoint]: east/n8: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    help: if other clusters should not reach such nodes, leave them out with `nodeSelector` of `east`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `east` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`

    warning[duplicate-address]: east/n9: 10.101.0.1/32 left out: `n1` has the same address
    help: run `clustermesh snapshot east` again in a minute; if both nodes keep the address, check that Kilo runs on them

    east: +3 ~0 -0 files, 4 Peers of 2 clusters
    north: +3 ~0 -0 files, 4 Peers of 2 clusters
    west: +3 ~0 -0 files, 4 Peers of 2 clusters
    12 Peers in 3 targets; 7 nodes left out
    ");
}

#[test]
fn fails_on_warnings_if_asked_to() {
    let folder = Folder::mesh();
    folder.keep("east", &[node(1, 1), without(node(1, 2), SILENT)]);
    let run = folder.run(&["render", "--fail-on", "warning"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    warning[missing-wireguard-ip]: east/n2: left out: annotation kilo.squat.ai/wireguard-ip is missing or empty
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    1 warning
    nothing was written
    ");
    assert!(!folder.path("rendered").exists());
}

#[test]
fn renders_the_same_whatever_fails() {
    let folder = Folder::mesh();
    assert_eq!(folder.run(&["render", "--fail-on", "warning"]).code, 0);
    let first = folder.touches("rendered");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.touches("rendered"), first);
}

#[test]
fn no_flag_raises_the_severity_of_the_variable() {
    let folder = Folder::mesh();
    folder.keep("east", &[node(1, 1), without(node(1, 2), SILENT)]);
    let run = |value, flags: &[&str]| {
        let arguments = [&["render"], flags].concat();
        folder.run_with(&[("CLUSTERMESH_FAIL_ON", value)], &arguments)
    };
    for (value, flags, code) in [
        ("error", &[][..], 0),
        ("error", &["--fail-on", "warning"], 1),
        ("Warning", &[], 1),
        ("warning", &["--fail-on", "error"], 1),
        ("notice", &["--fail-on", "error"], 1),
        ("error", &["--fail-on", "notice"], 1),
        ("", &[], 0),
        ("", &["--fail-on", "warning"], 1),
    ] {
        assert_eq!(run(value, flags).code, code, "{value} {flags:?}");
    }
    for flags in [&[][..], &["--fail-on", "error"]] {
        let refused = run("none", flags);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    }
    // Commands without the flag ignore the variable.
    for value in ["none", "warning"] {
        let variable = [("CLUSTERMESH_FAIL_ON", value)];
        for command in
            [&["explain"][..], &["firewall"], &["guard", "west"], &["diff", "--against", "none"]]
        {
            let run = folder.run_with(&variable, command);
            assert_eq!(run.code, 0, "{command:?}: {}", run.stderr);
        }
    }
    insta::assert_snapshot!(run("none", &["--fail-on", "error"]).stderr, @"
    error: `CLUSTERMESH_FAIL_ON` must be `error`, `warning` or `notice`

    Usage: clustermesh <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn fails_on_a_warning_about_a_mesh_if_asked_to() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.1.0.0/16", "10.1.7.7/16");
    let run = folder.run(&["render", "--fail-on", "warning"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"
    warning[host-bits]: `10.1.7.7/16` has host bits set; clustermesh reads it as 10.1.0.0/16
     --> mesh.yaml:8:18
      |
    8 |       podCIDRs: [10.1.7.7/16]
      |                  ^^^^^^^^^^^
    help: write `10.1.0.0/16`

    1 warning
    nothing was written
    ");
    assert_eq!(folder.run(&["render"]).code, 0);
}

#[test]
fn tells_two_alike_in_full() {
    let folder = Folder::mesh();
    let silent = |number| without(node(1, number), SILENT);
    folder.keep("east", &[node(1, 1), silent(2), silent(3)]);
    let run = folder.run(&["render"]);
    assert_eq!(run.stderr.matches("warning[missing-wireguard-ip]: east/").count(), 2);
    assert!(!run.stderr.contains("like these"), "{}", run.stderr);
}

#[test]
fn tells_three_of_many_alike_and_a_count() {
    let folder = Folder::mesh();
    let silent = (2..=8).map(|number| without(node(1, number), SILENT));
    let nodes: Vec<Value> = std::iter::once(node(1, 1)).chain(silent).collect();
    folder.keep("east", &nodes);
    let mut nodes = nodes;
    nodes.truncate(2);
    folder.keep("north", &[node(2, 1), without(node(2, 2), SILENT)]);
    let run = folder.run(&["render"]);
    insta::assert_snapshot!(run.stderr, @"
    warning[missing-wireguard-ip]: east: 7 nodes left out: annotation kilo.squat.ai/wireguard-ip is missing or empty (`n2`, `n3`, `n4` and 4 more)
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[missing-wireguard-ip]: north/n2: left out: annotation kilo.squat.ai/wireguard-ip is missing or empty
    help: check that the Kilo agent runs there, then run `clustermesh snapshot north`

    east: +3 ~0 -0 files, 3 Peers of 2 clusters
    north: +3 ~0 -0 files, 3 Peers of 2 clusters
    west: +3 ~0 -0 files, 2 Peers of 2 clusters
    8 Peers in 3 targets; 8 nodes left out
    ");
}

#[test]
fn helps_who_has_bare_metal() {
    let folder = Folder::mesh();
    folder.keep("east", &[hidden(1), node(1, 2), hidden(3)]);
    let run = folder.run(&["render"]);
    insta::assert_snapshot!(run.stderr, @"
    warning[missing-endpoint]: east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    warning[missing-endpoint]: east/n3: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    help: if other clusters should not reach such nodes, leave them out with `nodeSelector` of `east`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `east` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`

    east: +3 ~0 -0 files, 4 Peers of 2 clusters
    north: +3 ~0 -0 files, 3 Peers of 2 clusters
    west: +3 ~0 -0 files, 3 Peers of 2 clusters
    10 Peers in 3 targets; 2 nodes left out
    ");
}

#[test]
fn needs_no_help_where_kilo_is_asked() {
    let folder = Folder::mesh();
    folder.keep("east", &[hidden(1), hidden(2)]);
    let chain = "- name: east\n      endpointFrom: [Annotation, ExternalIP, Kilo]";
    folder.edit("mesh.yaml", "- name: east", chain);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    assert_eq!(folder.tree(), TREE);
}

#[test]
fn warns_of_who_roams() {
    let folder = Folder::mesh();
    let silent = without(hidden(1), "kilo.squat.ai/persistent-keepalive");
    folder.keep("east", &[silent]);
    folder.edit("mesh.yaml", "- name: east", "- name: east\n      persistentKeepalive: 25");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"
    warning[roaming-node]: east/n1: no endpoint, and annotation kilo.squat.ai/persistent-keepalive is missing: others cannot dial the node, and the node opens tunnels only when it sends packets
     --> mesh.yaml:8:28
      |
    8 |       persistentKeepalive: 25
      |                            ^^
    help: run `kubectl --context east annotate node n1 --overwrite kilo.squat.ai/persistent-keepalive=25`, then `clustermesh snapshot east`

    east: +3 ~0 -0 files, 4 Peers of 2 clusters
    north: +3 ~0 -0 files, 3 Peers of 2 clusters
    west: +3 ~0 -0 files, 3 Peers of 2 clusters
    10 Peers in 3 targets
    ");
    let peer = folder.read("rendered/west/prod--east.yaml");
    let placeholder = "  endpoint:\n    dnsOrIP:\n      ip: \"192.0.2.1\"\n    port: 9\n  persistentKeepalive: 25\n";
    assert_contains(&peer, placeholder);
}

#[test]
fn points_at_a_declaration_that_all_nodes_contradict() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.33.0.0/16");
    let before = folder.touches("rendered");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1);
    let report = "error[contradicted-declaration]: west: both nodes have pod CIDRs";
    assert_contains(&run.stderr, report);
    assert_contains(&run.stderr, "--> mesh.yaml:14:");
    assert_eq!(folder.touches("rendered"), before);
}

#[test]
fn points_at_a_declaration_that_all_locations_contradict() {
    let folder = Folder::mesh();
    let location = "- name: west\n      granularity: Location";
    folder.edit("mesh.yaml", "- name: west", location);
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.33.0.0/16");
    folder.edit("snapshots/west.json", "\"full\"", "\"location\"");
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("error[contradicted-declaration]: west: "));
    assert!(!folder.path("rendered").exists());
}

#[test]
fn names_the_targets_of_what_only_some_do_not_get() {
    let folder = Folder::mesh();
    let mut twin = node(3, 1);
    twin["annotations"]["kilo.squat.ai/key"] =
        node(1, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("west", &[twin, node(3, 2)]);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"
    warning[key-of-target-node]: east/n1: left out: same public key as node `n1` of the target (target west) (findings about 1 node follow from it)
    help: on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot east west`; if it is one machine that moved, this snapshot is enough

    east: +3 ~0 -0 files, 3 Peers of 2 clusters
    north: +3 ~0 -0 files, 3 Peers of 2 clusters
    west: +3 ~0 -0 files, 3 Peers of 2 clusters
    9 Peers in 3 targets
    ");
}

/// One cluster routes only IPv6, and the other one only IPv4.
#[test]
fn what_different_families_leave_out_is_listed_with_them() {
    let folder = Folder::empty();
    let mesh = Folder::mesh().read("mesh.yaml");
    let mesh = mesh.replace(NORTH, "");
    let mesh = mesh.replace("10.1.0.0/16", "'fd00:1::/48'");
    let mesh = mesh.replace("10.101.0.0/24", "'fd00:101::/64'");
    folder.write("mesh.yaml", mesh);
    let mut six = node(1, 1);
    six["podCIDRs"] = json!(["fd00:1:0:1::/64"]);
    six["annotations"]["kilo.squat.ai/internal-ip"] = json!("fd00:9::1/64");
    six["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("fd00:101::1/64");
    folder.keep("east", &[six]);
    folder.keep("west", &[node(3, 1)]);
    let report = |folder: &Folder, format: &str| {
        let run = folder.run(&["validate", "--output", format]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        run.stdout
    };
    let concise = report(&folder, "concise");
    let errors: Vec<&str> = concise.lines().filter(|it| it.contains(": error[")).collect();
    insta::assert_snapshot!(errors.join("\n"), @"mesh.yaml:7:13: error[different-families] east: routes only IPv6, but west routes only IPv4: no packet between these clusters gets a reply (4 other findings follow from it: errors[empty-target, silent-cluster])");
    for rule in ["silent-cluster", "empty-target"] {
        assert!(!concise.contains(&format!("[{rule}] ")), "{concise}");
        // Programs get all of them.
        assert!(report(&folder, "json").contains(rule));
    }
    for format in ["human", "markdown", "github", "gitlab", "sarif"] {
        let text = report(&folder, format);
        assert!(text.contains("different-families"), "{format}: {text}");
        assert!(!text.contains("[empty-target]"), "{format}: {text}");
    }
    let human = report(&folder, "human");
    let allowed =
        "--allow-empty '*/east' --allow-empty '*/west' --allow-empty east --allow-empty west`";
    assert_contains(&human, allowed);
    assert!(human.starts_with("error[different-families]"), "{human}");
    // Without the cause, what follows from it is listed by itself.
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules: { different-families: { level: off, reason: x } }\n",
    );
    let concise = report(&folder, "concise");
    assert_eq!(concise.matches(": error[silent-cluster]").count(), 2, "{concise}");
    assert!(!concise.contains("check that Kilo runs"), "{concise}");
}
