//! `examples/two-hundred-tenants`, as its guide describes it.

use std::fs;

use serde_json::{Value, json};

use crate::cli::Folder;
use crate::support::tenants::EXAMPLE;
use crate::support::{assert_contains, project};

/// The snapshot of a tenant.
const SNAPSHOT: &str = "snapshots/tenant-007.json";

fn example() -> Folder {
    let folder = Folder::empty();
    EXAMPLE.write(folder.0.path()).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

fn change_nodes(folder: &Folder, change: impl FnOnce(&mut Vec<Value>)) {
    let mut snapshot: Value = serde_json::from_str(&folder.read(SNAPSHOT)).unwrap();
    change(snapshot["nodes"].as_array_mut().unwrap());
    folder.write(SNAPSHOT, format!("{snapshot:#}\n"));
}

#[test]
fn the_guide_shows_parts_of_the_mesh() {
    let page = fs::read_to_string(project().join("docs/how-to/two-hundred-tenants.md")).unwrap();
    let mesh = EXAMPLE.mesh();
    let mark = "<!-- part of the generated mesh.yaml -->\n```yaml\n";
    let parts: Vec<&str> = page.split(mark).skip(1).collect();
    assert_eq!(parts.len(), 2);
    for part in parts {
        assert_contains(&mesh, part.split_once("```").unwrap().0);
    }
}

#[test]
fn a_node_that_comes_or_goes_changes_its_snapshot_and_nothing_else() {
    let folder = example();
    let tree = folder.tree();
    change_nodes(&folder, |nodes| {
        let mut node = nodes[19].clone();
        node["name"] = json!("t007-21");
        node["uid"] = json!("new");
        node["podCIDRs"] = json!(["10.16.212.0/24"]);
        node["addresses"][0]["address"] = json!("192.168.0.99");
        let annotations = &mut node["annotations"];
        annotations["kilo.squat.ai/internal-ip"] = json!("192.168.0.99/24");
        annotations["kilo.squat.ai/key"] = json!("B9peZluxSV4JbvczfY40FBxjrZxTlTeKf6syKkqHUAI=");
        annotations["kilo.squat.ai/endpoint"] = json!("11.9.9.9:51820");
        annotations["kilo.squat.ai/force-endpoint"] = json!("11.9.9.9:51820");
        nodes.push(node);
    });
    let check = folder.run(&["render", "--check"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, ""), "{}", check.stderr);
    for ends in [["hub/hub-01", "10.16.212.7"], ["tenant-007/t007-21", "172.20.3.7"]] {
        let trace = folder.run(&["trace", ends[0], ends[1]]);
        assert_eq!(trace.code, 0, "{}{}", trace.stdout, trace.stderr);
    }
    change_nodes(&folder, |nodes| drop(nodes.drain(10..15)));
    let check = folder.run(&["render", "--check"]);
    assert_eq!((check.code, check.stdout.as_str()), (0, ""), "{}", check.stderr);
    assert_eq!(folder.tree(), tree);
}

#[test]
fn another_leader_changes_one_file() {
    let folder = example();
    change_nodes(&folder, |nodes| {
        let address = nodes[0]["annotations"]["kilo.squat.ai/wireguard-ip"].take();
        nodes[0]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
        nodes[4]["annotations"]["kilo.squat.ai/wireguard-ip"] = address;
        nodes[4]["annotations"]["kilo.squat.ai/leader"] = json!("");
    });
    let check = folder.run(&["render", "--check"]);
    assert_eq!(check.code, 1, "{}", check.stderr);
    let render = folder.run(&["render"]);
    assert_eq!(render.code, 0, "{}", render.stderr);
    insta::assert_snapshot!(render.stderr, @"
    notice[moved-anchor]: tenant-007: 10.16.192.0/19 would move from platform--tenant-007--t007-01 to platform--tenant-007--t007-05 (target hub), because its location has another leader
    help: apply it soon: until then, packets go to the old leader, which does not deliver them

    hub: +0 ~1 -0 files, 200 Peers of 200 clusters (+1 ~0 -1)
    200 targets unchanged
    6200 Peers in 201 targets
    ");
    assert_eq!(folder.run(&["verify"]).code, 0);
}
