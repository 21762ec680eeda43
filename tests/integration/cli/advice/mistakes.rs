//! Mistakes: a person makes each of a table, and follows the help of the first finding.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use serde::Deserialize;

use super::*;
#[cfg(feature = "snapshot")]
use crate::api_server::{ApiServer, Context, Setup, kubeconfig};
use crate::support::{copy, project};

const MESH: &str = "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: prod
spec:
  clusters:
    - name: east
      podCIDRs: [10.1.0.0/16]
      serviceCIDR: 10.201.0.0/16
      wireguardCIDR: 10.101.0.0/24
      acceptedServices: [shop]
    - name: north
      podCIDRs: [10.2.0.0/16]
      serviceCIDR: 10.202.0.0/16
      wireguardCIDR: 10.102.0.0/24
    - name: west
      podCIDRs: [10.3.0.0/16]
      serviceCIDR: 10.203.0.0/16
      wireguardCIDR: 10.103.0.0/24
  externalPeers:
    - name: laptop
      publicKey: avkTN5T8tciVq9GCSK17SucfkRrmiGHQh4Z8+C4lxhs=
      ranges: [10.250.0.5/32]
      clusters: [east, west]
  services:
    - name: api
      namespace: shop
      cluster: west
      clusterIPs: [10.203.0.20]
      ports: [{ port: 80 }]
      in: [east]
";

const CONFIG: &str = r#"
apiVersion: kilo-clustermesh.io/v1
kind: Config
groups: { edge: [north, west] }
clusters:
  east: { context: admin@east }
limits:
  staleAfterSeconds: 300
rules:
  documentation-endpoint: { level: "off", reason: "addresses of tests" }
"#;

const POLICY: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: ClusterPolicy
spec:
  acceptedClusters: [east, north, external.laptop]
  acceptedNetworks: [10.1.0.0/16, 10.2.0.0/16, 10.101.0.0/24, 10.102.0.0/24, 10.201.0.0/16, 10.202.0.0/16, 10.250.0.0/24]
";

const EXPECTATIONS: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - name: pods of east reach the edge
    from: { cluster: east }
    to: { group: edge }
    expect: Reach
  - name: the laptop does not reach north
    from: { cluster: external.laptop }
    to: { cluster: north }
    class: Any
    expect: Deny
";

/// A row of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    #[serde(rename = "mistake")]
    title: String,
    #[serde(default)]
    edits: Vec<Edit>,
    /// The command that finds it.
    #[serde(default = "validate")]
    run: String,
    /// The rule of the first finding; without it, the command fails with an error.
    finding: Option<String>,
    /// A part of its help.
    help: Option<String>,
    /// The reason why there is no help.
    without: Option<String>,
    /// The command line that the help names.
    then: Option<String>,
    does: Option<Does>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
enum Does {
    /// The part of the help is a command.
    Run,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum Edit {
    Text {
        r#in: String,
        replace: String,
        by: String,
    },
    Remove {
        remove: String,
    },
    Move {
        r#move: String,
        to: String,
    },
    Copy {
        copy: String,
        to: String,
    },
    Link {
        link: String,
        to: String,
    },
    Write {
        write: String,
        text: String,
    },
    /// Keeps this number of bytes.
    Cut {
        cut: String,
        to: usize,
    },
    /// Values of the nodes of a snapshot with a name, or of all; without a value the field is removed.
    Nodes {
        nodes: String,
        name: String,
        set: BTreeMap<String, Value>,
    },
}

/// What came of a row.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Outcome {
    Complete,
    WithoutHelp,
    Misleading,
    Silent,
}

fn validate() -> String {
    "validate".to_owned()
}

