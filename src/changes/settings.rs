//! Causes in settings: lines of meshes and of the config that are other ones.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::{Cause, ChangedSetting, ChangedValue, FORM};
use super::clusters::Counterparts;
use super::{Version, Versions};
use crate::fleet::Fleet;
use crate::mesh::{Entry, ExternalPeer, Mesh, Networks, Range, RefusedLink, State, Topology};
use crate::name::{ClusterName, MeshName};
use crate::net::Cidr;
use crate::place::Place;

/// Finds the settings that differ: those of each mesh that is in both versions, and those of each
/// cluster.
pub(super) fn causes(
    versions: Versions<&Version, &Version>,
    fleets: Versions<&Fleet>,
    counterparts: &Counterparts,
) -> Vec<Cause> {
    let mut settings = Vec::new();
    let (had, has) = (meshes(fleets.before), meshes(fleets.after));
    for (name, mesh) in &has {
        let old = had.get(name);
        let value = old.and_then(|it| of_items(&links(&it.topology), &links(&mesh.topology)));
        if let Some((old, value)) = old.zip(value) {
            let place = |mesh: &Mesh| mesh.place.key("spec").key("topology");
            settings.push(ChangedSetting {
                cluster: None,
                field: "topology",
                before: Some(place(old)),
                after: Some(place(mesh)),
                value,
            });
        }
        settings.extend(old.and_then(|old| of_policies(old, mesh)));
    }
    let renamed = renamed_mesh(versions, counterparts);
    settings.extend(renamed.map(|Versions { before, after }| {
        let place = |mesh: &Mesh| Some(mesh.place.key("metadata").key("name"));
        ChangedSetting {
            cluster: None,
            field: "metadata.name",
            before: place(before),
            after: place(after),
            value: listed(Some(&before.name), Some(&after.name)),
        }
    }));
    for members in counterparts.members(fleets) {
        let entries = members.map(|it| it.entry);
        settings.extend(of_entry(entries.before, entries.after));
        let hosts = members.map(|it| it.mesh.external(&it.entry.name));
        settings.extend(hosts.before.zip(hosts.after).and_then(of_clusters));
    }
    let settings = settings.into_iter().map(Cause::Setting);
    settings.chain(moves(versions, counterparts, renamed)).collect()
}

/// Compares the clusters that an external peer reaches.
fn of_clusters((old, new): (&ExternalPeer, &ExternalPeer)) -> Option<ChangedSetting> {
    let clusters = |it: &ExternalPeer| it.clusters.iter().map(ToString::to_string).collect();
    let [had, has]: [Vec<String>; 2] = [old, new].map(clusters);
    Some(ChangedSetting {
        cluster: Some(new.entry.name.clone()),
        field: "clusters",
        before: Some(old.entry.place.key("clusters")),
        after: Some(new.entry.place.key("clusters")),
        value: of_items(&had, &has)?,
    })
}

/// Compares the links of a mesh that policies accept, apart from links that only one version has. A refused link counts as
/// removed.
fn of_policies(old: &Mesh, new: &Mesh) -> Option<ChangedSetting> {
    let refused = |mesh: &Mesh| {
        let is_in_both = |it: &RefusedLink| {
            let mut meshes = [old, new].into_iter();
            meshes.all(|mesh| mesh.topology.links(&it.by, &it.other))
        };
        let links = mesh.refused.all().filter(is_in_both);
        let named = links.map(|RefusedLink { by, other, place }| {
            let (one, other) = (by.clone().min(other.clone()), by.max(other));
            (format!("{one} with {other}"), place)
        });
        named.collect::<BTreeMap<String, Place>>()
    };
    let (had, has) = (refused(old), refused(new));
    let only = |all: &BTreeMap<String, Place>, others: &BTreeMap<String, Place>| {
        all.iter().find(|it| !others.contains_key(it.0)).map(|it| it.1.clone())
    };
    let [before, after] = [&had, &has].map(|it| it.keys().cloned().collect::<Vec<_>>());
    Some(ChangedSetting {
        cluster: None,
        field: "acceptedClusters",
        before: only(&had, &has),
        after: only(&has, &had),
        value: of_items(&after, &before)?,
    })
}

