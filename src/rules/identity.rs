//! Has every node an identity of its own?

use super::{Finding, bare};
use crate::diagnostic::Quoted;
use crate::fleet::{Claimant, Fleet};
use crate::kilo::node::annotation;
use crate::plan::Plan;
use captured_endpoint::CapturedEndpoint;
use cloned_key::ClonedKey;
use shared_endpoint::SharedEndpoint;
use shared_internal_ip::{SharedInternalIp, place};
use shared_nodes::SharedNodes;

mod captured_endpoint;
mod cloned_key;
mod shared_endpoint;
mod shared_internal_ip;
mod shared_nodes;

rules! {
    "identity" about Plan;
    NO_PUBLIC_KEY = "missing-public-key" Warning "NodeNoPublicKey";
    INVALID_PUBLIC_KEY = "invalid-public-key" Warning;
    DUPLICATE_KEY = "duplicate-key" Warning;
    KEY_IN_TWO_CLUSTERS = "key-in-two-clusters" Warning;
    KEY_OF_TARGET_NODE = "key-of-target-node" Warning;
    CLONED_KEY = "cloned-key" Warning;
    INVALID_NODE_NAME = "invalid-node-name" Warning;
    DUPLICATE_PEER_NAME = "duplicate-peer-name" Warning;
    DUPLICATE_ADDRESS = "duplicate-address" Warning "WGIPDuplicate";
    SHARED_INTERNAL_IP = "shared-internal-ip" Warning;
    SHARED_ENDPOINT = "shared-endpoint" Warning;
    CAPTURED_ENDPOINT = "captured-endpoint" Warning;
    NODE_IN_TWO_CLUSTERS = "node-in-two-clusters" Warning;
}

/// Returns findings about identities, except those from the plan.
pub(super) fn findings(fleet: &Fleet, plan: Option<&Plan>) -> Vec<Finding> {
    let nodes = shared_nodes::shared(fleet);
    let keys = cloned_key::cloned(fleet, plan, &nodes);
    let endpoints = shared_endpoint::shared(fleet, &nodes);
    let addresses = shared_internal_ip::shared(fleet);
    let captured = captured_endpoint::captured(fleet);
    nodes
        .iter()
        .filter_map(node_in_two_clusters)
        .chain(keys.iter().map(cloned_key))
        .chain(endpoints.iter().filter_map(shared_endpoint))
        .chain(addresses.iter().map(shared_internal_ip))
        .chain(captured.iter().map(captured_endpoint))
        .collect()
}

fn node_in_two_clusters(shared: &SharedNodes) -> Option<Finding> {
    let SharedNodes {
        cluster,
        before,
        of,
        nodes,
        places: [again, first],
    } = shared;
    let node = Quoted(nodes.first()?);
    let message = match (nodes.len(), of) {
        (1, _) => format!("node {node} has the UID of a node of `{before}`"),
        (some, of) => {
            format!("{some} of {of} nodes have UIDs of nodes of `{before}`, such as {node}")
        }
    };
    let finding = Finding::on_cluster(&NODE_IN_TWO_CLUSTERS, cluster, message)
        .at(again.key("uid"), format!("in `{cluster}`"))
        .at(first.key("uid"), format!("in `{before}`"))
        .help(format!(
            "check the contexts of `{cluster}` and `{before}`: both probably lead to the same cluster"
        ));
    Some(finding)
}

fn cloned_key(cloned: &ClonedKey) -> Finding {
    let ClonedKey { claimant, other } = cloned;
    let whose = format!("{}/{}", other.cluster, bare(other.node));
    let message = format!("same public key as {whose}");
    let key = |it: &Claimant| it.place.key("annotations").key(annotation::KEY);
    Finding::on_node(&CLONED_KEY, claimant.cluster, claimant.node, message)
        .at(key(claimant), "second here")
        .at(key(other), format!("of {whose}"))
        .help("delete `/var/lib/kilo/key` on the cloned machine, and restart its Kilo pod")
}

fn shared_endpoint(shared: &SharedEndpoint) -> Option<Finding> {
    let SharedEndpoint { again, first } = shared;
    let (cluster, node) = first.who();
    let whose = format!("{cluster}/{}", bare(node));
    let endpoint = again.candidate.endpoint.as_ref()?;
    let message = format!("same endpoint as {whose}: {endpoint}");
    let (cluster, node) = (&again.member.entry.name, again.who().1);
    let finding = Finding::on_node(&SHARED_ENDPOINT, cluster, node, message)
        .at(again.place(), "second here")
        .at(first.place(), format!("of {whose}"))
        .help(
            "give each node its own port: annotate each with `kilo.squat.ai/force-endpoint: \
             ADDRESS:PORT`, and forward these ports",
        );
    Some(finding)
}

fn shared_internal_ip(shared: &SharedInternalIp) -> Finding {
    let SharedInternalIp {
        member,
        address,
        node,
        first,
    } = shared;
    let whose = Quoted(&first.name);
    let message = format!("same internal address as {whose}: {address}");
    let cluster = &member.entry.name;
    Finding::on_node(&SHARED_INTERNAL_IP, cluster, &node.name, message)
        .at(place(member, node), "second here")
        .at(place(member, first), format!("of {whose}"))
        .help(
            "annotate each node with its own address, such as \
             `kilo.squat.ai/force-internal-ip: 192.168.1.1/24`",
        )
}

fn captured_endpoint(captured: &CapturedEndpoint) -> Finding {
    let CapturedEndpoint {
        member,
        node,
        address,
        source,
        candidate,
    } = captured;
    let cluster = &member.entry.name;
    let whose = format!("{}/{}", source.entry.name, bare(candidate.leader.as_str()));
    let message = format!(
        "internal address {address} is the endpoint of {whose}: Kilo on the other nodes of {cluster} \
         routes packets for {whose} to this node"
    );
    Finding::on_node(&CAPTURED_ENDPOINT, cluster, &node.node.name, message)
        .at(place(member, node.node), "")
        .at(source.endpoint_place(candidate), format!("of {whose}"))
        .help(
            "annotate the node with its own address, such as \
             `kilo.squat.ai/force-internal-ip: 192.168.1.1/24`",
        )
}

#[cfg(test)]
mod tests;
