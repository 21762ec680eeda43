//! The agent: what Kilo on the nodes of a cluster makes of the Peers that the cluster gets, computed
//! from the manifests alone (`kilo.md` §2). Nothing here knows the plan, so that the proof can find the
//! plan's mistakes.

pub mod applied;
pub mod peers;
pub mod location_ranges;
pub mod model;
pub mod route;
pub mod flaw;
pub mod unapplied;
pub mod fabric;
