//! Mixed families: nodes whose first pod CIDR, internal IP and WireGuard address are not of one family.
//! Kilo routes the first between the others, and the kernel refuses a route with two families
//! (`kilo.md` §2.5).

use super::inspected_cluster::InspectedCluster;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::KiloNode;
use crate::net::{Cidr, Family, family};
use crate::snapshot::Node;

/// Nodes with addresses of both families.
pub(super) struct MixedFamilies<'f> {
    pub(super) first: &'f Node,
    /// The number of nodes with the same mixture.
    pub(super) nodes: usize,
    pub(super) mixture: FamilyMixture,
    /// The change after which everything is of one family. Without it, the cluster would share no family
    /// with its partners.
    pub(super) change: Option<FamilyChange<'f>>,
}

/// Two addresses of a node, one of each family.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FamilyMixture {
    /// The first pod CIDR is of this family, the internal IP of the other.
    Pods(Family),
    /// The WireGuard address is of this family, the internal IP of the other.
    Wireguard(Family),
}

/// The change of a cluster after which its Kilo routes one family.
pub(super) struct FamilyChange<'f> {
    pub(super) family: Family,
    /// Whether Kubernetes must assign the pod CIDR of this family first.
    pub(super) is_for_pods: bool,
    /// The first node that needs an internal IP of this family.
    pub(super) internal: Option<&'f Node>,
    /// Whether Kilo needs another `--subnet`.
    pub(super) is_for_subnet: bool,
}

impl<'f> MixedFamilies<'f> {
    /// Finds the nodes of a cluster with addresses of both families.
    pub(super) fn find(fleet: &Fleet, inspected: &InspectedCluster<'f>) -> Option<Self> {
        // Kilo sets no route to the pods of its own node.
        let counted = inspected.cluster().topology.nodes.iter();
        let has_routes = 1 < counted.filter(|it| it.segment.is_some()).count();
        let mixture = |kilo: &KiloNode| {
            let internal = kilo.internal_address().map(family)?;
            let of_other = |it: Family| (it != internal).then_some(it);
            let pods = kilo.pod_cidr.map(Cidr::family).filter(|_| has_routes);
            let of_pods = pods.and_then(of_other).map(FamilyMixture::Pods);
            of_pods.or_else(|| wireguard(kilo).and_then(of_other).map(FamilyMixture::Wireguard))
        };
        let mixed: Vec<(&Node, FamilyMixture)> =
            inspected.nodes().filter_map(|(node, kilo)| Some((node, mixture(kilo)?))).collect();
        let of_pods = mixed.iter().find(|it| matches!(it.1, FamilyMixture::Pods(_)));
        let &(first, mixture) = of_pods.or(mixed.first())?;
        let wanted = match mixture {
            FamilyMixture::Pods(pods) => common(fleet, inspected, pods),
            FamilyMixture::Wireguard(family) => Some(family.other()),
        };
        Some(Self {
            first,
            nodes: mixed.iter().filter(|it| it.1 == mixture).count(),
            mixture,
            change: wanted.map(|it| FamilyChange::new(inspected, it)),
        })
    }
}

impl<'f> FamilyChange<'f> {
    /// Finds what must change so that a cluster routes a family, if most of its nodes have pods of it.
    pub(super) fn to(inspected: &InspectedCluster<'f>, family: Family) -> Option<Self> {
        has_pods(inspected.member, family).then(|| Self::new(inspected, family))
    }

    fn new(inspected: &InspectedCluster<'f>, wanted: Family) -> Self {
        let is_other = |it: Option<Family>| it.is_some_and(|it| it != wanted);
        let kilos = || inspected.nodes().map(|it| it.1);
        let mut nodes = inspected.nodes();
        let internal = nodes.find(|it| is_other(it.1.internal_address().map(family)));
        Self {
            family: wanted,
            is_for_pods: kilos().any(|it| is_other(it.pod_cidr.map(Cidr::family))),
            internal: internal.map(|it| it.0),
            is_for_subnet: kilos().any(|it| is_other(wireguard(it))),
        }
    }
}

/// Returns the family that a cluster can use for everything and that its partners route: that of its first
/// pod CIDRs, if possible, because pod CIDRs cannot be changed.
fn common(fleet: &Fleet, inspected: &InspectedCluster, first: Family) -> Option<Family> {
    let own = inspected.member;
    let partners = || {
        fleet
            .memberships(&own.entry.name)
            .flat_map(Member::targets)
            .filter_map(|it| fleet.memberships(it).next())
    };
    [first, first.other()]
        .into_iter()
        .find(|it| has_pods(own, *it) && partners().all(|other| may_route(other, *it)))
}

/// Returns whether a cluster routes a family, or would if its addresses followed its first pod CIDRs.
fn may_route(member: &Member, wanted: Family) -> bool {
    let is_first = most_have(member, |kilo| kilo.pod_cidr.map(Cidr::family) == Some(wanted));
    has_pods(member, wanted) && (is_first || member.cluster.family == Some(wanted))
}

/// Returns whether more than half of a cluster's nodes have a pod CIDR of a family.
fn has_pods(member: &Member, wanted: Family) -> bool {
    most_have(member, |kilo| kilo.pods().any(|it| it.family() == wanted))
}

/// Returns whether something is true of more than half of the nodes with pod CIDRs. Nothing is known of a
/// cluster without such nodes.
fn most_have(member: &Member, is_true: impl Fn(&KiloNode) -> bool) -> bool {
    let nodes = || {
        let kilos = member.cluster.nodes.iter().map(|it| &it.kilo);
        kilos.filter(|it| it.pod_cidr.is_some())
    };
    let (having, all) = (nodes().filter(|it| is_true(it)).count(), nodes().count());
    all < 2 * having || all == 0
}

fn wireguard(kilo: &KiloNode) -> Option<Family> {
    kilo.wireguard_ip().map(|it| it.network.family())
}
