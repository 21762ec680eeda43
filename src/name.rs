//! Names: what clusters, meshes, nodes and Peers are called, as Kubernetes allows it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The longest name of a Kubernetes object, in bytes.
const SUBDOMAIN_LIMIT: usize = 253;

/// The longest label value and the longest DNS label, in bytes.
const LABEL_LIMIT: usize = 63;

/// The characters of a hash at the end of a name, with its dash.
const HASH: usize = 17;

/// The beginning of the names of external peers among those of clusters, which have no dots.
const EXTERNAL: &str = "external.";

/// The number of bytes of an overlong Peer name that stay before its hash.
const PEER_NAME_HEAD: usize = 236;

/// The name of a cluster: a DNS-1123 label, unique within a mesh. A host outside of all clusters is one with a name
/// that no cluster can have: `external.NAME`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ClusterName(String);

/// The name of a mesh: a DNS-1123 subdomain short enough for a label value.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct MeshName(String);

/// The name of a node: a DNS-1123 subdomain.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeName(String);

/// The common name of a source cluster's Peers in a mesh: `<mesh>--<cluster>`.
///
/// It is the beginning of their names and the stem of their file.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerSetName(String);

/// The name of a namespace: a DNS-1123 label.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Namespace(String);

/// The name of a Service, with its namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ServiceName {
    /// The namespace.
    pub namespace: Namespace,
    /// A DNS-1035 label.
    name: String,
}

/// The name of a Peer object, bit for bit the operator's.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeerName(String);

/// The reason why a text is not a name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NameError {
    /// Nothing at all.
    #[error("the name is empty")]
    Empty,
    /// More bytes than Kubernetes takes.
    #[error("the name has {length} characters, more than the limit of {limit}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A character that does not belong there.
    #[error("expected {0}")]
    Alphabet(&'static str),
}

