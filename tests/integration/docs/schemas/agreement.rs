//! Agreement: a schema and its gate take and refuse the same, except what only the gate can know.

use super::*;

/// Rules about several values, which a schema cannot express.
const BETWEEN_VALUES: [&str; 13] = [
    "another cluster",
    "contradicting-fields",
    "duplicate node",
    "duplicate-name",
    "duplicate-name",
    "invalid-value",
    "overlapping-ranges",
    "duplicate-item",
    "unknown-cluster",
    "contradicting-fields",
    "invalid-anchor",
    "unknown-cluster",
    "unknown-cluster",
];

/// A mesh with something in every field.
#[expect(clippy::too_many_lines, reason = "a list of all fields")]
pub(super) fn whole_mesh() -> Value {
    let underlays = json!([{ "name": "corp", "cidrs": ["192.168.0.0/16"] }]);
    let external_peers = json!([{
        "name": "laptop",
        "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
        "ranges": ["10.200.0.5/32", "fd00:200::5/128"],
        "endpoint": "198.18.9.9:51820",
        "persistentKeepalive": 25,
        "clusters": ["east"],
        "underlays": &underlays,
    }]);
    let mtu = json!({ "underlay": 1500, "internal": 1400, "pods": 1380 });
    let east = json!({
        "name": "east",
        "state": "Joined",
        "local": true,
        "podCIDRs": ["10.42.0.0/16", "fd00:42::/48"],
        "wireguardCIDR": "10.4.0.0/16",
        "serviceCIDR": "10.43.0.0/16",
        "additionalCIDRs": ["10.0.2.0/24"],
        "wireguardPort": 51820,
        "persistentKeepalive": 25,
        "nodeSelector": {
            "matchLabels": { "example.org/role": "gateway" },
            "matchExpressions": [
                { "key": "zone", "operator": "In", "values": ["a"] },
                { "key": "zone", "operator": "Exists", "values": [] },
            ],
        },
        "granularity": "Full",
        "topologyLabel": "topology.kubernetes.io/zone",
        "endpointFrom": ["Annotation", "Kilo"],
        "endpointDomains": ["nodes.example.org"],
        "acceptedNetworks": ["10.0.0.0/8"],
        "acceptedServices": ["shop"],
        "localNetworks": ["192.168.1.0/24"],
        "dns": { "service": "10.43.0.10", "domain": "cluster.local" },
        "podSource": "Masqueraded",
        "mtu": mtu,
        "underlays": underlays,
        "advertise": {
            "podCIDRs": "Merged",
            "nodeAddresses": false,
            "wireguardAddresses": "None",
        },
        "anchors": [
            { "ranges": ["10.43.0.0/16"], "nodes": ["n1", "n2"], "count": 2 },
        ],
        "kubeconfigSecretRef": { "name": "east", "key": "kubeconfig" },
    });
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "ClusterMesh",
        "metadata": {
            "name": "prod",
            "namespace": "kilo",
            "annotations": { "a": "b" },
            "creationTimestamp": "2026-11-20T10:00:00Z",
            "deletionGracePeriodSeconds": 1,
            "deletionTimestamp": null,
            "finalizers": ["f"],
            "generateName": "p",
            "generation": 3,
            "labels": { "a": "b" },
            "managedFields": [{ "manager": "kubectl" }],
            "ownerReferences": [],
            "resourceVersion": "12",
            "selfLink": "",
            "uid": "1d6f3a1e",
        },
        "spec": {
            "topology": { "mode": "Links", "links": [["east", "west"]] },
            "groups": { "all": ["east", "west"] },
            "externalPeers": external_peers,
            "services": [{
                "name": "api",
                "namespace": "shop",
                "cluster": "west",
                "clusterIPs": ["10.8.0.9"],
                "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http" }],
                "in": ["east"],
                "as": { "name": "west-api", "namespace": "shop" },
            }],
            "defaults": {
                "wireguardPort": 51820,
                "nodeSelector": { "example.org/role": "gateway" },
                "granularity": "Location",
                "topologyLabel": "example.org/location",
                "endpointFrom": ["Annotation", "Kilo"],
                "endpointDomains": ["nodes.example.org"],
                "advertise": {
                    "podCIDRs": "PerNode",
                    "nodeAddresses": false,
                    "wireguardAddresses": "None",
                },
            },
            "clusters": [
                east,
                {
                    "name": "west",
                    "allowedNetworks": ["10.8.0.0/14"],
                    "serviceCIDR": "",
                    "additionalCIDRs": [],
                },
            ],
        },
        "status": { "conditions": [] },
    })
}

