//! What a render costs: beside a plain copy of its bytes, beside a script that does the same, and
//! beside a render that finds nothing to do. And what it costs to validate the same.
//!
//! `cargo bench --bench render`. It reports, and judges nothing but the bytes: it fails when a run
//! fails or when the script's output is not ours.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark starts processes, writes files, watches the clock and talks"
)]

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use support::process::{clock, remove};
use support::shape::{Layout, Shape};
use support::{clustermesh, figures, process};

mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 7;
/// How often memory is looked at; it hardly changes.
const PEAKS: usize = 3;
const SHAPES: [Shape; 2] = [
    Shape::new(Layout::Full { clusters: 50, nodes: 50 }),
    Shape::new(Layout::Hub { nodes: 30, spokes: 200, each: 20 }),
];
/// The whole job again, in the language one would reach for first.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/render.py");

/// A rendered tree: its files by path.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// Seconds of each round, and the peaks in bytes.
#[derive(Default)]
struct Figures {
    render: Vec<f64>,
    again: Vec<f64>,
    validate: Vec<f64>,
    copy: Vec<f64>,
    script: Vec<f64>,
    peak: Option<u64>,
    validate_peak: Option<u64>,
}

/// One folder with everything about one shape in it.
///
/// Until the last figure is taken, files are truncated rather than removed. ext4 skips inodes that
/// were freed in the last minutes, one by one, which would slow down the next measurement; and
/// empty files need not reach the disk during a measurement.
struct Site {
    root: PathBuf,
    python: Option<PathBuf>,
    /// What the first render gave, and every other one must.
    expected: Tree,
}

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("render") else {
        return Ok(());
    };
    let python = process::python();
    if python.is_none() {
        eprintln!(
            "WARNING: no python3: script and memory are NOT measured, the bytes NOT compared"
        );
    }
    remove(&root)?;
    for shape in SHAPES {
        let folder = root.join(format!("{}-clusters", shape.clusters()));
        measure(shape, &folder, python.clone())
            .with_context(|| format!("{shape}, in {}", folder.display()))?;
    }
    Ok(remove(&root)?)
}

fn measure(shape: Shape, root: &Path, python: Option<PathBuf>) -> anyhow::Result<()> {
    shape.write(root)?;
    let mut site = Site { root: root.to_owned(), python, expected: Tree::new() };
    site.expect(shape)?;
    let mut figures = Figures::default();
    for round in 0..ROUNDS {
        site.round(round, &mut figures)?;
    }
    (figures.peak, figures.validate_peak) = site.peaks()?.unzip();
    println!("{}", headline(shape, &site.expected));
    println!("{figures}");
    Ok(())
}

impl Site {
    /// Warms the caches, and keeps the output.
    fn expect(&mut self, shape: Shape) -> anyhow::Result<()> {
        clock(&mut self.render())?;
        self.expected = tree(&self.rendered())?;
        let peers: usize = self.expected.values().map(|text| peers(text)).sum();
        ensure!(
            peers == usize::try_from(shape.peers())?,
            "{peers} Peers were rendered, not {}",
            shape.peers()
        );
        self.set_aside("expected")
    }

    /// Every variant once, in alternating order, so that none always goes first.
    fn round(&self, round: usize, figures: &mut Figures) -> anyhow::Result<()> {
        let mut steps: [Step; 3] = [Self::time_renders, Self::time_copy, Self::time_script];
        if round % 2 == 1 {
            steps.reverse();
        }
        steps.iter().try_for_each(|step| step(self, round, figures))
    }

    fn time_renders(&self, round: usize, figures: &mut Figures) -> anyhow::Result<()> {
        figures.render.push(clock(&mut self.render())?);
        self.check(&self.rendered())?;
        figures.again.push(clock(&mut self.render())?);
        self.check(&self.rendered())?;
        figures.validate.push(clock(&mut self.validate())?);
        self.set_aside(&format!("rendered-{round}"))
    }

    fn time_copy(&self, round: usize, figures: &mut Figures) -> anyhow::Result<()> {
        let copied = self.root.join(format!("copied-{round}"));
        let start = Instant::now();
        copy(&self.expected, &copied)?;
        figures.copy.push(start.elapsed().as_secs_f64());
        self.check(&copied)?;
        self.empty(&copied)
    }

