//! Our segments and Peers against those of Kilo's agent and of `kgctl showconf node --as-peer`.
//!
//! A difference must have one of the reasons of [`Why`], and the table below must know it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use clustermesh::fleet::Fleet;
use clustermesh::granularity::Granularity;
use clustermesh::kilo::id::{NodeId, Nodes};
use clustermesh::kilo::node::{InternalIp, KiloNode, annotation};
use clustermesh::kilo::peer::Peer;
use clustermesh::kilo::segment::{self, Cut, Segment};
use clustermesh::membership::{ExcludedReason, Origin};
use clustermesh::name::{ClusterName, is_dns_subdomain};
use clustermesh::net::{Cidr, Family, Interface};
use clustermesh::plan;
use clustermesh::snapshot::{Address, AddressKind, Node, Snapshot, dump};
use clustermesh::wireguard::{Endpoint, Host};
use serde_json::{Value, json};

use crate::support;

const SCENARIOS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/kilo-topology.json"));

/// The scenarios in which something differs, and every reason there is for it.
const DIFFERENCES: &[(&str, &[Why])] = &[
    ("cross-two-locations", &[Why::OnOneAnchor]),
    ("full-subnet-overflow", &[Why::NoWireguardAddress]),
    ("location-allowed-location-ips", &[Why::OnOneAnchor]),
    ("location-endpoint-dns", &[Why::KgctlGarblesNames]),
    ("location-ipv6-cluster", &[Why::FamilyOfTarget]),
    ("location-leader-annotation-private", &[Why::EndpointInside]),
    ("location-two-locations-by-label", &[Why::OnOneAnchor]),
];

/// Why one of our segments or Peers differs from Kilo's or kgctl's.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Why {
    /// A node that is its own segment is kept while Kilo ignores it: its Peer is right as
    /// soon as it is back.
    KeptUnready,
    /// The only member with a WireGuard address leads, even if an election without names has
    /// another result.
    HolderLeads,
    /// Kilo gave the node no WireGuard address, so it has no tunnel; kgctl still prints a Peer.
    NoWireguardAddress,
    /// An invalid `force-endpoint` excludes the node; Kilo uses the endpoint that it has
    /// discovered.
    MalformedForceEndpoint,
    /// An endpoint that no other cluster can dial.
    Undialable,
    /// A key that another node has, or that no handshake can use.
    UnusableKey,
    /// kgctl prints a DNS endpoint as port and `<nil>`, which Kilo itself refuses.
    KgctlGarblesNames,
    /// kgctl gives `--allowed-ips` to every Peer, of which Kilo keeps one; we give them to one.
    OnOneAnchor,
    /// A declared range in which not more than half of the segments have an address is the
    /// cluster's as a whole.
    ClusterWide,
    /// The target's Kilo routes one family.
    FamilyOfTarget,
    /// Host bits are masked; Kilo would rewrite its device for ever.
    HostBits,
    /// A host route that another node claimed first, or that is in another's pod CIDR.
    Contested,
    /// A host route to the endpoint itself would be a loop.
    EndpointInside,
    /// All pod CIDRs and reported addresses count, not only what Kilo reads.
    MoreThanKiloReads,
    /// kgctl takes the subnet from an annotation; one of a single address makes it drop the others.
    KgctlDropsWireguardAddress,
}

pub(crate) struct Scenario {
    pub(crate) value: Value,
    /// The nodes that Kilo does not find stale, by name.
    pub(crate) nodes: Vec<Node>,
}

