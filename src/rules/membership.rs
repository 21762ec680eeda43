//! Words for what a membership holds: which nodes and which of their ranges are left out, and why.

use std::collections::BTreeMap;

use super::command::{annotate_endpoint, command_name};
use super::endpoints::{INVALID_ENDPOINT, NO_ENDPOINT};
use super::identity::{
    DUPLICATE_ADDRESS, DUPLICATE_KEY, DUPLICATE_PEER_NAME, INVALID_NODE_NAME, INVALID_PUBLIC_KEY,
    NO_PUBLIC_KEY,
};
use super::kilo::{
    INVALID_WIREGUARD_IP, LEADER_LEFT_OUT, MIXED_GRANULARITY, NO_WIREGUARD_IP, NODE_NOT_READY,
};
use super::nodes::{CONTRADICTED, NODE_NOT_SELECTED, SILENT_CLUSTER};
use super::ranges::{
    ADDRESS_IN_POD_CIDR, INVALID_POD_CIDR, NO_POD_CIDR, OVERLAPPING_NODE_POD_CIDR,
    POD_CIDR_OUT_OF_RANGE, UNUSED_ADDRESS, UNUSED_POD_CIDR, WIREGUARD_IP_OUT_OF_RANGE,
};
use super::{Finding, Rule, bare};
use crate::diagnostic::{Cause, Label, Quoted, Severity};
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::membership::{
    Contradicted, Contradiction, ExcludedNode, ExcludedReason, Origin, Unready, WithheldRange,
    WithheldReason,
};
use crate::mesh::{EndpointSource, Networks, Range, State};
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::{Node, Snapshot};
use crate::text::listed;

mod reasons;

pub use reasons::words;
use reasons::{foreign, in_common};

/// Returns the findings about one cluster in one mesh, given whether it has Peers in any.
pub(super) fn findings(member: &Member, has_peers: bool) -> Vec<Finding> {
    let membership = &member.membership;
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(
        membership
            .contradictions
            .iter()
            .map(|it| contradiction(member, it)),
    );
    if membership.candidates.is_empty() && member.entry.state == State::Joined {
        findings.push(silent(member, has_peers));
    }
    findings.extend(not_selected(member));
    let is_selected = |it: &&ExcludedNode| it.reason != ExcludedReason::NotSelected;
    let excluded_nodes = membership.excluded.iter().filter(is_selected);
    let is_running = runs_on_most(member);
    findings.extend(excluded_nodes.map(|it| {
        let mut finding = excluded(member, it);
        if is_running && is_new(member, it) {
            // Kilo will soon run there.
            finding.severity = Severity::Notice;
            finding.help = None;
        }
        finding
    }));
    let is_undeclared = |it: &&WithheldRange| !is_of_undeclared_family(member, it);
    let withheld_ranges = membership.withheld.iter().filter(is_undeclared);
    findings.extend(withheld_ranges.map(|it| withheld(member, it)));
    let cluster = &member.entry.name;
    findings.extend(membership.dissenters.iter().map(|it| {
        let message = format!(
            "has granularity {}, but the cluster is rendered with {}",
            it.says, member.cluster.granularity
        );
        let finding = Finding::on_node(&MIXED_GRANULARITY, cluster, &it.node, message)
            .at(it.place.clone(), "");
        finding.with_cause(contradicted(member, |it| {
            matches!(it, Contradicted::Granularity(_))
        }))
    }));
    findings
}

/// Returns one finding about all nodes that the entry does not select.
fn not_selected(member: &Member) -> Option<Finding> {
    let excluded = member.membership.excluded.iter();
    let nodes: Vec<&ExcludedNode> = excluded
        .filter(|it| it.reason == ExcludedReason::NotSelected)
        .collect();
    let first = nodes.first()?;
    let names = listed(nodes.iter().map(|it| Quoted(&it.node).to_string()));
    let message = match nodes.len() {
        1 => format!("1 node is not selected by `nodeSelector`: {names}"),
        count => format!("{count} nodes are not selected by `nodeSelector`: {names}"),
    };
    let finding = Finding::on_cluster(&NODE_NOT_SELECTED, &member.entry.name, message);
    let selector = member.entry.place.key("nodeSelector");
    Some(finding.at(selector, "").at(first.place.key("name"), ""))
}

