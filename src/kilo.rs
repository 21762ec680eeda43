//! Kilo, as it behaves: what its agent reads from nodes, how it forms segments, what a Peer is.

pub mod carry_over;
pub mod node;
pub mod segment;
pub mod peer;