impl Scenario {
    fn new(value: Value) -> Self {
        let now = value["input"]["now"].as_i64().unwrap();
        let items: Vec<&Value> = value["input"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|node| {
                let seen: i64 = node["metadata"]["annotations"]["kilo.squat.ai/last-seen"]
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0);
                now - seen < 60
            })
            .collect();
        let nodes = if items.is_empty() {
            Vec::new()
        } else {
            let list = json!({"kind": "NodeList", "items": items}).to_string();
            dump::listing(&list)
                .unwrap()
                .snapshot("source".parse().unwrap(), 300, None)
                .unwrap()
                .0
                .nodes
        };
        Self { value, nodes }
    }

    pub(crate) fn name(&self) -> &str {
        self.value["name"].as_str().unwrap()
    }

    pub(crate) fn input(&self, key: &str) -> &str {
        self.value["input"][key].as_str().unwrap()
    }

    pub(crate) fn granularity(&self) -> Granularity {
        Granularity::from_annotation(self.input("granularity")).unwrap()
    }

    pub(crate) fn readings(&self) -> Vec<KiloNode> {
        let label = self.input("topologyLabel");
        let nodes = self.nodes.iter();
        nodes.map(|node| KiloNode::read(node, label)).collect()
    }

    /// The cluster in our segments.
    pub(crate) fn formed(&self) -> Cut {
        let readings = self.readings();
        let readings = Nodes::new(readings.iter().collect());
        segment::segments(&readings, self.granularity())
    }

    fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    fn is_ready(&self, node: &str) -> bool {
        self.value["expected"]["nodes"][node]["ready"] == true
    }

    fn segments(&self) -> &[Value] {
        self.value["expected"]["segments"].as_array().unwrap()
    }

    /// The segment that a node belongs to, as Kilo forms it.
    fn segment_of(&self, node: &str) -> Option<&Value> {
        let is_member = |segment: &&Value| texts(&segment["hostnames"]).contains(&node);
        self.segments().iter().find(is_member)
    }

    /// The ranges that kgctl adds to every Peer.
    fn cluster_wide(&self) -> Vec<Cidr> {
        cidrs(&self.value["input"]["kgctlAllowedIPs"])
    }

    /// The family that the cluster itself routes.
    fn family(&self) -> Family {
        let readings = self.readings();
        let internal = readings.iter().filter_map(KiloNode::internal_address);
        let families: Vec<Family> = internal.map(|it| Cidr::host(it).family()).collect();
        let six = families.iter().filter(|it| **it == Family::V6).count();
        match families.len() {
            0 => readings.iter().find_map(|it| it.pod_cidr).map_or(Family::V4, Cidr::family),
            all if all < 2 * six => Family::V6,
            _ => Family::V4,
        }
    }

    /// Disjoint ranges that contain all addresses of the nodes and the scenario.
    fn declared(&self) -> Vec<Cidr> {
        let readings = self.readings();
        let mut pods = Vec::new();
        let mut hosts = Vec::new();
        let mut all: Vec<Cidr> = self.cluster_wide();
        all.push(self.input("kiloSubnet").parse().unwrap());
        for (node, kilo) in self.nodes.iter().zip(&readings) {
            pods.extend(node.pod_cidrs.iter().filter_map(|it| it.parse::<Cidr>().ok()));
            hosts.extend(kilo.internal_address().map(Cidr::host));
            let reported = node.addresses.iter().filter_map(|it| it.address.parse().ok());
            hosts.extend(reported.map(Cidr::host));
            all.extend(kilo.wireguard_ip().map(|it| Cidr::host(it.address)));
        }
        all.extend(summary(&pods));
        all.extend(summary(&hosts));
        let widest = |cidr: &Cidr| !all.iter().any(|it| it != cidr && it.contains(*cidr));
        let kept: BTreeSet<Cidr> = all.iter().copied().filter(widest).collect();
        kept.into_iter().collect()
    }
}

/// The smallest range of each family that holds all of these, or they themselves if they are strewn
/// too widely.
fn summary(cidrs: &[Cidr]) -> Vec<Cidr> {
    let mut found = Vec::new();
    for (family, shortest) in [(Family::V4, 8), (Family::V6, 32)] {
        let own: Vec<Cidr> = cidrs.iter().copied().filter(|it| it.family() == family).collect();
        let Some(first) = own.first() else { continue };
        let wider = (shortest..=first.prefix_length()).rev();
        let mut ranges =
            wider.map(|length| -> Cidr { format!("{}/{length}", first.first()).parse().unwrap() });
        match ranges.find(|range| own.iter().all(|it| range.contains(*it))) {
            Some(range) => found.push(range),
            None => found.extend(own),
        }
    }
    found
}

pub(crate) fn scenarios() -> Vec<Scenario> {
    let values: Vec<Value> = serde_json::from_str(SCENARIOS).unwrap();
    assert!(27 <= values.len());
    values.into_iter().map(Scenario::new).collect()
}

