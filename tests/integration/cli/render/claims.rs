//! Nodes' claims: they cost their own node something, and no run its success.

use crate::cli::*;
use crate::support::{assert_contains, copy, project};

/// Three clusters, of which east has this many nodes. The last of them also claims this.
fn liar(count: u8, key: &str, value: &str) -> Folder {
    let folder = Folder::mesh();
    let mut nodes: Vec<Value> = (1..=count).map(|number| node(1, number)).collect();
    nodes[usize::from(count) - 1]["annotations"][key] = json!(value);
    folder.keep("east", &nodes);
    folder
}

/// Returns the exit codes of `render`, `verify` and `verify --fail-on warning`, and what `verify` prints.
fn run(folder: &Folder) -> ([i32; 3], String) {
    let render = folder.run(&["render"]);
    let verify = folder.run(&["verify"]);
    let strict = folder.run(&["verify", "--fail-on", "warning"]);
    assert_harmless(&verify);
    ([render.code, verify.code, strict.code], verify.stdout)
}

#[test]
fn a_lan_that_one_node_of_five_claims_is_a_warning() {
    let folder = liar(5, "kilo.squat.ai/force-internal-ip", "10.3.1.9/16");
    let (codes, text) = run(&folder);
    assert_eq!(codes, [0, 0, 1], "{text}");
    assert_contains(&text, "warning[local-shadow]");
    let rendered = folder.read("rendered/east/prod--west.yaml");
    assert_contains(&rendered, "10.3.2.0/24");
    assert!(!rendered.contains("10.3.1.0/24"), "{rendered}");
    assert_contains(&rendered, "10.3.1.128/25");
    let validate = folder.run(&["validate"]);
    let text = validate.stdout + &validate.stderr;
    assert_contains(&text, "localNetworks: ['10.3.0.0/16']");
}

#[test]
fn a_node_that_is_left_out_for_what_it_says_promises_nothing() {
    let folder = liar(3, "kilo.squat.ai/force-endpoint", "198.18.113.200");
    let (codes, text) = run(&folder);
    assert_eq!(codes, [0, 0, 1], "{text}");
    assert_contains(&text, "warning[unproved-nodes]: east: `render` leaves out 1 of 3 nodes");
    // It claims a part of the pods of another node.
    let folder = Folder::mesh();
    let mut nodes = [node(1, 1), node(1, 2), node(1, 3)];
    nodes[2]["podCIDRs"] = json!(["10.1.1.128/25"]);
    folder.keep("east", &nodes);
    let (codes, text) = run(&folder);
    assert_eq!(codes[..2], [0, 0], "{text}");
}

/// No snapshot shows which of two nodes has the wrong pod CIDR.
#[test]
fn no_node_is_deleted_for_its_pod_cidr() {
    for cidr in ["10.1.1.128/25", "10.1.1.0/24"] {
        let folder = Folder::mesh();
        let mut nodes = [node(1, 1), node(1, 2), node(1, 3)];
        nodes[2]["podCIDRs"] = json!([cidr]);
        folder.keep("east", &nodes);
        let text = folder.run(&["validate"]).stdout;
        assert_contains(&text, "overlapping-node-pod-cidr");
        let is_named =
            |it: &str| text.contains(&format!("`kubectl --context east get node {it} -o "));
        assert!(is_named("n1 n3") || is_named("n3 n1"), "{cidr}: {text}");
        assert!(!text.contains("delete"), "{cidr}: {text}");
    }
}

#[test]
fn an_endpoint_in_a_range_of_another_cluster_is_a_warning() {
    let folder = liar(3, "kilo.squat.ai/force-endpoint", "172.30.0.5:51820");
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.102.0.0/24\n",
        "      wireguardCIDR: 10.102.0.0/24\n      additionalCIDRs: [172.30.0.0/24]\n",
    );
    let (codes, text) = run(&folder);
    assert_eq!(codes, [0, 0, 1], "{text}");
    assert_contains(&text, ", because of looping-endpoint of east/");
}

#[test]
fn what_people_declare_wrong_still_fails() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.102.0.0/24\n",
        "      wireguardCIDR: 10.102.0.0/24\n      additionalCIDRs: [192.168.1.0/24]\n",
    );
    let (codes, text) = run(&folder);
    assert_eq!(codes, [0, 1, 1], "{text}");
    // The same for the target: nothing of that range is declared for it.
    folder.edit(
        "mesh.yaml",
        "      wireguardCIDR: 10.101.0.0/24\n",
        "      wireguardCIDR: 10.101.0.0/24\n      localNetworks: [192.168.1.0/24]\n",
    );
    let (codes, text) = run(&folder);
    assert_eq!(codes, [0, 0, 0], "{text}");
}

/// Nodes without an endpoint had none before, and an external peer has no nodes: only a person can change that.
#[test]
fn a_person_takes_away_how_a_cluster_is_reached() {
    for (name, line, edited) in [
        ("multi-cloud-location", "persistentKeepalive: 25", "persistentKeepalive: 0"),
        ("multi-cloud-location", "      persistentKeepalive: 25\n", ""),
        // Its nodes still have the external addresses, and the internal ones are in its own ranges.
        ("multi-cloud-location", "        - ExternalIP\n", "        - InternalIP\n"),
        ("external-peers", "endpoint: 198.18.77.1:51820", "endpoint: 10.42.0.9:51820"),
    ] {
        let folder = Folder::empty();
        copy(&project().join("examples").join(name), folder.0.path());
        assert_eq!(folder.run(&["render", "--check"]).code, 0, "{name}");
        folder.edit("mesh.yaml", line, edited);
        let run = folder.run(&["render"]);
        assert_contains(&run.stderr, "error[lost-source]");
        assert_contains(&run.stderr, "nothing was written");
        assert_eq!(run.code, 1, "{name}");
    }
}
