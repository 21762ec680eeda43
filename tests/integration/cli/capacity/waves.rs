//! `capacity --waves`: which clusters join together, and what every commit then does.

use std::fs;

use serde_json::{Value, json};

use super::{limit, object};
use crate::cli::{Folder, TREE, node};
use crate::support::assert_contains;

/// A rendered mesh of `east`, which `north` and `west` join.
fn joining() -> Folder {
    let folder = Folder::mesh();
    for cluster in ["north", "west"] {
        let name = format!("    - name: {cluster}\n");
        folder.edit("mesh.yaml", &name, &format!("{name}      state: Joining\n"));
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

/// The clusters of each wave, and whether they are within the limits.
fn waves(folder: &Folder) -> Vec<(Vec<String>, bool)> {
    let (_, object) = object(folder, &["--waves"]);
    let waves = object["waves"].as_array().unwrap().iter();
    waves
        .map(|wave| {
            let clusters = wave["clusters"].as_array().unwrap().iter();
            let clusters = clusters.map(|it| it["cluster"].as_str().unwrap().to_owned());
            (clusters.collect(), wave["fits"].as_bool().unwrap())
        })
        .collect()
}

fn wave(clusters: &[&str], fits: bool) -> (Vec<String>, bool) {
    (clusters.iter().map(|it| (*it).to_owned()).collect(), fits)
}

#[test]
fn clusters_join_together_as_far_as_the_limits_allow() {
    let folder = joining();
    assert_eq!(waves(&folder), [wave(&["north", "west"], true)]);
    // Both together would add 4 Peers to each cluster.
    limit(&folder, "wavePeers: { notice: 1, warning: 4, error: 100 }");
    assert_eq!(waves(&folder), [wave(&["north", "west"], true)]);
    limit(&folder, "wavePeers: { notice: 1, warning: 3, error: 100 }");
    assert_eq!(
        waves(&folder),
        [wave(&["north"], true), wave(&["west"], false)]
    );
}

#[test]
fn waves_are_shown_with_what_no_order_helps() {
    let folder = joining();
    limit(&folder, "wavePeers: { notice: 1, warning: 3, error: 100 }");
    let run = folder.run(&["capacity", "--waves"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    WAVE  CLUSTERS  BUSIEST  CHANGE  BUSY  APPLY  GRADE
       1  north     north        +2  2 ms   1 ms  notice
       2  west      west         +4  6 ms   2 ms  warning

    wave 2, west
      warning  wavePeers  4  > 3  ΔP: Peers added in one change
      west alone exceeds the limit: it gets 4 Peers in one change
      ways to reduce it
        6 ms → 2 ms  in a row  4 commits of at most 1 Peer each

    2 waves for 2 clusters. For each wave, remove `state: Joining` of its clusters, run `clustermesh render`, commit, and wait until `clustermesh status` finds no difference.
    ");
    limit(&folder, "wavePeers: { notice: 1, warning: 1, error: 100 }");
    let run = folder.run(&["capacity", "--waves", "east"]);
    let text = "the Peers of north alone exceed the limit: east gets 2 Peers in one change";
    assert_contains(&run.stdout, text);
    let strict = folder.run(&["capacity", "--waves", "--fail-on", "warning"]);
    assert_eq!(strict.code, 1);
}

#[test]
fn waves_fit_a_comment() {
    let folder = joining();
    limit(&folder, "wavePeers: { notice: 1, warning: 3, error: 100 }");
    let run = folder.run(&["capacity", "--waves", "--output", "markdown"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    ### clustermesh capacity: waves

    | WAVE | CLUSTERS | BUSIEST | CHANGE | BUSY | APPLY | GRADE |
    |--:|---|---|--:|--:|--:|---|
    | 1 | north | north | +2 | 2 ms | 1 ms | notice |
    | 2 | west | west | +4 | 6 ms | 2 ms | warning |

    ```text
    wave 2, west
      warning  wavePeers  4  > 3  ΔP: Peers added in one change
      west alone exceeds the limit: it gets 4 Peers in one change
      ways to reduce it
        6 ms → 2 ms  in a row  4 commits of at most 1 Peer each
    ```

    2 waves for 2 clusters. For each wave, remove `state: Joining` of its clusters, run `clustermesh render`, commit, and wait until `clustermesh status` finds no difference.
    ");
    let run = folder.run(&["capacity", "--output", "markdown"]);
    let tables = run.stdout.matches("| TARGET | GRADE |").count();
    assert_eq!((run.code, tables), (0, 2), "{}", run.stdout);
    assert_contains(&run.stdout, "#### With north, west joined");
    let run = folder.run(&["capacity", "east", "--output", "markdown"]);
    assert_contains(&run.stdout, "```text\neast: ");
}

#[test]
fn what_is_too_much_in_the_end_has_a_lever() {
    let folder = joining();
    limit(
        &folder,
        "applySeconds: { notice: 0, warning: 0, error: 30 }",
    );
    let run = folder.run(&["capacity", "--waves", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = "no order of joining helps: the Peers of all clusters together exceed the limit";
    assert_contains(&run.stdout, text);
    assert_contains(&run.stdout, "a `nodeSelector`");
}

#[test]
fn every_wave_is_a_commit_that_passes() {
    let folder = joining();
    limit(&folder, "wavePeers: { notice: 1, warning: 3, error: 100 }");
    let waves = waves(&folder);
    assert_eq!(waves.len(), 2);
    for (clusters, _) in waves {
        for cluster in clusters {
            let name = format!("    - name: {cluster}\n");
            folder.edit("mesh.yaml", &format!("{name}      state: Joining\n"), &name);
        }
        for arguments in [["render"].as_slice(), &["render", "--check"], &["verify"]] {
            let run = folder.run(arguments);
            assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        }
    }
    assert_eq!(folder.tree(), TREE);
    let run = folder.run(&["capacity", "--waves"]);
    assert_eq!(
        run.stdout,
        "No cluster is joining: no entry of a mesh has `state: Joining`.\n"
    );
}

#[test]
fn the_load_with_all_clusters_is_shown_before_they_join() {
    let folder = joining();
    let run = folder.run(&["capacity"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS
    east    ok         0       0     15   1 ms      0 s       2   266 B        1
    north   ok         0       0     15   1 ms      0 s       2   266 B        1
    west    ok         0       0     15   1 ms      0 s       2   266 B        1

    3 clusters, 0 Peer objects; 0 tunnel ends in total on all nodes (not Kubernetes objects)

    with north, west joined
    TARGET  GRADE  PEERS  RANGES  RULES  APPLY  RESTART  ROUTES  CONFIG  TUNNELS  CHANGE  BUSY
    east    ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms
    north   ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms
    west    ok         4       8     31   2 ms     6 ms      10   910 B        5      +4  6 ms

    Run `clustermesh capacity --waves` to see which clusters can join together.
    ");
    let (_, before) = object(&folder, &[]);
    let joined = Folder::rendered();
    let (_, after) = object(&joined, &[]);
    let loads = |targets: &Value| {
        let mut targets = targets.as_array().unwrap().clone();
        for target in &mut targets {
            let target = target.as_object_mut().unwrap();
            target.remove("change");
            target.remove("levers");
            let quantities = target["quantities"].as_array_mut().unwrap();
            quantities.retain(|it| !it["name"].as_str().unwrap().starts_with("wave"));
        }
        targets
    };
    assert_eq!(
        loads(&before["joining"]["targets"]),
        loads(&after["targets"])
    );
}

#[test]
fn a_cluster_without_a_snapshot_waits() {
    let folder = joining();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    assert_eq!(waves(&folder), [wave(&["north"], true)]);
    let run = folder.run(&["capacity", "--waves"]);
    assert!(
        run.stdout
            .ends_with("\nNot counted, because a snapshot is missing: west.\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn clusters_with_few_peers_join_before_those_with_many() {
    let folder = joining();
    let nodes: Vec<Value> = (1..=5).map(|it| node(2, it)).collect();
    folder.keep("north", &nodes);
    limit(&folder, "wavePeers: { notice: 1, warning: 5, error: 100 }");
    // The other order would add 7 Peers to `west` together.
    assert_eq!(
        waves(&folder),
        [wave(&["west"], true), wave(&["north"], true)]
    );
}

#[test]
fn the_advice_comes_before_the_first_wave() {
    let folder = joining();
    let mut silent = node(3, 1);
    silent["annotations"]["kilo.squat.ai/persistent-keepalive"] = json!("0");
    folder.keep("west", &[silent, node(3, 2)]);
    let run = folder.run(&["capacity", "--waves"]);
    insta::assert_snapshot!(run.stdout, @"
    WAVE  CLUSTERS     BUSIEST  CHANGE  BUSY  APPLY  GRADE
       1  north, west  west         +4  6 ms   2 ms  ok

    1 wave for 2 clusters. For each wave, remove `state: Joining` of its clusters, run `clustermesh render`, commit, and wait until `clustermesh status` finds no difference.

    1 node has no annotation `kilo.squat.ai/persistent-keepalive`, so requests through it may get no answer for 15 s whenever Peers change: west (n1). Before the first wave, run `kubectl --context west annotate node n1 --overwrite kilo.squat.ai/persistent-keepalive=25`, and then `clustermesh snapshot`.
    ");
    let page = folder.run(&["capacity", "--waves", "--output", "markdown"]);
    insta::assert_snapshot!(page.stdout, @"
    ### clustermesh capacity: waves

    | WAVE | CLUSTERS | BUSIEST | CHANGE | BUSY | APPLY | GRADE |
    |--:|---|---|--:|--:|--:|---|
    | 1 | north, west | west | +4 | 6 ms | 2 ms | ok |

    1 wave for 2 clusters. For each wave, remove `state: Joining` of its clusters, run `clustermesh render`, commit, and wait until `clustermesh status` finds no difference.

    1 node has no annotation `kilo.squat.ai/persistent-keepalive`, so requests through it may get no answer for 15 s whenever Peers change: west (n1). Before the first wave, run `kubectl --context west annotate node n1 --overwrite kilo.squat.ai/persistent-keepalive=25`, and then `clustermesh snapshot`.
    ");
    folder.keep("west", &[node(3, 1), node(3, 2)]);
    let run = folder.run(&["capacity", "--waves"]);
    assert!(!run.stdout.contains("annotat"), "{}", run.stdout);
}

#[test]
fn clusters_behind_nat_join_last() {
    let folder = joining();
    let behind_nat = [1, 2].map(|number| {
        let mut node = node(2, number);
        let own = format!("192.168.2.{number}:51820");
        node["annotations"]["kilo.squat.ai/endpoint"] = json!(own);
        node["addresses"].as_array_mut().unwrap().pop();
        node
    });
    folder.keep("north", &behind_nat[..1]);
    let entry = "- name: north\n";
    folder.edit(
        "mesh.yaml",
        entry,
        &format!("{entry}      persistentKeepalive: 25\n"),
    );
    limit(&folder, "wavePeers: { notice: 1, warning: 2, error: 100 }");
    // It has fewer Peers than `west`.
    let clusters: Vec<Vec<String>> = waves(&folder).into_iter().map(|it| it.0).collect();
    assert_eq!(clusters, [["west"], ["north"]]);
    let run = folder.run(&["capacity", "--waves"]);
    let advice = "\nApply each wave in one cluster after another, and change the clusters behind NAT last: north.\n";
    assert_contains(&run.stdout, advice);
}
