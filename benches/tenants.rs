//! How many tenants fit around a hub in each form of `advertise`.
//!
//! `cargo bench --bench tenants` prints the table of docs/concepts/scale.md and writes its chart. A test of the docs
//! compares both with what it computes itself. Then it measures the commands on 100,000 nodes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark starts processes, writes files, talks and fails loudly"
)]

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use support::figures::mebibytes;
use support::process::{clock, git, python, remove, usage};
use support::tenants::{Form, Placement, Tenants};
use support::{clustermesh, scale};

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
    fs::write(CHART, scale::chart(&rows)).context(CHART)?;
    let Some(python) = python() else {
        println!("NOT MEASURED: 100,000 nodes, which take python3");
        return Ok(());
    };
    for are_linked in [false, true] {
        for form in [Form::Location, Form::Merged, Form::Declared] {
            large(&root, &python, form, are_linked)?;
        }
    }
    Ok(remove(&root)?)
}

/// Measures the commands on 200 clusters, 199 of them with 500 nodes.
fn large(root: &Path, python: &Path, form: Form, are_linked: bool) -> anyhow::Result<()> {
    let tenants =
        Tenants { count: 199, nodes: 500, are_linked, ..Tenants::new(form, Placement::Together) };
    remove(root)?;
    tenants.write(root)?;
    let links = if are_linked { "full mesh" } else { "hub" };
    println!("{links}: 199 × 500, {tenants}");
    let run = |command: &str| -> anyhow::Result<()> {
        let arguments = [command, "--ceiling", "nodes=200000"];
        let mut command = clustermesh(root, &arguments);
        // `diff` runs git.
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let used = usage(python, &command, "0")?;
        let peak = mebibytes(Some(used.peak));
        println!("  {:<10}{:>6.2} s CPU {peak:>10}", arguments[0], used.cpu);
        Ok(())
    };
    for command in ["render", "validate", "verify"] {
        run(command)?;
    }
    clock(&mut git(root, &["init", "--quiet"]))?;
    clock(&mut git(root, &["add", "--all"]))?;
    clock(&mut git(root, &["commit", "--quiet", "--message", "all"]))?;
    // The leader of a tenant gets another endpoint.
    let snapshot = root.join("snapshots/tenant-007.json");
    let text = fs::read_to_string(&snapshot)?;
    fs::write(&snapshot, text.replace("11.0.14.1:", "11.99.14.1:"))?;
    run("diff")
}

fn capacity(folder: &Path) -> String {
    let output = clustermesh(folder, scale::CAPACITY).output();
    let output = output.unwrap();
    // The largest have a grade that is an error.
    assert!(output.status.code().is_some_and(|it| it <= 1), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
