//! `status`, and `--live`: what clusters really have.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::nodes;
use crate::api_server::{
    Answer, ApiServer, Authority, Context, Login, Reply, Request, Setup, kubeconfig,
};
use crate::cli::{Folder, SOON};
use crate::support::{Run, assert_contains};

mod metrics;

const CLUSTERS: [&str; 3] = ["east", "north", "west"];

/// Three clusters that have what is rendered.
struct Site {
    folder: Folder,
    servers: [ApiServer; 3],
}

impl Site {
    fn new() -> Self {
        let folder = Folder::mesh();
        let clusters = [1, 2, 3].map(|number| Setup::nodes(&nodes(number)).start());
        let site = Self { folder, servers: clusters };
        site.reach();
        let run = site.run(&["snapshot"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(site.folder.run(&["render"]).code, 0);
        for (cluster, server) in CLUSTERS.iter().zip(&site.servers) {
            server.apply(&site.rendered(cluster));
        }
        site
    }

    /// Writes the kubeconfig.
    fn reach(&self) {
        let contexts = CLUSTERS
            .iter()
            .zip(&self.servers)
            .map(|(name, server)| Context::new(name, &server.url()));
        let text = kubeconfig(&contexts.collect::<Vec<_>>());
        self.folder.write("kubeconfig", text);
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let variables = [("KUBECONFIG", "kubeconfig")];
        let mut run = self.folder.run_with(&variables, arguments);
        for server in &self.servers {
            let address = server.address().to_string();
            run.stdout = run.stdout.replace(&address, "SERVER");
            run.stderr = run.stderr.replace(&address, "SERVER");
        }
        run
    }

    /// The Peers that are rendered for a cluster.
    fn rendered(&self, cluster: &str) -> Vec<Value> {
        let mut files: Vec<_> = fs::read_dir(self.folder.path(&format!("rendered/{cluster}")))
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.to_str().unwrap().contains("--"))
            .collect();
        files.sort();
        let texts = files.iter().map(|it| fs::read_to_string(it).unwrap());
        texts
            .flat_map(|text| {
                let documents = serde_yaml::Deserializer::from_str(&text)
                    .map(|it| Value::deserialize(it).unwrap());
                documents.collect::<Vec<_>>()
            })
            .collect()
    }

    /// Gives `west` other Peers.
    fn change(&self, change: impl Fn(&mut Vec<Value>)) {
        let mut peers = self.rendered("west");
        change(&mut peers);
        self.servers[2].apply(&peers);
    }
}

/// Network plugins can give pods other addresses than those of the pod CIDRs, and no annotation need show it.
#[test]
fn pods_outside_of_the_pod_cidrs_are_reported_with_the_right_to_list_pods() {
    let pod = |node: &str, address: &str, is_of_host: bool| {
        json!({
            "metadata": { "name": "p", "namespace": "shop" },
            "spec": { "nodeName": node, "hostNetwork": is_of_host },
            "status": { "phase": "Running", "podIP": address },
        })
    };
    let pods = [
        pod("n1", "192.168.3.1", true),
        pod("n1", "10.0.7.9", false),
        pod("n2", "10.3.2.5", false),
    ];
    let list = json!({ "kind": "PodList", "apiVersion": "v1", "items": pods });
    let site = Site::new();
    let west = Setup::nodes(&nodes(3)).object("/api/v1/pods", list).start();
    let forbidden = |request: &Request, _| {
        let is_asked = request.path == "/api/v1/pods";
        is_asked.then(|| Answer::failure(403, "Forbidden", "forbidden").into())
    };
    let north = Setup::nodes(&nodes(2)).fault(forbidden).start();
    let Site { folder, servers: [east, ..] } = site;
    let site = Site { folder, servers: [east, north, west] };
    site.reach();
    for (cluster, server) in CLUSTERS.iter().zip(&site.servers) {
        server.apply(&site.rendered(cluster));
    }
    let run = site.run(&["status"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let found: Vec<&str> = run.stderr.lines().filter(|it| it.contains("warning[")).collect();
    assert_eq!(
        found,
        [
            "warning[mismatched-pod-addresses]: west: pods have addresses that Kilo does not route: a pod of n1 has \
             10.0.7.9, and the pod CIDR of the node is 10.3.1.0/24 (1 of 2 nodes)"
        ]
    );
    let manifests = site.folder.run(&["rbac", "--pods"]).stdout;
    assert_contains(&manifests, "resources: [pods]\n    verbs: [list]\n");
    assert!(!site.folder.run(&["rbac", "--peers"]).stdout.contains("pods"));
}

/// A Peer that no mesh has.
fn laptop(name: &str, key: &str, range: &str) -> Value {
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "Peer",
        "metadata": { "name": name, "resourceVersion": "7", "uid": "0e1" },
        "spec": { "publicKey": key, "allowedIPs": [range] },
    })
}

const KEY: &str = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";

#[test]
fn what_is_rendered_is_in_sync() {
    let site = Site::new();
    let run = site.run(&["status"]);
    insta::assert_snapshot!(run.stdout, @"
    3 clusters, compared with rendered

    CLUSTER  CRD       IN SYNC  MISSING  CHANGED  LEFT OVER  FOREIGN  SNAPSHOT    GUARD
    east     v1alpha1   4 of 4        0        0          0        0  up to date  none
    north    v1alpha1   4 of 4        0        0          0        0  up to date  none
    west     v1alpha1   4 of 4        0        0          0        0  up to date  none

    No problems found (3 clusters, 12 rendered Peers).
    ");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let markdown = site.run(&["status", "west", "--output", "markdown"]);
    insta::assert_snapshot!(markdown.stdout, @"
    ### clustermesh: status

    | cluster | crd | in sync | missing | changed | left over | foreign | snapshot | guard |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | `west` | `v1alpha1` | 4 of 4 | 0 | 0 | 0 | 0 | up to date | none |

    No problems found (1 cluster, 4 rendered Peers).
    ");
    assert_eq!(markdown.code, 0);
    // Nothing but reading.
    for server in &site.servers {
        assert!(server.requests().iter().all(|it| it.method == "GET"));
    }
}

#[test]
fn everything_that_differs_is_named() {
    let site = Site::new();
    site.change(|peers| {
        peers.remove(0);
        peers[0]["spec"]["endpoint"]["port"] = 7.into();
        let mut old = peers[1].clone();
        old["metadata"]["name"] = "prod--gone--n1".into();
        peers.push(old);
        peers.push(laptop("laptop", KEY, "10.99.0.1/32"));
        peers.push(laptop("phone", KEY, "10.99.0.2/32"));
        peers.push(laptop("thief", &KEY.replace("vb", "vc"), "10.1.1.128/25"));
    });
    site.servers[2].change(&nodes(3)[..1]);
    let run = site.run(&["status"]);
    insta::assert_snapshot!(run.stdout, @"
    3 clusters, compared with rendered

    CLUSTER  CRD       IN SYNC  MISSING  CHANGED  LEFT OVER  FOREIGN  SNAPSHOT    GUARD
    east     v1alpha1   4 of 4        0        0          0        0  up to date  none
    north    v1alpha1   4 of 4        0        0          0        0  up to date  none
    west     v1alpha1   2 of 4        1        1          1        3  differs     none

    west
      missing: prod--east--n1
        help: find out why Flux or Argo CD has not applied these Peers; `clustermesh status --wait 5m` waits for it
      changed: prod--east--n2: endpoint 198.18.113.12:51820 → 198.18.113.12:7
        help: let Flux or Argo CD apply the rendered Peers again
      left over: prod--gone--n1
        help: let Flux or Argo CD prune them
      foreign: thief takes 10.1.1.128/25 of east; its key belongs to no node
        help: remove these ranges from the Peer, or the Peer from the cluster
      foreign: laptop with 10.99.0.1/32; its key belongs to no node
      foreign: phone with 10.99.0.2/32; its key belongs to no node
        help: expected for a Peer of your own, such as a laptop; otherwise delete the Peer
      same key: laptop, phone
      same key: prod--gone--n1, prod--north--n1
        help: delete all but one; `clustermesh explain twin-peers` shows how to do it without an outage
      snapshot: snapshots/west.json: `n2` removed
        help: run `clustermesh snapshot west`, then `clustermesh render`
    ");
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let run = site.run(&["status", "west", "--output", "json"]);
    assert_eq!(run.code, 1);
    let object = run.json();
    let peers = &object["clusters"][0]["peers"];
    assert_eq!(peers["missing"], json!(["prod--east--n1"]));
    assert_eq!(peers["sameKey"][0], json!(["laptop", "phone"]));
    let thief = json!({
        "name": "thief",
        "ranges": ["10.1.1.128/25"],
        "takes": [{ "cluster": "east", "range": "10.1.1.128/25" }],
    });
    assert_eq!(peers["foreign"][2], thief);
    assert_eq!(object["clusters"][0]["snapshot"]["isCurrent"], false);
    let schema = site.folder.run(&["schema", "status"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(crate::support::json_schema::violations(&schema, &object), [""; 0]);
}

/// What a server answers about its guard: its objects, or a refusal.
type LiveGuard = Arc<Mutex<Option<String>>>;

/// Gives `west` a server with a guard, which can be changed.
fn guarded(site: &mut Site) -> LiveGuard {
    const API: &str = "/apis/admissionregistration.k8s.io/v1/";
    let guard = LiveGuard::default();
    let answered = Arc::clone(&guard);
    let server = Setup::nodes(&nodes(3)).fault(move |request, _| {
        let kind = match request.path.strip_prefix(API)? {
            "validatingadmissionpolicies/clustermesh-peers" => "ValidatingAdmissionPolicy",
            "validatingadmissionpolicybindings/clustermesh-peers" => {
                "ValidatingAdmissionPolicyBinding"
            }
            _ => return None,
        };
        let Some(text) = &*answered.lock().unwrap() else {
            let message = r#"User "ada" cannot get this"#;
            return Some(Answer::failure(403, "Forbidden", message).into());
        };
        let mut objects =
            serde_yaml::Deserializer::from_str(text).map(|it| Value::deserialize(it).unwrap());
        let object = objects.find(|it| it["kind"] == kind)?;
        Some(Answer::json(&object).into())
    });
    site.servers[2] = server.start();
    site.reach();
    site.servers[2].apply(&site.rendered("west"));
    guard
}

#[test]
fn the_guard_is_compared_with_the_mesh_and_its_file() {
    let mut site = Site::new();
    let guard = guarded(&mut site);
    let print = |writer: &str| {
        let run = site.run(&["guard", "west", "--writers", writer]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    let status = |live: Option<&str>| {
        *guard.lock().unwrap() = live.map(str::to_owned);
        let json = site.run(&["status", "west", "--output", "json"]);
        let run = site.run(&["status", "west"]);
        assert_eq!(run.code, json.code);
        let object = json.json();
        let schema = site.folder.run(&["schema", "status"]).stdout;
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let problems = crate::support::json_schema::violations(&schema, &object);
        assert_eq!(problems, [""; 0]);
        let state = &object["clusters"][0]["guard"];
        let notes = run.stdout.split_once("\n\nwest\n").map_or("", |it| it.1);
        let (notes, _) = notes.split_once("\n\n").unwrap_or((notes, ""));
        let state = state["state"].as_str().unwrap();
        format!("{} {state}\n{}", run.code, notes.trim_end())
    };
    let printed = print("ada");
    assert_eq!(status(Some("")), "0 absent\n");
    assert_eq!(status(Some(&printed)), "0 current\n");
    insta::assert_snapshot!(status(None), @r#"
    0 unknown
      guard: the right to `get` `validatingadmissionpolicies` and `validatingadmissionpolicybindings` is missing (403: User "ada" cannot get this)
        help: `clustermesh rbac --peers` prints the manifests that grant this right
    "#);
    // Other declarations than those of the mesh.
    let narrow = printed.replace("10.1.0.0/16", "10.1.0.0/17");
    insta::assert_snapshot!(status(Some(&narrow)), @"
    1 outdated
      guard: it refuses 10.1.128.0/17 of prod/east, which the mesh accepts
        help: as the owner of west, run `clustermesh guard west --writers ada | kubectl --context west apply --server-side -f -`
    ");
    let wide = printed.replace("10.1.0.0/16", "10.0.0.0/15");
    insta::assert_snapshot!(status(Some(&wide)), @"
    1 outdated
      guard: it accepts 10.0.0.0/16 of prod/east, which the mesh does not allow
        help: as the owner of west, run `clustermesh guard west --writers ada | kubectl --context west apply --server-side -f -`
    ");
    let edited = printed.replace("variables.keepalive <= 65535", "true");
    insta::assert_snapshot!(status(Some(&edited)), @"
    1 outdated
      guard: it is not what `clustermesh guard` prints
        help: as the owner of west, run `clustermesh guard west --writers ada | kubectl --context west apply --server-side -f -`
    ");
    let other = printed.replace("cluster: west", "cluster: east");
    insta::assert_snapshot!(status(Some(&other)), @"
    1 outdated
      guard: it is the guard of east
        help: as the owner of west, run `clustermesh guard west --writers ada | kubectl --context west apply --server-side -f -`
    ");
    // Break-glass is deleting the binding.
    let (policy, _) = printed.split_once("\n---\n").unwrap();
    insta::assert_snapshot!(status(Some(policy)), @"
    1 outdated
      guard: it refuses nothing, because its policy or its binding is missing
        help: as the owner of west, print its guard again with your options (`clustermesh guard --help`) and apply it
    ");
    // The owner of the cluster wrote down what is installed.
    site.folder.write("guards/west.yaml", &printed);
    assert_eq!(status(Some(&printed)), "0 current\n");
    insta::assert_snapshot!(status(Some("")), @"
    1 absent
      guard: guards/west.yaml is not applied
        help: run `clustermesh guard west --writers ada > guards/west.yaml` and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`
    ");
    insta::assert_snapshot!(status(Some(&print("eve"))), @"
    1 outdated
      guard: it differs from guards/west.yaml
        help: run `clustermesh guard west --writers ada > guards/west.yaml` and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`
    ");
    insta::assert_snapshot!(status(Some(policy)), @"
    1 outdated
      guard: it refuses nothing, because its policy or its binding is missing
        help: run `clustermesh guard west --writers ada > guards/west.yaml` and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`
    ");
}

/// The help of `status` about a guard leads to a current one.
#[test]
fn the_help_about_a_guard_can_be_followed() {
    let mut site = Site::new();
    let live = guarded(&mut site);
    let printed = |options: &[&str]| {
        let run = site.run(&[&["guard", "west", "--writers"][..], options].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    let status = || {
        let run = site.run(&["status", "west", "--output", "json"]);
        (run.code, run.json()["clusters"][0]["guard"].clone())
    };
    let follow = |help: &str| {
        let command = help.split('`').nth(1).unwrap();
        let command = command.split([' ', '|', '>']).filter(|it| !it.is_empty());
        let options = command.skip(1).take_while(|it| *it != "kubectl");
        let options: Vec<&str> = options.filter(|it| *it != "guards/west.yaml").collect();
        let run = site.run(&options);
        assert_eq!(run.code, 0, "{help}{}", run.stderr);
        if command_writes(help) {
            site.folder.write("guards/west.yaml", &run.stdout);
        }
        *live.lock().unwrap() = Some(run.stdout);
    };
    let warns = printed(&["ada", "--warn"]);
    let denies = printed(&["ada"]);
    // A guard that only warns is the first step of the roll-out, so it is only a notice.
    *live.lock().unwrap() = Some(warns.clone());
    let (code, guard) = status();
    assert_eq!((code, &guard["state"]), (0, &json!("warning")));
    insta::assert_snapshot!(guard["problem"].as_str().unwrap(), @"it only warns, and refuses no Peer");
    let help = guard["help"].as_str().unwrap();
    insta::assert_snapshot!(help, @"when no Peer is reported any more, as the owner of west, run `clustermesh guard west --writers ada | kubectl --context west apply --server-side -f -`");
    follow(help);
    assert_eq!(status(), (0, json!({"state": "current"})));
    site.folder.write("guards/west.yaml", &warns);
    // The owner switched to `Deny` and did not write it down, or the other way round.
    for (file, installed) in [(&warns, &denies), (&denies, &warns)] {
        site.folder.write("guards/west.yaml", file);
        *live.lock().unwrap() = Some(installed.clone());
        let (code, guard) = status();
        assert_eq!((code, &guard["state"]), (1, &json!("outdated")));
        follow(guard["help"].as_str().unwrap());
        assert_eq!(status(), (0, json!({"state": "current"})));
    }
    // The mesh declares the range of a laptop.
    let laptop = ["ada", "--allow-peer", "laptop=10.9.0.7/32", "--allow-peer-writers", "eve"];
    let laptop = printed(&laptop);
    site.folder.write("guards/west.yaml", &laptop);
    *live.lock().unwrap() = Some(laptop);
    assert_eq!(status(), (0, json!({"state": "current"})));
    site.folder.edit("mesh.yaml", "10.1.0.0/16", "10.1.0.0/16, 10.9.0.0/24");
    let (code, guard) = status();
    assert_eq!((code, &guard["state"]), (1, &json!("outdated")));
    let help = guard["help"].as_str().unwrap();
    insta::assert_snapshot!(help, @"run `clustermesh guard west --writers ada > guards/west.yaml` and, as the owner of west, `kubectl --context west apply --server-side -f guards/west.yaml`; `--allow-peer laptop=…` is left out: 10.9.0.7/32 overlaps 10.9.0.0/24 of east, so the Peer could receive packets for that cluster; allow ranges that no mesh declares");
    follow(help);
    assert_eq!(status().1, json!({"state": "current"}));
}

/// Returns whether the first command of a help writes the file of a guard.
fn command_writes(help: &str) -> bool {
    help.split('`').nth(1).unwrap().contains("> guards/west.yaml")
}

/// Neither Flux nor Argo CD removes them, so the printed command must.
#[test]
fn fields_that_others_added_are_removed_by_the_printed_command() {
    let site = Site::new();
    site.folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n  west:\n    context: west\n",
    );
    site.change(|peers| {
        peers[0]["spec"]["presharedKey"] = KEY.into();
        // Kilo ignores it, and no tool removes it.
        peers[1]["spec"]["presharedKey"] = "no key".into();
        peers[2]["spec"]["endpoint"]["dnsOrIP"]["dns"] = "$(touch x).example".into();
        peers[3]["spec"]["persistentKeepalive"] = 7.into();
    });
    let run = site.run(&["status", "west"]);
    insta::assert_snapshot!(run.stdout, @r#"
    1 cluster, compared with rendered

    CLUSTER  CRD       IN SYNC  MISSING  CHANGED  LEFT OVER  FOREIGN  SNAPSHOT    GUARD
    west     v1alpha1   0 of 4        0        4          0        0  up to date  none

    west
      added: prod--north--n1 has spec.endpoint.dnsOrIP.dns
        help: run `kubectl --context west patch peers prod--north--n1 --type=merge -p '{"spec":{"endpoint":{"dnsOrIP":{"dns":null}}}}'`
      added: prod--north--n2 has spec.persistentKeepalive
        help: run `kubectl --context west patch peers prod--north--n2 --type=merge -p '{"spec":{"persistentKeepalive":null}}'`
      added: prod--east--n1 has spec.presharedKey
      added: prod--east--n2 has spec.presharedKey
        help: run `kubectl --context west patch peers prod--east--n1 prod--east--n2 --type=merge -p '{"spec":{"presharedKey":null}}'`
    "#);
    assert_eq!(run.code, 1);
    for format in ["human", "json", "markdown"] {
        let run = site.run(&["status", "west", "--output", format]);
        let all = run.stdout + &run.stderr;
        assert!(!all.contains(KEY) && !all.contains("no key"), "{all}");
    }
    let object = site.run(&["status", "west", "--output", "json"]).json();
    let peers = &object["clusters"][0]["peers"];
    assert_eq!(peers["changed"].as_array().unwrap().len(), 4);
    site.change(|peers| {
        for addition in peers_of(&object) {
            let peer = peers.iter_mut().find(|it| it["metadata"]["name"] == addition["peer"]);
            merge(peer.unwrap(), &addition["patch"]);
        }
    });
    let run = site.run(&["status", "west"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let schema = site.folder.run(&["schema", "status"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let problems = crate::support::json_schema::violations(&schema, &object);
    assert_eq!(problems, [""; 0]);
}

fn peers_of(status: &Value) -> &Vec<Value> {
    status["clusters"][0]["peers"]["addedFields"].as_array().unwrap()
}

/// Applies a merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

#[test]
fn the_ceiling_counts_live_peers() {
    let site = Site::new();
    let peers: usize = CLUSTERS.iter().map(|it| site.rendered(it).len()).sum();
    let run = |command: &[&str]| {
        let ceiling = format!("peers={peers}");
        site.run(&[command, &["--ceiling", &ceiling]].concat())
    };
    for command in [&["status"][..], &["verify", "--live"]] {
        let within = run(command);
        let report = within.stdout + &within.stderr;
        assert!(!report.contains("ceiling"), "{command:?}: {report}");
    }
    site.change(|peers| {
        peers.push(laptop("laptop", KEY, "10.99.0.1/32"));
    });
    for command in [&["status"][..], &["verify", "--live"]] {
        let beyond = run(command);
        assert_eq!(beyond.code, 1, "{command:?}: {}", beyond.stderr);
        let report = beyond.stdout + &beyond.stderr;
        let refusal = format!("exceed the ceiling of {peers}");
        assert!(report.contains(&refusal), "{command:?}: {report}");
    }
}

#[test]
fn a_cluster_that_cannot_be_read_hides_no_other() {
    let mut site = Site::new();
    let message = r#"peers.kilo.squat.ai is forbidden: User "ada" cannot list resource "peers""#;
    let forbidding = Setup::nodes(&nodes(2)).fault(move |request, _| {
        let is_list = request.path.starts_with("/apis/");
        is_list.then(|| Answer::failure(403, "Forbidden", message).into())
    });
    site.servers[1] = forbidding.start();
    site.servers[2] = Setup::nodes(&nodes(3)).start();
    site.reach();
    let run = site.run(&["status"]);
    insta::assert_snapshot!(run.stdout, @r#"
    3 clusters, compared with rendered

    CLUSTER  CRD         IN SYNC  MISSING  CHANGED  LEFT OVER  FOREIGN  SNAPSHOT    GUARD
    east     v1alpha1     4 of 4        0        0          0        0  up to date  none
    north    unreadable
    west     none         0 of 4        4        0          0        0  up to date  none

    north
      forbidden: could not be read: the right to `list` `peers.kilo.squat.ai` is missing (403: peers.kilo.squat.ai is forbidden: User "ada" cannot list resource "peers")
        help: `clustermesh rbac --peers` prints the manifests that grant this right

    west
      crd: Kilo's CRD `peers.kilo.squat.ai` is not installed
        help: install Kilo in this cluster
      missing: prod--east--n1
      missing: prod--east--n2
      missing: prod--north--n1
      missing: prod--north--n2
        help: find out why Flux or Argo CD has not applied these Peers; `clustermesh status --wait 5m` waits for it
    "#);
    assert_eq!((run.code, run.stderr.as_str()), (2, ""));
    let run = site.run(&["verify", "--live"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("error[forbidden]: north: "), "{}", run.stderr);
    assert!(run.stderr.ends_with("\n1 error\n"), "{}", run.stderr);
}

/// Every command that reads Peers continues without those of the cluster.
#[test]
fn a_cluster_without_the_crd_is_reported() {
    let mut site = Site::new();
    site.servers[2] = Setup::nodes(&nodes(3)).start();
    site.reach();
    let message = "Kilo's CRD `peers.kilo.squat.ai` is not installed\n";
    for command in [&["verify"][..], &["trace", "west/n1", "east/n1"], &["capacity"]] {
        let run = site.run(&[command, &["--live"]].concat());
        let report = run.stdout + &run.stderr;
        let finding = format!("warning[missing-crd]: west: {message}");
        assert_contains(&report, &finding);
        assert_contains(&report, "help: install Kilo in this cluster\n");
    }
    let run = site.run(&["diff", "--live", "--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr, format!("note: west: {message}"));
    assert_eq!(run.json()["notes"], json!([format!("west: {}", message.trim())]));
    assert_eq!(run.json()["targets"][0]["peersBefore"], 0);
}

/// Its Peers are unknown, so nothing continues.
#[test]
fn a_cluster_with_another_version_of_the_crd_is_an_error() {
    let mut site = Site::new();
    let versions =
        json!({ "kind": "APIGroup", "versions": [{ "version": "v1" }, { "version": "v1beta1" }] });
    let other = Setup::nodes(&nodes(3)).fault(move |request, _| {
        let is_group = request.path == "/apis/kilo.squat.ai";
        is_group.then(|| Answer::json(&versions).into())
    });
    site.servers[2] = other.start();
    site.reach();
    let message =
        "could not be read: Kilo's CRD `peers.kilo.squat.ai` has v1, v1beta1, but not v1alpha1\n";
    let help = "help: install a version of Kilo whose CRD has v1alpha1 in this cluster\n";
    for command in [&["verify"][..], &["trace", "west/n1", "east/n1"], &["capacity"], &["diff"]] {
        let run = site.run(&[command, &["--live"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{command:?}");
        assert_contains(&run.stderr, &format!("error[unreadable-answer]: west: {message}{help}"));
    }
    let run = site.run(&["status", "west"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stdout, &format!("  unreadable-answer: {message}    {help}"));
}

#[test]
fn waits_until_everything_is_applied() {
    let site = Site::new();
    site.change(|peers| drop(peers.pop()));
    let run = site.run(&["status", "west", "--wait", "1s"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    thread::scope(|scope| {
        let delivery = scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            site.change(|_| {});
        });
        let run = site.run(&["status", "west", "--wait", "30s"]);
        assert_eq!(run.code, 0, "{}", run.stdout);
        delivery.join().unwrap();
    });
    let run = site.run(&["status", "west", "--wait", "30"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "such as 90s or 5m");
}

#[test]
fn live_peers_are_judged_as_a_file_of_them() {
    let site = Site::new();
    let commands: [&[&str]; 3] =
        [&["verify"], &["trace", "west/n1", "east/n1"], &["capacity", "west"]];
    for change in [false, true] {
        if change {
            site.change(|peers| peers.truncate(1));
        }
        let mut peers = site.rendered("west");
        if change {
            peers.truncate(1);
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": peers });
        site.folder.write("west.json", list.to_string());
        for command in commands {
            let live = site.run(&[command, &["--live"]].concat());
            let dump = site.run(&[command, &["--peers", "west=west.json"]].concat());
            assert_eq!(live.code, dump.code, "{command:?} {}", live.stderr);
        }
    }
    let run = site.run(&["verify", "--kubeconfig", "kubeconfig"]);
    insta::assert_snapshot!(run.stderr, @"error: --kubeconfig works only with --live");
    assert_eq!(run.code, 2);
}

#[test]
fn a_rendered_tree_that_cannot_be_read_is_not_delivered() {
    let site = Site::new();
    let files: Vec<_> = fs::read_dir(site.folder.path("rendered/west"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    let broken = files.iter().find(|it| it.contains("--north")).unwrap();
    site.folder.write(&format!("rendered/west/{broken}"), "{[");
    let run = site.run(&["status", "--wait", "2m"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(!run.stdout.contains("left over:"), "{}", run.stdout);
    assert!(!run.stdout.contains("No problems"), "{}", run.stdout);
    assert_contains(&run.stdout, "\nwest\n  rendered: a part of this");
    assert_contains(&run.stderr, "warning[unreadable-manifest]: west: ");
    let run = site.run(&["status", "--output", "json"]);
    let object = run.json();
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert_eq!(object["clusters"][2]["peers"]["isRendered"], false);
    assert_eq!(object["clusters"][2]["peers"]["leftOver"], json!([]));
    assert_eq!(object["findings"][0]["rule"], "unreadable-manifest");
    let run = site.run(&["status", "--output", "markdown"]);
    assert_contains(&run.stdout, "**unreadable-manifest**");
    // The others are fine.
    let run = site.run(&["status", "east"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn errors_of_the_inputs_are_no_success() {
    let site = Site::new();
    site.folder.write("snapshots/north.json", "{}");
    let run = site.run(&["status", "east"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(!run.stdout.contains("No problems"), "{}", run.stdout);
    assert_contains(&run.stderr, "error[");
    let run = site.run(&["status", "east", "--output", "json"]);
    let object = run.json();
    assert_eq!(object["findings"][0]["severity"], "error");
}

#[test]
fn a_context_is_settled_once_for_all_clusters() {
    let site = Site::new();
    site.change(|peers| drop(peers.pop()));
    // East is done after the first round.
    let contexts = ["--context", "east=east", "--context", "west=west"];
    let run = site.run(&[&["status", "east", "west", "--wait", "6s"], &contexts[..]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{}", run.stdout);
    let list = |cluster| json!({ "kind": "List", "items": site.rendered(cluster) }).to_string();
    site.folder.write("west.json", list("west"));
    site.folder.write("north.json", list("north"));
    let files = ["verify", "--live", "--peers", "west=west.json", "--peers", "north=north.json"];
    let run = site.run(&[&files, &contexts[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = site.run(&[&files, &["--context", "east"][..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = site.run(&["status", "west", "--context", "east=east"]);
    insta::assert_snapshot!(run.stderr, @"error: --context names `east`, but the clusters are `west`");
    let run = site.run(&["verify", "--timeout", "3"]);
    insta::assert_snapshot!(run.stderr, @"error: --timeout works only with --live");
}

#[test]
fn waiting_does_not_repeat_what_was_refused() {
    let mut site = Site::new();
    let refusing = Setup::nodes(&nodes(2)).login(Login::token("other"));
    site.servers[1] = refusing.start();
    site.reach();
    site.change(|peers| drop(peers.pop()));
    let run = site.run(&["status", "--wait", "6s"]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert_eq!(site.servers[1].requests().len(), 1);
    assert!(1 < lists(&site.servers[2]));
}

fn lists(server: &ApiServer) -> usize {
    let requests = server.requests();
    let lists = requests.iter().filter(|it| it.path.ends_with("/peers"));
    lists.count()
}

#[cfg(unix)]
#[test]
fn waiting_reads_a_kubeconfig_from_a_pipe_once() {
    let site = Site::new();
    site.change(|peers| drop(peers.pop()));
    let text = site.folder.read("kubeconfig");
    let pipe = site.folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, text).unwrap());
        let run = site.run(&["status", "west", "--kubeconfig", "pipe", "--wait", "6s"]);
        assert_eq!(run.code, 1, "{} {}", run.stdout, run.stderr);
        assert_contains(&run.stdout, "missing: ");
    });
}

#[test]
fn waiting_ends_although_a_cluster_never_does() {
    let mut site = Site::new();
    let silent = Setup::nodes(&nodes(2)).fault(|_, _| Some(Reply::Silence));
    site.servers[1] = silent.start();
    site.reach();
    let started = std::time::Instant::now();
    let run = site.run(&["status", "--wait", "2s", "--timeout", "2"]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert_contains(&run.stdout, "slow-cluster");
    assert!(started.elapsed() < SOON);
}

#[test]
fn connections_that_are_not_checked_are_reported() {
    let mut site = Site::new();
    let identity = Authority::new("theirs").server(&["127.0.0.1"]);
    site.servers[2] = Setup::nodes(&nodes(3)).tls(&identity).start();
    site.servers[2].apply(&site.rendered("west"));
    let contexts = CLUSTERS.iter().zip(&site.servers).map(|(name, server)| {
        let context = Context::new(name, &server.url());
        context.cluster("insecure-skip-tls-verify", true)
    });
    let text = kubeconfig(&contexts.collect::<Vec<_>>());
    site.folder.write("kubeconfig", text);
    let commands: [&[&str]; 3] = [
        &["verify", "--live"],
        &["trace", "west/n1", "east/n1", "--live"],
        &["capacity", "west", "--live"],
    ];
    for command in commands {
        let run = site.run(command);
        let text = (run.stdout + &run.stderr).replace('\n', " ");
        assert_contains(&text, "[unchecked-certificate]: west: ");
        assert_contains(&text, "could forge the Peers");
    }
    let run = site.run(&["status", "west"]);
    assert_eq!(run.code, 0);
    assert!(!run.stdout.contains("No problems"), "{}", run.stdout);
    assert_contains(&run.stderr, "could forge the nodes and the Peers");
}

#[test]
fn a_peer_that_is_being_deleted_is_missing() {
    let site = Site::new();
    site.change(|peers| peers[0]["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into());
    let run = site.run(&["status", "west"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "  missing: prod--east--n1");
}

#[test]
fn peers_that_kilo_does_not_take_are_named() {
    let site = Site::new();
    site.change(|peers| {
        peers.push(laptop("laptop", "short", "10.99.0.1/32"));
        peers.push(laptop("No_Name", KEY, "10.99.0.2/32"));
    });
    let run = site.run(&["status", "west"]);
    insta::assert_snapshot!(run.stdout, @"
    1 cluster, compared with rendered

    CLUSTER  CRD       IN SYNC  MISSING  CHANGED  LEFT OVER  FOREIGN  SNAPSHOT    GUARD
    west     v1alpha1   4 of 4        0        0          0        1  up to date  none
    ");
    insta::assert_snapshot!(run.stderr, @"
    warning[refused-peer]: west: `No_Name` is not a valid Peer name
    warning[refused-peer]: west: Kilo ignores laptop: the public key is not base64

    2 warnings
    ");
}

/// `status` has no `--fail-on`, so the variable of that flag changes nothing.
#[test]
fn warnings_fail_no_status() {
    let site = Site::new();
    site.change(|peers| peers.push(laptop("laptop", "short", "10.99.0.1/32")));
    let run = site.run(&["status", "west"]);
    let variables = [("KUBECONFIG", "kubeconfig"), ("CLUSTERMESH_FAIL_ON", "warning")];
    let with_floor = site.folder.run_with(&variables, &["status", "west"]);
    assert!(run.stderr.contains("warning[refused-peer]"), "{}", run.stderr);
    assert_eq!((with_floor.code, with_floor.stderr), (run.code, run.stderr));
}

#[test]
fn hostile_texts_stay_in_their_place() {
    use crate::cli::robustness::printers::{check, differences};

    let text = differences::MARKUP.concat();
    let site = Site::new();
    site.change(|peers| {
        peers[0]["spec"]["endpoint"]["dnsOrIP"] = json!({ "dns": text });
        peers[1]["spec"]["allowedIPs"] = json!([text, "10.1.0.0/16"]);
        peers[2]["metadata"]["labels"] = json!({ "kilo-clustermesh.io/source-cluster": text });
        peers[3]["metadata"]["name"] = json!(text);
        peers.push(laptop("laptop", &text, "10.99.0.1/32"));
        peers.push(laptop("tablet", KEY, &text));
        let mut phone = laptop("phone", KEY, "10.99.0.2/32");
        phone["metadata"]["ownerReferences"] = json!([{ "kind": text, "name": text }]);
        phone["metadata"]["deletionTimestamp"] = json!(text);
        peers.push(phone);
    });
    for command in [&["status"][..], &["diff", "--live"], &["verify", "--live"]] {
        for format in ["human", "json", "markdown"] {
            let arguments = [&["--color=never"], command, &["--output", format]].concat();
            let run = site.run(&arguments);
            assert!(!run.stdout.is_empty(), "{}", run.stderr);
            check(format, &run).unwrap();
            if format == "markdown" && command[0] != "verify" {
                differences::check_markdown(&run.stdout).unwrap();
            }
        }
    }
}

#[test]
fn the_help_for_a_missing_tree_fits_the_command() {
    let site = Site::new();
    fs::remove_dir_all(site.folder.path("rendered")).unwrap();
    let run = site.run(&["status"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "help: run `clustermesh render`\n");
}

#[test]
fn an_unknown_cluster_is_an_error_that_lists_the_known_ones() {
    let site = Site::new();
    let run = site.run(&["status", "mars"]);
    insta::assert_snapshot!(run.stderr, @"error: no mesh contains a cluster `mars`; known clusters: `east`, `north`, `west`");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn a_list_of_peers_that_does_not_end_is_called_so() {
    let mut site = Site::new();
    let slow = |request: &Request, number: usize| {
        request.path.contains("/peers").then(|| {
            thread::sleep(Duration::from_millis(400));
            let item = json!({ "metadata": { "name": format!("p{number}") } });
            let metadata = json!({ "continue": number.to_string() });
            let page = json!({ "kind": "PeerList", "metadata": metadata, "items": [item] });
            Answer::json(&page).into()
        })
    };
    let server = Setup::nodes(&nodes(3)).fault(slow).start();
    server.apply(&[]);
    site.servers[2] = server;
    site.reach();
    let run = site.run(&["status", "west", "--timeout", "1"]);
    assert_contains(
        &run.stdout,
        "could not be read: the nodes and the Peers did not arrive completely within 10 s",
    );
    let run = site.run(&["verify", "--live", "--timeout", "1"]);
    assert!(
        run.stderr.contains("could not be read: the Peers did not arrive completely within 10 s"),
        "{}",
        run.stderr
    );
}

/// Pages of 29 MB, with as little in each value as JSON allows.
#[cfg(target_os = "linux")]
#[test]
fn a_hostile_list_takes_little_memory() {
    /// What a run may map, in KiB: a few times a page, with stacks and the program itself.
    const ROOM: &str = "400000";
    let mut site = Site::new();
    let fill = |before: &str, item: &str, after: &str| {
        let items = vec![item; 29_000_000 / (item.len() + 1)].join(",");
        format!(r#"{{"kind":"PeerList","items":[{before}{items}{after}]}}"#)
    };
    let spec = r#"{"metadata":{"name":"a"},"spec":{"#;
    let allowed = format!(r#"{spec}"publicKey":"{KEY}","allowedIPs":["#);
    let peer = format!(r#"{allowed}"{}0.0.0.0/0"]}}}}"#, r#"0.0.0.0/0",""#.repeat(10_000));
    let pages = [
        (fill(&format!(r#"{spec}"more":["#), "[]", "]}}"), 0),
        (fill(&allowed, "1", "]}}"), 2),
        (fill(&allowed, r#""1.1.1.1/0""#, "]}}"), 2),
        (fill(&format!(r#"{spec}"endpoint":"#), r#"{"port":[[]]}"#, "}}"), 2),
        (fill("", r#"{"metadata":{"name":"a"}}"#, ""), 2),
        (fill("", r#"{"metadata":{"name":"A"},"spec":[]}"#, ""), 2),
        (fill("", &peer, ""), 2),
        (fill("", "{}", ""), 2),
    ];
    for (page, code) in pages {
        let head: String = page.chars().take(100).collect();
        let hostile = move |request: &Request, _: usize| {
            let page = || Answer::new(200, "application/json", page.clone()).into();
            request.path.contains("/peers").then(page)
        };
        let server = Setup::nodes(&nodes(3)).fault(hostile).start();
        server.apply(&[]);
        site.servers[2] = server;
        site.reach();
        let script = "ulimit -v $0 && exec \"$@\"";
        let output = std::process::Command::new("sh")
            .env_clear()
            .envs([("KUBECONFIG", "kubeconfig"), ("RAYON_NUM_THREADS", "2")])
            // Otherwise each thread reserves 64 MiB or more, which are counted too.
            .env("MALLOC_ARENA_MAX", "1")
            .args(["-c", script, ROOM, env!("CARGO_BIN_EXE_clustermesh"), "status", "west"])
            .current_dir(site.folder.path(""))
            .output()
            .unwrap();
        let run = Run::from(output);
        assert!(run.stdout.contains("\n\nCLUSTER"), "{head}: {}", run.stderr);
        let is_read = !run.stdout.contains("unreadable");
        assert_eq!(is_read, code == 0, "{head}: {}", run.stdout);
    }
}

#[test]
fn diff_compares_with_what_clusters_have() {
    let site = Site::new();
    let run = site.run(&["diff", "--live", "--fail-on", "additive"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    let mut peers = site.rendered("west");
    peers.pop();
    site.servers[2].apply(&peers);
    let run = site.run(&["diff", "--live", "--output", "json"]);
    let changes = run.json();
    assert_eq!(changes["targets"][0]["cluster"], "west", "{}", run.stdout);
    assert_eq!(changes["targets"][0]["added"], 1, "{}", run.stdout);
    assert_eq!(changes["causes"], serde_json::json!([]));
}
