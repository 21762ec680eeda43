//! Pods: an address of one pod of each node, as the API lists them. They are never kept.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use super::Node;
use crate::net::Cidr;

/// The most pods that are read. Those of a node are mostly on the first pages.
const MOST: usize = 5_000;

/// A pod of each node outside of the network of its host.
#[derive(Clone, Debug, Default)]
pub struct PodSample {
    addresses: BTreeMap<String, IpAddr>,
    read: usize,
}

/// A pod with an address that is in no pod CIDR of its node.
#[derive(Clone, Debug)]
pub struct PodOutside<'n> {
    /// The node.
    pub node: &'n Node,
    /// A pod CIDR of the node.
    pub assigned: Cidr,
    /// The address of the pod.
    pub address: IpAddr,
}

#[derive(Deserialize)]
struct PodList {
    #[serde(default)]
    metadata: PodPageMetadata,
    #[serde(default)]
    items: Vec<Pod>,
}

#[derive(Default, Deserialize)]
struct PodPageMetadata {
    #[serde(default)]
    r#continue: String,
}

#[derive(Deserialize)]
struct Pod {
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    host_network: bool,
}

#[derive(Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
    #[serde(default, rename = "podIP")]
    pod_ip: String,
}

impl PodSample {
    /// Returns how many pods were read.
    pub fn read(&self) -> usize {
        self.read
    }

    /// Adds a page of the list, and returns where it goes on.
    ///
    /// # Errors
    /// The page is not a list of pods.
    pub fn page(&mut self, page: &[u8]) -> Result<Option<String>, serde_json::Error> {
        let PodList { metadata, items } = serde_json::from_slice(page)?;
        self.read += items.len();
        for Pod { spec, status } in items {
            // The address of a pod that has ended may be that of another pod.
            let is_meant = !spec.host_network && status.phase == "Running";
            if let (true, Ok(address)) = (is_meant, status.pod_ip.parse()) {
                self.addresses.entry(spec.node_name).or_insert(address);
            }
        }
        Ok(Some(metadata.r#continue).filter(|it| !it.is_empty() && self.read < MOST))
    }

    /// Returns the pods of some nodes that have an address which Kilo does not route, and how many of the nodes have a pod.
    pub fn outside<'n>(
        &self,
        nodes: impl Iterator<Item = &'n Node>,
    ) -> (Vec<PodOutside<'n>>, usize) {
        let sampled = nodes.filter_map(|node| {
            let address = *self.addresses.get(&node.name)?;
            let family = Cidr::host(address).family();
            let of_family = node.valid_pod_cidrs().filter(|it| it.family() == family);
            Some((node, address, of_family.collect::<Vec<Cidr>>()))
        });
        let mut outside = Vec::new();
        let mut all = 0;
        for (node, address, assigned) in sampled {
            all += 1;
            if let (Some(&first), false) =
                (assigned.first(), assigned.iter().any(|it| it.holds(address)))
            {
                outside.push(PodOutside { node, assigned: first, address });
            }
        }
        (outside, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn outside(pods: &str) -> Vec<String> {
        let mut sample = PodSample::default();
        let page = format!(r#"{{ "kind": "PodList", "items": [{pods}] }}"#);
        assert_eq!(sample.page(page.as_bytes()).unwrap(), None);
        let nodes = [node("a pod=10.1.1.0/24"), node("b pod=10.1.2.0/24"), node("c")];
        let (outside, _) = sample.outside(nodes.iter());
        outside.iter().map(|it| format!("{} {}", it.node.name, it.address)).collect()
    }

    fn pod(node: &str, address: &str, more: &str) -> String {
        format!(
            r#"{{ "spec": {{ "nodeName": "{node}" {more} }}, "status": {{ "phase": "Running", "podIP": "{address}" }} }}"#
        )
    }

    #[test]
    fn a_pod_outside_of_the_pod_cidrs_of_its_node_is_found() {
        let pods = [pod("a", "10.1.1.7", ""), pod("b", "10.0.3.9", ""), pod("c", "10.0.4.9", "")];
        assert_eq!(outside(&pods.join(",")), ["b 10.0.3.9"]);
        assert_eq!(outside(&pod("a", "192.168.0.1", r#", "hostNetwork": true"#)), [""; 0]);
        assert_eq!(outside(&pod("a", "fd00::7", "")), [""; 0], "no pod CIDR of this family");
        let ended = r#"{ "spec": { "nodeName": "a" }, "status": { "phase": "Succeeded", "podIP": "10.9.9.9" } }"#;
        assert_eq!(outside(ended), [""; 0]);
        assert_eq!(outside(r#"{}, { "spec": {}, "status": {} }"#), [""; 0]);
    }

    #[test]
    fn the_list_ends_where_enough_is_read() {
        let mut sample = PodSample::default();
        let page = |count: usize| {
            let items = vec!["{}"; count].join(",");
            format!(r#"{{ "metadata": {{ "continue": "x" }}, "items": [{items}] }}"#)
        };
        assert_eq!(sample.page(page(250).as_bytes()).unwrap().as_deref(), Some("x"));
        assert_eq!(sample.page(page(MOST).as_bytes()).unwrap(), None);
        assert!(sample.page(b"7").is_err());
    }
}
