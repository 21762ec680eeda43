//! Narrow ranges: those with the internal addresses of some nodes on a LAN, and not of all.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::UNUSED_ADDRESS;
use crate::fleet::Member;
use crate::mesh::Range;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::rules::{Finding, bare};
use crate::text::{NAMED, count, listed};

/// The nodes on a LAN by whether a declared range contains their addresses.
#[derive(Default)]
struct LanNodes<'m> {
    inside: Vec<IpAddr>,
    outside: Vec<&'m str>,
}

/// Returns findings about one cluster: probably a prefix that is too long.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let declared = member.entry.networks.all();
    let all = Prefixes::union(declared.iter().map(|it| it.cidr));
    let mut lans: BTreeMap<Cidr, LanNodes> = BTreeMap::new();
    for node in &member.cluster.nodes {
        let kilo = &node.kilo;
        if let (Some(lan), Some(address)) = (kilo.lan, kilo.internal_address()) {
            let nodes = lans.entry(lan).or_default();
            if all.contain(Cidr::host(address)) {
                nodes.inside.push(address);
            } else {
                nodes.outside.push(kilo.name.as_str());
            }
        }
    }
    let parted = lans.iter().filter(|(_, it)| !it.inside.is_empty() && !it.outside.is_empty());
    let found = parted.take(NAMED).filter_map(|(lan, nodes)| {
        let first = nodes.inside.first()?;
        let range = declared.iter().find(|it| it.cidr.holds(*first))?;
        lan.contains(range.cidr).then(|| narrow(member, *lan, nodes, range))
    });
    found.collect()
}

fn narrow(member: &Member, lan: Cidr, nodes: &LanNodes, range: &Range) -> Finding {
    let inside = nodes.inside.iter().filter(|it| range.cidr.holds(**it)).count();
    let outside = listed(nodes.outside.iter().map(|it| bare(it)));
    let of = count(nodes.inside.len() + nodes.outside.len(), "node");
    let message = format!(
        "{} contains the internal IPs of {inside} of {of} on the LAN {lan}, but not those of {outside}",
        range.cidr
    );
    Finding::on_cluster(&UNUSED_ADDRESS, &member.entry.name, message)
        .at(range.place.clone(), "")
        .help(format!("write {lan} instead if other clusters should reach these nodes"))
}
