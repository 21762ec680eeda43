//! One gate of a node: the decision about it, and the value that was decided on.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::{GateResult, WrittenPlace};
use crate::diagnostic::{Quoted, bare};
use crate::fleet::Member;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node::{annotation, listening};
use crate::kilo::node_checks;
use crate::kilo::segment::Segment;
use crate::kilo::topology::Leader;
use crate::membership::{ExcludedReason, Origin, Unready};
use crate::mesh::{State, WireguardAddresses};
use crate::net::Cidr;
use crate::place::Place;
use crate::results::findings::json::bare_place;
use crate::results::source_texts::SourceTexts;
use crate::rules::snapshots::STALE_NODE;
use crate::rules::{
    MIXED_GRANULARITY, excluded, place_of_exclusion, rule_of_exclusion, withheld_range,
};
use crate::text::{count, list, listed};

/// A gate, and the decision about the node.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeGate {
    /// The owner of the gate.
    pub(super) of: GateOwner,
    /// The name of the gate.
    #[schemars(example = &"endpoint")]
    pub(super) name: &'static str,
    /// The decision.
    pub(super) result: GateResult,
    /// The value that decides, or the reason.
    value: String,
    /// The rule that reports the reason, if the node does not pass.
    #[schemars(with = "Option<&str>", example = &"missing-endpoint")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    /// The places of the value: in the snapshot, and the line of the mesh that it is compared with.
    places: Vec<WrittenPlace>,
}

/// The owner of a gate.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GateOwner {
    /// The entry of the cluster in the mesh.
    Mesh,
    /// Kilo in the cluster of the node.
    Kilo,
}

impl GateOwner {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::Kilo => "Kilo",
        }
    }
}

impl NodeGate {
    fn new(of: GateOwner, name: &'static str, result: GateResult, value: String) -> Self {
        Self { of, name, result, value, rule: None, places: Vec::new() }
    }

    /// Returns a gate that asks for a value, given that or the reason why the node does not pass.
    fn of_check(
        of: GateOwner,
        name: &'static str,
        checked: Result<String, &ExcludedReason>,
    ) -> Self {
        match checked {
            Ok(value) => Self::new(of, name, GateResult::Passed, value),
            Err(reason) => Self {
                rule: Some(rule_of_exclusion(reason).name()),
                ..Self::new(of, name, GateResult::Failed, excluded(reason))
            },
        }
    }

    fn not_needed(of: GateOwner, name: &'static str, why: impl Into<String>) -> Self {
        Self::new(of, name, GateResult::NotNeeded, why.into())
    }

    /// Returns the value with its rule and its places, for people.
    pub(super) fn shown(&self) -> String {
        let rule = self.rule.map(|it| format!(" [{it}]")).unwrap_or_default();
        let places = self.places.iter().map(WrittenPlace::shown);
        let places = list(places);
        let places = if places.is_empty() { places } else { format!(" ({places})") };
        format!("{}{rule}{places}", self.value)
    }
}

/// A node whose gates are read.
pub(super) struct GateReader<'r> {
    member: &'r Member<'r>,
    id: NodeId,
    node: &'r ClusterNode<'r>,
    place: Place,
    files: &'r dyn SourceTexts,
}

impl<'r> GateReader<'r> {
    pub(super) fn new(member: &'r Member<'r>, id: NodeId, files: &'r dyn SourceTexts) -> Self {
        let node = &member.cluster.nodes[id];
        Self { member, id, node, place: member.place(node.node), files }
    }

    /// Returns all gates, in the order in which they are asked.
    pub(super) fn gates(&self) -> Vec<NodeGate> {
        let gates = [
            self.state(),
            self.links(),
            self.selector(),
            self.heartbeat(),
            self.key(),
            self.kilo_endpoint(),
            self.granularity(),
            self.leader(),
            self.pod_cidr(),
            self.wireguard_ip(),
            self.endpoint(),
            self.identity(),
        ];
        gates.into_iter().chain(self.withheld()).collect()
    }

    fn at(&self, mut gate: NodeGate, places: impl IntoIterator<Item = Place>) -> NodeGate {
        let places = places.into_iter();
        gate.places.extend(places.map(|it| bare_place(&it, "", self.files)));
        gate
    }

