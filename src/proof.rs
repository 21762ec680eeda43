//! The proof: what a cluster's Kilo really does with the Peers that it gets, told from the manifests
//! alone. It knows nothing of the plan, whose mistakes it is to find.

pub mod rule;
pub mod applied;
pub mod prefixes;
pub mod peers;
pub mod location_ranges;
pub mod model;
pub mod route;
pub mod flaw;
pub mod unapplied;
pub mod fabric;
pub mod packet;
pub mod trace;
pub mod premise;
pub mod reach;
pub mod verify;
pub mod expectation;
pub mod hostile;
pub mod words;
pub mod capacity;

#[cfg(test)]
mod tests;
