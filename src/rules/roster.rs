//! Words for what a roster holds: which nodes and which of their ranges are left out, and why.

use super::endpoints::{INVALID_ENDPOINT, NO_ENDPOINT};
use super::identity::{
    DUPLICATE_ADDRESS, DUPLICATE_KEY, DUPLICATE_PEER_NAME, INVALID_NODE_NAME, INVALID_PUBLIC_KEY,
    NO_PUBLIC_KEY,
};
use super::kilo::{
    INVALID_WIREGUARD_IP, LEADER_LEFT_OUT, MIXED_GRANULARITY, NO_WIREGUARD_IP, NODE_NOT_READY,
    command_name,
};
use super::nodes::{CONTRADICTED, NODE_NOT_SELECTED, SILENT_CLUSTER};
use super::ranges::{
    ADDRESS_IN_POD_CIDR, INVALID_POD_CIDR, NO_POD_CIDR, OVERLAPPING_NODE_POD_CIDR,
    POD_CIDR_OUT_OF_RANGE, UNUSED_ADDRESS, UNUSED_POD_CIDR, WIREGUARD_IP_OUT_OF_RANGE,
};
use super::{Finding, Rule, listed};
use crate::diagnostic::{Cause, Label, Quoted, Severity};
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::mesh::{EndpointSource, Networks};
use crate::net::Cidr;
use crate::place::Place;
use crate::roster::{
    Contradiction, Declared, LeftOut, LostRange, Origin, RangeReason, Reason, Unready,
};
use crate::snapshot::{Node, Snapshot};

mod reasons;

pub(super) use reasons::words;
use reasons::{foreign, in_common};

/// Returns what there is to tell about one cluster in one mesh, given whether it has Peers in any.
pub(super) fn findings(member: &Member, has_peers: bool) -> Vec<Finding> {
    let roster = &member.roster;
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(
        roster
            .contradictions
            .iter()
            .map(|it| contradiction(member, it)),
    );
    if roster.speakers.is_empty() {
        findings.push(silent(member, has_peers));
    }
    findings.extend(not_selected(member));
    let is_selected = |it: &&LeftOut| it.reason != Reason::NotSelected;
    let left_out_nodes = roster.left_out.iter().filter(is_selected);
    let is_running = runs_on_most(member);
    findings.extend(left_out_nodes.map(|it| {
        let mut finding = left_out(member, it);
        if is_running && is_new(member, it) {
            finding.severity = Severity::Notice;
        }
        finding
    }));
    let is_undeclared = |it: &&LostRange| !is_of_undeclared_family(member, it);
    let lost_ranges = roster.lost.iter().filter(is_undeclared);
    findings.extend(lost_ranges.map(|it| lost(member, it)));
    findings.extend(roster.dissenters.iter().map(|it| {
        let message = format!(
            "says granularity {}, the cluster is rendered as {}",
            it.says, member.cluster.granularity
        );
        let finding = on_node(&MIXED_GRANULARITY, member, &it.node, message, &it.place);
        finding.with_cause(contradicted(member, |it| {
            matches!(it, Declared::Granularity(_))
        }))
    }));
    findings
}

/// Returns one finding about all nodes that the entry does not select.
fn not_selected(member: &Member) -> Option<Finding> {
    let left_out = member.roster.left_out.iter();
    let nodes: Vec<&LeftOut> = left_out
        .filter(|it| it.reason == Reason::NotSelected)
        .collect();
    let first = nodes.first()?;
    let names = listed(nodes.iter().map(|it| Quoted(&it.node).to_string()));
    let message = match nodes.len() {
        1 => format!("1 node is not selected by nodeSelector: {names}"),
        count => format!("{count} nodes are not selected by nodeSelector: {names}"),
    };
    let finding = Finding::on_cluster(&NODE_NOT_SELECTED, &member.entry.name, message);
    let selector = member.entry.place.key("nodeSelector");
    Some(finding.at(selector, "").at(first.place.key("name"), ""))
}

