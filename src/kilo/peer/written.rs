//! The form in which clustermesh writes a Peer, and its strict reader, which needs no parser: a mesh is 100,000 of these.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::ops::Range;

use super::{EXTERNAL_LABEL, MESH_LABEL, Peer, SOURCE_LABEL};
use crate::name::{ClusterName, PeerName, PeerSetName};
use crate::net::{Cidr, Interface};
use crate::wireguard::{Endpoint, Host, Keepalive};
use crate::yaml;

/// The beginning of every written Peer.
const HEAD: &str = "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  labels:\n";

/// A Peer that was read from the form in which we write it.
#[derive(Clone, Debug)]
pub struct ParsedPeer {
    /// The Peer.
    pub peer: Peer,
    /// The place of its name in the text.
    pub name: Range<usize>,
    /// The place behind it in the text.
    pub end: usize,
}

impl Peer {
    /// Writes the Peer with its keys in the order in which `kustomize build` writes them.
    pub fn push_to(&self, text: &mut String) {
        text.push_str(HEAD);
        for (label, value) in self.labels() {
            text.push_str("    ");
            push_field(text, label, value);
        }
        push_field(text, "  name", self.name.as_str());
        text.push_str("spec:\n  allowedIPs:\n");
        for cidr in &self.allowed_ips {
            // Nothing in a range needs escaping. Writing into a `String` cannot fail.
            let _ = writeln!(text, "  - \"{cidr}\"");
        }
        if let Some(endpoint) = &self.endpoint {
            text.push_str("  endpoint:\n    dnsOrIP:\n");
            match &endpoint.host {
                Host::Ip(address) => push_field(text, "      ip", &address.to_string()),
                Host::Dns(name) => push_field(text, "      dns", name),
            }
            push_number(text, "    port", endpoint.port.get());
        }
        if let Some(keepalive) = self.keepalive {
            push_number(text, "  persistentKeepalive", keepalive.0.get());
        }
        push_field(text, "  publicKey", &self.key.to_string());
    }
}

fn push_field(text: &mut String, key: &str, value: &str) {
    text.push_str(key);
    text.push_str(": ");
    yaml::push_scalar(text, value);
    text.push('\n');
}

fn push_number(text: &mut String, key: &str, value: u16) {
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "{key}: {value}");
}

/// Reads the Peer at the beginning of a text, if it has our form. Ranges and addresses may be written in another way that
/// Kilo reads alike.
///
/// # Errors
/// The place in the first line that has another form.
pub fn read(text: &str) -> Result<ParsedPeer, usize> {
    let mut lines = Lines { text, next: 0, seen: 0 };
    lines.peer().ok_or(lines.seen)
}

/// The lines of a text.
struct Lines<'a> {
    text: &'a str,
    /// The start of the next line.
    next: usize,
    /// Up to where it was looked at last.
    seen: usize,
}

impl<'a> Lines<'a> {
    fn peer(&mut self) -> Option<ParsedPeer> {
        self.exactly(HEAD)?;
        self.exactly("    app.kubernetes.io/managed-by: clustermesh\n    ")?;
        let external = self.field(EXTERNAL_LABEL);
        if external.is_some() {
            self.exactly("    ")?;
        }
        let mesh = self.field(MESH_LABEL)?.parse().ok()?;
        let cluster = if let Some(name) = external {
            ClusterName::of_external(name).ok()?
        } else {
            self.exactly("    ")?;
            self.field(SOURCE_LABEL)?.parse().ok()?
        };
        let start = self.next + "  name: ".len();
        let name: PeerName = self.field("  name")?.parse().ok()?;
        // The Peer of a cluster with the label of an external peer is not what clustermesh writes.
        if external.is_some() && name.as_str() != PeerSetName::new(&mesh, &cluster).as_str() {
            return None;
        }
        let place = start..self.next - 1;
        self.exactly("spec:\n  allowedIPs:\n")?;
        let mut allowed_ips: Vec<Cidr> = Vec::new();
        while let Some(item) = self.after("  - \"") {
            let range: Interface = item.strip_suffix('"')?.parse().ok()?;
            // Kilo keeps host bits.
            allowed_ips.push(range.is_network().then_some(range.network)?);
        }
        let peer = Peer {
            name,
            mesh,
            cluster,
            allowed_ips: Some(allowed_ips).filter(|it| !it.is_empty())?,
            endpoint: match self.exactly("  endpoint:\n    dnsOrIP:\n") {
                Some(()) => Some(self.endpoint()?),
                None => None,
            },
            keepalive: match self.after("  persistentKeepalive: ") {
                Some(seconds) => Some(Keepalive(number(seconds)?)),
                None => None,
            },
            key: self.field("  publicKey")?.parse().ok()?,
        };
        Some(ParsedPeer { peer, name: place, end: self.next })
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let host = if let Some(text) = self.field("      ip") {
            Host::Ip(text.parse::<IpAddr>().ok()?.to_canonical())
        } else {
            let name = self.field("      dns")?;
            // Kilo takes an address that is given as a name for an address.
            name.parse::<IpAddr>().is_err().then_some(())?;
            Host::Dns(name.to_owned())
        };
        host.check().ok()?;
        let port = number(self.after("    port: ")?)?;
        Some(Endpoint { host, port })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.next..).unwrap_or_default()
    }

    fn exactly(&mut self, expected: &str) -> Option<()> {
        let rest = self.rest();
        if rest.starts_with(expected) {
            self.next += expected.len();
            self.seen = self.next;
            return Some(());
        }
        let pairs = rest.bytes().zip(expected.bytes());
        self.seen = self.next + pairs.take_while(|(a, b)| a == b).count();
        None
    }

    /// Returns what stands behind the beginning of a line, and goes on to the next.
    fn after(&mut self, beginning: &str) -> Option<&'a str> {
        self.seen = self.next;
        let rest = self.rest().strip_prefix(beginning)?;
        let line = rest.get(..rest.find('\n')?)?;
        self.next += beginning.len() + line.len() + 1;
        Some(line)
    }

    /// Returns a value, without quotes.
    fn field(&mut self, key: &str) -> Option<&'a str> {
        self.seen = self.next;
        self.rest().strip_prefix(key)?.starts_with(": ").then_some(())?;
        self.next += key.len();
        let value = self.after(": ")?;
        let text = value.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(value);
        (yaml::scalar(text) == value).then_some(text)
    }
}

fn number(digits: &str) -> Option<NonZeroU16> {
    let is_canonical = digits.starts_with(|it: char| matches!(it, '1'..='9'));
    digits.parse().ok().filter(|_| is_canonical)
}
