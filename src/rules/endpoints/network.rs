//! Networks: is there a way from those who dial to the address that they dial?

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{DialledEndpoint, NO_INITIATOR, PRIVATE_ENDPOINT, UNREACHABLE_FAMILY};
use crate::diagnostic::Label;
use crate::fleet::{Fleet, Member};
use crate::name::ClusterName;
use crate::net::{Cidr, Cover, Families, family};
use crate::rules::{Finding, Rule};
use crate::text::listed;

/// The networks of the nodes of a cluster.
struct Surroundings {
    /// The networks in which they have addresses of their own.
    networks: Cover<()>,
    /// The address families that they have.
    families: Families,
}

/// Endpoints of a cluster that some others cannot dial, by which these are.
type Unreachable<'f> = BTreeMap<Vec<usize>, Vec<&'f ClusterName>>;

/// Returns findings about endpoints that some clusters cannot reach.
pub(super) fn findings<'f>(fleet: &'f Fleet<'f>, members: &[&'f Member<'f>]) -> Vec<Finding> {
    let clusters: BTreeMap<&ClusterName, Surroundings> = fleet
        .clusters()
        .filter_map(|cluster| {
            let member = fleet.memberships(cluster).next()?;
            Some((cluster, Surroundings::new(member)))
        })
        .collect();
    let doors: BTreeMap<_, (&Member, Doors)> = members
        .iter()
        .map(|member| {
            let key = (&member.mesh.name, &member.entry.name);
            (key, (*member, Doors::new(member)))
        })
        .collect();
    let is_closed = |source: &'f Member<'f>, target: &'f ClusterName| {
        let name = &source.entry.name;
        let mesh = &source.mesh.name;
        let (_, own) = doors.get(&(mesh, name))?;
        let (other, others) = doors.get(&(mesh, target))?;
        let (near, far) = (clusters.get(name)?, clusters.get(target)?);
        let is_closed = far.has_none_of(own) && near.has_none_of(others);
        let is_any = own.is_there || others.is_there;
        (is_any && is_closed).then_some((*other, own, others))
    };
    let mut findings = Vec::new();
    for source in members {
        let dialled = DialledEndpoint::all(source);
        let addresses: Vec<Option<IpAddr>> = dialled.iter().map(DialledEndpoint::address).collect();
        let mut other_family = Unreachable::new();
        let mut elsewhere = Unreachable::new();
        for target in source.targets() {
            let Some(around) = clusters.get(target) else {
                continue;
            };
            if let Some((other, own, others)) = is_closed(source, target) {
                if source.entry.name < *target {
                    findings.push(closed(source, own, other, others));
                }
                continue;
            }
            for (found, is_meant) in [
                (&mut other_family, Surroundings::lacks as fn(&_, _) -> _),
                (&mut elsewhere, Surroundings::is_elsewhere),
            ] {
                let meant: Vec<usize> = addresses
                    .iter()
                    .enumerate()
                    .filter_map(|(index, address)| is_meant(around, (*address)?).then_some(index))
                    .collect();
                if !meant.is_empty() {
                    found.entry(meant).or_default().push(target);
                }
            }
        }
        findings.extend(unreachable_endpoints(
            &UNREACHABLE_FAMILY,
            &dialled,
            &other_family,
        ));
        findings.extend(unreachable_endpoints(
            &PRIVATE_ENDPOINT,
            &dialled,
            &elsewhere,
        ));
    }
    findings
}

/// Returns the finding about two clusters of which neither can dial the other.
fn closed(one: &Member, own: &Doors, other: &Member, others: &Doors) -> Finding {
    let (near, far) = (&one.entry.name, &other.entry.name);
    let side = |doors: &Doors, cluster: &ClusterName, dialling: &ClusterName| {
        doors.families.first().map_or_else(
            || format!("{cluster} has no endpoint"),
            |it| {
                format!(
                    "{cluster} has {it} endpoints, and no node of {dialling} has an {it} \
                    address"
                )
            },
        )
    };
    let message = format!(
        "{near} and {far} cannot dial each other: {}; {}",
        side(own, near, far),
        side(others, far, near)
    );
    let places =
        [one, other].map(|it| DialledEndpoint::all(it).first().map(DialledEndpoint::place));
    let [near, far] = places;
    Finding::on_cluster(&NO_INITIATOR, &one.entry.name, message)
        .at(near, "dialled here")
        .at(far, "dialled here")
        .help(
            "annotate the nodes of one cluster with `kilo.squat.ai/clustermesh-endpoint`, with \
             addresses of a family that the other cluster has",
        )
}

