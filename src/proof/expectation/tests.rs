//! Expectations about clusters that are right, and about some that are not.

use std::fmt::Write as _;

use super::*;
use crate::diagnostic::Finding;
use crate::document::Source;
use crate::expectations;
use crate::mesh::KnownGroups;
use crate::proof::messages::expectation as words;
use crate::testing::lab::{
    EAST, EAST_NODES, EAST_OF_WEST, Lab, WEST, WEST_NODES, WEST_OF_EAST, lab,
};

const NORTH: &str = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.103.0.0/24";

const NORTH_NODES: &str = "
o1 pod=10.3.1.0/24 external=198.18.0.31 endpoint=198.18.0.31:51820 internal-ip=192.168.3.1/24 key=GRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRk= wg=10.103.0.1/24 label=db
o2 pod=10.3.2.0/24 internal-ip=192.168.3.2/24 label=db stale
";

/// Prints the results of expectations.
fn report(lab: &Lab, spec: &str) -> String {
    let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";
    let source = Source::parse("expectations.yaml", format!("{head}{spec}")).unwrap();
    let expectations = expectations::read(&source, &KnownGroups::default()).unwrap();
    lab.show(|fabric, meshes| {
        let reach = Reach::new(fabric, u64::MAX);
        let mut text = String::new();
        for check in check(&reach, &expectations.expectations, &|_| false) {
            let name = check.expectation.name.as_deref().unwrap_or("it");
            let verdict = if check.holds() { "holds" } else { "fails" };
            let Check { pairs, broken, .. } = check;
            writeln!(text, "{name} {verdict}: {broken} of {pairs} pairs break it").unwrap();
            for report in words::findings(fabric, meshes, &check) {
                tell(&mut text, &report);
            }
        }
        text
    })
}

fn tell(text: &mut String, report: &Finding) {
    writeln!(text, "  {}", report.message).unwrap();
    for label in &report.labels {
        let place = &label.place;
        writeln!(text, "    {}#{} {}", place.source, place.pointer, label.text).unwrap();
    }
    if let Some(help) = &report.help {
        writeln!(text, "    help: {help}").unwrap();
    }
}

/// `west` in the middle, `east` and `north` beside it.
fn line() -> Lab {
    Lab::linked(
        "{ mode: Links, links: [[east, west], [west, north]] }",
        &[("east", EAST, EAST_NODES), ("west", WEST, WEST_NODES), ("north", NORTH, NORTH_NODES)],
    )
}

