//! Networks: is there a way from those who dial to the address that they dial?

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Dialled, PRIVATE_ENDPOINT, UNREACHABLE_FAMILY};
use crate::diagnostic::Label;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::name::ClusterName;
use crate::net::{Cidr, Cover, Family, family};
use crate::rules::{Finding, Rule, listed};
use crate::wireguard::Host;

/// Where the nodes of a cluster are.
struct Surroundings {
    /// The networks in which they have addresses of their own.
    networks: Cover<()>,
    /// What kinds of address they have.
    families: BTreeSet<Family>,
}

/// Endpoints of a cluster that some others cannot dial, by which these are.
type Unreachable<'f> = BTreeMap<Vec<usize>, Vec<&'f ClusterName>>;

/// Returns what there is to tell about endpoints that some clusters have no way to.
pub(super) fn findings<'f>(fleet: &'f Fleet<'f>, members: &[&'f Member<'f>]) -> Vec<Finding> {
    let clusters = fleet.clusters().filter_map(|cluster| {
        let member = fleet.memberships(cluster).next()?;
        Some((cluster, Surroundings::of(member)))
    });
    let clusters: BTreeMap<&ClusterName, Surroundings> = clusters.collect();
    let mut findings = Vec::new();
    for source in members {
        let dialled = Dialled::of(source);
        let addresses: Vec<Option<IpAddr>> = dialled.iter().map(Dialled::address).collect();
        let mut other_family = Unreachable::new();
        let mut elsewhere = Unreachable::new();
        for target in source.targets() {
            let Some(around) = clusters.get(target) else {
                continue;
            };
            for (found, is_meant) in [
                (&mut other_family, Surroundings::lacks as fn(&_, _) -> _),
                (&mut elsewhere, Surroundings::is_elsewhere),
            ] {
                let meant = addresses
                    .iter()
                    .enumerate()
                    .filter_map(|(index, address)| is_meant(around, (*address)?).then_some(index));
                let meant: Vec<usize> = meant.collect();
                if !meant.is_empty() {
                    found.entry(meant).or_default().push(target);
                }
            }
        }
        findings.extend(told(&UNREACHABLE_FAMILY, &dialled, &other_family));
        findings.extend(told(&PRIVATE_ENDPOINT, &dialled, &elsewhere));
    }
    findings
}

