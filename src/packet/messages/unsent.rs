//! Packets that cannot be: between two ends, one of which does not exist for Kilo.

use std::net::IpAddr;

use super::{called, whose};
use crate::agent::fabric::{Fabric, Site, SiteId};
use crate::diagnostic::Finding;
use crate::mesh::{Entry, Networks, Range};
use crate::net::family;
use crate::packet::rule;
use crate::packet::trace::NoEnd;

/// Returns why no packet can be followed, if that is an answer and not a mistake in the name of an end. The
/// other end, where it is known, is in a cluster that the address is not in.
pub fn unsent(fabric: &Fabric, reason: &NoEnd, other: Option<SiteId>) -> Option<Finding> {
    match reason {
        NoEnd::Nobody { address, cluster } => {
            Some(undeclared(fabric, *address, cluster.as_deref(), other))
        }
        NoEnd::Unassigned { address, cluster } => unassigned(fabric, *address, cluster),
        NoEnd::Families { from, to } => {
            let [sender, receiver] = [from, to].map(|it| whose(fabric, it.site, it.address));
            let [one, two] = [from, to].map(|it| family(it.address));
            let message = format!(
                "no packet goes from {one} to {two}: {sender} has {}, and {receiver} has {}",
                from.address, to.address
            );
            let help = "give two ends that have addresses of the same family";
            Some(Finding::new(&rule::NO_COMMON_FAMILY, message).help(help))
        }
        NoEnd::Cluster(_)
        | NoEnd::Node { .. }
        | NoEnd::NoAddress { .. }
        | NoEnd::Several { .. }
        | NoEnd::Unreadable(_)
        | NoEnd::Port(_)
        | NoEnd::PortOfName(..)
        | NoEnd::Range(_)
        | NoEnd::Silent { .. }
        | NoEnd::OneCluster(_) => None,
    }
}

fn undeclared(
    fabric: &Fabric,
    address: IpAddr,
    cluster: Option<&str>,
    other: Option<SiteId>,
) -> Finding {
    let rule = &rule::UNDECLARED_ADDRESS;
    if let Some(at) = fabric.first_at(address) {
        let node = called(fabric, at);
        let message = format!(
            "{address} is in no declared range: other clusters can dial {node} there, and such packets \
             use no tunnel"
        );
        let help = format!("write `{node}` instead of the address");
        return Finding::new(rule, message).help(help);
    }
    if !is_routed(address) {
        let message = format!("{address} is not an address that is routed between clusters");
        return Finding::new(rule, message).help("give the address of a pod, a node or a Service");
    }
    let owner = fabric
        .sites
        .iter()
        .find(|it| it.entry.networks.all().iter().any(|range| range.cidr.holds(address)));
    if let (Some(name), Some(owner)) = (cluster, owner) {
        let message = format!(
            "{address} is in no range that {name} declares, but in one of {}",
            owner.cluster
        );
        return Finding::new(rule, message).help(format!("write `{}/{address}`", owner.cluster));
    }
    let of_others = || {
        let mut others = fabric.sites.numbered().filter(|it| Some(it.0) != other);
        others.next().map(|it| it.0).filter(|_| others.next().is_none())
    };
    let site = match cluster {
        Some(name) => fabric.site_named(name),
        None => of_others(),
    };
    let declares = cluster.unwrap_or("any cluster");
    let message = format!("{address} is in no range that {declares} declares");
    let Some(entry) = site.map(|it| fabric.site(it).entry) else {
        return Finding::new(rule, message).help(
            "if it is a Service, declare `serviceCIDR` in the entry of its cluster; if it is in another network, add the \
             network to `additionalCIDRs` there",
        );
    };
    let (text, help) = remedy(entry);
    Finding::new(rule, message).at(Some(entry.place.clone()), text).help(help)
}

/// Returns whether a mesh may declare an address: not those of one machine or one link, and no multicast.
fn is_routed(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(it) => it.is_link_local() || it.is_broadcast(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_multicast() || address.is_unspecified())
}

/// Returns what an entry lacks if an address is of its cluster, and how to add it.
fn remedy(entry: &Entry) -> (&'static str, String) {
    let name = &entry.name;
    match &entry.networks {
        Networks::Typed { services: None, .. } => (
            "declares no `serviceCIDR`",
            format!(
                "if it is a Service of {name}, declare `serviceCIDR` there; if it is in another network of {name}, add the \
                 network to `additionalCIDRs`"
            ),
        ),
        Networks::Typed { .. } => (
            "declares other ranges",
            format!("if it is in another network of {name}, add the network to `additionalCIDRs`"),
        ),
        Networks::Flat { .. } => (
            "declares other ranges",
            format!(
                "if it is a Service of {name}, add the range of its services to `allowedNetworks`"
            ),
        ),
    }
}

fn unassigned(fabric: &Fabric, address: IpAddr, cluster: &str) -> Option<Finding> {
    let entry = fabric.site(fabric.site_named(cluster)?).entry;
    let holds = |it: &&Range| it.cidr.holds(address);
    let range = entry.networks.all().into_iter().find(holds)?;
    // A narrower range is that of a node which is gone.
    let sends = |site: &Site| {
        site.model.tunnels.holding(address).next().is_some_and(|slot| {
            let (around, claims) = site.model.tunnels.at(slot);
            around == range.cidr && claims.iter().any(|it| it.peer().is_some())
        })
    };
    let is_sent =
        (fabric.sites.iter()).filter(|it| it.cluster.as_str() != cluster).any(|it| sends(it));
    let message = format!(
        "{address} is in {} of {cluster}, but is neither an address of a node in its snapshot nor in the pod CIDR of one{}",
        range.cidr,
        if is_sent {
            "; other clusters send packets to it to the leader that carries the range, which sends them on by its default \
             route"
        } else {
            ""
        }
    );
    let help = format!("if a node has it now, run `clustermesh snapshot {cluster}`");
    let finding = Finding::new(&rule::UNASSIGNED_ADDRESS, message);
    Some(finding.at(Some(range.place.clone()), "declared here").help(help))
}
