//! `config`: every effective setting and its source.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Folder, MESH, assert_harmless};
use crate::support::{Run, project};

#[cfg(target_os = "linux")]
mod owners;
mod settings;

const CONFIG: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [mesh.yaml]
snapshots: nodes
rendered: &tree deploy/peers
clusters:
  east: { kubeconfig: secrets/east.yaml, context: admin }
  north: { inCluster: true }
  south: { kubeconfig: ../south.yaml, inCluster: false }
  west: {}
limits:
  nodes: 1000
  lostPercent: 0
";

/// What every run has.
const HOME: (&str, &str) = ("HOME", "/home/me");

fn run_with(folder: &Folder, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let run = folder.run_with(&[&[HOME], variables].concat(), arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

fn table(folder: &Folder) -> String {
    let run = run_with(folder, &[], &["config"]);
    assert_eq!(run.stderr, "");
    run.stdout
}

/// Value and origin of each setting.
fn settings(
    folder: &Folder,
    variables: &[(&str, &str)],
    flags: &[&str],
) -> BTreeMap<String, (Value, Value)> {
    let arguments = [flags, &["config", "--output", "json"]].concat();
    let printed = run_with(folder, variables, &arguments).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["apiVersion"], "kilo-clustermesh.io/v1");
    assert_eq!(printed["kind"], "Settings");
    let settings = printed["settings"].as_array().unwrap();
    let found: BTreeMap<_, _> = settings
        .iter()
        .map(|it| {
            let name = it["name"].as_str().unwrap().to_owned();
            (name, (it["value"].clone(), it["origin"].clone()))
        })
        .collect();
    assert_eq!(found.len(), settings.len(), "a name is there twice");
    found
}

/// Leaves out the limits that the config does not set.
fn without_default_limits(table: &str) -> String {
    let is_shown = |it: &&str| !it.starts_with("limits.") || !it.ends_with(" default");
    let lines: Vec<&str> = table.lines().filter(is_shown).collect();
    lines.join("\n")
}

#[test]
fn prints_the_defaults() {
    insta::assert_snapshot!(table(&Folder::mesh()), @"
    SETTING                                              VALUE                                            ORIGIN
    config                                               (none)                                           default
    meshes                                               mesh.yaml                                        default
    snapshots                                            snapshots                                        default
    snapshot.dropLabels                                  feature.node.kubernetes.io/                      default
    rendered                                             rendered                                         default
    expectations                                         (none)                                           default
    policies                                             (none)                                           default
    kubeconfig                                           /home/me/.kube/config                            default
    clusters.east.kubeconfig                             /home/me/.kube/config                            default
    clusters.east.context                                east                                             default
    clusters.east.inCluster                              false                                            default
    clusters.north.kubeconfig                            /home/me/.kube/config                            default
    clusters.north.context                               north                                            default
    clusters.north.inCluster                             false                                            default
    clusters.west.kubeconfig                             /home/me/.kube/config                            default
    clusters.west.context                                west                                             default
    clusters.west.inCluster                              false                                            default
    limits.nodes                                         500                                              default
    limits.lostNodes                                     2                                                default
    limits.lostPercent                                   25                                               default
    limits.gonePercent                                   50                                               default
    limits.staleAfterSeconds                             300                                              default
    limits.lostPeers                                     2                                                default
    limits.lostPeersPercent                              25                                               default
    limits.peerBytes                                     262144                                           default
    limits.capacity.peers                                notice 1000, warning 3000, error 10000           default
    limits.capacity.ranges                               (none)                                           default
    limits.capacity.rules                                (none)                                           default
    limits.capacity.applySeconds                         notice 1, warning 5, error 30                    default
    limits.capacity.restartSeconds                       (none)                                           default
    limits.capacity.routes                               (none)                                           default
    limits.capacity.configurationBytes                   warning 1000000                                  default
    limits.capacity.annotationBytes                      warning 196608, error 257600                     default
    limits.capacity.tunnelsPerNode                       (none)                                           default
    limits.capacity.tunnels                              (none)                                           default
    limits.capacity.dnsEndpoints                         warning 0                                        default
    limits.capacity.storedBytes                          (none)                                           default
    limits.capacity.kustomizeSeconds                     notice 1, warning 4, error 13                    default
    limits.capacity.fluxSeconds                          warning 180                                      default
    limits.capacity.applicationBytes                     warning 591000, error 1536600                    default
    limits.capacity.inventoryBytes                       warning 1048576, error 1572864                   default
    limits.capacity.fileBytes                            notice 262144, warning 1048576, error 104857600  default
    limits.capacity.directoryEntries                     warning 1000, error 3000                         default
    limits.capacity.costs.nanosecondsPerSquaredRule      2500                                             default
    limits.capacity.costs.nanosecondsPerSquaredResource  850                                              default
    limits.capacity.costs.storedBytesPerPeer             1100                                             default
    limits.capacity.costs.applicationBytesPerPeer        394                                              default
    limits.capacity.costs.inventoryBytesPerPeer          85                                               default
    limits.ceilings.clusters                             400                                              default
    limits.ceilings.nodes                                80000                                            default
    limits.ceilings.ranges                               20000                                            default
    limits.ceilings.anchors                              5000                                             default
    limits.ceilings.expectations                         2000                                             default
    limits.ceilings.peers                                500000                                           default
    limits.ceilings.steps                                10000000                                         default
    ");
}

#[test]
fn prints_what_the_config_says_and_where() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    insta::assert_snapshot!(without_default_limits(&table(&folder)), @"
    SETTING                                              VALUE                                            ORIGIN
    config                                               clustermesh.yaml                                 default
    meshes                                               mesh.yaml                                        clustermesh.yaml:3:9
    snapshots                                            nodes                                            clustermesh.yaml:4:12
    snapshot.dropLabels                                  feature.node.kubernetes.io/                      default
    rendered                                             deploy/peers                                     clustermesh.yaml:5:17
    expectations                                         (none)                                           default
    policies                                             (none)                                           default
    kubeconfig                                           /home/me/.kube/config                            default
    clusters.east.kubeconfig                             secrets/east.yaml                                clustermesh.yaml:7:23
    clusters.east.context                                admin                                            clustermesh.yaml:7:51
    clusters.east.inCluster                              false                                            default
    clusters.north.inCluster                             true                                             clustermesh.yaml:8:23
    clusters.south.kubeconfig                            ../south.yaml                                    clustermesh.yaml:9:24
    clusters.south.context                               (the only one)                                   default
    clusters.south.inCluster                             false                                            clustermesh.yaml:9:50
    clusters.west.kubeconfig                             /home/me/.kube/config                            default
    clusters.west.context                                west                                             default
    clusters.west.inCluster                              false                                            default
    limits.nodes                                         1000                                             clustermesh.yaml:12:10
    limits.lostPercent                                   0                                                clustermesh.yaml:13:16
    ");
}

#[test]
fn prints_json_with_types() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    let found = settings(&folder, &[("KUBECONFIG", "a:b")], &["--rendered", "out"]);
    let is = |name: &str, value: Value, origin: Value| {
        assert_eq!(found[name], (value, origin), "{name}");
    };
    let at = |line: u32, column: u32| json!({ "kind": "file", "file": "clustermesh.yaml", "line": line, "column": column });
    let default = || json!({ "kind": "default" });
    let flag = json!({ "kind": "flag", "flag": "--rendered" });
    let variable = json!({ "kind": "variable", "variable": "KUBECONFIG" });
    is("config", json!("clustermesh.yaml"), default());
    is("meshes", json!(["mesh.yaml"]), at(3, 9));
    is("snapshots", json!("nodes"), at(4, 12));
    is("rendered", json!("out"), flag);
    is("kubeconfig", json!(["a", "b"]), variable.clone());
    is("clusters.west.kubeconfig", json!(["a", "b"]), variable);
    is("clusters.west.context", json!("west"), default());
    is("clusters.south.context", json!(null), default());
    is("clusters.south.inCluster", json!(false), at(9, 50));
    is("clusters.north.inCluster", json!(true), at(8, 23));
    is("limits.nodes", json!(1000), at(12, 10));
    is("limits.lostPercent", json!(0), at(13, 16));
    is("limits.gonePercent", json!(50), default());
}

#[test]
fn prints_json_as_people_read_it() {
    let folder = Folder::empty();
    let run = run_with(&folder, &[], &["config", "--output", "json"]);
    let beginning: Vec<&str> = run.stdout.lines().take(18).collect();
    insta::assert_snapshot!(beginning.join("\n"), @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "kind": "Settings",
      "settings": [
        {
          "name": "config",
          "value": null,
          "origin": {
            "kind": "default"
          }
        },
        {
          "name": "meshes",
          "value": [],
          "origin": {
            "kind": "default"
          }
        },
    "#);
    assert!(run.stdout.ends_with("]\n}\n"), "{}", run.stdout);
}

#[test]
fn goes_by_flags_then_variables_then_the_config_then_defaults() {
    let folder = Folder::mesh();
    let flag = |flag: &str| json!({ "kind": "flag", "flag": flag });
    let variable = |variable: &str| json!({ "kind": "variable", "variable": variable });
    for (name, option, name_of_variable) in [
        ("config", "--config", "CLUSTERMESH_CONFIG"),
        ("meshes", "--mesh", "CLUSTERMESH_MESHES"),
        ("snapshots", "--snapshots", "CLUSTERMESH_SNAPSHOTS"),
        ("rendered", "--rendered", "CLUSTERMESH_RENDERED"),
    ] {
        folder.write("clustermesh.yaml", CONFIG);
        folder.write("other.yaml", CONFIG);
        let values = |value: &str| match name {
            "meshes" => json!([value]),
            _ => json!(value),
        };
        let both =
            settings(&folder, &[(name_of_variable, "clustermesh.yaml")], &[option, "other.yaml"]);
        assert_eq!(both[name], (values("other.yaml"), flag(option)));
        let one = settings(&folder, &[(name_of_variable, "other.yaml")], &[]);
        assert_eq!(one[name], (values("other.yaml"), variable(name_of_variable)));
        let none = settings(&folder, &[], &[]);
        if name != "config" {
            assert_eq!(none[name].1["kind"], "file", "{name}");
        }
        fs::remove_file(folder.path("clustermesh.yaml")).unwrap();
        let none = settings(&folder, &[], &[]);
        assert_eq!(none[name].1, json!({ "kind": "default" }), "{name}");
    }
}

#[test]
fn knows_flags_behind_the_command() {
    let folder = Folder::mesh();
    let variables = [("CLUSTERMESH_RENDERED", "variable")];
    let run = run_with(&folder, &variables, &["config", "--rendered", "flag"]);
    let line = run.stdout.lines().find(|it| it.starts_with("rendered"));
    assert!(line.unwrap().ends_with("--rendered"), "{}", run.stdout);
}

#[test]
fn takes_an_empty_variable_for_none() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    let variables = [
        ("CLUSTERMESH_CONFIG", ""),
        ("CLUSTERMESH_MESHES", ""),
        ("CLUSTERMESH_SNAPSHOTS", ""),
        ("CLUSTERMESH_RENDERED", ""),
        ("KUBECONFIG", ""),
    ];
    let empty = run_with(&folder, &variables, &["config"]);
    assert_eq!(empty.stdout, table(&folder));
}

#[test]
fn takes_a_list_of_kubeconfigs() {
    let folder = Folder::mesh();
    let variables = [("KUBECONFIG", ":one.yaml::two.yaml:")];
    let run = run_with(&folder, &variables, &["config"]);
    let lines: Vec<&str> = run.stdout.lines().filter(|it| it.starts_with("kube")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    kubeconfig                                           one.yaml                                         KUBECONFIG
    kubeconfig                                           two.yaml                                         KUBECONFIG
    ");
}

#[test]
fn takes_paths_of_the_config_from_its_folder() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    fs::create_dir_all(folder.path("docs/deep")).unwrap();
    let run = run_with(&folder, &[], &["-C", "docs/deep", "config"]);
    insta::assert_snapshot!(without_default_limits(&run.stdout), @"
    SETTING                                              VALUE                                            ORIGIN
    config                                               ../../clustermesh.yaml                           default
    meshes                                               ../../mesh.yaml                                  ../../clustermesh.yaml:3:9
    snapshots                                            ../../nodes                                      ../../clustermesh.yaml:4:12
    snapshot.dropLabels                                  feature.node.kubernetes.io/                      default
    rendered                                             ../../deploy/peers                               ../../clustermesh.yaml:5:17
    expectations                                         (none)                                           default
    policies                                             (none)                                           default
    kubeconfig                                           /home/me/.kube/config                            default
    clusters.east.kubeconfig                             ../../secrets/east.yaml                          ../../clustermesh.yaml:7:23
    clusters.east.context                                admin                                            ../../clustermesh.yaml:7:51
    clusters.east.inCluster                              false                                            default
    clusters.north.inCluster                             true                                             ../../clustermesh.yaml:8:23
    clusters.south.kubeconfig                            ../../../south.yaml                              ../../clustermesh.yaml:9:24
    clusters.south.context                               (the only one)                                   default
    clusters.south.inCluster                             false                                            ../../clustermesh.yaml:9:50
    clusters.west.kubeconfig                             /home/me/.kube/config                            default
    clusters.west.context                                west                                             default
    clusters.west.inCluster                              false                                            default
    limits.nodes                                         1000                                             ../../clustermesh.yaml:12:10
    limits.lostPercent                                   0                                                ../../clustermesh.yaml:13:16
    ");
}

#[test]
fn names_the_files_of_a_folder() {
    let folder = Folder::empty();
    folder.write("clusters/b.yaml", MESH);
    folder.write("clusters/a.yml", "");
    folder.write("clusters/README.md", "");
    let found = settings(&folder, &[], &["--mesh", "clusters"]);
    assert_eq!(found["meshes"].0, json!(["clusters/a.yml", "clusters/b.yaml"]));
    assert!(found.contains_key("clusters.north.context"));
}

#[test]
fn needs_no_mesh() {
    let run = run_with(&Folder::empty(), &[], &["config"]);
    let others = run.stdout.lines().filter(|it| !it.starts_with("limits."));
    insta::assert_snapshot!(others.collect::<Vec<_>>().join("\n"), @"
    SETTING                                              VALUE                                            ORIGIN
    config                                               (none)                                           default
    meshes                                               (none)                                           default
    snapshots                                            snapshots                                        default
    snapshot.dropLabels                                  feature.node.kubernetes.io/                      default
    rendered                                             rendered                                         default
    expectations                                         (none)                                           default
    policies                                             (none)                                           default
    kubeconfig                                           /home/me/.kube/config                            default
    ");
    insta::assert_snapshot!(run.stderr, @"note: clusters of unreadable meshes are missing: no mesh found: this folder has no `mesh.yaml` and no `meshes/`");
}

#[test]
fn prints_the_same_in_every_format() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG);
    let print = |format: &str| run_with(&folder, &[], &["config", "-o", format]).stdout;
    assert_eq!(print("human"), table(&folder));
    let json: Value = serde_json::from_str(&print("json")).unwrap();
    let yaml = print("yaml");
    assert_eq!(serde_yaml::from_str::<Value>(&yaml).unwrap(), json, "{yaml}");
    assert!(
        yaml.starts_with(
            "apiVersion: kilo-clustermesh.io/v1\nkind: Settings\nsettings:\n  - name: config\n"
        ),
        "{yaml}"
    );
}

#[test]
fn goes_on_without_meshes_that_are_wrong() {
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", CONFIG);
    fs::create_dir(folder.path("empty")).unwrap();
    folder.write("broken.yaml", "a: [");
    folder.write("wrong.yaml", MESH.replace("name: east", "name: East"));
    let mut report = String::new();
    for mesh in ["nowhere.yaml", "empty", "broken.yaml", "wrong.yaml", "."] {
        let run = run_with(&folder, &[], &["--mesh", mesh, "config"]);
        assert!(run.stdout.contains("clusters.south.kubeconfig"));
        report += &run.stderr;
    }
    insta::assert_snapshot!(report, @"
    note: clusters of unreadable meshes are missing: cannot read `nowhere.yaml`: No such file or directory (os error 2)
    note: clusters of unreadable meshes are missing: `empty` contains no *.yaml or *.yml file
    note: clusters of unreadable meshes are missing: `broken.yaml` is not YAML
    note: clusters of unreadable meshes are missing: `wrong.yaml` contains errors
    note: clusters of unreadable meshes are missing: `./broken.yaml` is not YAML
    ");
}

#[test]
fn stops_at_a_config_that_is_wrong() {
    let folder = Folder::mesh();
    folder.write("clustermesh.yaml", CONFIG.replace("nodes: 1000", "nodes: 0"));
    let run = folder.run(&["config"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[invalid-value]: `nodes` must be from 1 to 1000000, not `0`
      --> clustermesh.yaml:12:10
       |
    12 |   nodes: 0
       |          ^
    help: write a number from 1 to 1000000

    1 error
    ");
    folder.write("clustermesh.yaml", "a: [");
    let run = folder.run(&["config"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    let run = folder.run(&["config", "--config", "nowhere.yaml"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
}

#[test]
fn escapes_what_files_and_variables_say() {
    const HOSTILE: &str = "\u{1b}[2J\u{202e}\u{9b}2J\u{1f600}\u{e0001}\n";
    let folder = Folder::mesh();
    let text = r#""\u001b[2J\u202e\u009b2J\U0001f600\U000e0001\n""#;
    folder.write(
        "clustermesh.yaml",
        format!(
            "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nsnapshots: {text}\n\
             clusters: {{ west: {{ kubeconfig: {text}, context: {text} }} }}\n"
        ),
    );
    let variables = [HOME, ("CLUSTERMESH_RENDERED", HOSTILE), ("KUBECONFIG", HOSTILE)];
    let run = folder.run_with(&variables, &["config"]);
    assert_harmless(&run);
    assert!(!run.stdout.contains('\u{1b}'));
    let run = folder.run_with(&variables, &["config", "--output", "json"]);
    assert_harmless(&run);
    let found = settings(&folder, &variables, &[]);
    assert_eq!(found["snapshots"].0, json!(HOSTILE));
    assert_eq!(found["rendered"].0, json!(HOSTILE));
    assert_eq!(found["kubeconfig"].0, json!([HOSTILE]));
    assert_eq!(found["clusters.west.context"].0, json!(HOSTILE));
}

#[test]
fn prints_paths_that_are_no_text() {
    let folder = Folder::mesh();
    let bytes = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(folder.path("x").with_file_name(bytes)).unwrap();
    let output = assert_cmd::Command::cargo_bin("clustermesh")
        .unwrap()
        .env_clear()
        .current_dir(folder.0.path())
        .args(["config", "--snapshots"])
        .arg(bytes)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("caf\u{fffd}"));
}

#[test]
fn writes_nothing() {
    let folder = Folder::rendered();
    let before = folder.touches(".");
    table(&folder);
    assert_eq!(folder.touches("."), before);
}

#[test]
fn understands_the_config_of_the_book() {
    let page = fs::read_to_string(project().join("docs/reference/config.md")).unwrap();
    let mut blocks = page.split("```yaml\n").skip(1);
    let config = blocks.find(|block| block.contains("kind: Config\n")).unwrap();
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", config.split("```").next().unwrap());
    let run = run_with(&folder, &[], &["config"]);
    let unsaid: Vec<&str> = run.stdout.lines().filter(|it| it.ends_with("default")).collect();
    insta::assert_snapshot!(unsaid.join("\n"), @"
    config                                               clustermesh.yaml                                                  default
    kubeconfig                                           /home/me/.kube/config                                             default
    clusters.east.inCluster                              false                                                             default
    clusters.north.inCluster                             false                                                             default
    limits.capacity.peers                                notice 1000, warning 3000, error 10000                            default
    limits.capacity.ranges                               (none)                                                            default
    limits.capacity.rules                                (none)                                                            default
    limits.capacity.restartSeconds                       (none)                                                            default
    limits.capacity.routes                               (none)                                                            default
    limits.capacity.configurationBytes                   warning 1000000                                                   default
    limits.capacity.annotationBytes                      warning 196608, error 257600                                      default
    limits.capacity.tunnelsPerNode                       (none)                                                            default
    limits.capacity.tunnels                              (none)                                                            default
    limits.capacity.dnsEndpoints                         warning 0                                                         default
    limits.capacity.storedBytes                          (none)                                                            default
    limits.capacity.kustomizeSeconds                     notice 1, warning 4, error 13                                     default
    limits.capacity.fluxSeconds                          warning 180                                                       default
    limits.capacity.applicationBytes                     warning 591000, error 1536600                                     default
    limits.capacity.inventoryBytes                       warning 1048576, error 1572864                                    default
    limits.capacity.fileBytes                            notice 262144, warning 1048576, error 104857600                   default
    limits.capacity.directoryEntries                     warning 1000, error 3000                                          default
    limits.capacity.costs.nanosecondsPerSquaredResource  850                                                               default
    limits.capacity.costs.storedBytesPerPeer             1100                                                              default
    limits.capacity.costs.applicationBytesPerPeer        394                                                               default
    limits.capacity.costs.inventoryBytesPerPeer          85                                                                default
    limits.ceilings.clusters                             400                                                               default
    limits.ceilings.ranges                               20000                                                             default
    limits.ceilings.anchors                              5000                                                              default
    limits.ceilings.expectations                         2000                                                              default
    limits.ceilings.peers                                500000                                                            default
    limits.ceilings.steps                                10000000                                                          default
    ");
}

#[test]
fn a_slip_in_the_name_of_a_cluster_is_reported() {
    let folder = Folder::rendered();
    let config =
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n  wets: { context: wets }\n";
    folder.write("clustermesh.yaml", config);
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout, @"clustermesh.yaml:4:3: warning[unnamed-cluster] no mesh contains a cluster `wets`");
}
