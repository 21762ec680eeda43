//! The Peers of each target, and what is withheld from it: whole meshes, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::*;
use crate::fleet::SnapshotFile;
use crate::testing;

/// A cluster: its name, the fields of its entry, its nodes a line each.
type TestCluster<'a> = (&'a str, &'a str, &'a str);

const A: &str = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24";
const B: &str = "podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24";
const C: &str = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.203.0.0/24";

const NODE_A: &str = "a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1";
const NODE_B: &str = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.113.2";
const NODE_C: &str = "c pod=10.3.1.0/24 wg=10.203.0.1/16 key=C external=198.18.113.3";

/// Returns the mesh of some clusters under a topology.
fn mesh_text(name: &str, topology: &str, clusters: &[TestCluster]) -> String {
    let mut yaml = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: {name} }}\nspec:\n  topology: {topology}\n  clusters:\n"
    );
    for (name, fields, _) in clusters {
        let _ = writeln!(yaml, "  - {{ name: {name}, {fields} }}");
    }
    yaml
}

fn report(topology: &str, clusters: &[TestCluster]) -> String {
    report_of(&mesh_text("m", topology, clusters), clusters)
}

/// Returns what each target gets, and what is cut.
fn report_of(meshes: &str, clusters: &[TestCluster]) -> String {
    let (meshes, snapshots) = (testing::meshes(meshes), snapshots(clusters));
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    planned(&fleet)
}

/// Returns the snapshots of clusters.
fn snapshots(clusters: &[TestCluster]) -> BTreeMap<ClusterName, SnapshotFile> {
    testing::snapshots(clusters.iter().map(|(name, _, nodes)| (*name, *nodes)))
}

/// Returns what each target of a fleet gets, and what is cut.
fn planned(fleet: &Fleet) -> String {
    let plan = plan(fleet).unwrap();
    let mut text = String::new();
    for target in &plan.targets {
        let _ = writeln!(text, "{}:", target.cluster);
        for peer in plan.sets_of(target).flat_map(|it| &it.peers) {
            let cidrs: Vec<String> = peer.allowed_ips.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "  {} {}", peer.name, cidrs.join(" "));
        }
    }
    for Withheld { target, source, reason } in &plan.withheld {
        let reason = shortened(reason);
        let _ = writeln!(text, "{source} in {target}: {reason}");
    }
    text
}

/// Returns a reason in short.
fn shortened(what: &TargetReason) -> String {
    let ranges = |ranges: &WithheldRanges| {
        let cidrs: Vec<String> = ranges.cidrs.iter().map(ToString::to_string).collect();
        cidrs.join(" ")
    };
    match what {
        TargetReason::OwnKey { node, own, .. } => format!("OwnKey {node} {own}"),
        TargetReason::SharedKey { node, keeper, keeper_node, .. } => {
            format!("SharedKey {node} {keeper}/{keeper_node}")
        }
        TargetReason::LoopingPeer(it) => {
            let (node, address, range) = (&it.node, it.endpoint.address, it.range);
            format!("LoopingPeer {node} {address} in {range} of {}", it.owner)
        }
        TargetReason::LoopingRanges(it) => {
            let (ranges, node, address) = (ranges(&it.ranges), &it.node, it.endpoint.address);
            let (cluster, endpoints) = (&it.cluster, it.endpoints);
            format!("LoopingRanges {ranges}: {address} of {cluster}/{node} x{endpoints}")
        }
        TargetReason::Captured(it) => {
            let (ranges, own, node) = (ranges(&it.ranges), it.own, &it.node);
            format!("Captured {ranges}: {own:?} of {node} x{} {:?}", it.nodes, it.outcome)
        }
        TargetReason::Local(it) => format!("Local {}: {}", ranges(&it.ranges), it.network),
        TargetReason::Unaccepted { ranges: it, .. } => format!("Unaccepted {}", ranges(it)),
        TargetReason::UnknownAnchor(it) => {
            format!("UnknownAnchor {} {:?}", it.node, it.problem)
        }
        TargetReason::SilentAnchor(it) => {
            let cidrs: Vec<String> = it.ranges.iter().map(ToString::to_string).collect();
            format!("SilentAnchor {} by {}", cidrs.join(" "), it.node)
        }
        TargetReason::PerNodePods(it) => {
            let cidrs: Vec<String> = it.ranges.iter().map(ToString::to_string).collect();
            format!("PerNodePods {}", cidrs.join(" "))
        }
        TargetReason::DistantAnchor(it) => {
            let cidrs: Vec<String> = it.ranges.iter().map(ToString::to_string).collect();
            format!(
                "DistantAnchor {} {} of {}, by {}",
                cidrs.join(" "),
                it.node,
                it.leader,
                it.carrier
            )
        }
        TargetReason::FewerAnchors(it) => {
            let FewerAnchors { range, wanted, got, is_narrow, .. } = it;
            format!("FewerAnchors {range} {got}/{wanted} narrow={is_narrow}")
        }
        other => format!("{other:?}"),
    }
}

