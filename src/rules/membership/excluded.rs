//! Words for nodes that are left out.

use std::collections::BTreeSet;

use super::contradiction::{contradicted_by, label_correction};
use super::reasons::{in_common, words};
use crate::diagnostic::{FindingCause, MetadataChange, Quoted};
use crate::document::nearest;
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::membership::{
    Contradicted, EndpointProblem, ExcludedNode, ExcludedReason, Origin, PodOverlap, Unready,
};
use crate::mesh::{DEFAULT_TOPOLOGY_LABEL, EndpointSource, Entry, Networks};
use crate::net::{Cidr, private_network};
use crate::place::Place;
use crate::rules::command::{annotate, annotate_endpoint, command_name, run};
use crate::rules::endpoints::{INVALID_ENDPOINT, NO_ENDPOINT};
use crate::rules::identity::{
    DUPLICATE_KEY, DUPLICATE_PEER_NAME, INVALID_NODE_NAME, INVALID_PUBLIC_KEY, NO_PUBLIC_KEY,
};
use crate::rules::kilo::{
    INVALID_WIREGUARD_IP, LEADER_LEFT_OUT, NO_WIREGUARD_IP, NODE_NOT_READY, unlocated_leader,
};
use crate::rules::nodes::{NODE_NOT_SELECTED, contradicted};
use crate::rules::ranges::{
    INVALID_POD_CIDR, NO_POD_CIDR, OVERLAPPING_NODE_POD_CIDR, POD_CIDR_OUT_OF_RANGE,
    WIREGUARD_IP_OUT_OF_RANGE,
};
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::wireguard::Endpoint;

/// Returns what a node is left out for, where that is a finding of its own.
pub(super) fn cause(member: &Member, reason: &ExcludedReason) -> Option<FindingCause> {
    match reason {
        ExcludedReason::LeaderExcluded(leader) => {
            let mut excluded = member.membership.excluded.iter();
            let leader = excluded.find(|it| it.node == *leader)?;
            Some(FindingCause {
                node: Some(leader.node.clone()),
                ..FindingCause::of(rule_of(&leader.reason), &member.entry.name)
            })
        }
        ExcludedReason::PodCidrOutOfRange { .. }
        | ExcludedReason::WireguardIpOutOfRange { .. }
        | ExcludedReason::NotSelected => contradicted(member, |it| of_line(*it, reason)),
        // If agents form locations, only leaders have one.
        ExcludedReason::NoWireguardIp => {
            let of_entry = contradicted(member, |it| {
                matches!(it, Contradicted::Granularity(_) | Contradicted::TopologyLabel)
            });
            of_entry.or_else(|| unlocated_leader(member))
        }
        _ => None,
    }
}

/// Returns the finding about one node that is left out, with the help of its line if that is wrong. To correct a line, all nodes
/// are looked at.
pub fn excluded_by_line(member: &Member, node: &ExcludedNode) -> Finding {
    let mut lines = member.membership.contradictions.iter().map(|it| it.what);
    let mut finding = excluded(member, node);
    if let Some(line) = lines.find(|it| of_line(*it, &node.reason)) {
        finding.help = Some(contradicted_by(member, line).1);
    }
    finding
}

/// Returns whether a node is left out for a line that most nodes contradict.
pub(super) fn of_line(line: Contradicted, reason: &ExcludedReason) -> bool {
    matches!(
        (line, reason),
        (Contradicted::PodRanges, ExcludedReason::PodCidrOutOfRange { .. })
            | (Contradicted::WireguardRange, ExcludedReason::WireguardIpOutOfRange { .. })
            | (Contradicted::NodeSelector, ExcludedReason::NotSelected)
    )
}

/// Returns the finding about a node that is left out.
pub(in crate::rules) fn excluded(member: &Member, node: &ExcludedNode) -> Finding {
    let message = format!("left out: {}", words(&node.reason));
    let place = part(&node.reason, &node.place);
    let (rule, cluster) = (rule_of(&node.reason), &member.entry.name);
    let mut finding = Finding::on_node(rule, cluster, &node.node, message).at(place, "");
    if let Some((what, value)) = in_common(&node.reason) {
        finding = finding.with_alike(format!("left out: {what}"), Some(value));
    }
    finding.help = help(member, node);
    if let Some(change) = endpoint_change(member, &node.reason) {
        finding = finding.resolved_by(&change, cluster, [&*node.node]);
    }
    if let ExcludedReason::NoEndpoint(_) = &node.reason {
        finding = finding.at(member.entry.default_of("endpointFrom"), "the default");
    }
    if let ExcludedReason::PodCidrTaken { node: winner, .. } = &node.reason {
        finding = finding.at(pod_cidrs(member, winner), "the other");
    }
    finding.with_cause(cause(member, &node.reason))
}

