//! Progress: a line on a terminal while work takes long, and nowhere else.
//!
//! `script` of util-linux gives the program a terminal. Without it, the tests print that they are skipped.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Folder, node};
use crate::support::assert_contains;

/// What a terminal shows of a run: everything that was written to it.
struct Shown {
    text: String,
    took: Duration,
}

/// Runs a command line at a terminal; none without `script`.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn at_terminal(folder: &Folder, variables: &[(&str, &str)], line: &str) -> Option<Shown> {
    let program = assert_cmd::cargo::cargo_bin("clustermesh");
    let line = line.replace("clustermesh", program.to_str().unwrap());
    let started = Instant::now();
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm"), ("SHELL", "/bin/sh")])
        .envs(variables.iter().copied())
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output.inspect_err(|_| eprintln!("SKIPPED: there is no `script`")) else {
        return None;
    };
    Some(Shown { text: String::from_utf8(output.stdout).unwrap(), took: started.elapsed() })
}

/// Fails unless the line was shown and is gone at the end, and no mode of the terminal was changed.
fn assert_erased(text: &str, line: &str) {
    let (_, behind) = text.rsplit_once(line).unwrap_or_else(|| panic!("no {line} in {text:?}"));
    let erased = behind.split('\r').any(|it| line.len() <= it.len() && it.trim().is_empty());
    assert!(erased, "{text:?}");
    assert!(!text.contains("\u{1b}[?"), "{text:?}");
}

#[cfg(feature = "snapshot")]
mod waiting {
    use std::thread;

    use super::*;
    use crate::api_server::{ApiServer, Context, Setup, kubeconfig};
    use crate::cli::api_node;

    /// A mesh in which `east` takes long to answer.
    fn slow() -> (Folder, Vec<ApiServer>) {
        let folder = Folder::mesh();
        let servers: Vec<ApiServer> = [1, 2, 3]
            .map(|cluster| {
                let setup = Setup::nodes(&[api_node(cluster, 1), api_node(cluster, 2)]);
                let seconds = if cluster == 1 { 3 } else { 0 };
                let slow = setup.fault(move |_, _| {
                    thread::sleep(Duration::from_secs(seconds));
                    None
                });
                slow.start()
            })
            .into();
        let contexts: Vec<Context> = ["east", "north", "west"]
            .into_iter()
            .zip(&servers)
            .map(|(name, server)| Context::new(name, &server.url()))
            .collect();
        folder.write("kubeconfig", kubeconfig(&contexts));
        (folder, servers)
    }

    const SNAPSHOT: &str = "clustermesh snapshot --kubeconfig kubeconfig";

    #[test]
    fn is_shown_at_a_terminal() {
        let (folder, _servers) = slow();
        let Some(shown) = at_terminal(&folder, &[], SNAPSHOT) else {
            return;
        };
        assert_erased(&shown.text, "Waiting for 1 of 3 clusters: east (");
        assert_contains(&shown.text, "snapshots/east.json: 2 nodes");
    }

    #[test]
    fn is_shown_nowhere_else() {
        let (folder, _servers) = slow();
        for (variables, line) in [
            (&[("CI", "true")][..], SNAPSHOT.to_owned()),
            (&[("TERM", "dumb")], SNAPSHOT.to_owned()),
            (&[], format!("{SNAPSHOT} --quiet")),
            (&[], format!("{SNAPSHOT} 2>stderr; cat stderr")),
        ] {
            let Some(shown) = at_terminal(&folder, variables, &line) else {
                return;
            };
            assert!(!shown.text.contains("Waiting"), "{line}: {}", shown.text);
        }
    }

    #[test]
    fn leaves_the_terminal_as_it_was_when_it_is_stopped() {
        let (folder, _servers) = slow();
        let line = "before=$(stty -a); timeout --foreground -s INT 2 clustermesh snapshot --kubeconfig kubeconfig; \
                    [ \"$before\" = \"$(stty -a)\" ] && echo same";
        let Some(shown) = at_terminal(&folder, &[], line) else {
            return;
        };
        assert_contains(&shown.text, "Waiting for 1 of 3");
        assert!(!shown.text.contains('\u{1b}'), "{:?}", shown.text);
        assert!(shown.text.ends_with("same\r\n"), "{:?}", shown.text);
    }
}

/// A rendered mesh of this many clusters with two nodes each.
fn large(clusters: u8) -> Folder {
    let folder = Folder::empty();
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata:\n  name: m\nspec:\n  clusters:\n".to_owned();
    for cluster in 1..=clusters {
        writeln!(
            mesh,
            "    - {{ name: c{cluster}, podCIDRs: [10.{cluster}.0.0/16], wireguardCIDR: 100.64.{cluster}.0/24 }}"
        )
        .unwrap();
        let nodes = [1, 2].map(|number| {
            let mut node = node(1, number);
            let (external, internal) =
                (format!("198.18.{cluster}.{number}"), format!("192.168.{cluster}.{number}"));
            let mut key = [cluster; 32];
            key[0] = number;
            node["podCIDRs"] = json!([format!("10.{cluster}.{number}.0/24")]);
            node["addresses"] = json!([
                { "address": internal, "type": "InternalIP" },
                { "address": external, "type": "ExternalIP" },
            ]);
            let annotations = &mut node["annotations"];
            annotations["kilo.squat.ai/endpoint"] = json!(format!("{external}:51820"));
            annotations["kilo.squat.ai/internal-ip"] = json!(format!("{internal}/24"));
            annotations["kilo.squat.ai/key"] = json!(STANDARD.encode(key));
            annotations["kilo.squat.ai/wireguard-ip"] =
                json!(format!("100.64.{cluster}.{number}/24"));
            node
        });
        folder.keep(&format!("c{cluster}"), &nodes);
    }
    folder.write("mesh.yaml", mesh);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn of_a_long_verification_is_shown() {
    let folder = large(110);
    // Much to compute, even where machines are fast.
    let line = "clustermesh verify --assume-hostile c1";
    let Some(shown) = at_terminal(&folder, &[], line) else {
        return;
    };
    assert_contains(&shown.text, "No problems found");
    if shown.took < Duration::from_secs(3) {
        eprintln!("SKIPPED: the machine is too fast: {:?}", shown.took);
        return;
    }
    assert_erased(&shown.text, "Verifying 110 clusters (");
    let piped = folder.run(&["verify"]);
    assert!(!piped.stderr.contains("Verifying"));
}
