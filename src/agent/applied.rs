//! Peers as they are applied: read from manifests of clustermesh, of the operator, or of a cluster.
//!
//! The manifests may come from anywhere. Objects that are not readable Peers are reported, not
//! errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::Finding;
use crate::document::{Broken, Source};
use crate::kilo::peer::Translation;
use crate::kilo::peer::loose::LoosePeer;
use crate::kilo::peer::translation::TranslationFault;
use crate::kilo::peer::written::{self, ParsedPeer};
use crate::name::{self, ClusterName, MeshName};
use crate::net::Cidr;
use crate::place::{Place, Pointer};

mod added_field;
mod change_time;
mod dump;
mod listing;

pub use added_field::{OptionalField, OptionalFields, removal};
pub use dump::PeerDumpError;
pub use listing::{PeerListing, PeerPageError};

/// The API version of a Peer.
const API_VERSION: &str = "kilo.squat.ai/v1alpha1";

/// A file of manifests.
#[derive(Clone, Debug)]
pub struct AppliedFile {
    /// The file, as the shell calls it.
    pub source: Arc<str>,
    /// Its content; files with the same text share it.
    pub content: Arc<Content>,
}

/// The content of a text of manifests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Content {
    /// Its Peers, in their order.
    pub peers: Vec<Applied>,
    /// Everything else, in its order.
    pub others: Vec<Other>,
}

/// A Peer of a manifest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Applied {
    /// The position in the file.
    pub spot: Spot,
    /// Its name, a DNS-1123 subdomain.
    pub name: String,
    /// The claims in its labels.
    pub claims: Claims,
    /// True if the Peer is being deleted and the API server only waits for finalizers.
    pub is_ending: bool,
    /// The Peer as an agent reads it.
    pub spec: Result<Translation, TranslationFault>,
    /// The optional fields of its spec.
    pub fields: OptionalFields,
    /// Its labels and its spec as they are written.
    pub written: LabelledSpec,
}

/// The labels and the spec of an object, unless clustermesh wrote them. All are equal: Peers are compared by what agents
/// read of them.
#[derive(Clone, Debug, Default)]
pub struct LabelledSpec(Option<Arc<(Value, Value)>>);

impl LabelledSpec {
    /// Returns the fields, of which any may be wrong; none if clustermesh wrote them.
    pub fn loose(&self) -> Option<LoosePeer<'_>> {
        let (labels, spec) = self.0.as_deref()?;
        Some(LoosePeer { labels, spec })
    }
}

impl PartialEq for LabelledSpec {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LabelledSpec {}

/// The claims of labels about a Peer. Anyone who may write Peers can write them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claims {
    /// The cluster that the Peer leads to.
    pub source: Option<ClusterName>,
    /// The mesh.
    pub mesh: Option<MeshName>,
    /// True if clustermesh has rendered it.
    pub is_rendered: bool,
}

/// Something else than a Peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Other {
    /// The position in the file.
    pub spot: Spot,
    /// The kind.
    pub what: What,
}

/// An object of a file, without the file's name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spot {
    /// Its document, counted from zero.
    pub document: usize,
    /// The position in the document.
    pub pointer: Pointer,
}

/// A document that is not a Peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum What {
    /// A text that is neither YAML nor JSON, or is too large.
    Broken(Vec<Finding>),
    /// An object of another kind.
    Kind {
        /// The field as written; empty if missing.
        api_version: String,
        /// The field as written; empty if missing.
        kind: String,
    },
    /// A Peer whose name is missing, or is refused by API servers.
    Name(Option<String>),
}

impl Content {
    /// Returns whether a part of the text cannot be read.
    pub fn is_broken(&self) -> bool {
        let mut others = self.others.iter();
        others.any(|it| matches!(it.what, What::Broken(_)))
    }
}

impl AppliedFile {
    /// Reads a file.
    pub fn read(source: &Arc<str>, text: &Arc<str>) -> Self {
        Self { source: Arc::clone(source), content: Arc::new(content(source, text)) }
    }

    /// Returns a file that cannot be read, so that its Peers are unknown.
    pub fn unread(source: &Arc<str>) -> Self {
        let unread = Other { spot: Spot::default(), what: What::Broken(Vec::new()) };
        Self {
            source: Arc::clone(source),
            content: Arc::new(Content { peers: Vec::new(), others: vec![unread] }),
        }
    }

    /// Returns a file with nothing but Peers.
    pub fn of_peers(source: &Arc<str>, peers: Vec<Applied>) -> Self {
        let others = Vec::new();
        Self { source: Arc::clone(source), content: Arc::new(Content { peers, others }) }
    }

    /// Reads files, given by name and text, each text once: what many clusters get is the same.
    pub fn read_all(files: &[(Arc<str>, Arc<str>)]) -> Vec<Self> {
        let mut known: BTreeMap<&str, Arc<Content>> = BTreeMap::new();
        let mut read = Vec::with_capacity(files.len());
        for (source, text) in files {
            let content = match known.get(&**text) {
                Some(content) if content.others.is_empty() => Arc::clone(content),
                // Problems of a file name the file.
                _ => Arc::new(content(source, text)),
            };
            known.entry(text).or_insert_with(|| Arc::clone(&content));
            let source = Arc::clone(source);
            read.push(Self { source, content });
        }
        read
    }

    /// Returns the place of an object of this file.
    pub fn place(&self, spot: &Spot) -> Place {
        Place { pointer: spot.pointer.clone(), ..Place::document(&self.source, spot.document) }
    }

