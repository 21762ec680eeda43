//! Words for declarations that most nodes contradict.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::diagnostic::{MetadataChange, Quoted, Severity};
use crate::fleet::Member;
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::kilo::location_label::{fitting_label, rivals};
use crate::membership::{Contradicted, Contradiction, ExcludedReason};
use crate::mesh::{DEFAULT_TOPOLOGY_LABEL, Networks, PodRanges, Range, State};
use crate::name::ClusterName;
use crate::net::{Cidr, family};
use crate::proposal::pod_ranges;
use crate::rules::Finding;
use crate::rules::nodes::CONTRADICTED;
use crate::text::{list, listed};

pub(super) fn contradiction(member: &Member, found: &Contradiction) -> Finding {
    let Contradiction { what, place, against, of, outside } = found;
    let mistyped = outside.and_then(|it| mistyped(member, it));
    let place = mistyped.map_or(place, |it| &it.place);
    let is_granularity = matches!(what, Contradicted::Granularity(_));
    let is_label = *what == Contradicted::TopologyLabel;
    let selects = *what == Contradicted::NodeSelector;
    let is_default_label = is_label && member.entry.topology_label == DEFAULT_TOPOLOGY_LABEL;
    let (what, help) = contradicted_by(member, *what);
    let message = match (against, of) {
        _ if is_label => what,
        (1, 1) => format!("the only node has {what}"),
        (2, 2) => format!("both nodes have {what}"),
        (against, of) if against == of => format!("all {of} nodes have {what}"),
        (against, of) => format!("{against} of {of} nodes have {what}"),
    };
    let mut finding = Finding::on_cluster(&CONTRADICTED, &member.entry.name, message);
    let selector = &member.entry.selector;
    for node in selects.then_some(&member.cluster.nodes).into_iter().flatten() {
        for (key, value) in selector.missing(&node.node.labels) {
            // Only a person knows which nodes are meant.
            let change = MetadataChange::annotation(key, value).of_label().open();
            finding = finding.resolved_by(&change, &member.entry.name, [&*node.node.name]);
        }
    }
    // The report of one node of several may be a claim of its own. The only node is the cluster.
    if member.entry.state == State::Joined && (1 < *against || member.cluster.nodes.len() == 1) {
        if member.membership.candidates.is_empty() && !is_label {
            // A person's line, and nothing of the cluster is left.
            finding.severity = Severity::Error;
            finding.is_final = true;
        } else if is_granularity {
            // The Peers do not fit the tunnels of the agents.
            finding = finding.of_nodes();
        }
    }
    let is_range =
        place.pointer.steps().last().is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
    let text = match () {
        () if is_default_label => "",
        () if is_range => "no node has an address in it",
        () if place.pointer.steps().last().as_deref() == Some("allowedNetworks") => {
            "does not contain them"
        }
        () => "declared here",
    };
    finding.at(place.clone(), text).help(help)
}

/// Returns what nodes have instead of what was declared, and what to do about it.
pub(super) fn contradicted_by(member: &Member, what: Contradicted) -> (String, String) {
    let cluster = &member.entry.name;
    let (pods, wireguard) = match &member.entry.networks {
        Networks::Typed { pods, wireguard, .. } => {
            (("podCIDRs", pods.as_slice()), ("wireguardCIDR", std::slice::from_ref(wireguard)))
        }
        Networks::Flat { allowed } => {
            let field = ("allowedNetworks", allowed.as_slice());
            (field, field)
        }
    };
    // A node is left out for one reason, and may contradict several lines.
    let selector = &member.entry.selector;
    let nodes = member.cluster.nodes.iter();
    let nodes = nodes.filter(|it| selector.matches(&it.node.labels));
    match what {
        Contradicted::PodRanges => {
            let actual = nodes.filter_map(|it| match &it.checked.pods {
                Err(ExcludedReason::PodCidrOutOfRange { cidr }) => Some(cidr.to_string()),
                _ => None,
            });
            let (problem, help) = outside(cluster, actual.collect(), "pod CIDRs", pods);
            (problem, pods_line(member).unwrap_or(help))
        }
        Contradicted::WireguardRange => {
            let actual = nodes.filter_map(|it| match &it.checked.wireguard {
                Err(ExcludedReason::WireguardIpOutOfRange { address }) => Some(*address),
                _ => None,
            });
            let actual: Vec<IpAddr> = actual.collect();
            let is_others =
                |it: &IpAddr| others(member, cluster).any(|other| other.cidr.holds(*it));
            let texts = actual.iter().map(ToString::to_string).collect();
            let (problem, help) = outside(cluster, texts, "WireGuard addresses", wireguard);
            let help = match wireguard.1 {
                [declared] if actual.iter().any(is_others) => {
                    format!("start Kilo in `{cluster}` with `--subnet={}`", declared.cidr)
                }
                _ => help,
            };
            (problem, wireguard_line(member).unwrap_or(help))
        }
        Contradicted::Granularity(declared) => granularity(&member.cluster, declared),
        Contradicted::TopologyLabel => topology_label(&member.cluster),
        Contradicted::NodeSelector => (
            "labels that `nodeSelector` does not select".to_owned(),
            format!(
                "correct `nodeSelector` of `{cluster}` in the mesh, or label the nodes and take a new \
                 snapshot"
            ),
        ),
    }
}

