//! Words for clusters that get no Peer because of their own nodes.

use super::{cause_of, rules_of};
use crate::plan::{Plan, Target};
use crate::rules::Finding;
use crate::rules::nodes::CUT_OFF;

/// Returns the clusters that their own nodes cut off from all others.
pub(in crate::rules) fn findings(plan: &Plan) -> Vec<Finding> {
    plan.cut_off().map(|it| finding(plan, it)).collect()
}

pub(in crate::rules) fn finding(plan: &Plan, target: &Target) -> Finding {
    let cluster = &target.cluster;
    let of_target = || plan.withheld.iter().filter(|it| it.target == *cluster);
    let rules = rules_of(of_target());
    let message = format!("gets no Peers because of the data of its own nodes ({rules})");
    let help = format!(
        "correct what `clustermesh validate` reports about the nodes of `{cluster}`, then \
         run `clustermesh snapshot {cluster}`"
    );
    let finding = Finding::on_cluster(&CUT_OFF, cluster, message).of_nodes();
    finding.with_cause(cause_of(of_target())).help(help)
}

#[cfg(test)]
mod tests {
    use crate::testing::{findings, mesh_of};

    const EAST: &str = "name: east, podCIDRs: [10.1.0.0/17], wireguardCIDR: 10.1.255.0/24";
    const NODES: &str = "a pod=10.1.1.0/24 wg=10.1.255.1/24 key=A external=198.18.113.1
b pod=10.1.2.0/24 wg=10.1.255.2/24 key=B external=198.18.113.2";

    /// Returns the finding about `west`, with more fields of its entry, and the same for both of its nodes.
    fn report(fields: &str, nodes: [&str; 2]) -> Option<String> {
        let west = format!("name: west, wireguardCIDR: 10.202.0.0/24, {fields}");
        let lines = nodes.iter().zip(["C", "D"]).enumerate().map(|(i, (says, key))| {
            // A node may report the key of another one.
            let key = if says.contains("key=") { String::new() } else { format!("key={key}") };
            let number = i + 1;
            format!("n{number} pod=10.2.{number}.0/24 wg=10.202.0.{number}/24 {key} external=198.18.114.{number} granularity=full endpoint=198.18.114.{number}:51820 {says}\n")
        });
        let nodes: String = lines.collect();
        let mesh = mesh_of("m", &[&west, EAST]);
        let text = findings(&mesh, &[("west", &nodes), ("east", NODES)]);
        let mut lines = text.lines();
        lines.find(|it| it.contains("[cut-off-cluster] west")).map(str::to_owned)
    }

    const PODS: &str = "podCIDRs: [10.2.0.0/16]";

    #[test]
    fn the_data_of_its_own_nodes_cuts_a_cluster_off() {
        assert_eq!(report(PODS, ["", ""]), None);
        // If both families are declared, the nodes decide which one Kilo routes.
        let dual = "podCIDRs: [10.2.0.0/16, 'fd00:2::/48']";
        for (fields, nodes, reason) in [
            (PODS, ["internal-ip=10.1.200.9/16"; 2], "captured-network"),
            (dual, ["internal-ip=fd00:2::1/64"; 2], "unroutable-family"),
            (PODS, ["key=A", "key=B"], "key-of-target-node"),
        ] {
            let found = report(fields, nodes);
            let expected = format!(
                "error[cut-off-cluster] west: gets no Peers because of the data of its own nodes ({reason})"
            );
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn what_leaves_it_a_peer_does_not() {
        // One node of two on the LAN, one key of two.
        assert_eq!(report(PODS, ["internal-ip=10.1.200.9/16", ""]), None);
        assert_eq!(report(PODS, ["key=A", ""]), None);
    }

    #[test]
    fn what_people_write_does_not() {
        let refusing = format!("{PODS}, acceptedNetworks: [10.9.0.0/16]");
        let lan = "internal-ip=192.168.7.1/24";
        assert_eq!(report(&refusing, [lan, lan]), None);
        let local = format!("{PODS}, localNetworks: [10.1.0.0/16]");
        assert_eq!(report(&local, [lan, lan]), None);
    }
}
