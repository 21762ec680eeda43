//! Readings: rendered files as they stand, which Peers are in them, and what of that is not ours.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize as _;
use serde_json::Value;

use super::old_peer::OldPeer;
use crate::diagnostic::Finding;
use crate::document::{Source, TreeNode};
use crate::kilo::peer::loose::LoosePeer;
use crate::kilo::peer::translation::TranslationFault;
use crate::kilo::peer::written::ParsedPeer;
use crate::kilo::peer::{EndpointFlaw, Translation, written};
use crate::name::{is_dns_subdomain, is_label_value};
use crate::yaml::HEADER;

/// A file of Peers as it stands.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reading {
    /// Its Peers, in its order.
    pub peers: Vec<OldPeer>,
    /// The parts that clustermesh would not write like this.
    pub oddities: Vec<Oddity>,
}

/// A part of a file that clustermesh would not write like this.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Oddity {
    /// clustermesh would now write these Peers in another form.
    Edited {
        /// The line.
        bytes: Range<usize>,
    },
    /// Lines end with a carriage return, as git may make them on Windows.
    Returns,
    /// No Peer at all.
    NoPeer,
    /// An invalid document.
    Unreadable {
        /// The place of the error.
        bytes: Range<usize>,
        /// The reason, harmless to print.
        problem: String,
    },
    /// A Peer that Kubernetes or Kilo does not take.
    Refused {
        /// Its name.
        peer: String,
        /// Its place.
        bytes: Range<usize>,
        /// The reason.
        why: Unfit,
    },
    /// A text that Flux takes for a variable.
    Variable {
        /// Its place.
        bytes: Range<usize>,
    },
}

/// The reason why a Peer is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unfit {
    /// Its name is not valid for an object.
    Name,
    /// The value of this label is invalid.
    Label(String),
    /// The reason why its spec is never configured in WireGuard.
    Spec(TranslationFault),
}

/// The maximum number of documents in a file. Kilo cannot handle a target with this many Peers.
const DOCUMENTS: usize = 100_000;

/// The separator of generated documents.
const SEPARATOR: &str = "---\n";

/// Reads a file of Peers with any content.
pub fn reading(text: &str) -> Reading {
    let mut reading = Reading::default();
    if text.contains('\r') {
        let unix = text.replace("\r\n", "\n");
        let mut read = read(&unix);
        if read.oddities.is_empty() {
            read.oddities.push(Oddity::Returns);
            // The bytes refer to the text without `\r`, not to the file.
            read.peers.iter_mut().for_each(|peer| peer.bytes = 0..0);
            return read;
        }
    }
    if let Some(start) = text.find("${") {
        let bytes = line_at(text, start);
        reading.oddities.push(Oddity::Variable { bytes });
    }
    let Reading { peers, oddities } = read(text);
    reading.peers = peers;
    reading.oddities.extend(oddities);
    reading
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let body = text.strip_prefix(HEADER).and_then(|it| it.strip_prefix('\n'));
    let mut start = body.map_or(0, |body| text.len() - body.len());
    let mut edited = body.is_none().then(|| line_at(text, 0));
    let mut seen = 0;
    while start < text.len() {
        if seen == DOCUMENTS {
            let problem = format!("more than {DOCUMENTS} documents in one file");
            let bytes = line_at(text, start);
            reading.oddities.push(Oddity::Unreadable { bytes, problem });
            return reading;
        }
        seen += 1;
        let document = document(&text[start..]);
        match own(document) {
            Ok(mut peer) => {
                peer.bytes = peer.bytes.start + start..peer.bytes.end + start;
                reading.peers.push(peer);
            }
            Err(offset) => {
                edited.get_or_insert_with(|| line_at(text, start + offset));
                loose(&mut reading, document, start);
            }
        }
        start += document.len();
        if let Some(rest) = text[start..].strip_prefix(SEPARATOR) {
            start = text.len() - rest.len();
            if rest.is_empty() {
                edited.get_or_insert_with(|| line_at(text, text.len()));
            }
        }
    }
    let is_unread = |it: &Oddity| matches!(it, Oddity::Unreadable { .. });
    if reading.peers.is_empty() && !reading.oddities.iter().any(is_unread) {
        reading.oddities.push(Oddity::NoPeer);
    } else if let Some(bytes) = edited {
        reading.oddities.insert(0, Oddity::Edited { bytes });
    }
    reading
}

