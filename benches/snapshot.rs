//! What a snapshot of many live clusters costs: beside a plain download of the same pages, and
//! beside one that unpacks them.
//!
//! `cargo bench --bench snapshot`. It reports, and judges nothing: it fails when a run fails or
//! when a snapshot is missing.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark starts processes and servers, writes files, watches the clock and talks"
)]

use std::fmt;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use rayon::prelude::*;
use serde_json::json;

use listing::Fleet;
use server::Server;
use support::process::{clock, remove};
use support::{clustermesh, figures, process};

mod listing;
mod server;
mod support;

/// Odd, so that the median is one that was seen.
const ROUNDS: usize = 3;
/// How many clusters `snapshot` reads in parallel.
const AT_ONCE: usize = 4;
const FLEETS: [Fleet; 2] =
    [Fleet { clusters: 20, nodes: 5000 }, Fleet { clusters: 200, nodes: 50 }];

/// Seconds of each round, and the peak in bytes.
#[derive(Default)]
struct Figures {
    snapshot: Vec<f64>,
    again: Vec<f64>,
    download: Vec<f64>,
    unpack: Vec<f64>,
    peak: Option<u64>,
}

/// One folder and one set of servers for one fleet.
struct Site {
    root: PathBuf,
    fleet: Fleet,
    servers: Vec<Server>,
}

/// What a plain client does with what it gets.
#[derive(Clone, Copy)]
enum Use {
    Nothing,
    Unpack,
}

fn main() -> anyhow::Result<()> {
    let Some(root) = support::folder("snapshot") else {
        return Ok(());
    };
    let python = process::python();
    if python.is_none() {
        eprintln!("WARNING: no python3: memory is NOT measured");
    }
    remove(&root)?;
    for fleet in FLEETS {
        let site = Site::new(&root, fleet)?;
        println!("{}", site.headline());
        let figures = site.measure(python.as_deref());
        println!("{}", figures.with_context(|| root.display().to_string())?);
        remove(&root)?;
    }
    Ok(())
}

impl Site {
    fn new(root: &Path, fleet: Fleet) -> anyhow::Result<Self> {
        let servers = (0..fleet.clusters)
            .into_par_iter()
            .map(|cluster| Server::start(fleet.pages(cluster)))
            .collect::<Result<Vec<Server>, io::Error>>()?;
        fs::create_dir_all(root)?;
        fs::write(root.join("mesh.yaml"), fleet.mesh())?;
        let config = json!({
            "apiVersion": "kilo-clustermesh.io/v1",
            "kind": "Config",
            "limits": { "nodes": fleet.nodes },
        });
        fs::write(root.join("clustermesh.yaml"), config.to_string())?;
        fs::write(root.join("kubeconfig"), kubeconfig(&servers))?;
        Ok(Self { root: root.to_owned(), fleet, servers })
    }

    fn measure(&self, python: Option<&Path>) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        for _ in 0..ROUNDS {
            self.forget()?;
            figures.snapshot.push(clock(&mut self.snapshot())?);
            self.check()?;
            figures.again.push(clock(&mut self.snapshot())?);
            figures.download.push(self.download(Use::Nothing)?);
            figures.unpack.push(self.download(Use::Unpack)?);
        }
        if let Some(python) = python {
            // With old snapshots there is more to hold.
            let renewed = process::usage(python, &self.snapshot(), "0")?.peak;
            self.forget()?;
            let fresh = process::usage(python, &self.snapshot(), "0")?.peak;
            figures.peak = Some(fresh.max(renewed));
        }
        Ok(figures)
    }

    fn snapshot(&self) -> Command {
        let mut command = clustermesh(&self.root, &["snapshot", "--kubeconfig"]);
        command.arg(self.root.join("kubeconfig"));
        command
    }

    fn forget(&self) -> io::Result<()> {
        remove(&self.snapshots())
    }

    fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    fn check(&self) -> anyhow::Result<()> {
        for cluster in 0..self.fleet.clusters {
            let name = Fleet::cluster(cluster);
            let text = fs::read_to_string(self.snapshots().join(format!("{name}.json")))?;
            let nodes = text.matches(r#""kilo.squat.ai/key""#).count();
            ensure!(nodes == self.fleet.nodes as usize, "{name} has {nodes} nodes");
        }
        Ok(())
    }

    /// Seconds that a client takes which wants nothing but the bytes.
    fn download(&self, purpose: Use) -> anyhow::Result<f64> {
        let start = Instant::now();
        let servers = Mutex::new(self.servers.iter());
        let work = || -> anyhow::Result<()> {
            let next = || servers.lock().ok().and_then(|mut servers| servers.next());
            while let Some(server) = next() {
                download(server, purpose)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect::<anyhow::Result<()>>()
        })?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn headline(&self) -> String {
        let megabytes = |bytes: fn(&Server) -> usize| -> usize {
            let bytes: usize = self.servers.iter().map(bytes).sum();
            (bytes + 500_000) / 1_000_000
        };
        format!(
            "{} clusters of {} nodes ({} MB, {} MB in gzip)",
            self.fleet.clusters,
            figures::thousands(self.fleet.nodes),
            megabytes(|it| it.plain),
            megabytes(|it| it.packed),
        )
    }
}

fn kubeconfig(servers: &[Server]) -> String {
    let names: Vec<String> = (0..).map(Fleet::cluster).take(servers.len()).collect();
    let clusters: Vec<_> = names
        .iter()
        .zip(servers)
        .map(|(name, server)| {
            let url = format!("http://{}", server.address);
            json!({ "name": name, "cluster": { "server": url } })
        })
        .collect();
    let contexts: Vec<_> = names
        .iter()
        .map(|name| json!({ "name": name, "context": { "cluster": name, "user": "reader" } }))
        .collect();
    let users = json!([{ "name": "reader", "user": { "token": "sesame" } }]);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "contexts": contexts,
        "users": users,
    })
    .to_string()
}

/// Gets every page of a cluster, one after the other on one connection.
fn download(server: &Server, purpose: Use) -> anyhow::Result<()> {
    let stream = TcpStream::connect(server.address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(1 << 16, &stream);
    for page in 0..server.pages {
        let target = Server::target(page);
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
        (&stream).write_all(request.as_bytes())?;
        let mut body = (&mut reader).take(0);
        let length = length(body.get_mut())?;
        body.set_limit(length);
        match purpose {
            Use::Nothing => io::copy(&mut body, &mut io::sink())?,
            Use::Unpack => io::copy(&mut GzDecoder::new(&mut body), &mut io::sink())?,
        };
        io::copy(&mut body, &mut io::sink())?;
    }
    Ok(())
}

/// Reads the head of an answer, and returns how long its body is.
fn length(reader: &mut impl io::BufRead) -> anyhow::Result<u64> {
    let mut length = None;
    for line in reader.lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = Some(text.parse()?);
        }
    }
    length.context("no Content-Length")
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use support::figures::{line, mebibytes, ratio, seconds};
        line(f, "snapshot", &seconds(&self.snapshot), "")?;
        line(f, "plain download", &seconds(&self.download), "")?;
        line(f, "unpacked download", &seconds(&self.unpack), "")?;
        line(f, "second snapshot", &seconds(&self.again), "")?;
        let ratio = |under: &[f64]| ratio(&self.snapshot, under);
        line(f, "snapshot ÷ download", &ratio(&self.download), "")?;
        line(f, "snapshot ÷ unpacked", &ratio(&self.unpack), "")?;
        line(f, "peak memory", &mebibytes(self.peak), "≤ 200 MiB")
    }
}
