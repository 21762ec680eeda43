//! Advice about nodes and lists of nodes.

use super::findings;
use crate::cli::*;
use crate::support::assert_contains;

/// Returns the help of the findings of a rule.
fn helps(folder: &Folder, rule: &str) -> Vec<String> {
    let found = findings(folder).into_iter();
    let of_rule = found.filter(|it| it[0] == rule);
    of_rule.map(|[_, _, help, _]| help).collect()
}

/// The first advice is not to accept it.
#[test]
fn a_list_of_another_cluster() {
    let folder = Folder::mesh();
    let list = |prefix: &str| {
        let items = [1, 2].map(|number| {
            let mut node = api_node(1, number);
            node["metadata"]["name"] = json!(format!("{prefix}{number}"));
            node
        });
        let list = json!({ "kind": "NodeList", "apiVersion": "v1", "items": items });
        folder.write("dump.json", list.to_string());
    };
    let snapshot = ["snapshot", "east", "--from", "dump.json"];
    list("other-");
    let run = folder.run(&snapshot);
    assert_eq!(run.code, 1);
    let help = run.stderr.lines().find(|it| it.contains("help: ")).unwrap();
    insta::assert_snapshot!(help, @"help: if the list is incomplete or of another cluster, run the command again with a list of `east`; if all of these nodes were removed or replaced, add `--accept east`");
    list("n");
    assert_eq!(folder.run(&snapshot).code, 0);
}