/// Returns a finding for each set of endpoints that some clusters cannot dial.
fn unreachable_endpoints(
    rule: &'static Rule,
    dialled: &[DialledEndpoint],
    unreachable: &Unreachable,
) -> Vec<Finding> {
    let unreachable_endpoints = unreachable.iter().filter_map(|(indices, targets)| {
        let meant: Vec<&DialledEndpoint> = indices
            .iter()
            .filter_map(|&index| dialled.get(index))
            .collect();
        let (first, address) = meant.first().and_then(|it| Some((*it, it.address()?)))?;
        let cluster = &first.member.entry.name;
        let endpoints = listed(meant.iter().map(|it| it.endpoint.to_string()));
        let targets = listed(targets.iter());
        let (are, their) = match meant.len() {
            1 => (format!("endpoint {endpoints} is"), "its network"),
            _ => (format!("endpoints {endpoints} are"), "their networks"),
        };
        let (what, help) = if rule == &PRIVATE_ENDPOINT {
            let what = format!("private, and no node of {targets} is in {their}");
            let help = format!(
                "annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable \
                 address, or ignore this rule for `{cluster}` if the networks are connected"
            );
            (what, help)
        } else {
            let family = family(address);
            let what = format!("{family}, and no node of {targets} has an {family} address");
            let other = family.other();
            let help = format!(
                "annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and an {other} \
                 address"
            );
            (what, help)
        };
        let mut finding = Finding::on_cluster(rule, cluster, format!("{are} {what}"));
        finding.help = Some(help);
        finding.labels.push(Label {
            place: first.place(),
            text: String::new(),
        });
        Some(finding)
    });
    unreachable_endpoints.collect()
}

/// The endpoints of the nodes of a cluster in a mesh.
struct Doors {
    /// Whether there are any.
    is_there: bool,
    /// Their address families.
    families: Families,
    /// Whether any of them is a DNS name.
    has_name: bool,
}

impl Doors {
    fn new(member: &Member) -> Self {
        let dialled = DialledEndpoint::all(member);
        let addresses = dialled.iter().filter_map(DialledEndpoint::address);
        Self {
            is_there: !dialled.is_empty(),
            families: addresses.collect(),
            has_name: dialled.iter().any(|it| it.address().is_none()),
        }
    }
}

impl Surroundings {
    fn new(member: &Member) -> Self {
        let nodes = &member.cluster.nodes;
        let addresses = || nodes.iter().flat_map(|it| it.doors().map(|it| it.0));
        let around = addresses().map(|it| site(it).unwrap_or_else(|| Cidr::host(it)));
        let networks = around.chain(nodes.iter().filter_map(|it| it.kilo.lan));
        Self {
            networks: networks.map(|network| (network, ())).collect(),
            families: addresses().collect(),
        }
    }

    /// Returns whether no node has an address of the kind, as far as it is known.
    fn lacks(&self, address: IpAddr) -> bool {
        !self.families.is_empty() && !self.families.has(family(address))
    }

    /// Returns whether no node has an address of any kind at which others are dialled, as far as it is
    /// known.
    fn has_none_of(&self, doors: &Doors) -> bool {
        !self.families.is_empty() && !doors.has_name && !self.families.meet(doors.families)
    }

    /// Returns whether an address is of a private network in which no node is.
    fn is_elsewhere(&self, address: IpAddr) -> bool {
        self.families.has(family(address))
            && !self.networks.is_empty()
            && site(address).is_some()
            && self.networks.holder(address).is_none()
    }
}

/// Returns the usual network of a private address, `None` for a public one.
///
/// A node knows how long the prefix of its subnet is, but not how many subnets its site has, so
/// what is handed out as one network counts: `/24` of the 192.168s, `/16` of the others of RFC 1918,
/// `/48` of unique local addresses (RFC 4193), and all of a carrier's shared space (RFC 6598).
pub(in crate::rules) fn site(address: IpAddr) -> Option<Cidr> {
    let length = match address {
        IpAddr::V4(v4) => match v4.octets() {
            [10, ..] | [172, 16..=31, ..] => 16,
            [192, 168, ..] => 24,
            [100, 64..=127, ..] => 10,
            _ => return None,
        },
        IpAddr::V6(v6) => match v6.octets() {
            [0xfc | 0xfd, ..] => 48,
            _ => return None,
        },
    };
    Cidr::host(address).widened(length)
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const WEST: &str =
        "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2";

    /// Returns the findings if `east` is dialled at these addresses and `west` reports this.
    fn report_on(endpoints: &[&str], west: &str) -> String {
        let nodes = endpoints.iter().enumerate().map(|(index, endpoint)| {
            let key = ["A", "C"][index];
            format!(
                "n{index} pod=10.1.{index}.0/24 wg=10.101.0.{index}/24 key={key} granularity=full external=198.18.1.{index} clustermesh-endpoint={endpoint}:51820\n"
            )
        });
        let nodes: String = nodes.collect();
        let west = format!("{WEST} {west}");
        report(
            super::super::findings,
            &[("east", "", &nodes), ("west", "", &west)],
        )
    }

    #[test]
    fn a_private_address_needs_somebody_in_its_network() {
        insta::assert_snapshot!(report_on(&["192.168.1.5"], "internal=192.168.2.1"), @"
        notice[private-endpoint] east: endpoint 192.168.1.5:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address, or ignore this rule for `east` if the networks are connected
        ");
        insta::assert_snapshot!(report_on(&["10.7.0.1", "10.8.0.1"], "internal=10.9.0.1"), @"
        notice[private-endpoint] east: endpoints 10.7.0.1:51820, 10.8.0.1:51820 are private, and no node of west is in their networks
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address, or ignore this rule for `east` if the networks are connected
        ");
        insta::assert_snapshot!(report_on(&["[fd00:1::1]"], "internal=fd00:2::1"), @"
        notice[private-endpoint] east: endpoint [fd00:1::1]:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address, or ignore this rule for `east` if the networks are connected
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