impl FromStr for ClusterName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        within(text, LABEL_LIMIT)?;
        if !is_dns_part(text) {
            return Err(NameError::Alphabet(
                "lowercase letters, digits and inner dashes (a DNS-1123 label)",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl ClusterName {
    /// Returns the name of an external peer, which is a DNS-1123 label in its mesh.
    ///
    /// # Errors
    /// As for a cluster.
    pub fn of_external(name: &str) -> Result<Self, NameError> {
        let Self(name) = name.parse()?;
        Ok(Self(format!("{EXTERNAL}{name}")))
    }

    /// Reads the name of a cluster, or of an external peer as it is called among clusters.
    ///
    /// # Errors
    /// As for a cluster.
    pub fn of_member(text: &str) -> Result<Self, NameError> {
        match text.strip_prefix(EXTERNAL) {
            Some(name) => Self::of_external(name),
            None => text.parse(),
        }
    }

    /// Returns the name of an external peer in its mesh; none for a cluster.
    pub fn external(&self) -> Option<&str> {
        self.0.strip_prefix(EXTERNAL)
    }

    /// Returns whether a text is written as the name of an external peer.
    pub fn is_external_text(text: &str) -> bool {
        Self::of_member(text).is_ok_and(|it| it.is_external())
    }

    /// Returns whether it is an external peer and not a cluster.
    pub fn is_external(&self) -> bool {
        self.external().is_some()
    }
}

impl FromStr for MeshName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        // The name becomes a label value on every Peer.
        subdomain(text, LABEL_LIMIT)?;
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for NodeName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        subdomain(text, SUBDOMAIN_LIMIT)?;
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let ClusterName(label) = text.parse()?;
        Ok(Self(label))
    }
}

impl Namespace {
    /// Returns whether it belongs to Kubernetes itself, which reserves the prefix `kube-`.
    pub fn is_of_kubernetes(&self) -> bool {
        self.0.starts_with("kube-")
    }
}

impl ServiceName {
    /// Returns the name of a Service.
    ///
    /// # Errors
    /// Before Kubernetes 1.34, API servers refuse other names than DNS-1035 labels.
    pub fn new(namespace: Namespace, name: &str) -> Result<Self, NameError> {
        within(name, LABEL_LIMIT)?;
        if !is_dns_part(name) || name.starts_with(|it: char| it.is_ascii_digit()) {
            return Err(NameError::Alphabet(
                "a lowercase letter, then lowercase letters, digits and inner dashes (a DNS-1035 label)",
            ));
        }
        let name = name.to_owned();
        Ok(Self { namespace, name })
    }

    /// Returns the name in its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is that of the API server of the cluster that has it.
    pub fn is_of_api_server(&self) -> bool {
        self.namespace.0 == "default" && self.name == "kubernetes"
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl PeerSetName {
    /// Returns the common beginning of the names of `cluster`'s Peers in `mesh`.
    pub fn new(mesh: &MeshName, cluster: &ClusterName) -> Self {
        Self(format!("{mesh}--{cluster}"))
    }
}

impl FromStr for PeerName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        subdomain(text, SUBDOMAIN_LIMIT)?;
        Ok(Self(text.to_owned()))
    }
}

impl PeerName {
    /// Returns the name of the Peer of `node`. An external peer has one node.
    pub fn new(mesh: &MeshName, cluster: &ClusterName, node: &NodeName) -> Self {
        if cluster.is_external() {
            return Self(PeerSetName::new(mesh, cluster).0);
        }
        let raw = format!("{mesh}--{cluster}--{node}");
        if raw.len() <= SUBDOMAIN_LIMIT {
            // Three names in their own right need no mending; only length is left.
            return Self(raw);
        }
        Self(peer_name(mesh.as_str(), cluster.as_str(), node.as_str()))
    }
}

/// Returns whether a Peer's name is one that a mesh of this name gives.
pub fn is_peer_of(mesh: &str, peer: &str) -> bool {
    let rest = peer.strip_prefix(mesh);
    rest.is_some_and(|rest| rest.starts_with("--"))
}

/// Returns the name of an object that delivers the Peers of a cluster: `clustermesh-` and the cluster, shortened if it does
/// not fit into a label. Flux writes it into a label of every Peer.
pub fn delivery_name(cluster: &ClusterName) -> String {
    let name = format!("clustermesh-{cluster}");
    // A name that looks like a shortened one could be that of another cluster.
    let end = cluster.as_str().rsplit_once('-').map_or("", |it| it.1);
    let is_like_hash = end.len() + 1 == HASH && end.bytes().all(|it| it.is_ascii_hexdigit());
    if name.len() <= LABEL_LIMIT && !is_like_hash {
        return name;
    }
    hashed(&name, &name, name.len().min(LABEL_LIMIT - HASH))
}

/// Returns the beginning of a name, with the hash of a text.
fn hashed(name: &str, text: &str, head: usize) -> String {
    let head = name[..head].trim_end_matches(['-', '.']);
    let digest = Sha256::digest(text.as_bytes());
    let mut hash = [0; 8];
    hash.copy_from_slice(&digest[..8]);
    format!("{head}-{:016x}", u64::from_be_bytes(hash))
}

/// Returns the operator's Peer name for three texts of any kind (its `PeerName`).
///
/// Names that this crate accepts give a DNS-1123 subdomain; others may not.
pub fn peer_name(mesh: &str, cluster: &str, node: &str) -> String {
    let raw = format!("{mesh}--{cluster}--{node}");
    let mut name: String = raw.chars().map(lower).map(dash_unless_dns).collect();
    name = trimmed(&name).to_owned();
    if name.len() <= SUBDOMAIN_LIMIT {
        return name;
    }
    hashed(&name, &raw, PEER_NAME_HEAD)
}

/// Returns whether `text` is a DNS-1123 label: what namespaces are called.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_LIMIT && is_dns_part(text)
}

/// Returns the DNS-1123 label that was probably meant by a text that is not one: without capitals, quotes, spaces and a comment.
pub fn nearest_label(text: &str) -> Option<String> {
    let is_foreign = |it: char| !it.is_ascii_alphanumeric() && it != '.';
    let (text, _) = text.split_once('#').unwrap_or((text, ""));
    let parts = text.split(is_foreign).filter(|it| !it.is_empty());
    let label = parts.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let is_name = label.starts_with(|it: char| it.is_ascii_lowercase()) && is_dns_label(&label);
    is_name.then_some(label)
}

