//! Listings: the Peers of a cluster, read page by page as its API server sends them.
//!
//! An answer may be hostile. Of each object only the fields of a Peer are read, one object at a time,
//! and only its translation stays.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

use super::change_time::{ChangeTime, ManagedChanges};
use super::{Applied, AppliedFile, Content, Other, Spot, What};
use crate::kilo::peer::loose::LoosePeer;
use crate::kilo::peer::{EXTERNAL_LABEL, MANAGER_LABEL, MESH_LABEL, SOURCE_LABEL};
use crate::name::{self, ClusterName};
use crate::place::Pointer;
use crate::snapshot::bounded_list;
use crate::wireguard::Host;

/// The most Peers of a cluster that are read; Kilo stops working with far fewer.
const PEERS: usize = 100_000;

/// The most allowed IPs of all Peers of a cluster that are read.
const RANGES: usize = 1_000_000;

/// The most values in a spec or in labels: etcd stores no object that has room for more.
const VALUES: usize = 200_000;

/// Every field of a spec, on any level, and every label.
const FIELDS: [&str; 13] = [
    EXTERNAL_LABEL,
    MANAGER_LABEL,
    MESH_LABEL,
    SOURCE_LABEL,
    "allowedIPs",
    "dns",
    "dnsOrIP",
    "endpoint",
    "ip",
    "persistentKeepalive",
    "port",
    "presharedKey",
    "publicKey",
];

/// The Peers of a cluster, as far as its pages were read.
#[derive(Debug, Default)]
pub struct PeerListing {
    content: Content,
    /// The number of allowed IPs.
    ranges: usize,
    /// The number of objects, also of those without a valid name.
    count: usize,
    /// The last change of a spec.
    changed_at: ChangeTime,
}

/// The reason for which a text is not a page of Peers.
#[derive(Debug, Error)]
pub enum PeerPageError {
    /// It is not JSON, or something else.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The list of something else.
    #[error("expected a PeerList")]
    Kind,
    /// More Peers than are read.
    #[error("the cluster has more than {PEERS} Peers")]
    Peers,
    /// More ranges than are read.
    #[error("the Peers have more than {RANGES} allowed IPs")]
    Ranges,
}

#[derive(Deserialize)]
struct PeerPage {
    kind: String,
    metadata: Option<ListMetadata>,
    #[serde(deserialize_with = "items")]
    items: Vec<ListedObject>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

/// An object of a page: a Peer, or something that cannot be one, and the last change of its spec.
type ListedObject = (Result<Applied, Other>, ChangeTime);

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
    #[serde(default)]
    spec: KnownFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    name: String,
    #[serde(default)]
    creation_timestamp: ChangeTime,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    managed_fields: ManagedChanges,
    #[serde(default)]
    labels: KnownFields,
}

/// The known fields of a spec or of labels.
#[derive(Default)]
struct KnownFields(Value);

/// Reads a value and everything in it, while the budget lasts.
#[derive(Clone, Copy)]
struct BoundedValue<'b>(&'b Cell<usize>);

impl PeerListing {
    /// Returns the number of objects so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a page, whole or not at all, and returns where the list goes on.
    ///
    /// # Errors
    /// It is not a page of Peers, or there are too many.
    pub fn page(&mut self, text: &[u8]) -> Result<Option<String>, PeerPageError> {
        let page: PeerPage = serde_json::from_slice(text)?;
        if page.kind != "PeerList" {
            return Err(PeerPageError::Kind);
        }
        let count = self.count + page.items.len();
        let peers = page.items.iter().filter_map(|it| it.0.as_ref().ok());
        let specs = peers.filter_map(|it| it.spec.as_ref().ok());
        let ranges = self.ranges + specs.map(|it| it.allowed_ips.len()).sum::<usize>();
        if PEERS < count {
            return Err(PeerPageError::Peers);
        }
        if RANGES < ranges {
            return Err(PeerPageError::Ranges);
        }
        let pointer = Pointer::default().key("items");
        for (index, (item, changed_at)) in (self.count..).zip(page.items) {
            self.changed_at = self.changed_at.max(changed_at);
            let spot = Spot { document: 0, pointer: pointer.index(index) };
            match item {
                Ok(peer) => self.content.peers.push(Applied { spot, ..peer }),
                Err(other) => self.content.others.push(Other { spot, ..other }),
            }
        }
        (self.count, self.ranges) = (count, ranges);
        let more = page.metadata.and_then(|it| it.more);
        Ok(more.filter(|token| !token.is_empty()))
    }

