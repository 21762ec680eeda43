//! The proof: reachability for all packets between clusters, from the manifests alone. It does not
//! use the plan, because it must find the plan's mistakes.

pub mod rule;
pub mod reach;
pub mod verify;
pub mod expectation;
pub mod hostile;
pub mod messages;

/// How many things of one kind a proof lists one by one. People need a few to find out what they have in
/// common; the others are counted.
pub const APART: usize = 16;
