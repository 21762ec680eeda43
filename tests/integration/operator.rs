//! Our names, node checks and Peers against the operator's behaviour, generation by generation.
//!
//! *Typed* is the last generation with typed networks (`t3`). *Flat* is the one that gives internal
//! addresses only where they are declared (`f1`), without its repetitions. A difference must have
//! one of the reasons of [`Why`], and the table below must know it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::diagnostic::Severity;
use clustermesh::document::Source;
use clustermesh::fleet::{Fleet, SnapshotFile};
use clustermesh::mesh;
use clustermesh::name::{self, ClusterName, is_dns_subdomain};
use clustermesh::net::{self, Cidr, CidrError, Family, Interface};
use clustermesh::roster::{EndpointProblem, RangeReason, Reason};
use clustermesh::snapshot::{Snapshot, dump};
use clustermesh::wireguard::{Endpoint, EndpointError, Host};
use clustermesh::{manifest, plan, rules};
use serde::Deserialize as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const OPERATOR: &str = include_str!("../vectors/operator.json");

/// Which generation of the operator the two forms of an entry stand for.
const FORMS: [(&str, &str); 2] = [("typed", "t3"), ("flat", "f1")];

/// The vectors in which we differ, and every reason why.
const DIFFERENCES: &[(&str, &[Why])] = &[
    ("labels/mesh-b,cluster-x", &[Why::ManagedBy]),
    (
        "labels/mesh-name-too-long-for-a-label",
        &[Why::UnusableName],
    ),
    ("cidr/::ffff:10.0.0.0/104", &[Why::Mapped]),
    ("mesh/two-meshes-overlap", &[Why::Strangers]),
    (
        "mesh/same-name-different-cluster",
        &[Why::OneClusterOneTruth],
    ),
    (
        "mesh/same-name-inconsistent-ranges",
        &[Why::OneClusterOneTruth],
    ),
    ("mesh/tenant-vs-hub-of-other-mesh", &[Why::Strangers]),
    ("endpoint/ipv6-loopback", &[Why::Undialable]),
    ("endpoint/ipv6-zone", &[Why::NoDnsName]),
    ("endpoint/ipv6-uppercase", &[Why::Canonical]),
    ("endpoint/ipv4-mapped", &[Why::Canonical]),
    ("endpoint/underscore-dns", &[Why::NoDnsName]),
    ("endpoint/trailing-dot-dns", &[Why::NoDnsName]),
    ("endpoint/uppercase-dns", &[Why::NoDnsName]),
    ("endpoint/unicode-dns", &[Why::NoDnsName]),
    ("endpoint/unspecified", &[Why::Undialable]),
    ("endpoint/multicast", &[Why::Undialable]),
    ("chain/ext-loopback", &[Why::Undialable]),
    ("chain/ext-mapped", &[Why::Canonical]),
    ("ensure/v6-internal-only", &[Why::InternalIpv6]),
    ("node/key-wrong-length", &[Why::UnusableKey]),
    ("node/key-all-zero", &[Why::UnusableKey]),
    ("node/pool-has-garbage", &[Why::MistakeFails]),
    ("node/wgcidr-garbage", &[Why::MistakeFails]),
    ("dup/same-host-other-prefix", &[Why::RouteNotNode]),
    ("dup/invalid-twice", &[Why::InvalidFirst]),
    ("dup/three-same", &[Why::RouteNotNode]),
    ("dup/mapped-v4", &[Why::InvalidFirst]),
    (
        "peer/dual-stack",
        &[Why::SecondPodCidr, Why::FamilyOfTarget],
    ),
    ("peer/podcidr-host-bits", &[Why::Canonical]),
    ("anchor/v6-pod-aggregate", &[Why::SecondPodCidr]),
    ("anchor/narrower-than-podcidr", &[Why::DisjointRanges]),
    ("keepalive/[0, 25]", &[Why::OwnKeepalive]),
    ("keepalive/[25, 30, 10]", &[Why::OwnKeepalive]),
];

/// Groups of vectors that say nothing about a program that only writes files.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "transientReason",
        "nothing waits here: who runs it again decides when",
    ),
    (
        "requeue",
        "nothing waits here: who runs it again decides when",
    ),
    (
        "bootstrapIncomplete",
        "a snapshot is whole or is not written; its guards have their own tests",
    ),
    (
        "peerDiff",
        "the cluster's agent compares what is applied with what is there",
    ),
    (
        "reconcilePeers",
        "the cluster's agent creates, updates and prunes",
    ),
    (
        "staleSourceSweep",
        "the cluster's agent prunes what is no longer in the tree",
    ),
    (
        "orphanMeshSweep",
        "the cluster's agent prunes only what came from the tree",
    ),
    (
        "discoveredEndpoints",
        "what a target's nodes have seen is no input: weakness 8",
    ),
    (
        "discoveredOverride",
        "nothing replaces a declared endpoint: weakness 8",
    ),
    ("kiloPeerValidation", "tested in admission.rs"),
];

