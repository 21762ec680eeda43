//! What a comparison of two versions costs: one node of many has changed, beside a render that finds
//! nothing to write; every node has changed, beside a proof of the same fleet; and the mesh is renamed, so
//! that every Peer has another name and the same key.
//!
//! `cargo bench --bench changes`. It reports, and fails only when a run fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a benchmark starts processes, writes files, watches the clock and talks"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use support::figures::{mebibytes, ratio, seconds};
use support::process::{clock, git, python, remove, usage};
use support::shape::{Lan, Layout, Shape};

mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 5;

const FULL: Layout = Layout::Full { clusters: 50, nodes: 50 };
const HUB: Layout = Layout::Hub { nodes: 50, spokes: 100, each: 20 };

/// Fleets in which clusters see each other alike, and fleets in which they do not: in the LAN of others
/// they have no routes to them, and locations have leaders.
const SHAPES: [Shape; 4] = [
    Shape::new(FULL),
    Shape { is_dual_stack: true, ..Shape::new(FULL) },
    Shape { lan: Lan::SharedBy(3), locations: 3, ..Shape::new(FULL) },
    Shape { lan: Lan::SharedBy(u32::MAX), ..Shape::new(HUB) },
];

/// A fleet whose mesh is renamed.
const RENAMED: Shape = Shape::new(Layout::Full { clusters: 200, nodes: 3 });

/// Seconds of CPU of each round. Other work on the machine changes them less than the clock.
#[derive(Default)]
struct Figures {
    diff: Vec<f64>,
    render: Vec<f64>,
    verify: Vec<f64>,
}

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("changes") else {
        return Ok(());
    };
    let Some(python) = python() else {
        println!("NOT MEASURED: CPU, which takes python3");
        return Ok(());
    };
    for shape in SHAPES {
        remove(&root)?;
        compare(&root, &python, shape)?;
    }
    remove(&root)?;
    rename(&root, &python)?;
    Ok(remove(&root)?)
}

/// Renders a fleet and commits everything.
fn commit(root: &Path, shape: Shape) -> anyhow::Result<()> {
    shape.write(root)?;
    clock(&mut clustermesh(root, &["render"]))?;
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "before"]] {
        clock(&mut git(root, arguments))?;
    }
    println!("{shape}");
    Ok(())
}

/// Renames a mesh, with each order of the engines. Each cluster has many states on the way.
fn rename(root: &Path, python: &Path) -> anyhow::Result<()> {
    commit(root, RENAMED)?;
    let path = root.join("mesh.yaml");
    let text = fs::read_to_string(&path)?;
    let renamed = text.replace("\n  name: fleet\n", "\n  name: renamed\n");
    ensure!(renamed != text, "no name in {}", path.display());
    fs::write(&path, renamed)?;
    println!("  the mesh has another name");
    for engine in ["argocd", "flux"] {
        let diff = clustermesh(root, &["diff", "--applied-by", engine]);
        let used = usage(python, &diff, "0")?;
        let peak = mebibytes(Some(used.peak));
        let figures = format!("{:.1} s, {peak}", used.cpu);
        println!("  diff, {engine:<20}{figures:<32}aim ≤ 10 s, 1024 MiB");
    }
    Ok(())
}

fn compare(root: &Path, python: &Path, shape: Shape) -> anyhow::Result<()> {
    commit(root, shape)?;
    let clusters: Vec<String> = shape.snapshots().into_iter().map(|it| it.0).collect();
    let first = clusters.first().context("no cluster")?;
    edit(root, first, 1)?;
    let one = measure(root, python)?;
    println!("  one node has another port");
    report(&one);
    println!("  diff ÷ render             {:<32}aim ≤ 3.0×", ratio(&one.diff, &one.render));
    for cluster in &clusters {
        edit(root, cluster, usize::MAX)?;
    }
    let all = measure(root, python)?;
    println!("  every node has another port");
    report(&all);
    println!("  diff ÷ verify             {:<32}aim ≤ 2.5×", ratio(&all.diff, &all.verify));
    Ok(())
}

/// Gives the first nodes of a cluster another port, apart from those that have it already.
fn edit(root: &Path, cluster: &str, nodes: usize) -> anyhow::Result<()> {
    let path = root.join("snapshots").join(format!("{cluster}.json"));
    let text = fs::read_to_string(&path)?;
    // Each node has its endpoint twice.
    let text = text.replacen(":51820\"", ":51821\"", nodes.saturating_mul(2));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn measure(root: &Path, python: &Path) -> anyhow::Result<Figures> {
    clock(&mut clustermesh(root, &["render"]))?;
    let cpu =
        |command| Ok::<_, anyhow::Error>(usage(python, &clustermesh(root, &[command]), "0")?.cpu);
    let mut figures = Figures::default();
    for _ in 0..ROUNDS {
        figures.diff.push(cpu("diff")?);
        figures.render.push(cpu("render")?);
        figures.verify.push(cpu("verify")?);
    }
    Ok(figures)
}

fn report(figures: &Figures) {
    println!("  diff                      {}", seconds(&figures.diff));
    println!("  render, nothing to write  {}", seconds(&figures.render));
    println!("  verify                    {}", seconds(&figures.verify));
}

fn clustermesh(root: &Path, arguments: &[&str]) -> Command {
    let mut command = support::clustermesh(root, arguments);
    // `diff` runs git.
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}
