//! Capacity: what the Peers of a cluster cost its Kilo, and those who apply them; how much of it is
//! too much, and what would make it less.
//!
//! The counts are those of Kilo's own code, the seconds a model of it: Kilo holds each of its
//! iptables rules against all others, so that a pass takes a time that grows with their square. 2.5 µs
//! were measured with a few thousand rules; with a few hundred it was a fifth to two fifths less.

pub mod estimate;
pub mod lever;
pub mod load;
pub mod text;
pub mod time;
pub mod wave;

pub use estimate::{Estimate, estimates};
pub use lever::{Effect, Lever, Measure, levers};
pub use load::{Bundle, Files, Load, Nodes};
pub use time::Applies;
pub use wave::Wave;

#[cfg(test)]
mod tests;
