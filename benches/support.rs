//! The parts that several benchmarks share.
#![allow(dead_code, reason = "each benchmark needs a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) mod figures;
pub(crate) mod process;
#[path = "../tests/fleets/random.rs"]
pub(crate) mod random;
#[path = "../tests/fleets/scale.rs"]
pub(crate) mod scale;
#[path = "../tests/fleets/shape.rs"]
pub(crate) mod shape;
#[path = "../tests/fleets/tenants.rs"]
pub(crate) mod tenants;

/// Returns the folder of a benchmark; none under `cargo test`, where there is no clock worth reading.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    if std::env::args().any(|argument| argument == "--bench") {
        return Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    }
    println!("nothing is measured without `cargo bench`");
    None
}

/// Returns the program for a folder, with nothing in its environment.
pub(crate) fn clustermesh(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clustermesh"));
    command.env_clear().arg("-C").arg(root).args(arguments);
    command
}