impl Edit {
    fn make(&self, folder: &Folder) {
        match self {
            Self::Text { r#in, replace, by } => folder.edit(r#in, replace, by),
            Self::Remove { remove } => {
                let path = folder.path(remove);
                if path.is_dir() {
                    fs::remove_dir_all(path).unwrap();
                } else {
                    fs::remove_file(path).unwrap();
                }
            }
            Self::Move { r#move, to } => {
                let to = folder.path(to);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::rename(folder.path(r#move), to).unwrap();
            }
            Self::Copy { copy, to } => folder.write(to, folder.read(copy)),
            Self::Link { link, to } => {
                fs::remove_file(folder.path(link)).unwrap();
                std::os::unix::fs::symlink(to, folder.path(link)).unwrap();
            }
            Self::Write { write, text } => folder.write(write, text),
            Self::Cut { cut, to } => folder.write(cut, &folder.read(cut).as_bytes()[..*to]),
            Self::Nodes { nodes, name, set } => {
                let file = format!("snapshots/{nodes}.json");
                let mut snapshot: Value = serde_json::from_str(&folder.read(&file)).unwrap();
                let nodes = snapshot["nodes"].as_array_mut().unwrap().iter_mut();
                for node in nodes.filter(|it| name == "*" || it["name"] == name.as_str()) {
                    for (pointer, value) in set {
                        change(node, pointer, value);
                    }
                }
                folder.write(&file, format!("{snapshot:#}\n"));
            }
        }
    }
}

fn change(node: &mut Value, pointer: &str, value: &Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = node.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    let field = field.replace("~1", "/");
    if value.is_null() {
        parent.remove(&field);
    } else {
        parent.insert(field, value.clone());
    }
}

/// A mesh without problems, of files of every kind, in a repository.
struct Faultless {
    folder: Folder,
    #[cfg(feature = "snapshot")]
    servers: [ApiServer; 3],
}

impl Faultless {
    fn new() -> Self {
        let folder = Folder::empty();
        folder.write("mesh.yaml", MESH);
        folder.write("clustermesh.yaml", CONFIG.trim_start());
        folder.write("policies/west.yaml", POLICY);
        folder.write("expectations.yaml", EXPECTATIONS);
        for (number, cluster) in (1..).zip(["east", "north", "west"]) {
            folder.keep(cluster, &[1, 2, 3].map(|it| node(number, it)));
        }
        let services = |cluster: &str, found: &Value| {
            let service = json!({ "found": found, "name": "api", "namespace": "shop" });
            let snapshot = json!({
                "apiVersion": "kilo-clustermesh.io/v1",
                "cluster": cluster,
                "kind": "ServiceSnapshot",
                "services": [service],
            });
            folder.write(&format!("snapshots/{cluster}.services.json"), snapshot.to_string());
        };
        services("east", &Value::Null);
        services(
            "west",
            &json!({
                "clusterIPs": ["10.203.0.20"],
                "hasSelector": true,
                "isMirror": false,
                "ports": [{ "port": 80, "protocol": "TCP" }],
                "type": "ClusterIP",
                "usesLocalEndpoints": false,
            }),
        );
        for file in walk(&folder.path("snapshots")) {
            let value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            fs::write(file, format!("{value:#}\n")).unwrap();
        }
        let faultless = Self {
            folder,
            #[cfg(feature = "snapshot")]
            servers: [1, 2, 3]
                .map(|cluster| Setup::nodes(&[1, 2, 3].map(|it| api_node(cluster, it))).start()),
        };
        let folder = &faultless.folder;
        // In no commit, as it is in no repository of a user.
        folder.write(".gitignore", "/kubeconfig\n");
        #[cfg(feature = "snapshot")]
        {
            let contexts = ["admin@east", "north", "west"].into_iter().zip(&faultless.servers);
            let contexts: Vec<Context> =
                contexts.map(|(name, server)| Context::new(name, &server.url())).collect();
            folder.write("kubeconfig", kubeconfig(&contexts));
        }
        assert_eq!(folder.run(&["render"]).code, 0);
        for command in [
            "git init -q -b main",
            "git add -A",
            "git -c user.name=a -c user.email=a@b.example commit -qm first",
        ] {
            shell(folder, command);
        }
        faultless
    }
}

/// Runs a command line in a shell that finds the program.
fn shell(folder: &Folder, command: &str) -> Run {
    let program = assert_cmd::cargo::cargo_bin("clustermesh");
    let path = env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().to_str().unwrap());
    let output = assert_cmd::Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.path("."))
        .env("KUBECONFIG", folder.path("kubeconfig"))
        .current_dir(folder.path("."))
        .timeout(PATIENCE)
        .output()
        .unwrap();
    output.into()
}

/// The findings of a run as a person sees them: the rule, if there is one, and the help below it.
fn seen(run: &Run) -> Vec<(Option<String>, String)> {
    let mut findings: Vec<(Option<String>, String)> = Vec::new();
    for line in run.stdout.lines().chain(run.stderr.lines()) {
        let severity = ["error", "warning", "notice"];
        let rest = severity.iter().find_map(|it| line.strip_prefix(it));
        if let Some(rest) = rest.filter(|it| it.starts_with(['[', ':'])) {
            let rule = rest.strip_prefix('[').and_then(|it| it.split_once(']'));
            let message = if rule.is_none() { rest } else { "" };
            findings.push((rule.map(|it| it.0.to_owned()), message.to_owned()));
        } else if let Some((_, help)) = findings.last_mut() {
            let is_advice = ["help: ", "  tip: "].iter().any(|it| line.starts_with(it));
            if is_advice || line.starts_with("  host-bits") {
                *help += line;
            }
        }
    }
    findings
}

/// Writes what the first finding of `validate` has for its places, and returns whether it has anything.
fn is_corrected(folder: &Folder) -> bool {
    let report = shell(folder, "clustermesh validate --output json");
    let Ok(report) = serde_json::from_str::<Value>(&report.stdout) else {
        return false;
    };
    let findings = report["findings"].as_array().unwrap();
    let first = findings.iter().find(|it| it["cause"].is_null());
    let places = first.and_then(|it| it["places"].as_array()).cloned().unwrap_or_default();
    let corrected = places.iter().filter(|it| it["replacement"].is_string());
    for place in corrected.clone() {
        let file = place["file"].as_str().unwrap();
        let number = |field: &str| usize::try_from(place[field].as_u64().unwrap()).unwrap() - 1;
        assert_eq!(number("line"), number("endLine"));
        let text = folder.read(file);
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let line = &mut lines[number("line")];
        let (start, end) = (number("column"), number("endColumn"));
        line.replace_range(start..end, place["replacement"].as_str().unwrap());
        folder.write(file, lines.join("\n"));
    }
    corrected.count() != 0
}

impl Mistake {
    /// Makes the mistake, follows the help, and returns the outcome and its reason.
    fn follow(&self, faultless: &Folder) -> (Outcome, String) {
        let folder = Folder::empty();
        let restore = || {
            shell(&folder, "rm -rf ./* ./.git ./.gitignore");
            copy(faultless.0.path(), folder.0.path());
        };
        restore();
        self.edits.iter().for_each(|it| it.make(&folder));
        let command = format!("clustermesh {}", self.run);
        let first = shell(&folder, &command);
        let found = seen(&first);
        let text = format!("{}{}", first.stdout, first.stderr);
        let Some((rule, help)) = found.first() else {
            return (Outcome::Silent, text);
        };
        let is_cause = *rule == self.finding && found.len() <= 2;
        let is_help = self.help.as_ref().is_none_or(|it| help.contains(it));
        if !is_cause || !is_help || help.is_empty() != self.without.is_some() {
            return (Outcome::Misleading, text);
        }
        if self.without.is_some() {
            return (Outcome::WithoutHelp, String::new());
        }
        if let Some(then) = &self.then {
            let next = shell(&folder, &format!("clustermesh {then}"));
            let is_done = next.code == 0;
            let outcome = if is_done { Outcome::Complete } else { Outcome::Misleading };
            return (outcome, format!("{text}{}{}", next.stdout, next.stderr));
        }
        if self.finding.is_none() && self.edits.is_empty() {
            return (Outcome::Complete, String::new());
        }
        if let (Some(Does::Run), Some(help)) = (self.does, &self.help) {
            let done = shell(&folder, help);
            if done.code != 0 {
                return (Outcome::Misleading, format!("{help}: {}{}", done.stdout, done.stderr));
            }
        } else if self.run == "validate" && is_corrected(&folder) {
            let after = seen(&shell(&folder, "clustermesh validate"));
            if after.iter().any(|it| it.0 == self.finding) {
                return (Outcome::Misleading, format!("{text}its correction does not end it"));
            }
            if !after.is_empty() {
                // The person wanted something else beside the mistake.
                restore();
            }
        } else {
            restore();
        }
        // Nothing that worked before is lost.
        for command in ["clustermesh validate", "clustermesh render", "clustermesh verify"] {
            let after = shell(&folder, command);
            let text = format!("{}{}", after.stdout, after.stderr);
            let is_proved = command != "clustermesh verify"
                || after.stdout.contains("All 86 declared paths work in both directions.");
            if after.code != 0 || !seen(&after).is_empty() || !is_proved {
                return (Outcome::Misleading, format!("after it, {command}: {text}"));
            }
        }
        (Outcome::Complete, String::new())
    }
}

/// Most people read the first finding and follow its help, so that must be the cause and its remedy.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are for people")]
fn advice_ends_each_mistake() {
    let table = project().join("tests/integration/cli/advice/mistakes.yaml");
    let mistakes: Vec<Mistake> = serde_yaml::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    let faultless = Faultless::new();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(it) = mistakes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Without this feature, the help is the same, and cannot be followed.
                    let is_possible = cfg!(feature = "snapshot")
                        || !it.run.starts_with("snapshot")
                            && !it.help.iter().any(|it| it.starts_with("clustermesh snapshot"));
                    if is_possible {
                        let (outcome, text) = it.follow(&faultless.folder);
                        outcomes.lock().unwrap().push((outcome, &it.title, text));
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    let of = |outcome| outcomes.iter().filter(|it| it.0 == outcome).count();
    let [complete, without, misleading, silent] =
        [Outcome::Complete, Outcome::WithoutHelp, Outcome::Misleading, Outcome::Silent].map(of);
    println!(
        "{complete} complete, {without} without help, {misleading} misleading, {silent} silent"
    );
    let failed = outcomes.iter().filter(|it| Outcome::WithoutHelp < it.0);
    let failed: Vec<String> =
        failed.map(|(outcome, mistake, text)| format!("{outcome:?}: {mistake}\n{text}")).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(120 <= complete + without);
}