    /// Returns the time of the last change of a spec, in Unix seconds; none if the API server shows none. A deletion
    /// leaves no time.
    pub fn changed_at(&self) -> Option<i64> {
        self.changed_at.0
    }

    /// Returns every text that a message may quote.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let of_peers = self.content.peers.iter().flat_map(|peer| {
            let of_spec = match &peer.spec {
                Ok(spec) => spec.endpoint.as_ref().and_then(|it| match &it.host {
                    Host::Dns(name) => Some(name.as_str()),
                    Host::Ip(_) => None,
                }),
                Err(fault) => fault.text(),
            };
            let source = peer.claims.source.as_ref().map(ClusterName::as_str);
            [Some(peer.name.as_str()), source, of_spec]
        });
        let of_others = self.content.others.iter().map(|it| match &it.what {
            What::Name(name) => name.as_deref(),
            What::Broken(_) | What::Kind { .. } => None,
        });
        of_peers.chain(of_others).flatten()
    }

    /// Returns the Peers as a file of this name.
    pub fn into_file(self, source: &Arc<str>) -> AppliedFile {
        AppliedFile { source: Arc::clone(source), content: Arc::new(self.content) }
    }
}

impl Item {
    fn listed(self) -> ListedObject {
        let spot = Spot::default();
        let metadata = self.metadata;
        let changed_at = metadata.managed_fields.0.or(metadata.creation_timestamp);
        let ItemMetadata { name, deletion_timestamp, labels, .. } = metadata;
        if !name::is_dns_subdomain(&name) {
            let what = What::Name(Some(name));
            return (Err(Other { spot, what }), changed_at);
        }
        let loose = LoosePeer { labels: &labels.0, spec: &self.spec.0 };
        let is_ending = deletion_timestamp.is_some();
        (Ok(Applied::new(spot, name, is_ending, loose)), changed_at)
    }
}

/// Reads the objects one by one.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ListedObject>, D::Error> {
    bounded_list(deserializer, (PEERS, "Peers"), Item::listed)
}

