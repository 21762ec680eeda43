use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::agent::applied::AppliedFile;
use crate::agent::model::Model;
use crate::config::capacity::Steps;
use crate::fleet::{Fleet, SnapshotFile};
use crate::manifest;
use crate::mesh::Mesh;
use crate::name::ClusterName;
use crate::plan::plan;
use crate::rules::capacity::target_load::loads;
use crate::snapshot::{Node, Snapshot};
use crate::testing::{mesh_of, meshes, node};

/// Three linked clusters, with this many nodes each.
fn clusters(numbers: [usize; 3]) -> (Vec<Mesh>, BTreeMap<ClusterName, SnapshotFile>) {
    let names = ["east", "north", "west"];
    let entries: Vec<String> = names.iter().zip(1..).map(|(name, number)| {
        format!(
            "name: {name}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.10{number}.0.0/16, \
             additionalCIDRs: [172.16.{number}.0/24]"
        )
    }).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let snapshots = names.into_iter().zip(1..).zip(numbers).map(|((name, cluster), number)| {
        let name: ClusterName = name.parse().unwrap();
        let nodes = (1..=number).map(|it| node_of(cluster, it)).collect();
        let snapshot = Arc::new(Snapshot::new(name.clone(), nodes).unwrap());
        let source = Arc::from(format!("{name}.json"));
        (name, SnapshotFile { snapshot, source })
    });
    (meshes(&mesh_of("m", &entries)), snapshots.collect())
}

/// A node: every third is dialled at its internal address, and half of them have a keepalive.
fn node_of(cluster: usize, number: usize) -> Node {
    let address = match number % 3 {
        0 => format!("172.16.{cluster}.{number}"),
        _ => format!("198.51.100.{number}"),
    };
    let line = format!(
        "n{number} pod=10.{cluster}.{number}.0/24 wg=10.10{cluster}.0.{number}/16 \
         internal-ip=172.16.{cluster}.{number}/24 endpoint={address}:51820 \
         clustermesh-endpoint=203.0.113.{number}:51820 granularity=full persistent-keepalive={}",
        25 * (number % 2)
    );
    let mut node = node(&line);
    let mut key = [9; 32];
    key[..2].copy_from_slice(&[u8::try_from(cluster).unwrap(), u8::try_from(number).unwrap()]);
    let key = STANDARD.encode(key);
    node.annotations.insert("kilo.squat.ai/key", key);
    node.position = number - 1;
    node
}

fn with<T>(numbers: [usize; 3], look: impl FnOnce(&Fleet, &Plan, &[Load]) -> T) -> T {
    let (meshes, snapshots) = clusters(numbers);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let loads = loads(&fleet, &plan, &manifest::texts(&plan));
    look(&fleet, &plan, &loads)
}

/// Returns findings, a line each.
fn report(findings: &[Finding]) -> String {
    let report = findings.iter().map(|it| {
        let (rule, cluster) = (it.rule.name(), it.cluster.as_deref().unwrap_or_default());
        format!("{}[{rule}] {cluster}: {}\n", it.severity, it.message)
    });
    report.collect()
}

/// Counting without a text gives the same result as Kilo's handling of the texts.
#[test]
fn a_plan_weighs_as_much_as_its_manifests() {
    with([7, 1, 30], |fleet, plan, loads| {
        let tree = manifest::tree(plan).unwrap();
        for (target, load) in plan.targets.iter().zip(loads) {
            let prefix = format!("{}/", target.cluster);
            let texts: Vec<(Arc<str>, Arc<str>)> = tree
                .iter()
                .filter_map(|(path, text)| {
                    let name = path.strip_prefix(&prefix)?.strip_suffix(".yaml")?;
                    (name != "kustomization").then(|| (Arc::from(name), Arc::clone(text)))
                })
                .collect();
            let files = AppliedFile::read_all(&texts);
            let member = fleet.memberships(&target.cluster).next().unwrap();
            let sizes = load.files.unwrap();
            assert_eq!(sizes.entries, texts.len() + 1);
            let largest = texts.iter().map(|(_, text)| text.len()).max().unwrap();
            assert_eq!(sizes.largest, largest);
            let expected = Load::count(&Model::new(&member.cluster.topology, &files), load.files);
            assert!(0 < expected.peers() && expected.peers() < expected.ranges());
            assert_eq!(*load, expected, "{}", target.cluster);
        }
    });
}

#[test]
fn a_small_mesh_has_nothing_to_tell() {
    with([30, 1, 20], |_, plan, loads| {
        let capacity = Capacity::default();
        assert_eq!(report(&planned(plan, loads, &capacity)), "");
    });
}

#[test]
fn what_is_too_much_is_reported_for_each_target() {
    with([60, 1, 200], |_, plan, loads| {
        let limited = |quantity, warning| {
            let steps = Steps { warning: Some(warning), ..Steps::default() };
            let capacity = Capacity::default().with(quantity, steps);
            report(&planned(plan, loads, &capacity))
        };
        insta::assert_snapshot!(report(&planned(plan, loads, &Capacity::default())), @"
        warning[slow-apply] east: Kilo would need 5.3 s for each change (2.5 µs × 1,457² rules), more than the limit of 5 s
        warning[slow-apply] north: Kilo would need 6.2 s for each change (2.5 µs × 1,575² rules), more than the limit of 5 s
        ");
        insta::assert_snapshot!(limited(Quantity::Routes, 700), @"
        warning[slow-apply] east: Kilo would need 5.3 s for each change (2.5 µs × 1,457² rules), more than the limit of 5 s
        warning[crowded-node] east: the nodes would have 704 routes, more than the limit of 700
        warning[slow-apply] north: Kilo would need 6.2 s for each change (2.5 µs × 1,575² rules), more than the limit of 5 s
        warning[crowded-node] north: the nodes would have 782 routes, more than the limit of 700
        ");
        insta::assert_snapshot!(limited(Quantity::DirectoryEntries, 2), @"
        warning[slow-apply] east: Kilo would need 5.3 s for each change (2.5 µs × 1,457² rules), more than the limit of 5 s
        warning[crowded-folder] east: the folder would have 3 entries, more than the limit of 2
        warning[slow-apply] north: Kilo would need 6.2 s for each change (2.5 µs × 1,575² rules), more than the limit of 5 s
        warning[crowded-folder] north: the folder would have 3 entries, more than the limit of 2
        warning[crowded-folder] west: the folder would have 3 entries, more than the limit of 2
        ");
        insta::assert_snapshot!(limited(Quantity::InventoryBytes, 20_000), @"
        warning[slow-apply] east: Kilo would need 5.3 s for each change (2.5 µs × 1,457² rules), more than the limit of 5 s
        warning[slow-apply] north: Kilo would need 6.2 s for each change (2.5 µs × 1,575² rules), more than the limit of 5 s
        warning[crowded-target] north: would have 260 Peers: 22,100 bytes in a Flux inventory, more than the limit of 20,000
        ");
    });
}