/// Why we differ: a weakness of the operator, by its number, or a principle of ours.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Why {
    /// Weakness 1: of a node's internal addresses one of each family counts.
    OneInternalAddress,
    /// Weakness 2: a key that no handshake can use leaves the node out.
    UnusableKey,
    /// Weakness 3: of two nodes with one key, one is left out.
    SharedKey,
    /// Weakness 5: a cluster is one thing; meshes must agree on it and link a pair once.
    OneClusterOneTruth,
    /// Weakness 12: of pod CIDRs that share addresses, one is given, and no host route inside it.
    SharedPodCidr,
    /// Weakness 13: every family's pod CIDR is its node's, so no node gets the whole family.
    SecondPodCidr,
    /// Weakness 14: the order of names decides, not that of a list that has none.
    OrderOfNames,
    /// Weakness 15: a range is the nodes' if most have an address in it, not if any has.
    MostNotAny,
    /// Weaknesses 18 and 19: a name that the API server refuses is refused here.
    UnusableName,
    /// Weakness 20: a DNS endpoint is a DNS name.
    NoDnsName,
    /// Weakness 21: text is canonical, host bits are masked.
    Canonical,
    /// Weakness 23: who is left out takes nothing from others.
    InvalidFirst,
    /// Weakness 25: a keepalive says that the source is behind NAT, so it is the source's own.
    OwnKeepalive,
    /// Weakness 27: an annotation that is there but empty is none.
    EmptyIsUnset,
    /// Weakness 34: meshes that share no cluster do not block each other.
    Strangers,
    /// Principle 1: a mistake in the mesh renders nothing, instead of being passed over.
    MistakeFails,
    /// Principle 2: of a WireGuard address that two claim, the later loses the route, not its
    /// place: Kilo renumbers.
    RouteNotNode,
    /// Principle 3: ranges of a mesh are disjoint, so none lies inside a node's pod CIDR.
    DisjointRanges,
    /// Principle 8: an IPv4-mapped range breaks routes, so it is none.
    Mapped,
    /// Principle 8: an endpoint that no other cluster can dial is none.
    Undialable,
    /// Principle 8: Kilo routes one family, so each target gets its own.
    FamilyOfTarget,
    /// Section 5: declared internal addresses are given in both forms.
    InternalAddress,
    /// Section 3: `InternalIP` is a source like any other, so an IPv6 address is one too.
    InternalIpv6,
    /// Section 5: one more label says that we wrote it.
    ManagedBy,
}

/// What a check returns: why it differs, or how it differs for no known reason.
type Verdict = Result<BTreeSet<Why>, String>;

struct Vector(Value);

impl Vector {
    fn id(&self) -> &str {
        self.0["id"].as_str().unwrap()
    }

    fn input(&self) -> &Value {
        &self.0["input"]
    }

    fn result(&self, generation: &str) -> &Value {
        let expectations = self.0["expect"].as_array().unwrap();
        let holds = |it: &&Value| texts(&it["generations"]).contains(&generation);
        let expected = expectations.iter().find(holds);
        &expected.unwrap_or_else(|| panic!("{}", self.0))["result"]
    }
}

macro_rules! groups {
    ($($name:ident: $group:literal, $check:expr;)*) => {
        const TESTED: &[&str] = &[$($group),*];

        $(
            #[test]
            fn $name() {
                compare($group, $check);
            }
        )*
    };
}

groups! {
    peer_names: "peerName", peer_name;
    labels_of_peers: "labels", labels;
    ownership_by_labels: "ownershipSelector", ownership;
    ranges_as_text: "cidrParse", cidr_parse;
    ranges_in_ranges: "cidrContains", cidr_contains;
    ranges_that_overlap: "cidrOverlap", cidr_overlap;
    meshes_that_overlap: "meshOverlap", mesh_overlap;
    endpoints_as_text: "endpointString", endpoint_string;
    endpoints_by_source: "endpointChain", endpoint_chain;
    endpoints_from_internal_addresses: "ensureForceEndpoint", internal_endpoint;
    node_checks: "nodeValidation", node_validation;
    wireguard_addresses_twice: "duplicateWireguardIP", duplicate_wireguard_ip;
    whole_peers: "peers", whole_peers_of;
    cluster_wide_ranges: "anchorResidual", anchor_residual;
    keepalive: "keepaliveFloor", keepalive_floor;
}

#[test]
fn every_group_is_tested_or_has_a_reason_not_to_be() {
    let vectors = vectors();
    let found: BTreeSet<&str> = vectors
        .iter()
        .map(|it| it.0["group"].as_str().unwrap())
        .collect();
    let known = TESTED
        .iter()
        .chain(ELSEWHERE.iter().map(|(group, _)| group));
    assert_eq!(found, known.copied().collect());
    let ids: BTreeSet<&str> = vectors.iter().map(Vector::id).collect();
    for (id, _) in DIFFERENCES {
        assert!(ids.contains(id), "{id} is no vector");
    }
}

fn vectors() -> Vec<Vector> {
    let file: Value = serde_json::from_str(OPERATOR).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    vectors.iter().cloned().map(Vector).collect()
}

