//! Who can dial whom: private endpoints, the networks that people name, and endpoints that several nodes claim.

use crate::cli::*;
use crate::support::assert_contains;

/// The fields of an entry that come before the given line.
const EAST: &str = "wireguardCIDR: 10.101.0.0/24";
const WEST: &str = "wireguardCIDR: 10.103.0.0/24";

/// A node at this internal address, with this endpoint, that sends no keepalives.
fn node_at(cluster: u8, number: u8, internal: &str, endpoint: &str) -> Value {
    let mut node = node(cluster, number);
    node["addresses"] = json!([{ "address": internal, "type": "InternalIP" }]);
    let annotations = node["annotations"].as_object_mut().unwrap();
    annotations.remove("kilo.squat.ai/persistent-keepalive");
    annotations["kilo.squat.ai/internal-ip"] = json!(format!("{internal}/24"));
    annotations["kilo.squat.ai/endpoint"] = json!(format!("{endpoint}:51820"));
    annotations.insert(
        "kilo.squat.ai/clustermesh-endpoint".to_owned(),
        json!(format!("{endpoint}:51820")),
    );
    node
}

/// Clusters `east` and `west` of one node each, whose internal addresses are their endpoints.
fn joined_by(east: &str, west: &str) -> Folder {
    let folder = Folder::empty();
    folder.write("mesh.yaml", MESH.replace(NORTH, ""));
    folder.keep("east", &[node_at(1, 1, east, east)]);
    folder.keep("west", &[node_at(3, 1, west, west)]);
    folder
}

/// Adds a field to an entry.
fn add(folder: &Folder, entry: &str, field: &str) {
    folder.edit("mesh.yaml", entry, &format!("{entry}\n      {field}"));
}

fn verified(folder: &Folder) -> (i32, Value) {
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let run = folder.run(&["verify", "--output", "json"]);
    (run.code, run.json())
}

/// The numbers of declared, proved and assumed paths.
fn paths(folder: &Folder) -> [u64; 3] {
    let (_, value) = verified(folder);
    ["declared", "working", "assumed"].map(|it| value["total"][it].as_u64().unwrap())
}

const PROVED: [u64; 3] = [2, 2, 0];
const ASSUMED: [u64; 3] = [2, 0, 2];

