//! `capacity`: what the mesh costs each cluster, and what would make it less.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Folder, HEADER, assert_harmless, node};
use crate::support::json_schema::{schema, violations};
use crate::support::{assert_contains, clustermesh, project};

mod growth;
mod joining;

/// A rendered mesh with limits that are as low as it is small.
fn limited(capacity: &str) -> Folder {
    let folder = Folder::rendered();
    limit(&folder, capacity);
    folder
}

fn limit(folder: &Folder, capacity: &str) {
    folder.write(
        "clustermesh.yaml",
        format!(
            "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: {{ capacity: {{ {capacity} }} }}\n"
        ),
    );
}

/// The exit code and the object of `capacity --output json`, which must fit its schema.
fn object(folder: &Folder, flags: &[&str]) -> (i32, Value) {
    let run = folder.run(&[&["capacity", "--output", "json"], flags].concat());
    assert_harmless(&run);
    let object = run.json();
    let schema = schema("kilo-clustermesh.io/capacity_v1.json");
    assert_eq!(violations(&schema, &object), [""; 0], "{object:#}");
    (run.code, object)
}

/// The value of a quantity of a target.
fn value(object: &Value, target: usize, name: &str) -> f64 {
    let quantities = object["targets"][target]["quantities"].as_array().unwrap();
    let found = quantities.iter().find(|it| it["name"] == name).unwrap();
    found["value"].as_f64().unwrap()
}

/// The same of what is counted.
fn count(object: &Value, target: usize, name: &str) -> usize {
    let value = format!("{}", value(object, target, name));
    value.parse().unwrap()
}

