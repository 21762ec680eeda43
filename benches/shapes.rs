//! `verify` on fleets of several shapes: CPU and memory for each Peer, and beside a twin.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clustermesh::name::ClusterName;
use clustermesh::snapshot::Snapshot;

use super::ROUNDS;
use super::support::clustermesh;
use super::support::figures::{ratio, spread, thousands};
use super::support::process::{Usage, clock, python, remove, usage};
use super::support::shape::{Lan, Layout, Shape};

const FULL: Layout = Layout::Full { clusters: 50, nodes: 50 };
/// A node in each location.
const SMALL: Layout = Layout::Full { clusters: 200, nodes: 3 };
const HUB: Layout = Layout::Hub { nodes: 30, spokes: 200, each: 20 };
/// What a process may hold before there is any Peer, in bytes.
const BASE: f64 = (20 << 20) as f64;

/// A fleet on disk, and what each run took.
struct Fleet {
    shape: Shape,
    root: PathBuf,
    snapshots: Vec<(ClusterName, String)>,
    /// The number of allowed IPs in all manifests.
    ranges: u32,
    usages: Vec<Usage>,
    /// Seconds to read the JSON of all snapshots, which every command has to do.
    json: Vec<f64>,
}

/// Measures every shape beside its twin, and fleets that grow.
pub(crate) fn measure(root: &Path) -> anyhow::Result<()> {
    let Some(python) = python() else {
        println!("NOT MEASURED: shapes and growth, which take python3");
        return Ok(());
    };
    for shape in shapes() {
        let twin = Shape { lan: Lan::Own, ..shape };
        let mut fleets =
            [Fleet::new(shape, root.join("fleet"))?, Fleet::new(twin, root.join("twin"))?];
        for _ in 0..ROUNDS {
            for fleet in &mut fleets {
                fleet.verify(&python)?;
            }
        }
        let [fleet, twin] = &fleets;
        fleet.tell();
        println!("  twin");
        twin.tell_figures();
        println!("  CPU ÷ twin              {:<32}aim ≤ 1.5×", ratio(&fleet.cpu(), &twin.cpu()));
        remove(root)?;
    }
    grow(root, &python)?;
    remove(root)?;
    assume_hostile(root, &python)
}

/// Each hostile cluster should cost no more than a `verify`.
fn assume_hostile(root: &Path, python: &Path) -> anyhow::Result<()> {
    let clusters = 110;
    let shape = Shape { lan: Lan::Own, ..Shape::new(Layout::Full { clusters, nodes: 4 }) };
    let fleet = Fleet::new(shape, root.join("hostile"))?;
    let peers = thousands(shape.peers());
    println!("{shape} ({peers} Peers)");
    let names: Vec<String> = shape.snapshots().into_iter().map(|it| it.0).collect();
    for hostile in [&names[..0], &names[..1], &names[..]] {
        let mut command = clustermesh(&fleet.root, &["verify"]);
        for name in hostile {
            command.arg("--assume-hostile").arg(name);
        }
        let rounds = (0..ROUNDS).map(|_| Ok(usage(python, &command, "0")?.cpu));
        let seconds = rounds.collect::<anyhow::Result<Vec<f64>>>()?;
        let what = format!("{} hostile, CPU", hostile.len());
        println!("  {what:<24}{}", spread(&seconds, |it| format!("{it:.3} s")));
    }
    Ok(())
}

/// Peers × 4 a step.
fn grow(root: &Path, python: &Path) -> anyhow::Result<()> {
    let grown = |clusters| {
        let layout = Layout::Full { clusters, nodes: 50 };
        let lan = Lan::SharedBy(clusters);
        let shape = Shape { lan, ..Shape::new(layout) };
        Fleet::new(shape, root.join(clusters.to_string()))
    };
    let mut fleets = [grown(25)?, grown(50)?, grown(100)?];
    for _ in 0..ROUNDS {
        for fleet in &mut fleets {
            fleet.verify(python)?;
        }
    }
    for fleet in &fleets {
        fleet.tell();
    }
    for step in fleets.windows(2) {
        if let [before, after] = step {
            println!(
                "  CPU a step              {:<32}aim ≤ 5×",
                ratio(&after.cpu(), &before.cpu())
            );
        }
    }
    Ok(())
}

