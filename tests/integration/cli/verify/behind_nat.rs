//! Nodes behind NAT: where others see them, and which of them no node can dial.

use crate::cli::*;
use crate::support::{assert_contains, copy, project};

/// `examples/multi-cloud-location`, whose cluster behind NAT also declares its LAN.
fn with_the_lan() -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples/multi-cloud-location"), &folder.path(""));
    let wireguard = "      wireguardCIDR: 10.24.0.0/24\n";
    let lan = format!("{wireguard}      additionalCIDRs: [192.168.70.0/24]\n");
    folder.edit("mesh.yaml", wireguard, &lan);
    folder
}

fn verified(folder: &Folder) -> (i32, Value) {
    let run = folder.run(&["verify", "--output", "json"]);
    (run.code, run.json())
}

/// The findings of a command of one rule, each as its severity and its message.
fn findings_of<'a>(value: &'a Value, rule: &str) -> Vec<(&'a str, &'a str)> {
    let findings = value["findings"].as_array().unwrap().iter();
    findings
        .filter(|it| it["rule"] == rule)
        .map(|it| (it["severity"].as_str().unwrap(), it["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_declared_lan_behind_nat_makes_no_loop() {
    let folder = with_the_lan();
    assert_eq!(folder.run(&["render"]).code, 0);
    let peers = folder.read("rendered/aws/multi-cloud--onprem.yaml");
    assert!(peers.contains("192.168.70.11/32"), "{peers}");
    let (code, value) = verified(&folder);
    let total = &value["total"];
    assert_eq!((&total["declared"], &total["working"]), (&json!(246), &json!(230)));
    assert!(findings_of(&value, "loops").is_empty(), "{value:#}");
    // The LAN has no anchor.
    assert_eq!(findings_of(&value, "no-route").len(), 1);
    assert_eq!(code, 1);
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert!(!validated.contains("looping-endpoint"), "{validated}");
}

/// The two clusters of a mesh, of whose three nodes the last ones have no endpoint for others.
fn partly_behind_nat(east: usize, west: usize) -> Folder {
    let folder = Folder::empty();
    let mesh = MESH.replace(NORTH, "");
    folder.write(
        "mesh.yaml",
        mesh.replace("\n      pod", "\n      persistentKeepalive: 25\n      pod"),
    );
    for (number, cluster, roaming) in [(1, "east", east), (3, "west", west)] {
        let nodes = [1, 2, 3].map(|it| {
            let mut node = node(number, it);
            node["annotations"]["kilo.squat.ai/persistent-keepalive"] = json!("25");
            if 3 - roaming < usize::from(it) {
                node["addresses"].as_array_mut().unwrap().pop();
                let private = format!("192.168.{number}.{it}:51820");
                node["annotations"]["kilo.squat.ai/endpoint"] = json!(private);
            }
            node
        });
        folder.keep(cluster, &nodes);
    }
    folder
}

#[test]
fn validate_names_the_pairs_that_verify_finds_closed() {
    let folder = partly_behind_nat(1, 1);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, value) = verified(&folder);
    assert_eq!(code, 1);
    let total = &value["total"];
    assert_eq!((&total["declared"], &total["working"]), (&json!(18), &json!(16)));
    let closed = findings_of(&value, "no-initiator");
    assert_eq!(closed.len(), 2, "{closed:?}");
    let run = folder.run(&["validate", "--fail-on", "warning", "--output", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(
        &run.stdout,
        "warning[no-initiator] east: east/n3 and west/n3 cannot dial each other",
    );
    // The advice.
    let mut nodes = [node(1, 1), node(1, 2), node(1, 3)];
    nodes[2]["annotations"]["kilo.squat.ai/clustermesh-endpoint"] = json!("198.18.113.13:51820");
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
    assert_eq!(verified(&folder).0, 0);
}

#[test]
fn no_pair_is_named_if_one_side_has_endpoints() {
    let folder = partly_behind_nat(0, 3);
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["validate", "--fail-on", "warning"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_eq!(verified(&folder).0, 0);
}

#[test]
fn a_node_without_keepalives_has_to_send_something_first() {
    let folder = partly_behind_nat(1, 0);
    let mut nodes = [node(1, 1), node(1, 2), node(1, 3)];
    nodes[2]["addresses"].as_array_mut().unwrap().pop();
    nodes[2]["annotations"]["kilo.squat.ai/persistent-keepalive"] = json!("0");
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["trace", "west/n1", "east/n3"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(
        &run.stdout,
        "nothing gets from west/n1 to east/n3 until east/n3 has sent something",
    );
    // The other way it sends something.
    assert_eq!(folder.run(&["trace", "east/n3", "west/n1"]).code, 0);
}