#[test]
fn an_example_costs_what_the_book_says() {
    let run = clustermesh(&project().join("examples/hub-and-spokes"), &["capacity"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    TARGET           GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS
    management       ok        10      29     89  20 ms    0.1 s      37  2.7 kB       15
    tenant-ada       ok         3      11     41   4 ms     9 ms      15  1.0 kB        5
    tenant-bell      ok         3       6     27   2 ms     4 ms       8   757 B        4
    tenant-curie     ok         3      11     37   3 ms     7 ms      12   835 B        4
    tenant-dijkstra  ok         3      11     37   3 ms     7 ms      13   835 B        4

    5 clusters, 22 Peer objects; 87 tunnel ends in total on all nodes (not Kubernetes objects)

    How many more clusters like tenant-dijkstra fit?
    LIMIT                   WARNING    FIT        ERROR    FIT  FIRST
    applySeconds              > 5 s     94       > 30 s    241  management
    applicationBytes      > 591,000    496  > 1,536,600  1,296  management
    annotationBytes       > 196,608    709    > 257,600    930  management
    kustomizeSeconds          > 4 s    719       > 13 s  1,300  management
    directoryEntries        > 1,000    995      > 3,000  2,995  management
    peers                   > 3,000    996     > 10,000  3,330  management
    fluxSeconds             > 180 s  1,496                      management
    configurationBytes  > 1,000,000  2,002                      management
    inventoryBytes      > 1,048,576  4,108  > 1,572,864  6,164  management

    With 94 more, a restart of Kilo takes up to 8 min. Kilo's time grows with the square of the allowed IPs.
    ");
    let page = fs::read_to_string(project().join("docs/how-to/capacity.md")).unwrap();
    assert!(page.contains(&run.stdout));
}

#[test]
fn a_target_is_reported_with_every_formula() {
    let run = limited("ranges: { notice: 5, warning: 6, error: 100 }").run(&["capacity", "west"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    west: warning

      Kilo, on the busiest node
        warning  ranges                 8  > 6          A: distinct allowed IPs of all Peers;
                                                        a change takes 1 s with 308, 5 s with 699, 30 s with 1,724
        -        rules                 31               R = 2 A + Σ over segments (1 + their allowed IPs) + own forward rules + 3 =
                                                        2 × 8 + 8 + 4 + 3
        ok       applySeconds        2 ms  ≤ 1 s        seconds for a rule squared × R² = 2.5 µs × 31²
        -        restartSeconds      6 ms               Σ over Peers of one apply with the Peers before it =
                                                        4 applies, from 0 s to 2 ms
        -        routes                10               A + routes to nodes = 8 + 2
        ok       configurationBytes   910  ≤ 1,000,000  its text: interface, other segments, Peers = 266 + 644 for Peers
        ok       annotationBytes      368  ≤ 196,608    bytes for a Peer with a handshake × P = 92 × 4
        -        tunnelsPerNode         5               P + other segments = 4 + 1
        -        tunnels                8               P × segments = 4 × 2
        ok       dnsEndpoints           0  ≤ 0          Peers whose endpoint is a name

      the API server, GitOps and git
        ok  peers                 4  ≤ 1,000      P: Peers in the manifests
        -   storedBytes       4,400               bytes for a Peer × P = 1,100 × 4
        ok  kustomizeSeconds    0 s  ≤ 1 s        seconds for a resource squared × P² = 850 ns × 4²
        ok  fluxSeconds       0.2 s  ≤ 180 s      two requests for each Peer, 50 a second = 2 × 4 ⁄ 50
        ok  applicationBytes  1,576  ≤ 591,000    bytes for a Peer in status and sync result × P = 394 × 4
        ok  inventoryBytes      340  ≤ 1,048,576  bytes for a Peer × P = 85 × 4
        ok  fileBytes           849  ≤ 262,144    the largest file
        ok  directoryEntries      3  ≤ 1,000      a file for each source, and a kustomization

      the change from the current tree: none

      `ranges`: Select fewer nodes with `nodeSelector`, or advertise fewer ranges; without their addresses, connections of nodes end.
        clustermesh capacity --with '*.advertise.podCIDRs=Merged'
        clustermesh capacity --with '*.advertise.nodeAddresses=false'
        clustermesh capacity --with '*.advertise.wireguardAddresses=None'
    ");
}

#[test]
fn what_is_too_much_is_reported_with_what_would_make_it_less() {
    let folder = limited("applySeconds: { warning: 0 }, peers: { error: 3 }");
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(run.stdout, @"
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS
    east    error      4       8     31   2 ms     6 ms      10   910 B        5
    north   error      4       8     31   2 ms     6 ms      10   910 B        5
    west    error      4       8     31   2 ms     6 ms      10   910 B        5

    3 clusters, 12 Peer objects; 24 tunnel ends in total on all nodes (not Kubernetes objects)

    east, north, west
      error    peers            4  > 3    P: Peers in the manifests
      warning  applySeconds  2 ms  > 0 s  seconds for a rule squared × R² = 2.5 µs × 31²
      `peers`: Run Kilo with one Peer for each location, select fewer nodes with `nodeSelector`, or link fewer clusters with `topology`.
        clustermesh capacity --with '*.granularity=Location'
      `applySeconds`: Select fewer nodes with `nodeSelector`, or advertise fewer ranges; without their addresses, connections of nodes end.
        clustermesh capacity --with '*.advertise.podCIDRs=Merged'
        clustermesh capacity --with '*.advertise.nodeAddresses=false'
        clustermesh capacity --with '*.advertise.wireguardAddresses=None'

    How many more clusters like west fit?
    LIMIT                   WARNING    FIT        ERROR    FIT  FIRST
    peers                       > 3      0          > 3      0  east
    applySeconds              > 0 s      0       > 30 s    429  east
    applicationBytes      > 591,000    748  > 1,536,600  1,948  east
    directoryEntries        > 1,000    997      > 3,000  2,997  east
    annotationBytes       > 196,608  1,066    > 257,600  1,398  east
    kustomizeSeconds          > 4 s  1,082       > 13 s  1,953  east
    fluxSeconds             > 180 s  2,248                      east
    configurationBytes  > 1,000,000  3,102                      east
    inventoryBytes      > 1,048,576  6,166  > 1,572,864  9,250  east
    ");
}

#[test]
fn what_fails_is_up_to_the_caller() {
    let folder = limited("applySeconds: { warning: 0 }");
    let code = |flags: &[&str]| folder.run(&[&["capacity"], flags].concat()).code;
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--fail-on", "warning"]), 1);
    let raised = "\nrules: { slow-apply: { level: error } }\n";
    let config = folder.read("clustermesh.yaml");
    folder.write("clustermesh.yaml", config.clone() + raised);
    assert_eq!(code(&[]), 1);
    let off = "\nrules: { slow-apply: { level: \"off\", reason: x } }\n";
    folder.write("clustermesh.yaml", config + off);
    assert_eq!(code(&["--fail-on", "warning"]), 0);
    limit(&folder, "applySeconds: { notice: 0 }");
    assert_eq!(code(&["--fail-on", "warning"]), 0);
    assert_eq!(code(&["--fail-on", "notice"]), 1);
    limit(&folder, "");
    assert_eq!(code(&["--fail-on", "notice"]), 0);
}

#[test]
fn validate_tells_the_same() {
    let folder = limited("applySeconds: { warning: 0 }");
    let validate = || {
        let run = folder.run(&["validate", "--output", "concise"]);
        assert_eq!(run.code, 0);
        run.stdout
    };
    insta::assert_snapshot!(validate(), @"
    warning[slow-apply] east: Kilo would need 2 ms for each change (2.5 µs × 31² rules), more than the limit of 0 s
    warning[slow-apply] north: Kilo would need 2 ms for each change (2.5 µs × 31² rules), more than the limit of 0 s
    warning[slow-apply] west: Kilo would need 2 ms for each change (2.5 µs × 31² rules), more than the limit of 0 s
    ");
    limit(&folder, "applySeconds: { notice: 0 }");
    assert_eq!(validate(), "", "a notice is for those who ask");
}

#[test]
fn programs_get_an_object() {
    let (code, object) = object(&limited("ranges: { warning: 6, error: 7 }"), &["west"]);
    assert_eq!(code, 1, "what is shown as an error fails");
    let targets = object["targets"].as_array().unwrap();
    assert_eq!((targets.len(), &targets[0]["cluster"]), (1, &"west".into()));
    assert_eq!(targets[0]["grade"], "error");
    assert!(value(&object, 0, "applySeconds") < 0.01);
    let quantities = targets[0]["quantities"].as_array().unwrap();
    insta::assert_snapshot!(format!("{:#}", quantities[1]), @r#"
    {
      "formula": "A: distinct allowed IPs of all Peers",
      "grade": "error",
      "limits": {
        "error": 7,
        "warning": 6
      },
      "name": "ranges",
      "value": 8,
      "worked": "a change takes 1 s with 308, 5 s with 699, 30 s with 1,724"
    }
    "#);
}

#[test]
fn a_change_is_reported_with_the_time_that_kilo_is_busy() {
    let folder = Folder::mesh();
    // Nothing is rendered yet: all Peers are added together.
    let (_, whole) = object(&folder, &[]);
    assert_eq!(whole["targets"][0]["change"]["added"], 4);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, same) = object(&folder, &[]);
    assert_eq!(same["targets"][0]["change"]["seconds"], 0);
    assert_eq!(same["targets"][0]["change"]["added"], 0);

    // One comes, one goes, one gets another address.
    let mut moved = node(2, 1);
    moved["podCIDRs"] = serde_json::json!(["10.2.99.0/24"]);
    folder.keep("north", &[moved, node(2, 3)]);
    let (_, changed) = object(&folder, &["east"]);
    let change = &changed["targets"][0]["change"];
    let numbers = ["added", "changed", "removed"].map(|it| change[it].as_u64().unwrap());
    assert_eq!(numbers, [1, 1, 1]);
    let apply = value(&changed, 0, "applySeconds");
    let busy = change["seconds"].as_f64().unwrap();
    assert!(3.0 * apply <= busy && busy < 5.0 * apply, "{busy} of {apply}");
    let run = folder.run(&["capacity"]);
    insta::assert_snapshot!(run.stdout, @"
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS    CHANGE  BUSY
    east    ok         4       8     31   2 ms     6 ms      10   911 B        5  +1 ~1 -1  8 ms
    north   ok         4       8     31   2 ms     6 ms      10   911 B        5
    west    ok         4       8     31   2 ms     6 ms      10   911 B        5  +1 ~1 -1  8 ms

    3 clusters, 12 Peer objects; 24 tunnel ends in total on all nodes (not Kubernetes objects)

    How many more clusters like west fit?
    LIMIT                   WARNING    FIT        ERROR    FIT  FIRST
    applySeconds              > 5 s    172       > 30 s    429  east
    applicationBytes      > 591,000    748  > 1,536,600  1,948  east
    directoryEntries        > 1,000    997      > 3,000  2,997  east
    annotationBytes       > 196,608  1,066    > 257,600  1,398  east
    kustomizeSeconds          > 4 s  1,082       > 13 s  1,953  east
    peers                   > 3,000  1,498     > 10,000  4,998  east
    fluxSeconds             > 180 s  2,248                      east
    configurationBytes  > 1,000,000  3,102                      east
    inventoryBytes      > 1,048,576  6,166  > 1,572,864  9,250  east

    With 172 more, a restart of Kilo takes up to 10 min. Kilo's time grows with the square of the allowed IPs.
    ");
}

/// Without its Peers, a target would seem to get all of them as new ones.
#[test]
fn a_target_with_an_unreadable_file_has_no_cost() {
    let folder = Folder::rendered();
    let (wanted, stale) = ("rendered/east/prod--west.yaml", "rendered/east/old--west.yaml");
    let ours = folder.read(wanted);
    folder.write("east.yaml", &ours);
    let broken = [
        [ours.as_bytes(), &[0xff]].concat(),
        [ours.as_bytes(), b"---\na: ["].concat(),
        format!("{HEADER}a: [").into_bytes(),
    ];
    for text in broken {
        for path in [wanted, stale] {
            fs::write(folder.path(path), &text).unwrap();
            for flags in [&[][..], &["east"]] {
                let (code, object) = object(&folder, flags);
                let targets = object["targets"].as_array().unwrap().iter();
                let targets: Vec<&str> = targets.filter_map(|it| it["cluster"].as_str()).collect();
                assert_eq!(code, 1);
                assert_eq!(targets, ["north", "west"][..2 - 2 * flags.len()]);
            }
            let run = folder.run(&["capacity"]);
            assert_contains(&run.stderr, "error[unreadable-manifest]: east: ");
            let mut rows = run.stdout.lines();
            assert!(!rows.any(|it| it.starts_with("east")), "{}", run.stdout);
            assert_eq!(folder.run(&["capacity", "west"]).code, 0);
            let dumped = folder.run(&["capacity", "east", "--peers", "east=east.yaml"]);
            assert_eq!((dumped.code, dumped.stderr.as_str()), (0, ""));
            folder.write(wanted, &ours);
        }
        fs::remove_file(folder.path(stale)).unwrap();
    }
    assert_eq!(folder.run(&["capacity", "--fail-on", "warning"]).code, 0);
}

/// Nothing shows that clustermesh wrote such a file, so all its Peers would count as new.
#[test]
fn a_target_with_a_file_in_the_way_has_no_cost() {
    let folder = Folder::rendered();
    let path = "rendered/east/prod--west.yaml";
    let ours = folder.read(path);
    let marked = format!("<<<<<<< HEAD\n{ours}");
    let texts = [
        [b"\xff", ours.as_bytes()].concat(),
        marked.into_bytes(),
        b"nonsense: [".to_vec(),
        vec![0xff, 0xfe],
    ];
    for text in texts {
        fs::write(folder.path(path), &text).unwrap();
        let run = folder.run(&["capacity"]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert_contains(&run.stderr, "error[blocked-file]: east: ");
        let mut rows = run.stdout.lines();
        assert!(!rows.any(|it| it.starts_with("east")), "{}", run.stdout);
        assert_eq!(folder.run(&["capacity", "west"]).code, 0);
    }
    folder.write(path, ours);
    assert_eq!(folder.run(&["capacity"]).code, 0);
}

#[test]
fn what_is_the_same_for_several_is_reported_once_and_the_gravest_first() {
    let folder = limited("peers: { notice: 3, error: 5 }");
    folder.keep("north", &[node(2, 1), node(2, 2), node(2, 3)]);
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    TARGET  GRADE   PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS  CHANGE  BUSY
    east    notice      5      10     35   3 ms    10 ms      12  1.1 kB        6      +1  3 ms
    north   notice      4       8     35   3 ms     9 ms      12  1.1 kB        6
    west    notice      5      10     35   3 ms    10 ms      12  1.1 kB        6      +1  3 ms

    3 clusters, 14 Peer objects; 32 tunnel ends in total on all nodes (not Kubernetes objects)

    east, west
      notice  peers  5  > 3  P: Peers in the manifests
      `peers`: Run Kilo with one Peer for each location, select fewer nodes with `nodeSelector`, or link fewer clusters with `topology`.
        clustermesh capacity --with '*.granularity=Location'

    north
      notice  peers  4  > 3  P: Peers in the manifests
      `peers`: Run Kilo with one Peer for each location, select fewer nodes with `nodeSelector`, or link fewer clusters with `topology`.
        clustermesh capacity --with '*.granularity=Location'

    How many more clusters like west fit?
    LIMIT                   WARNING    FIT        ERROR    FIT  FIRST
    peers                       > 5      0          > 5      0  east
    applySeconds              > 5 s    172       > 30 s    428  east
    applicationBytes      > 591,000    747  > 1,536,600  1,947  east
    directoryEntries        > 1,000    997      > 3,000  2,997  east
    annotationBytes       > 196,608  1,066    > 257,600  1,397  east
    kustomizeSeconds          > 4 s  1,082       > 13 s  1,952  east
    fluxSeconds             > 180 s  2,247                      east
    configurationBytes  > 1,000,000  3,102                      east
    inventoryBytes      > 1,048,576  6,165  > 1,572,864  9,249  east
    ");
}

/// A Peer as `kubectl get peers -o yaml` shows it.
fn peer(name: &str, number: u8, ranges: &[&str]) -> Value {
    serde_json::json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "Peer",
        "metadata": { "name": name, "resourceVersion": "7" },
        "spec": { "publicKey": STANDARD.encode([number; 32]), "allowedIPs": ranges },
    })
}

#[test]
fn peers_of_a_cluster_count_whoever_gave_them() {
    let folder = Folder::rendered();
    let foreign = peer("laptop-\u{1b}", 1, &["10.99.0.1/32"]);
    let laptop = peer("laptop", 2, &["10.99.0.2/32", "10.99.0.3/32"]);
    let gone = peer("prod--west--gone", 3, &["10.3.77.0/24"]);
    let list = serde_json::json!({ "kind": "List", "items": [foreign, laptop, gone] });
    folder.write("east.json", list.to_string());
    let (code, with) = object(&folder, &["east", "--peers", "east=east.json"]);
    // Four of the mesh, and the laptop; the name of the other is invalid.
    assert_eq!(code, 0);
    assert_eq!(count(&with, 0, "peers"), 5);
    let (_, without) = object(&folder, &["east"]);
    assert_eq!(count(&with, 0, "ranges"), count(&without, 0, "ranges") + 2);
    let change = &with["targets"][0]["change"];
    let numbers = ["added", "changed", "removed"].map(|it| change[it].as_u64().unwrap());
    assert_eq!(numbers, [4, 0, 1]);

    let run = folder.run(&["capacity", "--peers", "eats=east.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: --peers: no mesh contains a cluster `eats`; did you mean `east`?");
}

#[test]
fn a_cluster_that_has_what_is_rendered_does_not_change() {
    let folder = Folder::rendered();
    let files = ["east/prod--north.yaml", "east/prod--west.yaml"];
    let texts = files.map(|it| folder.read(&format!("rendered/{it}")));
    folder.write("east.yaml", texts.join("---\n"));
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    let (_, object) = object(&folder, &["--peers", "east=east.yaml"]);
    let added = [0, 1].map(|it| object["targets"][it]["change"]["added"].as_u64());
    assert_eq!(added, [Some(0), Some(4)]);
}

#[test]
fn a_cluster_that_is_nowhere_is_a_slip() {
    let run = Folder::rendered().run(&["capacity", "wets"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: no mesh contains a cluster `wets`; did you mean `west`?");
}

#[test]
fn without_a_plan_it_says_why_there_is_none() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_contains(&run.stderr, "missing-snapshot");
    folder.write("mesh.yaml", "a: [");
    assert_eq!(folder.run(&["capacity"]).code, 2);
}

#[test]
fn limits_that_do_not_ascend_are_reported_with_their_lines() {
    let folder = limited("applySeconds: { warning: 30, error: 10 }");
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[contradicting-fields]: `error` (10) is lower than `warning` (30)
     --> clustermesh.yaml:3:59
      |
    3 | limits: { capacity: { applySeconds: { warning: 30, error: 10 } } }
      |                                                --         ^^
      |                                                |
      |                                                more than that

    1 error
    ");
}

#[test]
fn names_the_ranges_that_move_when_a_flat_mesh_is_taken_over() {
    let folder = Folder::mesh();
    let flat = "allowedNetworks: [10.1.0.0/16, 10.101.0.0/24, 10.96.0.0/16]";
    let typed = "podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24";
    folder.edit("mesh.yaml", typed, flat);
    assert_eq!(folder.run(&["render"]).code, 0);
    let ours = folder.read("rendered/west/prod--east.yaml");
    let of_dump = |text: &str| {
        folder.write("west.yaml", text);
        let run = folder.run(&["capacity", "west", "--peers", "west=west.yaml"]);
        let moved = run.stderr.lines().filter(|it| it.contains("moved-anchor"));
        moved.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    // What the operator wrote, with its own labels and the range on another node.
    let label = "    app.kubernetes.io/managed-by: clustermesh\n";
    let range = "  - \"10.96.0.0/16\"\n";
    let theirs = ours
        .replace(label, "")
        .replace(range, "")
        .replace("  - \"10.1.2.0/24\"\n", &format!("  - \"10.1.2.0/24\"\n{range}"));
    insta::assert_snapshot!(of_dump(&theirs), @"warning[moved-anchor]: east: 10.96.0.0/16 would move from prod--east--n2 to prod--east--n1 (target west), which the mesh does not request");
    assert_eq!(of_dump(&ours.replace(label, "")), "");
}
