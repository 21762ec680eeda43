//! How many more clusters fit: compared with meshes that really have them.

use serde_json::Value;

use super::{assert_contains, assert_harmless, limit, node, object};
use crate::cli::Folder;

/// A second for a few dozen rules, so that small meshes reach the limits.
const COSTS: &str = "costs: { nanosecondsPerSquaredRule: 1000000 }";

/// A mesh with this many more clusters like `west`.
fn grown(topology: &str, capacity: &str, more: usize) -> Folder {
    let folder = Folder::mesh();
    limit(&folder, capacity);
    folder.edit("mesh.yaml", "spec:", &format!("spec:\n  topology: {topology}"));
    let mut mesh = folder.read("mesh.yaml");
    for number in 0..more {
        let index = u8::try_from(number + 10).unwrap();
        let name = format!("more{number}");
        let entry = format!(
            "    - name: {name}\n      podCIDRs: [10.{index}.0.0/16]\n      wireguardCIDR: 10.{}.0.0/24\n",
            100 + index
        );
        mesh.push_str(&entry);
        folder.keep(&name, &[node(index, 1), node(index, 2)]);
    }
    folder.write("mesh.yaml", mesh);
    let run = folder.run(&["render"]);
    assert_harmless(&run);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

/// The number of clusters that fit until the warning of a quantity.
fn fit(object: &Value, name: &str) -> usize {
    let limits = object["growth"]["limits"].as_array().unwrap();
    let room = limits.iter().find(|it| it["name"] == name).unwrap();
    let clusters = room["warning"]["clusters"].as_u64().unwrap();
    usize::try_from(clusters).unwrap()
}

/// Whether any cluster is above the warning of a quantity.
fn is_exceeded(object: &Value, name: &str) -> bool {
    let targets = object["targets"].as_array().unwrap();
    let mut quantities = targets.iter().flat_map(|it| it["quantities"].as_array().unwrap());
    quantities.any(|it| it["name"] == name && it["grade"] != "ok")
}

/// The forecast is right: with that number of clusters more, the mesh has no warning, and with one more it has one.
#[track_caller]
fn check(topology: &str, capacity: &str, name: &str) -> usize {
    let (_, now) = object(&grown(topology, capacity, 0), &[]);
    let fits = fit(&now, name);
    let (_, with) = object(&grown(topology, capacity, fits), &[]);
    assert!(!is_exceeded(&with, name), "{fits} of {name} fit: {with:#}");
    let (_, more) = object(&grown(topology, capacity, fits + 1), &[]);
    assert!(is_exceeded(&more, name), "{} of {name} do not fit", fits + 1);
    fits
}

#[test]
fn as_many_clusters_fit_as_the_forecast_says() {
    for topology in ["{ mode: FullMesh }", "{ mode: Hub, hubs: [east] }"] {
        for limit in [
            "peers: { notice: 9, warning: 9, error: 100 }",
            "directoryEntries: { notice: 4, warning: 4, error: 100 }",
            "applySeconds: { notice: 4, warning: 4, error: 9 }",
            "restartSeconds: { notice: 9, warning: 9, error: 99 }",
            "configurationBytes: { notice: 2000, warning: 2000, error: 3000 }",
            "applicationBytes: { notice: 4000, warning: 4000, error: 9000 }",
        ] {
            let name = limit.split(':').next().unwrap();
            check(topology, &format!("{COSTS}, {limit}"), name);
        }
    }
}

/// Twice the time for each change is room for fewer than twice the allowed IPs.
#[test]
fn the_time_of_kilo_grows_with_the_square() {
    let room = |seconds: usize| {
        let limit =
            format!("{COSTS}, applySeconds: {{ notice: 1, warning: {seconds}, error: 999 }}");
        fit(&object(&grown("{ mode: FullMesh }", &limit, 0), &[]).1, "applySeconds")
    };
    let (one, four) = (room(100), room(400));
    assert!(one + 2 < four && four < 3 * one, "{one} {four}");
}

#[test]
fn the_last_cluster_is_the_example() {
    let folder = Folder::rendered();
    assert_eq!(object(&folder, &[]).1["growth"]["like"], "west");
    // Clusters that have not joined are skipped, and a cluster alone gives no Peers.
    folder.edit("mesh.yaml", "- name: west", "- name: west\n      state: Joining");
    assert_eq!(object(&folder, &[]).1["growth"]["like"], "north");
    folder.edit("mesh.yaml", "- name: north", "- name: north\n      state: Joining");
    assert_eq!(object(&folder, &[]).1["growth"], Value::Null);
}

#[test]
fn limits_are_a_table() {
    let folder = Folder::rendered();
    limit(&folder, &format!("{COSTS}, peers: {{ notice: 4, warning: 9, error: 20 }}"));
    let run = folder.run(&["capacity"]);
    assert_harmless(&run);
    let (_, growth) = run.stdout.split_once("\n\nHow many").unwrap();
    insta::assert_snapshot!(growth, @"
     more clusters like west fit?
    LIMIT                   WARNING    FIT        ERROR    FIT  FIRST
    peers                       > 9      2         > 20      8  east
    applySeconds              > 5 s      4       > 30 s     17  east
    applicationBytes      > 591,000    748  > 1,536,600  1,948  east
    directoryEntries        > 1,000    997      > 3,000  2,997  east
    annotationBytes       > 196,608  1,066    > 257,600  1,398  east
    kustomizeSeconds          > 4 s  1,082       > 13 s  1,953  east
    fluxSeconds             > 180 s  2,248                      east
    configurationBytes  > 1,000,000  3,102                      east
    inventoryBytes      > 1,048,576  6,166  > 1,572,864  9,250  east

    With 2 more, a restart of Kilo takes up to 9.4 s. Kilo's time grows with the square of the allowed IPs.
    ");
    let run = folder.run(&["capacity", "--output", "markdown"]);
    assert_contains(&run.stdout, "#### How many more clusters like west fit?\n\n| LIMIT |");
}
