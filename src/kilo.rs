//! Kilo, as it behaves: what its agent reads from nodes, how it forms segments, what a Peer is; and
//! what a cluster is that Kilo runs in.

pub mod carry_over;
pub mod anchored_ranges;
pub mod id;
pub mod location_label;
pub mod node;
pub mod seen;
pub mod reason;
pub mod node_checks;
pub mod segment;
pub mod lost_lead;
pub mod pod_network;
pub mod topology;
pub mod cluster;
pub mod node_networks;
pub mod peer;
