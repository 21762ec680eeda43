//! Messages about what the proof finds.

pub mod denied;
pub mod expectation;
pub mod hostile;
pub mod service;
