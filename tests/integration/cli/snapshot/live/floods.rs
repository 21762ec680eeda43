//! Answers without an end: they are given up before they take the memory.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Site, nodes};
use crate::api_server::{More, Reply, Setup, list};
use crate::cli::{PATIENCE, SOON};

const MIB: usize = 1 << 20;

fn always(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Site {
    Site::new(Setup::default().fault(move |_, _| Some(reply())))
}

/// Pages, each with another token for the next.
fn endless(nodes: impl Fn() -> Vec<Value> + Send + Sync) -> impl Fn() -> Reply + Send + Sync {
    let pages = AtomicU64::new(0);
    move || {
        let more = More { token: pages.fetch_add(1, Ordering::SeqCst).to_string(), left: 1 };
        list(&nodes(), Some(&more)).into()
    }
}

#[test]
fn gives_up_what_is_too_large() {
    insta::assert_snapshot!(always(|| Reply::Flood(100 * MIB)).failure(&[]), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: it is larger than 32 MiB; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(always(|| Reply::Bomb(1024 * MIB)).failure(&[]), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: it is larger than 32 MiB; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn takes_what_is_just_large() {
    let site = always(|| Reply::Flood(30 * MIB));
    let run = site.snapshot(&["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(site.kept("east")[0]["name"], "n1");
}

#[test]
fn gives_up_a_list_that_does_not_end() {
    let same = || More { token: "again".to_owned(), left: 1 };
    let page = list(&nodes(1), Some(&same()));
    let site = always(move || page.clone().into());
    insta::assert_snapshot!(site.failure(&[]), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: the list has no end; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    assert!(site.east.requests().len() < 5);

    let site = always(endless(|| nodes(1)));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: the list has no end; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn gives_up_a_list_that_goes_on_with_nothing() {
    let site = always(endless(Vec::new));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: the list has no end; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    assert_eq!(site.east.requests().len(), 1);
}

/// Each page comes in time.
#[test]
fn gives_up_a_list_that_takes_for_ever() {
    let page = endless(|| nodes(1));
    let site = always(move || {
        thread::sleep(Duration::from_millis(400));
        page()
    });
    let start = Instant::now();
    insta::assert_snapshot!(site.failure(&["--timeout", "1"]), @"
    error[slow-cluster]: east: could not be read: the node list did not arrive completely within 10 s; snapshots/east.json was kept
    help: increase `--timeout` if the cluster is slow
    ");
    assert!(start.elapsed() < SOON);
}

/// A bomb is measured by what the process holds, looked at while it runs.
#[cfg(target_os = "linux")]
#[test]
fn holds_little_of_what_it_gives_up() {
    let site = always(|| Reply::Bomb(1024 * MIB));
    let mut child = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
        .env_clear()
        .current_dir(site.folder.path(""))
        .args(super::SNAPSHOT)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (mut most, start) = (0, Instant::now());
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE);
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<usize>().ok());
        most = most.max(kibibytes.unwrap_or(0) * 1024);
        thread::sleep(Duration::from_millis(2));
    }
    assert!(0 < most && most < 200 * MIB, "{} MiB", most / MIB);
}
