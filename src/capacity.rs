//! Capacity: what the Peers of a cluster cost its Kilo, and those who apply them; how much of it is
//! too much, and what people can try.
//!
//! The counts are those of Kilo's own code; the seconds come from a model. Kilo compares each of
//! its iptables rules with all others, so the time of a pass grows with the square of their number.
//! 2.5 µs were measured with a few thousand rules; with a few hundred, it was 20 to 40 percent
//! less.

pub mod bundle;
pub mod estimate;
pub mod growth;
pub mod ledger;
pub mod load;
pub mod outgrowth;
pub mod peer_delta;
pub mod remedy;
pub mod units;
pub mod time;

mod text_length;

pub use bundle::{Bundle, KnownBundles};
pub use estimate::{Estimate, estimates, value};
pub use growth::{ClusterLoad, Fit, Growth, Room};
pub use ledger::{Cost, CostChange, Ledger};
pub use load::{FileLoad, Load, NodeLoad};
pub use outgrowth::Outgrowth;
pub use peer_delta::PeerDelta;
pub use remedy::{LoadRemedy, remedy};
pub use time::Applies;

#[cfg(test)]
mod tests;
