//! Network plugins: which one a node's annotations show, and which addresses it gives to pods.
//!
//! Annotations are the claims of one node. `kilo::pod_network` believes them only if most nodes of a cluster agree.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::net::Cidr;
use crate::schema::pattern;
use crate::text::listed;

/// The network plugin that annotations of a node show.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ShownPlugin {
    /// Its name.
    pub name: NetworkPlugin,
    /// The addresses of the node's pods as the plugin reports them, only those outside of `podCIDRs`.
    #[schemars(
        with = "Vec<String>",
        inner(regex(pattern = pattern::range())),
        example = ["10.0.11.0/24"]
    )]
    #[serde(
        default,
        deserialize_with = "ranges",
        serialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pod_addresses: Vec<Cidr>,
    /// Whether the plugin has WireGuard tunnels of its own between nodes.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub wireguard: bool,
}

/// A network plugin that annotates nodes.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum NetworkPlugin {
    /// Cilium.
    Cilium,
    /// Calico.
    Calico,
    /// flannel.
    Flannel,
}

/// The prefixes of the plugins' annotations. flannel is last, because Canal is Calico beside flannel.
const PREFIXES: [(&str, NetworkPlugin); 4] = [
    ("network.cilium.io/", NetworkPlugin::Cilium),
    ("io.cilium.network.", NetworkPlugin::Cilium),
    ("projectcalico.org/", NetworkPlugin::Calico),
    ("flannel.alpha.coreos.com/", NetworkPlugin::Flannel),
];

/// The annotations with addresses of pods: a range of them, or one that the plugin takes for the node's tunnel from the
/// addresses of its pods.
const POD_ADDRESSES: [&str; 7] = [
    "network.cilium.io/ipv4-pod-cidr",
    "network.cilium.io/ipv6-pod-cidr",
    "io.cilium.network.ipv4-pod-cidr",
    "io.cilium.network.ipv6-pod-cidr",
    "projectcalico.org/IPv4IPIPTunnelAddr",
    "projectcalico.org/IPv4VXLANTunnelAddr",
    "projectcalico.org/IPv6VXLANTunnelAddr",
];

/// The annotation with the kind of flannel's tunnels: `wireguard` for its `wireguard-native`.
const FLANNEL_BACKEND: &str = "flannel.alpha.coreos.com/backend-type";

/// The annotation with the key of Calico's WireGuard tunnels.
const CALICO_KEY: &str = "projectcalico.org/WireguardPublicKey";

/// Returns the key under which an annotation of a plugin is kept; none for any other. All whose value does not matter
/// have one key, so a node cannot have many.
pub(super) fn kept_key(key: String) -> Option<String> {
    let (prefix, _) = PREFIXES.iter().find(|it| key.starts_with(it.0))?;
    let has_value = [FLANNEL_BACKEND, CALICO_KEY].contains(&key.as_str());
    Some(if has_value || POD_ADDRESSES.contains(&key.as_str()) {
        key
    } else {
        (*prefix).to_owned()
    })
}

impl ShownPlugin {
    /// Returns the plugin that annotations show, given the pod CIDRs of the node.
    pub(super) fn of(annotations: &BTreeMap<String, String>, pod_cidrs: &[String]) -> Option<Self> {
        let shows = |prefix: &str| annotations.keys().any(|key| key.starts_with(prefix));
        let (_, name) = *PREFIXES.iter().find(|it| shows(it.0))?;
        let assigned: Vec<Cidr> = pod_cidrs.iter().filter_map(|it| it.parse().ok()).collect();
        let contradicts = |range: &Cidr| {
            let routed = assigned.iter().find(|it| it.family() == range.family());
            routed.is_some_and(|it| !it.contains(*range))
        };
        let reported = POD_ADDRESSES.iter().filter_map(|key| range(annotations.get(*key)?));
        let mut pod_addresses: Vec<Cidr> = reported.filter(contradicts).collect();
        pod_addresses.sort_unstable();
        pod_addresses.dedup();
        let is_set = |key, is_on: fn(&String) -> bool| annotations.get(key).is_some_and(is_on);
        let wireguard = is_set(FLANNEL_BACKEND, |it| it == "wireguard")
            || is_set(CALICO_KEY, |it| !it.is_empty());
        Some(Self { name, pod_addresses, wireguard })
    }
}

/// Reads a range or an address.
fn range(text: &str) -> Option<Cidr> {
    let address = || Some(Cidr::host(text.parse::<IpAddr>().ok()?));
    text.parse().ok().or_else(address)
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cidr>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|it| it.parse().map_err(D::Error::custom)).collect()
}

