//! The proof compared with real WireGuard: rendered Peers of small random meshes, some of them with
//! faults. The results of the library for every ordered pair of nodes must agree with real packets.
//!
//! `REAL=1 cargo test --test real` runs it, as root or in `unshare -r`, with `wireguard-go`, `wg`
//! and `ip`; without these it fails. `REAL_SEED=N` runs only one mesh, and `REAL_SEED=N..END` other
//! meshes than the default ones. The result depends only on these numbers.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests touch the world, fail loudly, and this one reports what it saw"
)]

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use namespace::Namespace;
use report::Report;
use trial::Trial;

#[path = "../fleets/applied.rs"]
mod applied;
mod absence;
mod device;
mod external;
mod fault;
mod join;
mod kilo;
mod loss;
mod manifest;
mod mtu;
mod namespace;
mod network;
#[path = "../fleets/node.rs"]
mod node;
mod pair;
mod probe;
#[path = "../fleets/random.rs"]
mod random;
#[path = "../fleets/rendered.rs"]
mod rendered;
mod report;
mod segment;
mod socket;
mod trial;
mod verdict;
mod world;

/// How many meshes are made up.
const MESHES: u64 = 65;

/// The first mesh of which a node joins after the render.
const LATE: u64 = 45;

/// The first mesh of which a node is lost after the render.
const LOST: u64 = 51;

/// The first mesh with external peers.
const EXTERNAL: u64 = 63;

/// How many of them run in parallel: most of the time is spent waiting.
const WORKERS: usize = 22;

fn main() -> ExitCode {
    if env::args().any(|it| it == "--list") {
        // To `--list`, this is a test without a name.
        return ExitCode::SUCCESS;
    }
    if env::var_os("REAL").is_none() {
        println!("\n!!! SKIPPED: real WireGuard; REAL=1 asks for it, and root is needed\n");
        return ExitCode::SUCCESS;
    }
    if let Err(error) = rehearse() {
        println!("\n!!! CANNOT RUN: real WireGuard: {error}");
        println!(
            "!!! it takes root (or `unshare -r`), /dev/net/tun, unshare, ip, wireguard-go, wg\n"
        );
        return ExitCode::FAILURE;
    }
    let start = Instant::now();
    let seeds = env::var("REAL_SEED");
    // It waits most of the time.
    let absence = seeds.is_err().then(|| thread::spawn(absence::report));
    let trials = run(seeds.as_deref().map_or(0..MESHES, range));
    let report = Report::new(&trials);
    println!("{report}");
    let is_open = absence.is_none_or(|it| {
        let absence = it.join().expect("it has printed why it panicked");
        are_measured(absence)
    });
    let differences: usize = trials.iter().map(|it| it.differences().len()).sum();
    let seconds = start.elapsed().as_secs();
    println!("{differences} differences in {seconds} s");
    // Some meshes alone need not have everything in them.
    let missing = if seeds.is_ok() { Vec::new() } else { report.missing() };
    for kind in &missing {
        println!("!!! nothing tried: {kind}");
    }
    if is_open && missing.is_empty() && trials.iter().all(Trial::is_good) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints what needs a mesh of its own, and returns whether it is as it should be: a node that joins, an external
/// peer that is off, and large packets.
#[expect(clippy::needless_pass_by_value, reason = "a result is used up")]
fn are_measured(absence: io::Result<String>) -> bool {
    let all_resumed = match join::measure() {
        Ok(losses) => {
            println!("{losses}");
            losses.all_resumed()
        }
        Err(error) => {
            println!("!!! the join of a node could not be measured: {error}");
            false
        }
    };
    match &absence {
        Ok(text) => println!("{text}"),
        Err(error) => println!("!!! an external peer that is off: {error}"),
    }
    let mtus = mtu::compare();
    match &mtus {
        Ok(text) => println!("{text}"),
        Err(error) => println!("!!! MTUs: {error}"),
    }
    all_resumed && absence.is_ok() && mtus.is_ok()
}

/// Reads which meshes to make up.
fn range(text: &str) -> Range<u64> {
    let number = |text: &str| text.parse().expect("REAL_SEED is `N` or `N..END`");
    match text.split_once("..") {
        Some((start, end)) => number(start)..number(end),
        None => number(text)..number(text) + 1,
    }
}

/// Makes a namespace with one of everything in it that a mesh is made of.
fn rehearse() -> io::Result<()> {
    Namespace::new("rehearsal")?
        .run(
            "wireguard-go -f kilo0 2>&1 & timeout 5 sh -c \
             'until [ -S /run/wireguard/kilo0.sock ]; do sleep 0.01; done'\n\
             wg show kilo0\nip link show kilo0\n\
             ip link add lan0 type bridge\nip link add eth0 type veth peer name eth1",
        )
        .map(drop)
}

/// Runs meshes, several in parallel, and returns them in order.
fn run(seeds: Range<u64>) -> Vec<Trial> {
    let next = AtomicU64::new(seeds.start);
    let trials = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds.end <= seed {
                        return;
                    }
                    let trial = Trial::run(seed);
                    println!("{trial}");
                    trials.lock().unwrap().insert(seed, trial);
                }
            });
        }
    });
    let trials = trials.into_inner().unwrap();
    trials.into_values().collect()
}