/// Returns a finding for each set of endpoints that some clusters cannot dial.
fn told(rule: &'static Rule, dialled: &[Dialled], unreachable: &Unreachable) -> Vec<Finding> {
    let told = unreachable.iter().filter_map(|(indices, targets)| {
        let meant = indices.iter().filter_map(|&index| dialled.get(index));
        let meant: Vec<&Dialled> = meant.collect();
        let (first, address) = meant.first().and_then(|it| Some((*it, it.address()?)))?;
        let cluster = &first.member.entry.name;
        let endpoints = listed(meant.iter().map(|it| it.endpoint.to_string()));
        let targets = listed(targets.iter().map(ToString::to_string));
        let (are, their) = match meant.len() {
            1 => (format!("endpoint {endpoints} is"), "its network"),
            _ => (format!("endpoints {endpoints} are"), "their networks"),
        };
        let (what, help) = if rule == &PRIVATE_ENDPOINT {
            let what = format!("private, and no node of {targets} is in {their}");
            let help = format!(
                "if there is a way, ignore the rule for `{cluster}`; else have the nodes dialled at \
                 addresses that all can reach, such as by `kilo.squat.ai/clustermesh-endpoint`"
            );
            (what, help)
        } else {
            let family = family(address);
            let what = format!("{family}, and no node of {targets} has an {family} address");
            let other = family.other();
            let help = format!(
                "have the nodes dialled at {other} addresses, such as by \
                 `kilo.squat.ai/clustermesh-endpoint`"
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
    told.collect()
}

impl Surroundings {
    fn of(member: &Member) -> Self {
        let own: Vec<Own> = member.cluster.nodes.iter().map(Own::of).collect();
        let networks = own.iter().flat_map(|it| it.networks.iter().copied());
        let addresses = own.iter().flat_map(|it| &it.addresses);
        Self {
            networks: networks.map(|network| (network, ())).collect(),
            families: addresses.map(|address| family(*address)).collect(),
        }
    }

    /// Returns whether no node has an address of the kind, as far as it is known.
    fn lacks(&self, address: IpAddr) -> bool {
        !self.families.is_empty() && !self.families.contains(&family(address))
    }

    /// Returns whether an address is of a private network in which no node is.
    fn is_elsewhere(&self, address: IpAddr) -> bool {
        self.families.contains(&family(address))
            && !self.networks.is_empty()
            && site(address).is_some()
            && self.networks.holder(address).is_none()
    }
}

/// What a node has of its own.
struct Own {
    networks: Vec<Cidr>,
    addresses: Vec<IpAddr>,
}

impl Own {
    fn of(ClusterNode { node, kilo, .. }: &ClusterNode) -> Self {
        let reported = node
            .addresses
            .iter()
            .filter_map(|it| it.address.parse().ok());
        let reported = reported.map(|it: IpAddr| it.to_canonical());
        let dialled = kilo.endpoint.as_ref().and_then(|it| match it.host {
            Host::Ip(address) => Some(address),
            Host::Dns(_) => None,
        });
        let addresses: Vec<IpAddr> = reported
            .chain(kilo.internal_address())
            .chain(dialled)
            .collect();
        let around = addresses.iter().map(|&address| {
            let site = site(address);
            site.unwrap_or_else(|| Cidr::host(address))
        });
        Self {
            networks: around.chain(kilo.lan).collect(),
            addresses,
        }
    }
}

/// Returns the network of which a private address is customarily a part, `None` for one that
/// everybody may reach.
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
    use crate::rules::tests::told;

    const WEST: &str =
        "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2";

    /// Returns what is told where `east` is dialled at these addresses and `west` says this.
    fn of(endpoints: &[&str], west: &str) -> String {
        let nodes = endpoints.iter().enumerate().map(|(index, endpoint)| {
            let key = ["A", "C"][index];
            format!(
                "n{index} pod=10.1.{index}.0/24 wg=10.101.0.{index}/24 key={key} granularity=full clustermesh-endpoint={endpoint}:51820\n"
            )
        });
        let nodes: String = nodes.collect();
        let west = format!("{WEST} {west}");
        told(
            super::super::findings,
            &[("east", "", &nodes), ("west", "", &west)],
        )
    }

    #[test]
    fn a_private_address_needs_somebody_in_its_network() {
        insta::assert_snapshot!(of(&["192.168.1.5"], "internal=192.168.2.1"), @"
        notice[private-endpoint] east: endpoint 192.168.1.5:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if there is a way, ignore the rule for `east`; else have the nodes dialled at addresses that all can reach, such as by `kilo.squat.ai/clustermesh-endpoint`
        ");
        insta::assert_snapshot!(of(&["10.7.0.1", "10.8.0.1"], "internal=10.9.0.1"), @"
        notice[private-endpoint] east: endpoints 10.7.0.1:51820, 10.8.0.1:51820 are private, and no node of west is in their networks
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if there is a way, ignore the rule for `east`; else have the nodes dialled at addresses that all can reach, such as by `kilo.squat.ai/clustermesh-endpoint`
        ");
        insta::assert_snapshot!(of(&["[fd00:1::1]"], "internal=fd00:2::1"), @"
        notice[private-endpoint] east: endpoint [fd00:1::1]:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if there is a way, ignore the rule for `east`; else have the nodes dialled at addresses that all can reach, such as by `kilo.squat.ai/clustermesh-endpoint`
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
            assert_eq!(of(&[endpoint], west), "", "{endpoint} {west}");
        }
    }

    #[test]
    fn an_address_needs_somebody_of_its_family() {
        insta::assert_snapshot!(of(&["[2a00::1]"], ""), @"
        notice[unreachable-family] east: endpoint [2a00::1]:51820 is IPv6, and no node of west has an IPv6 address
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: have the nodes dialled at IPv4 addresses, such as by `kilo.squat.ai/clustermesh-endpoint`
        ");
        assert_eq!(of(&["[2a00::1]"], "internal=2a00::2"), "");
    }

    #[test]
    fn what_is_unknown_is_no_obstacle() {
        let bare = "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full";
        let east = "n pod=10.1.0.0/24 wg=10.101.0.1/24 key=A granularity=full clustermesh-endpoint=10.7.0.1:51820";
        let clusters = [
            ("east", "", east),
            ("west", "persistentKeepalive: 25", bare),
        ];
        assert_eq!(told(super::super::findings, &clusters), "");
    }
}
