//! Shared internal addresses: those that Kilo has for two nodes of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::annotation;
use crate::membership::WithheldReason;
use crate::net::Cidr;
use crate::place::Place;
use crate::snapshot::{Node, Snapshot};

/// A usable node with the internal address of one before it.
pub(super) struct SharedInternalIp<'f> {
    /// Its cluster.
    pub(super) member: &'f Member<'f>,
    /// The address.
    pub(super) address: IpAddr,
    /// The node.
    pub(super) node: &'f Node,
    /// The first node with the address.
    pub(super) first: &'f Node,
}

/// Finds the internal addresses that two nodes of a cluster have.
pub(super) fn shared<'f>(fleet: &'f Fleet<'f>) -> Vec<SharedInternalIp<'f>> {
    fleet
        .clusters()
        .filter_map(|cluster| fleet.memberships(cluster).next())
        .flat_map(of_cluster)
        .collect()
}

fn of_cluster<'f>(member: &'f Member<'f>) -> Vec<SharedInternalIp<'f>> {
    let already_reported = already_reported(member);
    let mut first: BTreeMap<IpAddr, &Node> = BTreeMap::new();
    let mut found = Vec::new();
    for ClusterNode { node, kilo, .. } in &member.cluster.nodes {
        if !member.membership.usable.contains(&node.name) {
            continue;
        }
        let Some(address) = kilo.internal_address() else {
            continue;
        };
        match first.get(&address) {
            None => drop(first.insert(address, node)),
            Some(_)
                if already_reported.contains(&(&node.name, Cidr::host(address).to_string())) => {}
            Some(first) => found.push(SharedInternalIp {
                member,
                address,
                node,
                first,
            }),
        }
    }
    found
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
    let annotations = Snapshot::place(&member.file.source, node.position).key("annotations");
    let is_there = |key: &&str| node.annotations.contains_key(*key);
    let keys = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
    let key = keys.into_iter().find(is_there);
    annotations.key(key.unwrap_or(annotation::INTERNAL_IP))
}