/// Returns whether a further pod CIDR is of a family in which the entry declares no range: people
/// then want only the other family, and a declaration would only lead to ranges that Kilo does not
/// route.
fn is_of_undeclared_family(member: &Member, withheld: &WithheldRange) -> bool {
    let Ok(cidr) = withheld.range.parse::<Cidr>() else {
        return false;
    };
    let pods = match &member.entry.networks {
        Networks::Typed { pods, .. } => pods,
        Networks::Flat { allowed } => allowed,
    };
    withheld.reason == WithheldReason::OutOfRange
        && pods
            .iter()
            .all(|range| range.cidr.family() != cidr.family())
}

/// Returns the finding about a cluster that no other cluster can reach, or none of this mesh if it has
/// Peers in another.
pub(super) fn silent(member: &Member, has_peers: bool) -> Finding {
    let membership = &member.membership;
    let why = match membership.excluded.len() {
        _ if !membership.candidates.is_empty() => {
            "no cluster accepts the ranges of its nodes".to_owned()
        }
        0 => "its snapshot has no nodes".to_owned(),
        1 => format!(
            "its only node is left out ({})",
            reasons_by_rule(&membership.excluded)
        ),
        nodes => format!(
            "all {nodes} nodes are left out ({})",
            reasons_by_rule(&membership.excluded)
        ),
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
    let has_key = |node: &ExcludedNode| {
        !matches!(
            node.reason,
            ExcludedReason::NoWireguardIp | ExcludedReason::NoPublicKey
        )
    };
    if !membership.excluded.iter().any(has_key) {
        finding.help = Some(format!(
            "check that Kilo runs in the cluster, then run `clustermesh snapshot {cluster}`"
        ));
    }
    finding.with_cause(contradicted(member, |_| true))
}

/// Returns the rules about the excluded nodes of a cluster, each with the number of these nodes.
fn reasons_by_rule(excluded: &[ExcludedNode]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in excluded {
        *counts.entry(rule_of(&node.reason).name).or_default() += 1;
    }
    let names: Vec<String> = match counts.len() {
        1 => counts.into_keys().map(str::to_owned).collect(),
        _ => counts
            .into_iter()
            .map(|(name, count)| format!("{count} × {name}"))
            .collect(),
    };
    names.join(", ")
}

/// Returns a contradiction as the cause of something else, if the cluster has one of that kind.
fn contradicted(member: &Member, is_meant: impl Fn(&Contradicted) -> bool) -> Option<Cause> {
    let mut found = member.membership.contradictions.iter();
    let is_found = found.any(|it| is_meant(&it.what));
    is_found.then(|| Cause {
        rule: &CONTRADICTED,
        cluster: Some(member.entry.name.to_string()),
        node: None,
    })
}

/// Returns what a node is left out for, where that is a finding of its own.
fn cause(member: &Member, reason: &ExcludedReason) -> Option<Cause> {
    match reason {
        ExcludedReason::LeaderExcluded(leader) => {
            let mut excluded = member.membership.excluded.iter();
            let leader = excluded.find(|it| it.node == *leader)?;
            Some(Cause {
                rule: rule_of(&leader.reason),
                cluster: Some(member.entry.name.to_string()),
                node: Some(leader.node.clone()),
            })
        }
        ExcludedReason::PodCidrOutOfRange { .. } => {
            contradicted(member, |it| matches!(it, Contradicted::PodRanges))
        }
        ExcludedReason::WireguardIpOutOfRange { .. } => {
            contradicted(member, |it| matches!(it, Contradicted::WireguardRange))
        }
        ExcludedReason::NotSelected => {
            contradicted(member, |it| matches!(it, Contradicted::NodeSelector))
        }
        _ => None,
    }
}

fn excluded(member: &Member, node: &ExcludedNode) -> Finding {
    let message = format!("left out: {}", words(&node.reason));
    let place = part(&node.reason, &node.place);
    let (rule, cluster) = (rule_of(&node.reason), &member.entry.name);
    let mut finding = Finding::on_node(rule, cluster, &node.node, message).at(place, "");
    if let Some((what, value)) = in_common(&node.reason) {
        finding = finding.with_alike(format!("left out: {what}"), Some(value));
    }
    finding.help = match node.reason {
        ExcludedReason::NoEndpoint(_) => Some(endpoint_help(member, node)),
        ExcludedReason::NoWireguardIp => {
            let help = wireguard_ip_help(member, node);
            help.or_else(|| Some(agent_help(member)))
        }
        ExcludedReason::NoPublicKey => Some(agent_help(member)),
        ExcludedReason::NoPodCidr => Some(format!(
            "start the controller manager with `--allocate-node-cidrs=true` and `--cluster-cidr`, \
             then run `clustermesh snapshot {}`",
            member.entry.name
        )),
        _ => None,
    };
    if let ExcludedReason::PodCidrTaken {
        cidr,
        other,
        node: winner,
    } = &node.reason
    {
        name_both(&mut finding, member, winner);
        // Of two equal ranges either may be wrong, and the node that is left out carries nothing.
        let wrong = if cidr == other { &node.node } else { winner };
        finding.help = Some(format!(
            "delete the node with the wrong pod CIDR, for example `kubectl delete node {}`, and let it \
             register again",
            command_name(wrong)
        ));
    }
    finding.with_cause(cause(member, &node.reason))
}

/// Adds the node with the other of two pod CIDRs that overlap.
fn name_both(finding: &mut Finding, member: &Member, other: &str) {
    let Some(node) = member.node(other) else {
        return;
    };
    finding.labels.push(Label {
        place: Snapshot::place(&member.file.source, node.position).key("podCIDRs"),
        text: "the other".to_owned(),
    });
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

/// Returns whether Kilo has not run on a node yet. If it runs on most nodes of the cluster, this is
/// normal: autoscalers add nodes all the time.
fn is_new(member: &Member, excluded: &ExcludedNode) -> bool {
    excluded.reason == ExcludedReason::NoWireguardIp
        && member.node(&excluded.node).is_some_and(|it| !has_run(it))
}

/// Returns what helps nodes on which Kilo has not run.
fn agent_help(member: &Member) -> String {
    let cluster = &member.entry.name;
    format!("check that the Kilo agent runs there, then run `clustermesh snapshot {cluster}`")
}

/// On bare metal, no node has an external address, and there are no annotations yet.
fn endpoint_help(member: &Member, node: &ExcludedNode) -> String {
    let sources = &member.entry.endpoint_from;
    let cluster = &member.entry.name;
    let annotate = annotate_endpoint("NODE");
    if node.kilo_has_endpoint && !sources.contains(&EndpointSource::Kilo) {
        return format!(
            "set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `{cluster}` if other clusters \
             can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or \
             annotate each node: `{annotate}`"
        );
    }
    let first = if sources.contains(&EndpointSource::Annotation) {
        String::new()
    } else {
        format!("add `Annotation` to `endpointFrom` of `{cluster}` and ")
    };
    format!(
        "{first}annotate each node with an address that other clusters can dial: `{annotate}`; if \
         the nodes are behind NAT, set `persistentKeepalive: 25` for `{cluster}` instead"
    )
}

/// An annotation that is empty was written: the agent runs, and takes itself for no leader.
fn wireguard_ip_help(member: &Member, node: &ExcludedNode) -> Option<String> {
    let key = annotation::WIREGUARD_IP;
    let text = member.node(&node.node)?.annotations.get(key)?;
    let granularity = member.cluster.granularity;
    text.is_empty().then(|| match granularity {
        Granularity::Location => {
            "check that Kilo has run for a minute and that its `--subnet` has a free address: the \
             annotation is empty although the node leads its location"
                .to_owned()
        }
        Granularity::Full | Granularity::Cross => format!(
            "check that Kilo runs with the granularity {granularity} and that its `--subnet` has a \
             free address: the annotation is empty"
        ),
    })
}

/// Returns the part of a node that is meant, else its name.
fn part(reason: &ExcludedReason, node: &Place) -> Place {
    let annotated = |key: &str| node.key("annotations").key(key);
    match reason {
        ExcludedReason::PodCidrInvalid { .. } | ExcludedReason::PodCidrOutOfRange { .. } => {
            node.key("podCIDRs").index(0)
        }
        ExcludedReason::NoPodCidr | ExcludedReason::PodCidrTaken { .. } => node.key("podCIDRs"),
        ExcludedReason::WireguardIpInvalid { .. }
        | ExcludedReason::WireguardIpOutOfRange { .. } => annotated(annotation::WIREGUARD_IP),
        ExcludedReason::PublicKeyInvalid { .. } | ExcludedReason::DuplicateKey(_) => {
            annotated(annotation::KEY)
        }
        ExcludedReason::EndpointInvalid {
            origin: Origin::Annotation(key),
            ..
        } => annotated(key),
        ExcludedReason::EndpointInvalid { .. } => node.key("addresses"),
        ExcludedReason::NotReady(Unready::Stale) => node.key("stale"),
        _ => node.key("name"),
    }
}

fn rule_of(reason: &ExcludedReason) -> &'static Rule {
    match reason {
        ExcludedReason::NoPodCidr => &NO_POD_CIDR,
        ExcludedReason::PodCidrInvalid { .. } => &INVALID_POD_CIDR,
        ExcludedReason::PodCidrOutOfRange { .. } => &POD_CIDR_OUT_OF_RANGE,
        ExcludedReason::NoWireguardIp => &NO_WIREGUARD_IP,
        ExcludedReason::WireguardIpInvalid { .. } => &INVALID_WIREGUARD_IP,
        ExcludedReason::WireguardIpOutOfRange { .. } => &WIREGUARD_IP_OUT_OF_RANGE,
        ExcludedReason::NoPublicKey => &NO_PUBLIC_KEY,
        ExcludedReason::PublicKeyInvalid { .. } => &INVALID_PUBLIC_KEY,
        ExcludedReason::EndpointInvalid { .. } => &INVALID_ENDPOINT,
        ExcludedReason::NoEndpoint(_) => &NO_ENDPOINT,
        ExcludedReason::NameInvalid(_) => &INVALID_NODE_NAME,
        ExcludedReason::DuplicateName(_) => &DUPLICATE_PEER_NAME,
        ExcludedReason::DuplicateKey(_) => &DUPLICATE_KEY,
        ExcludedReason::PodCidrTaken { .. } => &OVERLAPPING_NODE_POD_CIDR,
        ExcludedReason::NotReady(_) => &NODE_NOT_READY,
        ExcludedReason::LeaderExcluded(_) => &LEADER_LEFT_OUT,
        ExcludedReason::NotSelected => &NODE_NOT_SELECTED,
    }
}

fn withheld(member: &Member, withheld: &WithheldRange) -> Finding {
    let range = bare(&withheld.range);
    let (rule, why) = match &withheld.reason {
        WithheldReason::Invalid(error) => (&UNUSED_POD_CIDR, foreign(error)),
        WithheldReason::OutOfRange => (&UNUSED_POD_CIDR, "outside the declared ranges".to_owned()),
        WithheldReason::SecondOfFamily => (
            &UNUSED_POD_CIDR,
            "the node already has one of this address family".to_owned(),
        ),
        WithheldReason::SecondAddress => (
            &UNUSED_ADDRESS,
            "the node already has another internal address of this address family".to_owned(),
        ),
        WithheldReason::PodCidrTaken { other, node } => (
            &OVERLAPPING_NODE_POD_CIDR,
            format!("overlaps {other} of {}", Quoted(node)),
        ),
        WithheldReason::Taken { node } => (
            &DUPLICATE_ADDRESS,
            format!("{} has the same address", Quoted(node)),
        ),
        WithheldReason::InPodCidr { cidr, node } => (
            &ADDRESS_IN_POD_CIDR,
            format!("inside pod CIDR {cidr} of {}", Quoted(node)),
        ),
    };
    let message = format!("{range} left out: {why}");
    let finding = Finding::on_node(rule, &member.entry.name, &withheld.node, message)
        .at(withheld.place.clone(), "");
    finding.with_alike(format!("a range is left out: {why}"), Some(range.clone()))
}

fn contradiction(member: &Member, found: &Contradiction) -> Finding {
    let Contradiction {
        what,
        place,
        against,
        of,
    } = found;
    let (what, help) = contradicted_by(member, *what);
    let message = match (against, of) {
        (1, 1) => format!("the only node has {what}"),
        (2, 2) => format!("both nodes have {what}"),
        (against, of) if against == of => format!("all {of} nodes have {what}"),
        (against, of) => format!("{against} of {of} nodes have {what}"),
    };
    let mut finding = Finding::on_cluster(&CONTRADICTED, &member.entry.name, message);
    if member.membership.candidates.is_empty() && member.entry.state == State::Joined {
        // A person's line, and nothing of the cluster is left.
        finding.severity = Severity::Error;
        finding.is_final = true;
    }
    finding.labels.push(Label {
        place: place.clone(),
        text: "declared here".to_owned(),
    });
    finding.help(help)
}

/// Returns what nodes have in place of what was declared, and what to do about it.
fn contradicted_by(member: &Member, what: Contradicted) -> (String, String) {
    let cluster = &member.entry.name;
    let (pods, wireguard) = match &member.entry.networks {
        Networks::Typed {
            pods, wireguard, ..
        } => (
            ("podCIDRs", pods.as_slice()),
            ("wireguardCIDR", std::slice::from_ref(wireguard)),
        ),
        Networks::Flat { allowed } => {
            let field = ("allowedNetworks", allowed.as_slice());
            (field, field)
        }
    };
    let outside = |actual: Vec<String>, noun: &str, (field, declared): (&str, &[Range])| {
        let actual = listed(actual);
        let problem = if declared.is_empty() {
            format!("{noun}, but no range for them is declared: {actual}")
        } else {
            let declared = listed(declared.iter().map(|it| it.cidr.to_string()));
            format!("{noun} outside the declared {declared}: {actual}")
        };
        (
            problem,
            format!(
                "correct `{field}` of `{cluster}` in the mesh so that it contains these {noun}"
            ),
        )
    };
    let excluded = member.membership.excluded.iter().map(|it| &it.reason);
    match what {
        Contradicted::PodRanges => {
            let actual = excluded.filter_map(|it| match it {
                ExcludedReason::PodCidrOutOfRange { cidr } => Some(cidr.to_string()),
                _ => None,
            });
            outside(actual.collect(), "pod CIDRs", pods)
        }
        Contradicted::WireguardRange => {
            let actual = excluded.filter_map(|it| match it {
                ExcludedReason::WireguardIpOutOfRange { address } => Some(address.to_string()),
                _ => None,
            });
            outside(actual.collect(), "WireGuard addresses", wireguard)
        }
        Contradicted::Granularity(declared) => {
            let actual = member
                .membership
                .dissenters
                .first()
                .map(|it| it.says)
                .map_or_else(|| "another".to_owned(), |it| format!("`{it}`"));
            (
                format!("granularity {actual}, not the declared `{declared}`"),
                format!("correct `granularity` of `{cluster}` in the mesh"),
            )
        }
        Contradicted::NodeSelector => (
            "labels that `nodeSelector` does not select".to_owned(),
            format!(
                "correct `nodeSelector` of `{cluster}` in the mesh, or label the nodes and take a new \
                 snapshot"
            ),
        ),
    }
}
