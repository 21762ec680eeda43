use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::config::Limits;
use crate::config::capacity::{Quantity, Steps};
use crate::id::Numbered;
use crate::kilo::peer::Peer;
use crate::manifest::PeerSetTexts;
use crate::name::{ClusterName, MeshName, PeerName, PeerSetName};
use crate::plan::{PeerSet, Target};
use crate::testing::key;
use crate::tree_diff::ForeignFile;

/// A plan that gives `east` and `west` one Peer with this many ranges.
fn plan(ranges: u32) -> Plan {
    let (mesh, source): (MeshName, ClusterName) = ("m".parse().unwrap(), "north".parse().unwrap());
    let range = |number: u32| {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + number);
        crate::net::Cidr::host(address.into())
    };
    let peer = Peer {
        name: PeerName::new(&mesh, &source, &"n1".parse().unwrap()),
        mesh: mesh.clone(),
        cluster: source.clone(),
        key: key("A").parse().unwrap(),
        allowed_ips: (0..ranges).map(range).collect(),
        endpoint: None,
        keepalive: None,
    };
    let peer_sets = Numbered::new(vec![PeerSet {
        name: PeerSetName::new(&mesh, &source),
        mesh,
        source,
        peers: vec![peer],
        shared: Vec::new(),
    }]);
    let target = |name: &str| Target {
        cluster: name.parse().unwrap(),
        peer_sets: peer_sets.ids().collect(),
        seen: BTreeSet::new(),
        without: BTreeSet::new(),
        absent: BTreeMap::new(),
        parted: BTreeSet::new(),
    };
    Plan { targets: vec![target("east"), target("west")], peer_sets, ..Plan::default() }
}

/// The text of a set of Peers, of this size.
fn texts(bytes: usize) -> PeerSetTexts {
    PeerSetTexts::new(vec!["x".repeat(bytes).into()])
}

fn report(plan: &Plan, bytes: usize, limits: &Limits) -> Vec<String> {
    let findings = planned(plan, &texts(bytes), limits);
    let report =
        findings.iter().map(|it| format!("{} {}: {}", it.severity, it.rule.name(), it.message));
    report.collect()
}

#[test]
fn files_are_held_against_their_limit_and_github_s() {
    let limits = Limits::default();
    let mebibyte = 1 << 20;
    assert_eq!(report(&plan(1), mebibyte, &limits), [""; 0]);
    insta::assert_snapshot!(report(&plan(1), mebibyte + 1, &limits).join("\n"), @"warning large-file: m--north.yaml would have 1048577 bytes, more than 1048576 (targets east, west)");
    let severity =
        |bytes: usize, limits: &Limits| planned(&plan(1), &texts(bytes), limits)[0].severity;
    assert_eq!(severity(100 * mebibyte, &limits), Severity::Warning);
    assert_eq!(severity(100 * mebibyte + 1, &limits), Severity::Error);
    let steps = Steps { warning: Some(200 << 20), ..Steps::default() };
    let elsewhere = Limits { capacity: limits.capacity.with(Quantity::FileBytes, steps), ..limits };
    assert_eq!(report(&plan(1), 100 * mebibyte + 1, &elsewhere), [""; 0]);
}

#[test]
fn peers_are_held_against_their_limit_and_etcd_s() {
    let limits = Limits::default();
    assert_eq!(report(&plan(10_000), 0, &limits), [""; 0]);
    // Not by its spec alone, but by the whole object, as `kubectl apply` keeps it.
    let is_fine = |ranges: &u32| report(&plan(*ranges), 0, &limits).is_empty();
    assert!(is_fine(&15_955) && !is_fine(&15_956));
    insta::assert_snapshot!(report(&plan(20_000), 0, &limits).join("\n"), @"warning large-peer: m--north--n1 would have 329187 bytes in the annotation of `kubectl apply`, more than 262144, with 20000 ranges (targets east, west)");
    let severity = |ranges: u32| planned(&plan(ranges), &texts(0), &limits)[0].severity;
    // `tests/cluster` stores the one and not many more.
    assert_eq!(severity(92_588), Severity::Warning);
    assert_eq!(severity(92_589), Severity::Error);
}

fn foreign(path: &str, kind: &'static str) -> ForeignFile {
    ForeignFile { path: path.to_owned(), kind }
}

#[test]
fn what_is_not_ours_matters_as_much_as_it_harms() {
    let tree = OnDiskTree {
        root: "rendered".to_owned(),
        same: ["east/kustomization.yaml".to_owned()].into(),
        ..OnDiskTree::default()
    };
    let rule = |path: &str, kind: &'static str| {
        let tree = OnDiskTree { foreign: vec![foreign(path, kind)], ..tree.clone() };
        let findings = super::on_disk(&tree, &plan(1), Fate::Replaced);
        (findings[0].rule.name(), findings[0].severity)
    };
    let warning = ("stray-manifest", Severity::Warning);
    for path in ["a.yaml", "east/a.YML", "east/a.json", "north/a.jsonnet"] {
        assert_eq!(rule(path, "a file"), warning, "{path}");
    }
    assert_eq!(rule("east/deep", "a folder"), warning);
    assert_eq!(rule("east/a.yaml", "a symbolic link"), warning);
    let notice = ("foreign-file", Severity::Notice);
    for path in ["README.md", "east/.gitkeep", "east/.a.yaml", "east/yaml", "north/Kustomization"] {
        assert_eq!(rule(path, "a file"), notice, "{path}");
    }
    assert_eq!(rule(".git", "a folder"), notice);
    let error = ("override-file", Severity::Error);
    for path in [
        "east/.argocd-source.yaml",
        "east/.argocd-source-east.yaml",
        "east/deep/.sourceignore",
        ".sourceignore",
    ] {
        assert_eq!(rule(path, "a file"), error, "{path}");
        assert_eq!(rule(path, "a symbolic link"), error, "{path}");
        assert_eq!(rule(path, "a folder"), notice, "{path}");
    }
    for path in ["east/.argocd-source.yml", "east/.sourceignore~", ".argocd-sources.yaml"] {
        assert_eq!(rule(path, "a file"), notice, "{path}");
    }
    let error = ("rival-kustomization", Severity::Error);
    for path in ["east/kustomization.yml", "east/Kustomization"] {
        assert_eq!(rule(path, "a file"), error, "{path}");
    }
}
