//! Controls in meshes and policies: what each cluster accepts and protects, and groups.

use std::collections::BTreeSet;

use super::{Control, ControlValue, Controls, NamedControls};
use crate::expectations::{Expected, Selection};
use crate::mesh::{Entry, Group, Mesh, PodSource};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::policy::Policy;

/// Returns the controls of both versions under the same names.
pub(super) fn controls(old: &Controls, new: &Controls) -> [NamedControls; 2] {
    let used = used_groups(old);
    let mut both = [(old, new), (new, old)].map(|(it, other)| {
        let mut named = NamedControls::new();
        for mesh in it.meshes {
            let twin = other.meshes.iter().find(|it| it.name == mesh.name);
            add_mesh(&mut named, mesh, twin);
        }
        for policy in it.policies {
            add_policy(&mut named, policy);
        }
        let groups = it.meshes.iter().flat_map(|it| &it.groups).chain(&it.config.groups);
        named.extend(groups.map(|it| of_group(it, &used)));
        named
    });
    rename_meshes(&mut both, old, new);
    // A control that left with its cluster is not weaker.
    let known: BTreeSet<&ClusterName> = members(new).map(|it| it.1).collect();
    let is_in_both = |mesh: &Mesh, cluster: &ClusterName| {
        let mut meshes = new.meshes.iter().filter(|it| it.name == mesh.name);
        meshes.any(|it| it.entry(cluster).is_some())
    };
    for (mesh, cluster) in members(old) {
        let of_mesh = in_mesh(cluster, mesh.name.as_str());
        let of_policy = in_policy(cluster);
        for (subject, control) in &mut both[0] {
            let is_gone = subject.ends_with(&of_mesh) && !is_in_both(mesh, cluster)
                || subject.ends_with(&of_policy) && !known.contains(cluster);
            if is_gone {
                control.value = ControlValue::Other;
            }
        }
    }
    if old.expectations.denied.is_some() {
        let links = [old, new].map(|it| links(it, old));
        for (named, links) in both.iter_mut().zip(links) {
            let control = Control::new(links, None, ControlValue::Other);
            named.insert("links between the clusters".to_owned(), control);
        }
    }
    both
}

fn members<'c>(controls: &Controls<'c>) -> impl Iterator<Item = (&'c Mesh, &'c ClusterName)> {
    let meshes = controls.meshes.iter();
    meshes.flat_map(|mesh| mesh.all_entries().map(move |it| (mesh, &it.name)))
}

/// Returns the end of the names of what a mesh has for a cluster.
fn in_mesh(cluster: &ClusterName, mesh: &str) -> String {
    format!(" of {cluster} in the mesh {mesh}")
}

/// Returns the end of the names of what a policy has for its cluster.
fn in_policy(cluster: &ClusterName) -> String {
    format!(" in the policy of {cluster}")
}

/// Gives the controls of a cluster in a mesh that is gone the names of those in the only new mesh of it.
fn rename_meshes(both: &mut [NamedControls; 2], old: &Controls, new: &Controls) {
    let is_in = |all: &Controls, mesh: &Mesh| all.meshes.iter().any(|it| it.name == mesh.name);
    for (mesh, cluster) in members(old).filter(|it| !is_in(new, it.0)) {
        let other = members(new).find(|it| it.1 == cluster && !is_in(old, it.0));
        let Some((other, _)) = other else {
            continue;
        };
        let end = in_mesh(cluster, mesh.name.as_str());
        let subjects = both[0].keys().filter(|it| it.ends_with(&end));
        let subjects: Vec<String> = subjects.cloned().collect();
        for subject in subjects {
            if let Some(control) = both[0].remove(&subject) {
                let field = subject.trim_end_matches(&end);
                both[0]
                    .insert(format!("{field}{}", in_mesh(cluster, other.name.as_str())), control);
            }
        }
    }
}

