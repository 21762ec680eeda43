//! Limits in meshes and policies: what each cluster accepts and protects. Fields that decide nothing are listed, too.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Controls;
use super::limit::{Limit, Passing};
use super::lineage::{CountedClusters, old_names};
use crate::mesh::{Entry, Mesh, PodSource};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::place::Place;
use crate::policy::Policy;

/// Returns the limits of a version. The order and external peers of a mesh are listed if the other version has it.
pub(super) fn limits<'c>(
    it: &Controls<'c>,
    other: &Controls,
    counted: &CountedClusters,
) -> Vec<Limit<'c>> {
    let mut limits = Vec::new();
    for mesh in it.meshes {
        for entry in mesh.all_entries() {
            limits.extend(of_entry(mesh, entry));
        }
        if let Some(twin) = other.meshes.iter().find(|it| it.name == mesh.name) {
            limits.extend(undecided(mesh, twin));
        }
    }
    for cluster in it.clusters() {
        let policy = it.policies.iter().find(|it| it.cluster == *cluster);
        limits.extend(of_policy(it.meshes, cluster, policy, counted));
    }
    limits.extend(it.meshes.iter().flat_map(|it| &it.groups).chain(&it.config.groups).map(|it| {
        let (subject, place) = (format!("group `{}`", it.name), Some(it.place.clone()));
        Limit::new(subject, &it.clusters, place, Passing::Undecided)
    }));
    limits
}

/// Returns the limits of a cluster in a mesh.
fn of_entry<'c>(mesh: &'c Mesh, entry: &'c Entry) -> impl Iterator<Item = Limit<'c>> {
    let own = |it: &Place| it.source == entry.place.source;
    // Those of a policy are among them, at a place of its own.
    let local = entry.local_networks.iter().filter(|it| own(&it.place)).map(|it| it.cidr);
    let (local, all) = (local.collect::<Vec<_>>(), local_networks(entry));
    let accepted: Option<Vec<Cidr>> =
        entry.accepted.as_ref().map(|it| it.iter().map(|it| it.cidr).collect());
    let services: BTreeSet<String> =
        entry.accepted_services.iter().map(ToString::to_string).collect();
    let kept = entry.pod_source.filter(|it| *it == PodSource::Kept);
    let some = |values: Vec<String>| Some(values).filter(|it| !it.is_empty());
    let undecided = |field, values| (field, some(values), Passing::Undecided, None);
    let limits = [
        (
            "acceptedNetworks",
            accepted.as_deref().map(texts),
            Passing::Ranges(accepted.unwrap_or_else(everything)),
            Some(Passing::Ranges(accepted_in_effect(entry))),
        ),
        (
            "localNetworks",
            some(texts(&local)),
            Passing::Ranges(outside(&local)),
            Some(Passing::Ranges(outside(&all))),
        ),
        (
            "acceptedServices",
            some(services.iter().cloned().collect()),
            Passing::Names(Some(services)),
            None,
        ),
        (
            "podSource",
            kept.map(|_| vec!["Kept".to_owned()]),
            Passing::UpTo(kept.map_or(0, |_| 1), None),
            None,
        ),
        undecided("nodeSelector", entry.values("nodeSelector")),
        undecided("endpointDomains", entry.values("endpointDomains")),
        undecided("underlays", entry.values("underlays")),
    ];
    limits.into_iter().map(move |(field, values, passing, in_effect)| {
        let subject = format!("`{field}` of {} in the mesh {}", entry.name, mesh.name);
        let limit = Limit::new(subject, values.iter().flatten(), Some(entry.field(field)), passing);
        Limit {
            kind: field.to_owned(),
            cluster: Some(&entry.name),
            mesh: Some(mesh.name.as_str()),
            written: limit.written.filter(|_| values.is_some()),
            in_effect,
            is_permission: matches!(field, "acceptedServices" | "podSource"),
            ..limit
        }
    })
}

