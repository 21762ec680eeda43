//! Writes the mesh and the snapshots of this example into a folder.

use std::path::Path;

use tenants::{Form, Placement, Tenants};

#[path = "../../tests/fleets/random.rs"]
mod random;
#[path = "../../tests/fleets/tenants.rs"]
mod tenants;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    Tenants::new(Form::Declared, Placement::Together).write(Path::new(&folder))
}