/// Returns whether `text` is a lowercase RFC 1123 subdomain as Kubernetes checks it.
///
/// As there, single labels may be longer than 63 characters.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LIMIT && text.split('.').all(is_dns_part)
}

/// Returns whether `text` is a valid label value, which may be empty.
pub fn is_label_value(text: &str) -> bool {
    text.len() <= LABEL_LIMIT && (text.is_empty() || is_qualified_part(text))
}

/// Returns whether `text` is a valid label key: `[prefix/]name`.
pub fn is_label_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_dns_subdomain) && name.len() <= LABEL_LIMIT && is_qualified_part(name)
}

fn within(text: &str, limit: usize) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty),
        length if limit < length => Err(NameError::TooLong { length, limit }),
        _ => Ok(()),
    }
}

fn subdomain(text: &str, limit: usize) -> Result<(), NameError> {
    within(text, limit)?;
    if !is_dns_subdomain(text) {
        return Err(NameError::Alphabet(
            "lowercase letters, digits, inner dashes and dots (a DNS-1123 subdomain)",
        ));
    }
    Ok(())
}

fn is_dns_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.iter().all(inner)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Lowers one code point the simple way: one in, one out, no context (Go's `unicode.ToLower`).
fn lower(character: char) -> char {
    // Only U+0130 has a longer full mapping; its simple one is `i`.
    if character == '\u{130}' {
        return 'i';
    }
    character.to_lowercase().next().unwrap_or(character)
}

fn dash_unless_dns(character: char) -> char {
    match character {
        'a'..='z' | '0'..='9' | '.' | '-' => character,
        _ => '-',
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(['-', '.'])
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

texts!(ClusterName, MeshName, Namespace, NodeName, PeerSetName, PeerName);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_cluster_is_a_dns_label() {
        assert!("a--b".parse::<ClusterName>().is_ok());
        for bad in ["", "A", "a.b", "-a", "a-", "a_b", "ä", &"a".repeat(64)] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad}");
        }
    }

    /// Flux writes it into a label.
    #[test]
    fn the_name_of_a_delivery_fits_a_label() {
        let named = |length: usize| {
            let cluster = "c".repeat(length).parse::<ClusterName>().unwrap();
            delivery_name(&cluster)
        };
        assert_eq!(named(51), format!("clustermesh-{}", "c".repeat(51)));
        let long: BTreeSet<String> = (52..=63).map(named).collect();
        assert_eq!(long.len(), 12, "{long:?}");
        assert!(long.iter().all(|it| is_dns_label(it) && it.starts_with("clustermesh-c")));
    }

    #[test]
    fn a_mesh_fits_a_label_value() {
        assert!("prod.eu".parse::<MeshName>().is_ok());
        assert!("m".repeat(63).parse::<MeshName>().is_ok());
        assert!("m".repeat(64).parse::<MeshName>().is_err());
        assert!("a.---b".parse::<MeshName>().is_err());
    }

    #[test]
    fn names_in_their_own_right_stay_as_they_are() {
        let node = "n".repeat(253);
        for node in ["n1", "a.b-c", &node] {
            let name = PeerName::new(
                &"m.x".parse().unwrap(),
                &"c--d".parse().unwrap(),
                &node.parse().unwrap(),
            );
            assert_eq!(name.as_str(), peer_name("m.x", "c--d", node));
        }
    }

    #[test]
    fn label_keys_and_values_are_as_kubernetes_checks_them() {
        assert!(is_label_key("kubernetes.io/os") && is_label_key("Zone"));
        assert!(!is_label_key("a/b/c") && !is_label_key("/b") && !is_label_key(""));
        assert!(is_label_value("") && is_label_value("a_b.C"));
        assert!(!is_label_value("-a") && !is_label_value(&"a".repeat(64)));
    }
}
