//! Uses of the ranges of a flat list, found by the addresses that the nodes have in them.
//!
//! A node may claim any address, so that no single one decides.

use crate::diagnostic::Finding;
use crate::fleet::SnapshotFile;
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::mesh::{Entry, Range, State};
use crate::net::Cidr;

use super::refusal;

/// The use of a range of a flat list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FlatRangeUse {
    Pods,
    WireGuard,
    Other,
}

/// The nodes of a cluster that have addresses of a kind, each with these.
struct Holders(Vec<Vec<Cidr>>);

/// The number of nodes with addresses in a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Share {
    None,
    Few,
    Most,
}

impl Holders {
    fn collect(cluster: &Cluster, addresses: impl Fn(&ClusterNode) -> Vec<Cidr>) -> Self {
        let nodes = cluster.nodes.iter().map(addresses);
        Self(nodes.filter(|it| !it.is_empty()).collect())
    }

    fn share(&self, range: Cidr) -> Share {
        let is_holder = |it: &&Vec<Cidr>| it.iter().any(|it| range.contains(*it));
        match self.0.iter().filter(is_holder).count() {
            0 => Share::None,
            count if self.0.len() < 2 * count => Share::Most,
            _ => Share::Few,
        }
    }

    fn first(&self) -> Option<Cidr> {
        self.0.first()?.first().copied()
    }
}

/// Finds what each range is for.
///
/// # Errors
/// The typed form cannot express the entry, or no node shows what its ranges are for.
pub(super) fn uses(
    entry: &Entry,
    allowed: &[Range],
    file: Option<&SnapshotFile>,
) -> Result<Vec<FlatRangeUse>, Finding> {
    let name = &entry.name;
    let file = file.ok_or_else(|| without_snapshot(entry))?;
    let cluster = Cluster::new(entry, &file.snapshot);
    if cluster.nodes.is_empty() {
        let what = "has no nodes in its snapshot, so the use of its ranges is unknown";
        let help = format!("run `clustermesh snapshot {name}`");
        return Err(refusal(entry, what, &help));
    }
    let pods = Holders::collect(&cluster, |it| it.kilo.pods().collect());
    let wireguard = Holders::collect(&cluster, |it| {
        let address = it.kilo.wireguard_ip().map(|it| it.address);
        address.map(Cidr::host).into_iter().collect()
    });
    let (Some(a_pod), Some(an_address)) = (pods.first(), wireguard.first()) else {
        let kind = match pods.first() {
            None => "pod CIDR",
            Some(_) => "WireGuard address",
        };
        let what = format!("has no node with a {kind}, so the use of its ranges is unknown");
        let help =
            format!("check that Kilo runs in the cluster, then run `clustermesh snapshot {name}`");
        return Err(refusal(entry, &what, &help));
    };
    let uses = allowed
        .iter()
        .map(|it| range_use(entry, it, &pods, &wireguard));
    let uses: Vec<FlatRangeUse> = uses.collect::<Result<_, Finding>>()?;
    let count = |meant| uses.iter().filter(|it| **it == meant).count();
    match (count(FlatRangeUse::Pods), count(FlatRangeUse::WireGuard)) {
        (0, _) => Err(refusal(
            entry,
            "declares no range that contains pod CIDRs of its nodes",
            &format!("add the range of the pods, which contains {a_pod}, to `allowedNetworks`"),
        )),
        (_, 0) => Err(refusal(
            entry,
            "declares no range that contains WireGuard addresses of its nodes",
            &format!("add Kilo's `--subnet`, which contains {an_address}, to `allowedNetworks`"),
        )),
        (_, 1) => Ok(uses),
        (_, ranges) => Err(refusal(
            entry,
            &format!(
                "has WireGuard addresses in {ranges} ranges, but `wireguardCIDR` is one range"
            ),
            "declare one range that contains all WireGuard addresses",
        )),
    }
}

fn without_snapshot(entry: &Entry) -> Finding {
    let name = &entry.name;
    if entry.state == State::Leaving {
        // `snapshot` does not read it.
        let what = "is leaving and has no snapshot, so the use of its ranges is unknown";
        let help = "remove the entry when its Peers are gone, then convert the others";
        return refusal(entry, what, help);
    }
    let what = "has no snapshot, so the use of its ranges is unknown";
    refusal(entry, what, &format!("run `clustermesh snapshot {name}`"))
}

fn range_use(
    entry: &Entry,
    range: &Range,
    pods: &Holders,
    wireguard: &Holders,
) -> Result<FlatRangeUse, Finding> {
    match (pods.share(range.cidr), wireguard.share(range.cidr)) {
        (Share::Most, Share::Most) => {
            let what = format!("has pod CIDRs and WireGuard addresses in {}", range.cidr);
            let help = "declare a range for pods, and another one for WireGuard addresses";
            Err(refusal(entry, &what, help).at(range.place.clone(), "this range"))
        }
        (_, Share::Most) => Ok(FlatRangeUse::WireGuard),
        // The nodes may have pods in several ranges.
        (Share::Few | Share::Most, _) => Ok(FlatRangeUse::Pods),
        (Share::None, Share::Few | Share::None) => Ok(FlatRangeUse::Other),
    }
}
