//! Shared internal addresses: those that Kilo has for two nodes of a cluster, or for a node and a pod of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::SHARED_INTERNAL_IP;
use crate::diagnostic::Quoted;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::annotation;
use crate::membership::WithheldReason;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::place::Place;
use crate::rules::Finding;
use crate::rules::command::blank;
use crate::snapshot::Node;

/// Returns findings about nodes with the internal address of a node of their cluster before them, if they are usable or
/// Kilo counts them.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    fleet.first_memberships().flat_map(of_cluster).collect()
}

fn of_cluster(member: &Member) -> Vec<Finding> {
    let already_reported = already_reported(member);
    let mut first: BTreeMap<IpAddr, &Node> = BTreeMap::new();
    let mut found = Vec::new();
    let nodes = member.cluster.nodes.iter();
    let pods = nodes.flat_map(|it| it.kilo.pods().map(move |pods| (pods, it.node)));
    let pods = Prefixes::new(pods);
    let topology = &member.cluster.topology;
    for (id, ClusterNode { node, kilo, .. }) in member.cluster.nodes.numbered() {
        let is_counted = topology.nodes[id].segment.is_some();
        if !is_counted && !member.membership.usable.contains(&node.name) {
            continue;
        }
        let Some(address) = kilo.internal_address() else {
            continue;
        };
        let mut around = pods.holders(address).filter(|(_, it)| it.name != node.name);
        found.extend(
            around.next().map(|(pods, other)| in_pods(member, (address, node), (pods, other))),
        );
        match first.get(&address) {
            None => drop(first.insert(address, node)),
            Some(_)
                if already_reported.contains(&(&node.name, Cidr::host(address).to_string())) => {}
            Some(first) => found.push(finding(member, address, [node, first])),
        }
    }
    found
}

/// Reports a node with an address that another one had before it.
fn finding(member: &Member, address: IpAddr, [node, first]: [&Node; 2]) -> Finding {
    let whose = Quoted(&first.name);
    let message = format!("same internal address as {whose}: {address}");
    let cluster = &member.entry.name;
    Finding::on_node(&SHARED_INTERNAL_IP, cluster, &node.name, message)
        .at(place(member, node), "second here")
        .at(place(member, first), format!("of {whose}"))
        .resolved_by(&blank(annotation::FORCE_INTERNAL_IP), cluster, [&*node.name, &*first.name])
        .help(
            "annotate each node with its own address, such as \
             `kilo.squat.ai/force-internal-ip: 192.168.1.1/24`",
        )
}

/// Reports a node with an address among those of the pods of another node.
fn in_pods(
    member: &Member,
    (address, node): (IpAddr, &Node),
    (pods, other): (Cidr, &Node),
) -> Finding {
    let (cluster, whose) = (&member.entry.name, Quoted(&other.name));
    let message = format!("its internal address {address} is in {pods}, the pod CIDR of {whose}");
    Finding::on_node(&SHARED_INTERNAL_IP, cluster, &node.name, message)
        .at(place(member, node), "")
        .at(member.place(other).key("podCIDRs"), format!("of {whose}"))
        .resolved_by(&blank(annotation::FORCE_INTERNAL_IP), cluster, [&*node.name])
        .help(format!(
            "annotate the node with the address by which the others reach it, as \
             `{}: ADDRESS/LENGTH`, then run `clustermesh snapshot {cluster}`",
            annotation::FORCE_INTERNAL_IP
        ))
}

/// Returns the nodes and declared host routes that are reported already because another node has
/// them.
fn already_reported<'a>(member: &'a Member) -> BTreeSet<(&'a String, String)> {
    let withheld = member.membership.withheld.iter();
    let taken = withheld.filter(|it| matches!(it.reason, WithheldReason::Taken { .. }));
    taken.map(|it| (&it.node, it.range.clone())).collect()
}

/// Returns where the snapshot has the internal address that Kilo uses.
pub(super) fn place(member: &Member, node: &Node) -> Place {
    let annotations = member.place(node).key("annotations");
    let is_there = |key: &&str| node.annotations.contains_key(*key);
    let keys = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
    let key = keys.into_iter().find(is_there);
    annotations.key(key.unwrap_or(annotation::INTERNAL_IP))
}
