//! Advertise: which addresses of a cluster's nodes other clusters get.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::raw::RawAdvertise;
use super::{Networks, Range};

/// The addresses of a cluster's nodes that other clusters get. By default, these are the ones that the
/// operator gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Advertise {
    /// The ranges of pods.
    pub pods: PodRanges,
    /// Whether internal addresses in declared ranges are given.
    pub node_addresses: bool,
    /// The addresses in Kilo's subnet.
    pub wireguard: WireguardAddresses,
}

/// The ranges of pods that other clusters get.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum PodRanges {
    /// The pod CIDRs of each node.
    #[default]
    PerNode,
    /// The pod CIDRs of each segment as the fewest ranges with exactly the same addresses.
    Merged,
    /// The declared ranges, each carried by the segment of a node that `anchors` names, and the pod CIDRs of
    /// nodes in other segments.
    Declared,
}

/// The addresses in Kilo's subnet that other clusters get.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum WireguardAddresses {
    /// The address of each segment.
    #[default]
    PerNode,
    /// The whole `wireguardCIDR`, carried by an anchor, and the addresses of the other segments.
    Carrier,
    /// No address.
    None,
}

impl Default for Advertise {
    fn default() -> Self {
        Self {
            pods: PodRanges::default(),
            node_addresses: true,
            wireguard: WireguardAddresses::default(),
        }
    }
}

impl fmt::Display for Advertise {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self { pods, node_addresses, wireguard } = self;
        write!(
            formatter,
            "podCIDRs: {pods:?}, nodeAddresses: {node_addresses}, wireguardAddresses: {wireguard:?}"
        )
    }
}

impl Advertise {
    pub(super) fn new(written: Option<&RawAdvertise>) -> Self {
        let default = Self::default();
        let Some(written) = written else {
            return default;
        };
        Self {
            pods: written.pod_cidrs.unwrap_or_default(),
            node_addresses: written.node_addresses.unwrap_or(default.node_addresses),
            wireguard: written.wireguard_addresses.unwrap_or_default(),
        }
    }

    /// Returns whether it is written that no address of a node is given.
    pub fn keeps_nodes(self) -> bool {
        !self.node_addresses && self.wireguard == WireguardAddresses::None
    }

    /// Returns the pod ranges that anchors carry as a whole. An entry with `allowedNetworks` does not show which
    /// of its ranges are for pods.
    pub fn anchored_pods(self, networks: &Networks) -> &[Range] {
        match networks {
            Networks::Typed { pods, .. } if self.pods == PodRanges::Declared => pods,
            Networks::Typed { .. } | Networks::Flat { .. } => &[],
        }
    }

    /// Returns whether a range is Kilo's subnet, and no other cluster gets addresses in it.
    pub(super) fn keeps(self, networks: &Networks, range: &Range) -> bool {
        let is_subnet =
            matches!(networks, Networks::Typed { wireguard, .. } if wireguard.place == range.place);
        is_subnet && self.wireguard == WireguardAddresses::None
    }

    /// Returns Kilo's subnet, if an anchor carries it as a whole.
    pub fn anchored_subnet(self, networks: &Networks) -> Option<&Range> {
        match networks {
            Networks::Typed { wireguard, .. } => {
                (self.wireguard == WireguardAddresses::Carrier).then_some(wireguard)
            }
            Networks::Flat { .. } => None,
        }
    }
}
