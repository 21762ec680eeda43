//! Addresses and names that other clusters cannot use.

use std::net::IpAddr;

use super::dialled::DialledEndpoint;
use super::{DNS_ENDPOINT, DOCUMENTATION_ENDPOINT, on_endpoint};
use crate::kilo::node::annotation;
use crate::rules::Finding;
use crate::rules::command::blank;
use crate::wireguard::Host;

/// Returns findings about a node's endpoint that apply to all clusters.
pub(super) fn finding(dialled: &DialledEndpoint) -> Option<Finding> {
    let endpoint = dialled.endpoint;
    match &endpoint.host {
        // The membership takes no name that could steer a terminal.
        Host::Dns(_) => {
            let message = format!(
                "endpoint {endpoint} is a DNS name: Kilo applies no changes on nodes that \
                 cannot resolve it"
            );
            Some(on_endpoint(dialled, &DNS_ENDPOINT, message).help(
                "write an IP address, or make sure that every node of every cluster resolves the \
                 name",
            ))
        }
        Host::Ip(address) => {
            let range = documentation(*address)?;
            let message =
                format!("endpoint {endpoint} is in {range}, which is reserved for documentation");
            let change = blank(annotation::CLUSTERMESH_ENDPOINT);
            let finding = on_endpoint(dialled, &DOCUMENTATION_ENDPOINT, message);
            let cluster = &dialled.member.entry.name;
            let finding = finding.resolved_by(&change, cluster, [&*dialled.node.name]);
            Some(finding.help(if dialled.member.entry.name.is_external() {
                "write the real address of the host"
            } else {
                "write the real address of the node"
            }))
        }
    }
}

/// Returns the range for documentation that holds an address (RFC 5737, RFC 3849, RFC 9637).
fn documentation(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => match v4.octets() {
            [192, 0, 2, _] => Some("192.0.2.0/24"),
            [198, 51, 100, _] => Some("198.51.100.0/24"),
            [203, 0, 113, _] => Some("203.0.113.0/24"),
            _ => None,
        },
        IpAddr::V6(v6) => match v6.segments() {
            [0x2001, 0xdb8, ..] => Some("2001:db8::/32"),
            [0x3fff, 0..=0x0fff, ..] => Some("3fff::/20"),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::report;

    const NODES: &str = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full";

    /// Returns the findings about `east` with one node of this endpoint.
    fn report_on(fields: &str, endpoint: &str) -> String {
        let nodes = format!("{NODES} clustermesh-endpoint={endpoint}");
        report(super::super::findings, &[("east", fields, &nodes), ("west", "", "")])
    }

    #[test]
    fn a_name_is_reported_even_where_it_is_declared() {
        insta::assert_snapshot!(report_on("endpointDomains: [example.com]", "wg.example.com:51820"), @"
        notice[dns-endpoint] east/n: endpoint wg.example.com:51820 is a DNS name: Kilo applies no changes on nodes that cannot resolve it
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: write an IP address, or make sure that every node of every cluster resolves the name
        ");
    }

    #[test]
    fn addresses_of_documents_are_reported_and_their_neighbours_are_not() {
        let holds = |text: &str| documentation(text.parse().unwrap()).is_some();
        for inside in
            ["192.0.2.0", "198.51.100.255", "203.0.113.7", "2001:db8:ffff::1", "3fff:fff::1"]
        {
            assert!(holds(inside), "{inside}");
        }
        for outside in ["192.0.3.0", "198.18.0.1", "203.0.114.1", "2001:db9::1", "3fff:1000::1"] {
            assert!(!holds(outside), "{outside}");
        }
        insta::assert_snapshot!(report_on("", "203.0.113.7:51820"), @"
        notice[documentation-endpoint] east/n: endpoint 203.0.113.7:51820 is in 203.0.113.0/24, which is reserved for documentation
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: write the real address of the node
        ");
    }

    #[test]
    fn quiet_on_an_address() {
        assert_eq!(report_on("", "198.18.0.1:51820"), "");
    }
}
