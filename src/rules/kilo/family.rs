//! Families: are the addresses that Kilo routes between, and through, of one kind?

use std::collections::BTreeSet;

use super::inspected_cluster::InspectedCluster;
use super::mixed_families::{FamilyChange, FamilyMixture, MixedFamilies};
use super::{DIFFERENT_FAMILIES, MISMATCHED_SUBNET};
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::net::{Family, family};
use crate::rules::command::annotate;
use crate::rules::{Finding, bare};
use crate::snapshot::{AddressKind, Node};
use crate::text::listed;

/// Returns a finding about nodes whose first pod CIDR or WireGuard address is of another family than their
/// internal IP.
pub(super) fn of_nodes(fleet: &Fleet, inspected: &InspectedCluster) -> Option<Finding> {
    let mixed = MixedFamilies::find(fleet, inspected)?;
    let first = bare(&mixed.first.name);
    let (odd, what, whose) = match (mixed.mixture, mixed.nodes) {
        (FamilyMixture::Pods(odd), 1) => (odd, "first pod CIDR", first),
        (FamilyMixture::Pods(odd), count) => (odd, "first pod CIDRs", format!("{count} nodes")),
        (FamilyMixture::Wireguard(odd), 1) => (odd, "WireGuard address", first),
        (FamilyMixture::Wireguard(odd), count) => {
            (odd, "WireGuard addresses", format!("{count} nodes"))
        }
    };
    let (are, theirs) = match mixed.nodes {
        1 => ("is", "its internal IP is"),
        _ => ("are", "their internal IPs are"),
    };
    let internal = odd.other();
    let message = format!(
        "the {what} of {whose} {are} {odd}, but {theirs} {internal}: the kernel refuses Kilo's \
         routes between its own nodes, and other routes may be missing"
    );
    let name = &inspected.member.entry.name;
    let place = match mixed.mixture {
        FamilyMixture::Pods(_) => inspected.place(mixed.first).key("podCIDRs").index(0),
        FamilyMixture::Wireguard(_) => inspected.annotation(mixed.first, annotation::WIREGUARD_IP),
    };
    let finding = Finding::on_cluster(&MISMATCHED_SUBNET, name, message).at(place, "");
    Some(match &mixed.change {
        Some(change) => finding.help(imperative(name, change)),
        None => finding,
    })
}

/// Returns a finding about linked clusters whose Kilo routes only the other family. It is about the
/// cluster that routes IPv6.
pub(super) fn of_partners(fleet: &Fleet, inspected: &InspectedCluster) -> Option<Finding> {
    let name = &inspected.member.entry.name;
    let routed = |cluster: &ClusterName| fleet.family(cluster);
    if routed(name) != Some(Family::V6) {
        return None;
    }
    let mut partners: Vec<&ClusterName> = fleet
        .memberships(name)
        .flat_map(Member::targets)
        .filter(|it| routed(it) == Some(Family::V4))
        .collect();
    partners.sort();
    partners.dedup();
    let plural = partners.len();
    let first = partners.first()?;
    let member = fleet.memberships(first).next()?;
    let route = if plural == 1 { "routes" } else { "route" };
    let message = format!(
        "routes only IPv6, but {} {route} only IPv4: no packet between these clusters gets a reply",
        listed(partners.iter())
    );
    let finding = Finding::on_cluster(&DIFFERENT_FAMILIES, name, message)
        .at(inspected.member.entry.place.key("name"), "routes IPv6")
        .at(member.entry.place.key("name"), "routes IPv4");
    // Without pods of both families on one side, no change helps.
    let own = FamilyChange::to(inspected, Family::V4).map(|it| (name, it));
    let change = own.or_else(|| {
        let change = FamilyChange::to(&InspectedCluster::new(member), Family::V6)?;
        (plural == 1).then_some((*first, change))
    });
    Some(match change {
        Some((cluster, change)) => {
            finding.help(format!("in `{cluster}`, {}", imperative(cluster, &change)))
        }
        None => finding,
    })
}

/// Describes the change after which everything in a cluster is of one family.
fn imperative(cluster: &ClusterName, change: &FamilyChange) -> String {
    let wanted = change.family;
    let pods = change.is_for_pods.then(|| {
        format!(
            "write the {wanted} range first in `--cluster-cidr` of the controller manager, delete the \
             nodes and let them register again"
        )
    });
    let internal = change.internal.map(|node| {
        let key = annotation::FORCE_INTERNAL_IP;
        let address = format!("{key}={}/LENGTH", address_of(node, wanted));
        format!("annotate each node with its {wanted} address: `{}`", annotate(node, address))
    });
    let example = match wanted {
        Family::V4 => "10.4.0.0/16",
        Family::V6 => "fd00:10:4::/112",
    };
    let subnet = change.is_for_subnet.then(|| {
        format!(
            "run all Kilo pods of the cluster with an {wanted} subnet, such as `--subnet {example}`, \
             and declare the same range in the mesh"
        )
    });
    let is_of_nodes = pods.is_some() || internal.is_some();
    let again = is_of_nodes.then(|| format!("then run `clustermesh snapshot {cluster}`"));
    let parts: Vec<String> = [pods, internal, subnet, again].into_iter().flatten().collect();
    parts.join("; ")
}