pub(crate) fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap()).collect()
}

/// Kilo prints an address it does not have as `<nil>`.
fn cidrs(value: &Value) -> Vec<Cidr> {
    let texts = texts(value).into_iter().filter(|text| *text != "<nil>");
    texts.map(|text| text.parse().unwrap()).collect()
}

#[test]
fn nodes_are_read_as_kilo_reads_them() {
    for scenario in scenarios() {
        let theirs = &scenario.value["expected"]["nodes"];
        for ours in scenario.readings() {
            let name = &ours.name;
            let theirs = &theirs[name];
            let context = format!("{} {name}: {theirs:#}", scenario.name());
            let cidr = |key: &str| theirs[key].as_str().map(|it| it.parse::<Interface>().unwrap());
            assert_eq!(ours.is_ready(), theirs["ready"], "{context}");
            assert_eq!(ours.location, theirs["location"], "{context}");
            assert_eq!(ours.volunteers, theirs["leaderAnnotation"], "{context}");
            assert_eq!(ours.key.is_none(), theirs["keyIsZero"], "{context}");
            assert_eq!(ours.pod_cidr, cidr("podCIDR").map(|it| it.network), "{context}");
            assert_eq!(
                ours.internal_address(),
                cidr("internalIP").map(|it| it.address),
                "{context}"
            );
            let disabled = ours.internal_ip == InternalIp::Disabled;
            assert_eq!(disabled, theirs["noInternalIP"], "{context}");
            let endpoint = ours.endpoint.map_or_else(String::new, |it| it.to_string());
            assert_eq!(endpoint, theirs["endpoint"].as_str().unwrap_or_default(), "{context}");
        }
        for (name, theirs) in theirs.as_object().unwrap() {
            assert!(scenario.node(name).is_some() || theirs["ready"] == false, "{name}");
        }
    }
}

/// The annotation of a converged Kilo shows the leader; without it, the election decides.
#[test]
fn leaders_are_elected_as_kilo_elects_them() {
    for scenario in scenarios() {
        let readings = scenario.readings();
        let ours = scenario.formed();
        for theirs in scenario.segments() {
            let members = texts(&theirs["hostnames"]);
            let has_name = |it: &KiloNode| members.contains(&&*it.name) && it.has_name();
            // Kilo resolves names before it elects; nothing here can.
            if 1 < members.len() && readings.iter().any(has_name) {
                continue;
            }
            let ours = ours.formed.iter().find(|it| it.key == theirs["location"]);
            let elected = &readings[ours.unwrap().elected.index()].name;
            assert_eq!(*elected, theirs["leader"], "{}", scenario.name());
        }
    }
}

#[test]
fn segments_and_peers_are_kilo_s_but_for_reasons() {
    let known: BTreeMap<&str, BTreeSet<Why>> = DIFFERENCES
        .iter()
        .map(|(scenario, reasons)| (*scenario, reasons.iter().copied().collect()))
        .collect();
    let scenarios = scenarios();
    let found: BTreeMap<&str, BTreeSet<Why>> = scenarios
        .iter()
        .map(|scenario| {
            let mut reasons = segment_reasons(scenario);
            reasons.extend(peer_reasons(scenario));
            (scenario.name(), reasons)
        })
        .filter(|(_, reasons)| !reasons.is_empty())
        .collect();
    assert_eq!(found, known, "the differences are not those of the table");
}

