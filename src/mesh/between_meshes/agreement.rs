//! Agreement: fields that must be equal in all entries of one cluster.

use std::collections::BTreeSet;

use crate::diagnostic::{Finding, mistake};
use crate::net::Cidr;
use crate::place::Place;

use super::{MeshMember, MeshMembers};
use crate::mesh::{Entry, Networks, Range};

/// Returns every difference between two entries of one cluster.
pub(super) fn check(members: &MeshMembers) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, members) in members.shared() {
        let Some((first, rest)) = members.split_first() else {
            continue;
        };
        for later in rest {
            findings.extend(networks(later, first));
            findings.extend(fields(later, first));
        }
    }
    findings
}

fn networks(later: &MeshMember, first: &MeshMember) -> Option<Finding> {
    let (here, there) = (uses(later.entry), uses(first.entry));
    if here == there {
        return None;
    }
    let added = here.difference(&there).next();
    let removed = there.difference(&here).next();
    let said: Vec<String> = [(added, later), (removed, first)]
        .into_iter()
        .filter_map(|(only, member)| {
            let (field, cidr) = only?;
            Some(format!("{cidr} is in `{field}` only in `{}`", member.mesh.name))
        })
        .collect();
    let name = &later.entry.name;
    let message = format!("networks of `{name}` differ between meshes: {}", said.join(", "));
    let (here, there) = (place_of(later.entry, added), place_of(first.entry, removed));
    Some(differs(&message, later, first, here, there))
}

fn fields(later: &MeshMember, first: &MeshMember) -> Vec<Finding> {
    let granularity = |entry: &Entry| {
        let said = entry.granularity.map(|granularity| format!("`{granularity}`"));
        said.unwrap_or_else(|| "not set".to_owned())
    };
    let dns = |entry: &Entry| {
        let dns = entry.dns.as_ref().map(ToString::to_string);
        dns.unwrap_or_else(|| "not set".to_owned())
    };
    let pod_source = |entry: &Entry| {
        let source = entry.pod_source.map(|it| format!("`{it:?}`"));
        source.unwrap_or_else(|| "not set".to_owned())
    };
    let values = |entry: &Entry| {
        [
            ("localNetworks", local_networks(entry)),
            ("wireguardPort", entry.port.to_string()),
            ("granularity", granularity(entry)),
            ("topologyLabel", format!("`{}`", entry.topology_label)),
            ("advertise", format!("{{{}}}", entry.advertise)),
            ("dns", dns(entry)),
            ("podSource", pod_source(entry)),
            ("mtu", format!("{{{}}}", entry.mtu)),
            ("underlays", underlays(entry)),
        ]
    };
    values(later.entry)
        .into_iter()
        .zip(values(first.entry))
        .filter(|(here, there)| here != there)
        .map(|((field, here), (_, there))| {
            let name = &later.entry.name;
            let (mesh, other) = (&later.mesh.name, &first.mesh.name);
            let message = format!(
                "`{field}` of `{name}` is {here} in mesh `{mesh}`, but {there} in `{other}`"
            );
            let place = |member: &MeshMember| member.entry.place.key(field);
            differs(&message, later, first, place(later), place(first))
        })
        .collect()
}

/// Returns the networks of its own that an entry names, in order of address.
fn local_networks(entry: &Entry) -> String {
    let cidrs: BTreeSet<Cidr> = entry.local_networks.iter().map(|it| it.cidr).collect();
    let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
    format!("[{}]", cidrs.join(", "))
}

/// Returns the networks under the tunnels that an entry names, in order of name.
fn underlays(entry: &Entry) -> String {
    let underlays = entry.underlays.iter().map(|it| {
        let cidrs: BTreeSet<Cidr> = it.cidrs.iter().map(|it| it.cidr).collect();
        (&it.name, cidrs)
    });
    let underlays: BTreeSet<_> = underlays.collect();
    let named = underlays.iter().map(|(name, cidrs)| {
        let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
        format!("{name}: {}", cidrs.join(" "))
    });
    format!("[{}]", named.collect::<Vec<_>>().join(", "))
}

fn differs(
    message: &str,
    later: &MeshMember,
    first: &MeshMember,
    here: Place,
    there: Place,
) -> Finding {
    Finding::new(&mistake::INCONSISTENT_CLUSTER, message)
        .at(here, format!("in `{}`", later.mesh.name))
        .at(there, format!("in `{}`", first.mesh.name))
        .help("write the same values in all meshes of this cluster")
}

