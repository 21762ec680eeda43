//! Flat lists: what an entry of `allowedNetworks` is for, as far as nodes show it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{MISPLACED_WIREGUARD_IP, UMBRELLA_RANGE};
use crate::fleet::Member;
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::mesh::{self, Anchor, Networks, PodRanges, Range, WireguardAddresses};
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::rules::Finding;
use crate::rules::endpoints::MISSING_CARRIER;
use crate::text::{list, listed};

/// The WireGuard address of a candidate, and which range of the list holds it.
struct FlatRange<'a> {
    candidate: &'a PeerCandidate,
    address: IpAddr,
    range: usize,
}

/// Returns findings about one cluster, if it declares its ranges as a flat list.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let Networks::Flat { allowed } = &member.entry.networks else {
        return Vec::new();
    };
    let held = held(member, allowed);
    let home = home(&held, allowed);
    let mut findings = uncarried(member, allowed);
    findings.extend(without_effect(member, allowed, &held));
    if let Some((_, home)) =
        home.filter(|(_, range)| holds_pods(range, &member.membership.candidates))
    {
        findings.push(umbrella(member, home));
    }
    let strays = held.iter().filter(|it| home.map(|home| home.0) != Some(it.range));
    findings.extend(strays.filter_map(|stray| {
        let range = allowed.get(stray.range)?;
        let home = home.map(|(_, range)| range);
        Some(misplaced(member, stray, range, home))
    }));
    findings
}

/// Reports ranges of nodes that no anchor carries although the entry requests it. An entry without any range in an anchor is
/// a mistake of its own.
fn uncarried(member: &Member, allowed: &[Range]) -> Vec<Finding> {
    let (entry, anchored) = (member.entry, &member.cluster.anchored);
    let names = |it: &Anchor| it.ranges.is_some() && !it.nodes.is_empty();
    let candidates = &member.membership.candidates;
    if candidates.is_empty() || !entry.anchors.iter().any(names) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if entry.advertise.pods == PodRanges::Declared {
        let has_pods = |range: Cidr| {
            let mut pods = candidates.iter().flat_map(|it| &it.pods);
            pods.any(|it| range.contains(*it))
        };
        let is_left = |it: &&Range| !anchored.pods.contains(&it.cidr) && has_pods(it.cidr);
        let left: Vec<&Range> = allowed.iter().filter(is_left).collect();
        if !left.is_empty() {
            findings.push(uncarried_ranges(member, &left, "podCIDRs", "pod CIDRs"));
        }
    }
    if entry.advertise.wireguard == WireguardAddresses::Carrier && anchored.subnet.is_none() {
        let is_subnet = |it: &&Range| {
            let nodes = member.cluster.nodes.iter();
            let mut addresses = nodes.filter_map(|node| node.kilo.wireguard_ip());
            addresses.any(|address| it.cidr.holds(address.address))
        };
        let left: Vec<&Range> = allowed.iter().filter(is_subnet).collect();
        findings.push(uncarried_ranges(member, &left, "wireguardAddresses", "WireGuard addresses"));
    }
    findings
}

/// Reports ranges in anchors of which each node carries its own part.
fn without_effect(member: &Member, allowed: &[Range], held: &[FlatRange]) -> Vec<Finding> {
    let entry = member.entry;
    let candidates = &member.membership.candidates;
    let shared: BTreeSet<Cidr> = member.cluster.shared.iter().copied().collect();
    let declared: BTreeMap<Cidr, &Range> = allowed.iter().map(|it| (it.cidr, it)).collect();
    let pods: Prefixes<()> =
        candidates.iter().flat_map(|it| &it.pods).map(|it| (*it, ())).collect();
    let addresses: Prefixes<()> = held.iter().map(|it| (Cidr::host(it.address), ())).collect();
    let named = entry.anchors.iter().flat_map(|anchor| {
        let place = anchor.place.key("ranges");
        let ranges = anchor.ranges.iter().flatten().enumerate();
        ranges.map(move |(index, cidr)| Range { cidr: *cidr, place: place.index(index) })
    });
    let found = named.filter(|it| !shared.contains(&it.cidr)).filter_map(|range| {
        let declared = *declared.get(&range.cidr)?;
        let count = |all: &Prefixes<()>| all.within(Span::new(range.cidr)).len();
        let has_pods = 0 < count(&pods);
        let has_subnet = count(&addresses) == candidates.len();
        let (what, is_advertised, value) = if has_pods {
            ("pod CIDR", entry.advertise.pods == PodRanges::Declared, Some("podCIDRs: Declared"))
        } else if has_subnet {
            let is_advertised = entry.advertise.wireguard == WireguardAddresses::Carrier;
            ("address", is_advertised, Some("wireguardAddresses: Carrier"))
        } else {
            ("address", false, None)
        };
        let finding =
            (!is_advertised).then(|| mesh::without_effect(&range, declared, what, value))?;
        Some(finding.about(&entry.name))
    });
    if candidates.is_empty() { Vec::new() } else { found.collect() }
}