/// Adds the controls of a mesh. Fields that decide nothing are compared only if the other version has the cluster, too.
fn add_mesh(named: &mut NamedControls, mesh: &Mesh, twin: Option<&Mesh>) {
    let name = mesh.name.as_str();
    for entry in mesh.all_entries() {
        let mut add = |field: &str, values: Vec<String>, value: ControlValue| {
            let place = entry.field(field);
            let control = Control::new(values, Some(place), value);
            named.insert(format!("`{field}`{}", in_mesh(&entry.name, name)), control);
        };
        if let Some(accepted) = &entry.accepted {
            let accepted: Vec<Cidr> = accepted.iter().map(|it| it.cidr).collect();
            add("acceptedNetworks", texts(&accepted), ControlValue::AcceptedRanges(accepted));
        }
        // Those of a policy are among them, at a place of its own.
        let local = entry.local_networks.iter();
        let local = local.filter(|it| it.place.source == entry.place.source);
        let local: Vec<_> = local.map(|it| it.cidr).collect();
        if !local.is_empty() {
            add("localNetworks", texts(&local), ControlValue::Protected(local));
        }
        let services = entry.accepted_services.iter().map(ToString::to_string);
        let services: BTreeSet<String> = services.collect();
        if !services.is_empty() {
            let values = services.iter().cloned().collect();
            add("acceptedServices", values, ControlValue::AllowedNames(services));
        }
        if entry.pod_source == Some(PodSource::Kept) {
            add("podSource", vec!["Kept".to_owned()], ControlValue::Exemption);
        }
        let is_in_both = twin.is_some_and(|it| it.entry(&entry.name).is_some());
        let others = others(entry).into_iter().filter(|it| is_in_both && !it.1.is_empty());
        for (field, values) in others {
            add(field, values, ControlValue::Other);
        }
    }
    let Some(twin) = twin else {
        return;
    };
    let order = mesh.entries.iter().map(|it| &it.name).filter(|it| twin.entry(it).is_some());
    let order = Control::new(order, Some(mesh.place.key("spec")), ControlValue::Other);
    named.insert(format!("order of the entries of the mesh {name}"), order);
    for host in &mesh.externals {
        let clusters = host.clusters.iter().map(ToString::to_string);
        let ranges = host.entry.networks.all().into_iter().map(|it| it.cidr.to_string());
        let place = Some(host.entry.place.clone());
        let control = Control::new(clusters.chain(ranges), place, ControlValue::Other);
        named.insert(format!("external peer {} of the mesh {name}", host.entry.name), control);
    }
}

/// Returns the fields that decide nothing here.
fn others(entry: &Entry) -> [(&'static str, Vec<String>); 3] {
    let underlays = entry.underlays.iter().map(|it| {
        let ranges = it.cidrs.iter().map(|it| it.cidr.to_string());
        format!("{}: {}", it.name, ranges.collect::<Vec<_>>().join(", "))
    });
    [
        ("nodeSelector", entry.values("nodeSelector")),
        ("endpointDomains", entry.values("endpointDomains")),
        ("underlays", underlays.collect()),
    ]
}

fn add_policy(named: &mut NamedControls, policy: &Policy) {
    for (field, values, place) in policy.limits() {
        let ranges = values.iter().filter_map(|it| it.parse().ok()).collect();
        let value = match field {
            "acceptedClusters" => ControlValue::AcceptedNames(values.iter().cloned().collect()),
            "acceptedNetworks" => ControlValue::AcceptedRanges(ranges),
            _ => ControlValue::Protected(ranges),
        };
        let control = Control::new(values, Some(place), value);
        named.insert(format!("`{field}`{}", in_policy(&policy.cluster)), control);
    }
}

/// Returns a group. Without one of its members, what forbids something for the group forbids less.
fn of_group(group: &Group, used: &BTreeSet<&str>) -> (String, Control) {
    let members = group.clusters.iter().map(ToString::to_string);
    let members: BTreeSet<String> = members.collect();
    let value = if used.contains(&*group.name) {
        ControlValue::KeptNames(members.clone())
    } else {
        ControlValue::Other
    };
    let control = Control::new(members, Some(group.place.clone()), value);
    (format!("group `{}`", group.name), control)
}

/// Returns the groups for which an expectation denies paths.
fn used_groups<'c>(controls: &Controls<'c>) -> BTreeSet<&'c str> {
    let denied = controls.expectations.expectations.iter();
    let denied = denied.filter(|it| it.expected == Expected::Deny);
    let group = |it: &'c Selection| it.clusters.as_ref()?.group.as_deref();
    denied.flat_map(|it| [&it.from, &it.to]).filter_map(group).collect()
}

/// Returns the links of a version between clusters of the old one.
fn links(controls: &Controls, old: &Controls) -> BTreeSet<String> {
    let known: BTreeSet<&ClusterName> = members(old).map(|it| it.1).collect();
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
    links
}

fn texts(values: &[Cidr]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
