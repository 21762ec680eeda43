//! Pod networks: what the nodes of a cluster show of a network plugin beside Kilo.
//!
//! Kilo routes the pod CIDRs that Kubernetes assigns. A plugin may give pods other addresses, and nothing in Kilo
//! shows that. Annotations are claims of single nodes, so only those of most nodes are believed, and they never
//! decide which ranges are rendered.

use super::node::annotation;
use crate::mesh::PodSource;
use crate::net::{Cidr, Families, Family};
use crate::snapshot::Node;
use crate::snapshot::plugin::NetworkPlugin;

/// The network plugin and the addresses of pods that most nodes of a cluster show.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodNetwork {
    /// Whether they show one.
    pub has_plugin: bool,
    /// Whether it sends the packets between nodes of a location in VXLAN, as Cilium does.
    pub has_vxlan: bool,
    /// The families in which their pods have other addresses than those of their pod CIDRs.
    pub unrouted: Families,
}

/// The certainty that packets of pods keep their source on the way to other clusters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Masquerading {
    /// A person declares that they do, or nothing shows a network plugin.
    No,
    /// Most nodes show a plugin, which may masquerade.
    Possible,
    /// A person declares that the plugin may masquerade.
    Declared,
}

impl PodNetwork {
    /// Returns how sure it is that packets of the pods keep their source.
    pub(super) fn masquerading(self, declared: Option<PodSource>) -> Masquerading {
        match declared {
            Some(PodSource::Masqueraded) => Masquerading::Declared,
            None if self.has_plugin => Masquerading::Possible,
            Some(PodSource::Kept) | None => Masquerading::No,
        }
    }

    pub(super) fn of(nodes: &[Node]) -> Self {
        let do_most = |shows: &dyn Fn(&Node) -> bool| {
            nodes.len() < 2 * nodes.iter().filter(|it| shows(it)).count()
        };
        let has_plugin = do_most(&shows_plugin);
        let is_cilium =
            |it: &Node| it.plugin.as_ref().is_some_and(|it| it.name == NetworkPlugin::Cilium);
        let mut unrouted = Families::default();
        for family in [Family::V4, Family::V6].into_iter().filter(|_| has_plugin) {
            if do_most(&|it| unrouted_pods(it, family).is_some()) {
                unrouted.insert(family);
            }
        }
        Self { has_plugin, has_vxlan: do_most(&is_cilium), unrouted }
    }
}

/// Returns whether annotations of a node show a network plugin. Kilo writes an address for a plugin with
/// `--compatibility`.
fn shows_plugin(node: &Node) -> bool {
    let address = node.annotations.get(annotation::CNI_COMPATIBILITY_IP);
    node.plugin.is_some() || address.is_some_and(|it| !it.is_empty())
}

/// Returns addresses of a family that pods of a node have outside of its pod CIDRs.
pub fn unrouted_pods(node: &Node, family: Family) -> Option<Cidr> {
    node.plugin.iter().flat_map(|it| &it.pod_addresses).find(|it| it.family() == family).copied()
}
