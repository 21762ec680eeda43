//! What it costs to lose every single part of a fleet: `outage` beside `verify`, side by side.
//!
//! `cargo bench --bench outage`. It reports, and fails only when a run fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a benchmark starts processes, reads files, watches the clock and talks"
)]

use support::clustermesh;
use support::figures::{ratio, spread};
use support::process::{clock, python, remove, usage};
use support::shape::{Lan, Layout, Shape};

mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 5;
const FULL: Layout = Layout::Full { clusters: 50, nodes: 50 };
const HUB: Layout = Layout::Hub { nodes: 30, spokes: 200, each: 20 };

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("outage") else {
        return Ok(());
    };
    let Some(python) = python() else {
        println!("NOT MEASURED: CPU, which takes python3");
        return Ok(());
    };
    for shape in shapes() {
        remove(&root)?;
        shape.write(&root)?;
        clock(&mut clustermesh(&root, &["render"]))?;
        let [mut verify, mut outage] = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            let cpu = |arguments: &[&str]| {
                let command = clustermesh(&root, arguments);
                Ok::<f64, anyhow::Error>(usage(&python, &command, "0")?.cpu)
            };
            verify.push(cpu(&["verify"])?);
            outage.push(cpu(&["outage"])?);
        }
        println!("{shape}");
        println!("  verify                  {}", spread(&verify, |it| seconds(*it)));
        println!("  outage                  {}", spread(&outage, |it| seconds(*it)));
        println!("  ÷                       {:<32}aim ≤ 10×", ratio(&outage, &verify));
    }
    Ok(remove(&root)?)
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn shapes() -> Vec<Shape> {
    let shared = |layout: Layout, lan| Shape { lan, ..Shape::new(layout) };
    vec![
        Shape::new(FULL),
        shared(FULL, Lan::SharedBy(u32::MAX)),
        Shape { locations: 3, ..shared(FULL, Lan::ByLocation) },
        Shape { locations: 3, ..Shape::new(FULL) },
        Shape::new(HUB),
        shared(HUB, Lan::SharedBy(u32::MAX)),
        Shape { locations: 3, ..Shape::new(HUB) },
    ]
}
