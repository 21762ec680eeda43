//! Several clusters: what one does is nothing to the others.

use std::thread;
use std::time::{Duration, Instant};

use super::{SNAPSHOT, Site, nodes};
use crate::api_server::{Answer, Context, Reply, Setup, credential, kubeconfig};
use crate::cli::Folder;
use crate::support::assert_contains;

fn ill() -> Site {
    let forbidden = || Answer::failure(403, "Forbidden", "no").into();
    Site::new(Setup::default().fault(move |_, _| Some(forbidden())))
}

#[test]
fn one_that_fails_fails_the_run() {
    let site = ill();
    insta::assert_snapshot!(site.failure(&[]), @"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: no); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right
    ");
}

#[test]
fn one_that_keeps_its_snapshot_may_be_forgiven() {
    let site = ill();
    let old = site.folder.read("snapshots/east.json");
    let run = site.snapshot(&["--keep-going"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(site.folder.read("snapshots/east.json"), old);
    insta::assert_snapshot!(site.about_east(&run), @"
    warning[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: no); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right
    ");

    let site = ill();
    assert_eq!(site.snapshot(&["--keep-going", "--fail-on", "warning"]).code, 1);
}

#[test]
fn one_without_a_snapshot_is_not_forgiven() {
    let site = ill();
    std::fs::remove_file(site.folder.path("snapshots/east.json")).unwrap();
    let run = site.snapshot(&["--keep-going"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(!site.folder.path("snapshots/east.json").exists());
    insta::assert_snapshot!(site.about_east(&run), @"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: no); it has no snapshot yet
    help: `clustermesh rbac` prints the manifests that grant this right
    ");
}

#[test]
fn are_compared() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    assert_eq!(site.snapshot(&[]).code, 0);
    let before = site.folder.touches(".");
    let run = site.snapshot(&["--check"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    let mut changed = nodes(1);
    changed[0]["metadata"]["labels"]["zone"] = "a".into();
    site.east.change(&changed);
    let run = site.snapshot(&["--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"snapshots/east.json: `n1`: labels[zone] added: `a`");
    assert_eq!(site.folder.touches("."), before);
}

#[test]
fn failures_weigh_more_than_differences() {
    let site = ill();
    let run = site.snapshot(&["--check"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stdout, @"
    snapshots/north.json: formatted differently than `clustermesh snapshot` writes it
    snapshots/west.json: formatted differently than `clustermesh snapshot` writes it
    ");
    insta::assert_snapshot!(run.stderr, @"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: no); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right

    snapshots/north.json: 2 nodes, 2 usable, differs
    snapshots/west.json: 2 nodes, 2 usable, differs
    ");
}

#[test]
fn only_those_that_are_named_are_asked() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    let run = site.snapshot(&["north", "west"]);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/north.json: 2 nodes, 2 usable, written
    snapshots/west.json: 2 nodes, 2 usable, written
    ");
    assert_eq!((run.code, site.east.connections()), (0, 0));
}

/// In any order of answers, and although nothing is known of either.
#[test]
fn two_contexts_of_one_cluster_are_found_in_the_first_run() {
    for slow in [1, 2] {
        let late = || {
            thread::sleep(Duration::from_millis(300));
            None
        };
        let server = Setup::nodes(&nodes(1))
            .fault(move |_, number| if number == slow { late() } else { None })
            .start();
        let (folder, _) = many(2, |name| Context::new(name, &server.url()));
        let run = folder.run_with(&[], &SNAPSHOT);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""));
        let usable = "2 nodes, 0 usable";
        insta::allow_duplicates!(
            insta::assert_snapshot!(run.stderr.replace("2 nodes, 2 usable", usable), @"
        snapshots/c00.json: 2 nodes, 0 usable, written
        snapshots/c01.json: 2 nodes, 0 usable, written
        warning[twin-cluster]: c01: node `n1` is also a node of `c00`
        help: check the contexts or files of `c01` and `c00`: both probably show the nodes of the same cluster
        ")
        );
        let check = [&SNAPSHOT[..], &["--check", "--fail-on", "warning"]].concat();
        assert_eq!(folder.run_with(&[], &check).code, 1);
    }
}

/// The old snapshot of a cluster counts only as long as it does not answer.
#[test]
fn a_context_that_was_mended_is_no_longer_a_twin() {
    let servers = [1, 2].map(|cluster| Setup::nodes(&nodes(cluster)).start());
    let (folder, _) = many(2, |name| Context::new(name, &servers[0].url()));
    let run = folder.run_with(&[], &SNAPSHOT);
    assert_contains(&run.stderr, "twin-cluster");
    let context = |name: &str, server: usize| Context::new(name, &servers[server].url());
    folder.write("kubeconfig", kubeconfig(&[context("c00", 0), context("c01", 1)]));
    let accept = [&SNAPSHOT[..], &["--accept", "c01"]].concat();
    let run = folder.run_with(&[], &accept);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stderr.contains("twin-cluster"), "{}", run.stderr);
}

/// A folder with a mesh of as many clusters, each of which is reached by its context.
pub(super) fn many(count: usize, context: impl Fn(&str) -> Context) -> (Folder, Vec<String>) {
    let names: Vec<String> = (0..count).map(|number| format!("c{number:02}")).collect();
    let folder = Folder::empty();
    let entries: Vec<String> = (0..count)
        .map(|number| {
            format!(
                "    - {{ name: c{number:02}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 172.16.{number}.0/24 }}\n"
            )
        })
        .collect();
    let head = crate::cli::MESH.split_once("    - name").unwrap().0;
    folder.write("mesh.yaml", format!("{head}{}", entries.concat()));
    let contexts: Vec<Context> = names.iter().map(|name| context(name)).collect();
    folder.write("kubeconfig", kubeconfig(&contexts));
    (folder, names)
}

#[test]
fn many_are_waited_for_at_once_and_listed_in_order() {
    let slow = Setup::nodes(&nodes(1)).fault(|_, _| {
        thread::sleep(Duration::from_millis(100));
        None
    });
    let server = slow.start();
    let (folder, names) = many(20, |name| Context::new(name, &server.url()));
    let run = folder.run_with(&[], &SNAPSHOT);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(folder.touches("snapshots").len(), 20);
    assert_eq!(server.requests().len(), 20);
    assert!(3 < server.busiest(), "{}", server.busiest());
    let lines = run.stderr.lines();
    let report: Vec<&str> =
        lines.filter_map(|line| line.strip_prefix("snapshots/")?.split('.').next()).collect();
    assert_eq!(report, names, "told in order");
}

/// Runs `snapshot` for clusters that all do the same, with a limit of seconds, and returns how long it took.
fn timed(clusters: usize, seconds: u64, reply: fn() -> Reply) -> Duration {
    let server = Setup::nodes(&nodes(1)).fault(move |_, _| Some(reply()));
    let server = server.start();
    let (folder, names) = many(clusters, |name| Context::new(name, &server.url()));
    let limit = seconds.to_string();
    let started = Instant::now();
    let run = folder.run_with(&[], &[&SNAPSHOT[..], &["--timeout", &limit]].concat());
    let took = started.elapsed();
    assert_eq!(run.code, 2, "{}", run.stderr);
    for name in names {
        let finding = format!("error[slow-cluster]: {name}: ");
        assert_contains(&run.stderr, &finding);
    }
    took
}

/// They take the time of one, not of all after one another.
#[test]
fn ten_dead_clusters_are_waited_for_together() {
    let took = timed(10, 3, || Reply::Silence);
    assert!(took < Duration::from_secs(9), "{took:?}");
}

/// The nodes of a cluster are in memory while it is listed.
#[test]
fn at_most_three_are_read_at_once() {
    let took = timed(6, 1, || Reply::SlowBody);
    assert!(Duration::from_secs(2) <= took, "{took:?}");
}

#[test]
fn at_most_sixteen_log_in_at_once() {
    let server = Setup::nodes(&nodes(1)).start();
    let (folder, _) =
        many(20, |name| Context::new(name, &server.url()).plugin("/bin/sh", &["plugin.sh"]));
    let credential = credential("sesame-sesame");
    let script = format!("echo 1 >>runs\nsleep 1\necho -1 >>runs\necho '{credential}'\n");
    folder.write("plugin.sh", script);
    let run = folder.run_with(&[], &SNAPSHOT);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (mut busy, mut busiest) = (0, 0);
    for line in folder.read("runs").lines() {
        busy += line.parse::<i32>().unwrap();
        busiest = busiest.max(busy);
    }
    assert!((9..=16).contains(&busiest), "{busiest}");
}
