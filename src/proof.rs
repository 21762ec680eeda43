//! The proof: what holds for all packets between clusters at once, from the manifests alone. It knows
//! nothing of the plan, whose mistakes it is to find.

pub mod reach;
pub mod verify;
pub mod expectation;
pub mod hostile;
pub mod messages;
