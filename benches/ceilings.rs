//! The cost of the commands at the built-in ceilings, which should keep a run below five seconds of
//! CPU time and 1 GiB.
//!
//! `cargo bench --bench ceilings`. It reports, and fails only when a run fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a benchmark starts processes, writes files, watches the clock and talks"
)]

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use support::clustermesh;
use support::figures::spread;
use support::process::{Usage, clock, python, remove, usage};
use support::shape::{Lan, Layout, Shape};

mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 3;
/// The maximum CPU time of a command, in seconds.
const SECONDS: f64 = 5.0;
/// The maximum memory of a command, in bytes.
const BYTES: f64 = (1 << 30) as f64;
const RANGES: u32 = 19_000;
/// An anchor, a range and a node each.
const ANCHORS: u32 = 1_600;
const EXPECTATIONS: u32 = 2_000;
/// In their order: what the first one writes is there for the others.
const COMMANDS: [&[&str]; 4] = [&["render"], &["validate"], &["render", "--check"], &["verify"]];

/// Input that is just below a ceiling.
struct Input {
    ceiling: &'static str,
    shape: Shape,
    /// What it has beyond its shape.
    more: fn(Shape, &Path) -> anyhow::Result<()>,
    /// What is there after the render, when only `verify` is measured: it finds a lot, and fails.
    later: Option<Shape>,
}

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("ceilings") else {
        return Ok(());
    };
    let python = python().context("CPU and memory are measured with python3")?;
    for input in inputs() {
        remove(&root)?;
        println!("{}: {}", input.ceiling, input.shape);
        input.shape.write(&root)?;
        (input.more)(input.shape, &root)?;
        let (commands, code) = match input.later {
            None => (&COMMANDS[..], "0"),
            Some(later) => {
                clock(&mut clustermesh(&root, &["render"]))?;
                later.write(&root)?;
                println!("  then: {later}");
                (&[&["verify"][..]][..], "1")
            }
        };
        for command in commands {
            let mut usages = Vec::new();
            for _ in 0..ROUNDS {
                if *command == ["render"] {
                    remove(&root.join("rendered"))?;
                }
                usages.push(usage(&python, &clustermesh(&root, command), code)?);
            }
            println!("{}", line(command, &usages));
        }
    }
    Ok(remove(&root)?)
}

fn inputs() -> [Input; 5] {
    let own_lans = |layout| Shape { lan: Lan::Own, ..Shape::new(layout) };
    let full = |clusters, nodes| own_lans(Layout::Full { clusters, nodes });
    let hub = own_lans(Layout::Hub { nodes: 1, spokes: 333, each: 240 });
    [
        Input { ceiling: "400 clusters", shape: full(400, 1), more: |_, _| Ok(()), later: None },
        Input { ceiling: "80,000 nodes", shape: hub, more: |_, _| Ok(()), later: None },
        Input {
            ceiling: "80,000 nodes, a tree that is older than an overlap",
            shape: hub,
            more: |_, _| Ok(()),
            later: Some(Shape { has_overlap: true, ..hub }),
        },
        Input {
            ceiling: "20,000 ranges and 5,000 anchors",
            shape: full(3, 50),
            more: ranges_and_anchors,
            later: None,
        },
        Input {
            ceiling: "2,000 expectations",
            shape: full(50, 50),
            more: expectations,
            later: None,
        },
    ]
}

/// Declares many ranges for the first cluster, and anchors for some of them.
fn ranges_and_anchors(shape: Shape, root: &Path) -> anyhow::Result<()> {
    let first = Ipv4Addr::new(172, 64, 0, 0).to_bits();
    let range = |number: u32| format!("{}/32", Ipv4Addr::from_bits(first + number % RANGES));
    let ranges: Vec<String> = (0..RANGES).map(range).collect();
    let (_, snapshot) = shape.snapshots().swap_remove(0);
    let node = &snapshot["nodes"][0]["name"];
    // A prime number apart, so that neighbours are far from each other.
    let anchor = |number: u32| json!({ "nodes": [node], "ranges": [range(number * 7_919)] });
    let anchors: Vec<Value> = (0..ANCHORS).map(anchor).collect();
    let mut mesh = shape.mesh();
    let entry = &mut mesh["spec"]["clusters"][0];
    entry["additionalCIDRs"] = json!(ranges);
    entry["anchors"] = json!(anchors);
    Ok(fs::write(root.join("mesh.yaml"), serde_yaml::to_string(&mesh)?)?)
}

/// Expects that the pods of all nodes in some zones reach a pod of every cluster.
fn expectations(_: Shape, root: &Path) -> anyhow::Result<()> {
    let expectation = |number: u32| {
        let zone = format!("region-{}a", 1 + number % 7);
        let pods = (0..50).map(|cluster| format!("10.{cluster}.{}.{}", number % 50, number / 50));
        json!({
            "from": { "nodeSelector": { "matchExpressions": [
                { "key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [zone] },
            ] } },
            "to": { "addresses": pods.collect::<Vec<_>>() },
            "expect": "Reach",
        })
    };
    let all: Vec<Value> = (0..EXPECTATIONS).map(expectation).collect();
    let file = json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "Expectations",
        "spec": all,
    });
    Ok(fs::write(root.join("expectations.yaml"), serde_yaml::to_string(&file)?)?)
}

fn line(command: &[&str], usages: &[Usage]) -> String {
    let seconds: Vec<f64> = usages.iter().map(|it| it.cpu).collect();
    #[expect(clippy::cast_precision_loss, reason = "for a person to read")]
    let bytes: Vec<f64> = usages.iter().map(|it| it.peak as f64).collect();
    let most = |samples: &[f64], limit: f64| samples.iter().copied().fold(0.0, f64::max) / limit;
    format!(
        "  {:<16}CPU {:<34}{:>5.2} of 5 s    {:<34}{:>5.2} of 1 GiB",
        command.join(" "),
        spread(&seconds, |it| format!("{it:.3} s")),
        most(&seconds, SECONDS),
        spread(&bytes, |it| format!("{:.0} MiB", it / f64::from(1 << 20))),
        most(&bytes, BYTES),
    )
}