/// Reads a document that is byte for byte what we write for the Peer in it.
///
/// # Errors
/// The place of the first difference.
fn own(text: &str) -> Result<OldPeer, usize> {
    let ParsedPeer { peer, name, .. } = written::read(text)?;
    let mut again = String::with_capacity(text.len());
    peer.push_to(&mut again);
    if again != text {
        let pairs = again.bytes().zip(text.bytes());
        return Err(pairs.take_while(|(a, b)| a == b).count());
    }
    Ok(OldPeer {
        name: peer.name.as_str().to_owned(),
        source: Some(peer.cluster.as_str().to_owned()),
        key: Some(*peer.key.as_bytes()),
        ranges: peer.allowed_ips,
        dialled: peer.endpoint.as_ref().map(|it| it.host.clone()),
        endpoint_flaw: EndpointFlaw::find(peer.endpoint.as_ref(), peer.keepalive.is_some()),
        bytes: name,
    })
}

/// Returns the text up to the next line that ends a document.
fn document(text: &str) -> &str {
    if text.starts_with(SEPARATOR) {
        return "";
    }
    let end = text.find("\n---\n").map_or(text.len(), |end| end + 1);
    text.get(..end).unwrap_or(text)
}

/// Returns the line around a byte, without its indentation and its end.
fn line_at(text: &str, offset: usize) -> Range<usize> {
    let offset = offset.min(text.len());
    let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |end| offset + end);
    let line = text.get(start..end).unwrap_or_default();
    end - line.trim_start_matches(' ').len()..end
}

/// Reads a text that clustermesh did not write, which may be more than one document.
fn loose(reading: &mut Reading, text: &str, start: usize) {
    let source = match Source::parse("", text) {
        Ok(source) => source,
        Err(broken) => {
            let problem = broken.problems.first();
            let place = problem.and_then(|it| it.labels.first());
            let bytes = place.and_then(|label| broken.source.locate(&label.place)).unwrap_or(0..0);
            let message = |it: &Finding| it.message.to_string();
            reading.oddities.push(Oddity::Unreadable {
                bytes: start + bytes.start..start + bytes.end,
                problem: problem.map(message).unwrap_or_default(),
            });
            return;
        }
    };
    let values = serde_yaml::Deserializer::from_str(text)
        .map_while(|document| Value::deserialize(document).ok());
    for (node, value) in source.documents.iter().zip(values) {
        // Other objects are not Peers, and do not belong here either: the file was edited.
        let is_peer = value.get("kind").is_none_or(|kind| kind == "Peer");
        if value.is_object() && is_peer {
            old_peer(reading, node, &value, start);
        }
    }
}

/// Returns whether a name is that of the Peer of an external peer.
fn is_of_set(name: Option<&str>, source: &str) -> bool {
    name.is_some_and(|it| it.ends_with(&format!("--{source}")))
}

fn old_peer(reading: &mut Reading, node: &TreeNode, value: &Value, start: usize) {
    let metadata = node.get("metadata");
    let name = metadata.and_then(|it| it.get("name"));
    let bytes = name.unwrap_or(node).span.clone();
    let name = value.pointer("/metadata/name").and_then(Value::as_str);
    let loose = LoosePeer::new(value);
    let spec = loose.translation();
    let peer = OldPeer {
        name: name.unwrap_or_default().to_owned(),
        // With the label of an external peer, the Peers of a cluster could be removed as if a person had removed them.
        source: loose
            .source()
            .filter(|it| !it.starts_with("external.") || is_of_set(name, it))
            .map(Cow::into_owned),
        key: loose.key(),
        ranges: loose.ranges().collect(),
        endpoint_flaw: spec.as_ref().ok().and_then(Translation::endpoint_flaw),
        dialled: spec.as_ref().ok().and_then(|it| Some(it.dialled()?.host.clone())),
        bytes: start + bytes.start..start + bytes.end,
    };
    let bad_label = loose.labels.as_object().into_iter().flatten().find(|(_, value)| {
        let text = value.as_str();
        !text.is_some_and(is_label_value)
    });
    let fault = spec.err();
    let why = match (bad_label, fault) {
        _ if !is_dns_subdomain(&peer.name) => Some(Unfit::Name),
        (Some((key, _)), _) => Some(Unfit::Label(key.clone())),
        (None, fault) => fault.map(Unfit::Spec),
    };
    if let Some(why) = why {
        reading.oddities.push(Oddity::Refused {
            peer: peer.name.clone(),
            bytes: peer.bytes.clone(),
            why,
        });
    }
    reading.peers.push(peer);
}

#[cfg(test)]
mod tests;