/// Compares segments; every difference has a reason.
fn segment_reasons(scenario: &Scenario) -> BTreeSet<Why> {
    let mut reasons = BTreeSet::new();
    let readings = scenario.readings();
    let name = |id: &NodeId| readings[id.index()].name.as_str();
    let ours = scenario.formed();
    let is_kept_unready = |segment: &Segment| {
        !segment.key.starts_with("location:") && !scenario.is_ready(name(&segment.leader))
    };
    let (unready, formed): (Vec<_>, Vec<_>) =
        ours.formed.iter().partition(|it| is_kept_unready(it));
    if !unready.is_empty() {
        reasons.insert(Why::KeptUnready);
    }
    for index in &ours.unready {
        assert!(!scenario.is_ready(name(index)), "{}", scenario.name());
    }
    assert_eq!(formed.len(), scenario.segments().len(), "{}", scenario.name());
    for (ours, theirs) in formed.iter().zip(scenario.segments()) {
        let context = format!("{}: {ours:?}, {theirs:#}", scenario.name());
        let members: Vec<&str> = ours.members.iter().map(name).collect();
        assert_eq!(ours.key, theirs["location"], "{context}");
        assert_eq!(members, texts(&theirs["hostnames"]), "{context}");
        if name(&ours.leader) != theirs["leader"] {
            let holders = ours.members.iter().filter(|it| readings[it.index()].has_wireguard_ip());
            assert_eq!(holders.collect::<Vec<_>>(), [&ours.leader], "{context}");
            reasons.insert(Why::HolderLeads);
        }
    }
    reasons
}

/// What a target like the cluster itself gets of it.
struct Given {
    family: Family,
    declared: Vec<Cidr>,
    peers: BTreeMap<String, Peer>,
    excluded: BTreeMap<String, ExcludedReason>,
}

fn given(scenario: &Scenario) -> Given {
    let (family, declared) = (scenario.family(), scenario.declared());
    let target = json!({"name": "target", "allowedNetworks": strings(&[free(family, &declared)])});
    let mesh = mesh(scenario, &declared, &target);
    let meshes = support::meshes(&mesh.to_string());
    crate::docs::schemas::assert_fits(&mesh.to_string());
    let nodes = vec![("source", scenario.nodes.clone()), ("target", Vec::new())];
    let snapshots = support::snapshots(nodes);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan::plan(&fleet).unwrap();
    let target: ClusterName = "target".parse().unwrap();
    let target = plan.targets.iter().find(|it| it.cluster == target).unwrap();
    let peers: BTreeMap<String, &Peer> =
        plan.sets_of(target).flat_map(|it| &it.peers).map(|it| (it.name.to_string(), it)).collect();
    let source: ClusterName = "source".parse().unwrap();
    let membership = &fleet.memberships(&source).next().unwrap().membership;
    let by_node = scenario.nodes.iter().filter_map(|node| {
        let peer = peers.get(&format!("mesh--source--{}", node.name))?;
        Some((node.name.clone(), (*peer).clone()))
    });
    let given = Given {
        family,
        declared,
        peers: by_node.collect(),
        excluded: membership
            .excluded
            .iter()
            .map(|it| (it.node.clone(), it.reason.clone()))
            .collect(),
    };
    assert_eq!(given.peers.len(), peers.len(), "{}", scenario.name());
    given
}

fn strings(ranges: &[Cidr]) -> Vec<String> {
    ranges.iter().map(ToString::to_string).collect()
}

/// A range that the scenario does not use.
fn free(family: Family, declared: &[Cidr]) -> Cidr {
    let ranges = match family {
        Family::V4 => ["198.18.0.0/15", "192.0.2.0/24"],
        Family::V6 => ["100::/64", "3fff::/20"],
    };
    let mut ranges = ranges.into_iter().map(|it| -> Cidr { it.parse().unwrap() });
    let is_free = |range: &Cidr| declared.iter().all(|it| !it.overlaps(*range));
    ranges.find(is_free).unwrap()
}

/// The scenario's cluster as a flat list, and another one.
fn mesh(scenario: &Scenario, declared: &[Cidr], target: &Value) -> Value {
    let names: BTreeSet<String> = scenario.nodes.iter().flat_map(names).collect();
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "ClusterMesh",
        "metadata": {"name": "mesh"},
        "spec": {"clusters": [
            {
                "name": "source",
                "allowedNetworks": strings(declared),
                "granularity": scenario.granularity().to_string(),
                "topologyLabel": scenario.input("topologyLabel"),
                "endpointFrom": ["Annotation", "Kilo"],
                "endpointDomains": names,
            },
            target,
        ]},
    })
}

/// The DNS names of a node's endpoints.
fn names(node: &Node) -> Vec<String> {
    let keys = [annotation::FORCE_ENDPOINT, annotation::ENDPOINT];
    let texts = keys.iter().filter_map(|key| node.annotations.get(*key));
    texts
        .filter_map(|text| match text.parse::<Endpoint>().ok()?.host {
            Host::Dns(name) if is_dns_subdomain(&name) => Some(name),
            _ => None,
        })
        .collect()
}