/// A config with something in every field.
fn whole_config() -> Value {
    let capacity = json!({
        "costs": {
            "nanosecondsPerSquaredRule": 2500,
            "nanosecondsPerSquaredResource": 850,
            "storedBytesPerPeer": 1100,
            "applicationBytesPerPeer": 394,
            "inventoryBytesPerPeer": 85,
        },
        "peers": { "notice": 1000, "warning": 3000, "error": 10000 },
        "ranges": { "warning": 640 },
        "rules": { "warning": 2000 },
        "applySeconds": { "notice": 1, "warning": 5, "error": 30 },
        "restartSeconds": { "warning": 60 },
        "routes": { "warning": 10000 },
        "configurationBytes": { "warning": 1_000_000 },
        "annotationBytes": { "warning": 196_608, "error": 257_600 },
        "tunnelsPerNode": { "warning": 1000 },
        "tunnels": { "warning": 120_000 },
        "dnsEndpoints": { "warning": 0 },
        "storedBytes": { "warning": 10_000_000 },
        "kustomizeSeconds": { "notice": 1, "warning": 4, "error": 13 },
        "fluxSeconds": { "warning": 180 },
        "applicationBytes": { "warning": 591_000, "error": 1_536_600 },
        "inventoryBytes": { "warning": 1_048_576, "error": 1_572_864 },
        "fileBytes": { "notice": 262_144, "warning": 1_048_576, "error": 104_857_600 },
        "directoryEntries": { "warning": 1000, "error": 3000 },
    });
    let mut config = json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "Config",
        "meshes": ["mesh.yaml"],
        "snapshots": "snapshots",
        "rendered": "rendered",
        "policies": "clusters/policies",
        "groups": { "tenants": ["east", "west"] },
        "expectations": "expectations.yaml",
        "clusters": {
            "east": { "kubeconfig": "east.yaml", "context": "east", "inCluster": false },
            "west": { "inCluster": true },
            "north": { "kubeconfigSecret": { "namespace": "tenant", "name": "north", "key": "config" } },
        },
        "limits": {
            "nodes": 500,
            "lostNodes": 2,
            "lostPercent": 25,
            "gonePercent": 50,
            "staleAfterSeconds": 300,
            "lostPeers": 2,
            "lostPeersPercent": 25,
            "peerBytes": 262_144,
            "ceilings": {
                "clusters": 400,
                "nodes": 80_000,
                "ranges": 20_000,
                "anchors": 5_000,
                "expectations": 2_000,
                "peers": 500_000,
                "steps": 10_000_000,
            },
            "capacity": capacity,
        },
        "rules": {
            "host-bits": { "level": "error" },
            "stale-node": { "level": "off", "reason": "why", "until": "2027-01-31" },
        },
        "ignore": [{
            "rule": "missing-endpoint",
            "cluster": "east",
            "node": "n1",
            "reason": "why",
            "until": "2027-01-31",
        }],
    });
    config["snapshot"] = json!({ "dropLabels": ["feature.node.kubernetes.io/"] });
    let outputs = json!([{ "template": "a.yaml", "path": "b.yaml", "per": "Mesh" }]);
    config["outputs"] = outputs;
    config
}

/// Expectations with something in every field.
fn whole_expectations() -> Value {
    json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "Expectations",
        "spec": {
            "undeclared": "Deny",
            "exceptions": [{
                "name": "e",
                "from": { "clusters": ["east", "west"], "class": "Node" },
                "to": { "other": true },
                "class": "Service",
                "reason": "metrics",
                "until": "2027-01-31",
            }],
            "expectations": [
            {
                "name": "a",
                "from": {
                    "cluster": "east",
                    "nodeSelector": {
                        "matchLabels": { "example.org/role": "shop" },
                        "matchExpressions": [
                            { "key": "zone", "operator": "NotIn", "values": ["a"] },
                            { "key": "zone", "operator": "Exists", "values": [] },
                        ],
                    },
                    "addresses": ["10.42.0.0/16", "fd00:42::1"],
                    "class": "Node",
                },
                "to": { "nodeSelector": {}, "addresses": ["10.43.0.10"] },
                "class": "Pod",
                "expect": "Reach",
                "survives": { "nodes": 1 },
            },
            {
                "from": { "class": "Pod" },
                "to": { "cluster": "west" },
                "class": "Service",
                "expect": "Deny",
            },
            {
                "from": { "group": "tenants" },
                "to": { "other": true },
                "expect": "Deny",
            },
            ],
        },
    })
}