#[test]
fn nodes_with_one_key() {
    let folder = Folder::mesh();
    let mut copied = node(1, 1);
    copied["annotations"]["kilo.squat.ai/key"] =
        node(3, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("east", &[copied, node(1, 2)]);
    insta::assert_snapshot!(helps(&folder, "key-of-target-node")[0], @"on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot east west`; if it is one machine that moved, this snapshot is enough");
    insta::assert_snapshot!(helps(&folder, "key-in-two-clusters")[0], @"on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot west east`; if it is one machine that moved, this snapshot is enough");
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

#[test]
fn a_node_of_another_subnet() {
    let folder = Folder::rendered();
    let mut other = node(1, 1);
    other["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.4.0.1/16");
    folder.keep("east", &[other.clone(), node(1, 2), node(1, 3)]);
    insta::assert_snapshot!(helps(&folder, "undeclared-wireguard-ip").concat(), @"start its Kilo agent with the `--subnet` of the other nodes of `east`, which the mesh declares, then run `clustermesh snapshot east`");
    // Nothing else is left to reach, and no path is proved.
    folder.keep("east", &[other]);
    assert!(findings(&folder).iter().all(|it| !it[2].is_empty()), "{:?}", findings(&folder));
    let verified = folder.run(&["verify"]).stdout;
    assert_contains(&verified, "`render` leaves out its only node");
    assert!(!verified.contains("nodeSelector"), "{verified}");
}

/// Both ranges need one list of `anchors`.
#[test]
fn two_ranges_that_move() {
    let folder = Folder::mesh();
    let ranges = "      serviceCIDR: 10.201.0.0/16\n      additionalCIDRs: [10.211.0.0/16]\n";
    folder.edit("mesh.yaml", NORTH, &format!("{ranges}{NORTH}"));
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 2), node(1, 3)]);
    let helps = helps(&folder, "moved-anchor");
    assert_eq!(helps.len(), 2);
    insta::assert_snapshot!(helps[0], @"if each range should stay on one node, write `anchors: [{ ranges: [10.201.0.0/16], nodes: [n2] }, { ranges: [10.211.0.0/16], nodes: [n2] }]` in the entry of east; connections to it break once whenever it moves");
    let line = helps[0].split('`').find(|it| it.starts_with("anchors: ")).unwrap();
    folder.edit("mesh.yaml", NORTH, &format!("      {line}\n{NORTH}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// Ranges of another cluster must not be declared, so no help advises it.
#[test]
fn ranges_of_another_cluster_are_not_advised() {
    let folder = Folder::mesh();
    let mut nodes = [1, 2, 3].map(|number| node(1, number));
    nodes[2]["podCIDRs"] = json!(["10.2.9.0/24"]);
    folder.keep("east", &nodes);
    let [[rule, _, help, _]] = &findings(&folder)[..] else {
        panic!("{:?}", findings(&folder));
    };
    assert_eq!(rule, "undeclared-pod-cidr");
    insta::assert_snapshot!(help, @"look at the node with `kubectl --context east get node n3 -o yaml` and let it register again, because `north` declares these addresses; then run `clustermesh snapshot east`");
    for (number, node) in (1..).zip(&mut nodes) {
        node["podCIDRs"] = json!([format!("10.1.{number}.0/24")]);
        node["annotations"]["kilo.squat.ai/wireguard-ip"] =
            json!(format!("10.102.0.{}/24", number + 7));
    }
    folder.keep("east", &nodes);
    let found = findings(&folder);
    let contradiction = found.iter().find(|it| it[0] == "contradicted-declaration").unwrap();
    insta::assert_snapshot!(contradiction[2], @"start Kilo in `east` with `--subnet=10.101.0.0/24`");
}

/// The snapshot does not show whether they are gone.
#[test]
fn nodes_that_a_snapshot_lacks() {
    let folder = Folder::mesh();
    folder.keep("east", &[1, 2, 3].map(|number| node(1, number)));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.keep("east", &[node(1, 1)]);
    assert_eq!(
        helps(&folder, "shrunk-source"),
        ["if these nodes still exist, run `clustermesh snapshot east`"]
    );
}

#[test]
fn two_nodes_with_one_written_address() {
    let folder = Folder::mesh();
    let nodes = [1, 2].map(|number| {
        let mut node = node(1, number);
        node["addresses"] =
            json!([{ "address": format!("192.168.1.{number}"), "type": "InternalIP" }]);
        node["annotations"]["kilo.squat.ai/force-endpoint"] = json!("198.18.113.11:51820");
        node
    });
    folder.keep("east", &nodes);
    insta::assert_snapshot!(helps(&folder, "shared-endpoint")[0], @"correct `kilo.squat.ai/force-endpoint` of the node that has another address; otherwise give each node its own port: annotate each with `kilo.squat.ai/force-endpoint: ADDRESS:PORT`, and forward these ports");
}

/// The others have an endpoint, so these may be meant for their own cluster alone.
#[test]
fn nodes_without_an_endpoint_beside_others() {
    let folder = Folder::mesh();
    let mut inner = node(1, 3);
    inner["addresses"] = json!([]);
    inner["annotations"].as_object_mut().unwrap().remove("kilo.squat.ai/force-endpoint");
    folder.keep("east", &[node(1, 1), node(1, 2), inner]);
    insta::assert_snapshot!(helps(&folder, "missing-endpoint").concat(), @"if other clusters should not reach such nodes, leave them out with `nodeSelector` of `east`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `east` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`");
}

/// The location is spelled in another way than that of the other nodes, so the node leads one of its own.
#[test]
fn a_misspelled_location() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.1.0.0/16]",
        "podCIDRs: [10.1.0.0/16]\n      granularity: Location",
    );
    let nodes = |second: &str| {
        let located = [(1, "fr-a"), (2, second), (3, "fr-a")].map(|(number, location)| {
            let mut node = node(1, number);
            node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
            node["annotations"]["kilo.squat.ai/location"] = json!(location);
            if number != 1 {
                node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
            }
            node
        });
        folder.keep("east", &located);
    };
    nodes("fr-a");
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    nodes("FR-A");
    insta::assert_snapshot!(helps(&folder, "missing-wireguard-ip").concat(), @"if its location `FR-A`, which only this node has, should be `fr-a`, correct its annotation kilo.squat.ai/location, then run `clustermesh snapshot east`; otherwise run `clustermesh snapshot east` again in a minute, as a node that leads its location since a moment ago gets its address then, and check that Kilo's `--subnet` has a free address");
    nodes("paris");
    insta::assert_snapshot!(helps(&folder, "missing-wireguard-ip").concat(), @"run `clustermesh snapshot east` again in a minute, as a node that leads its location since a moment ago gets its address then, and check that Kilo's `--subnet` has a free address");
}