    /// Returns the place of an allowed IP of a Peer of this file, by its index in the spec.
    pub fn allowed_ip(&self, peer: &Applied, index: usize) -> Place {
        let list = self.place(&peer.spot).key("spec").key("allowedIPs");
        list.index(index)
    }
}

fn content(source: &Arc<str>, text: &Arc<str>) -> Content {
    match own(text) {
        Some(peers) => Content { peers, others: Vec::new() },
        None => general(source, text),
    }
}

/// Returns the Peers of a text that clustermesh wrote.
fn own(text: &str) -> Option<Vec<Applied>> {
    let (comment, mut rest) = text.split_once('\n')?;
    let is_printable = comment.bytes().all(|it| matches!(it, b' '..=b'~'));
    (is_printable && comment.starts_with("# ")).then_some(())?;
    let mut peers = Vec::new();
    loop {
        let ParsedPeer { peer, end, .. } = written::read(rest).ok()?;
        peers.push(Applied {
            spot: Spot { document: peers.len(), pointer: Pointer::default() },
            name: peer.name.as_str().to_owned(),
            is_ending: false,
            written: LabelledSpec::default(),
            fields: OptionalFields::of_own(&peer),
            spec: Ok(Translation::of_own(&peer)),
            claims: Claims { source: Some(peer.cluster), mesh: Some(peer.mesh), is_rendered: true },
        });
        rest = rest.get(end..)?;
        if rest.is_empty() {
            return Some(peers);
        }
        rest = rest.strip_prefix("---\n")?;
    }
}

/// Reads any text.
fn general(source: &Arc<str>, text: &Arc<str>) -> Content {
    let mut content = Content::default();
    match objects(source, text) {
        Ok(objects) => {
            for (spot, value) in &objects {
                content.add(spot.clone(), value);
            }
        }
        Err(broken) => {
            let Broken { problems, .. } = *broken;
            let spot = Spot::default();
            let what = What::Broken(problems);
            content.others.push(Other { spot, what });
        }
    }
    content
}

/// Returns the documents of a text: JSON as such, everything else as YAML.
fn objects(source: &Arc<str>, text: &Arc<str>) -> Result<Vec<(Spot, Value)>, Box<Broken>> {
    let json = text.trim_start_matches('\u{feff}');
    if json.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(json)
    {
        return Ok(vec![(Spot::default(), value)]);
    }
    let source = Source::parse(Arc::clone(source), Arc::clone(text))?;
    let documents = source.documents.iter().enumerate().filter(|(_, node)| !node.is_null());
    let objects = documents.map(|(document, node)| {
        let pointer = Pointer::default();
        (Spot { document, pointer }, node.to_json())
    });
    Ok(objects.collect())
}

/// Returns whether an object is a list, as an API server or kubectl makes it.
fn is_list(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str);
    let items = value.get("items");
    matches!(kind, Some("List" | "PeerList"))
        && items.is_none_or(|it| it.is_array() || it.is_null())
}

/// Returns whether an object is a Peer. The items of a typed list may leave their kind out.
fn is_peer(value: &Value, is_typed: bool) -> bool {
    let is = |key: &str, wanted: &str| match value.get(key) {
        None => is_typed && value.is_object(),
        Some(found) => found == wanted,
    };
    is("apiVersion", API_VERSION) && is("kind", "Peer")
}

impl Applied {
    /// Returns the ranges of its allowed IPs, in their order; none of a Peer that no agent reads.
    pub fn networks(&self) -> Vec<Cidr> {
        let spec = self.spec.as_ref().ok();
        spec.map(Translation::networks).unwrap_or_default()
    }

    fn new(spot: Spot, name: String, is_ending: bool, loose: LoosePeer) -> Self {
        Self {
            spot,
            name,
            claims: Claims {
                source: loose.cluster(),
                mesh: loose.mesh().and_then(|it| it.parse().ok()),
                is_rendered: loose.is_rendered(),
            },
            is_ending,
            spec: loose.translation(),
            fields: OptionalFields::of_manifest(loose.spec),
            written: LabelledSpec(Some(Arc::new((loose.labels.clone(), loose.spec.clone())))),
        }
    }
}

impl Content {
    /// Adds an object, or what is in it if it is a list.
    fn add(&mut self, spot: Spot, value: &Value) {
        if !is_list(value) {
            return self.add_object(spot, value, false);
        }
        let is_typed = value.get("kind").is_some_and(|kind| kind == "PeerList");
        let list = spot.pointer.key("items");
        let items = value.get("items").and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            let pointer = list.index(index);
            let document = spot.document;
            self.add_object(Spot { document, pointer }, item, is_typed);
        }
    }

    fn add_object(&mut self, spot: Spot, value: &Value, is_typed: bool) {
        if !is_peer(value, is_typed) {
            let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
            let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
            let what = What::Kind { api_version, kind };
            return self.others.push(Other { spot, what });
        }
        let name = value.pointer("/metadata/name").and_then(Value::as_str);
        let Some(name) = name.filter(|name| name::is_dns_subdomain(name)) else {
            let what = What::Name(name.map(str::to_owned));
            return self.others.push(Other { spot, what });
        };
        let deleted = value.pointer("/metadata/deletionTimestamp");
        let is_ending = deleted.is_some_and(|it| !it.is_null());
        let loose = LoosePeer::new(value);
        let peer = Applied::new(spot, name.to_owned(), is_ending, loose);
        self.peers.push(peer);
    }
}

#[cfg(test)]
mod tests;
