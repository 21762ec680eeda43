//! Subnets: from where Kilo takes a cluster's WireGuard addresses, and who else uses that.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::OVERLAPPING_SUBNET;
use crate::diagnostic::FindingCause;
use crate::diagnostic::mistake::OVERLAPPING_RANGES;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::annotation;
use crate::mesh::{Entry, Networks, Range, WireguardAddresses};
use crate::name::ClusterName;
use crate::net::{self, Cidr, Interface};
use crate::place::Place;
use crate::rules::Finding;
use crate::snapshot::Node;
use crate::text::{NAMED, and_more};

/// The number of overlaps of one mesh that are examined.
const COMPARED: usize = 100_000;

/// Kilo's subnet in a cluster.
struct Subnet<'a> {
    member: &'a Member<'a>,
    cidr: Cidr,
    addresses: Vec<IpAddr>,
    /// The place of the first node that reports it.
    place: Place,
}

/// A range, or the subnet of another cluster, that shares addresses with a subnet.
#[derive(Clone, Copy)]
struct MetSubnet<'a> {
    whose: &'a ClusterName,
    cidr: Cidr,
    place: &'a Place,
    is_subnet: bool,
    /// Whether no other cluster gets addresses in it, because it is Kilo's subnet.
    is_kept: bool,
}

/// Returns findings about Kilo's subnets.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    let subnets = subnets(fleet);
    let mut met: BTreeMap<&ClusterName, Vec<MetSubnet>> = BTreeMap::new();
    for (cluster, subnet) in &subnets {
        let own = own(subnet);
        if !own.is_empty() {
            met.insert(cluster, own);
        }
    }
    for (cluster, other) in foreign(fleet, &subnets) {
        met.entry(cluster).or_default().push(other);
    }
    met.iter().filter_map(|(cluster, met)| finding(subnets.get(cluster)?, met)).collect()
}

fn subnets<'f>(fleet: &'f Fleet) -> BTreeMap<&'f ClusterName, Subnet<'f>> {
    fleet
        .first_memberships()
        .filter_map(|member| Some((&member.entry.name, subnet(member)?)))
        .collect()
}

fn subnet<'f>(member: &'f Member<'f>) -> Option<Subnet<'f>> {
    let cidr = member.cluster.topology.subnet?;
    let announced = |it: &'f ClusterNode<'f>| Some((it.node, it.kilo.wireguard_ip()?));
    let nodes = member.cluster.nodes.iter().filter(|it| !it.kilo.is_silent());
    let inside: Vec<(&Node, Interface)> =
        nodes.filter_map(announced).filter(|(_, interface)| interface.network == cidr).collect();
    let (first, _) = inside.first()?;
    let place = member.place(first);
    Some(Subnet {
        member,
        cidr,
        addresses: inside.iter().map(|it| it.1.address).collect(),
        place: place.key("annotations").key(annotation::WIREGUARD_IP),
    })
}

/// Returns what the cluster itself declares for another use.
fn own<'f>(subnet: &Subnet<'f>) -> Vec<MetSubnet<'f>> {
    let entry = subnet.member.entry;
    let holds_one = |range: &Range| subnet.addresses.iter().any(|it| range.cidr.holds(*it));
    let ranges: Vec<&Range> = match &entry.networks {
        Networks::Typed { pods, services, additional, .. } => {
            pods.iter().chain(services).chain(additional).collect()
        }
        Networks::Flat { allowed } => allowed.iter().collect(),
    };
    let is_flat = matches!(entry.networks, Networks::Flat { .. });
    ranges
        .into_iter()
        .filter(|range| range.cidr.overlaps(subnet.cidr) && !(is_flat && holds_one(range)))
        .map(|range| MetSubnet::range(entry, range))
        .collect()
}

