//! Writes the mesh and the snapshots of this example into a folder.
#![allow(clippy::disallowed_methods, reason = "it writes files")]

use std::path::Path;

use tenants::EXAMPLE;

#[path = "../../tests/fleets/random.rs"]
mod random;
#[path = "../../tests/fleets/tenants.rs"]
mod tenants;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    EXAMPLE.write(Path::new(&folder))
}
