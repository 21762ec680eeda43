//! Messages about what the proof finds.

pub mod expectation;
pub mod hostile;
