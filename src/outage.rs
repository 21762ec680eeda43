//! Outages: what becomes of declared paths when nodes, locations or clusters are lost, until the next render.
//!
//! The Kilo of a cluster that loses nodes forms a new topology of those that are left, with other leaders,
//! WireGuard addresses and location ranges. The Peers of all clusters stay as they were rendered. So an
//! outage is the same fabric with other versions of the clusters that lost nodes, and the same proof finds what
//! differs (`docs/internals/proof.md`).

pub mod lost_nodes;
pub mod part;

mod harmless;
mod obstacle;
pub mod report;
pub mod selection;
pub mod survey;
mod survival;
mod proof;
mod after_loss;

pub use lost_nodes::LostNodes;
pub use obstacle::OutageObstacle;
pub use part::{FleetPart, single_parts};
pub use proof::{LostPaths, OutageProof, OutageResult};
pub use report::OutageReport;
pub use selection::SelectionError;
pub use survey::{Harm, Survey};
pub use survival::survive;
