//! Networks: is there a way from those who dial to the address that they dial?

use super::dialled::{DialProblem, DialSide, UnreachableEndpoints, problems};
use super::{NO_INITIATOR, PRIVATE_ENDPOINT, UNREACHABLE_FAMILY};
use crate::fleet::{Fleet, Member};
use crate::mesh::EndpointSource;
use crate::net::family;
use crate::rules::Finding;
use crate::text::listed;

/// Returns findings about endpoints that some clusters cannot reach.
pub(super) fn findings<'f>(fleet: &'f Fleet<'f>, members: &[&'f Member<'f>]) -> Vec<Finding> {
    problems(fleet, members)
        .into_iter()
        .map(|problem| match problem {
            DialProblem::NoInitiator(one, other) => no_initiator(one, other),
            DialProblem::OtherFamily(endpoints) => other_family(&endpoints),
            DialProblem::OtherNetwork(endpoints) => other_network(&endpoints),
        })
        .collect()
}

fn no_initiator(one: DialSide, other: DialSide) -> Finding {
    let side = |side: &DialSide, dialling: &DialSide| match side.family {
        None => format!("{} has no endpoint", side.cluster),
        Some(family) => format!(
            "{} has {family} endpoints, and no node of {} has an {family} address",
            side.cluster, dialling.cluster
        ),
    };
    let message = format!(
        "{} and {} cannot dial each other: {}; {}",
        one.cluster,
        other.cluster,
        side(&one, &other),
        side(&other, &one)
    );
    Finding::on_cluster(&NO_INITIATOR, one.cluster, message)
        .at(one.place, "dialled here")
        .at(other.place, "dialled here")
        .help(
            "annotate the nodes of one cluster with `kilo.squat.ai/clustermesh-endpoint`, with \
             addresses of a family that the other cluster has",
        )
}

fn other_family(unreachable: &UnreachableEndpoints) -> Finding {
    let family = family(unreachable.address);
    let targets = listed(&unreachable.targets);
    let message = format!(
        "{} {family}, and no node of {targets} has an {family} address",
        endpoints_are(unreachable)
    );
    Finding::on_cluster(
        &UNREACHABLE_FAMILY,
        &unreachable.first.member.entry.name,
        message,
    )
    .at(unreachable.first.place(), "")
    .help(format!(
        "annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and an {} address",
        family.other()
    ))
}

fn other_network(unreachable: &UnreachableEndpoints) -> Finding {
    let entry = unreachable.first.member.entry;
    let cluster = &entry.name;
    let targets = listed(&unreachable.targets);
    let their = match unreachable.endpoints.len() {
        1 => "its network",
        _ => "their networks",
    };
    let message = format!(
        "{} private, and no node of {targets} is in {their}",
        endpoints_are(unreachable)
    );
    let guesses = [EndpointSource::InternalIP, EndpointSource::Kilo].into_iter();
    let guesses: Vec<String> = guesses
        .filter(|it| entry.endpoint_from.contains(it))
        .map(|it| format!("`{it:?}`"))
        .collect();
    let nat = if guesses.is_empty() {
        String::new()
    } else {
        format!(
            " if the nodes are behind NAT, remove {} from `endpointFrom` of `{cluster}` and add \
             `persistentKeepalive: 25`;",
            guesses.join(" and ")
        )
    };
    Finding::on_cluster(&PRIVATE_ENDPOINT, cluster, message)
        .at(unreachable.first.place(), "")
        .help(format!(
            "if the networks are connected, ignore this rule for `{cluster}`;{nat} otherwise annotate the nodes with \
             `kilo.squat.ai/clustermesh-endpoint` and a reachable address"
        ))
}