/// Holds every vector of a group to the check and the table.
fn compare(group: &str, check: impl Fn(&Vector) -> Verdict) {
    let mut vectors = vectors();
    vectors.retain(|it| it.0["group"] == group);
    let known: BTreeMap<&str, BTreeSet<Why>> = DIFFERENCES
        .iter()
        .map(|(id, reasons)| (*id, reasons.iter().copied().collect()))
        .collect();
    let mut wrong = Vec::new();
    for vector in &vectors {
        let known = known.get(vector.id()).cloned().unwrap_or_default();
        match check(vector) {
            Ok(found) if found == known => {}
            Ok(found) => wrong.push(format!(
                "{}: {found:?}, but the table has {known:?}",
                vector.id()
            )),
            Err(how) => wrong.push(format!("{}: no known reason: {how}", vector.id())),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn peer_name(vector: &Vector) -> Verdict {
    let input = |key: &str| vector.input()[key].as_str().unwrap();
    let name = name::peer_name(input("mesh"), input("cluster"), input("node"));
    let theirs = &vector.result("t3");
    unless(
        name == theirs["name"] && json!(name.len()) == theirs["len"],
        &name,
    )
}

fn labels(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let run = match one_node(vector) {
        Ok(run) => run,
        Err(codes) => {
            let refused = codes.contains("invalid-name") && theirs["apiServerAccepts"] == false;
            return reason_if(refused, Why::UnusableName, &codes);
        }
    };
    let peer = run.peers.values().next().unwrap();
    let mut ours = peer.metadata.clone();
    let labels = ours["labels"].as_object_mut().unwrap();
    let ours_too = labels.remove("app.kubernetes.io/managed-by");
    let same = ours["labels"] == theirs["labels"]
        && ours.as_object().unwrap().keys().eq(["labels", "name"])
        && ours_too == Some(json!("clustermesh"));
    reason_if(same, Why::ManagedBy, &peer.metadata)
}

/// The operator owns a Peer if both labels are those of the mesh and the cluster.
fn ownership(vector: &Vector) -> Verdict {
    let run = one_node(vector).map_err(|codes| format!("{codes:?}"))?;
    let ours = &run.peers.values().next().unwrap().metadata["labels"];
    let theirs = &vector.input()["peerLabels"];
    let keys = [manifest::MESH_LABEL, manifest::SOURCE_LABEL];
    let owned = keys.iter().all(|key| ours[*key] == theirs[*key]);
    unless(json!(owned) == *vector.result("t3"), ours)
}

/// A mesh with one node, under the names of a vector.
fn one_node(vector: &Vector) -> Result<Run, BTreeSet<&'static str>> {
    let input = vector.input();
    let entry =
        json!({"name": input["cluster"], "allowedNetworks": ["10.244.0.0/16", "10.4.0.0/24"]});
    let node =
        json!({"name": "node", "annotations": {"kilo.squat.ai/force-endpoint": "203.0.113.1:1"}});
    run(&input["mesh"], &entry, &[completed(&node, 1)], &[])
}

fn cidr_parse(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    match (
        vector.input()["text"]
            .as_str()
            .unwrap()
            .parse::<Interface>(),
        theirs["error"] == true,
    ) {
        (Err(_), true) => Ok(BTreeSet::new()),
        (Err(CidrError::Mapped(_)), false) => Ok(BTreeSet::from([Why::Mapped])),
        (Ok(ours), false) => {
            let ours = json!({
                "host": ours.address,
                "hostRoute": Cidr::host(ours.address).to_string(),
                "network": ours.network.to_string(),
            });
            unless(ours == *theirs, &ours)
        }
        (ours, _) => Err(format!("{ours:?}")),
    }
}

fn cidr_contains(vector: &Vector) -> Verdict {
    pair(vector, ["outer", "inner"], Cidr::contains)
}

fn cidr_overlap(vector: &Vector) -> Verdict {
    pair(vector, ["a", "b"], |a, b| {
        let overlap = a.overlaps(b);
        assert_eq!(b.overlaps(a), overlap);
        assert_eq!(net::overlaps(&[a, b]).len(), usize::from(overlap));
        overlap
    })
}

fn pair(vector: &Vector, keys: [&str; 2], judge: impl Fn(Cidr, Cidr) -> bool) -> Verdict {
    let [one, other] = keys.map(|key| vector.input()[key].as_str().unwrap().parse::<Cidr>());
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let ours = judge(one, other);
            unless(json!(ours) == *vector.result("t3"), &ours)
        }
        (Err(CidrError::Mapped(_)), _) | (_, Err(CidrError::Mapped(_))) => {
            Ok(BTreeSet::from([Why::Mapped]))
        }
        (one, other) => unless(!vector.result("t3").is_boolean(), &(one, other)),
    }
}