/// Both entries name the network, and one lacks the address.
#[test]
fn an_underlay_without_the_endpoint() {
    let folder = Folder::mesh();
    let underlay = |cidr: &str| {
        format!(
            "      endpointFrom: [InternalIP]\n      underlays: [{{ name: dc, cidrs: [{cidr}] }}]\n"
        )
    };
    let mesh = folder.read("mesh.yaml");
    for cluster in [1, 3] {
        let line = format!("      podCIDRs: [10.{cluster}.0.0/16]\n");
        let cidr = format!("172.30.{cluster}.0/24");
        folder.edit("mesh.yaml", &line, &format!("{line}{}", underlay(&cidr)));
    }
    let lan = |cluster: u8, last: u8| {
        let mut node = node(cluster, last);
        let internal = format!("172.20.{cluster}.{last}");
        node["addresses"] = json!([{ "type": "InternalIP", "address": internal }]);
        node
    };
    folder.keep("east", &[lan(1, 1), lan(1, 2)]);
    folder.keep("west", &[lan(3, 1)]);
    insta::assert_snapshot!(helps(&folder, "private-endpoint").join("\n"), @"
    if a network connects them, name it in `underlays` of both entries; if the nodes have public addresses or are behind NAT, remove `endpointFrom` of `east`, and for NAT add `persistentKeepalive: 25`; otherwise add `Annotation` to `endpointFrom` of `east`, and annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
    if a network connects them, name it in `underlays` of both entries; if the nodes have public addresses or are behind NAT, remove `endpointFrom` of `west`, and for NAT add `persistentKeepalive: 25`; otherwise add `Annotation` to `endpointFrom` of `west`, and annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
    ");
    assert_eq!(folder.run(&["render"]).code, 0);
    let verified = folder.run(&["verify"]).stdout;
    insta::assert_snapshot!(verified.lines().filter(|it| it.contains("`dc`")).collect::<Vec<_>>().join("\n"), @"
    warning[assumed-reach]: east: 4 declared paths are assumed to work (east → west, west → east): endpoints such as 172.20.3.1:51820 (west/n1) are private addresses, and the endpoint or the nodes that dial it are outside of the `cidrs` of `dc`
    help: if `dc` joins the nodes of both, write `cidrs` that contain them, such as `['172.20.0.0/16', '192.168.1.0/24']` for `east` and `['172.20.0.0/16', '192.168.3.0/24']` for `west`; otherwise give the nodes of one side an endpoint that the others can dial (`kilo.squat.ai/force-endpoint`)
    ");
    folder.write("mesh.yaml", mesh);
}

/// The LAN of the cluster is declared, and a node is not on it.
#[test]
fn a_node_on_another_lan() {
    let folder = Folder::mesh();
    let pods = "podCIDRs: [10.1.0.0/16]";
    let lan = "additionalCIDRs: [192.168.1.0/24]";
    folder.edit("mesh.yaml", pods, &format!("{pods}\n      {lan}"));
    let nodes = |first: &str| {
        let mut moved = node(1, 1);
        moved["addresses"][0]["address"] = json!(first);
        moved["annotations"]["kilo.squat.ai/internal-ip"] = json!(format!("{first}/24"));
        folder.keep("east", &[moved, node(1, 2), node(1, 3)]);
    };
    nodes("192.168.1.1");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    // It carried the range, which follows from its address, and is not to be pinned to it.
    nodes("192.168.7.1");
    let shown = folder.run(&["validate"]).stdout;
    insta::assert_snapshot!(shown.lines().next().unwrap(), @"warning[unused-address]: east/n1: its internal IP 192.168.7.1 is in no declared range, unlike those of most nodes: other clusters do not reach the node itself (1 other finding follows from it: warning[moved-anchor])");
    assert!(!shown.contains("anchors"), "{shown}");
    // The declared range is the mistake if no node is in it.
    nodes("192.168.1.1");
    folder.edit("mesh.yaml", "192.168.1.0/24", "192.168.11.0/24");
    insta::assert_snapshot!(findings(&folder)[0].join("; "), @"unused-address; notice; if 192.168.11.0/24 is a mistake, write 192.168.1.0/24; otherwise declare 192.168.1.0/24 too if other clusters should reach the nodes; no node has its internal IP in 192.168.11.0/24, and those of all nodes, such as `n1`, are in no declared range, but in 192.168.1.0/24");
    // Without addresses of nodes, none of this matters.
    let advertise = "advertise: { nodeAddresses: false }";
    folder.edit("mesh.yaml", pods, &format!("{pods}\n      {advertise}"));
    assert!(findings(&folder).iter().all(|it| it[0] != "unused-address"));
}

/// The node is in the list, but it is not the one that the cluster had.
#[test]
fn a_node_that_was_installed_again() {
    let folder = Folder::mesh();
    let mut again = api_node(1, 1);
    again["metadata"]["uid"] = json!("another");
    again["metadata"]["annotations"].as_object_mut().unwrap().remove("kilo.squat.ai/key");
    let items = json!([again, api_node(1, 2)]);
    folder.write(
        "dump.json",
        json!({ "kind": "NodeList", "apiVersion": "v1", "items": items }).to_string(),
    );
    let run = folder.run(&["snapshot", "east", "--from", "dump.json"]);
    assert_contains(
        &run.stderr,
        "installed again (another UID) and unusable: n1 (annotation kilo.squat.ai/key is missing or empty)",
    );
}
