//! `snapshot --wait`: clusters are listed until a snapshot would change.

use std::thread;
use std::time::{Duration, Instant};

use super::{Site, nodes};
use crate::api_server::{Answer, Setup};
use crate::support::assert_contains;

const PATIENT: [&str; 6] = ["--wait", "10m", "--interval", "5s", "--debounce", "1s"];

fn site() -> Site {
    let site = Site::new(Setup::nodes(&nodes(1)));
    site.success(&[]);
    site
}

#[test]
fn a_change_ends_the_wait() {
    for check in [false, true] {
        let site = site();
        let before = site.kept("east");
        thread::scope(|scope| {
            let join = scope.spawn(|| {
                thread::sleep(Duration::from_secs(2));
                let mut joined = nodes(1);
                let mut new = joined[0].clone();
                new["metadata"]["name"] = "n9".into();
                new["metadata"]["uid"] = "u9".into();
                joined.push(new);
                site.east.change(&joined);
            });
            let mut arguments = PATIENT.to_vec();
            arguments.extend(check.then_some("--check"));
            let run = site.snapshot(&arguments);
            join.join().unwrap();
            assert_eq!(run.code, i32::from(check), "{}", run.stderr);
            let done = if check { "differs" } else { "written (+1 ~0 -0 nodes)" };
            assert_contains(&run.stderr, done);
            assert_eq!(site.kept("east") == before, check);
        });
        let requests = site.east.requests();
        assert!(requests.iter().all(|it| it.path.contains("/nodes")));
    }
}

/// Nodes that change and change back were not calm.
#[test]
fn the_nodes_must_stay_the_same_for_the_whole_time() {
    let site = site();
    let started = Instant::now();
    thread::scope(|scope| {
        let changes = scope.spawn(|| {
            for (seconds, annotation) in
                [(1, "10.101.0.7/24"), (6, "10.101.0.8/24"), (6, "10.101.0.7/24")]
            {
                thread::sleep(Duration::from_secs(seconds));
                let mut changed = nodes(1);
                changed[0]["metadata"]["annotations"]["kilo.squat.ai/wireguard-ip"] =
                    annotation.into();
                site.east.change(&changed);
            }
        });
        let run = site.snapshot(&["--wait", "10m", "--interval", "5s", "--debounce", "8s"]);
        changes.join().unwrap();
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(Duration::from_secs(13 + 8) <= started.elapsed());
        assert_contains(&run.stderr, "waiting for a change of nodes, at most 600 s\n");
        let calm =
            "nodes of east have changed: waiting until they stay the same for 8 s, at most 600 s\n";
        assert_eq!(run.stderr.matches(calm).count(), 1, "{}", run.stderr);
    });
}

#[test]
fn the_wait_ends_when_nothing_changes() {
    let site = site();
    let run = site.snapshot(&["--wait", "1s"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr.matches(", unchanged").count(), 3, "{}", run.stderr);
}

/// Otherwise a job that starts the refresh would start it again and again.
#[test]
fn what_is_not_written_does_not_end_the_wait() {
    let site = site();
    site.east.change(&[]);
    let started = Instant::now();
    let run = site.snapshot(&["--wait", "3s"]);
    assert!(Duration::from_secs(3) <= started.elapsed());
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stderr, "--accept east");
}

#[test]
fn a_refused_login_ends_the_wait() {
    let site = Site::new(Setup::nodes(&nodes(1)).fault(|_, _| {
        let refusal = Answer::failure(401, "Unauthorized", "Unauthorized");
        Some(refusal.into())
    }));
    let run = site.snapshot(&PATIENT);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_contains(&run.stderr, "error[unauthorized]: east: ");
}

#[test]
fn the_options_have_bounds() {
    let site = site();
    for (arguments, problem) in [
        (&["--wait", "1m", "--interval", "1s"][..], "expected from 5s to 1h"),
        (&["--wait", "1m", "--debounce", "11m"], "expected from 1s to 10m"),
        (&["--wait", "25h"], "at most 24h"),
        (&["--interval", "30s"], "--wait <DURATION>"),
    ] {
        let run = site.snapshot(arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert_contains(&run.stderr, problem);
    }
}