fn mesh_overlap(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let meshes: Vec<&Value> = vector.input()["meshes"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let documents: Vec<Value> = meshes.iter().map(|it| document(it)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    let reading = mesh::read(&[Source::parse("mesh.json", list.to_string()).unwrap()]);
    let errors = reading
        .diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error);
    let errors: Vec<_> = errors.collect();
    let codes: BTreeSet<&str> = errors.iter().map(|it| it.code).collect();
    if theirs["blocked"] == codes.is_empty() {
        let disagree = ["duplicate-cluster", "inconsistent-cluster", "linked-twice"];
        let strangers = theirs["first"]["kind"] == "crossMesh" && codes.is_empty();
        return if strangers && !is_seen_by_one(&meshes, &theirs["first"]) {
            Ok(BTreeSet::from([Why::Strangers]))
        } else {
            let known = codes.iter().all(|it| disagree.contains(it)) && !codes.is_empty();
            reason_if(known, Why::OneClusterOneTruth, &codes)
        };
    }
    let first = &theirs["first"];
    let quoted = |told: &str, side: &Value| {
        let cidr: Cidr = side["cidr"].as_str().unwrap().parse().unwrap();
        told.contains(&cidr.to_string()) && told.contains(side["cluster"].as_str().unwrap())
    };
    let same = match first["kind"].as_str() {
        None => codes.is_empty(),
        Some("invalidCIDR") => codes.contains("invalid-range"),
        Some(_) => errors.iter().any(|told| {
            let (a, b) = (&first["a"], &first["b"]);
            told.code == "overlapping-ranges"
                && quoted(&told.message, a)
                && quoted(&told.message, b)
        }),
    };
    unless(same, &reading.diagnostics)
}

/// A mesh of flat entries; one that is alone gets a neighbour.
fn document(mesh: &Value) -> Value {
    let clusters = mesh["clusters"].as_array().unwrap();
    let entry = |it: &Value| json!({"name": it["name"], "allowedNetworks": it["cidrs"]});
    let mut entries: Vec<Value> = clusters.iter().map(entry).collect();
    if entries.len() < 2 {
        entries.push(json!({"name": "neighbour", "allowedNetworks": ["198.18.0.0/24"]}));
    }
    mesh_of(&mesh["name"], &entries)
}

/// Whether any cluster is in a mesh with both sides of an overlap, or is one of them.
fn is_seen_by_one(meshes: &[&Value], first: &Value) -> bool {
    let names = |mesh: &&Value| -> BTreeSet<String> {
        let clusters = mesh["clusters"].as_array().unwrap().iter();
        clusters
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let around = |side: &Value| -> BTreeSet<String> {
        let sets = meshes.iter().map(names);
        let cluster = side["cluster"].as_str().unwrap();
        sets.filter(|it| it.contains(cluster)).flatten().collect()
    };
    !around(&first["a"]).is_disjoint(&around(&first["b"]))
}

fn endpoint_string(vector: &Vector) -> Verdict {
    let text = &vector.input()["annotation"];
    let node = json!({"name": "node", "annotations": {"kilo.squat.ai/force-endpoint": text}});
    let theirs = vector.result("t3");
    let run = run_node(&node, &json!({}));
    if let Some(Host::Dns(name)) = run.endpoint().map(|it| it.host) {
        let strict = run_node(&node, &json!({"endpointDomains": [format!("not.{name}")]}));
        assert_eq!(
            strict.code("node"),
            "NodeEndpointInvalid",
            "an undeclared name is refused"
        );
    }
    endpoint_verdict(theirs, &run)
}

fn endpoint_chain(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let (node, port) = (&vector.input()["node"], &vector.input()["wireguardPort"]);
    let fields = json!({"wireguardPort": port});
    let run = run_node(node, &fields);
    if theirs["result"] == "none" {
        // Only where a person says so, as the newest generation does everywhere.
        let behind_nat = json!({"wireguardPort": port, "persistentKeepalive": 25});
        let roaming = run_node(node, &behind_nat);
        assert!(
            roaming.left_out.is_empty() && roaming.endpoint().is_none(),
            "{}",
            vector.id()
        );
    }
    if let (Some(source), Some(Reason::EndpointInvalid { origin, .. })) = (
        theirs["source"].as_str(),
        run.left_out.values().map(|it| &it.1).next(),
    ) && theirs["result"] == "invalid"
    {
        assert!(
            format!("{origin:?}").contains(source),
            "{}: {origin:?}",
            vector.id()
        );
    }
    endpoint_verdict(theirs, &run)
}

/// Compares the endpoint of the only node, or why it has none.
fn endpoint_verdict(theirs: &Value, run: &Run) -> Verdict {
    let name = run.nodes.first().unwrap();
    let code = run.code(name);
    match theirs["result"].as_str().unwrap() {
        "none" => unless(code == "NodeNoEndpoint", &code),
        "invalid" => unless(code == "NodeEndpointInvalid", &code),
        _ => match run.left_out.get(name) {
            Some((_, reason)) => explained(reason),
            None => same_endpoint(&theirs["endpoint"], run.peer(name)),
        },
    }
}

fn same_endpoint(theirs: &Value, ours: &PeerObject) -> Verdict {
    let ours = &ours.spec["endpoint"];
    if ours == theirs {
        return Ok(BTreeSet::new());
    }
    let address = |it: &Value| {
        it["dnsOrIP"]["ip"]
            .as_str()
            .and_then(|it| it.parse::<IpAddr>().ok())
    };
    let same = address(theirs).map(|it| it.to_canonical()) == address(ours);
    reason_if(
        same && address(ours).is_some() && ours["port"] == theirs["port"],
        Why::Canonical,
        ours,
    )
}

/// The operator writes the endpoint onto the node; we are told to look for it.
fn internal_endpoint(vector: &Vector) -> Verdict {
    let (node, port) = (&vector.input()["node"], &vector.input()["wireguardPort"]);
    let theirs = vector.result("t3");
    let fields = |sources: &[&str]| json!({"wireguardPort": port, "endpointFrom": sources});
    let ours = run_node(node, &fields(&["Annotation", "ExternalIP", "InternalIP"]));
    let endpoint = ours.endpoint().map(|it| it.to_string());
    if theirs["patched"] == true {
        return unless(
            endpoint.as_deref() == theirs["force-endpoint"].as_str(),
            &endpoint,
        );
    }
    let without = run_node(node, &fields(&["Annotation", "ExternalIP"]))
        .endpoint()
        .map(|it| it.to_string());
    if endpoint == without {
        return Ok(BTreeSet::new());
    }
    let annotations = node["annotations"].as_object().unwrap();
    if annotations
        .iter()
        .any(|(key, value)| key.ends_with("-endpoint") && value == "")
    {
        return Ok(BTreeSet::from([Why::EmptyIsUnset]));
    }
    let six = ours
        .endpoint()
        .is_some_and(|it| matches!(it.host, Host::Ip(IpAddr::V6(_))));
    reason_if(six, Why::InternalIpv6, &endpoint)
}

fn node_validation(vector: &Vector) -> Verdict {
    let keep_keys = vector.id().starts_with("node/key-");
    let node = if keep_keys {
        vector.input()["node"].clone()
    } else {
        rekeyed(&vector.input()["node"])
    };
    let mut reasons = BTreeSet::new();
    for (form, generation) in FORMS {
        let Some(entry) = vector.input()["entry"].get(form) else {
            continue;
        };
        let theirs = vector.result(generation).as_str().unwrap();
        let run = match run(
            &json!("mesh"),
            &with_domains(entry, &[&node]),
            std::slice::from_ref(&node),
            &[],
        ) {
            Ok(run) => run,
            Err(codes) => {
                reasons.extend(reason_if(
                    codes == BTreeSet::from(["invalid-range"]),
                    Why::MistakeFails,
                    &codes,
                )?);
                continue;
            }
        };
        let name = node["name"].as_str().unwrap();
        reasons.extend(same_outcome(theirs, &run, name)?);
    }
    Ok(reasons)
}

/// Compares what becomes of a node: `valid`, or the code of why it is left out.
fn same_outcome(theirs: &str, run: &Run, node: &str) -> Verdict {
    match run.left_out.get(node) {
        None => unless(theirs == "valid", &"valid"),
        Some((code, _)) if code == theirs => Ok(BTreeSet::new()),
        Some((_, reason)) if theirs == "valid" => explained(reason),
        Some((code, _)) => Err(format!("{code} instead of {theirs}")),
    }
}

/// Why we leave out a node that the operator does not.
fn explained(reason: &Reason) -> Verdict {
    let why = match reason {
        Reason::PublicKeyInvalid { .. } => Why::UnusableKey,
        Reason::DuplicateKey(_) => Why::SharedKey,
        Reason::PodCidrTaken { .. } => Why::SharedPodCidr,
        Reason::NameInvalid(_) => Why::UnusableName,
        Reason::PodCidrInvalid {
            error: CidrError::Mapped(_),
            ..
        }
        | Reason::WireguardIpInvalid {
            error: CidrError::Mapped(_),
            ..
        } => Why::Mapped,
        Reason::EndpointInvalid {
            error: EndpointProblem::Endpoint(error),
            ..
        } => match error {
            EndpointError::Unreachable { .. } => Why::Undialable,
            EndpointError::Dns(_) => Why::NoDnsName,
            _ => return Err(format!("{reason:?}")),
        },
        _ => return Err(format!("{reason:?}")),
    };
    Ok(BTreeSet::from([why]))
}

fn duplicate_wireguard_ip(vector: &Vector) -> Verdict {
    let nodes: Vec<Value> = vector.input()["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let annotations = json!({
                "kilo.squat.ai/wireguard-ip": node["wireguard-ip"],
                "kilo.squat.ai/force-endpoint": "203.0.113.1:51820",
            });
            completed(
                &json!({"name": node["name"], "annotations": annotations}),
                index,
            )
        })
        .collect();
    let entry = json!({"name": "source", "allowedNetworks": ["10.0.0.0/8", "fd00::/8"]});
    let run = run(&json!("mesh"), &entry, &nodes, &[]).map_err(|codes| format!("{codes:?}"))?;
    let theirs: BTreeSet<&str> = texts(vector.result("t3")).into_iter().collect();
    let ours: BTreeSet<&str> = run.robbed.iter().map(String::as_str).collect();
    let mut reasons = BTreeSet::new();
    if !ours.is_empty() {
        // Its other ranges stay.
        assert!(
            ours.iter()
                .all(|node| run.peers.contains_key(&format!("mesh--source--{node}")))
        );
        reasons.insert(Why::RouteNotNode);
    }
    let sorted = nodes.is_sorted_by_key(|it| it["name"].as_str());
    for node in theirs.symmetric_difference(&ours) {
        // It, or one before it with the address, is left out and does not count.
        let names = nodes.iter().map(|it| it["name"].as_str().unwrap());
        let mut before = names.take_while(|it| it != node).chain([*node]);
        let is_invalid = |it: &str| !["valid", "NodeNoWireguardIP"].contains(&run.code(it));
        let why = if theirs.contains(node) && before.any(is_invalid) {
            Why::InvalidFirst
        } else if !sorted {
            Why::OrderOfNames
        } else {
            return Err(format!("{ours:?}"));
        };
        reasons.insert(why);
    }
    Ok(reasons)
}

