//! Findings about what Kilo does: `validate` has one where `verify` fails, and after its help neither has any.

use crate::cli::*;
use crate::support::assert_contains;

/// Returns the rules of the findings of `validate` about a cluster, with what helps.
fn found(folder: &Folder, cluster: &str) -> Vec<(String, String)> {
    let report = folder.run(&["validate", "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let about = findings.filter(|it| it["cluster"] == cluster);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    about
        .map(|it| (text(&it["rule"]), text(&it["help"])))
        .collect()
}

/// Renders, and returns the exit code of `verify`.
fn verified(folder: &Folder) -> i32 {
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    folder.run(&["verify"]).code
}

#[test]
fn a_pod_cidr_of_a_node_that_is_left_out() {
    for (name, pods) in [("a0", "10.1.1.0/24"), ("z0", "10.1.1.128/25")] {
        let folder = Folder::mesh();
        let mut other = node(1, 9);
        other["name"] = json!(name);
        other["podCIDRs"] = json!([pods]);
        // Other clusters cannot dial it, and its own cluster can.
        other["addresses"] = json!([]);
        folder.keep("east", &[node(1, 1), node(1, 2), other.clone()]);
        assert_eq!(verified(&folder), 1);
        let found = found(&folder, "east");
        let overlap = found
            .iter()
            .find(|it| it.0 == "overlapping-node-pod-cidr")
            .unwrap();
        assert_contains(&overlap.1, &format!("kubectl delete node {name}`"));
        other["podCIDRs"] = json!(["10.1.9.0/24"]);
        folder.keep("east", &[node(1, 1), node(1, 2), other]);
        assert_eq!(verified(&folder), 0);
        let rules: Vec<String> = self::found(&folder, "east")
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(rules, ["missing-endpoint"]);
    }
}

/// The upstream form of the operator's README.
#[test]
fn wireguard_addresses_that_do_not_show_the_subnet() {
    let folder = Folder::mesh();
    let nodes = [1, 2, 3, 4].map(|it| {
        let mut node = node(1, it);
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(format!("10.101.0.{it}/32"));
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(verified(&folder), 0);
    assert_eq!(found(&folder, "east"), []);
}