/// Returns the limits of the policy of a cluster, which hold in all of its meshes.
fn of_policy<'c>(
    meshes: &'c [Mesh],
    cluster: &'c ClusterName,
    policy: Option<&Policy>,
    counted: &CountedClusters,
) -> impl Iterator<Item = Limit<'c>> {
    let fields = policy.map(Policy::limits).unwrap_or_default();
    let entries: Vec<&Entry> = meshes.iter().filter_map(|it| it.entry(cluster)).collect();
    ["acceptedClusters", "acceptedNetworks", "localNetworks"].into_iter().map(move |field| {
        let written = fields.iter().find(|it| it.0 == field);
        let values = written.map(|it| it.1.clone());
        let ranges = || values.iter().flatten().filter_map(|it| it.parse().ok());
        let of_entries = |ranges: fn(&Entry) -> Vec<Cidr>| {
            let ranges = || entries.iter().flat_map(|it| ranges(it)).collect();
            (!entries.is_empty()).then(|| Passing::Ranges(ranges()))
        };
        let (passing, in_effect) = match field {
            "acceptedClusters" => {
                (Passing::Names(values.as_ref().map(|it| old_names(counted, it))), None)
            }
            "acceptedNetworks" => {
                let accepted = values.as_ref().map_or_else(everything, |_| ranges().collect());
                (Passing::Ranges(accepted), of_entries(accepted_in_effect))
            }
            _ => {
                let local: Vec<Cidr> = ranges().collect();
                let of_entry = |it: &Entry| outside(&local_networks(it));
                (Passing::Ranges(outside(&local)), of_entries(of_entry))
            }
        };
        let place = written.map(|it| it.2.clone());
        let subject = format!("`{field}` in the policy of {cluster}");
        let limit = Limit::new(subject, values.iter().flatten(), place, passing);
        Limit {
            kind: format!("{field} of a policy"),
            cluster: Some(cluster),
            written: limit.written.filter(|_| values.is_some()),
            in_effect,
            ..limit
        }
    })
}

/// Returns the order of those entries of a mesh that the other version has, too, and its external peers.
fn undecided<'c>(mesh: &'c Mesh, twin: &Mesh) -> impl Iterator<Item = Limit<'c>> {
    let name = mesh.name.as_str();
    let order = Limit::new(
        format!("order of the entries of the mesh {name}"),
        mesh.entries.iter().map(|it| &it.name).filter(|it| twin.entry(it).is_some()),
        Some(mesh.place.key("spec")),
        Passing::Undecided,
    );
    let hosts = mesh.externals.iter().map(move |host| {
        let clusters = host.clusters.iter().map(ToString::to_string);
        let ranges = host.entry.networks.all().into_iter().map(|it| it.cidr.to_string());
        let subject = format!("external peer {} of the mesh {name}", host.entry.name);
        let place = Some(host.entry.place.clone());
        Limit::new(subject, clusters.chain(ranges), place, Passing::Undecided)
    });
    std::iter::once(order).chain(hosts)
}

/// Returns the links of a version between clusters of the old one, as a limit that decides nothing.
pub(super) fn links<'c>(controls: &Controls<'c>, old: &Controls) -> Limit<'c> {
    let known: BTreeSet<&ClusterName> =
        old.meshes.iter().flat_map(Mesh::all_entries).map(|it| &it.name).collect();
    let mut links = BTreeSet::new();
    for mesh in controls.meshes {
        let names: Vec<&ClusterName> =
            mesh.all_entries().map(|it| &it.name).filter(|it| known.contains(it)).collect();
        for (place, one) in names.iter().enumerate() {
            for other in names.iter().skip(place + 1).filter(|it| mesh.links(one, it)) {
                let (first, second) = (one.min(other), one.max(other));
                links.insert(format!("{first} with {second}"));
            }
        }
    }
    Limit::new("links between the clusters".to_owned(), links, None, Passing::Undecided)
}

/// Returns the ranges that a cluster accepts in a mesh: those of its entry and of its policy.
fn accepted_in_effect(entry: &Entry) -> Vec<Cidr> {
    entry.accepted_lists().fold(everything(), |accepted, list| {
        let list = Prefixes::union(list.iter().map(|it| it.cidr));
        accepted.into_iter().flat_map(|it| list.common(it)).collect()
    })
}

fn local_networks(entry: &Entry) -> Vec<Cidr> {
    entry.local_networks.iter().map(|it| it.cidr).collect()
}

fn outside(ranges: &[Cidr]) -> Vec<Cidr> {
    everything().into_iter().flat_map(|it| it.without(ranges)).collect()
}

/// Returns all addresses.
fn everything() -> Vec<Cidr> {
    let address = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    address.into_iter().filter_map(|it| Cidr::host(it).widened(0)).collect()
}

fn texts(values: &[Cidr]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
