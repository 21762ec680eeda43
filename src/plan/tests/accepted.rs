//! Ranges that targets accept.

use super::*;
use crate::document::Source;
use crate::policy;

const FULL: &str = "{ mode: FullMesh }";

#[test]
fn a_target_gets_what_lies_wholly_in_its_list() {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16");
    let plan_with = |accepted: &str| {
        let taking = format!("{B}, acceptedNetworks: [{accepted}]");
        report(FULL, &[("u", &fields, NODE_A), ("v", &taking, NODE_B), ("w", C, NODE_C)])
    };
    insta::assert_snapshot!(plan_with("10.1.0.0/16, 10.3.1.0/25, 10.203.0.0/16, 10.101.0.0/17, 10.101.128.0/17"), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
      m--w--c 10.3.1.0/24 10.203.0.1/32
    v:
      m--u--a 10.1.1.0/24 10.101.0.0/16
      m--w--c 10.203.0.1/32
    w:
      m--u--a 10.1.1.0/24 10.201.0.1/32 10.101.0.0/16
      m--v--b 10.2.1.0/24 10.202.0.1/32
    u in v: Unaccepted 10.201.0.1/32
    w in v: Unaccepted 10.3.1.0/24
    ");
    assert!(!plan_with("0.0.0.0/0").contains("Unaccepted"));
    let nothing = plan_with("'::/0'");
    assert!(nothing.contains("v:\nw:\n"), "{nothing}");
}

#[test]
fn the_membership_that_links_the_two_counts() {
    let taking = format!("{B}, acceptedNetworks: [10.1.0.0/16]");
    let (u, v, w) = (("u", A, NODE_A), ("v", B, NODE_B), ("w", C, NODE_C));
    let one = mesh_text("one", FULL, &[u, ("v", &taking, NODE_B)]);
    let two = mesh_text("two", FULL, &[w, v]);
    insta::assert_snapshot!(report_of(&format!("{one}---\n{two}"), &[u, v, w]), @"
    u:
      one--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      one--u--a 10.1.1.0/24
      two--w--c 10.3.1.0/24 10.203.0.1/32
    w:
      two--v--b 10.2.1.0/24 10.202.0.1/32
    u in v: Unaccepted 10.201.0.1/32
    ");
}

#[test]
fn the_policy_and_the_mesh_must_both_take_a_range() {
    let taking = format!("{B}, acceptedNetworks: [10.1.0.0/16, 10.201.0.0/24]");
    let mut meshes = testing::meshes(&mesh_text("m", FULL, &[("u", A, ""), ("v", &taking, "")]));
    let text = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedNetworks: [10.1.0.0/16, 10.7.0.0/16] }\n";
    let source = Source::parse("policies/v.yaml", text).unwrap();
    let policy = policy::read(&"v".parse().unwrap(), &source).unwrap();
    policy::apply(&[policy], &mut meshes, true);
    let snapshots = snapshots(&[("u", A, NODE_A), ("v", B, NODE_B)]);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    insta::assert_snapshot!(planned(&fleet), @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a 10.1.1.0/24
    u in v: Unaccepted 10.201.0.1/32
    ");
}

#[test]
fn services_can_be_taken_without_pods() {
    let fields = format!("{A}, serviceCIDR: 10.101.0.0/16, persistentKeepalive: 25");
    let nodes = "
a1 pod=10.1.1.0/24 wg=10.201.0.1/16 key=A
a2 pod=10.1.2.0/24 wg=10.201.0.2/16 key=B external=198.18.113.1
a3 pod=10.1.3.0/24 wg=10.201.0.3/16 key=D external=198.18.113.3";
    let taking = format!("{B}, acceptedNetworks: [10.101.0.0/16]");
    let node = "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=C external=198.18.113.2";
    let report = report(FULL, &[("u", &fields, nodes), ("v", &taking, node)]);
    insta::assert_snapshot!(report, @"
    u:
      m--v--b 10.2.1.0/24 10.202.0.1/32
    v:
      m--u--a2 10.101.0.0/16
    u in v: Unaccepted 10.1.1.0/24 10.1.2.0/24 10.1.3.0/24
    u in v: Unaccepted 10.201.0.1/32 10.201.0.2/32 10.201.0.3/32
    ");
}

#[test]
fn targets_that_take_the_same_share_a_block() {
    let taking = |fields: &str| format!("{fields}, acceptedNetworks: [10.1.0.0/16]");
    let (b, c) = (taking(B), taking(C));
    let clusters = [("u", A, NODE_A), ("v", b.as_str(), NODE_B), ("w", c.as_str(), NODE_C)];
    let meshes = testing::meshes(&mesh_text("m", FULL, &clusters));
    let snapshots = snapshots(&clusters);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let of_u = plan.peer_sets.iter().filter(|it| it.source.as_str() == "u");
    assert_eq!(of_u.count(), 1);
}