/// Compares the Peer of every node with kgctl's; every difference has a reason.
fn peer_reasons(scenario: &Scenario) -> BTreeSet<Why> {
    let given = given(scenario);
    let mut reasons = BTreeSet::new();
    for (node, printed) in scenario.value["expected"]["kgctlAsPeer"].as_object().unwrap() {
        let theirs = printed.get("peer").filter(|it| !it.is_null());
        match (theirs, given.peers.get(node)) {
            (None, None) => {}
            (None, Some(_)) => {
                let elected =
                    scenario.segment_of(node).is_some_and(|it| it["leader"] == node.as_str());
                assert!(elected || is_holder(scenario, node), "{} {node}", scenario.name());
                reasons.insert(Why::HolderLeads);
            }
            (Some(_), None) => {
                reasons.insert(excluded(scenario, &given, node));
            }
            (Some(theirs), Some(ours)) => {
                let spec = &theirs["spec"];
                assert_eq!(ours.key.to_string(), spec["publicKey"], "{} {node}", scenario.name());
                reasons.extend(endpoint_reason(scenario, node, ours, &spec["endpoint"]));
                reasons.extend(range_reasons(scenario, &given, node, &spec["allowedIPs"]));
                assert_our_order(scenario, node, ours);
            }
        }
    }
    reasons
}

fn is_holder(scenario: &Scenario, node: &str) -> bool {
    let annotations = scenario.node(node).map(|it| &it.annotations);
    annotations.and_then(|it| it.get(annotation::WIREGUARD_IP)).is_some_and(|text| !text.is_empty())
}

/// Why we have no Peer for a node for which kgctl has one.
fn excluded(scenario: &Scenario, given: &Given, node: &str) -> Why {
    let reason = given.excluded.get(node);
    match reason {
        Some(ExcludedReason::NoWireguardIp) if !is_holder(scenario, node) => {
            Why::NoWireguardAddress
        }
        Some(ExcludedReason::EndpointInvalid {
            origin: Origin::Annotation(annotation::FORCE_ENDPOINT),
            text,
            ..
        }) if falls_back(scenario, node, text) => Why::MalformedForceEndpoint,
        Some(ExcludedReason::EndpointInvalid { .. }) => Why::Undialable,
        Some(ExcludedReason::PublicKeyInvalid { .. } | ExcludedReason::DuplicateKey(_)) => {
            Why::UnusableKey
        }
        None if !is_holder(scenario, node) => {
            let segment = scenario.segment_of(node).unwrap();
            let holders = texts(&segment["hostnames"]);
            assert!(holders.iter().any(|it| is_holder(scenario, it)), "{} {node}", scenario.name());
            Why::HolderLeads
        }
        reason => panic!("{} {node}: left out for {reason:?}", scenario.name()),
    }
}

/// Whether Kilo uses another endpoint than the one that was forced.
fn falls_back(scenario: &Scenario, node: &str, forced: &str) -> bool {
    let mut readings = scenario.readings().into_iter();
    let kilo = readings.find(|it| it.name == node);
    kilo.and_then(|kilo| kilo.endpoint).is_some_and(|endpoint| forced.parse() != Ok(endpoint))
}

fn endpoint_reason(scenario: &Scenario, node: &str, ours: &Peer, theirs: &Value) -> Option<Why> {
    let context = format!("{} {node}: {ours:?}, {theirs:#}", scenario.name());
    let endpoint = ours.endpoint.as_ref().unwrap();
    let kilo = scenario.value["expected"]["nodes"][node]["endpoint"].as_str().unwrap();
    assert_eq!(*endpoint, kilo.parse().unwrap(), "{context}");
    let host = match &endpoint.host {
        Host::Dns(_) => {
            assert_eq!(theirs["dnsOrIP"]["ip"], "<nil>", "{context}");
            return Some(Why::KgctlGarblesNames);
        }
        Host::Ip(address) => *address,
    };
    let printed: std::net::IpAddr = theirs["dnsOrIP"]["ip"].as_str().unwrap().parse().unwrap();
    assert_eq!((host, endpoint.port.get()), (printed.to_canonical(), port(theirs)), "{context}");
    None
}

