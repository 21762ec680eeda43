//! Notices of what any change of Peers costs.

use super::*;
use crate::rules::tests::report;

const EAST: &str = "
n1 pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full force-endpoint=198.18.0.1:51820
n2 pod=10.1.2.0/24 wg=10.101.0.2/24 key=B granularity=full force-endpoint=198.18.0.2:51820
";

const WEST: &str = "
m1 pod=10.2.1.0/24 wg=10.102.0.1/24 key=C granularity=location location=x internal-ip=10.9.0.1/24 force-endpoint=198.18.0.3:51820 leader=
m2 pod=10.2.2.0/24 key=D granularity=location location=x internal-ip=10.9.0.2/24 force-endpoint=198.18.0.4:51820
";

/// A node behind NAT.
const NORTH: &str = "
p1 pod=10.3.1.0/24 wg=10.103.0.1/24 key=E granularity=full endpoint=192.168.0.1:51820 persistent-keepalive=25
";

fn sending(nodes: &str) -> String {
    let nodes = nodes.lines().filter(|it| !it.is_empty());
    let nodes = nodes.map(|it| format!("{it} persistent-keepalive=25"));
    nodes.collect::<Vec<_>>().join("\n")
}

fn costs(clusters: &[(&str, &str, &str)]) -> String {
    report(|fleet| findings(fleet, &Config::default()), clusters)
}

#[test]
fn all_silent_leaders_are_one_finding() {
    insta::assert_snapshot!(costs(&[("east", "", EAST), ("west", "", WEST)]), @"
    notice[pause-after-change] : 3 nodes have no annotation `kilo.squat.ai/persistent-keepalive`, so requests through them may get no answer for 15 s whenever Peers change: east (n1, n2), west (m1)
      help: run `kubectl --context east annotate node n1 n2 --overwrite kilo.squat.ai/persistent-keepalive=25`, `kubectl --context west annotate node --all --overwrite kilo.squat.ai/persistent-keepalive=25`, and then `clustermesh snapshot east west`
    ");
    // A node that does not lead has no tunnel.
    let leading = WEST.replace("leader=", "leader= persistent-keepalive=25");
    assert_eq!(costs(&[("east", "", &sending(EAST)), ("west", "", &leading)]), "");
    // The annotation comes before a cluster joins.
    let joining = costs(&[("east", "", &sending(EAST)), ("west", "state: Joining", WEST)]);
    assert!(joining.contains("1 node has no annotation"), "{joining}");
}

#[test]
fn nodes_behind_nat_may_be_forgotten() {
    let north = ("north", "persistentKeepalive: 25", NORTH);
    let west = sending(WEST);
    let of = |east: &str| costs(&[("east", "", east), ("west", "", &west), north]);
    insta::assert_snapshot!(of(&sending(EAST)), @"
    notice[learned-endpoint] : west may forget the address of north/p1, which is behind NAT, when several Peers change together: unreachable for 15 to 205 s
      help: if the NAT has a fixed address and port, run `kubectl --context north annotate node p1 --overwrite kilo.squat.ai/force-endpoint=ADDRESS:PORT` with its address and port; otherwise run `clustermesh diff` before each change, which shows when to change one cluster after another, and north last
    ");
    let one = sending(EAST).replacen(" persistent-keepalive=25", "", 1);
    let both = "east and west may forget the address of north/p1";
    assert!(of(&one).contains(both), "{}", of(&one));
    // A second node that others can dial can be annotated.
    let only_east = costs(&[("east", "", &one), north]);
    let remedy = "otherwise annotate at least two public nodes of east with `kilo.squat.ai/persistent-keepalive=25`";
    assert!(only_east.contains(remedy), "{only_east}");
    // The address of the NAT is known.
    let fixed = NORTH.replace("endpoint=192.168.0.1", "force-endpoint=203.0.113.1");
    let north = ("north", "persistentKeepalive: 25", fixed.as_str());
    assert_eq!(costs(&[("east", "", &sending(EAST)), ("west", "", &west), north]), "");
}
