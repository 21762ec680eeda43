//! Pod addresses: do pods have those that Kilo routes?

use std::collections::BTreeMap;

use super::MISMATCHED_POD_ADDRESSES;
use crate::kilo::cluster::Cluster;
use crate::kilo::pod_network::unrouted_pods;
use crate::name::ClusterName;
use crate::net::{Cidr, Family};
use crate::rules::{Finding, bare};
use crate::snapshot::Node;
use crate::snapshot::plugin::NetworkPlugin;
use crate::snapshot::pods::PodOutside;
use crate::text::share;

/// A node that shows other pods than Kilo routes.
struct UnroutedNode<'n> {
    node: &'n Node,
    plugin: NetworkPlugin,
    /// Addresses of its pods.
    pods: Cidr,
}

/// Returns a finding about a cluster most of whose nodes show pods with other addresses than those of their pod CIDRs.
pub(in crate::rules) fn finding(cluster: &Cluster) -> Option<Finding> {
    let families = [Family::V4, Family::V6];
    let family = families.into_iter().find(|it| cluster.pod_network.unrouted.has(*it))?;
    let nodes: Vec<UnroutedNode> = cluster
        .nodes
        .iter()
        .filter_map(|it| {
            let pods = unrouted_pods(it.node, family)?;
            Some(UnroutedNode { node: it.node, plugin: it.node.plugin.as_ref()?.name, pods })
        })
        .collect();
    let mut plugins: BTreeMap<NetworkPlugin, usize> = BTreeMap::new();
    for node in &nodes {
        *plugins.entry(node.plugin).or_default() += 1;
    }
    let (plugin, _) = plugins.into_iter().max_by_key(|it| it.1)?;
    let first = nodes.iter().find(|it| it.plugin == plugin)?;
    let assigned = first.node.valid_pod_cidrs().filter(|it| it.family() == family).min()?;
    let name = &cluster.entry.name;
    let message = format!(
        "{plugin} gives pods addresses that Kilo does not route: pods of {} have {}, and its pod CIDR is {assigned} \
         ({})",
        bare(&first.node.name),
        first.pods,
        share(nodes.len(), cluster.nodes.len(), "node")
    );
    let setting = match plugin {
        NetworkPlugin::Cilium => "set `ipam.mode=kubernetes` in the Helm values of Cilium",
        NetworkPlugin::Calico | NetworkPlugin::Flannel => {
            "set the IPAM of the network plugin to `host-local` with `\"subnet\": \"usePodCidr\"`"
        }
    };
    let finding = Finding::on_cluster(&MISMATCHED_POD_ADDRESSES, name, message);
    Some(finding.help(format!(
        "{setting}, create all pods of the cluster again, then run `clustermesh snapshot {name}`"
    )))
}

/// Returns a finding about pods of a live cluster with addresses outside of the pod CIDRs of their nodes, given on how many
/// nodes a pod was found.
pub fn unrouted(cluster: &ClusterName, outside: &[PodOutside], sampled: usize) -> Option<Finding> {
    let first = outside.first()?;
    let message = format!(
        "pods have addresses that Kilo does not route: a pod of {} has {}, and the pod CIDR of the node is {} ({})",
        bare(&first.node.name),
        first.address,
        first.assigned,
        share(outside.len(), sampled, "node")
    );
    let finding = Finding::on_cluster(&MISMATCHED_POD_ADDRESSES, cluster, message);
    Some(finding.help(
        "let the network plugin use the pod CIDRs of Kubernetes (Cilium: `ipam.mode=kubernetes`; Calico: the IPAM `host-local` \
         with `\"subnet\": \"usePodCidr\"`), then create all pods of the cluster again",
    ))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    /// Reports on a cluster of nodes with these addresses of pods as a plugin shows them.
    fn report_on(plugins: &[&str]) -> String {
        let nodes = plugins.iter().enumerate().map(|(index, plugin)| {
            format!(
                "n{index} pod=10.1.{index}.0/24 wg=10.101.0.{index}/24 key=A endpoint=198.18.0.1:51820 \
                 internal-ip=192.168.0.{index}/24 granularity=full {plugin}\n"
            )
        });
        let nodes: String = nodes.collect();
        let found = report(
            super::super::tests::findings,
            &[("east", "granularity: Full", &nodes), ("west", "granularity: Full", "")],
        );
        let is_meant = |it: &&str| it.contains("mismatched-pod-addresses");
        found.split_inclusive("\nwarning").filter(is_meant).map(str::trim).collect()
    }

    const CILIUM: &str = "plugin=Cilium,10.0.11.0/24";

    #[test]
    fn pods_outside_of_pod_cidrs_are_reported_once_for_their_cluster() {
        insta::assert_snapshot!(report_on(&[CILIUM, "plugin=Cilium", CILIUM]), @"
        warning[mismatched-pod-addresses] east: Cilium gives pods addresses that Kilo does not route: pods of n0 have 10.0.11.0/24, and its pod CIDR is 10.1.0.0/24 (2 of 3 nodes)
          help: set `ipam.mode=kubernetes` in the Helm values of Cilium, create all pods of the cluster again, then run `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on(&["plugin=Calico,192.168.9.1/32"]), @r#"
        warning[mismatched-pod-addresses] east: Calico gives pods addresses that Kilo does not route: pods of n0 have 192.168.9.1/32, and its pod CIDR is 10.1.0.0/24 (the only node)
          help: set the IPAM of the network plugin to `host-local` with `"subnet": "usePodCidr"`, create all pods of the cluster again, then run `clustermesh snapshot east`
        "#);
    }

    #[test]
    fn half_of_the_nodes_are_not_believed() {
        assert_eq!(report_on(&[CILIUM, "plugin=Cilium"]), "");
        assert_eq!(report_on(&[CILIUM, CILIUM, "", ""]), "");
        assert_eq!(report_on(&["plugin=Cilium", "plugin=Flannel"]), "");
    }
}