/// A policy with something in every field.
fn whole_policy() -> Value {
    json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "ClusterPolicy",
        "spec": {
            "acceptedNetworks": ["10.0.0.0/8", "::/0"],
            "acceptedClusters": ["west"],
            "localNetworks": ["192.168.1.0/24", "fd00:1::/64"],
        },
    })
}

/// A snapshot with something in every field.
fn whole_snapshot() -> Value {
    json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "cluster": "east",
        "droppedLabels": ["feature.node.kubernetes.io/"],
        "keptLabels": ["feature.node.kubernetes.io/network-sriov.capable"],
        "kind": "NodeSnapshot",
        "nodes": [
            {
                "addresses": [{ "address": "10.0.0.1", "type": "InternalIP" }],
                "annotations": { "kilo.squat.ai/key": "k" },
                "carriedOver": true,
                "lostLead": true,
                "labels": { "a": "b" },
                "name": "n1",
                "plugin": { "name": "Cilium", "podAddresses": ["10.0.11.0/24"], "wireguard": true },
                "podCIDRs": ["10.42.0.0/24"],
                "stale": false,
                "uid": "1d6f3a1e",
            },
            { "name": "n2" },
        ],
    })
}

/// Values that users might write instead of another one.
fn other_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(59),
        json!(101),
        json!(65_536),
        json!(40_000_000),
        json!(""),
        json!("x"),
        json!("off"),
        json!("Not a Name"),
        json!("a".repeat(64)),
        json!("10.0.0.0/33"),
        json!("10.250.0.1/24"),
        json!("2027-02-30"),
        json!([]),
        json!(["x"]),
        json!([["east", "west"], ["x"]]),
        json!(["10.250.0.0/24"]),
        json!(["Kilo", "Kilo"]),
        json!({}),
        json!({ "x": "y" }),
        json!({ "Not a Name": {} }),
    ]
}

/// Every place in a document.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    let mut found = vec![at.to_owned()];
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                found.extend(pointers(item, &format!("{at}/{index}")));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                found.extend(pointers(field, &format!("{at}/{name}")));
            }
        }
        _ => {}
    }
    found
}

/// The document with one thing changed, in every place and way, each with what was done.
fn variants(document: &Value) -> Vec<(String, Value)> {
    let mut variants = Vec::new();
    for at in pointers(document, "") {
        let with = |change: &dyn Fn(&mut Value)| {
            let mut variant = document.clone();
            change(variant.pointer_mut(&at).unwrap());
            variant
        };
        for value in other_values() {
            let done = format!("{at} becomes {value}");
            variants.push((done, with(&|it| *it = value.clone())));
        }
        match document.pointer(&at).unwrap() {
            Value::Object(fields) => {
                for name in fields.keys() {
                    let without = with(&|it| drop(it.as_object_mut().unwrap().remove(name)));
                    variants.push((format!("{at} loses {name}"), without));
                }
                let surplus = with(&|it| it["surplus"] = json!("x"));
                variants.push((format!("{at} gains a field"), surplus));
            }
            Value::Array(items) if !items.is_empty() => {
                let twice = with(&|it| it.as_array_mut().unwrap().push(items[0].clone()));
                variants.push((format!("{at} has its first item twice"), twice));
            }
            _ => {}
        }
    }
    variants
}

