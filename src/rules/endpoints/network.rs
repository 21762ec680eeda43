//! Networks: is there a way from those who dial to the address that they dial?

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::dialled::DialledEndpoint;
use super::{NO_INITIATOR, PRIVATE_ENDPOINT, UNREACHABLE_FAMILY};
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::mesh::{EndpointSource, Entry, Underlay};
use crate::name::ClusterName;
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, Families, family, private_network};
use crate::place::Place;
use crate::rules::Finding;
use crate::rules::command::blank;
use crate::text::listed;
use crate::wireguard::Endpoint;

/// Endpoints of a cluster that some clusters cannot dial.
struct UnreachableEndpoints<'f> {
    first: DialledEndpoint<'f>,
    address: IpAddr,
    endpoints: Vec<&'f Endpoint>,
    nodes: Vec<&'f str>,
    /// The clusters that cannot dial them.
    targets: Vec<&'f ClusterName>,
}

/// Returns findings about endpoints that some clusters cannot reach.
pub(super) fn findings<'f>(fleet: &'f Fleet<'f>, members: &[&'f Member<'f>]) -> Vec<Finding> {
    let clusters: BTreeMap<&ClusterName, Surroundings> = fleet
        .first_memberships()
        .map(|member| (&member.entry.name, Surroundings::new(member)))
        .collect();
    let endpoints: BTreeMap<_, MeshEndpoints> = members
        .iter()
        .map(|member| ((&member.mesh.name, &member.entry.name), MeshEndpoints::new(member)))
        .collect();
    let closed = |source: &'f Member<'f>, target: &'f ClusterName| {
        let own = endpoints.get(&(&source.mesh.name, &source.entry.name))?;
        let other = endpoints.get(&(&source.mesh.name, target))?;
        let (near, far) = (clusters.get(&source.entry.name)?, clusters.get(target)?);
        let is_closed = far.has_none_of(own) && near.has_none_of(other);
        let is_any = own.place.is_some() || other.place.is_some();
        (is_any && is_closed).then(|| no_initiator(own, other))
    };
    let mut findings = Vec::new();
    for source in members {
        let mut others = Vec::new();
        for target in source.targets() {
            match (clusters.get(target), closed(source, target)) {
                (None, _) => {}
                (Some(_), Some(finding)) => {
                    findings.extend((source.entry.name < *target).then_some(finding));
                }
                (Some(around), None) => others.push((target, around)),
            }
        }
        findings.extend(undialled(source, &others));
    }
    findings
}

/// Returns findings about the endpoints of a cluster that others cannot dial.
fn undialled<'f>(
    source: &'f Member<'f>,
    targets: &[(&'f ClusterName, &Surroundings)],
) -> Vec<Finding> {
    type IsMeant = fn(&Surroundings, &Entry, IpAddr) -> bool;
    type Report = fn(&UnreachableEndpoints) -> Finding;
    let kinds: [(IsMeant, Report); 2] =
        [(Surroundings::lacks, other_family), (Surroundings::is_elsewhere, other_network)];
    let dialled = DialledEndpoint::all(source);
    let mut findings = Vec::new();
    for (is_meant, report) in kinds {
        let mut found = Unreachable::new();
        for (target, around) in targets {
            let meant = dialled.iter().map(DialledEndpoint::address);
            let entry = source.entry;
            let meant = meant.map(|it| it.is_some_and(|it| is_meant(around, entry, it)));
            let meant: Vec<usize> = meant.enumerate().filter(|it| it.1).map(|it| it.0).collect();
            if !meant.is_empty() {
                found.entry(meant).or_default().push(*target);
            }
        }
        let found = found.into_iter();
        let found = found.filter_map(|(which, targets)| unreachable(&dialled, &which, targets));
        findings.extend(found.map(|it| report(&it)));
    }
    findings
}

/// Endpoints of a cluster, by position, and the clusters that cannot dial them.
type Unreachable<'f> = BTreeMap<Vec<usize>, Vec<&'f ClusterName>>;

fn unreachable<'f>(
    dialled: &[DialledEndpoint<'f>],
    indices: &[usize],
    targets: Vec<&'f ClusterName>,
) -> Option<UnreachableEndpoints<'f>> {
    let meant: Vec<&DialledEndpoint> =
        indices.iter().filter_map(|&index| dialled.get(index)).collect();
    let first = **meant.first()?;
    Some(UnreachableEndpoints {
        address: first.address()?,
        endpoints: meant.iter().map(|it| it.endpoint).collect(),
        nodes: meant.iter().map(|it| it.node.name.as_str()).collect(),
        first,
        targets,
    })
}