#[test]
fn equal_numbers_are_no_common_network() {
    for [east, west] in
        [["192.168.1.10", "192.168.1.20"], ["10.9.0.1", "10.9.0.2"], ["100.64.0.1", "100.64.0.2"]]
    {
        assert_eq!(paths(&joined_by(east, west)), ASSUMED, "{east}");
    }
    let folder = joined_by("192.168.1.10", "192.168.1.20");
    let (code, value) = verified(&folder);
    assert_eq!(code, 1, "{value:#}");
    assert_contains(&value["findings"].to_string(), "nothing-proved");
    assert_eq!(value["assumptions"][0]["premise"], "private");
    assert_eq!(value["assumptions"].as_array().unwrap().len(), 1, "{value:#}");
    let run = folder.run(&["verify"]);
    let findings = run.stdout.split_once("\n\n").unwrap().1.split_once("\n\n").unwrap().1;
    insta::assert_snapshot!(findings, @"
    error[nothing-proved]: no declared path is proved: 2 paths work only under assumptions

    warning[assumed-reach]: east: 2 declared paths are assumed to work (east → west, west → east): endpoints such as 192.168.1.20:51820 (west/n1) are private addresses, and no `underlays` of the mesh join the two clusters
      --> rendered/east/prod--west.yaml:15:5
       |
    15 |     dnsOrIP:
       |     ^^^^^^^^ this endpoint
    help: if one network joins the nodes of both, add `{ name: east-west, cidrs: ['192.168.1.0/24'] }` to `underlays` of `east` and `{ name: east-west, cidrs: ['192.168.1.0/24'] }` to `underlays` of `west`; otherwise give the nodes of one side an endpoint that the others can dial (`kilo.squat.ai/force-endpoint`)

    0 of 2 declared paths work in both directions, and 2 are assumed to work.
    ");
    let run = folder.run(&["trace", "east/n1", "west/n1"]);
    assert_contains(&run.stdout.replace("\n     ", " "), "assumes: east/n1 can dial 192.168.1.20");
}

/// No name joins a node that shows no address of this kind.
#[test]
fn a_private_endpoint_of_another_family() {
    let folder = joined_by("192.168.1.10", "192.168.1.20");
    folder.keep("west", &[node_at(3, 1, "192.168.1.20", "[fd00:9::20]")]);
    assert_eq!(paths(&folder), ASSUMED);
    let run = folder.run(&["verify"]);
    assert_contains(&run.stdout, "let the kubelets of `east` report IPv6 addresses (`--node-ip`)");
}

/// The help of the finding ends it.
#[test]
fn a_named_network_proves_a_dial() {
    let folder = joined_by("192.168.1.10", "192.168.1.20");
    add(&folder, EAST, "underlays: [{ name: lan, cidrs: ['192.168.1.0/24'] }]");
    assert_eq!(paths(&folder), ASSUMED);
    add(&folder, WEST, "underlays: [{ name: lan, cidrs: ['192.168.1.20/32'] }]");
    assert_eq!(paths(&folder), PROVED);
    let (code, value) = verified(&folder);
    assert_eq!((code, &value["findings"]), (0, &json!([])));
    // Names join, not numbers.
    folder.edit(
        "mesh.yaml",
        "{ name: lan, cidrs: ['192.168.1.20",
        "{ name: wlan, cidrs: ['192.168.1.20",
    );
    assert_eq!(paths(&folder), ASSUMED);
}

#[test]
fn peered_networks_differ_and_a_node_outside_is_assumed() {
    let folder = joined_by("10.8.0.1", "10.9.0.1");
    add(&folder, EAST, "underlays: [{ name: vpc, cidrs: [10.8.0.0/16] }]");
    add(&folder, WEST, "underlays: [{ name: vpc, cidrs: [10.9.0.0/16] }]");
    assert_eq!(paths(&folder), PROVED);
    // It is dialled inside, and dials from elsewhere.
    folder.keep("west", &[node_at(3, 1, "172.16.0.1", "10.9.0.1")]);
    assert_eq!(paths(&folder), ASSUMED);
    // The endpoint is outside of the ranges of its own entry.
    folder.keep("west", &[node_at(3, 1, "10.9.0.1", "172.16.0.1")]);
    assert_eq!(paths(&folder), ASSUMED);
}

/// A tenant's VM behind NAT dials its host; one proved dial with keepalives is enough.
#[test]
fn one_side_may_be_behind_a_nat() {
    let folder = joined_by("192.168.7.1", "10.0.2.15");
    let mut tenant = node_at(3, 1, "10.0.2.15", "10.0.2.15");
    let annotations = tenant["annotations"].as_object_mut().unwrap();
    annotations.remove("kilo.squat.ai/clustermesh-endpoint");
    annotations.insert("kilo.squat.ai/persistent-keepalive".to_owned(), json!("25"));
    folder.keep("west", &[tenant]);
    add(&folder, WEST, "persistentKeepalive: 25");
    assert_eq!(paths(&folder), ASSUMED);
    add(&folder, EAST, "underlays: [{ name: host, cidrs: [192.168.7.0/24] }]");
    add(&folder, WEST, "underlays: [{ name: host, cidrs: [10.0.2.0/24] }]");
    assert_eq!(paths(&folder), PROVED);
}

/// A private endpoint on one side is nothing if the other side is dialled at a public one with keepalives.
#[test]
fn one_public_side_is_enough_with_keepalives() {
    let folder = joined_by("192.168.1.10", "198.18.113.31");
    assert_eq!(paths(&folder), ASSUMED);
    let mut east = node_at(1, 1, "192.168.1.10", "192.168.1.10");
    east["annotations"]["kilo.squat.ai/persistent-keepalive"] = json!("25");
    folder.keep("east", &[east]);
    // Without a keepalive in the Peer, its tunnel breaks down behind NAT.
    assert_eq!(paths(&folder), ASSUMED);
    add(&folder, EAST, "persistentKeepalive: 25");
    assert_eq!(paths(&folder), PROVED);
}

#[test]
fn a_network_is_joined_only_by_its_own_name() {
    let folder = Folder::empty();
    folder.write("mesh.yaml", MESH);
    for (number, cluster) in (1..).zip(["east", "north", "west"]) {
        let address = format!("10.9.{number}.1");
        folder.keep(cluster, &[node_at(number, 1, &address, &address)]);
    }
    let underlay = |name: &str| format!("{{ name: {name}, cidrs: [10.9.0.0/16] }}");
    let hub = format!("underlays: [{}, {}]", underlay("one"), underlay("two"));
    add(&folder, "wireguardCIDR: 10.102.0.0/24", &hub);
    add(&folder, EAST, &format!("underlays: [{}]", underlay("one")));
    add(&folder, WEST, &format!("underlays: [{}]", underlay("two")));
    // Those of the hub with each, and not those between the two.
    assert_eq!(paths(&folder), [6, 4, 2]);
    let (code, value) = verified(&folder);
    assert_eq!(code, 0, "{value:#}");
    let findings = value["findings"].as_array().unwrap();
    let severities: Vec<&Value> = findings.iter().map(|it| &it["severity"]).collect();
    assert_eq!(severities, ["warning"], "{value:#}");
}

#[test]
fn a_leader_counts_and_not_its_members() {
    let folder = joined_by("10.8.0.1", "10.9.0.1");
    add(&folder, EAST, "underlays: [{ name: vpc, cidrs: [10.8.0.0/16] }]");
    add(&folder, WEST, "underlays: [{ name: vpc, cidrs: [10.9.0.0/24] }]");
    let leader = |address: &str| {
        let member = node_at(3, 2, "10.9.1.2", "10.9.1.2");
        location(vec![node_at(3, 1, address, address), member])
    };
    folder.keep("west", &leader("10.9.0.1"));
    assert_eq!(paths(&folder), [4, 4, 0]);
    folder.keep("west", &leader("10.9.1.1"));
    assert_eq!(paths(&folder), [4, 0, 4]);
}

#[test]
fn mistakes_in_underlays_are_reported() {
    let folder = joined_by("10.8.0.1", "10.9.0.1");
    add(
        &folder,
        EAST,
        "underlays: [{ name: a, cidrs: [10.8.0.1/16] }, { name: a, cidrs: [0.0.0.0/0] }, { name: B, cidrs: [10.7.0.0/16] }]",
    );
    let run = folder.run(&["validate", "--output", "concise"]);
    for message in [
        "`10.8.0.1/16` has host bits set",
        "duplicate underlay `a`",
        "`0.0.0.0/0` contains every IPv4 address",
        "`B` is not a valid underlay name",
    ] {
        assert_contains(&run.stdout, message);
    }
}

/// Of two claimants of one endpoint, the cluster that is first in the mesh is judged as if it were alone.
#[test]
fn a_shared_endpoint_is_that_of_the_first_cluster() {
    let folder = Folder::rendered();
    let mut thief = node(3, 1);
    thief["annotations"]["kilo.squat.ai/force-endpoint"] = json!("198.18.113.11:51820");
    folder.keep("west", &[thief.clone(), node(3, 2)]);
    let (code, value) = verified(&folder);
    assert_eq!(code, 0, "{value:#}");
    // East keeps its own. Its node n1 dials itself, and west/n1 dials the others with keepalives.
    let assumptions = value["assumptions"].as_array().unwrap();
    assert!(assumptions.iter().all(|it| it["premise"] == "claimed"), "{value:#}");
    let of_east_and_north = |it: &&Value| it["from"] != "west" && it["to"] != "west";
    let pairs = value["pairings"].as_array().unwrap().iter().filter(of_east_and_north);
    for pair in pairs {
        assert_eq!(pair["classes"][0]["working"], pair["classes"][0]["declared"], "{pair:#}");
    }
    let findings = value["findings"].as_array().unwrap();
    assert!(findings.iter().all(|it| it["severity"] != "error"), "{value:#}");
}
