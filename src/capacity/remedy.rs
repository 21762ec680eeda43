//! Advice for quantities that exceed their limits.

use crate::config::capacity::Quantity;

/// Advice for a quantity that exceeds its limit: a sentence, and the values of `--with` whose effect people can compute.
pub type LoadRemedy = (&'static str, &'static [&'static str]);

/// Each allowed IP has two rules.
const FEWER_RANGES: LoadRemedy = (
    "Select fewer nodes with `nodeSelector`, or advertise fewer ranges; without their addresses, connections of nodes end.",
    &[
        "*.advertise.podCIDRs=Merged",
        "*.advertise.nodeAddresses=false",
        "*.advertise.wireguardAddresses=None",
    ],
);

const FEWER_PEERS: LoadRemedy = (
    "Run Kilo with one Peer for each location, select fewer nodes with `nodeSelector`, or link fewer clusters \
             with `topology`.",
    &["*.granularity=Location"],
);

const FEWER_LINKS: LoadRemedy = (
    "Link the cluster to fewer clusters with `topology`, or render the meshes into separate trees.",
    &[],
);

const ADDRESSES: LoadRemedy = ("Annotate the nodes whose endpoint is a name with an address.", &[]);

/// Returns what reduces a quantity.
pub fn remedy(quantity: Quantity) -> LoadRemedy {
    match quantity {
        Quantity::Ranges
        | Quantity::Rules
        | Quantity::ApplySeconds
        | Quantity::RestartSeconds
        | Quantity::Routes
        | Quantity::ConfigurationBytes => FEWER_RANGES,
        Quantity::Peers
        | Quantity::AnnotationBytes
        | Quantity::TunnelsPerNode
        | Quantity::Tunnels
        | Quantity::StoredBytes
        | Quantity::KustomizeSeconds
        | Quantity::FluxSeconds
        | Quantity::ApplicationBytes
        | Quantity::InventoryBytes
        | Quantity::FileBytes => FEWER_PEERS,
        Quantity::DirectoryEntries => FEWER_LINKS,
        Quantity::DnsEndpoints => ADDRESSES,
    }
}