    fn annotated(&self, key: &str) -> Place {
        self.place.key("annotations").key(key)
    }

    /// Returns the reason why the node is left out, if it is.
    fn excluded(&self) -> Option<&'r ExcludedReason> {
        let mut excluded = self.member.membership.excluded.iter();
        excluded.find(|it| it.node == self.node.node.name).map(|it| &it.reason)
    }

    fn state(&self) -> NodeGate {
        let entry = self.member.entry;
        let result = GateResult::of(entry.state == State::Joined);
        let gate = NodeGate::new(GateOwner::Mesh, "state", result, format!("{:?}", entry.state));
        self.at(gate, [entry.field("state")])
    }

    fn links(&self) -> NodeGate {
        let targets: Vec<_> = self.member.targets().collect();
        let mut value = match targets.len() {
            0 => "no cluster exchanges Peers with it".to_owned(),
            _ => listed(targets.iter()),
        };
        let own = &self.member.entry.name;
        let refused = self.member.mesh.refused.all().filter(|it| it.by == *own || it.other == *own);
        let (others, places): (BTreeSet<_>, Vec<_>) =
            refused.map(|it| (if it.by == *own { it.other } else { it.by }, it.place)).unzip();
        if !others.is_empty() {
            let others = listed(others);
            value = format!("{value}; not {others}, as a policy refuses the link");
        }
        let gate =
            NodeGate::new(GateOwner::Mesh, "links", GateResult::of(!targets.is_empty()), value);
        self.at(gate, places)
    }

    fn selector(&self) -> NodeGate {
        let selector = &self.member.entry.selector;
        if selector.is_everything() {
            return NodeGate::not_needed(GateOwner::Mesh, "nodeSelector", "all nodes are selected");
        }
        let labels = &self.node.node.labels;
        let labels = selector.keys().map(|key| match labels.get(key) {
            Some(value) => format!("label {key}: {}", Quoted(value)),
            None => format!("no label {key}"),
        });
        let value = format!("{}, node: {}", list(selector.conditions()), list(labels));
        let not_selected = ExcludedReason::NotSelected;
        let is_selected = selector.matches(&self.node.node.labels);
        let checked = if is_selected { Ok(value.clone()) } else { Err(&not_selected) };
        let gate = NodeGate::of_check(GateOwner::Mesh, "nodeSelector", checked);
        let gate = NodeGate { value, ..gate };
        self.at(gate, [self.place.key("labels"), self.member.entry.field("nodeSelector")])
    }

    /// Returns why the gates of a running agent do not apply, if none has ever written a key on the node.
    fn without_agent(&self) -> Option<&'static str> {
        let has_key = self.node.node.annotations.get(annotation::KEY).is_some();
        (!has_key).then_some("no Kilo agent has written a key on the node")
    }

    fn heartbeat(&self) -> NodeGate {
        const NAME: &str = "heartbeat";
        let kilo = &self.node.kilo;
        if let Some(why) = self.without_agent() {
            return NodeGate::not_needed(GateOwner::Kilo, NAME, why);
        }
        let stale = ExcludedReason::NotReady(Unready::Stale);
        let (checked, mark) = match () {
            () if kilo.stale => (Err(&stale), Some("stale")),
            () if kilo.lost_lead => (Err(&stale), Some("lostLead")),
            () if kilo.carried_over => (
                Ok("the agent is away, and its values are those of an earlier snapshot".to_owned()),
                Some("carriedOver"),
            ),
            () => (Ok("the agent sends heartbeats".to_owned()), None),
        };
        let mut gate = NodeGate::of_check(GateOwner::Kilo, NAME, checked);
        if self.excluded().is_none() {
            gate.rule = gate.rule.map(|_| STALE_NODE.name());
        }
        self.at(gate, mark.map(|it| self.place.key(it)))
    }

    fn kilo_endpoint(&self) -> NodeGate {
        let none = ExcludedReason::NotReady(Unready::NoEndpoint);
        let found = listening(self.node.node);
        let (annotation, checked) = match &found {
            Some((key, endpoint)) => (*key, Ok(format!("{key}: {endpoint}"))),
            None => (annotation::ENDPOINT, Err(&none)),
        };
        let gate = NodeGate::of_check(GateOwner::Kilo, "Kilo endpoint", checked);
        self.at(gate, found.is_some().then(|| self.annotated(annotation)))
    }

    fn granularity(&self) -> NodeGate {
        let rendered = self.member.cluster.granularity;
        let mut dissenters = self.member.membership.dissenters.iter();
        let dissents = dissenters.any(|it| it.node == self.node.node.name);
        let reported = self.node.kilo.granularity;
        let value = match reported {
            Some(reported) if dissents => {
                format!("{reported}, but the cluster is rendered with {rendered}")
            }
            Some(reported) => reported.to_string(),
            None => format!("not reported; the cluster is rendered with {rendered}"),
        };
        let result = GateResult::of(!dissents);
        let gate = NodeGate {
            rule: dissents.then(|| MIXED_GRANULARITY.name()),
            ..NodeGate::new(GateOwner::Kilo, "granularity", result, value)
        };
        let place = reported.map(|_| self.annotated(annotation::GRANULARITY));
        self.at(gate, place)
    }

    /// Returns the gate of the location: the tunnel of its leader carries the addresses of all its nodes.
    fn leader(&self) -> NodeGate {
        const NAME: &str = "leader";
        let cluster = &self.member.cluster;
        if let Some(why) = self.without_agent() {
            return NodeGate::not_needed(GateOwner::Kilo, NAME, why);
        }
        let Some(segment) = self.segment() else {
            let why = "Kilo does not count the node, so it is in no location";
            return NodeGate::not_needed(GateOwner::Kilo, NAME, why);
        };
        if let Some(reason @ ExcludedReason::LeaderExcluded(_)) = self.excluded() {
            return NodeGate::of_check(GateOwner::Kilo, NAME, Err(reason));
        }
        let topology = &cluster.topology;
        let formed = topology.nodes[self.id].segment.map(|it| topology.segments[it].leader);
        let leader = bare(&cluster.nodes[segment.leader].node.name);
        let value = match segment.members.len() {
            1 => "the node leads itself".to_owned(),
            nodes => match segment.key.strip_prefix("location:") {
                // All nodes without the label are in one location.
                Some("") => format!("{leader} leads {} without a location", count(nodes, "node")),
                name => {
                    let name = bare(name.unwrap_or(&segment.key));
                    format!("{leader} leads {} of location {name}", count(nodes, "node"))
                }
            },
        };
        if matches!(formed, Some(Leader::Ambiguous(_))) {
            let value = format!("uncertain: {value}");
            return NodeGate::new(GateOwner::Kilo, NAME, GateResult::Failed, value);
        }
        let gate = NodeGate::new(GateOwner::Kilo, NAME, GateResult::Passed, value);
        let label = &self.member.entry.topology_label;
        let node = self.node.node;
        let place = match (node.annotations.get(annotation::LOCATION), node.labels.get(label)) {
            _ if segment.members.len() == 1 => None,
            (Some(_), _) => Some(self.annotated(annotation::LOCATION)),
            (None, Some(_)) => Some(self.place.key("labels").key(label)),
            (None, None) => None,
        };
        self.at(gate, place)
    }

    /// Returns the segment of the node for other clusters; none if Kilo leaves the node out of its location.
    fn segment(&self) -> Option<&'r Segment> {
        let mut segments = self.member.cluster.segments.formed.iter();
        segments.find(|it| it.members.contains(&self.id))
    }

    /// Returns why the gates of leaders do not apply, if the node leads no location.
    fn not_leading(&self) -> Option<String> {
        let Some(segment) = self.segment() else {
            return Some("the node is in no location".to_owned());
        };
        let leader = &self.member.cluster.nodes[segment.leader].node.name;
        (segment.leader != self.id).then(|| format!("{} leads the location", bare(leader)))
    }

    fn pod_cidr(&self) -> NodeGate {
        let pods = self.node.checked.pods.as_ref();
        let declared = pods.ok().and_then(|it| self.member.declaration(*it.used.first()?));
        let checked = pods.map(|it| list(&it.used));
        let gate = NodeGate::of_check(GateOwner::Mesh, "pod CIDR", checked);
        let networks = self.member.entry.pod_ranges();
        let line = declared.or(networks.first()).map(|it| it.place.clone());
        self.at(gate, [self.place.key("podCIDRs")].into_iter().chain(line))
    }

    fn wireguard_ip(&self) -> NodeGate {
        const NAME: &str = "WireGuard IP";
        if self.member.entry.advertise.wireguard == WireguardAddresses::None {
            let why = "`wireguardAddresses: None`";
            return NodeGate::not_needed(GateOwner::Mesh, NAME, why);
        }
        if let Some(why) = self.not_leading() {
            return NodeGate::not_needed(GateOwner::Mesh, NAME, why);
        }
        let checked = self.node.checked.wireguard.as_ref();
        let line = checked.ok().and_then(|it| self.member.declaration(Cidr::host(*it)));
        let checked = checked.map(|it| format!("{}: {it}", annotation::WIREGUARD_IP));
        let gate = NodeGate::of_check(GateOwner::Mesh, NAME, checked);
        let line = line.map(|it| it.place.clone());
        self.at(gate, [self.annotated(annotation::WIREGUARD_IP)].into_iter().chain(line))
    }

    /// Returns the gate of the key. Kilo counts a node with any key, and the Peer of a leader needs one that works.
    fn key(&self) -> NodeGate {
        let is_read = self.not_leading().is_some() && self.node.kilo.key.is_some();
        let text = self.node.node.annotations.get(annotation::KEY).unwrap_or_default();
        let value = format!("{}: {}", annotation::KEY, bare(text));
        let checked = if is_read { Ok(value) } else { self.node.checked.key().map(|_| value) };
        let gate = NodeGate::of_check(GateOwner::Kilo, "key", checked);
        self.at(gate, [self.annotated(annotation::KEY)])
    }

    fn endpoint(&self) -> NodeGate {
        const NAME: &str = "endpoint";
        if let Some(why) = self.not_leading() {
            return NodeGate::not_needed(GateOwner::Mesh, NAME, why);
        }
        let entry = self.member.entry;
        let dialled = node_checks::dialled(entry, &self.node.checked);
        let (checked, place) = match &dialled {
            Ok(Some((endpoint, Origin::Annotation(key)))) => {
                (Ok(format!("{key}: {endpoint}")), Some(self.annotated(key)))
            }
            Ok(Some((endpoint, origin))) => {
                (Ok(format!("{endpoint} ({origin:?})")), Some(self.place.key("addresses")))
            }
            Ok(None) => (Ok("none: the node is behind NAT".to_owned()), None),
            Err(reason) => (Err(reason), Some(place_of_exclusion(reason, &self.place))),
        };
        let field = match &dialled {
            Ok(None) => "persistentKeepalive",
            _ => "endpointFrom",
        };
        let gate = NodeGate::of_check(GateOwner::Mesh, NAME, checked);
        self.at(gate, place.into_iter().chain([entry.field(field)]))
    }

    /// Returns the gate of what only one node of a cluster may have.
    fn identity(&self) -> NodeGate {
        const NAME: &str = "unique";
        match self.excluded() {
            Some(
                reason @ (ExcludedReason::NameInvalid(_)
                | ExcludedReason::DuplicateName(_)
                | ExcludedReason::DuplicateKey(_)
                | ExcludedReason::PodCidrTaken { .. }),
            ) => self.at(
                NodeGate::of_check(GateOwner::Mesh, NAME, Err(reason)),
                [place_of_exclusion(reason, &self.place)],
            ),
            Some(_) => {
                let why = "not asked, because the node is left out";
                NodeGate::not_needed(GateOwner::Mesh, NAME, why)
            }
            None => {
                let value = "no other node has its name, key or pod CIDR".to_owned();
                NodeGate::new(GateOwner::Mesh, NAME, GateResult::Passed, value)
            }
        }
    }

    /// Returns the ranges that no cluster gets although it gets the node.
    fn withheld(&self) -> impl Iterator<Item = NodeGate> {
        let withheld = self.member.membership.withheld.iter();
        let own = withheld.filter(|it| it.node == self.node.node.name);
        own.map(|it| {
            let finding = withheld_range(self.member, it);
            NodeGate {
                rule: Some(finding.rule.name()),
                ..NodeGate::new(
                    GateOwner::Mesh,
                    "range",
                    GateResult::Failed,
                    finding.message.shown().to_owned(),
                )
            }
        })
    }
}