impl UnreachableEndpoints<'_> {
    /// Adds the endpoints that the nodes need to a finding.
    fn resolved(&self, finding: Finding) -> Finding {
        let cluster = &self.first.member.entry.name;
        let change = blank(annotation::CLUSTERMESH_ENDPOINT);
        finding.resolved_by(&change, cluster, self.nodes.iter().copied())
    }

    /// Returns the underlay that the entry of one of these clusters names too. It lacks the endpoints.
    fn common_underlay(&self) -> Option<(usize, &Underlay)> {
        let Member { mesh, entry, .. } = self.first.member;
        let has = |target: &ClusterName, name: &str| {
            let entry = mesh.entry(target);
            entry.is_some_and(|it| it.underlays.iter().any(|it| it.name == name))
        };
        let mut numbered = entry.underlays.iter().enumerate();
        numbered.find(|(_, it)| self.targets.iter().any(|target| has(target, &it.name)))
    }
}

fn no_initiator(one: &MeshEndpoints, other: &MeshEndpoints) -> Finding {
    let message = format!(
        "{} and {} cannot dial each other: {}; {}",
        one.cluster,
        other.cluster,
        one.problem(other),
        other.problem(one)
    );
    let host = [one, other].into_iter().find(|it| it.cluster.is_external());
    let help = host.map_or_else(
        || {
            "annotate the nodes of one cluster with `kilo.squat.ai/clustermesh-endpoint`, with addresses of a family \
             that the other cluster has"
                .to_owned()
        },
        |it| format!("write an `endpoint` of `{}` with an address of a family that the other side has", it.cluster),
    );
    let finding = Finding::on_cluster(&NO_INITIATOR, one.cluster, message)
        .at(one.place.clone(), "dialled here")
        .at(other.place.clone(), "dialled here")
        .help(help);
    let change = blank(annotation::CLUSTERMESH_ENDPOINT);
    [one, other].into_iter().fold(finding, |finding, it| {
        finding.resolved_by(&change, it.cluster, it.nodes.iter().copied())
    })
}

fn other_family(unreachable: &UnreachableEndpoints) -> Finding {
    let family = family(unreachable.address);
    let targets = listed(&unreachable.targets);
    let message = format!(
        "{} {family}, and no node of {targets} has an {family} address",
        endpoints_are(unreachable)
    );
    let cluster = &unreachable.first.member.entry.name;
    let other = family.other();
    unreachable.resolved(Finding::on_cluster(&UNREACHABLE_FAMILY, cluster, message))
        .at(unreachable.first.place(), "")
        .help(if cluster.is_external() {
            format!("write an `endpoint` with an {other} address")
        } else {
            format!("annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and an {other} address")
        })
}

fn other_network(unreachable: &UnreachableEndpoints) -> Finding {
    let entry = unreachable.first.member.entry;
    let cluster = &entry.name;
    let targets = listed(&unreachable.targets);
    let their = match unreachable.endpoints.len() {
        1 => "its network",
        _ => "their networks",
    };
    let message =
        format!("{} private, and no node of {targets} is in {their}", endpoints_are(unreachable));
    if cluster.is_external() {
        return Finding::on_cluster(&PRIVATE_ENDPOINT, cluster, message)
            .at(unreachable.first.place(), "")
            .help(
                "if a network connects them, name it in `underlays` of both entries; otherwise write an `endpoint` that the \
                 clusters can dial, or remove it so that only the host dials",
            );
    }
    let guesses = [EndpointSource::InternalIP, EndpointSource::Kilo].into_iter();
    let guesses: Vec<String> = guesses
        .filter(|it| entry.endpoint_from.contains(it))
        .map(|it| format!("`{it:?}`"))
        .collect();
    let removed = match guesses.len() {
        all if all == entry.endpoint_from.len() => "`endpointFrom`".to_owned(),
        _ => format!("{} from `endpointFrom`", guesses.join(" and ")),
    };
    let without = if guesses.is_empty() {
        String::new()
    } else {
        format!(
            " if the nodes have public addresses or are behind NAT, remove {removed} of `{cluster}`, and for NAT add \
             `persistentKeepalive: 25`;"
        )
    };
    let allowed = if entry.endpoint_from.contains(&EndpointSource::Annotation) {
        String::new()
    } else {
        format!(" add `Annotation` to `endpointFrom` of `{cluster}`, and")
    };
    let finding = unreachable.resolved(Finding::on_cluster(&PRIVATE_ENDPOINT, cluster, message));
    let finding = finding.at(unreachable.first.place(), "");
    let (join, finding) = match unreachable.common_underlay() {
        Some((index, underlay)) => {
            let cidrs = entry.place.key("underlays").index(index).key("cidrs");
            let join = format!(
                "if `{}` connects them, add a range with {} to its `cidrs` of `{cluster}`",
                underlay.name, unreachable.address
            );
            (join, finding.at(cidrs, "not in it"))
        }
        None => (
            "if a network connects them, name it in `underlays` of both entries".to_owned(),
            finding,
        ),
    };
    finding.help(format!(
        "{join};{without} otherwise{allowed} annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address"
    ))
}

fn endpoints_are(unreachable: &UnreachableEndpoints) -> String {
    let endpoints = listed(&unreachable.endpoints);
    match unreachable.endpoints.len() {
        1 => format!("endpoint {endpoints} is"),
        _ => format!("endpoints {endpoints} are"),
    }
}