/// Returns each range with the field that it stands under, so that order makes no difference.
fn uses(entry: &Entry) -> BTreeSet<(&'static str, Cidr)> {
    let under = |field: &'static str, ranges: &[Range]| {
        let cidrs: Vec<_> = ranges.iter().map(|range| (field, range.cidr)).collect();
        cidrs
    };
    match &entry.networks {
        Networks::Flat { allowed } => under("allowedNetworks", allowed).into_iter().collect(),
        Networks::Typed { pods, wireguard, services, additional } => under("podCIDRs", pods)
            .into_iter()
            .chain([("wireguardCIDR", wireguard.cidr)])
            .chain(services.iter().map(|range| ("serviceCIDR", range.cidr)))
            .chain(under("additionalCIDRs", additional))
            .collect(),
    }
}

/// Returns where an entry declares a range, or else the entry.
fn place_of(entry: &Entry, range: Option<&(&'static str, Cidr)>) -> Place {
    let ranges = entry.networks.all();
    range
        .and_then(|(_, cidr)| ranges.into_iter().find(|range| range.cidr == *cidr))
        .map_or_else(|| entry.place.key("name"), |range| range.place.clone())
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn what_is_true_of_a_cluster_is_true_in_all_meshes() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: hub, podCIDRs: [10.0.0.0/16, 10.1.0.0/16], wireguardCIDR: 10.4.0.0/24 }
    - { name: a, allowedNetworks: [10.8.0.0/16] }
---
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: k }
spec:
  clusters:
    - name: hub
      podCIDRs: [10.1.0.0/16, 10.0.0.0/17]
      wireguardCIDR: 10.4.0.0/24
      wireguardPort: 51821
      granularity: Full
      topologyLabel: zone
      localNetworks: [192.168.1.0/24, 10.9.0.0/16]
    - { name: b, allowedNetworks: [10.9.0.0/16] }
"), @"
error[inconsistent-cluster]: networks of `hub` differ between meshes: 10.0.0.0/17 is in `podCIDRs` only in `k`, 10.0.0.0/16 is in `podCIDRs` only in `m`
  16:31 | 10.0.0.0/17 | in `k`
  7:31 | 10.0.0.0/16 | in `m`
  help: write the same values in all meshes of this cluster
error[inconsistent-cluster]: `localNetworks` of `hub` is [10.9.0.0/16, 192.168.1.0/24] in mesh `k`, but [] in `m`
  21:22 | [192.168.1.0/24, 10.9.0.0/16] | in `k`
  7:7 | { name: hub, podCIDRs: [10.0.0.0/16, 10.1.0.0/16], wireguardCIDR: 10.4.0.0/24 } | in `m`
  help: write the same values in all meshes of this cluster
error[inconsistent-cluster]: `wireguardPort` of `hub` is 51821 in mesh `k`, but 51820 in `m`
  18:22 | 51821 | in `k`
  7:7 | { name: hub, podCIDRs: [10.0.0.0/16, 10.1.0.0/16], wireguardCIDR: 10.4.0.0/24 } | in `m`
  help: write the same values in all meshes of this cluster
error[inconsistent-cluster]: `granularity` of `hub` is `Full` in mesh `k`, but not set in `m`
  19:20 | Full | in `k`
  7:7 | { name: hub, podCIDRs: [10.0.0.0/16, 10.1.0.0/16], wireguardCIDR: 10.4.0.0/24 } | in `m`
  help: write the same values in all meshes of this cluster
error[inconsistent-cluster]: `topologyLabel` of `hub` is `zone` in mesh `k`, but `topology.kubernetes.io/region` in `m`
  20:22 | zone | in `k`
  7:7 | { name: hub, podCIDRs: [10.0.0.0/16, 10.1.0.0/16], wireguardCIDR: 10.4.0.0/24 } | in `m`
  help: write the same values in all meshes of this cluster
");
    }

    #[test]
    fn order_and_the_rest_may_differ() {
        assert_eq!(
            report(
                "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: hub, allowedNetworks: [10.0.0.0/16, 10.1.0.0/16], persistentKeepalive: 25, localNetworks: [192.168.2.0/24, 192.168.1.0/24] }
    - { name: a, allowedNetworks: [10.8.0.0/16] }
---
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: k }
spec:
  clusters:
    - { name: hub, allowedNetworks: [10.1.0.0/16, 10.0.0.0/16], endpointFrom: [Kilo], localNetworks: [192.168.1.0/24, 192.168.2.0/24] }
    - { name: b, allowedNetworks: [10.9.0.0/16] }
"
            ),
            ""
        );
    }
}