/// Returns what nodes have outside of a field, and how to correct the field.
fn outside(
    cluster: &ClusterName,
    actual: Vec<String>,
    noun: &str,
    (field, declared): (&str, &[Range]),
) -> (String, String) {
    let actual = listed(actual);
    let problem = if declared.is_empty() {
        format!("{noun}, but no range for them is declared: {actual}")
    } else {
        let declared = listed(declared.iter().map(|it| it.cidr.to_string()));
        format!("{noun} outside the declared {declared}: {actual}")
    };
    let help =
        format!("correct `{field}` of `{cluster}` in the mesh so that it contains these {noun}");
    (problem, help)
}

/// Returns the line for the declared pod ranges that any node has and those that most nodes have, unless another range
/// of the mesh overlaps them.
fn pods_line(member: &Member) -> Option<String> {
    let agreed = pod_ranges(&member.file.snapshot);
    let Networks::Typed { pods, .. } = &member.entry.networks else {
        let all =
            |it: Cidr| others(member, &member.entry.name).any(|other| other.cidr.overlaps(it));
        let free = agreed.iter().map(|it| [it.cidr, it.core].into_iter().find(|it| !all(*it)));
        let free: Vec<Cidr> = free.collect::<Option<_>>()?;
        return Some(flat_line(member, &free, free.first()?.first()));
    };
    let ranges = member.mesh.entries.iter().flat_map(|it| it.networks.all());
    let others: Vec<Cidr> = ranges
        .filter(|range| !pods.iter().any(|own| own.place == range.place))
        .map(|it| it.cidr)
        .collect();
    let is_free = |cidr: &Cidr| !others.iter().any(|it| it.overlaps(*cidr));
    let free = agreed.iter().map(|it| [it.cidr, it.core].into_iter().find(is_free));
    let mut free: Vec<Cidr> = free.collect::<Option<_>>()?;
    let actual: Vec<Cidr> = member.cluster.nodes.iter().flat_map(|it| it.kilo.pods()).collect();
    // A declaration of all pods of a family stays as it is.
    let is_declared = |it: &Cidr| pods.iter().any(|own| own.cidr.contains(*it));
    free.retain(|range| !actual.iter().filter(|it| range.contains(**it)).all(is_declared));
    let used = |range: &Cidr| actual.iter().any(|it| range.contains(*it));
    let kept = pods.iter().map(|it| it.cidr);
    let kept = kept.filter(|it| used(it) && !free.iter().any(|new| new.overlaps(*it)));
    (!free.is_empty()).then(|| {
        format!(
            "write `podCIDRs: [{}]` in the entry of `{}`, unless its nodes are wrong",
            list(kept.chain(free.iter().copied())),
            member.entry.name
        )
    })
}

/// Returns the line with the subnet that Kilo writes on all nodes outside of the declared one, unless another range of the mesh
/// overlaps it.
fn wireguard_line(member: &Member) -> Option<String> {
    let outside = member.cluster.nodes.iter().filter(|it| {
        matches!(it.checked.wireguard, Err(ExcludedReason::WireguardIpOutOfRange { .. }))
    });
    let subnets: BTreeSet<Cidr> =
        outside.filter_map(|it| Some(it.kilo.wireguard_ip()?.network)).collect();
    let subnet = subnets.first().filter(|it| subnets.len() == 1 && !it.is_host())?;
    let name = &member.entry.name;
    let mut others = others(member, name);
    if others.any(|it| it.cidr.overlaps(*subnet)) {
        return None;
    }
    Some(match &member.entry.networks {
        Networks::Typed { .. } => {
            format!(
                "write `wireguardCIDR: {subnet}` in the entry of `{name}`, unless its nodes are wrong"
            )
        }
        Networks::Flat { .. } => flat_line(member, &[*subnet], subnet.first()),
    })
}

/// Returns the line for ranges that a flat entry lacks. A range that no node uses and another cluster has is the one that was
/// mistyped; another one may be for Services.
fn flat_line(member: &Member, lacking: &[Cidr], outside: IpAddr) -> String {
    let name = &member.entry.name;
    let lacking = list(lacking);
    if let Some(range) = mistyped(member, outside) {
        return format!(
            "write {lacking} instead of {} in `allowedNetworks` of `{name}`",
            range.cidr
        );
    }
    let add = format!("add {lacking} to `allowedNetworks` of `{name}`");
    let unused = unused(member).map(|it| it.cidr).filter(|it| it.family() == family(outside));
    let unused: Vec<Cidr> = unused.collect();
    match &*unused {
        [] => format!("{add}, unless its nodes are wrong"),
        [one] => format!(
            "if {one}, in which no node has an address, is a typo, write {lacking} instead; otherwise {add}"
        ),
        several => format!(
            "if one of {}, in which no node has an address, is a typo, write {lacking} instead; otherwise {add}",
            listed(several)
        ),
    }
}

