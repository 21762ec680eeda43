//! The API's JSON, as little of it as a snapshot needs: of a node of 18 KB it keeps about one, and of
//! a node that has more than any node has, nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::handshakes::{self, HandshakeKeys};
use super::plugin::{ShownPlugin, kept_key};
use super::{Address, AddressKind, Node};

/// The prefix of the annotations that Kilo reads and writes.
const KILO: &str = "kilo.squat.ai/";

/// The time of the agent's last heartbeat, in Unix seconds.
const LAST_SEEN: &str = "kilo.squat.ai/last-seen";

/// The endpoints at which the agent has had handshakes, by public key.
const DISCOVERED_ENDPOINTS: &str = "kilo.squat.ai/discovered-endpoints";

/// Annotations that change all the time and mean nothing to a mesh.
const VOLATILE: [&str; 2] = [LAST_SEEN, DISCOVERED_ENDPOINTS];

/// The most nodes that one text is believed to list.
const NODES: usize = 50_000;

/// The most entries that any list or map of a node is believed to have.
const ENTRIES: usize = 1000;

/// A node, a list of nodes, or something else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct NodeObject {
    pub(super) kind: Option<String>,
    pub(super) metadata: Option<NodeMetadata>,
    #[serde(default, deserialize_with = "items")]
    pub(super) items: Vec<NodeItem>,
    spec: Option<NodeSpec>,
    status: Option<NodeStatus>,
}

/// A node of a list, with no more of it in memory than will be kept.
pub(super) struct NodeItem {
    pub(super) kind: Option<String>,
    /// The node, and the time of its agent's heartbeat; none without a name.
    pub(super) node: Option<ListedNode>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct NodeMetadata {
    name: Option<String>,
    uid: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "known_annotations")]
    annotations: BTreeMap<String, String>,
    /// The token for the next page of a list.
    #[serde(rename = "continue")]
    pub(super) more: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct NodeSpec {
    #[serde(rename = "podCIDR")]
    pod_cidr: Option<String>,
    #[serde(default, deserialize_with = "few", rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
}

/// The status of a node; that of anything else may look otherwise.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct NodeStatus {
    #[serde(default, deserialize_with = "few")]
    addresses: Vec<StatusAddress>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct StatusAddress {
    #[serde(default)]
    address: String,
    #[serde(default, rename = "type")]
    kind: String,
}

/// A node of a list.
#[derive(Clone, Debug)]
pub(super) struct ListedNode {
    pub(super) node: Node,
    /// In Unix seconds, if its agent reports it.
    pub(super) last_seen: Option<i64>,
    /// The keys with which its agent reports handshakes; none without a report that can be read.
    pub(super) handshakes: Option<HandshakeKeys>,
}

impl NodeObject {
    /// Returns the node; `None` without a name.
    pub(super) fn node(self) -> Option<ListedNode> {
        let metadata = self.metadata?;
        let mut annotations = metadata.annotations;
        // Kilo reads an invalid value as zero.
        let last_seen = annotations.get(LAST_SEEN).map(|text| text.parse().unwrap_or(0));
        let handshakes = annotations.get(DISCOVERED_ENDPOINTS).and_then(|it| handshakes::keys(it));
        let pod_cidrs = self.spec.map(pod_cidrs).unwrap_or_default();
        let plugin = ShownPlugin::of(&annotations, &pod_cidrs);
        annotations.retain(|key, _| key.starts_with(KILO) && !VOLATILE.contains(&key.as_str()));
        let node = Node {
            addresses: self.status.map(addresses).unwrap_or_default(),
            annotations: annotations.into_iter().collect(),
            carried_over: false,
            labels: metadata.labels.into_iter().collect(),
            lost_lead: false,
            name: metadata.name.filter(|name| !name.is_empty())?,
            plugin,
            pod_cidrs,
            position: 0,
            stale: false,
            uid: metadata.uid.unwrap_or_default(),
        };
        Some(ListedNode { node, last_seen, handshakes })
    }
}

/// Reads the items of a list one by one.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeItem>, D::Error> {
    bounded_list(deserializer, (NODES, "items"), |object: NodeObject| NodeItem {
        kind: object.kind.clone(),
        node: object.node(),
    })
}

/// Reads a list that is short in every honest node.
pub(super) fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    bounded_list(deserializer, (ENTRIES, "items"), |item| item)
}

/// Reads a list of at most this many items with this name, or nothing, and keeps what is wanted of each.
///
/// # Errors
/// It is something else, or longer.
pub(crate) fn bounded_list<'de, T: Deserialize<'de>, U, D: Deserializer<'de>>(
    deserializer: D,
    (most, noun): (usize, &'static str),
    keep: fn(T) -> U,
) -> Result<Vec<U>, D::Error> {
    struct ListVisitor<T, U> {
        most: usize,
        noun: &'static str,
        keep: fn(T) -> U,
    }

    impl<'de, T: Deserialize<'de>, U> Visitor<'de> for ListVisitor<T, U> {
        type Value = Vec<U>;

        fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            write!(formatter, "a list of at most {} {}", self.most, self.noun)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut kept = Vec::new();
            while let Some(item) = access.next_element()? {
                if kept.len() == self.most {
                    return Err(A::Error::invalid_length(self.most + 1, &self));
                }
                kept.push((self.keep)(item));
            }
            Ok(kept)
        }
    }

    deserializer.deserialize_any(ListVisitor { most, noun, keep })
}

/// Reads labels.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    map(deserializer, Some)
}

/// Reads the annotations of Kilo and of network plugins and drops the others immediately.
fn known_annotations<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    map(deserializer, |key| if key.starts_with(KILO) { Some(key) } else { kept_key(key) })
}

/// Reads a map of texts, or nothing, and keeps those entries for which there is a key.
fn map<'de, D: Deserializer<'de>>(
    deserializer: D,
    kept_key: fn(String) -> Option<String>,
) -> Result<BTreeMap<String, String>, D::Error> {
    struct NodeTexts(fn(String) -> Option<String>);

    impl<'de> Visitor<'de> for NodeTexts {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            write!(formatter, "a map of at most {ENTRIES} texts")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = access.next_entry::<String, Option<String>>()? {
                if let Some(key) = (self.0)(key) {
                    map.insert(key, value.unwrap_or_default());
                }
                if ENTRIES < map.len() {
                    return Err(A::Error::invalid_length(map.len(), &self));
                }
            }
            Ok(map)
        }
    }

    deserializer.deserialize_any(NodeTexts(kept_key))
}

fn pod_cidrs(spec: NodeSpec) -> Vec<String> {
    if !spec.pod_cidrs.is_empty() {
        return spec.pod_cidrs;
    }
    let only = spec.pod_cidr.into_iter();
    only.filter(|cidr| !cidr.is_empty()).collect()
}

fn addresses(status: NodeStatus) -> Vec<Address> {
    let addresses = status.addresses.into_iter();
    let known = addresses.filter_map(|StatusAddress { address, kind }| {
        let kind = match kind.as_str() {
            "InternalIP" => AddressKind::InternalIP,
            "ExternalIP" => AddressKind::ExternalIP,
            _ => return None,
        };
        Some(Address { address, kind })
    });
    known.collect()
}