fn texts<S: Serializer>(ranges: &[Cidr], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ranges.iter().map(ToString::to_string))
}

impl fmt::Display for ShownPlugin {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}", self.name)?;
        if self.wireguard {
            formatter.write_str(" with WireGuard")?;
        }
        if !self.pod_addresses.is_empty() {
            write!(formatter, ", pods in {}", listed(&self.pod_addresses))?;
        }
        Ok(())
    }
}

impl fmt::Display for NetworkPlugin {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Cilium => "Cilium",
            Self::Calico => "Calico",
            Self::Flannel => "flannel",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pod_cidrs: &[&str], annotations: &[(&str, &str)]) -> String {
        let annotations = annotations
            .iter()
            .filter_map(|(key, value)| Some((kept_key((*key).to_owned())?, (*value).to_owned())));
        let pod_cidrs: Vec<String> = pod_cidrs.iter().map(|it| (*it).to_owned()).collect();
        let shown = ShownPlugin::of(&annotations.collect(), &pod_cidrs);
        shown.map_or("nothing".to_owned(), |it| it.to_string())
    }

    #[test]
    fn annotations_show_the_plugin_and_addresses_that_contradict_the_pod_cidrs() {
        let both = &["10.244.1.0/24", "fd00:1::/64"][..];
        let v4 = &both[..1];
        let calico = "projectcalico.org/IPv4IPIPTunnelAddr";
        for (pods, annotations, expected) in [
            (v4, &[("example.org/network.cilium.io/", "x")][..], "nothing"),
            (v4, &[("network.cilium.io/ipv4-cilium-host", "10.0.1.7")], "Cilium"),
            (v4, &[("network.cilium.io/ipv4-pod-cidr", "10.244.1.0/24")], "Cilium"),
            (
                v4,
                &[("network.cilium.io/ipv4-pod-cidr", "10.0.1.0/24")],
                "Cilium, pods in 10.0.1.0/24",
            ),
            (
                v4,
                &[("io.cilium.network.ipv4-pod-cidr", "10.0.1.0/24")],
                "Cilium, pods in 10.0.1.0/24",
            ),
            // Only a part of them are routed.
            (
                v4,
                &[("network.cilium.io/ipv4-pod-cidr", "10.244.0.0/16")],
                "Cilium, pods in 10.244.0.0/16",
            ),
            (v4, &[("network.cilium.io/ipv4-pod-cidr", "::ffff:10.0.1.0/120")], "Cilium"),
            (v4, &[("network.cilium.io/ipv4-pod-cidr", "10.0.1.0/24\n")], "Cilium"),
            // Nothing is assigned that it could contradict.
            (&[], &[("network.cilium.io/ipv4-pod-cidr", "10.0.1.0/24")], "Cilium"),
            (v4, &[("network.cilium.io/ipv6-pod-cidr", "fd00:9::/64")], "Cilium"),
            (
                both,
                &[("network.cilium.io/ipv6-pod-cidr", "fd00:9::/64")],
                "Cilium, pods in fd00:9::/64",
            ),
            (v4, &[(calico, "10.244.1.1")], "Calico"),
            (v4, &[(calico, "192.168.5.1")], "Calico, pods in 192.168.5.1/32"),
            (
                v4,
                &[
                    ("projectcalico.org/IPv4VXLANTunnelAddr", "10.9.0.1"),
                    ("projectcalico.org/ASNumber", "1"),
                ],
                "Calico, pods in 10.9.0.1/32",
            ),
            (v4, &[("flannel.alpha.coreos.com/backend-type", "vxlan")], "flannel"),
            (
                v4,
                &[("flannel.alpha.coreos.com/backend-type", "wireguard")],
                "flannel with WireGuard",
            ),
            (v4, &[("projectcalico.org/WireguardPublicKey", "x")], "Calico with WireGuard"),
            (v4, &[("projectcalico.org/WireguardPublicKey", "")], "Calico"),
            (
                v4,
                &[
                    ("flannel.alpha.coreos.com/public-ip", "192.0.2.1"),
                    ("projectcalico.org/IPv4Address", "x"),
                ],
                "Calico",
            ),
        ] {
            assert_eq!(shown(pods, annotations), expected, "{annotations:?}");
        }
    }

    #[test]
    fn a_node_with_many_annotations_of_a_plugin_is_read() {
        let keys = (0..2000).map(|it| kept_key(format!("projectcalico.org/{it}")));
        assert_eq!(keys.collect::<std::collections::BTreeSet<_>>().len(), 1);
    }
}