/// Returns the range of a flat entry that no node uses and another cluster has, and that is most like an address outside of all.
fn mistyped<'m>(member: &'m Member<'m>, outside: IpAddr) -> Option<&'m Range> {
    let is_of_other =
        |it: &&Range| others(member, &member.entry.name).any(|other| other.cidr.overlaps(it.cidr));
    unused(member).filter(is_of_other).max_by_key(|it| it.cidr.common_bits(outside))
}

/// Returns the ranges of a flat entry that no node uses.
fn unused<'m>(member: &'m Member<'m>) -> impl Iterator<Item = &'m Range> {
    let allowed = match &member.entry.networks {
        Networks::Flat { allowed } => allowed.as_slice(),
        Networks::Typed { .. } => &[],
    };
    member.cluster.without_addresses(allowed.iter())
}

/// Returns the ranges of the other clusters of a mesh.
fn others<'m>(member: &'m Member<'m>, name: &'m ClusterName) -> impl Iterator<Item = &'m Range> {
    let entries = member.mesh.entries.iter().filter(move |it| it.name != *name);
    entries.flat_map(|it| it.networks.all())
}

/// Returns the remedy for a cluster whose agents run with another granularity than the declared one.
pub fn granularity_advice(cluster: &Cluster) -> Option<String> {
    let declared = cluster.entry.granularity?;
    let advice = || granularity(cluster, declared).1;
    cluster.is_rendered_otherwise().then(advice)
}

fn granularity(cluster: &Cluster, declared: Granularity) -> (String, String) {
    let name = &cluster.entry.name;
    let voters = cluster.voters();
    let says = voters.iter().filter_map(|it| it.kilo.granularity);
    let reported: BTreeSet<Granularity> = says.filter(|it| *it != declared).collect();
    let what = format!(
        "granularity {}, not the declared `{declared}`",
        listed(reported.iter().map(|it| format!("`{it}`")))
    );
    let flag = declared.to_string().to_lowercase();
    let restart = |agents: &str| {
        format!(
            "restart {agents} with `--mesh-granularity={flag}` and run `clustermesh snapshot {name}`"
        )
    };
    let help = match cluster.voted {
        Some(voted) => {
            // With another granularity than `Location`, no location can carry the pods of all.
            let is_declared = cluster.entry.advertise.pods == PodRanges::Declared;
            let fields = if is_declared && voted != Granularity::Location {
                " and `podCIDRs: Merged` in `advertise`"
            } else {
                ""
            };
            format!(
                "set `granularity: {voted}`{fields} for `{name}` in the mesh, or {}",
                restart("its Kilo agents")
            )
        }
        None => restart(&format!("the Kilo agents of `{name}`")),
    };
    (what, help)
}

/// Returns that several leaders share a location by the declared label, and the line that fits their addresses.
fn topology_label(cluster: &Cluster) -> (String, String) {
    let (name, declared) = (&cluster.entry.name, &cluster.entry.topology_label);
    let rivals = rivals(cluster).into_iter();
    let rivals = listed(rivals.map(|it| Quoted(&it.node.name).to_string()));
    let is_used = cluster.nodes.iter().any(|it| it.node.labels.contains_key(declared));
    let puts = if is_used {
        format!("label {declared} puts {rivals} into one location")
    } else {
        format!("no node has the label {declared}, so {rivals} are in one location")
    };
    let what =
        format!("{puts}, but each has a WireGuard address, which Kilo gives only to the leader");
    let correction = label_correction(cluster).unwrap_or_else(|| {
        format!(
            "set `topologyLabel` of `{name}` in the mesh to the value of Kilo's `--topology-label`"
        )
    });
    let help = format!(
        "{correction}; if the label is right, run `clustermesh snapshot {name}`: Kilo may have just elected another leader"
    );
    (what, help)
}

/// Returns the line with another label of locations, if one fits the addresses that Kilo gave.
pub(super) fn label_correction(cluster: &Cluster) -> Option<String> {
    let name = &cluster.entry.name;
    let label = fitting_label(cluster)?;
    Some(if label == DEFAULT_TOPOLOGY_LABEL {
        format!(
            "remove `topologyLabel` from the entry of `{name}` if Kilo runs without `--topology-label`"
        )
    } else {
        format!(
            "write `topologyLabel: {label}` in the entry of `{name}` if Kilo runs with `--topology-label={label}`"
        )
    })
}