fn uncarried_ranges(member: &Member, left: &[&Range], field: &str, what: &str) -> Finding {
    let entry = member.entry;
    let ranges = listed(left.iter().map(|it| it.cidr));
    let message = format!(
        "no item of `anchors` names {ranges} for one location, so the {what} of each node there are rendered"
    );
    let items = left.iter().map(|it| format!("{{ ranges: [{}], nodes: [NODE] }}", it.cidr));
    Finding::on_cluster(&MISSING_CARRIER, &entry.name, message)
        .at(entry.field("advertise").key(field), "")
        .at(entry.place.key("anchors").named(), "")
        .help(format!("write in `anchors`, without `count`: `{}`", list(items)))
}

/// Returns where the candidates' WireGuard addresses lie, except those that are not given to
/// anyone.
fn held<'a>(member: &'a Member, allowed: &[Range]) -> Vec<FlatRange<'a>> {
    let held = member.membership.candidates.iter().filter_map(|candidate| {
        let node = member.cluster.node(candidate.leader.as_str())?;
        let address = node.kilo.wireguard_ip()?.address;
        let range = allowed.iter().position(|it| it.cidr.holds(address))?;
        let is_given = candidate.hosts.contains(&Cidr::host(address));
        is_given.then_some(FlatRange { candidate, address, range })
    });
    held.collect()
}

/// Returns the range in which more than half of the addresses lie.
fn home<'a>(held: &[FlatRange], allowed: &'a [Range]) -> Option<(usize, &'a Range)> {
    let mut counts = vec![0; allowed.len()];
    for it in held {
        if let Some(count) = counts.get_mut(it.range) {
            *count += 1;
        }
    }
    let home = counts.iter().position(|count| held.len() < 2 * count)?;
    Some((home, allowed.get(home)?))
}

/// Returns whether more than half of the candidates have pods in a range.
fn holds_pods(range: &Range, candidates: &[PeerCandidate]) -> bool {
    let is_inside = |pods: &Cidr| range.cidr.contains(*pods);
    let inside = candidates.iter().filter(|it| it.pods.iter().any(is_inside));
    candidates.len() < 2 * inside.count()
}

fn umbrella(member: &Member, range: &Range) -> Finding {
    let message = format!(
        "{} contains both pod CIDRs and WireGuard addresses; other addresses in it are not \
         reachable",
        range.cidr
    );
    Finding::on_cluster(&UMBRELLA_RANGE, &member.entry.name, message)
        .at(range.place.clone(), "declared here")
        .help(
            "declare separate ranges: `podCIDRs`, `wireguardCIDR` and, for services, `serviceCIDR`",
        )
}

fn misplaced(member: &Member, stray: &FlatRange, range: &Range, home: Option<&Range>) -> Finding {
    let (address, own) = (stray.address, range.cidr);
    let elsewhere = match home {
        Some(home) => format!("those of most nodes are in {}", home.cidr),
        None => "those of other nodes are not".to_owned(),
    };
    let message = format!("WireGuard address {address} is in {own}, but {elsewhere}");
    let node = stray.candidate.leader.as_str();
    let cluster = &member.entry.name;
    let place = stray.candidate.place.key("annotations");
    Finding::on_node(&MISPLACED_WIREGUARD_IP, cluster, node, message)
        .at(place.key(annotation::WIREGUARD_IP), "")
        .at(range.place.clone(), "contains it")
        .help("declare Kilo's subnet as `wireguardCIDR`, so that addresses outside it are rejected")
}
