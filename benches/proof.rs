//! What a proof costs: reading what every cluster gets, building the tables, proving every range to
//! every range; beside following a packet between every two nodes, and beside a render of the same.
//! Then `verify` as a whole on fleets of several shapes, each beside the same fleet with a LAN for each
//! cluster, and on fleets that grow.
//!
//! `cargo bench --bench proof`. It reports, and fails only when a run fails or when the proof and the
//! enumeration count differently.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a benchmark starts processes, reads files, watches the clock and talks"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::fabric::{Fabric, NodeRef, Site};
use clustermesh::document::Source;
use clustermesh::mesh::AddressClass;
use clustermesh::mesh::{self, Mesh};
use clustermesh::packet::{Goal, Packet, Session};
use clustermesh::proof::reach::{Reach, address_blocks};
use clustermesh::proof::verify::{Asked, verify};
use clustermesh::snapshot::Snapshot;

use support::clustermesh;
use support::process::{clock, remove};
use support::shape::{Layout, Shape};

mod shapes;
mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 5;
const SHAPE: Shape = Shape::new(Layout::Full { clusters: 50, nodes: 50 });

/// Seconds of each round.
#[derive(Default)]
struct Figures {
    parse: Vec<f64>,
    tables: Vec<f64>,
    proof: Vec<f64>,
    brute: Vec<f64>,
    render: Vec<f64>,
    verify: Vec<f64>,
}

/// A file: its name and its text.
type Manifest = (Arc<str>, Arc<str>);

/// Everything that a proof is made from, as texts.
struct Input {
    meshes: Vec<Mesh>,
    snapshots: BTreeMap<String, Snapshot>,
    /// By cluster.
    manifests: BTreeMap<String, Vec<Manifest>>,
}

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("proof") else {
        return Ok(());
    };
    remove(&root)?;
    SHAPE.write(&root)?;
    clock(&mut clustermesh(&root, &["render"]))?;
    let input = Input::read(&root)?;
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let mut figures = Figures::default();
    for _ in 0..ROUNDS {
        let rendered = root.join("rendered");
        fs::rename(&rendered, root.join("aside"))?;
        figures.render.push(clock(&mut clustermesh(&root, &["render"]))?);
        remove(&root.join("aside"))?;
        figures.verify.push(clock(&mut clustermesh(&root, &["verify"]))?);
        single.install(|| input.round(&mut figures))?;
    }
    tell(&figures);
    remove(&root)?;
    shapes::measure(&root)?;
    Ok(remove(&root)?)
}

impl Input {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root.join("mesh.yaml"))?;
        let source = Source::parse("mesh.yaml", text.as_str());
        let source = source.map_err(|_| anyhow::anyhow!("the mesh is no YAML"))?;
        let meshes = mesh::read(&[source]).meshes;
        let mut snapshots = BTreeMap::new();
        let mut manifests = BTreeMap::new();
        for entry in meshes.iter().flat_map(|mesh| &mesh.entries) {
            let name = entry.name.to_string();
            let path = root.join("snapshots").join(format!("{name}.json"));
            let snapshot = Snapshot::read(&entry.name, &fs::read_to_string(path)?)?;
            snapshots.insert(name.clone(), snapshot);
            manifests.insert(name.clone(), texts(&root.join("rendered").join(name))?);
        }
        Ok(Self { meshes, snapshots, manifests })
    }

    /// Every stage once, on one thread.
    fn round(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let start = Instant::now();
        let all: Vec<_> = self.manifests.values().flatten().cloned().collect();
        let mut read = AppliedFile::read_all(&all).into_iter();
        let files: BTreeMap<&str, Vec<AppliedFile>> = self
            .manifests
            .iter()
            .map(|(name, texts)| (name.as_str(), read.by_ref().take(texts.len()).collect()))
            .collect();
        figures.parse.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let entries = self.meshes.iter().flat_map(|mesh| &mesh.entries);
        let sites = entries.map(|entry| {
            let name = entry.name.as_str();
            let snapshot = self.snapshots.get(name).context("no snapshot")?;
            let files = files.get(name).context("no manifests")?;
            Ok(Site::new(entry, snapshot, files))
        });
        let fabric = Fabric::new(sites.collect::<anyhow::Result<_>>()?);
        figures.tables.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let reach = Reach::new(&fabric, u64::MAX);
        let asked = Asked { meshes: &self.meshes, lists_undeclared: false, allowed: None };
        let verification = verify(&reach, asked);
        figures.proof.push(start.elapsed().as_secs_f64());
        ensure!(verification.holds(), "a rendered mesh must hold");
        let pods = verification.pairings.iter();
        let pods = pods.filter_map(|it| it.tallies.get((AddressClass::Pod, AddressClass::Pod)));
        let proved: u64 = pods.map(|tally| tally.kept).sum();

        let start = Instant::now();
        let followed = followed(&fabric);
        figures.brute.push(start.elapsed().as_secs_f64());
        ensure!(proved == followed, "{proved} pairs proved, {followed} followed");
        Ok(())
    }
}

/// Follows a packet and its answer between every two nodes, and counts those that arrive.
fn followed(fabric: &Fabric) -> u64 {
    let pods = fabric.sites.map(|site| {
        let all = address_blocks(site).into_iter();
        let pods = all.filter(|it| it.owner.class() == Some(AddressClass::Pod));
        let pods = pods.filter_map(|it| Some((it.owner.node()?, it.span.first_address())));
        pods.collect::<Vec<_>>()
    });
    let mut arrived = 0;
    for (from, senders) in pods.numbered() {
        for (to, receivers) in pods.numbered().filter(|(to, _)| *to != from) {
            for &(sender, source) in senders {
                for &(receiver, destination) in receivers {
                    let trace = fabric.exchange(Packet {
                        from: NodeRef { site: from, node: sender },
                        source,
                        to: Goal::Node(NodeRef { site: to, node: receiver }),
                        destination,
                        session: Session::New,
                    });
                    arrived += u64::from(trace.ending().is_delivered());
                }
            }
        }
    }
    arrived
}

fn texts(folder: &Path) -> anyhow::Result<Vec<Manifest>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<anyhow::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| !path.ends_with("kustomization.yaml"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path)?;
        Ok((path.display().to_string().into(), text.into()))
    };
    paths.into_iter().map(read).collect()
}

fn tell(figures: &Figures) {
    use support::figures::{ratio, seconds};
    println!("{SHAPE}: 6,125,000 ordered pairs of nodes");
    let line = |what: &str, value: String, aim: &str| {
        let aim = if aim.is_empty() { String::new() } else { format!("aim {aim}") };
        println!("{}", format!("  {what:<26}{value:<32}{aim}").trim_end());
    };
    line("parse", seconds(&figures.parse), "");
    line("tables", seconds(&figures.tables), "");
    line("proof", seconds(&figures.proof), "");
    line("brute force", seconds(&figures.brute), "");
    line("render", seconds(&figures.render), "");
    line("verify", seconds(&figures.verify), "");
    line("proof ÷ brute force", ratio(&figures.proof, &figures.brute), "≤ 0.10×");
    line("verify ÷ render", ratio(&figures.verify, &figures.render), "≤ 2.0×");
}