/// The networks and families of the nodes of a cluster.
struct Surroundings {
    /// The networks in which they have addresses of their own.
    networks: Prefixes<()>,
    /// The families of their addresses.
    families: Families,
    /// The networks that its entry names.
    underlays: BTreeSet<String>,
}

/// The endpoints at which the nodes of a cluster are dialled in a mesh.
struct MeshEndpoints<'f> {
    cluster: &'f ClusterName,
    nodes: Vec<&'f str>,
    /// The place of the first endpoint, if there is any.
    place: Option<Place>,
    /// The kinds of address at which they are.
    families: Families,
    /// Whether any is dialled by a name.
    has_name: bool,
}

impl<'f> MeshEndpoints<'f> {
    fn new(member: &'f Member<'f>) -> Self {
        let dialled = DialledEndpoint::all(member);
        let addresses = dialled.iter().filter_map(DialledEndpoint::address);
        Self {
            cluster: &member.entry.name,
            nodes: dialled.iter().map(|it| it.node.name.as_str()).collect(),
            place: dialled.first().map(DialledEndpoint::place),
            families: addresses.collect(),
            has_name: dialled.iter().any(|it| it.address().is_none()),
        }
    }

    /// Describes why the nodes of another cluster cannot dial these.
    fn problem(&self, other: &Self) -> String {
        match self.families.first() {
            None => format!("{} has no endpoint", self.cluster),
            Some(family) => format!(
                "{} has {family} endpoints, and no node of {} has an {family} address",
                self.cluster, other.cluster
            ),
        }
    }
}

impl Surroundings {
    fn new(member: &Member) -> Self {
        let nodes = &member.cluster.nodes;
        let endpoints = nodes.iter().flat_map(|it| it.endpoints().map(|it| it.0));
        let addresses: Vec<IpAddr> = endpoints.collect();
        let families = addresses.iter().copied().collect();
        let around = addresses.into_iter();
        let around = around.map(|it| private_network(it).unwrap_or_else(|| Cidr::host(it)));
        let networks = around.chain(nodes.iter().filter_map(|it| it.kilo.lan));
        let underlays = member.entry.underlays.iter().map(|it| it.name.clone());
        Self {
            networks: networks.map(|network| (network, ())).collect(),
            families,
            underlays: underlays.collect(),
        }
    }

    /// Returns whether no node has an address of the kind, as far as it is known.
    fn lacks(&self, _: &Entry, address: IpAddr) -> bool {
        !self.families.is_empty() && !self.families.has(family(address))
    }

    /// Returns whether no node has an address of any kind at which others are dialled, as far as it is
    /// known.
    fn has_none_of(&self, endpoints: &MeshEndpoints) -> bool {
        !self.families.is_empty() && !endpoints.has_name && !self.families.meet(endpoints.families)
    }

    /// Returns whether an address of another cluster is of a private network in which no node is, and to which no underlay
    /// leads.
    fn is_elsewhere(&self, entry: &Entry, address: IpAddr) -> bool {
        let mut underlays = entry.underlays.iter().filter(|it| it.holds(address));
        if underlays.any(|it| self.underlays.contains(&it.name)) {
            return false;
        }
        self.families.has(family(address))
            && !self.networks.is_empty()
            && private_network(address).is_some()
            && self.networks.holders(address).next().is_none()
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
        report(super::super::findings, &[("east", "", &nodes.concat()), ("west", "", &west)])
    }

    #[test]
    fn a_private_address_needs_somebody_in_its_network() {
        insta::assert_snapshot!(report_on(&["192.168.1.5"], "internal=192.168.2.1"), @"
        notice[private-endpoint] east: endpoint 192.168.1.5:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if a network connects them, name it in `underlays` of both entries; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
        insta::assert_snapshot!(report_on(&["10.7.0.1", "10.8.0.1"], "internal=10.9.0.1"), @"
        notice[private-endpoint] east: endpoints 10.7.0.1:51820, 10.8.0.1:51820 are private, and no node of west is in their networks
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if a network connects them, name it in `underlays` of both entries; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
        ");
        insta::assert_snapshot!(report_on(&["[fd00:1::1]"], "internal=fd00:2::1"), @"
        notice[private-endpoint] east: endpoint [fd00:1::1]:51820 is private, and no node of west is in its network
          east.json#/nodes/0/annotations/kilo.squat.ai~1clustermesh-endpoint 
          help: if a network connects them, name it in `underlays` of both entries; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
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
          help: if a network connects them, name it in `underlays` of both entries; if the nodes have public addresses or are behind NAT, remove `InternalIP` from `endpointFrom` of `east`, and for NAT add `persistentKeepalive: 25`; otherwise annotate the nodes with `kilo.squat.ai/clustermesh-endpoint` and a reachable address
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
            let clusters = [("east", "", east), ("west", "persistentKeepalive: 25", west)];
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
        let clusters = [("east", "", east), ("west", "persistentKeepalive: 25", bare)];
        assert_eq!(report(super::super::findings, &clusters), "");
    }
}