fn port(endpoint: &Value) -> u16 {
    endpoint["port"].as_u64().unwrap().try_into().unwrap()
}

/// Compares ranges as sets; every range that only one side has, has a reason.
fn range_reasons(scenario: &Scenario, given: &Given, node: &str, printed: &Value) -> BTreeSet<Why> {
    let ours: BTreeSet<Cidr> = given.peers[node].allowed_ips.iter().copied().collect();
    let theirs: BTreeSet<Cidr> = cidrs(printed).into_iter().collect();
    let missing = theirs.difference(&ours).map(|it| missing(scenario, given, node, *it));
    let surplus = ours.difference(&theirs).map(|it| surplus(scenario, given, node, *it));
    let mut reasons: BTreeSet<Why> = missing.chain(surplus).collect();
    let is_masked = |text: &&str| text.parse::<Interface>().unwrap().is_network();
    if !texts(printed).iter().filter(|it| **it != "<nil>").all(is_masked) {
        reasons.insert(Why::HostBits);
    }
    reasons
}

/// Why kgctl has a range that we have not.
fn missing(scenario: &Scenario, given: &Given, node: &str, range: Cidr) -> Why {
    let others = || given.peers.iter().filter(|(name, _)| *name != node);
    let is_carried = || others().any(|(_, peer)| peer.allowed_ips.contains(&range));
    let stranger = |(_, peer): (&String, &Peer)| {
        let mut ranges = peer.allowed_ips.iter();
        ranges.any(|it| it.contains(range) && !scenario.cluster_wide().contains(it))
    };
    let mut endpoints =
        given.peers.values().filter_map(|it| it.endpoint.as_ref()).map(|it| it.host.clone());
    if range.family() != given.family {
        Why::FamilyOfTarget
    } else if scenario.cluster_wide().contains(&range) && is_carried() {
        Why::OnOneAnchor
    } else if range.is_host() && others().any(stranger) {
        Why::Contested
    } else if range.is_host() && endpoints.any(|it| it == Host::Ip(range.first())) {
        Why::EndpointInside
    } else {
        panic!("{} {node}: {range} is missing for no known reason", scenario.name())
    }
}

/// Why we have a range that kgctl has not.
fn surplus(scenario: &Scenario, given: &Given, node: &str, range: Cidr) -> Why {
    let theirs = scenario.segment_of(node).unwrap();
    let members: Vec<&Node> =
        texts(&theirs["hostnames"]).into_iter().filter_map(|it| scenario.node(it)).collect();
    let wireguard = scenario
        .node(node)
        .unwrap()
        .annotations
        .get(annotation::WIREGUARD_IP)
        .and_then(|it| it.parse::<Interface>().ok());
    let further = |member: &&Node| {
        let mut pods = member.pod_cidrs.iter().skip(1).filter_map(|it| it.parse().ok());
        let mut hosts = member.addresses.iter().filter_map(|it| it.address.parse().ok());
        pods.any(|it: Cidr| it == range) || hosts.any(|it| Cidr::host(it) == range)
    };
    let inhabited = given.peers.values().filter(|peer| {
        let mut ranges = peer.allowed_ips.iter();
        ranges.any(|it| *it != range && range.contains(*it))
    });
    if wireguard.is_some_and(|it| Cidr::host(it.address) == range) {
        Why::KgctlDropsWireguardAddress
    } else if members.iter().any(further) {
        Why::MoreThanKiloReads
    } else if given.declared.contains(&range) && 2 * inhabited.count() <= given.peers.len() {
        Why::ClusterWide
    } else {
        panic!("{} {node}: {range} is there for no known reason", scenario.name())
    }
}