mod accepted;
mod advertise;
mod anchors;
mod captured;
mod loops;
mod states;

#[test]
fn everyone_sees_everyone_in_a_full_mesh() {
    insta::assert_snapshot!(report("{ mode: FullMesh }", &[("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C)]), @r"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--v--b 10.2.1.0/24 10.202.0.1/32
    ");
}

#[test]
fn spokes_see_hubs_only() {
    insta::assert_snapshot!(report("{ mode: Hub, hubs: [w] }", &[("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C)]), @r"
    u:
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--v--b 10.2.1.0/24 10.202.0.1/32
    ");
}

#[test]
fn links_are_symmetric() {
    let report = report(
        "{ mode: Links, links: [[v, u], [w, v]] }",
        &[("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C)],
    );
    assert!(report.starts_with("u:\n  m--v--b"));
    assert!(report.ends_with("w:\n  m--v--b 10.2.1.0/24 10.202.0.1/32\n"));
}

#[test]
fn the_first_that_can_be_dialled_carries_what_is_everybody_s() {
    let fields = format!(
        "{A}, serviceCIDR: 10.101.0.0/16, additionalCIDRs: [10.111.0.0/16], persistentKeepalive: 25"
    );
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.1";
    let report = report("{ mode: FullMesh }", &[("u", &fields, nodes), ("v", B, NODE_B)]);
    assert!(report.contains("m--u--a1 10.1.1.0/24 10.201.0.1/32\n"));
    assert!(report.contains("m--u--a2 10.1.2.0/24 10.201.0.2/32 10.101.0.0/16 10.111.0.0/16\n"));
}

#[test]
fn nobody_to_dial_means_nobody_to_carry() {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, persistentKeepalive: 25");
    let node = "a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A";
    insta::assert_snapshot!(report("{ mode: FullMesh }", &[("u", &fields, node), ("v", B, NODE_B)]), @r"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    u in v: NoAnchor { ranges: [Cidr(10.101.0.0/16)] }
    ");
}

#[test]
fn two_that_nobody_can_dial_get_nothing_of_each_other() {
    let (a, b) = (format!("{A}, persistentKeepalive: 25"), format!("{B}, persistentKeepalive: 25"));
    let (na, nb) =
        ("a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A", "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B");
    insta::assert_snapshot!(report("{ mode: FullMesh }", &[("u", &a, na), ("v", &b, nb), ("w", C, NODE_C)]), @"
    u:
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v in u: NoInitiator { peers: 1 }
    u in v: NoInitiator { peers: 1 }
    ");
}

#[test]
fn a_copied_key_stays_with_the_cluster_that_ranks_first_and_never_with_a_target_of_its_own() {
    let copy = "c pod=10.3.1.0/24 wg=10.203.0.1/16 key=A external=198.18.113.3";
    let clusters = [("u", A, NODE_A), ("v", B, NODE_B), ("w", C, copy)];
    insta::assert_snapshot!(report("{ mode: FullMesh }", &clusters), @r"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.201.0.1/32
    w:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    w in u: OwnKey c a
    w in v: SharedKey c u/a
    u in w: OwnKey a c
    ");
    let hub = report("{ mode: Hub, hubs: [w] }", &clusters);
    assert!(hub.contains("u in w: OwnKey a c"), "{hub}");
    assert!(hub.contains("w in u: OwnKey c a"), "{hub}");
}

#[test]
fn a_target_gets_the_family_that_its_kilo_routes() {
    let dual = "podCIDRs: [10.1.0.0/16, 'fd00:1::/48'], wireguardCIDR: 10.201.0.0/24";
    let six = "podCIDRs: ['fd00:2::/48'], wireguardCIDR: 10.202.0.0/24";
    let nodes = "a pod=10.1.1.0/24 pod=fd00:1:0:1::/64 wg=10.201.0.1/16 key=A external=198.18.113.1 internal-ip=192.168.0.1/24 granularity=full";
    let six_nodes = "b pod=fd00:2:0:1::/64 wg=10.202.0.1/16 key=B external=198.18.113.2 internal-ip=fd01::1/64 granularity=full";
    insta::assert_snapshot!(report("{ mode: FullMesh }", &[("u", dual, nodes), ("v", six, six_nodes)]), @r"
    u:
      m--v--b 10.202.0.1/32
    v:
      m--u--a fd00:1:0:1::/64
    v in u: Family { family: V6, ranges: 1 }
    u in v: Family { family: V4, ranges: 2 }
    ");
}

/// The agents of a cluster route one family, whether other clusters get their nodes or not.
#[test]
fn nodes_that_are_left_out_also_show_which_family_their_kilo_routes() {
    let nodes = |rest: &str| {
        let node = |name: &str, n: u8, key: &str| {
            format!(
                "{name} pod=10.1.{n}.0/24 wg=10.201.0.{n}/16 key={key} external=198.18.113.{n} \
                 endpoint=198.18.113.{n}:1 internal-ip=192.168.0.{n}/24 granularity=full {rest}\n"
            )
        };
        node("a1", 1, "A") + &node("a2", 2, "C")
    };
    let dual = "podCIDRs: ['fd00:1::/48', 10.1.0.0/16], wireguardCIDR: 10.201.0.0/24";
    let selector = "nodeSelector: { matchLabels: { pick: 'yes' } }";
    let selecting = format!("{dual}, {selector}");
    let undeclared = dual.replace("10.201.0.0/24", "10.209.0.0/24");
    let six = "s pod=fd00:1:0:1::/64 wg=10.201.0.9/16 key=D external=198.18.113.9 endpoint=198.18.113.9:1 internal-ip=fd01::9/64 granularity=full label=yes";
    for (fields, nodes) in [
        (selecting.as_str(), nodes("")),
        (undeclared.as_str(), nodes("")),
        (selecting.as_str(), nodes("") + six),
        (dual, nodes("stale")),
    ] {
        let both = "podCIDRs: ['fd00:2::/48', 10.2.0.0/16], wireguardCIDR: 10.202.0.0/24";
        let node_b = format!("{NODE_B} pod=fd00:2:0:1::/64");
        let report = report("{ mode: FullMesh }", &[("u", fields, &nodes), ("v", both, &node_b)]);
        let given = "u:\n  m--v--b 10.2.1.0/24 10.202.0.1/32\n";
        assert!(report.starts_with(given), "{fields} {nodes}{report}");
    }
}

#[test]
fn a_lie_about_the_family_of_an_address_is_not_believed() {
    let liar = format!("{NODE_A} internal-ip=fd01::1/64 granularity=full");
    let report = report("{ mode: FullMesh }", &[("u", A, &liar), ("v", B, NODE_B)]);
    assert!(report.starts_with("u:\n  m--v--b 10.2.1.0/24 10.202.0.1/32\n"), "{report}");
}

#[test]
fn a_range_that_a_node_owns_as_it_is_is_not_carried_twice() {
    let flat = "allowedNetworks: [10.1.1.0/24, 10.1.2.0/24, 10.1.3.0/24, 10.201.0.0/24]";
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=C external=198.18.113.1
    ";
    let report = report("{ mode: FullMesh }", &[("u", flat, nodes), ("v", B, NODE_B)]);
    assert!(report.contains("m--u--a1 10.1.1.0/24 10.201.0.1/32 10.1.3.0/24\n"), "{report}");
}

#[test]
fn a_cluster_of_two_meshes_sees_both() {
    let (u, v, w) = (("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C));
    let one = mesh_text("one", "{ mode: FullMesh }", &[u, v]);
    let two = mesh_text("two", "{ mode: FullMesh }", &[w, v]);
    insta::assert_snapshot!(report_of(&format!("{one}---\n{two}"), &[u, v, w]), @r"
    u:
      one--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      one--u--a 10.1.1.0/24 10.201.0.1/32
      two--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      two--v--b 10.2.1.0/24 10.202.0.1/32
    ");
}

#[test]
fn alike_targets_share_a_block() {
    let clusters = [("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C)];
    let meshes = testing::meshes(&mesh_text("m", "{ mode: FullMesh }", &clusters));
    let snapshots = snapshots(&clusters);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    assert_eq!(plan.peer_sets.len(), 3);
    assert_eq!(plan.targets.iter().map(|it| it.peer_sets.len()).sum::<usize>(), 6);
}