/// Returns the nodes that have no WireGuard address because the declared label makes more locations than another one, which
/// fits the addresses that Kilo gave.
pub(super) fn split_nodes<'m>(member: &'m Member) -> BTreeSet<&'m str> {
    let empty = |it: &Node| it.annotations.get(annotation::WIREGUARD_IP).is_some_and(str::is_empty);
    let is_split = |it: &&'m ExcludedNode| {
        it.reason == ExcludedReason::NoWireguardIp && member.node(&it.node).is_some_and(empty)
    };
    let is_meant = member.cluster.granularity == Granularity::Location
        && member.entry.topology_label != DEFAULT_TOPOLOGY_LABEL;
    let excluded = member.membership.excluded.iter().filter(|it| is_meant && is_split(it));
    let split: BTreeSet<&str> = excluded.map(|it| &*it.node).collect();
    if split.is_empty() || label_correction(&member.cluster).is_none() {
        return BTreeSet::new();
    }
    split
}

/// Returns the finding about nodes that lead because of a label that makes too many locations, if there is one.
pub(in crate::rules) fn split_locations(member: &Member) -> Option<FindingCause> {
    let are_any = !split_nodes(member).is_empty();
    are_any.then(|| FindingCause::of(&NO_WIREGUARD_IP, &member.entry.name))
}

/// Returns what to do about an excluded node; nothing if its line is wrong, and not the node.
fn help(member: &Member, node: &ExcludedNode) -> Option<String> {
    let mut contradictions = member.membership.contradictions.iter();
    if contradictions.any(|it| of_line(it.what, &node.reason)) {
        return None;
    }
    match &node.reason {
        ExcludedReason::NoEndpoint(_) => Some(endpoint_help(member, node)),
        ExcludedReason::PodCidrTaken { node: winner, .. } => {
            Some(pod_cidr_help(member, [&node.node, winner]))
        }
        ExcludedReason::NoWireguardIp => {
            let help = wireguard_ip_help(member, node);
            help.or_else(|| Some(agent_help(member)))
        }
        ExcludedReason::NoPublicKey
        | ExcludedReason::PublicKeyInvalid { .. }
        | ExcludedReason::WireguardIpInvalid { .. }
        | ExcludedReason::NotReady(Unready::Stale) => Some(agent_help(member)),
        ExcludedReason::DuplicateKey(_) => Some(format!(
            "on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run \
             `clustermesh snapshot {}`",
            member.entry.name
        )),
        ExcludedReason::NameInvalid(_) => Some(format!(
            "no API server accepts this name, so the snapshot was edited: run `clustermesh snapshot {}`",
            member.entry.name
        )),
        ExcludedReason::NoPodCidr => Some(format!(
            "let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, \
             then run `clustermesh snapshot {}`",
            member.entry.name
        )),
        ExcludedReason::PodCidrOutOfRange { cidr } => Some(undeclared_help(member, node, *cidr)),
        ExcludedReason::WireguardIpOutOfRange { .. } => Some(format!(
            "start its Kilo agent with the `--subnet` of the other nodes of `{0}`, which the mesh declares, then run \
             `clustermesh snapshot {0}`",
            member.entry.name
        )),
        ExcludedReason::EndpointInvalid {
            origin: Origin::Annotation(_),
            error: EndpointProblem::UndeclaredName,
            ..
        } => Some(format!(
            "add its domain to `endpointDomains` of `{}`, or annotate the node with an IP address",
            member.entry.name
        )),
        ExcludedReason::EndpointInvalid { origin: Origin::Annotation(_), .. } => {
            let change = endpoint_change(member, &node.reason)?;
            let command = annotate(member.node(&node.node)?, change);
            Some(run(&command, &member.entry.name))
        }
        _ => None,
    }
}

