//! `outage`: what a loss ends for others until the next render.

use super::*;
use crate::support::{assert_contains, clustermesh, project};

/// The part of the output about outages.
fn section(text: &str) -> &str {
    let start = text.find("Without ").or_else(|| text.find("The loss of "));
    let start = start.or_else(|| text.find("All declared paths of other nodes"));
    let text = &text[start.unwrap_or_else(|| panic!("nothing about outages in {text}"))..];
    text.split("\n\n").next().unwrap()
}

fn example(name: &str, arguments: &[&str]) -> (i32, String) {
    let folder = project().join("examples").join(name);
    let run = clustermesh(&folder, &[&["outage"], arguments].concat());
    assert_harmless(&run);
    (run.code, run.stdout)
}

fn lost(folder: &Folder, parts: &[&str]) -> (i32, String) {
    let run = folder.run(&[&["outage"], parts].concat());
    assert_harmless(&run);
    (run.code, run.stdout)
}

#[test]
fn a_carrier_that_is_gone_ends_paths_to_its_range() {
    let (code, text) = example("quickstart", &["east/east-agent-1"]);
    insta::assert_snapshot!(section(&text), @"
    Without `east/east-agent-1`, 9 declared paths of other nodes break until the next render:
      FROM  TO    PATHS  KIND                          EXAMPLE
      west  east      9  pod → service, pod → network  west/west-cp-1 → east/10.0.1.0/24
    A render after that restores all of them, and no loss limit stops it. Of the declared paths of the lost nodes themselves, 13 break.
    ");
    assert_eq!(code, 0);
}

#[test]
fn a_node_that_carries_nothing_ends_only_its_own_paths() {
    let (code, text) = example("quickstart", &["east/east-agent-2"]);
    insta::assert_snapshot!(section(&text), @"
    Without `east/east-agent-2`, no declared path of other nodes breaks.
    Of the declared paths of the lost nodes themselves, 13 break.
    ");
    assert_eq!(code, 0);
}

/// The new leader of a location has no Peer elsewhere.
#[test]
fn a_lost_leader_ends_the_paths_of_its_location() {
    let leader = "gcp/pool-1-m9wt";
    let (_, text) = example("multi-cloud-location", &[leader]);
    insta::assert_snapshot!(section(&text), @"
    Without `gcp/pool-1-m9wt`, 106 declared paths of other nodes break until the next render:
      FROM    TO      PATHS  KIND                                                                          EXAMPLE
      aws     gcp        39  pod → pod, pod → node, pod → service, pod → network, node → pod, node → node  aws/ip-10-30-4-23.eu-west-1.compute.internal → gcp/pool-1-h3kd
      gcp     aws        40  pod → pod, pod → node, pod → service, pod → network, node → pod, node → node  gcp/pool-1-h3kd → aws/ip-10-30-4-23.eu-west-1.compute.internal
      gcp     onprem      9  pod → pod, node → pod                                                         gcp/pool-1-h3kd → onprem/rack1-node1
      onprem  gcp        18  pod → pod, pod → node, pod → service, pod → network                           onprem/rack1-node1 → gcp/pool-1-h3kd
    A render after that restores all of them, and no loss limit stops it. Of the declared paths of the lost nodes themselves, 52 break.
    ");
}

#[test]
fn parts_are_lost_together() {
    let arguments = ["aws:us-east-1", "10.30.4.0/24", "onprem"];
    let (_, text) = example("multi-cloud-location", &arguments);
    insta::assert_snapshot!(section(&text), @"
    Without `aws:us-east-1`, `10.30.4.0/24`, `onprem`, 47 declared paths of other nodes break until the next render:
      FROM  TO   PATHS  KIND                                                                          EXAMPLE
      aws   gcp     13  pod → pod, pod → node, pod → service, pod → network, node → pod, node → node  aws/ip-10-30-9-140.eu-west-1.compute.internal → gcp/pool-1-h3kd
      gcp   aws     34  pod → pod, pod → node, pod → service, pod → network, node → pod, node → node  gcp/pool-1-h3kd → aws/ip-10-30-9-140.eu-west-1.compute.internal
    A render after that restores all of them, but a person must accept the losses first (`empty-snapshot`, `shrunk-snapshot`). Of the declared paths of the lost nodes themselves, 183 break.
    ");
}

#[test]
fn a_guard_can_stop_the_next_render() {
    let folder = Folder::rendered();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      serviceCIDR: 10.96.0.0/16",
    );
    let nodes: Vec<Value> = (1..=5).map(|number| node(1, number)).collect();
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let parts = ["east/n1", "east/n2", "east/n3", "east/n4"];
    let (code, text) = lost(&folder, &parts);
    insta::assert_snapshot!(section(&text), @"
    Without `east/n1`, `east/n2`, `east/n3` and 1 more, 4 declared paths of other nodes break until the next render:
      FROM   TO    PATHS  KIND           EXAMPLE
      north  east      2  pod → service  north/n1 → east/10.96.0.0/16
      west   east      2  pod → service  west/n1 → east/10.96.0.0/16
    A render after that restores all of them, but a person must accept the losses first (`shrunk-snapshot`). Of the declared paths of the lost nodes themselves, 32 break.
    ");
    assert_eq!(code, 0);
}

#[test]
fn every_single_part_is_tried() {
    let (code, text) = example("multi-cloud-location", &[]);
    insta::assert_snapshot!(section(&text), @"
    The loss of 6 of 16 nodes, locations and clusters breaks declared paths of other nodes until the next render:
      WITHOUT                                       PATHS  BETWEEN              EXAMPLE
      gcp/pool-1-m9wt                                 106  4 pairs of clusters  aws/ip-10-30-4-23.eu-west-1.compute.internal → gcp/pool-1-h3kd
      onprem/rack1-node1                               74  4 pairs of clusters  aws/ip-10-30-4-23.eu-west-1.compute.internal → onprem/rack1-node2
      aws/ip-10-31-21-5.ec2.internal                   62  4 pairs of clusters  aws/ip-10-31-16-31.ec2.internal → gcp/pool-1-h3kd
      aws/ip-10-30-4-23.eu-west-1.compute.internal     59  4 pairs of clusters  aws/ip-10-30-9-140.eu-west-1.compute.internal → gcp/pool-1-h3kd
      aws:eu-west-1                                    24  2 pairs of clusters  gcp/pool-1-h3kd → aws/10.30.0.0/16
      aws:us-east-1                                    24  2 pairs of clusters  gcp/pool-1-h3kd → aws/10.31.0.0/16
    ");
    assert_eq!(code, 0);
    let (code, text) = lost(&Folder::rendered(), &[]);
    insta::assert_snapshot!(section(&text), @"All declared paths of other nodes survive the loss of any one of 9 nodes, locations and clusters.");
    assert_eq!(code, 0);
}

#[test]
fn markdown_has_the_tables() {
    let (_, text) = example("quickstart", &["east/east-agent-1", "-o", "markdown"]);
    insta::assert_snapshot!(text, @"
    ### clustermesh outage

    Without `east/east-agent-1`, 9 declared paths of other nodes break until the next render:

    | FROM | TO | PATHS | KIND | EXAMPLE |
    |---|---|--:|---|---|
    | west | east | 9 | pod → service, pod → network | west/west-cp-1 → east/10.0.1.0/24 |

    A render after that restores all of them, and no loss limit stops it. Of the declared paths of the lost nodes themselves, 13 break.

    All 48 declared paths work in both directions.
    ");
    let (_, text) = example("quickstart", &["-o", "markdown"]);
    insta::assert_snapshot!(text, @"
    ### clustermesh outage

    The loss of 2 of 8 nodes, locations and clusters breaks declared paths of other nodes until the next render:

    | WITHOUT | PATHS | BETWEEN | EXAMPLE |
    |---|--:|---|---|
    | east/east-agent-1 | 9 | 1 pair of clusters | west/west-cp-1 → east/10.0.1.0/24 |
    | west/west-cp-1 | 3 | 1 pair of clusters | east/east-agent-1 → west/10.96.0.0/12 |

    All 48 declared paths work in both directions.
    ");
}

#[test]
fn the_paths_that_work_today_are_counted() {
    let folder = Folder::rendered();
    folder.edit("rendered/west/prod--east.yaml", "10.1.1.0/24", "10.1.9.0/24");
    let run = folder.run(&["outage"]);
    insta::assert_snapshot!(run.stdout, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    All declared paths of other nodes that work now survive the loss of any one of 9 nodes, locations and clusters.

    20 of 24 declared paths work in both directions.
    ");
    assert_contains(&run.stderr, "warning[outdated-tree]");
    assert_eq!(run.code, 0);
}

#[test]
fn errors_in_files_make_it_incomplete() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let run = folder.run(&["outage", "-o", "json"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "error[missing-snapshot]");
    assert_eq!(run.json()["single"]["parts"], 6);
    let run = folder.run(&["outage", "west"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: `west` has no snapshot; run `clustermesh snapshot`");
}

/// Renumbered WireGuard addresses are those of other nodes in the Peers of other clusters.
#[test]
fn later_nodes_without_an_internal_address_lose_their_address() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (1..=3)
        .map(|number| {
            let mut node = node(1, number);
            let annotations = node["annotations"].as_object_mut().unwrap();
            annotations.remove("kilo.squat.ai/internal-ip");
            node
        })
        .collect();
    folder.keep("east", &nodes);
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24",
        "allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = lost(&folder, &["east/n2"]);
    insta::assert_snapshot!(section(&text), @"
    Without `east/n2`, 8 declared paths of other nodes break until the next render:
      FROM   TO     PATHS  KIND        EXAMPLE
      east   north      2  node → pod  east/n3 → north/n1
      east   west       2  node → pod  east/n3 → west/n1
      north  east       2  pod → node  north/n1 → east/n3
      west   east       2  pod → node  west/n1 → east/n3
    A render after that restores all of them, and no loss limit stops it. Of the declared paths of the lost nodes themselves, 16 break.
    ");
    assert_eq!(code, 0);
}

#[test]
fn unknown_parts_are_refused() {
    let folder = Folder::rendered();
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 34)]);
    let parts = [
        "wets",
        "n34",
        "west/n34",
        "n1",
        "west/n11",
        "west/zzzzzz",
        "west:x",
        "198.51.100.0/24",
        "west/\u{1b}[31m",
    ];
    let refusals: Vec<String> = parts
        .iter()
        .map(|part| {
            let run = folder.run(&["outage", part]);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""));
            run.stderr
        })
        .collect();
    insta::assert_snapshot!(refusals.concat(), @r#"
    error: no mesh contains a cluster `wets`; did you mean `west`?
    error: `n34` is a node; write `east/n34`
    error: cluster `west` has no node `n34`; did you mean `east/n34`?
    error: no mesh contains a cluster `n1`; known clusters: `east`, `north`, `west`
    error: cluster `west` has no node `n11`; did you mean `n1`?
    error: cluster `west` has no node `zzzzzz`; its nodes are `n1`, `n2`
    error: cluster `west` has no location `x`; its locations are ``
    error: no node has an endpoint or address of its own in 198.51.100.0/24; to lose nodes by name, write `CLUSTER`, `CLUSTER/NODE` or `CLUSTER:LOCATION`
    error: cluster `west` has no node `\u{1b}[31m`; its nodes are `n1`, `n2`
    "#);
}