impl<'de> Deserialize<'de> for KnownFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let budget = Cell::new(VALUES);
        BoundedValue(&budget).deserialize(deserializer).map(Self)
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.ok_or_else(|| D::Error::invalid_length(VALUES + 1, &self))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "a Peer with at most {VALUES} values")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if FIELDS.contains(&name.as_str()) {
                fields.insert(name, access.next_value_seed(self)?);
            } else {
                access.next_value::<IgnoredAny>()?;
            }
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(items: &Value) -> String {
        json!({"kind": "PeerList", "metadata": {"continue": "x"}, "items": items}).to_string()
    }

    #[test]
    fn a_listing_is_a_dump_of_the_same_objects() {
        let key = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";
        let endpoint = json!({"dnsOrIP": {"dns": "wg.example", "more": 1}, "port": 7});
        let specs = [
            json!({"allowedIPs": ["10.0.0.0/8"], "publicKey": key, "endpoint": endpoint, "persistentKeepalive": 25, "more": [[{}]]}),
            json!({"allowedIPs": ["bad"], "publicKey": key, "presharedKey": key}),
            json!({"allowedIPs": [true, 1.5, -1, null], "publicKey": key}),
            json!({"AllowedIPs": ["10.0.0.0/8"], "publicKey": key}),
            json!([{"allowedIPs": []}]),
            Value::Null,
        ];
        let mut items: Vec<Value> = specs.iter().enumerate().map(|(number, spec)| {
            let labels = [json!({"a": 1, SOURCE_LABEL: "east", MANAGER_LABEL: "clustermesh"}), json!({SOURCE_LABEL: "No"}), json!({SOURCE_LABEL: [SOURCE_LABEL]}), json!("east"), Value::Null];
            let deleted = if number == 1 { json!("now") } else { Value::Null };
            json!({"metadata": {"name": format!("p{number}"), "deletionTimestamp": deleted, "labels": labels.get(number)}, "spec": spec})
        }).collect();
        items.push(json!({"metadata": {"name": "No_Name"}}));
        let mut listing = PeerListing::default();
        let pages = items.chunks(4).map(|it| page(&json!(it)));
        for page in pages {
            assert_eq!(listing.page(page.as_bytes()).unwrap().as_deref(), Some("x"));
        }
        assert_eq!(listing.len(), 7);
        let texts: Vec<&str> = listing.texts().collect();
        assert_eq!(
            texts,
            ["p0", "east", "wg.example", "p1", "bad", "p2", "p3", "p4", "p5", "No_Name"]
        );
        let source: Arc<str> = "f".into();
        let dump = json!({"kind": "PeerList", "items": items}).to_string();
        let dump = AppliedFile::of_dump(&source, &dump.as_str().into()).unwrap();
        assert_eq!(*listing.into_file(&source).content, *dump.content);
    }

    #[test]
    fn the_last_change_is_that_of_a_spec() {
        let changed_at = |peers: &Value| {
            let mut listing = PeerListing::default();
            listing.page(page(peers).as_bytes()).unwrap();
            listing.changed_at()
        };
        let peer = |managed: &Value| json!({"metadata": {"name": "a", "creationTimestamp": "2026-03-01T00:00:00Z", "managedFields": managed}});
        let of_spec = json!({"f:spec": {"f:publicKey": {}}, "f:metadata": {}});
        let managed = json!([
            {"time": "2026-03-01T00:01:00Z", "fieldsV1": of_spec},
            {"time": "2026-03-01T00:00:30Z", "fieldsV1": of_spec},
            {"time": "2026-03-01T00:09:00Z", "fieldsV1": {"f:metadata": {"f:spec": {}}}},
            {"time": "2026-03-01T00:09:00Z"},
            {"fieldsV1": of_spec},
        ]);
        let created = 1_772_323_200;
        assert_eq!(changed_at(&json!([peer(&managed)])), Some(created + 60));
        assert_eq!(changed_at(&json!([peer(&json!([]))])), Some(created));
        assert_eq!(changed_at(&json!([peer(&Value::Null), peer(&managed)])), Some(created + 60));
        let wrong = json!([{"time": "yesterday", "fieldsV1": of_spec}]);
        assert_eq!(changed_at(&json!([peer(&wrong)])), Some(created));
        assert_eq!(changed_at(&json!([{"metadata": {"name": "a"}}])), None);
    }

    #[test]
    fn what_is_too_much_is_an_error() {
        let error = |text: String| {
            let mut listing = PeerListing::default();
            let error = listing.page(text.as_bytes()).unwrap_err().to_string();
            assert_eq!((listing.len(), listing.ranges), (0, 0));
            error
        };
        let of_spec = |spec: String| {
            format!(
                r#"{{"kind":"PeerList","items":[{{"metadata":{{"name":"a"}},"spec":{{"allowedIPs":[{spec}]}}}}]}}"#
            )
        };
        let many = error(of_spec(vec!["1"; VALUES].join(",")));
        assert!(many.contains("expected a Peer with at most 200000 values"), "{many}");
        let item = r#"{"metadata":{"name":"a"}}"#;
        let text =
            format!(r#"{{"kind":"PeerList","items":[{}]}}"#, vec![item; PEERS + 1].join(","));
        let many = error(text);
        assert!(many.contains("expected a list of at most 100000 Peers"), "{many}");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","items":[]}"#.to_owned()), @"expected a PeerList");
        let mut listing = PeerListing { ranges: RANGES, ..PeerListing::default() };
        let key = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";
        let one = json!([{"metadata": {"name": "a"}, "spec": {"allowedIPs": ["10.0.0.0/8"], "publicKey": key}}]);
        let error = listing.page(page(&one).as_bytes()).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"the Peers have more than 1000000 allowed IPs");
    }
}