/// Returns whether a further pod CIDR is of a family in which the entry declares no range: people
/// then want only the other family, and a declaration would only lead to ranges that Kilo does not
/// route.
fn is_of_undeclared_family(member: &Member, lost: &LostRange) -> bool {
    let Ok(cidr) = lost.range.parse::<Cidr>() else {
        return false;
    };
    let pods = match &member.entry.networks {
        Networks::Typed { pods, .. } => pods,
        Networks::Flat { allowed } => allowed,
    };
    lost.reason == RangeReason::OutOfRange
        && pods
            .iter()
            .all(|range| range.cidr.family() != cidr.family())
}

/// Returns the finding about a cluster that no other cluster can reach, or none of this mesh if it has
/// Peers in another.
pub(super) fn silent(member: &Member, has_peers: bool) -> Finding {
    let roster = &member.roster;
    let why = match roster.left_out.len() {
        _ if !roster.speakers.is_empty() => "no cluster takes what its nodes have".to_owned(),
        0 => "its snapshot has no node".to_owned(),
        1 => "its only node is left out".to_owned(),
        nodes => format!("all its {nodes} nodes are left out"),
    };
    let cluster = &member.entry.name;
    let message = if has_peers {
        format!(
            "no other cluster of mesh `{}` can reach it: {why}",
            member.mesh.name
        )
    } else {
        format!("no other cluster can reach it: {why}")
    };
    let mut finding = Finding::on_cluster(&SILENT_CLUSTER, cluster, message);
    let has_key =
        |node: &LeftOut| !matches!(node.reason, Reason::NoWireguardIp | Reason::NoPublicKey);
    if !roster.left_out.iter().any(has_key) {
        finding.help = Some(format!(
            "check that Kilo runs there, then run `clustermesh snapshot {cluster}`"
        ));
    }
    finding.with_cause(contradicted(member, |_| true))
}

/// Returns a contradiction as the cause of something else, if the cluster has one of that kind.
fn contradicted(member: &Member, is_meant: impl Fn(&Declared) -> bool) -> Option<Cause> {
    let mut found = member.roster.contradictions.iter();
    let is_found = found.any(|it| is_meant(&it.what));
    is_found.then(|| Cause {
        rule: &CONTRADICTED,
        cluster: Some(member.entry.name.to_string()),
        node: None,
    })
}

/// Returns what a node is left out for, where that is a finding of its own.
fn cause(member: &Member, reason: &Reason) -> Option<Cause> {
    match reason {
        Reason::LeaderLeftOut(leader) => {
            let mut left_out = member.roster.left_out.iter();
            let leader = left_out.find(|it| it.node == *leader)?;
            Some(Cause {
                rule: rule_of(&leader.reason),
                cluster: Some(member.entry.name.to_string()),
                node: Some(leader.node.clone()),
            })
        }
        Reason::PodCidrOutOfRange { .. } => {
            contradicted(member, |it| matches!(it, Declared::PodRanges))
        }
        Reason::WireguardIpOutOfRange { .. } => {
            contradicted(member, |it| matches!(it, Declared::WireguardRange))
        }
        Reason::NotSelected => contradicted(member, |it| matches!(it, Declared::NodeSelector)),
        _ => None,
    }
}

/// Returns a finding about a node of a cluster, at a place in its snapshot.
pub(super) fn on_node(
    rule: &'static Rule,
    member: &Member,
    node: &str,
    message: String,
    place: &Place,
) -> Finding {
    let mut finding = Finding::on_node(rule, &member.entry.name, node, message);
    finding.labels.push(Label {
        place: place.clone(),
        text: String::new(),
    });
    finding
}

fn left_out(member: &Member, node: &LeftOut) -> Finding {
    let message = format!("left out: {}", words(&node.reason));
    let place = part(&node.reason, &node.place);
    let mut finding = on_node(rule_of(&node.reason), member, &node.node, message, &place);
    if let Some((what, value)) = in_common(&node.reason) {
        finding = finding.with_alike(format!("left out: {what}"), Some(value));
    }
    finding.help = match node.reason {
        Reason::NoEndpoint(_) => endpoint_help(member, node),
        Reason::NoWireguardIp => wireguard_ip_help(member, node),
        _ => None,
    };
    if let Reason::PodCidrTaken { node: other, .. } = &node.reason {
        name_both(&mut finding, member, other);
    }
    finding.with_cause(cause(member, &node.reason))
}