fn whole_peers_of(vector: &Vector) -> Verdict {
    let input = vector.input();
    let nodes: Vec<Value> = input["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(rekeyed)
        .collect();
    let mut reasons = BTreeSet::new();
    for (form, generation) in FORMS {
        let Some(entry) = input["source"].get(form) else {
            continue;
        };
        let entry = with_domains(entry, &nodes.iter().collect::<Vec<_>>());
        let others = input["otherClusters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let run = run(&input["mesh"], &entry, &nodes, &others)
            .map_err(|codes| format!("{form}: {codes:?}"))?;
        let theirs = vector.result(generation);
        let found =
            same_peers(&entry, &nodes, theirs, &run).map_err(|how| format!("{form}: {how}"))?;
        reasons.extend(found);
    }
    Ok(reasons)
}

fn same_peers(entry: &Value, nodes: &[Value], theirs: &Value, run: &Run) -> Verdict {
    let mut reasons = BTreeSet::new();
    let skipped = theirs["skipped"].as_array().unwrap();
    for name in &run.nodes {
        let skip = skipped.iter().find(|it| it["node"] == name.as_str());
        let code = skip.map_or("valid", |it| it["reason"].as_str().unwrap());
        if code == "WGIPDuplicate" && run.robbed.contains(name) {
            reasons.insert(Why::RouteNotNode);
        } else {
            reasons.extend(same_outcome(code, run, name)?);
        }
    }
    let peers = theirs["peers"].as_array().unwrap();
    for theirs in peers {
        let Some(ours) = run.peers.get(theirs["name"].as_str().unwrap()) else {
            // Then its node is left out, which was explained before.
            unless(!reasons.is_empty(), theirs)?;
            continue;
        };
        let mut labels = ours.metadata["labels"].clone();
        labels
            .as_object_mut()
            .unwrap()
            .remove("app.kubernetes.io/managed-by");
        let key = real_key(theirs["spec"]["publicKey"].as_str().unwrap());
        let field = |key: &str| (ours.spec.get(key), theirs["spec"].get(key));
        let (keepalive, other) = field("persistentKeepalive");
        if labels != theirs["labels"] || ours.spec["publicKey"] != key || keepalive != other {
            return Err(format!("{labels} {}", ours.spec));
        }
        reasons.extend(same_endpoint(&theirs["spec"]["endpoint"], ours)?);
        reasons.extend(same_ranges(
            entry,
            nodes,
            (&theirs["spec"]["allowedIPs"], ours),
            &run.lost,
        )?);
    }
    let surplus = run
        .peers
        .keys()
        .any(|name| peers.iter().all(|it| it["name"] != name.as_str()));
    unless(
        !surplus || reasons.contains(&Why::RouteNotNode),
        &run.peers.keys(),
    )?;
    Ok(reasons)
}

/// Compares allowed IPs: every range that only one side has, has a reason, and the rest is in order.
fn same_ranges(
    entry: &Value,
    nodes: &[Value],
    (theirs, ours): (&Value, &PeerObject),
    lost: &BTreeMap<Cidr, RangeReason>,
) -> Verdict {
    let mut reasons = BTreeSet::new();
    let ours: Vec<Cidr> = ours.ranges.clone();
    let theirs = deduplicated(texts(theirs));
    let canonical: Vec<Cidr> = theirs.iter().map(|it| it.parse().unwrap()).collect();
    if canonical
        .iter()
        .zip(&theirs)
        .any(|(cidr, text)| cidr.to_string() != *text)
    {
        reasons.insert(Why::Canonical);
    }
    let families: BTreeSet<Family> = canonical.iter().map(|it| it.family()).collect();
    if 1 < families.len() {
        reasons.insert(Why::FamilyOfTarget);
    }
    let declared = declared(entry);
    let second: Vec<Cidr> = nodes
        .iter()
        .flat_map(|node| texts(&node["podCIDRs"]).into_iter().skip(1))
        .filter_map(|text| text.parse().ok())
        .collect();
    let reported: Vec<Cidr> = nodes.iter().flat_map(internal_hosts).collect();
    let sorted = nodes.is_sorted_by_key(|it| it["name"].as_str());
    for range in &ours {
        if !canonical.contains(range) {
            reasons.insert(match range {
                it if second.contains(it) => Why::SecondPodCidr,
                it if declared.contains(it) && !sorted => Why::OrderOfNames,
                it if declared.contains(it) => Why::MostNotAny,
                it if reported.contains(it) => Why::InternalAddress,
                _ => return Err(format!("{range} is ours only")),
            });
        }
    }
    for range in &canonical {
        if !ours.contains(range) {
            reasons.insert(match range {
                it if declared.contains(it) && second.iter().any(|pod| it.contains(*pod)) => {
                    Why::SecondPodCidr
                }
                it if declared.contains(it) && !sorted => Why::OrderOfNames,
                it => match lost.get(it) {
                    Some(RangeReason::Taken { .. }) => Why::RouteNotNode,
                    Some(RangeReason::InPodCidr { .. }) => Why::SharedPodCidr,
                    None if is_second_address(nodes, *it) => Why::OneInternalAddress,
                    _ => return Err(format!("{range} is theirs only")),
                },
            });
        }
    }
    for family in families {
        let common = |list: &[Cidr], other: &[Cidr]| -> Vec<Cidr> {
            let own = list.iter().copied().filter(|it| it.family() == family);
            own.filter(|it| other.contains(it)).collect()
        };
        let (one, other) = (common(&ours, &canonical), common(&canonical, &ours));
        unless(one == other, &(one, other))?;
    }
    Ok(reasons)
}

/// Whether a node has another internal address of the same family before this one.
fn is_second_address(nodes: &[Value], host: Cidr) -> bool {
    nodes.iter().map(internal_hosts).any(|hosts| {
        let mut own = hosts.iter().filter(|it| it.family() == host.family());
        own.position(|it| *it == host).is_some_and(|it| 0 < it)
    })
}

fn anchor_residual(vector: &Vector) -> Verdict {
    let nodes: Vec<Value> = vector.input()["validNodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(rekeyed)
        .collect();
    let nodes: Vec<Value> = nodes
        .iter()
        .enumerate()
        .map(|(index, it)| dialable(it, index))
        .collect();
    let allowed: Vec<Cidr> = texts(&vector.input()["allowedNetworks"])
        .iter()
        .map(|it| it.parse().unwrap())
        .collect();
    let mut ranges = allowed.clone();
    for own in nodes.iter().flat_map(own_ranges) {
        // The vector takes the nodes for valid, whatever is declared.
        if !ranges.iter().any(|it| it.contains(own)) {
            ranges.push(own);
        }
    }
    let strings: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let entry = json!({"name": "source", "allowedNetworks": strings});
    let theirs: Vec<Cidr> = texts(vector.result("f1"))
        .iter()
        .map(|it| it.parse().unwrap())
        .collect();
    let run = match run(&json!("mesh"), &entry, &nodes, &[]) {
        Ok(run) => run,
        Err(codes) => {
            let disjoint = codes == BTreeSet::from(["overlapping-ranges"]);
            return reason_if(disjoint, Why::DisjointRanges, &codes);
        }
    };
    let shared = run.shared.iter().copied();
    let ours: Vec<Cidr> = shared.filter(|it| allowed.contains(it)).collect();
    let mut reasons = BTreeSet::new();
    for range in &allowed {
        let inside = |node: &&Value| own_ranges(node).iter().any(|it| range.contains(*it));
        let second = |node: &Value| {
            let further = texts(&node["podCIDRs"]).into_iter().skip(1);
            further
                .filter_map(|it| it.parse().ok())
                .any(|it: Cidr| range.contains(it))
        };
        let inhabited = nodes.iter().filter(inside).count();
        match (ours.contains(range), theirs.contains(range)) {
            (false, true) if nodes.iter().any(second) => reasons.insert(Why::SecondPodCidr),
            (true, false) if 2 * inhabited <= nodes.len() => reasons.insert(Why::MostNotAny),
            (one, other) if one == other => false,
            _ => return Err(format!("{ours:?}")),
        };
    }
    let in_order = |list: &[Cidr]| {
        list.iter()
            .map(|it| allowed.iter().position(|own| own == it))
            .is_sorted()
    };
    unless(in_order(&ours) && in_order(&theirs), &ours)?;
    Ok(reasons)
}

fn keepalive_floor(vector: &Vector) -> Verdict {
    let seconds = vector.input()["persistentKeepalivePerCluster"]
        .as_array()
        .unwrap();
    let floor = vector.result("f2");
    assert_eq!(seconds.iter().max_by_key(|it| it.as_u64()), Some(floor));
    let mut reasons = BTreeSet::new();
    for (index, own) in seconds.iter().enumerate() {
        let networks = [format!("10.{index}.0.0/16"), format!("100.64.{index}.0/24")];
        let entry =
            json!({"name": "source", "allowedNetworks": networks, "persistentKeepalive": own});
        let others = seconds
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        let others = others.map(
            |(other, it)| json!({"name": format!("other-{other}"), "persistentKeepalive": it}),
        );
        let annotations = json!({
            "kilo.squat.ai/wireguard-ip": format!("100.64.{index}.1/24"),
            "kilo.squat.ai/force-endpoint": "203.0.113.1:51820",
        });
        let node = json!({"name": "node", "podCIDRs": [format!("10.{index}.0.0/24")], "annotations": annotations});
        let run = run(
            &json!("mesh"),
            &entry,
            &[completed(&node, 1)],
            &others.collect::<Vec<_>>(),
        );
        let run = run.map_err(|codes| format!("{codes:?}"))?;
        let ours = &run.peer("node").spec["persistentKeepalive"];
        unless(ours.as_u64().unwrap_or(0) == own.as_u64().unwrap(), ours)?;
        if own != floor {
            reasons.insert(Why::OwnKeepalive);
        }
    }
    Ok(reasons)
}

/// What a source cluster gives to targets of both families.
struct Run {
    nodes: Vec<String>,
    /// What both get together, by name.
    peers: BTreeMap<String, PeerObject>,
    left_out: BTreeMap<String, (String, Reason)>,
    /// Nodes whose WireGuard address another node keeps.
    robbed: BTreeSet<String>,
    /// Ranges that nodes claim in vain, and why.
    lost: BTreeMap<Cidr, RangeReason>,
    /// Ranges of the cluster as a whole that no node claims as they are.
    shared: Vec<Cidr>,
}

struct PeerObject {
    metadata: Value,
    spec: Value,
    ranges: Vec<Cidr>,
}

impl Run {
    fn code(&self, node: &str) -> &str {
        self.left_out.get(node).map_or("valid", |(code, _)| code)
    }

    fn peer(&self, node: &str) -> &PeerObject {
        let suffix = format!("--{node}");
        let mut found = self
            .peers
            .iter()
            .filter(|(name, _)| name.ends_with(&suffix));
        found.next().unwrap().1
    }

    /// The endpoint of the only Peer.
    fn endpoint(&self) -> Option<Endpoint> {
        let endpoint = self.peers.values().next()?.spec.get("endpoint")?;
        let host = &endpoint["dnsOrIP"];
        let host = match host["ip"].as_str() {
            Some(address) => Host::Ip(address.parse().unwrap()),
            None => Host::Dns(host["dns"].as_str().unwrap().to_owned()),
        };
        let port = u16::try_from(endpoint["port"].as_u64().unwrap()).unwrap();
        Some(Endpoint {
            host,
            port: port.try_into().unwrap(),
        })
    }
}

/// Runs one node, completed with all that the vector leaves out.
fn run_node(node: &Value, fields: &Value) -> Run {
    let mut entry = json!({"name": "source", "allowedNetworks": ["10.244.0.0/16", "10.4.0.0/24"]});
    let node = completed(node, 1);
    entry = with_domains(&entry, &[&node]);
    let fields = fields.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(fields);
    run(&json!("mesh"), &entry, &[node], &[]).unwrap()
}

/// Renders for one target of each family, and for `others`.
///
/// Returns the codes of what is wrong with the mesh, if anything is.
fn run(
    mesh: &Value,
    entry: &Value,
    nodes: &[Value],
    others: &[Value],
) -> Result<Run, BTreeSet<&'static str>> {
    let mut entry = entry.clone();
    if entry["wireguardPort"] == 0 {
        entry.as_object_mut().unwrap().remove("wireguardPort");
    }
    let mut taken = declared(&entry);
    let mut entries = vec![entry.clone()];
    let targets = [
        json!({"name": "target-four"}),
        json!({"name": "target-six"}),
    ];
    for other in targets.iter().chain(others) {
        let mut free = (0..=255).map(|i| {
            if other["name"] == "target-six" {
                format!("3fff:{i:x}::/32")
            } else {
                format!("198.18.{i}.0/24")
            }
        });
        let is_free = |text: &String| taken.iter().all(|it| !it.overlaps(text.parse().unwrap()));
        let range = free.find(is_free).unwrap();
        taken.push(range.parse().unwrap());
        let mut other = other.clone();
        other["allowedNetworks"] = json!([range]);
        entries.push(other);
    }
    let text = mesh_of(mesh, &entries).to_string();
    let reading = mesh::read(&[Source::parse("mesh.json", text).unwrap()]);
    let errors = reading
        .diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error);
    let codes: BTreeSet<&str> = errors.map(|it| it.code).collect();
    if !codes.is_empty() {
        return Err(codes);
    }
    let source: ClusterName = entry["name"].as_str().unwrap().parse().unwrap();
    let clusters = entries
        .iter()
        .map(|it| it["name"].as_str().unwrap().parse::<ClusterName>().unwrap());
    let snapshots = clusters
        .map(|cluster| {
            let snapshot = if cluster == source {
                snapshot(&cluster, nodes)
            } else {
                Snapshot::new(cluster.clone(), Vec::new()).unwrap()
            };
            let file = SnapshotFile {
                snapshot,
                source: format!("{cluster}.json").into(),
            };
            (cluster, file)
        })
        .collect();
    let fleet = Fleet::new(&reading.meshes, &snapshots).unwrap();
    Ok(outcome(&fleet, &source, nodes))
}

fn outcome(fleet: &Fleet, source: &ClusterName, nodes: &[Value]) -> Run {
    let plan = plan::plan(fleet).unwrap();
    let findings = rules::findings(fleet, &plan);
    let member = fleet.memberships(source).next().unwrap();
    let tree = manifest::tree(&plan).unwrap();
    let mut peers: BTreeMap<String, PeerObject> = BTreeMap::new();
    for target in ["target-four", "target-six"] {
        let path = format!("{target}/{}--{source}.yaml", member.mesh.name);
        let text = tree.get(&path).map(AsRef::as_ref).unwrap_or_default();
        for document in serde_yaml::Deserializer::from_str(text) {
            let value = Value::deserialize(document).unwrap();
            let Some(name) = value["metadata"]["name"].as_str() else {
                continue;
            };
            let ranges = texts(&value["spec"]["allowedIPs"]).into_iter();
            let ranges: Vec<Cidr> = ranges.map(|it| it.parse().unwrap()).collect();
            let peer = peers.entry(name.to_owned()).or_insert_with(|| PeerObject {
                metadata: value["metadata"].clone(),
                spec: value["spec"].clone(),
                ranges: Vec::new(),
            });
            assert_eq!(peer.spec.get("endpoint"), value["spec"].get("endpoint"));
            peer.ranges.extend(ranges);
        }
    }
    let left_out = member.roster.left_out.iter().map(|it| {
        let subject = format!("{source}/{}", it.node);
        let found = findings.iter().find(|finding| {
            finding.subject == subject && finding.message.starts_with("left out: ")
        });
        (
            it.node.clone(),
            (found.unwrap().rule.code().to_owned(), it.reason.clone()),
        )
    });
    let robbed = member
        .roster
        .lost
        .iter()
        .filter(|it| matches!(it.reason, RangeReason::Taken { .. }));
    let lost = member.roster.lost.iter();
    let lost = lost.filter_map(|it| Some((it.range.parse().ok()?, it.reason.clone())));
    let claimed = |range: &&Cidr| {
        member
            .roster
            .speakers
            .iter()
            .any(|it| it.claims.contains(range))
    };
    Run {
        nodes: nodes
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect(),
        peers,
        left_out: left_out.collect(),
        robbed: robbed.map(|it| it.node.clone()).collect(),
        lost: lost.collect(),
        shared: member
            .roster
            .shared
            .iter()
            .filter(|it| !claimed(it))
            .copied()
            .collect(),
    }
}

fn mesh_of(name: &Value, entries: &[Value]) -> Value {
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "ClusterMesh",
        "metadata": {"name": name},
        "spec": {"clusters": entries},
    })
}

