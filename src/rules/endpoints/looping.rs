//! Loops: packets of a tunnel that would have to go through that tunnel (`kilo.md` §2.6).

use std::net::IpAddr;

use super::{Dialled, LOOPING_ENDPOINT};
use crate::diagnostic::Label;
use crate::fleet::{Fleet, Member};
use crate::name::ClusterName;
use crate::net::{Cidr, Cover};
use crate::place::Place;
use crate::rules::roster::on_node;
use crate::rules::{Finding, listed};
use crate::wireguard::{Endpoint, Host};

/// An address to which some cluster sends the packets of a tunnel.
struct Outside<'f> {
    node: &'f str,
    endpoint: Endpoint,
    address: IpAddr,
    place: Place,
    /// Whether other clusters do.
    by_others: bool,
    /// Whether the nodes of its own cluster do.
    by_own: bool,
}

/// Returns what there is to tell about endpoints that lie in ranges of Peers.
pub(super) fn findings(fleet: &Fleet, members: &[&Member]) -> Vec<Finding> {
    let owners: Vec<(&Member, Cover<()>)> = members
        .iter()
        .map(|it| (*it, it.given().map(|range| (range, ())).collect()))
        .collect();
    let ranges = members.iter().flat_map(|it| it.given());
    let all: Cover<()> = ranges.map(|range| (range, ())).collect();
    let mut findings = Vec::new();
    for source in members {
        // Most endpoints lie in nobody's ranges, and need not be held against each cluster's.
        let outside = outside(source).into_iter();
        for outside in outside.filter(|it| all.holder(it.address).is_some()) {
            for (owner, ranges) in &owners {
                let Some((range, ())) = ranges.holder(outside.address) else {
                    continue;
                };
                let routes = |target: &&ClusterName| {
                    let family = fleet.family(target);
                    family.is_none_or(|family| family == range.family())
                };
                let mut sufferers = sufferers(&outside, source, owner);
                sufferers.retain(routes);
                if !sufferers.is_empty() {
                    findings.push(looping(&outside, source, (owner, range), &sufferers));
                }
            }
        }
    }
    findings
}

/// Returns where packets of tunnels to a cluster's nodes are sent: to what the mesh finds, and among
/// themselves to what Kilo finds.
fn outside<'f>(member: &'f Member<'f>) -> Vec<Outside<'f>> {
    let mut found: Vec<Outside> = Vec::new();
    let is_alone = member.roster.speakers.len() < 2;
    for dialled in Dialled::of(member) {
        let node = dialled.speaker.leader.as_str();
        let (key, kilo) = dialled.of_kilo().filter(|_| !is_alone).unzip();
        let kilo = kilo.and_then(|it: Endpoint| Some((address(&it)?, it)));
        let is_one = kilo.as_ref().map(|it| it.0) == dialled.address();
        found.extend(dialled.address().map(|address| Outside {
            node,
            endpoint: dialled.endpoint.clone(),
            address,
            place: dialled.place(),
            by_others: true,
            by_own: is_one,
        }));
        let apart = kilo.filter(|_| !is_one).zip(key);
        found.extend(apart.map(|((address, endpoint), key)| Outside {
            node,
            endpoint,
            address,
            place: dialled.speaker.place.key("annotations").key(key),
            by_others: false,
            by_own: true,
        }));
    }
    found
}

fn address(endpoint: &Endpoint) -> Option<IpAddr> {
    match endpoint.host {
        Host::Ip(address) => Some(address),
        Host::Dns(_) => None,
    }
}

/// Returns the clusters that send packets to the address and have the range in a Peer.
fn sufferers<'f>(
    outside: &Outside,
    source: &Member<'f>,
    owner: &Member<'f>,
) -> Vec<&'f ClusterName> {
    let own = &source.entry.name;
    let has_range: Vec<&ClusterName> = owner.targets().collect();
    let others = source
        .targets()
        .filter(|it| outside.by_others && has_range.contains(it));
    let itself = has_range
        .iter()
        .copied()
        .filter(|it| outside.by_own && *it == own);
    others.chain(itself).collect()
}