/// Adds the node with the other of two pod CIDRs that overlap, and what cures it.
fn name_both(finding: &mut Finding, member: &Member, other: &str) {
    let Some(node) = member.node(other) else {
        return;
    };
    finding.labels.push(Label {
        place: Snapshot::place(&member.file.source, node.position).key("podCIDRs"),
        text: "the other".to_owned(),
    });
    finding.help = Some(format!(
        "find out which of the two nodes has the wrong pod CIDR; a pod CIDR cannot be changed, so \
         delete that node, `kubectl delete node {}` or the other, and let it register again",
        command_name(other)
    ));
}

/// Returns whether Kilo has written anything on a node.
fn has_run(node: &Node) -> bool {
    let mut keys = annotation::BY_AGENT.iter();
    keys.any(|key| node.annotations.contains_key(*key))
}

fn runs_on_most(member: &Member) -> bool {
    let nodes = &member.file.snapshot.nodes;
    nodes.len() < 2 * nodes.iter().filter(|node| has_run(node)).count()
}

/// Returns whether Kilo has not run on a node yet. If it runs on most nodes of the cluster, that is
/// no reason to worry: autoscalers add nodes all the time.
fn is_new(member: &Member, left_out: &LeftOut) -> bool {
    left_out.reason == Reason::NoWireguardIp
        && member.node(&left_out.node).is_some_and(|it| !has_run(it))
}

/// On bare metal no node has an external address, and nobody has annotated anything yet.
fn endpoint_help(member: &Member, node: &LeftOut) -> Option<String> {
    let asks_kilo = member.entry.endpoint_from.contains(&EndpointSource::Kilo);
    let cluster = &member.entry.name;
    (node.kilo_has_endpoint && !asks_kilo).then(|| {
        format!(
            "Kilo has an endpoint for these nodes; if other clusters can dial it, give `{cluster}` \
             `endpointFrom: [Annotation, ExternalIP, Kilo]`; if they are behind NAT, give it \
             `persistentKeepalive: 25`"
        )
    })
}

/// An annotation that is empty was written: the agent runs, and takes itself for no leader.
fn wireguard_ip_help(member: &Member, node: &LeftOut) -> Option<String> {
    let key = annotation::WIREGUARD_IP;
    let text = member.node(&node.node)?.annotations.get(key)?;
    let granularity = member.cluster.granularity;
    text.is_empty().then(|| match granularity {
        Granularity::Location => {
            "it leads its location, yet its Kilo wrote an empty one: has it run for a minute, and has \
             its `--subnet` an address left?"
                .to_owned()
        }
        Granularity::Full | Granularity::Cross => format!(
            "its Kilo wrote an empty one, as where it does not lead: is its `--mesh-granularity` that \
             of {granularity}, and has its `--subnet` an address left?"
        ),
    })
}

/// Returns which part of a node is meant; for want of it, its name.
fn part(reason: &Reason, node: &Place) -> Place {
    let annotated = |key: &str| node.key("annotations").key(key);
    match reason {
        Reason::PodCidrInvalid { .. } | Reason::PodCidrOutOfRange { .. } => {
            node.key("podCIDRs").index(0)
        }
        Reason::NoPodCidr | Reason::PodCidrTaken { .. } => node.key("podCIDRs"),
        Reason::WireguardIpInvalid { .. } | Reason::WireguardIpOutOfRange { .. } => {
            annotated(annotation::WIREGUARD_IP)
        }
        Reason::PublicKeyInvalid { .. } | Reason::DuplicateKey(_) => annotated(annotation::KEY),
        Reason::EndpointInvalid {
            origin: Origin::Annotation(key),
            ..
        } => annotated(key),
        Reason::EndpointInvalid { .. } => node.key("addresses"),
        Reason::NotReady(Unready::Stale) => node.key("stale"),
        _ => node.key("name"),
    }
}