/// Returns what linked clusters have in a subnet, of each two clusters one thing: the other's
/// subnet, else a range.
fn foreign<'f>(
    fleet: &'f Fleet,
    subnets: &'f BTreeMap<&'f ClusterName, Subnet<'f>>,
) -> Vec<(&'f ClusterName, MetSubnet<'f>)> {
    let mut meshes: BTreeMap<&Place, Vec<&Member>> = BTreeMap::new();
    for member in fleet.members() {
        meshes.entry(&member.mesh.place).or_default().push(member);
    }
    let meshes = meshes.into_values();
    meshes.flat_map(|it| in_mesh(&it, subnets)).collect()
}

fn in_mesh<'f>(
    members: &[&'f Member<'f>],
    subnets: &'f BTreeMap<&'f ClusterName, Subnet<'f>>,
) -> Vec<(&'f ClusterName, MetSubnet<'f>)> {
    let of_kilo = members
        .iter()
        .filter_map(|it| Some(MetSubnet::subnet(it.entry, subnets.get(&it.entry.name)?)));
    let declared = members.iter().flat_map(|it| {
        let ranges = it.entry.networks.all().into_iter();
        ranges.map(|range| MetSubnet::range(it.entry, range))
    });
    // In order of rank, so that the later of two subnets is reported.
    let all: Vec<MetSubnet> = of_kilo.chain(declared).collect();
    let cidrs: Vec<Cidr> = all.iter().map(|met| met.cidr).collect();
    let Some(topology) = members.first().map(|it| &it.mesh.topology) else {
        return Vec::new();
    };
    let mut pairs = BTreeMap::new();
    let is_kept = |met: usize| all.get(met).is_some_and(|it| it.is_kept);
    for (first, second) in net::overlaps(&cidrs, COMPARED, is_kept) {
        let (Some(first), Some(second)) = (all.get(first), all.get(second)) else {
            continue;
        };
        let (subnet, other) = if second.is_subnet { (second, first) } else { (first, second) };
        let (whose, others) = (subnet.whose, other.whose);
        if subnet.is_subnet && whose != others && topology.links(whose, others) {
            let pair = (whose.min(others), whose.max(others));
            pairs.entry(pair).or_insert((whose, *other));
        }
    }
    pairs.into_values().collect()
}

impl<'f> MetSubnet<'f> {
    fn subnet(whose: &'f Entry, subnet: &'f Subnet) -> Self {
        Self {
            whose: &whose.name,
            cidr: subnet.cidr,
            place: &subnet.place,
            is_subnet: true,
            is_kept: whose.advertise.wireguard == WireguardAddresses::None,
        }
    }

    fn range(whose: &'f Entry, range: &'f Range) -> Self {
        Self {
            whose: &whose.name,
            cidr: range.cidr,
            place: &range.place,
            is_subnet: false,
            is_kept: whose.keeps(range),
        }
    }
}

fn finding(subnet: &Subnet, met: &[MetSubnet]) -> Option<Finding> {
    let (cluster, own) = (&subnet.member.entry.name, subnet.cidr);
    let first = met.first()?;
    let (cidr, whose) = (first.cidr, first.whose);
    let clash = match first {
        _ if whose == cluster => {
            format!("overlaps {cidr}, which the cluster declares for another use")
        }
        MetSubnet { is_subnet: true, .. } if cidr == own => {
            format!("is also the subnet of `{whose}`")
        }
        MetSubnet { is_subnet: true, .. } => format!("overlaps the subnet of `{whose}`, {cidr}"),
        _ => format!("overlaps {cidr} of `{whose}`"),
    };
    let more = and_more(met.len() - 1, "");
    let message = format!("Kilo's subnet {own} {clash}{more}");
    let others = met.iter().take(NAMED);
    let finding = Finding::on_cluster(&OVERLAPPING_SUBNET, cluster, message)
        .at(subnet.place.clone(), "an address in it")
        .at_each(others.map(|it| (it.place.clone(), format!("of `{}`", it.whose))));
    // A range that contains Kilo's subnet may be declared too wide.
    let wide = (!first.is_subnet).then(|| FindingCause::of(&OVERLAPPING_RANGES, whose));
    Some(finding.with_cause(wide).help(format!(
        "start Kilo in `{cluster}` with a `--subnet` that no other range of the mesh overlaps, and \
         declare it"
    )))
}
