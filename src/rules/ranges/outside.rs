//! Internal addresses outside of the declared ranges: of a few nodes, unlike those of the others, or of all nodes, beside a
//! range that looks like their network.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::UNUSED_ADDRESS;
use crate::diagnostic::{FindingCause, Quoted};
use crate::document::nearest;
use crate::fleet::Member;
use crate::guard::are_most;
use crate::mesh::{Networks, Range};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::rules::{Finding, bare};

/// The largest number of ranges, and of nodes, that are compared by their texts.
const COMPARED: usize = 50;

/// The internal address of a node that Kilo uses.
type NodeAddress<'m> = (&'m str, IpAddr);

/// The nodes of a cluster by whether a declared range contains their internal addresses.
struct DeclaredAddresses<'m> {
    inside: Vec<NodeAddress<'m>>,
    outside: Vec<NodeAddress<'m>>,
}

impl<'m> DeclaredAddresses<'m> {
    /// Returns the nodes; nothing if other clusters do not get their addresses.
    fn new(member: &'m Member) -> Option<Self> {
        let declared = member.entry.networks.all();
        let all = Prefixes::union(declared.iter().map(|it| it.cidr));
        let nodes = member.cluster.nodes.iter().filter_map(|it| {
            let address = it.kilo.internal_address()?;
            Some((it.kilo.name.as_str(), address))
        });
        let (inside, outside) = nodes.partition(|it| all.contain(Cidr::host(it.1)));
        member.entry.advertise.node_addresses.then_some(Self { inside, outside })
    }

    /// Returns the few nodes that are outside, unlike the others.
    fn apart(&self) -> &[NodeAddress<'m>] {
        let all = self.inside.len() + self.outside.len();
        if are_most(self.inside.len(), all) { &self.outside } else { &[] }
    }
}

/// Returns findings about one cluster.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let Some(addresses) = DeclaredAddresses::new(member) else {
        return Vec::new();
    };
    let apart = addresses.apart().iter().map(|it| apart(member, *it));
    apart.chain(alike(member, &addresses)).collect()
}

/// Returns the findings about nodes whose addresses are outside, unlike those of most nodes of their cluster.
pub(in crate::rules) fn causes(member: &Member) -> Vec<(String, FindingCause)> {
    let addresses = DeclaredAddresses::new(member);
    let apart = addresses.iter().flat_map(DeclaredAddresses::apart).map(|(node, _)| {
        let cause = FindingCause::of(&UNUSED_ADDRESS, &member.entry.name);
        ((*node).to_owned(), FindingCause { node: Some((*node).to_owned()), ..cause })
    });
    apart.collect()
}

fn apart(member: &Member, (node, address): NodeAddress) -> Finding {
    let entry = member.entry;
    let message = format!(
        "its internal IP {address} is in no declared range, unlike those of most nodes: other clusters do not reach the node itself"
    );
    Finding::on_node(&UNUSED_ADDRESS, &entry.name, node, message)
        .at(member.node_place(node).map(|it| it.key("name")), "")
        .with_alike(
            "internal IP in no declared range, unlike those of most nodes",
            Some(address.to_string()),
        )
        .help(format!(
            "if the address is right, declare its network in the entry of `{}`; otherwise correct the address of the node",
            entry.name
        ))
}

/// Returns the finding about a range without a node, if its text looks like the network of the nodes, which are all outside.
fn alike(
    member: &Member,
    DeclaredAddresses { inside, outside }: &DeclaredAddresses,
) -> Option<Finding> {
    if !inside.is_empty() {
        return None;
    }
    let entry = member.entry;
    let declared: &[Range] = match &entry.networks {
        Networks::Typed { additional, .. } => additional,
        Networks::Flat { allowed } => allowed,
    };
    // Those of a flat list that have pods or tunnels are not of the network of the nodes.
    let is_used = |range: &Range| {
        member.cluster.nodes.iter().any(|it| {
            let mut pods = it.kilo.pod_cidr.iter();
            let wireguard = it.kilo.wireguard_ip().map(|it| it.address);
            pods.any(|it| range.cidr.overlaps(*it))
                || wireguard.is_some_and(|it| range.cidr.holds(it))
        })
    };
    let mut unused = declared.iter().take(COMPARED).filter(|it| !is_used(it));
    let (range, network) = unused.find_map(|it| Some((it, meant(it, outside)?)))?;
    let (first, _) = outside.first()?;
    let message = format!(
        "no node has its internal IP in {}, and those of all nodes, such as {}, are in no declared range, but in {network}",
        range.cidr,
        Quoted(bare(first).as_str())
    );
    let finding = Finding::on_cluster(&UNUSED_ADDRESS, &entry.name, message);
    Some(finding.at(range.place.clone(), "").help(format!(
        "if {} is a mistake, write {network}; otherwise declare {network} too if other clusters should reach the nodes",
        range.cidr
    )))
}

/// Returns the network of nodes, of the length of a range, that is spelled like it.
fn meant(range: &Range, nodes: &[NodeAddress]) -> Option<String> {
    let cidr = range.cidr;
    let length = cidr.prefix_length();
    let networks = nodes.iter().take(COMPARED);
    let networks = networks.filter(|it| it.1.is_ipv4() == cidr.first().is_ipv4());
    let networks: BTreeSet<String> = networks
        .filter_map(|it| Cidr::host(it.1).widened(length))
        .map(|it| it.to_string())
        .collect();
    nearest(&cidr.to_string(), networks.iter().map(String::as_str)).map(ToOwned::to_owned)
}