fn shapes() -> Vec<Shape> {
    let shared = |layout: Layout, lan| Shape { lan, ..Shape::new(layout) };
    let everywhere = shared(FULL, Lan::SharedBy(u32::MAX));
    let large = Layout::Full { clusters: 50, nodes: 200 };
    vec![
        Shape::new(FULL),
        everywhere,
        shared(FULL, Lan::SharedBy(3)),
        shared(large, Lan::SharedBy(3)),
        Shape { is_dual_stack: true, ..everywhere },
        Shape { locations: 3, ..everywhere },
        Shape { locations: 3, ..shared(FULL, Lan::ByLocation) },
        // As many Peers as the full mesh of 50: one for each node.
        Shape { locations: 3, ..shared(SMALL, Lan::ByLocation) },
        shared(HUB, Lan::SharedBy(u32::MAX)),
    ]
}

impl Fleet {
    /// Writes and renders a fleet.
    fn new(shape: Shape, root: PathBuf) -> anyhow::Result<Self> {
        shape.write(&root)?;
        clock(&mut clustermesh(&root, &["render"]))?;
        let snapshot = |(name, _): (String, _)| {
            let path = root.join("snapshots").join(format!("{name}.json"));
            Ok((name.parse()?, fs::read_to_string(path)?))
        };
        let snapshots = shape.snapshots().into_iter().map(snapshot);
        Ok(Self {
            shape,
            snapshots: snapshots.collect::<anyhow::Result<_>>()?,
            ranges: ranges(&root.join("rendered"))?,
            root,
            usages: Vec::new(),
            json: Vec::new(),
        })
    }

    fn verify(&mut self, python: &Path) -> anyhow::Result<()> {
        let command = clustermesh(&self.root, &["verify"]);
        self.usages.push(usage(python, &command, "0")?);
        let start = Instant::now();
        for (name, text) in &self.snapshots {
            black_box(Snapshot::read(name, text)?);
        }
        self.json.push(start.elapsed().as_secs_f64());
        Ok(())
    }

    fn cpu(&self) -> Vec<f64> {
        self.usages.iter().map(|it| it.cpu).collect()
    }

    fn tell(&self) {
        let peers = thousands(self.shape.peers());
        println!("{} ({peers} Peers)", self.shape);
        self.tell_figures();
    }

    fn tell_figures(&self) {
        let peers = f64::from(self.shape.peers());
        let seconds: Vec<f64> = self.cpu();
        let each = |seconds: &[f64], count: f64| {
            let each: Vec<f64> = seconds.iter().map(|it| it * 1e6 / count).collect();
            spread(&each, |it| format!("{it:.2} µs"))
        };
        #[expect(clippy::cast_precision_loss, reason = "for a person to read")]
        let peaks: Vec<f64> = self.usages.iter().map(|it| it.peak as f64).collect();
        let bytes: Vec<f64> = peaks.iter().map(|it| (it - BASE) / peers).collect();
        let line = |what: &str, value: String, aim: &str| {
            println!("{}", format!("  {what:<24}{value:<32}{aim}").trim_end());
        };
        line("CPU", spread(&seconds, |it| format!("{it:.3} s")), "");
        line("CPU a Peer", each(&seconds, peers), "aim ≤ 2.5 µs");
        line("  for JSON of snapshots", each(&self.json, peers), "");
        let ranges = f64::from(self.ranges);
        line("CPU an allowed IP", each(&seconds, ranges), "");
        line("peak memory", spread(&peaks, |it| format!("{:.0} MiB", it / f64::from(1 << 20))), "");
        line("beyond 20 MiB, a Peer", spread(&bytes, |it| format!("{it:.0} B")), "aim ≤ 600 B");
    }
}

/// Returns how many allowed IPs the manifests in a rendered tree have.
fn ranges(rendered: &Path) -> anyhow::Result<u32> {
    let mut ranges = 0;
    for folder in fs::read_dir(rendered)? {
        for file in fs::read_dir(folder?.path())? {
            let text = fs::read_to_string(file?.path())?;
            let items = text.lines().filter(|it| it.starts_with("  - \""));
            ranges += u32::try_from(items.count())?;
        }
    }
    Ok(ranges)
}