/// Returns the finding about a pod CIDR that shares addresses with another one, although Kilo routes both.
pub(super) fn overlap(member: &Member, overlap: &PodOverlap) -> Finding {
    let (rule, cluster) = (&OVERLAPPING_NODE_POD_CIDR, &member.entry.name);
    let consequence = match &overlap.excluded {
        Some(node) => {
            format!("{} is left out, but Kilo routes both", Quoted(node))
        }
        None => "the leader of their location reaches the pods of only one of them".to_owned(),
    };
    let message = format!(
        "pod CIDR {} overlaps {} of {}: {consequence}",
        overlap.cidr,
        overlap.other,
        Quoted(&overlap.other_node),
    );
    Finding::on_node(rule, cluster, &overlap.node, message)
        .at(pod_cidrs(member, &overlap.node), "")
        .at(pod_cidrs(member, &overlap.other_node), "the other")
        .help(pod_cidr_help(member, [&overlap.node, &overlap.other_node]))
}

/// Returns where the snapshot has the pod CIDRs of a node.
fn pod_cidrs(member: &Member, node: &str) -> Option<Place> {
    Some(member.node_place(node)?.key("podCIDRs"))
}

/// Returns how to find the node of two that has a wrong pod CIDR. No snapshot shows which of them it is.
fn pod_cidr_help(member: &Member, nodes: [&str; 2]) -> String {
    let [one, other] = nodes.map(command_name);
    format!(
        "find out which of the two has the wrong pod CIDR, with `kubectl get node {one} {other} -o \
         custom-columns=NAME:.metadata.name,CIDRS:.spec.podCIDRs,CREATED:.metadata.creationTimestamp`; let that node \
         register again, then run `clustermesh snapshot {}`",
        member.entry.name
    )
}

/// Returns what helps a node whose pod CIDR is not declared.
fn undeclared_help(member: &Member, node: &ExcludedNode, cidr: Cidr) -> String {
    let cluster = &member.entry.name;
    let show = format!("`kubectl get node {} -o yaml`", command_name(&node.node));
    let is_taken = |it: &&Entry| it.networks.all().iter().any(|range| range.cidr.overlaps(cidr));
    let mut others = member.mesh.entries.iter().filter(|it| it.name != *cluster);
    if let Some(other) = others.find(is_taken) {
        return format!(
            "look at the node with {show} and let it register again, because `{}` declares these addresses; then run \
             `clustermesh snapshot {cluster}`",
            other.name
        );
    }
    let field = match member.entry.networks {
        Networks::Typed { .. } => "podCIDRs",
        Networks::Flat { .. } => "allowedNetworks",
    };
    format!(
        "if `{cluster}` uses this range for pods, add it to `{field}` of the entry; otherwise look at the node with \
         {show}, let it register again, and run `clustermesh snapshot {cluster}`"
    )
}

/// Returns the change that gives a node an endpoint that can be dialled, if it lacks one.
fn endpoint_change(member: &Member, reason: &ExcludedReason) -> Option<MetadataChange> {
    let key = match reason {
        ExcludedReason::NoEndpoint(_) => annotation::CLUSTERMESH_ENDPOINT,
        ExcludedReason::EndpointInvalid { origin: Origin::Annotation(key), .. } => match *key {
            // The agent writes this one itself, from its address or that which a person forces.
            annotation::ENDPOINT => annotation::FORCE_ENDPOINT,
            key => key,
        },
        _ => return None,
    };
    let form = format!("ADDRESS:{}", member.entry.port);
    Some(MetadataChange::annotation(key, form).open())
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
    // Nodes that lack what the others have are often not meant for other clusters.
    let is_apart = member.entry.selector.is_everything()
        && member.membership.candidates.iter().any(|it| it.endpoint.is_some());
    let unselected = if let Some(correction) = location_correction(member, node) {
        format!("{correction}; otherwise ")
    } else if is_apart {
        format!(
            "if other clusters should not reach such nodes, leave them out with `nodeSelector` of `{cluster}`; otherwise "
        )
    } else {
        String::new()
    };
    // Other clusters do not dial a private address by chance.
    let is_private = member.node(&node.node).is_some_and(|it| {
        let endpoint = it.annotations.get(annotation::ENDPOINT);
        let endpoint = endpoint.and_then(|it| it.parse::<Endpoint>().ok());
        endpoint.and_then(|it| it.address()).is_some_and(|it| private_network(it).is_some())
    });
    if node.kilo_has_endpoint && !is_private && !sources.contains(&EndpointSource::Kilo) {
        return format!(
            "{unselected}set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `{cluster}` if other clusters \
             can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or \
             annotate each node: `{annotate}`, then run `clustermesh snapshot {cluster}`"
        );
    }
    let first = if sources.contains(&EndpointSource::Annotation) {
        String::new()
    } else {
        format!("add `Annotation` to `endpointFrom` of `{cluster}` and ")
    };
    format!(
        "{unselected}{first}annotate each node with an address that other clusters can dial: `{annotate}`, then run \
         `clustermesh snapshot {cluster}`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `{cluster}` instead"
    )
}