/// Returns the address of a family that Kubernetes knows of a node, or a placeholder.
fn address_of(node: &Node, wanted: Family) -> String {
    let mut known = node
        .addresses
        .iter()
        .filter(|it| it.kind == AddressKind::InternalIP)
        .filter_map(|it| it.address.parse().ok());
    let found = known.find(|it| family(*it) == wanted);
    found.map_or_else(|| "ADDRESS".to_owned(), |it| it.to_string())
}

/// Returns the finding of [`of_partners`] as the cause of something else, if it separates a cluster from all
/// clusters that it is linked to.
pub(in crate::rules) fn separation(fleet: &Fleet, cluster: &ClusterName) -> Option<FindingCause> {
    let partners = fleet.memberships(cluster).flat_map(Member::targets);
    let partners: BTreeSet<&ClusterName> = partners.collect();
    let has_nodes = |it: &ClusterName| {
        let mut memberships = fleet.memberships(it);
        memberships.any(|it| !it.membership.candidates.is_empty())
    };
    let own = fleet.family(cluster).filter(|_| has_nodes(cluster))?;
    let is_other =
        |it: &&ClusterName| has_nodes(it) && fleet.family(it).is_some_and(|family| family != own);
    // It is about the cluster that routes IPv6.
    let six = match own {
        Family::V6 => cluster,
        Family::V4 => partners.first()?,
    };
    let is_alone = !partners.is_empty() && partners.iter().all(is_other);
    is_alone.then(|| FindingCause::of(&DIFFERENT_FAMILIES, six))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const WEST: &str = "w pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=full external=198.18.0.2 internal-ip=10.2.200.1/24";

    fn report_on(fields: &str, nodes: &str) -> String {
        let clusters = [("east", fields, nodes), ("west", "", WEST)];
        let report = report(super::super::tests::findings, &clusters);
        let lines = report.lines();
        let meant = lines
            .filter(|it| it.contains("[mismatched-subnet]") || it.contains("[different-families]"));
        meant.collect::<Vec<_>>().join("\n")
    }

    const DUAL: &str = "podCIDRs: ['fd00:1::/48', 10.1.0.0/16], wireguardCIDR: 10.101.0.0/24";

    fn node(number: u8, wireguard: &str, internal: &str) -> String {
        let key = ["A", "C"][usize::from(number)];
        format!(
            "n{number} pod=fd00:1:0:{number}::/64 key={key} granularity=full external=198.18.1.{number} wg={wireguard} internal-ip={internal}\n"
        )
    }

    #[test]
    fn an_ipv6_node_in_an_ipv4_subnet_is_reported() {
        let one = node(0, "10.101.0.1/24", "fd00:9::1/64");
        insta::assert_snapshot!(report_on(DUAL, &one), @"
        warning[mismatched-subnet] east: the WireGuard address of n0 is IPv4, but its internal IP is IPv6: the kernel refuses Kilo's routes between its own nodes, and other routes may be missing
        warning[different-families] east: routes only IPv6, but west routes only IPv4: no packet between these clusters gets a reply
        ");
        let two = one.clone() + &node(1, "10.101.0.2/24", "fd00:9::2/64");
        insta::assert_snapshot!(report_on(DUAL, &two), @"
        warning[mismatched-subnet] east: the WireGuard addresses of 2 nodes are IPv4, but their internal IPs are IPv6: the kernel refuses Kilo's routes between its own nodes, and other routes may be missing
        warning[different-families] east: routes only IPv6, but west routes only IPv4: no packet between these clusters gets a reply
        ");
    }

    #[test]
    fn one_family_for_everything_is_quiet_about_the_subnet() {
        let fields = "podCIDRs: ['fd00:1::/48'], wireguardCIDR: 'fd00:10:4::/112'";
        let six = node(0, "fd00:10:4::1/112", "fd00:9::1/64");
        insta::assert_snapshot!(report_on(fields, &six), @"warning[different-families] east: routes only IPv6, but west routes only IPv4: no packet between these clusters gets a reply");
        let four =
            WEST.replace("10.2.", "10.1.").replace("10.102", "10.101").replace("key=B", "key=A");
        assert_eq!(report_on("", &four), "");
    }
}