/// Fails where the gate and the schema differ about a variant of a document.
fn hold(kind: &str, document: &Value, file: &str) {
    let schema = validator(&schema(file));
    assert_eq!(refusals(kind, document), BTreeSet::new());
    assert_eq!(violations_of(&schema, document), [""; 0]);
    let (mut taken, mut refused, mut between) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (done, variant) in variants(document) {
        // To the program that is an empty file.
        if variant.is_null() {
            continue;
        }
        let refusals = refusals(kind, &variant);
        let violations = violations_of(&schema, &variant);
        // No pattern sees host bits, which are an error only here.
        let has_host_bits = done.starts_with("/spec/externalPeers/") && done.ends_with("/24\"");
        let only_gate = |it: &String| {
            BETWEEN_VALUES.contains(&it.as_str()) || has_host_bits && it == "invalid-range"
        };
        match (refusals.is_empty(), violations.is_empty()) {
            (true, true) => taken += 1,
            (false, false) => refused += 1,
            (false, true) if refusals.iter().all(only_gate) => between += 1,
            _ => wrong.push(format!("{done}: {refusals:?} {violations:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let counts = [taken, refused, between];
    // A policy has no rules about several values.
    let is_whole = 0 < between || kind == "ClusterPolicy";
    assert!(15 < taken && 100 < refused && is_whole, "{counts:?}");
}

#[test]
fn the_schema_of_a_mesh_takes_and_refuses_what_the_gate_does() {
    let file = "kilo.squat.ai/clustermesh_v1alpha1.json";
    hold("ClusterMesh", &whole_mesh(), file);
}

#[test]
fn the_schema_of_a_config_takes_and_refuses_what_the_gate_does() {
    let file = "kilo-clustermesh.io/config_v1.json";
    hold("Config", &whole_config(), file);
}

#[test]
fn the_schema_of_expectations_takes_and_refuses_what_the_gate_does() {
    let file = "kilo-clustermesh.io/expectations_v1.json";
    hold("Expectations", &whole_expectations(), file);
}

#[test]
fn the_schema_of_a_policy_takes_and_refuses_what_the_gate_does() {
    let file = "kilo-clustermesh.io/clusterpolicy_v1.json";
    hold("ClusterPolicy", &whole_policy(), file);
}

#[test]
fn the_schema_of_a_snapshot_takes_and_refuses_what_the_gate_does() {
    let file = "kilo-clustermesh.io/nodesnapshot_v1.json";
    hold("NodeSnapshot", &whole_snapshot(), file);
}

/// So that a new field does not go by unheld.
#[test]
fn every_field_is_among_those_that_are_held() {
    for (document, file) in [
        (whole_mesh(), "kilo.squat.ai/clustermesh_v1alpha1.json"),
        (whole_config(), "kilo-clustermesh.io/config_v1.json"),
        (whole_expectations(), "kilo-clustermesh.io/expectations_v1.json"),
        (whole_policy(), "kilo-clustermesh.io/clusterpolicy_v1.json"),
        (whole_snapshot(), "kilo-clustermesh.io/nodesnapshot_v1.json"),
    ] {
        let pointers = pointers(&document, "");
        let named = pointers.iter().filter_map(|it| it.rsplit('/').next());
        // The mesh has links instead.
        let named: BTreeSet<&str> = named.chain(["hubs"]).collect();
        for (at, _) in parts(&schema(file), "") {
            if let Some((_, name)) = at.rsplit_once("/properties/") {
                assert!(named.contains(name), "no {name} of {file}");
            }
        }
    }
}

/// What is the same to a schema and not to a reader of YAML.
#[test]
fn a_schema_cannot_tell_how_a_value_is_written() {
    let schema = schema("kilo.squat.ai/clustermesh_v1alpha1.json");
    for (written, read) in [
        ("wireguardPort: 51820.0", json!({ "wireguardPort": 51820.0 })),
        ("topologyLabel: no", json!({ "topologyLabel": "no" })),
    ] {
        let clusters = format!(
            "- {{ name: a, allowedNetworks: [10.0.0.0/16], {written} }}\n\
             - {{ name: b, allowedNetworks: [10.1.0.0/16] }}\n"
        );
        let text = format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\n\
             spec:\n  clusters:\n  {}",
            clusters.replace('\n', "\n  ")
        );
        let source = Source::parse("mesh.yaml", text).unwrap();
        assert!(!mesh::read(&[source]).is_usable(), "{written}");
        let mut document = whole_mesh();
        for (field, value) in read.as_object().unwrap() {
            document["spec"]["clusters"][1][field] = value.clone();
        }
        assert_eq!(violations(&schema, &document), [""; 0], "{written}");
    }
}