fn looping(
    outside: &Outside,
    source: &Member,
    (owner, range): (&Member, Cidr),
    sufferers: &[&ClusterName],
) -> Finding {
    let endpoint = &outside.endpoint;
    let whose = &owner.entry.name;
    let sufferers = listed(sufferers.iter().map(ToString::to_string));
    let message = format!(
        "endpoint {endpoint} lies in {range} of {whose}: {sufferers} would send what goes to it into \
         the tunnel that it carries"
    );
    let mut finding = on_node(
        &LOOPING_ENDPOINT,
        source,
        outside.node,
        message,
        &outside.place,
    );
    let declared = owner.entry.networks.all();
    let declared = declared.iter().find(|it| it.cidr.contains(range));
    finding.labels.extend(declared.map(|declared| Label {
        place: declared.place.clone(),
        text: "declared here".to_owned(),
    }));
    finding.help = Some(
        "have the node dialled at another address, or leave the one that it has out of the ranges \
         of the mesh"
            .to_owned(),
    );
    finding
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::told;

    const RANGES: &str = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24";
    const NODE: &str = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full";
    const WEST: &str =
        "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2";

    /// Returns what is told where `east` declares this too and its node says this.
    fn of(additional: &str, says: &str) -> String {
        let fields = format!(
            "{RANGES}, additionalCIDRs: [{additional}], endpointFrom: [Annotation, ExternalIP, InternalIP]"
        );
        let nodes = format!("{NODE} {says}");
        told(
            super::super::findings,
            &[("east", &fields, &nodes), ("west", "", WEST)],
        )
    }

    #[test]
    fn an_endpoint_in_the_node_s_own_range_loops() {
        insta::assert_snapshot!(of("198.18.1.0/24", "external=198.18.1.5"), @"
        warning[looping-endpoint] east/n: endpoint 198.18.1.5:51820 lies in 198.18.1.0/24 of east: west would send what goes to it into the tunnel that it carries
          east.json#/nodes/0/addresses/0/address 
          mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
          help: have the node dialled at another address, or leave the one that it has out of the ranges of the mesh
        ");
        insta::assert_snapshot!(of("198.18.1.5/32", "external=198.18.1.5"), @"
        warning[looping-endpoint] east/n: endpoint 198.18.1.5:51820 lies in 198.18.1.5/32 of east: west would send what goes to it into the tunnel that it carries
          east.json#/nodes/0/addresses/0/address 
          mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
          help: have the node dialled at another address, or leave the one that it has out of the ranges of the mesh
        ");
    }

    #[test]
    fn quiet_on_neighbours_and_on_the_declared_network_of_nodes_dialled_elsewhere() {
        assert_eq!(of("198.18.1.0/24", "external=198.18.2.5"), "");
        assert_eq!(
            of(
                "192.168.1.0/24",
                "internal=192.168.1.5 internal-ip=192.168.1.5/24 external=198.18.1.5"
            ),
            ""
        );
    }

    #[test]
    fn a_third_cluster_s_range_loops_where_both_are_seen() {
        let fields = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.103.0.0/24, additionalCIDRs: [198.18.1.0/24]";
        let north = "k pod=10.3.1.0/24 wg=10.103.0.1/24 key=C granularity=full external=198.18.3.1";
        let east = format!("{NODE} external=198.18.1.5");
        let clusters = [
            ("east", "", east.as_str()),
            ("west", "", WEST),
            ("north", fields, north),
        ];
        insta::assert_snapshot!(told(super::super::findings, &clusters), @"
        warning[looping-endpoint] east/n: endpoint 198.18.1.5:51820 lies in 198.18.1.0/24 of north: west would send what goes to it into the tunnel that it carries
          east.json#/nodes/0/addresses/0/address 
          mesh.yaml#/spec/clusters/2/additionalCIDRs/0 declared here
          help: have the node dialled at another address, or leave the one that it has out of the ranges of the mesh
        ");
    }

    #[test]
    fn tunnels_within_a_cluster_loop_where_kilo_dials_into_a_range_that_it_sees() {
        let fields = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, additionalCIDRs: [172.20.0.0/16]";
        let east = format!("{NODE} external=198.18.1.5");
        let west = |other: &str| format!("{WEST} endpoint=172.20.0.1:51820\n{other}");
        let second =
            "x pod=10.2.2.0/24 wg=10.102.0.2/24 key=C granularity=full external=198.18.0.3";
        let of = |west: &str| {
            told(
                super::super::findings,
                &[("east", fields, &east), ("west", "", west)],
            )
        };
        insta::assert_snapshot!(of(&west(second)), @"
        warning[looping-endpoint] west/w: endpoint 172.20.0.1:51820 lies in 172.20.0.0/16 of east: west would send what goes to it into the tunnel that it carries
          west.json#/nodes/0/annotations/kilo.squat.ai~1endpoint 
          mesh.yaml#/spec/clusters/0/additionalCIDRs/0 declared here
          help: have the node dialled at another address, or leave the one that it has out of the ranges of the mesh
        ");
        assert_eq!(of(&west("")), "", "one node has no tunnels in its cluster");
    }
}