fn meshes<'a>(fleet: &Fleet<'a>) -> BTreeMap<&'a str, &'a Mesh> {
    let members = fleet.members().iter();
    members.map(|it| (it.mesh.name.as_str(), it.mesh)).collect()
}

/// Returns the only mesh that is gone and the only one that is new, if a cluster is in both: the mesh has
/// another name. Names of Peers begin with it.
fn renamed_mesh<'m>(
    versions: Versions<&Version<'m, '_>, &Version<'m, '_>>,
    counterparts: &Counterparts,
) -> Option<Versions<&'m Mesh>> {
    let only = |all: &'m [Mesh], others: &[Mesh]| {
        let is_other = |mesh: &&Mesh| others.iter().all(|it| it.name != mesh.name);
        let mut found = all.iter().filter(is_other);
        found.next().filter(|_| found.next().is_none())
    };
    let had = versions.before.asked.meshes;
    let has = versions.after.asked.meshes;
    let (before, after) = (only(had, has)?, only(has, had)?);
    let mut clusters = counterparts.names();
    let is_in_both = clusters.any(|(old, new)| contains(before, old) && contains(after, new));
    is_in_both.then_some(Versions { before, after })
}

fn contains(mesh: &Mesh, cluster: &ClusterName) -> bool {
    mesh.entry(cluster).is_some()
}

/// Finds the clusters that are in both versions, but not in the same meshes, or not in the same state there.
/// Fleets have only the entries that exchange Peers.
fn moves(
    Versions { before, after }: Versions<&Version, &Version>,
    counterparts: &Counterparts,
    renamed: Option<Versions<&Mesh>>,
) -> Vec<Cause> {
    let new_name = |mesh: &Mesh| match renamed {
        Some(it) if it.before.name == mesh.name => it.after.name.clone(),
        _ => mesh.name.clone(),
    };
    let mut causes = Vec::new();
    for (was, is) in counterparts.names() {
        let (old, new) = (
            entries(before.asked.meshes, was, new_name),
            entries(after.asked.meshes, is, new_name),
        );
        for (mesh, (_, entry)) in &new {
            let cluster = is.clone();
            causes.extend(match old.get(mesh) {
                Some((_, it)) if it.state == entry.state => None,
                Some((_, it)) => Some(Cause::Setting(ChangedSetting {
                    cluster: Some(cluster),
                    field: "state",
                    before: Some(it.place.key("state")),
                    after: Some(entry.place.key("state")),
                    value: ChangedValue::State { from: it.state, to: entry.state },
                })),
                None if entry.state == State::Joined => {
                    Some(Cause::MeshJoined { cluster, mesh: mesh.clone() })
                }
                None => Some(Cause::ClusterAdded {
                    cluster,
                    mesh: Some(mesh.clone()),
                    state: entry.state,
                }),
            });
        }
        let left = old.iter().filter(|it| !new.contains_key(it.0));
        causes.extend(left.map(|(_, (mesh, _))| Cause::MeshLeft {
            cluster: is.clone(),
            mesh: mesh.name.clone(),
        }));
    }
    causes
}

/// Returns the entries of a cluster, each with its mesh, by the new name of the mesh.
fn entries<'m>(
    meshes: &'m [Mesh],
    cluster: &ClusterName,
    new_name: impl Fn(&Mesh) -> MeshName,
) -> BTreeMap<MeshName, (&'m Mesh, &'m Entry)> {
    let found = meshes.iter().filter_map(|mesh| {
        let entry = mesh.entry(cluster)?;
        Some((new_name(mesh), (mesh, entry)))
    });
    found.collect()
}

