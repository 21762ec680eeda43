//! Crashes: whenever a run is killed, every snapshot is whole, old or new.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::{SNAPSHOT, Site};
use crate::api_server::Setup;
use crate::cli::api_node;

#[test]
fn leave_whole_snapshots() {
    let many: Vec<Value> = (1..=400_u16)
        .map(|number| {
            let mut node = api_node(1, 1);
            node["metadata"]["name"] = format!("n{number:03}").into();
            node["metadata"]["uid"] = number.to_string().into();
            node
        })
        .collect();
    let site = Site::new(Setup::nodes(&many));
    let olds = site.folder.touches("snapshots");
    let start = Instant::now();
    assert_eq!(site.snapshot(&["--accept", "east"]).code, 0);
    let whole = start.elapsed();
    let news = site.folder.touches("snapshots");
    let mut killed = 0;
    for round in 0..20 {
        for (name, (_, _, text)) in &olds {
            site.folder.write(&format!("snapshots/{name}"), text);
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
            .env_clear()
            .current_dir(site.folder.path(""))
            .args(SNAPSHOT)
            .args(["--accept", "east"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(whole * round / 15);
        // SIGKILL
        child.kill().unwrap();
        let status = child.wait().unwrap();
        killed += u32::from(status.code().is_none());
        let found = site.folder.touches("snapshots");
        for (name, (_, _, old)) in &olds {
            let text = &found[name].2;
            let is_whole = text == old || *text == news[name].2;
            assert!(is_whole, "{name}, round {round}");
        }
    }
    assert!(0 < killed);
    let run = site.snapshot(&["--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let left: Vec<String> = site.folder.touches(".").into_keys().collect();
    insta::assert_debug_snapshot!(left, @r#"
    [
        "kubeconfig",
        "mesh.yaml",
        "snapshots/east.json",
        "snapshots/north.json",
        "snapshots/west.json",
    ]
    "#);
}
