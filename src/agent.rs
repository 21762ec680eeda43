//! The agent: how Kilo on the nodes of a cluster handles the cluster's Peers, computed from the
//! manifests alone (`kilo.md` §2). Nothing here uses the plan, so that the proof can find the
//! plan's mistakes.

pub mod applied;
pub mod peers;
pub mod comparison;
pub mod difference;
pub mod location_ranges;
pub mod model;
pub mod route;
pub mod refusal;
pub mod unapplied;
pub mod fabric;
pub mod handshakes;
pub mod inventory;