fn rule_of(reason: &Reason) -> &'static Rule {
    match reason {
        Reason::NoPodCidr => &NO_POD_CIDR,
        Reason::PodCidrInvalid { .. } => &INVALID_POD_CIDR,
        Reason::PodCidrOutOfRange { .. } => &POD_CIDR_OUT_OF_RANGE,
        Reason::NoWireguardIp => &NO_WIREGUARD_IP,
        Reason::WireguardIpInvalid { .. } => &INVALID_WIREGUARD_IP,
        Reason::WireguardIpOutOfRange { .. } => &WIREGUARD_IP_OUT_OF_RANGE,
        Reason::NoPublicKey => &NO_PUBLIC_KEY,
        Reason::PublicKeyInvalid { .. } => &INVALID_PUBLIC_KEY,
        Reason::EndpointInvalid { .. } => &INVALID_ENDPOINT,
        Reason::NoEndpoint(_) => &NO_ENDPOINT,
        Reason::NameInvalid(_) => &INVALID_NODE_NAME,
        Reason::DuplicateName(_) => &DUPLICATE_PEER_NAME,
        Reason::DuplicateKey(_) => &DUPLICATE_KEY,
        Reason::PodCidrTaken { .. } => &OVERLAPPING_NODE_POD_CIDR,
        Reason::NotReady(_) => &NODE_NOT_READY,
        Reason::LeaderLeftOut(_) => &LEADER_LEFT_OUT,
        Reason::NotSelected => &NODE_NOT_SELECTED,
    }
}

fn lost(member: &Member, lost: &LostRange) -> Finding {
    let range = Quoted(&lost.range).to_string();
    let range = range.trim_matches('`');
    let (rule, why) = match &lost.reason {
        RangeReason::Invalid(error) => (&UNUSED_POD_CIDR, foreign(error)),
        RangeReason::OutOfRange => (&UNUSED_POD_CIDR, "in no declared range".to_owned()),
        RangeReason::SecondOfFamily => (
            &UNUSED_POD_CIDR,
            "the node has one of this family already".to_owned(),
        ),
        RangeReason::SecondAddress => (
            &UNUSED_ADDRESS,
            "the node has another internal address of this family".to_owned(),
        ),
        RangeReason::PodCidrTaken { other, node } => (
            &OVERLAPPING_NODE_POD_CIDR,
            format!("overlaps {other} of {}", Quoted(node)),
        ),
        RangeReason::Taken { node } => (
            &DUPLICATE_ADDRESS,
            format!("{} claims the same address", Quoted(node)),
        ),
        RangeReason::InPodCidr { cidr, node } => (
            &ADDRESS_IN_POD_CIDR,
            format!("lies in pod CIDR {cidr} of {}", Quoted(node)),
        ),
    };
    let message = format!("{range} left out: {why}");
    let finding = on_node(rule, member, &lost.node, message, &lost.place);
    finding.with_alike(
        format!("a range is left out: {why}"),
        Some(range.to_owned()),
    )
}

fn contradiction(member: &Member, found: &Contradiction) -> Finding {
    let Contradiction {
        what,
        place,
        against,
        of,
    } = found;
    let what = match what {
        Declared::PodRanges => "have their pod CIDR outside the declared ranges".to_owned(),
        Declared::WireguardRange => {
            "have their WireGuard address outside the declared ranges".to_owned()
        }
        Declared::Granularity(declared) => format!("say another granularity than {declared}"),
        Declared::NodeSelector => "are not selected".to_owned(),
    };
    let message = format!("{against} of {of} nodes {what}");
    let mut finding = Finding::on_cluster(&CONTRADICTED, &member.entry.name, message);
    if member.roster.speakers.is_empty() {
        // A person's line, and nothing of the cluster is left.
        finding.severity = Severity::Error;
        finding.is_final = true;
    }
    finding.labels.push(Label {
        place: place.clone(),
        text: "contradicted".to_owned(),
    });
    finding
}
