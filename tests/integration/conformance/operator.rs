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
use clustermesh::membership::{EndpointProblem, ExcludedReason, WithheldReason};
use clustermesh::mesh;
use clustermesh::name::{self, ClusterName, is_dns_subdomain};
use clustermesh::net::{self, Cidr, CidrError, Family, Interface};
use clustermesh::snapshot::{Snapshot, dump};
use clustermesh::wireguard::{Endpoint, EndpointError, Host};
use clustermesh::{manifest, plan, rules};
use serde::Deserialize as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

mod nodes;
mod peers;
mod run;
mod takeover;
mod words;

use nodes::*;
use peers::*;
use run::*;
use words::*;

const OPERATOR: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/operator.json"));

/// The generation of the operator for each of the two forms of an entry.
const FORMS: [(&str, &str); 2] = [("typed", "t3"), ("flat", "f1")];

/// The vectors in which we differ, and every reason why.
const DIFFERENCES: &[(&str, &[Why])] = &[
    ("labels/mesh-b,cluster-x", &[Why::ManagedBy]),
    ("labels/mesh-name-too-long-for-a-label", &[Why::UnusableName]),
    ("cidr/::ffff:10.0.0.0/104", &[Why::Mapped]),
    ("mesh/two-meshes-overlap", &[Why::Strangers]),
    ("mesh/same-name-different-cluster", &[Why::OneClusterOneTruth]),
    ("mesh/same-name-inconsistent-ranges", &[Why::OneClusterOneTruth]),
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
    ("peer/dual-stack", &[Why::SecondPodCidr, Why::FamilyOfTarget]),
    ("peer/podcidr-host-bits", &[Why::Canonical]),
    ("anchor/v6-pod-aggregate", &[Why::SecondPodCidr]),
    ("anchor/narrower-than-podcidr", &[Why::DisjointRanges]),
    ("keepalive/[0, 25]", &[Why::OwnKeepalive]),
    ("keepalive/[25, 30, 10]", &[Why::OwnKeepalive]),
];

/// Groups of vectors that do not apply to a program that only writes files.
const ELSEWHERE: &[(&str, &str)] = &[
    ("transientReason", "nothing waits here: who runs it again decides when"),
    ("requeue", "nothing waits here: who runs it again decides when"),
    (
        "bootstrapIncomplete",
        "a snapshot is whole or is not written; its guards have their own tests",
    ),
    ("peerDiff", "the cluster's agent compares what is applied with what is there"),
    ("reconcilePeers", "the cluster's agent creates, updates and prunes"),
    ("staleSourceSweep", "the cluster's agent prunes what is no longer in the tree"),
    ("orphanMeshSweep", "the cluster's agent prunes only what came from the tree"),
    ("discoveredEndpoints", "what a target's nodes have seen is no input: weakness 8"),
    ("discoveredOverride", "nothing replaces a declared endpoint: weakness 8"),
    ("kiloPeerValidation", "tested in admission.rs"),
];

/// Why we differ: a weakness of the operator, by its number, or one of our principles.
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
    /// Weakness 25: a keepalive means that the source is behind NAT, so it belongs to the source.
    OwnKeepalive,
    /// Weakness 27: an empty annotation counts as missing.
    EmptyIsUnset,
    /// Weakness 34: meshes that share no cluster do not block each other.
    Strangers,
    /// Principle 1: a mistake in the mesh renders nothing, instead of being passed over.
    MistakeFails,
    /// Principle 2: of a WireGuard address that two claim, the later loses the route, not its
    /// place: Kilo renumbers.
    RouteNotNode,
    /// Principle 3: ranges of a mesh are disjoint, so none is inside a node's pod CIDR.
    DisjointRanges,
    /// Principle 8: an IPv4-mapped range breaks routes, so it is invalid.
    Mapped,
    /// Principle 8: an endpoint that no other cluster can dial is invalid.
    Undialable,
    /// Principle 8: a Peer without endpoint stops Kilo, so a roaming node gets a placeholder.
    Placeholder,
    /// Principle 8: Kilo routes one family, so each target gets its own.
    FamilyOfTarget,
    /// Section 5: declared internal addresses are given in both forms.
    InternalAddress,
    /// Section 3: `InternalIP` is a source like any other, so an IPv6 address is one too.
    InternalIpv6,
    /// Section 5: one more label marks it as ours.
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
    let found: BTreeSet<&str> = vectors.iter().map(|it| it.0["group"].as_str().unwrap()).collect();
    let known = TESTED.iter().chain(ELSEWHERE.iter().map(|(group, _)| group));
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
    let known: BTreeMap<&str, BTreeSet<Why>> =
        DIFFERENCES.iter().map(|(id, reasons)| (*id, reasons.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for vector in &vectors {
        let known = known.get(vector.id()).cloned().unwrap_or_default();
        match check(vector) {
            Ok(found) if found == known => {}
            Ok(found) => {
                wrong.push(format!("{}: {found:?}, but the table has {known:?}", vector.id()));
            }
            Err(how) => wrong.push(format!("{}: no known reason: {how}", vector.id())),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
