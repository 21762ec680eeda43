//! Conformance: what this program computes against what Kilo and the operator do, by vectors recorded
//! from their own code.

mod admission;
mod model;
mod operator;
mod topology;
