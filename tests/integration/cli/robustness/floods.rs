//! Files of a hundred megabytes: their cost, and the messages about them.

use std::fs::File;

use crate::cli::{Folder, HEADER, PATIENCE, node};
use crate::support::{Run, assert_contains};

/// The size of each file, in bytes.
const FLOOD: usize = 100_000_000;

/// What a run may map, in KiB: ten times a flood, stacks and the program itself included.
const ROOM: &str = "1000000";

/// Runs with no more memory than there is room for, and with as many threads on every machine.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let program = assert_cmd::cargo::cargo_bin!("clustermesh");
    let output = assert_cmd::Command::new("sh")
        .env_clear()
        .env("RAYON_NUM_THREADS", "2")
        .current_dir(folder.path("."))
        .args(["-c", "ulimit -v $0 && exec \"$@\"", ROOM])
        .arg(program)
        .args(arguments)
        .timeout(2 * PATIENCE)
        .output()
        .unwrap();
    let run = Run::from(output);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert!(run.stderr.len() < 2000, "{} bytes", run.stderr.len());
    run
}

#[test]
fn a_run_has_room_enough() {
    let folder = Folder::mesh();
    assert_eq!(run(&folder, &["render"]).code, 0);
    assert_eq!(run(&folder, &["validate"]).code, 0);
}

#[test]
fn of_zeros() {
    let folder = Folder::mesh();
    let mesh = folder.read("mesh.yaml");
    for path in ["mesh.yaml", "clustermesh.yaml", "snapshots/east.json"] {
        let file = File::create(folder.path(path)).unwrap();
        file.set_len(FLOOD as u64).unwrap();
        for command in ["render", "validate", "config"] {
            let run = run(&folder, &[command]);
            let is_read = command != "config" || path == "clustermesh.yaml";
            assert_eq!(run.code, if is_read { 2 } else { 0 }, "{}", run.stderr);
            assert!(
                !is_read || run.stderr.contains("it is larger than the limit of"),
                "{}",
                run.stderr
            );
        }
        std::fs::remove_file(folder.path(path)).unwrap();
        folder.write("mesh.yaml", &mesh);
    }
}

#[test]
fn of_a_dump() {
    let folder = Folder::mesh();
    let node = r#"{"kind":"Node","metadata":{"name":"a"},"other":"#;
    let long = "x".repeat(FLOOD);
    for (dump, code, said) in [
        (format!("{node}{}", "[".repeat(FLOOD)), 2, "is not a usable node list"),
        (format!("{node}\"{long}\"}}"), 0, "1 node"),
        ("- a\n".repeat(FLOOD / 4), 2, "is not a usable node list"),
    ] {
        folder.write("dump", dump);
        let arguments = ["snapshot", "east", "--from", "dump", "--accept", "east"];
        let run = run(&folder, &arguments);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert_contains(&run.stderr, said);
    }
}

#[test]
fn of_a_file_that_is_to_go() {
    let folder = Folder::rendered();
    let path = "rendered/west/prod--south.yaml";
    let long = "x".repeat(FLOOD);
    for body in [long.clone(), format!("a: {long}"), "[".repeat(FLOOD)] {
        folder.write(path, format!("{HEADER}{body}\n"));
        let check = run(&folder, &["render", "--check"]);
        assert_eq!(
            (check.code, check.stdout.as_str()),
            (1, "stale: rendered/west/prod--south.yaml\n")
        );
        let render = run(&folder, &["render"]);
        assert_eq!(render.code, 1, "{}", render.stderr);
        assert!(folder.path(path).exists());
    }
}

/// Each node offers what all others do, so that every range is taken from all segments but the last.
#[test]
fn of_location_ranges() {
    let folder = Folder::mesh();
    let ranges: Vec<String> =
        (0..1000).map(|it| format!("172.16.{}.{}/30", it / 64, it % 64 * 4)).collect();
    let nodes = (100..160).map(|number| {
        let mut node = node(1, number);
        let annotations = &mut node["annotations"];
        annotations["kilo.squat.ai/granularity"] = "location".into();
        annotations["kilo.squat.ai/location"] = format!("l{number}").into();
        annotations["kilo.squat.ai/allowed-location-ips"] = ranges.join(",").into();
        node
    });
    folder.keep("east", &nodes.collect::<Vec<_>>());
    let run = run(&folder, &["validate", "--output", "concise"]);
    let said = "Kilo drops location range 172.16.0.0/30";
    assert!(run.stdout.contains(said), "{}{}", run.stdout, run.stderr);
}
