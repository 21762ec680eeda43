//! Help, manual pages, completion and mistakes in arguments.

mod completions;
mod explain;
mod man;
mod options;
mod usage;