/// An annotation that is empty was written: the agent runs, and takes itself for no leader.
fn wireguard_ip_help(member: &Member, node: &ExcludedNode) -> Option<String> {
    let key = annotation::WIREGUARD_IP;
    let text = member.node(&node.node)?.annotations.get(key)?;
    let granularity = member.cluster.granularity;
    text.is_empty().then(|| match granularity {
        Granularity::Location => {
            let check = format!(
                "run `clustermesh snapshot {}` again in a minute, as a node that leads its location since a moment ago gets \
                 its address then, and check that Kilo's `--subnet` has a free address",
                member.entry.name
            );
            let correction = label_correction(&member.cluster);
            match correction.or_else(|| location_correction(member, node)) {
                Some(correction) => format!("{correction}; otherwise {check}"),
                None if by_annotation(member, node) => check,
                None => format!(
                    "if Kilo runs with another `--topology-label` than {}, set `topologyLabel` of `{}` to it; otherwise {check}",
                    member.entry.topology_label, member.entry.name
                ),
            }
        }
        Granularity::Full | Granularity::Cross => format!(
            "check that Kilo runs with the granularity {granularity} and that its `--subnet` has a \
             free address: the annotation is empty"
        ),
    })
}

/// Returns whether a node has its location from its annotation, which wins over any label.
fn by_annotation(member: &Member, node: &ExcludedNode) -> bool {
    let node = member.node(&node.node);
    node.is_some_and(|it| it.annotations.contains_key(annotation::LOCATION))
}

/// Returns what corrects the location of a node without others, if that is spelled like the location of others.
fn location_correction(member: &Member, excluded: &ExcludedNode) -> Option<String> {
    let nodes = &member.cluster.nodes;
    let own = nodes.iter().find(|it| it.node.name == excluded.node)?;
    if member.cluster.granularity == Granularity::Full {
        return None;
    }
    let of_others = nodes.iter().filter(|it| it.node.name != own.node.name);
    let mut of_others: Vec<&str> = of_others.map(|it| it.kilo.location.as_str()).collect();
    of_others.retain(|it| !it.is_empty());
    if own.kilo.location.is_empty() || of_others.contains(&own.kilo.location.as_str()) {
        return None;
    }
    let meant = nearest(&own.kilo.location, of_others)?;
    let part = if by_annotation(member, excluded) {
        format!("annotation {}", annotation::LOCATION)
    } else {
        format!("label {}", member.entry.topology_label)
    };
    Some(format!(
        "if its location {}, which only this node has, should be {}, correct its {part}, then run `clustermesh snapshot {}`",
        Quoted(&own.kilo.location),
        Quoted(meant),
        member.entry.name
    ))
}

/// Returns the part of a node that is the reason for which it is left out, else its name.
pub fn part(reason: &ExcludedReason, node: &Place) -> Place {
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
        ExcludedReason::EndpointInvalid { origin: Origin::Annotation(key), .. } => annotated(key),
        ExcludedReason::EndpointInvalid { .. } => node.key("addresses"),
        ExcludedReason::NotReady(Unready::Stale) => node.key("stale"),
        _ => node.key("name"),
    }
}

/// Returns the rule that reports the reason for which a node is left out.
pub fn rule_of(reason: &ExcludedReason) -> &'static Rule {
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
