//! Every command under attack or in need: hostile input, foreign files, too much of anything, too
//! little of the system.

mod bounds;
mod ceilings;
mod confined;
mod escaping;
pub(super) mod exit_codes;
#[cfg(target_os = "linux")]
mod floods;
mod hostile;
#[cfg(target_os = "linux")]
mod limits;
mod mutants;
pub(super) mod printers;
#[cfg(target_os = "linux")]
mod templates;