/// Returns whether two entries of a cluster declare anything different.
pub(super) fn differ(old: &Entry, new: &Entry) -> bool {
    !of_entry(old, new).is_empty()
}

/// Compares two entries of a cluster.
fn of_entry(old: &Entry, new: &Entry) -> Vec<ChangedSetting> {
    let mut settings = of_networks(old, new);
    let place = |entry: &Entry, field: &str| Some(entry.field(field));
    let keepalive = |entry: &Entry| entry.keepalive.map(|it| it.0);
    let whole = |field| all_listed(old.values(field), new.values(field));
    let fields = [
        ("wireguardPort", differing(Some(old.port), Some(new.port))),
        ("persistentKeepalive", differing(keepalive(old), keepalive(new))),
        ("granularity", differing(old.granularity, new.granularity)),
        ("topologyLabel", differing(Some(&old.topology_label), Some(&new.topology_label))),
        ("nodeSelector", of_items(&old.selector.conditions(), &new.selector.conditions())),
        ("endpointFrom", whole("endpointFrom")),
        ("endpointDomains", whole("endpointDomains")),
        ("podSource", whole("podSource")),
        ("underlays", of_items(&old.values("underlays"), &new.values("underlays"))),
        ("anchors", of_items(&anchors(old), &anchors(new))),
        ("advertise", differing(Some(old.advertise), Some(new.advertise))),
    ];
    let changed = fields.into_iter();
    let changed = changed.filter_map(|(field, value)| Some((field, value?)));
    settings.extend(changed.map(|(field, value)| ChangedSetting {
        cluster: Some(new.name.clone()),
        field,
        before: place(old, field),
        after: place(new, field),
        value,
    }));
    settings
}

/// Returns two lists as a whole, if they differ: their order counts.
fn all_listed(before: Vec<String>, after: Vec<String>) -> Option<ChangedValue> {
    (before != after).then_some(ChangedValue::Listed { before, after })
}

/// Returns two values, if they differ.
fn differing<T: PartialEq + ToString>(before: Option<T>, after: Option<T>) -> Option<ChangedValue> {
    (before != after).then(|| listed(before, after))
}

fn listed<T: ToString>(before: Option<T>, after: Option<T>) -> ChangedValue {
    let text = |it: Option<T>| it.iter().map(ToString::to_string).collect();
    ChangedValue::Listed { before: text(before), after: text(after) }
}

/// Returns the items of two lists that only one of them has, if the lists differ.
fn of_items(before: &[String], after: &[String]) -> Option<ChangedValue> {
    let without = |all: &[String], others: &[String]| -> Vec<String> {
        all.iter().filter(|it| !others.contains(it)).cloned().collect()
    };
    (before != after).then(|| ChangedValue::Listed {
        before: without(before, after),
        after: without(after, before),
    })
}

/// Returns the anchors of an entry: `10.0.0.0/16 on n1, n2`.
fn anchors(entry: &Entry) -> Vec<String> {
    let anchors = entry.anchors.iter().map(|it| {
        let ranges = it.ranges.as_ref().map_or_else(
            || "all ranges".to_owned(),
            |ranges| ranges.iter().map(Cidr::to_string).collect::<Vec<_>>().join(", "),
        );
        let nodes: Vec<&str> = it.nodes.iter().map(|it| it.name.as_str()).collect();
        let count = match it.spread {
            0 => String::new(),
            spread => format!(", count {}", 1_u64 << spread),
        };
        format!("{ranges} on {}{count}", nodes.join(", "))
    });
    anchors.collect()
}

/// Returns what a topology declares: its mode, or the hubs or links.
fn links(topology: &Topology) -> Vec<String> {
    match topology {
        Topology::FullMesh => vec!["full mesh".to_owned()],
        Topology::Hub(hubs) => hubs.iter().map(|it| format!("hub {it}")).collect(),
        Topology::Links(pairs) => {
            pairs.iter().map(|(one, other)| format!("{one} with {other}")).collect()
        }
    }
}

