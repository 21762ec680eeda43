//! Every folder in `examples/`: same input, same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::support::{clustermesh, copy, project};

/// The findings of `validate` about an example that is wrong on purpose.
const FINDINGS: &str = "findings.txt";

/// Two versions of a mesh, which the tests of `diff` compare, and a mesh that is generated.
const OTHERS: [&str; 2] = ["pull-request", "two-hundred-tenants"];

/// The examples that can be rendered.
fn examples() -> Vec<PathBuf> {
    let (wrong, sound): (Vec<PathBuf>, _) =
        folders().into_iter().partition(|folder| folder.join(FINDINGS).exists());
    assert!(!wrong.is_empty());
    sound
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(project().join("examples")).unwrap();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !OTHERS.iter().any(|it| path.ends_with(it)))
        .collect();
    folders.sort();
    assert!(3 <= folders.len());
    folders
}

fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path.clone(), fs::read_to_string(path).unwrap());
        }
    }
    files
}

/// The files of a copy, under the names they have in the original.
fn files_of_copy(folder: &Path, original: &Path) -> BTreeMap<PathBuf, String> {
    files(folder)
        .into_iter()
        .map(|(path, text)| (original.join(path.strip_prefix(folder).unwrap()), text))
        .collect()
}

#[test]
fn renders_what_is_committed() {
    for example in examples() {
        let scratch = tempfile::tempdir().unwrap();
        copy(&example, scratch.path());
        fs::remove_dir_all(scratch.path().join("rendered")).unwrap();
        let run = clustermesh(scratch.path(), &["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(files_of_copy(scratch.path(), &example), files(&example));
    }
}

/// As the comment about `anchors` in the mesh of the hub describes.
#[test]
fn the_first_gateway_of_the_hub_replaces_either_of_the_others() {
    const LOWER: &str = "10.110.0.0/17";
    const UPPER: &str = "10.110.128.0/17";
    let hub = project().join("examples/hub-and-spokes");
    let carried = |change: &dyn Fn(&mut Vec<Value>)| {
        let scratch = tempfile::tempdir().unwrap();
        copy(&hub, scratch.path());
        let snapshot = scratch.path().join("snapshots/management.json");
        let text = fs::read_to_string(&snapshot).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(value["nodes"].as_array_mut().unwrap());
        fs::write(&snapshot, value.to_string()).unwrap();
        let run = clustermesh(scratch.path(), &["render", "--target", "tenant-ada"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let peers = serde_yaml::Deserializer::from_str(&run.stdout)
            .map(|it| Value::deserialize(it).unwrap())
            .filter(|it| it["kind"] == "Peer");
        let peers: Vec<Value> = peers.collect();
        [LOWER, UPPER].map(|part| {
            let mut peers = peers.iter();
            let has = |it: &&Value| it["spec"]["allowedIPs"].to_string().contains(part);
            let name = peers.find(has).unwrap()["metadata"]["name"].as_str();
            name.unwrap().rsplit("--").next().unwrap().to_owned()
        })
    };
    assert_eq!(carried(&|_| {}), ["mgmt-gw-2", "mgmt-gw-3"]);
    for (lost, expected) in
        [("mgmt-gw-2", ["mgmt-gw-1", "mgmt-gw-3"]), ("mgmt-gw-3", ["mgmt-gw-2", "mgmt-gw-1"])]
    {
        let deleted = carried(&|nodes| nodes.retain(|it| it["name"] != lost));
        let silent = carried(&|nodes| {
            let node = nodes.iter_mut().find(|it| it["name"] == lost).unwrap();
            node["stale"] = json!(true);
        });
        assert_eq!([deleted, silent], [expected, expected], "{lost}");
    }
}

#[test]
fn sound_examples_have_no_warnings() {
    for example in examples() {
        let run = clustermesh(&example, &["validate", "--fail-on", "warning"]);
        assert_eq!(run.code, 0, "{}: {}", example.display(), run.stdout);
    }
}

#[test]
fn tells_the_mistakes_that_are_committed() {
    let wrong = folders().into_iter().filter(|it| it.join(FINDINGS).exists());
    for example in wrong {
        let run = clustermesh(&example, &["validate", "--output", "concise"]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let expected = fs::read_to_string(example.join(FINDINGS)).unwrap();
        assert_eq!(run.stdout, expected);
        let rules: BTreeSet<&str> = expected
            .lines()
            .filter_map(|line| line.split_once('[')?.1.split_once(']'))
            .map(|(rule, _)| rule)
            .collect();
        assert!(30 <= rules.len(), "{rules:?}");
        let report = clustermesh(&example, &["validate", "--output", "json"]).json();
        let findings = report["findings"].as_array().unwrap();
        let helpless = findings.iter().filter(|it| it["help"].is_null());
        let helpless: Vec<&Value> = helpless.map(|it| &it["message"]).collect();
        assert!(helpless.is_empty(), "no help: {helpless:#?}");
        // Nothing comes of it.
        let before = files(&example);
        assert_eq!(clustermesh(&example, &["render"]).code, 1);
        assert_eq!(files(&example), before);
    }
}

/// As the page of the example promises.
#[test]
fn a_mistake_is_reported_after_those_that_hide_it_are_corrected() {
    let scratch = tempfile::tempdir().unwrap();
    copy(&project().join("examples/thirty-mistakes"), scratch.path());
    let path = scratch.path().join("mesh.yaml");
    let mesh = fs::read_to_string(&path).unwrap();
    // The first two clusters, of which the ranges no longer overlap.
    let (sound, _) = mesh.split_once("    - name: north").unwrap();
    fs::write(&path, sound.replace("10.4.0.0/16", "10.4.0.0/17")).unwrap();
    let run = clustermesh(scratch.path(), &["validate", "--output", "concise"]);
    let of_node = |it: &&str| it.contains("[looping-endpoint] east/east-15: left out");
    assert!(run.stdout.lines().any(|it| of_node(&it)), "{}", run.stdout);
}

#[test]
fn is_up_to_date_by_its_own_check() {
    for example in examples() {
        let run = clustermesh(&example, &["render", "--check"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    }
}

/// The output of a proof of an example that succeeds.
fn proof(example: &str) -> String {
    let run = clustermesh(&project().join("examples").join(example), &["verify"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of all examples")]
fn every_example_holds_what_it_promises() {
    let proven = [
        "external-peers",
        "gitops",
        "hub-and-spokes",
        "joining",
        "multi-cloud-location",
        "quickstart",
        "services",
    ];
    let names = examples().into_iter().map(|it| it.file_name().unwrap().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), proven);
    insta::assert_snapshot!(proof("hub-and-spokes"), @r#"
    mesh platform (mesh.yaml): 5 clusters, Peers from rendered

    FROM             TO               pod → pod  pod → network  pod → node
    management       tenant-ada       9/9        3/3            9/9
    management       tenant-bell      6/6        3/3            6/6
    management       tenant-curie     6/6        3/3            -
    management       tenant-dijkstra  6/6        3/3            -
    tenant-ada       management       9/9        3/3            9/9
    tenant-bell      management       6/6        -              -
    tenant-curie     management       6/6        2/2            6/6
    tenant-dijkstra  management       6/6        2/2            6/6

    FROM             TO               node → pod  node → node  node → network
    management       tenant-ada       9/9         9/9          +3
    management       tenant-bell      -           -            -
    management       tenant-curie     6/6         -            +3
    management       tenant-dijkstra  6/6         -            +3
    tenant-ada       management       9/9         9/9          +3
    tenant-bell      management       6/6         -            -
    tenant-curie     management       -           -            -
    tenant-dijkstra  management       -           -            -
    6 pairs of clusters have no link.

    only management/mgmt-gw-2 carries 10.110.0.0/17 for tenant-ada, tenant-curie, tenant-dijkstra
    only management/mgmt-gw-3 carries 10.110.128.0/17 for tenant-ada, tenant-curie, tenant-dijkstra
    only tenant-ada/ada-md0-8wq4k-5fzxp carries 10.111.0.0/16 for management
    only tenant-bell/bell-md0-p6v2j-c8kwd carries 10.112.0.0/16 for management
    only tenant-curie/curie-md0-zt5hn-2lqgv carries 10.113.0.0/16 for management
    only tenant-dijkstra/dijkstra-md0-r9m3c-6nhfs carries 10.114.0.0/16 for management

    warning[unproved-nodes]: tenant-curie: `render` leaves out 1 of 3 nodes: curie-md0-zt5hn-wb4kr (annotation kilo.squat.ai/wireguard-ip is missing or empty)
      --> snapshots/tenant-curie.json:82:15
       |
    82 |       "name": "curie-md0-zt5hn-wb4kr",
       |               ^^^^^^^^^^^^^^^^^^^^^^^
    help: check that the Kilo agent runs there, then run `clustermesh snapshot tenant-curie`

    warning[unproved-nodes]: tenant-dijkstra: 1 of 3 nodes is not part of this proof: dijkstra-md0-r9m3c-xq7dw (not ready: its Kilo agent stopped sending heartbeats)
      --> snapshots/tenant-dijkstra.json:99:15
       |
    99 |       "name": "dijkstra-md0-r9m3c-xq7dw",
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^
    help: check that Kilo runs on these nodes, then run `clustermesh snapshot tenant-dijkstra`

    All 163 declared paths work in both directions. 12 undeclared paths also work (list them with `--undeclared`). 5 nodes have no declared paths. All 5 expectations are met.
    "#);
    insta::assert_snapshot!(proof("multi-cloud-location"), @"
    mesh multi-cloud (mesh.yaml): 3 clusters, Peers from rendered

    FROM    TO      pod → pod  pod → service  pod → network  pod → node  node → pod
    aws     gcp     15/15      5/5            10/10          10/10 +5    9/9 +6
    aws     onprem  15/15      -              -              -           9/9 +6
    gcp     aws     15/15      3/3            21/21          9/9 +6      10/10 +5
    gcp     onprem  9/9        -              -              -           6/6 +3
    onprem  aws     15/15      3/3            21/21          9/9 +6      -
    onprem  gcp     9/9        3/3            6/6            6/6 +3      -

    FROM    TO      node → node  node → service  node → network
    aws     gcp     6/6 +9       +5              +10
    aws     onprem  -            -               -
    gcp     aws     6/6 +9       +3              +21
    gcp     onprem  -            -               -
    onprem  aws     -            -               -
    onprem  gcp     -            -               -

    only aws/ip-10-30-4-23.eu-west-1.compute.internal carries 10.30.0.0/16, 10.33.0.0/16 and the pods of 1 other node for gcp, onprem
    only aws/ip-10-31-21-5.ec2.internal carries 10.31.0.0/16 and the pods of 2 other nodes for gcp, onprem
    only gcp/pool-1-m9wt carries 10.37.0.0/20, 10.38.0.0/20 and the pods of 2 other nodes for aws, onprem
    only onprem/rack1-node1 carries the pods of 2 other nodes for aws, gcp

    notice[unreached-pods]: gcp: other clusters cannot reach 3 pod CIDRs that Kilo does not route: fd36:a1f0:52c9::/64, fd36:a1f0:52c9:1::/64, fd36:a1f0:52c9:2::/64

    All 230 declared paths work in both directions. 97 undeclared paths also work (list them with `--undeclared`).
    ");
    insta::assert_snapshot!(proof("external-peers"), @"
    mesh prod (mesh.yaml): 2 clusters, Peers from rendered

    FROM             TO               pod → pod  pod → service  pod → network
    east             external.branch  2/2        -              2/2
    east             external.laptop  2/2        -              -
    east             west             4/4        2/2            -
    external.branch  east             2/2        1/1            -
    external.laptop  east             2/2        1/1            -
    external.laptop  west             2/2        1/1            -
    west             east             4/4        2/2            -
    west             external.laptop  2/2        -              -

    only east/east-1 carries 10.43.0.0/16 for external.branch, external.laptop, west
    only west/west-1 carries 10.96.0.0/12 for east, external.laptop

    All 29 declared paths work in both directions. All 5 expectations are met.
    ");
    assert_eq!(proof("gitops"), proof("quickstart"));
    insta::assert_snapshot!(proof("quickstart"), @"
    mesh quickstart (mesh.yaml): 2 clusters, Peers from rendered

    FROM  TO    pod → pod  pod → service  pod → network  pod → node  node → pod
    east  west  9/9        3/3            -              -           9/9
    west  east  9/9        3/3            6/6            9/9         -

    FROM  TO    node → service
    east  west  +3
    west  east  -

    only east/east-agent-1 carries 10.0.1.0/24, 10.43.0.0/16 for west
    only west/west-cp-1 carries 10.96.0.0/12 for east

    All 48 declared paths work in both directions. 3 undeclared paths also work (list them with `--undeclared`).
    ");
}

#[test]
fn makes_the_snapshots_from_the_dumps() {
    for example in examples() {
        let scratch = tempfile::tempdir().unwrap();
        copy(&example, scratch.path());
        let snapshots = scratch.path().join("snapshots");
        let committed = files(&snapshots);
        fs::remove_dir_all(&snapshots).unwrap();
        for path in committed.keys() {
            let cluster = path.file_stem().unwrap().to_str().unwrap();
            let dump = format!("nodes/{cluster}.json");
            let (cluster, services) = match cluster.strip_suffix(".services") {
                Some(cluster) => (cluster, "--services"),
                None => (cluster, "--quiet"),
            };
            let arguments = ["snapshot", cluster, services, "--from", &dump];
            let run = clustermesh(scratch.path(), &arguments);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        assert_eq!(files(&snapshots), committed);
    }
}

/// What the roles of a file of manifests grant, a line each.
fn granted(file: &str) -> Vec<String> {
    let text = fs::read_to_string(project().join("examples").join(file)).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text)
        .map(|it| serde_yaml::Value::deserialize(it).unwrap());
    let mut granted = Vec::new();
    for document in documents {
        for rule in document["rules"].as_sequence().into_iter().flatten() {
            let words = |field: &str| {
                let words: Vec<&str> = rule[field]
                    .as_sequence()
                    .into_iter()
                    .flatten()
                    .map(|it| it.as_str().unwrap())
                    .collect();
                words.join(",")
            };
            let (verbs, groups) = (words("verbs"), words("apiGroups"));
            let (resources, names) = (words("resources"), words("resourceNames"));
            let kind = document["kind"].as_str().unwrap();
            granted.push(format!("{kind}: {verbs} {groups}/{resources} {names}"));
        }
    }
    granted
}

#[test]
fn rights_are_to_list_nodes_and_to_read_named_secrets() {
    assert_eq!(granted("rbac.yaml"), ["ClusterRole: list /nodes "]);
    assert_eq!(granted("rbac-secrets.yaml"), ["Role: get /secrets west-kubeconfig"]);
}

#[test]
fn rights_are_those_that_the_program_prints() {
    let secret = ["rbac", "--secret", "kilo-clustermesh/west-kubeconfig"];
    for (file, arguments) in [("rbac.yaml", &["rbac"][..]), ("rbac-secrets.yaml", &secret)] {
        let text = fs::read_to_string(project().join("examples").join(file)).unwrap();
        let run = clustermesh(project(), arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert_eq!(run.stdout, text, "{file}");
    }
}