fn endpoints_are(unreachable: &UnreachableEndpoints) -> String {
    let endpoints = listed(&unreachable.endpoints);
    match unreachable.endpoints.len() {
        1 => format!("endpoint {endpoints} is"),
        _ => format!("endpoints {endpoints} are"),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const WEST: &str =
        "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2";

    /// Returns the findings if `east` is dialled at these addresses and `west` reports this.
    fn report_on(endpoints: &[&str], west: &str) -> String {
        let nodes: Vec<String> = endpoints.iter().enumerate().map(|(index, endpoint)| {
            let key = ["A", "C"][index];
            format!(
                "n{index} pod=10.1.{index}.0/24 wg=10.101.0.{index}/24 key={key} granularity=full external=198.18.1.{index} clustermesh-endpoint={endpoint}:51820\n"
            )
        }).collect();
        let west = format!("{WEST} {west}");
        report(
            super::super::findings,
            &[("east", "", &nodes.concat()), ("west", "", &west)],
        )
    }

    #[test]
    fn a_private_address_needs_somebody_in_its_network() {
        insta::assert_snapshot!(report_on(&["192.168.1.5"], "internal=192.168.2.1"), @"
        notice[private-endpoint] east: endpoint 192.168.1.5:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if the networks are connected, ignore this rule for `east`; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
        insta::assert_snapshot!(report_on(&["10.7.0.1", "10.8.0.1"], "internal=10.9.0.1"), @"
        notice[private-endpoint] east: endpoints 10.7.0.1:51820, 10.8.0.1:51820 are private, and no node of west is in their networks
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if the networks are connected, ignore this rule for `east`; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
        insta::assert_snapshot!(report_on(&["[fd00:1::1]"], "internal=fd00:2::1"), @"
        notice[private-endpoint] east: endpoint [fd00:1::1]:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if the networks are connected, ignore this rule for `east`; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
    }

    #[test]
    fn an_address_behind_nat_may_come_from_a_source_of_the_entry() {
        let east = "n pod=10.1.0.0/24 wg=10.101.0.1/24 key=A granularity=full internal=192.168.1.5";
        let west = format!("{WEST} internal=192.168.2.1");
        let entry = "endpointFrom: [Annotation, InternalIP]";
        let clusters = [("east", entry, east), ("west", "", &west)];
        insta::assert_snapshot!(report(super::super::findings, &clusters), @"
        notice[private-endpoint] east: endpoint 192.168.1.5:51820 is private, and no node of west is in its network
          east.json#/nodes/0/addresses/0/address 
          help: if the networks are connected, ignore this rule for `east`; if the nodes are behind NAT, remove `InternalIP` from `endpointFrom` of `east` and add `persistentKeepalive: 25`; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
    }

    #[test]
    fn quiet_on_one_network_in_all_its_guises() {
        for (endpoint, west) in [
            ("192.168.1.5", "internal=192.168.1.9"),
            ("192.168.1.5", "internal-ip=192.168.2.1/16"),
            ("192.168.1.5", "endpoint=192.168.1.9:51820"),
            // Two subnets of one cloud network, and a cloud that knows no subnets.
            ("10.30.4.1", "internal-ip=10.30.99.1/20"),
            ("10.30.4.1", "internal-ip=10.30.99.1/32"),
            ("100.64.0.1", "internal=100.99.0.1"),
            ("[fd00:1::1]", "internal=fd00:1:0:5::1"),
            ("198.18.0.5", "internal=192.168.2.1"),
        ] {
            assert_eq!(report_on(&[endpoint], west), "", "{endpoint} {west}");
        }
    }

    #[test]
    fn an_address_needs_somebody_of_its_family() {
        insta::assert_snapshot!(report_on(&["[2a00::1]"], ""), @"
        notice[unreachable-family] east: endpoint [2a00::1]:51820 is IPv6, and no node of west has an IPv6 address
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and an IPv4 address
        ");
        assert_eq!(report_on(&["[2a00::1]"], "internal=2a00::2"), "");
    }

    #[test]
    fn one_of_two_clusters_must_have_what_the_other_is_dialled_at() {
        let east = "n pod=10.1.0.0/24 wg=10.101.0.1/24 key=A granularity=full external=2a00::1";
        let report_on = |west: &str| {
            let clusters = [
                ("east", "", east),
                ("west", "persistentKeepalive: 25", west),
            ];
            report(super::super::findings, &clusters)
        };
        insta::assert_snapshot!(report_on(WEST), @"
        warning[no-initiator] east: east and west cannot dial each other: east has IPv6 endpoints, and no node of west has an IPv6 address; west has IPv4 endpoints, and no node of east has an IPv4 address
          east.json#/nodes/0/addresses/0/address dialled here
          west.json#/nodes/0/addresses/0/address dialled here
          help: annotate the nodes of one cluster with `kilo.squat.ai/clustermesh-endpoint`, with addresses of a family that the other cluster has
        ");
        let calling = WEST.replace("external", "persistent-keepalive=25 internal");
        insta::assert_snapshot!(report_on(&calling), @"
        warning[no-initiator] east: east and west cannot dial each other: east has IPv6 endpoints, and no node of west has an IPv6 address; west has no endpoint
          east.json#/nodes/0/addresses/0/address dialled here
          help: annotate the nodes of one cluster with `kilo.squat.ai/clustermesh-endpoint`, with addresses of a family that the other cluster has
        ");
        assert!(!report_on(&format!("{WEST} internal=2a00::2")).contains("no-initiator"));
    }

    #[test]
    fn what_is_unknown_is_no_obstacle() {
        let bare = "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full";
        let east = "n pod=10.1.0.0/24 wg=10.101.0.1/24 key=A granularity=full clustermesh-endpoint=10.7.0.1:51820";
        let clusters = [
            ("east", "", east),
            ("west", "persistentKeepalive: 25", bare),
        ];
        assert_eq!(report(super::super::findings, &clusters), "");
    }
}