fn of_networks(old: &Entry, new: &Entry) -> Vec<ChangedSetting> {
    let (mut had, mut has) = (networks(old), networks(new));
    let mut settings = Vec::new();
    let [from, to] = [old, new].map(form);
    if from != to {
        settings.push(ChangedSetting {
            cluster: None,
            field: FORM,
            before: Some(old.place.key(from)),
            after: Some(new.place.key(to)),
            value: ChangedValue::Listed { before: Vec::new(), after: Vec::new() },
        });
        // Ranges that are only in another field are the same.
        let cidrs = |lists: &RangeLists| -> BTreeSet<Cidr> {
            lists.values().flatten().map(|it| it.cidr).collect()
        };
        let (before, after) = (cidrs(&had), cidrs(&has));
        for list in had.values_mut().chain(has.values_mut()) {
            list.retain(|it| !before.contains(&it.cidr) || !after.contains(&it.cidr));
        }
    }
    for (lists, entry) in [(&mut had, old), (&mut has, new)] {
        let accepted = entry.accepted.clone().unwrap_or_default();
        lists.insert("acceptedNetworks", accepted);
        lists.insert("localNetworks", entry.local_networks.clone());
    }
    for field in had.keys() {
        has.entry(field).or_default();
    }
    let compared = has.iter().filter_map(|(field, has)| {
        let had = had.get(field).map_or(&[][..], Vec::as_slice);
        ranges(field, Versions::new(had, has))
    });
    settings.extend(compared);
    let of_policies = [old, new].map(|it| it.accepted_by_policy.as_deref().unwrap_or_default());
    let [before, after] = of_policies;
    settings.extend(ranges("acceptedNetworks", Versions::new(before, after)));
    for setting in &mut settings {
        setting.cluster = Some(new.name.clone());
    }
    settings
}

/// Ranges by their field.
type RangeLists = BTreeMap<&'static str, Vec<Range>>;

/// Returns the ranges that are a cluster's own.
fn networks(entry: &Entry) -> RangeLists {
    match &entry.networks {
        Networks::Typed { pods, wireguard, services, additional } => RangeLists::from([
            ("podCIDRs", pods.clone()),
            ("wireguardCIDR", vec![wireguard.clone()]),
            ("serviceCIDR", services.iter().cloned().collect()),
            ("additionalCIDRs", additional.clone()),
        ]),
        Networks::Flat { allowed } => RangeLists::from([(form(entry), allowed.clone())]),
    }
}

/// Returns the first field of the form of an entry.
fn form(entry: &Entry) -> &'static str {
    match entry.networks {
        Networks::Typed { .. } => "podCIDRs",
        Networks::Flat { .. } if entry.name.is_external() => "ranges",
        Networks::Flat { .. } => "allowedNetworks",
    }
}

/// Compares two lists of ranges by their content, and returns the first range that is only in one of
/// them.
fn ranges(field: &'static str, lists: Versions<&[Range]>) -> Option<ChangedSetting> {
    let only = |all: &[Range], others: &[Range]| -> Vec<Range> {
        let others: BTreeSet<Cidr> = others.iter().map(|it| it.cidr).collect();
        all.iter().filter(|it| !others.contains(&it.cidr)).cloned().collect()
    };
    let lost = only(lists.before, lists.after);
    let gained = only(lists.after, lists.before);
    let place = |ranges: &[Range]| ranges.first().map(|it| it.place.clone());
    let (before, after) = (place(&lost), place(&gained));
    // The order of ranges is the order of allowed IPs.
    let is_same = before.is_none() && after.is_none();
    (!is_same).then_some(ChangedSetting {
        cluster: None,
        field,
        before,
        after,
        value: ChangedValue::Listed {
            before: lost.iter().map(|it| it.cidr.to_string()).collect(),
            after: gained.iter().map(|it| it.cidr.to_string()).collect(),
        },
    })
}
