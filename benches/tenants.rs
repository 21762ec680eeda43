//! How many tenants fit around a host in each form of `advertise`.
//!
//! `cargo bench --bench tenants` prints the table of docs/concepts/scale.md and writes its chart. A test of the docs
//! compares both with what it computes itself.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark starts processes, writes files and talks"
)]

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use support::clustermesh;
use support::process::remove;
use support::scale;

mod support;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images/tenants.svg");

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("tenants") else {
        return Ok(());
    };
    let mut rows = Vec::new();
    for tenants in scale::all() {
        remove(&root)?;
        rows.push(scale::row(tenants, &root, capacity));
    }
    remove(&root)?;
    print!("{}", scale::table(&rows));
    fs::write(CHART, scale::chart(&rows)).context(CHART)
}

fn capacity(folder: &Path) -> String {
    let output = clustermesh(folder, scale::CAPACITY).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