/// Pod CIDRs, the WireGuard address, internal addresses, then what the anchor carries.
fn assert_our_order(scenario: &Scenario, node: &str, ours: &Peer) {
    let Some(segment) = scenario.segment_of(node) else {
        return;
    };
    let pods = cidrs(&segment["podCIDRs"]);
    let hosts: Vec<Cidr> = texts(&segment["privateIPs"])
        .into_iter()
        .map(|it| Cidr::host(it.parse().unwrap()))
        .collect();
    let wireguard = segment["wireguardIP"].as_str().and_then(|it| it.parse().ok()).map(Cidr::host);
    let rank = |range: &Cidr| match range {
        it if pods.contains(it) => 0,
        it if wireguard == Some(*it) => 1,
        it if hosts.contains(it) => 2,
        _ => 3,
    };
    let ranks: Vec<u8> = ours.allowed_ips.iter().map(rank).collect();
    assert!(ranks.is_sorted(), "{} {node}: {ours:?}", scenario.name());
}

/// Conversely, `verify` proves the output of `render` for every scenario, together with a cluster
/// of one node. A proof without any path would be an error too.
#[test]
fn what_is_rendered_from_every_scenario_holds() {
    for scenario in scenarios() {
        let report = verified(&scenario);
        let findings = report["findings"].as_array().unwrap().iter();
        // Some scenarios are about broken nodes.
        let findings = findings.filter(|it| it["rule"] != "unproved-nodes");
        // In some, all endpoints are private.
        let is_assumed = report["total"]["assumed"].as_u64() > Some(0);
        let findings = findings.filter(|it| !is_assumed || it["rule"] != "nothing-proved");
        let errors: Vec<&Value> = findings.filter(|it| it["severity"] == "error").collect();
        if scenario.name() == "location-ipv6-cluster" {
            // Its Kilo subnet is IPv4, so the kernel refuses the routes between its own nodes.
            assert!(!errors.is_empty());
            assert!(
                errors
                    .iter()
                    .all(|it| ["ambiguous", "return-fails"].iter().any(|rule| it["rule"] == *rule)),
                "{errors:#?}"
            );
            continue;
        }
        assert_eq!(errors, Vec::<&Value>::new(), "{}", scenario.name());
        assert!(report["total"]["declared"].as_u64() > Some(0), "{report:#}");
    }
}

/// What `verify` reports of a scenario.
fn verified(scenario: &Scenario) -> Value {
    let declared = scenario.declared();
    let range = free(scenario.family(), &declared);
    let [first, second] = range.parts(1)[..] else { panic!("{range} has no halves") };
    let target = json!({"name": "target", "allowedNetworks": strings(&[first, second])});
    let node = |offset: u128| Interface::new(first.address(offset).unwrap(), first.prefix_length());
    let endpoint = match range.family() {
        Family::V4 => "192.88.99.250:51820",
        Family::V6 => "[2001:db8:ffff::250]:51820",
    };
    let annotations = [
        (annotation::KEY, "dGhpcyBpcyBhIGtleSBvZiAzMiBieXRlcywgdHJ1bHk=".to_owned()),
        (annotation::WIREGUARD_IP, node(1).unwrap().to_string()),
        (annotation::INTERNAL_IP, node(2).unwrap().to_string()),
        (annotation::FORCE_ENDPOINT, endpoint.to_owned()),
        (annotation::GRANULARITY, "full".to_owned()),
    ];
    let beside = Node {
        name: "beside".to_owned(),
        pod_cidrs: vec![second.to_string()],
        // It can dial endpoints of either family.
        addresses: ["192.88.99.250", "2001:db8:ffff::250"]
            .map(|address| Address { address: address.to_owned(), kind: AddressKind::ExternalIP })
            .into(),
        annotations: annotations.into_iter().collect(),
        ..Node::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let mesh = mesh(scenario, &declared, &target);
    fs::write(folder.path().join("mesh.yaml"), mesh.to_string()).unwrap();
    fs::create_dir(folder.path().join("snapshots")).unwrap();
    for (cluster, nodes) in [("source", scenario.nodes.clone()), ("target", vec![beside])] {
        let snapshot = Snapshot::new(cluster.parse().unwrap(), nodes).unwrap();
        let path = folder.path().join(format!("snapshots/{cluster}.json"));
        fs::write(path, snapshot.to_json().unwrap()).unwrap();
    }
    let run = support::clustermesh(folder.path(), &["render", "--allow-empty", "*"]);
    assert_eq!(run.code, 0, "{}: {}", scenario.name(), run.stderr);
    let run = support::clustermesh(folder.path(), &["verify", "--output", "json"]);
    run.json()
}
