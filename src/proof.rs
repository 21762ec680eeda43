//! The proof: reachability for all packets between clusters, from the manifests alone. It does not
//! use the plan, because it must find the plan's mistakes.

pub mod bounded_list;
pub mod rule;
pub mod reach;
mod claimed;
pub mod excused;
pub mod verify;
pub mod expectation;
pub mod hostile;
pub mod old_controls;
pub mod messages;