#[test]
fn what_links_promise_can_be_expected() {
    insta::assert_snapshot!(report(&line(), "
- { name: pods, from: { cluster: east }, to: { cluster: west }, expect: Reach }
- { name: services, from: { cluster: west }, to: { cluster: east }, class: Service, expect: Reach }
- { name: nodes, from: { cluster: west }, to: { cluster: east }, class: Node, expect: Reach }
- { name: a service, from: { cluster: west }, to: { addresses: [10.11.0.10] }, expect: Reach }
- { name: apart, from: { cluster: east }, to: { cluster: north }, expect: Deny }
- { name: anyone, from: { nodeSelector: {} }, to: { addresses: [10.3.1.5] }, expect: Reach }
"), @"
    pods holds: 0 of 4 pairs break it
    services holds: 0 of 2 pairs break it
    nodes holds: 0 of 4 pairs break it
    a service holds: 0 of 2 pairs break it
    apart holds: 0 of 4 pairs break it
    anyone fails: 2 of 4 pairs break it
      expectation `anyone`: expected Reach, but 10.1.1.0 (a pod on east/n1) does not reach 10.3.1.5 (a pod on north/o1) (2 of 4 pairs): no Peer of east contains 10.3.1.5
        expectations.yaml#/spec/5/expect expected to reach
        mesh.yaml#/spec/topology/links does not link the two clusters
        help: add `[east, north]` to `links` of the mesh
    ");
}

#[test]
fn what_is_let_through_fails_a_denial() {
    insta::assert_snapshot!(report(&line(), "
- { name: no shop at the ledger, from: { cluster: east }, to: { addresses: [10.2.1.16/28] }, expect: Deny }
- { from: { addresses: [10.1.2.7] }, to: { cluster: west }, expect: Deny }
"), @"
no shop at the ledger fails: 2 of 2 pairs break it
  expectation `no shop at the ledger`: expected Deny, but 10.1.1.0 (a pod on east/n1) reaches 10.2.1.16 (a pod on west/m1) (2 of 2 pairs)
    expectations.yaml#/spec/0/expect expected not to reach
    east/m--west.yaml#/spec/allowedIPs/0 sent by this range
    west/m--east.yaml#/spec/allowedIPs/0 accepted by this range
    help: remove the link, the node or the range from the mesh: Kilo has no firewall, and clustermesh does not read NetworkPolicies
it fails: 2 of 2 pairs break it
  expectation: expected Deny, but 10.1.2.7 (a pod on east/n2) reaches 10.2.1.0 (a pod on west/m1) (2 of 2 pairs)
    expectations.yaml#/spec/1/expect expected not to reach
    east/m--west.yaml#/spec/allowedIPs/0 sent by this range
    west/m--east.yaml#/spec/allowedIPs/0 accepted by this range
    help: remove the link, the node or the range from the mesh: Kilo has no firewall, and clustermesh does not read NetworkPolicies
");
}

#[test]
fn addresses_are_looked_at_one_by_one() {
    let lab = lab().edit(EAST_OF_WEST, "10.2.1.0/24", "10.2.1.0/25");
    insta::assert_snapshot!(report(&lab, "
- { name: all, from: { cluster: east }, to: { addresses: [10.2.1.0/24] }, expect: Reach }
- { name: lower, from: { cluster: east }, to: { addresses: [10.2.1.0/26, 10.2.1.7] }, expect: Reach }
- { name: across, from: { cluster: east }, to: { addresses: [10.2.1.64/26, 10.2.1.128/26] }, expect: Reach }
- { name: upper, from: { cluster: east }, to: { addresses: [10.2.1.128/25] }, expect: Deny }
"), @"
all fails: 2 of 2 pairs break it
  expectation `all`: expected Reach, but 10.1.1.0 (a pod on east/n1) does not reach 10.2.1.128 (a pod on west/m1) (2 of 2 pairs): no Peer of east contains 10.2.1.128: it is missing from the Peer m--west--m1 of west/m1
    expectations.yaml#/spec/0/expect expected to reach
    east/m--west.yaml#/spec/allowedIPs lacks the address
    help: run `clustermesh render` and apply the result; if nothing changes, `clustermesh validate` lists the nodes and ranges that are left out
lower holds: 0 of 2 pairs break it
across fails: 2 of 4 pairs break it
  expectation `across`: expected Reach, but 10.1.1.0 (a pod on east/n1) does not reach 10.2.1.128 (a pod on west/m1) (2 of 4 pairs): no Peer of east contains 10.2.1.128: it is missing from the Peer m--west--m1 of west/m1
    expectations.yaml#/spec/2/expect expected to reach
    east/m--west.yaml#/spec/allowedIPs lacks the address
    help: run `clustermesh render` and apply the result; if nothing changes, `clustermesh validate` lists the nodes and ranges that are left out
upper holds: 0 of 2 pairs break it
");
}

#[test]
fn a_node_that_kilo_does_not_count_is_not_reached() {
    insta::assert_snapshot!(report(&line(), "
- { name: db, from: { cluster: west }, to: { nodeSelector: { matchLabels: { pick: db } } }, expect: Reach }
- { name: o2, from: { addresses: [10.3.2.0/24] }, to: { cluster: west }, expect: Reach }
- { name: still, from: { addresses: [10.3.2.0/24] }, to: { cluster: west }, expect: Deny }
"), @"
db holds: 0 of 4 pairs break it
  expectation `db`: expected Reach, but 10.2.1.0 (a pod on west/m1) does not reach 10.3.2.0 (a pod on north/o2) (2 of 4 pairs): no Peer of west contains 10.3.2.0
    expectations.yaml#/spec/0/expect expected to reach
    help: run `clustermesh render` and apply the result; if nothing changes, `clustermesh validate` lists the nodes and ranges that are left out
o2 fails: 0 of 2 pairs break it
  expectation `o2`: expected Reach, but 10.3.2.0 (a pod on north/o2) does not reach 10.2.1.0 (a pod on west/m1) (2 of 2 pairs): Kilo ignores north/o2: its agent stopped sending heartbeats, it has no key, it has no endpoint
    expectations.yaml#/spec/1/expect expected to reach
    help: check Kilo's agent on this node, or take a new snapshot
still holds: 0 of 2 pairs break it
");
}

#[test]
fn what_is_about_nothing_fails() {
    insta::assert_snapshot!(report(&line(), "
- { from: { cluster: eats }, to: { cluster: west }, expect: Deny }
- { from: { cluster: east, nodeSelector: { matchLabels: { pick: db } } }, to: { cluster: west }, expect: Deny }
- { from: { cluster: east }, to: { addresses: [10.9.9.9, 10.2.1.1] }, expect: Reach }
- { from: { cluster: east }, to: { cluster: west, addresses: [10.3.1.0/24] }, expect: Deny }
- { from: { cluster: east }, to: { addresses: [10.2.99.0/24] }, expect: Deny }
- { from: { addresses: [10.11.0.1] }, to: { cluster: west }, expect: Deny }
- { from: { cluster: east }, to: { cluster: east }, expect: Deny }
- { from: { cluster: west }, to: { cluster: north }, class: Service, expect: Deny }
"), @"
it fails: 0 of 0 pairs break it
  expectation: no mesh has a cluster `eats`
    expectations.yaml#/spec/0/from/cluster 
    help: did you mean `east`?
it fails: 0 of 0 pairs break it
  expectation: `from` selects nothing: no matching pod in east
    expectations.yaml#/spec/1/from selects nothing
    help: correct the selection: an expectation that matches nothing checks nothing
it fails: 0 of 2 pairs break it
  expectation: nothing selected has an address in 10.9.9.9
    expectations.yaml#/spec/2/to/addresses/0 matches no selected node
    help: correct the selection: an expectation that matches nothing checks nothing
it fails: 0 of 0 pairs break it
  expectation: `to` selects nothing in 10.3.1.0/24, which belongs to a pod on north/o1
    expectations.yaml#/spec/3/to/addresses/0 matches no selected node
    help: correct the selection: an expectation that matches nothing checks nothing
it fails: 0 of 0 pairs break it
  expectation: `to` selects nothing in 10.2.99.0/24, which belongs to west
    expectations.yaml#/spec/4/to/addresses/0 matches no selected node
    help: correct the selection: an expectation that matches nothing checks nothing
it fails: 0 of 0 pairs break it
  expectation: `from` selects nothing in 10.11.0.1, which belongs to a service of east
    expectations.yaml#/spec/5/from/addresses/0 matches no selected node
    help: correct the selection: an expectation that matches nothing checks nothing
it fails: 0 of 0 pairs break it
  expectation: both sides are in east
    expectations.yaml#/spec/6 both sides in one cluster
    help: choose two clusters: clustermesh does not check traffic within a cluster
it fails: 0 of 0 pairs break it
  expectation: `to` selects nothing: no matching service in north
    expectations.yaml#/spec/7/to selects nothing
    help: correct the selection: an expectation that matches nothing checks nothing
");
}

#[test]
fn many_expectations_follow_no_more_packets_than_one() {
    let followed = |count: usize| {
        let spec = "- { from: { cluster: east }, to: { cluster: west }, expect: Reach }\n";
        let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";
        let text = format!("{head}{}", spec.repeat(count));
        let source = Source::parse("expectations.yaml", text).unwrap();
        let expectations = expectations::read(&source, &KnownGroups::default()).unwrap();
        line().show(|fabric, _| {
            let reach = Reach::new(fabric, u64::MAX);
            assert!(check(&reach, &expectations.expectations, &|_| false).iter().all(Check::holds));
            fabric.followed().to_string()
        })
    };
    assert_eq!(followed(100), followed(1));
}

/// `west` has no range around the pods of `n1` and takes the WireGuard address of `n1`, which a network plugin may give to
/// packets of its pods.
#[test]
fn a_denial_of_pods_covers_the_addresses_of_their_nodes() {
    let denial = "
- { name: pods, from: { cluster: east, nodeSelector: {} }, class: Pod, to: { cluster: west }, expect: Deny }
";
    let without_pods = |east: &str| {
        let lab = Lab::new(&[("east", east, EAST_NODES), ("west", WEST, WEST_NODES)]);
        let lab = lab.edit(WEST_OF_EAST, "  - \"10.1.1.0/24\"\n", "");
        report(&lab.edit(WEST_OF_EAST, "  - \"10.1.2.0/24\"\n", ""), denial)
    };
    insta::assert_snapshot!(without_pods(EAST), @"
    pods fails: 4 of 4 pairs break it
      expectation `pods`: expected Deny, but 10.101.0.1 (east/n1 in the Kilo subnet) reaches 10.2.1.0 (a pod on west/m1) (4 of 4 pairs)
        expectations.yaml#/spec/0/expect expected not to reach
        east/m--west.yaml#/spec/allowedIPs/0 sent by this range
        west/m--east.yaml#/spec/allowedIPs/0 accepted by this range
        help: remove the link, the node or the range from the mesh: Kilo has no firewall, and clustermesh does not read NetworkPolicies
    ");
    let kept = without_pods(&format!("{EAST}, podSource: Kept"));
    assert_eq!(kept, "pods holds: 0 of 4 pairs break it\n");
}