/// Takes the snapshot from objects as the API has them.
fn snapshot(cluster: &ClusterName, nodes: &[Value]) -> Snapshot {
    let object = |node: &Value| {
        json!({
            "metadata": {"name": node["name"], "annotations": node["annotations"]},
            "spec": {"podCIDRs": node["podCIDRs"]},
            "status": {"addresses": node["addresses"]},
        })
    };
    if nodes.is_empty() {
        return Snapshot::new(cluster.clone(), Vec::new()).unwrap();
    }
    let items: Vec<Value> = nodes.iter().map(object).collect();
    let list = json!({"kind": "NodeList", "items": items}).to_string();
    dump::snapshot(cluster.clone(), &list).unwrap()
}

/// Adds what a node needs and the vector does not mention.
fn completed(node: &Value, index: usize) -> Value {
    let mut node = node.clone();
    let host = index + 1;
    if node["podCIDRs"].is_null() {
        node["podCIDRs"] = json!([format!("10.244.{host}.0/24")]);
    }
    let annotations = node["annotations"].as_object_mut().unwrap();
    let mut default = |key: &str, value: String| {
        let key = format!("kilo.squat.ai/{key}");
        annotations.entry(key).or_insert(json!(value));
    };
    default("wireguard-ip", format!("10.4.0.{host}/32"));
    default("key", real_key(&index.to_string()));
    node
}

