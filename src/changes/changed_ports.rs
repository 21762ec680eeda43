//! Ports: the endpoints that clusters dial in one version only. A firewall that lets through what the old version needs may
//! stop what the new one needs.

use std::collections::BTreeMap;

use super::Versions;
use crate::agent::fabric::{Fabric, NodeRef};
use crate::wireguard::Endpoint;

/// The endpoints that clusters dial in one of two versions only.
#[derive(Clone, Debug, Default)]
pub struct ChangedPorts {
    /// Those that they dial in the new version.
    pub opened: Vec<DialledPort>,
    /// Those that they dialled in the old version.
    pub closed: Vec<DialledPort>,
}

/// A UDP endpoint that other clusters dial.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct DialledPort {
    /// Its node as `CLUSTER/NODE`, as the node calls itself, or its host; none if no node has the key of the Peer.
    pub owner: Option<String>,
    /// The address or DNS name, and the port.
    pub endpoint: Endpoint,
}

/// The endpoints of a version, each with the first node that has its key.
type EndpointOwners<'f> = BTreeMap<&'f Endpoint, Option<NodeRef>>;

impl ChangedPorts {
    pub(super) fn find(fabrics: Versions<&Fabric, &Fabric>) -> Self {
        let (before, after) = (owners(fabrics.before), owners(fabrics.after));
        Self {
            opened: without(&after, &before, fabrics.after),
            closed: without(&before, &after, fabrics.before),
        }
    }
}

fn owners<'f>(fabric: &'f Fabric) -> EndpointOwners<'f> {
    fabric
        .dialled_endpoints()
        .map(|(endpoint, holders)| (endpoint, holders.first().copied()))
        .collect()
}

/// Returns the endpoints of one version that the other one lacks, by their nodes.
fn without(version: &EndpointOwners, other: &EndpointOwners, fabric: &Fabric) -> Vec<DialledPort> {
    let lacking = version.iter().filter(|it| !other.contains_key(it.0));
    let ports = lacking.map(|(&endpoint, owner)| DialledPort {
        owner: owner.map(|it| fabric.name(it)),
        endpoint: endpoint.clone(),
    });
    let mut ports: Vec<DialledPort> = ports.collect();
    ports.sort();
    ports
}