    fn time_script(&self, round: usize, figures: &mut Figures) -> anyhow::Result<()> {
        let Some(python) = &self.python else {
            return Ok(());
        };
        let scripted = self.root.join(format!("scripted-{round}"));
        let mut script = Command::new(python);
        script.arg(SCRIPT).arg(&self.root).arg(&scripted);
        figures.script.push(clock(&mut script)?);
        self.check(&scripted)?;
        self.empty(&scripted)
    }

    /// The most that a render of a fresh tree ever held, and a validation after it, in bytes.
    fn peaks(&self) -> anyhow::Result<Option<(u64, u64)>> {
        let Some(python) = &self.python else {
            return Ok(None);
        };
        let (mut render, mut validate) = (0, 0);
        for round in 0..PEAKS {
            render = render.max(process::usage(python, &self.render(), "0")?.peak);
            validate = validate.max(process::usage(python, &self.validate(), "0")?.peak);
            self.set_aside(&format!("weighed-{round}"))?;
        }
        Ok(Some((render, validate)))
    }

    fn render(&self) -> Command {
        clustermesh(&self.root, &["render"])
    }

    fn validate(&self) -> Command {
        clustermesh(&self.root, &["validate"])
    }

    fn rendered(&self) -> PathBuf {
        self.root.join("rendered")
    }

    /// Makes room for another render.
    fn set_aside(&self, name: &str) -> anyhow::Result<()> {
        let aside = self.root.join(name);
        fs::rename(self.rendered(), &aside)?;
        self.empty(&aside)
    }

    fn empty(&self, root: &Path) -> anyhow::Result<()> {
        for path in self.expected.keys() {
            fs::write(root.join(path), "")?;
        }
        Ok(())
    }

    /// Fails if a tree is not, byte for byte, what the first render gave.
    fn check(&self, root: &Path) -> anyhow::Result<()> {
        let found = tree(root)?;
        for path in self.expected.keys().chain(found.keys()) {
            ensure!(
                self.expected.get(path) == found.get(path),
                "{} differs from what was rendered first",
                root.join(path).display()
            );
        }
        Ok(())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use support::figures::{line, mebibytes, ratio, seconds};
        line(f, "render", &seconds(&self.render), "")?;
        line(f, "copy of the same bytes", &seconds(&self.copy), "")?;
        line(f, "script", &seconds(&self.script), "")?;
        line(f, "second render", &seconds(&self.again), "")?;
        line(f, "validate", &seconds(&self.validate), "")?;
        let (render, copy) = (&self.render, &self.copy);
        line(f, "render ÷ copy", &ratio(render, copy), "≤ 2.0×")?;
        line(f, "script ÷ render", &ratio(&self.script, render), "≥ 6×")?;
        line(f, "peak memory", &mebibytes(self.peak), "≤ 64 MiB")?;
        line(f, "second ÷ first", &ratio(&self.again, render), "≤ 1.0×")?;
        line(f, "validate ÷ render", &ratio(&self.validate, render), "≤ 1.0×")?;
        line(f, "its peak memory", &mebibytes(self.validate_peak), "≤ 64 MiB")
    }
}

/// One variant, timed.
type Step = fn(&Site, usize, &mut Figures) -> anyhow::Result<()>;

/// Writes what is in memory already, and does nothing else.
fn copy(tree: &Tree, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let mut last = None;
    for (path, bytes) in tree {
        if last != path.parent() {
            last = path.parent();
            fs::create_dir(to.join(last.unwrap_or(path)))?;
        }
        fs::write(to.join(path), bytes)?;
    }
    Ok(())
}

fn tree(root: &Path) -> anyhow::Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                tree.insert(path.strip_prefix(root)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(tree)
}

fn peers(text: &[u8]) -> usize {
    text.split(|&byte| byte == b'\n').filter(|line| *line == b"kind: Peer").count()
}

fn headline(shape: Shape, tree: &Tree) -> String {
    let bytes: usize = tree.values().map(Vec::len).sum();
    format!(
        "{shape} ({} Peers, {} files, {} MB)",
        figures::thousands(shape.peers()),
        figures::thousands(u32::try_from(tree.len()).unwrap_or(u32::MAX)),
        (bytes + 500_000) / 1_000_000,
    )
}