fn dialable(node: &Value, index: usize) -> Value {
    let mut node = node.clone();
    let endpoint = json!(format!("203.0.113.{}:51820", index + 1));
    node["annotations"]["kilo.squat.ai/force-endpoint"] = endpoint;
    node
}

/// Many vectors have keys that are none; where that is not the point, they get real ones.
fn rekeyed(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(key) = node["annotations"].get_mut("kilo.squat.ai/key")
        && key != ""
    {
        *key = json!(real_key(key.as_str().unwrap()));
    }
    node
}

fn real_key(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

/// Declares the names under which the nodes can be dialled.
fn with_domains(entry: &Value, nodes: &[&Value]) -> Value {
    let texts = nodes.iter().filter_map(|it| it["annotations"].as_object());
    let texts = texts
        .flatten()
        .filter(|(key, _)| key.ends_with("-endpoint"));
    let names: BTreeSet<String> = texts
        .filter_map(
            |(_, text)| match text.as_str()?.parse::<Endpoint>().ok()?.host {
                Host::Dns(name) if is_dns_subdomain(&name) => Some(name),
                _ => None,
            },
        )
        .collect();
    let mut entry = entry.clone();
    entry["endpointDomains"] = json!(names);
    entry
}

/// The ranges that an entry declares, in order.
fn declared(entry: &Value) -> Vec<Cidr> {
    let keys = [
        "podCIDRs",
        "wireguardCIDR",
        "serviceCIDR",
        "additionalCIDRs",
        "allowedNetworks",
    ];
    let texts = keys.iter().flat_map(|key| match &entry[*key] {
        Value::String(text) => vec![text.as_str()],
        list => texts(list),
    });
    texts.filter_map(|it| it.parse().ok()).collect()
}

/// The first pod CIDR, the WireGuard address and the internal addresses of a node.
fn own_ranges(node: &Value) -> Vec<Cidr> {
    let pod = texts(&node["podCIDRs"])
        .first()
        .and_then(|it| it.parse().ok());
    let wireguard = node["annotations"]["kilo.squat.ai/wireguard-ip"].as_str();
    let wireguard = wireguard.and_then(|it| it.parse::<Interface>().ok());
    let wireguard = wireguard.map(|it| Cidr::host(it.address));
    pod.into_iter()
        .chain(wireguard)
        .chain(internal_hosts(node))
        .collect()
}

fn internal_hosts(node: &Value) -> Vec<Cidr> {
    let addresses = node["addresses"].as_array().into_iter().flatten();
    addresses
        .filter(|it| it["type"] == "InternalIP")
        .filter_map(|it| Some(Cidr::host(it["address"].as_str()?.parse().ok()?)))
        .collect()
}

fn deduplicated(texts: Vec<&str>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    texts.into_iter().filter(|it| seen.insert(*it)).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap()).collect()
}

fn unless(same: bool, ours: &impl std::fmt::Debug) -> Verdict {
    if same {
        Ok(BTreeSet::new())
    } else {
        Err(format!("{ours:?}"))
    }
}

fn reason_if(holds: bool, why: Why, ours: &impl std::fmt::Debug) -> Verdict {
    if holds {
        Ok(BTreeSet::from([why]))
    } else {
        Err(format!("{ours:?}"))
    }
}
