//! Networks of nodes: what a cluster's nodes can reach by themselves, and shall not reach through a
//! tunnel (`kilo.md` §2.5).

use std::collections::BTreeMap;

use super::{CAPTURED_NETWORK, label};
use crate::fleet::{Fleet, Member};
use crate::kilo::node::{InternalIp, KiloNode, annotation};
use crate::name::ClusterName;
use crate::net::{Cidr, Cover, Family};
use crate::place::Place;
use crate::rules::plan::count;
use crate::rules::{Finding, bare};
use crate::snapshot::{Node, Snapshot};

/// A node's network, and where the node says so.
struct Network {
    cidr: Cidr,
    node: String,
    place: Place,
}

/// Nodes of a target whose network meets one range of a source.
struct Captured<'n> {
    first: &'n Network,
    nodes: usize,
}

/// Returns what there is to tell about ranges that take a network away from nodes that are in it.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    let networks: BTreeMap<&ClusterName, Vec<Network>> = fleet
        .clusters()
        .filter_map(|cluster| Some((cluster, networks(fleet.memberships(cluster).next()?))))
        .collect();
    let mut findings = Vec::new();
    for source in fleet.members() {
        let given: Cover<()> = source.given().map(|range| (range, ())).collect();
        for target in source.targets() {
            let mut captured: BTreeMap<Cidr, Captured> = BTreeMap::new();
            for network in networks.get(target).into_iter().flatten() {
                if let Some((range, ())) = given.meeting(network.cidr) {
                    let captured = captured.entry(range).or_insert(Captured {
                        first: network,
                        nodes: 0,
                    });
                    captured.nodes += 1;
                }
            }
            let told = captured.iter();
            findings.extend(told.map(|(range, it)| finding(source, target, *range, it)));
        }
    }
    findings
}

/// Returns the networks of all nodes of a cluster that have one.
fn networks(member: &Member) -> Vec<Network> {
    let nodes = member.file.snapshot.nodes.iter();
    nodes.filter_map(|node| network(member, node)).collect()
}

/// Returns the network in which a node has its internal address; where that is too wide to be
/// believed of one network, the address alone.
fn network(member: &Member, node: &Node) -> Option<Network> {
    let kilo = KiloNode::read(node, &member.entry.topology_label);
    let InternalIp::Known(address) = kilo.internal_ip else {
        return None;
    };
    let narrowest = |cidr: &Cidr| match cidr.family() {
        Family::V4 => 16 <= cidr.prefix_length(),
        Family::V6 => 48 <= cidr.prefix_length(),
    };
    let keys = [annotation::FORCE_INTERNAL_IP, annotation::INTERNAL_IP];
    let mut keys = keys
        .into_iter()
        .filter(|key| node.annotations.contains_key(*key));
    Some(Network {
        cidr: kilo
            .lan
            .filter(narrowest)
            .unwrap_or_else(|| Cidr::host(address)),
        node: bare(&node.name),
        place: Snapshot::place(&member.file.source, node.position)
            .key("annotations")
            .key(keys.next()?),
    })
}

fn finding(source: &Member, target: &ClusterName, range: Cidr, captured: &Captured) -> Finding {
    let Network { cidr, node, place } = captured.first;
    let nodes = match captured.nodes {
        1 => String::new(),
        nodes => format!(" (and {})", count(nodes - 1, "more node")),
    };
    let message = format!(
        "{range} meets {cidr}, where {target}/{node} is{nodes}: {target} would send what is meant for \
         its own network into a tunnel"
    );
    let mut finding = Finding::on_cluster(&CAPTURED_NETWORK, &source.entry.name, message);
    let declared = source.entry.networks.all();
    let declared = declared.iter().find(|it| it.cidr.contains(range));
    finding
        .labels
        .extend(declared.map(|it| label(it.place.clone(), "declared here")));
    finding
        .labels
        .push(label(place.clone(), format!("of {target}/{node}")));
    finding.help = Some(format!(
        "leave what `{target}` has of its own out of the ranges of `{}`, or give one of the two \
         networks another range",
        source.entry.name
    ));
    finding
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::told;

    const EAST: &str = "e pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full \
                        external=198.18.0.1 internal=192.168.7.1 internal-ip=192.168.7.1/24";

    /// Returns what is told where `east` declares this too, and a node of `west` has this.
    fn of(additional: &str, says: &str) -> String {
        let ranges = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24";
        let fields = format!("{ranges}, additionalCIDRs: [{additional}]");
        let west = format!(
            "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2 {says}"
        );
        told(
            super::findings,
            &[("east", &fields, EAST), ("west", "", &west)],
        )
    }

    #[test]
    fn a_range_on_the_network_of_nodes_is_told() {
        let same = of("192.168.1.0/24", "internal-ip=192.168.1.9/24");
        insta::assert_snapshot!(same, @"
        warning[captured-network] east: 192.168.1.0/24 meets 192.168.1.0/24, where west/w is: west would send what is meant for its own network into a tunnel
          mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
          west.json#/nodes/0/annotations/kilo.squat.ai~1internal-ip of west/w
          help: leave what `west` has of its own out of the ranges of `east`, or give one of the two networks another range
        ");
        let inside = of("192.168.1.128/25", "internal-ip=192.168.1.9/24");
        assert!(
            inside.contains("192.168.1.128/25 meets 192.168.1.0/24"),
            "{inside}"
        );
        let around = of("192.168.0.0/20", "internal-ip=192.168.1.9/24");
        assert!(
            around.contains("192.168.0.0/20 meets 192.168.1.0/24"),
            "{around}"
        );
        let host = of("192.168.1.77/32", "internal-ip=192.168.1.9/24");
        assert!(host.contains("192.168.1.77/32 meets"), "{host}");
        let forced = of(
            "192.168.1.0/24",
            "force-internal-ip=192.168.1.9/32 internal-ip=10.9.9.9/24",
        );
        assert!(
            forced.contains("192.168.1.0/24 meets 192.168.1.9/32"),
            "{forced}"
        );
    }

    #[test]
    fn networks_elsewhere_are_quiet_and_those_too_wide_are_not_believed() {
        assert_eq!(of("192.168.2.0/24", "internal-ip=192.168.1.9/24"), "");
        assert_eq!(of("10.9.0.0/16", "internal-ip=10.8.0.1/8"), "");
        assert!(of("10.9.0.0/16", "internal-ip=10.9.0.1/8").contains("meets 10.9.0.1/32"));
        assert_eq!(of("192.168.1.0/24", "internal-ip=-"), "");
        assert_eq!(of("192.168.1.0/24", ""), "");
    }

    #[test]
    fn many_nodes_are_told_once() {
        let second = "internal-ip=192.168.1.9/24\nx pod=10.2.2.0/24 wg=10.102.0.2/24 key=C \
                      granularity=full external=198.18.0.3 internal-ip=192.168.1.10/24";
        let told = of("192.168.1.0/24", second);
        assert_eq!(told.matches("captured-network").count(), 1);
        assert!(told.contains("(and 1 more node)"), "{told}");
    }
}
