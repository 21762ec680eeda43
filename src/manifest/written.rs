//! The form in which we write a Peer, read back: strictly, and quickly.

use std::net::IpAddr;

use super::old_peer::OldPeer;
use super::{MESH_LABEL, SOURCE_LABEL, push_peer};
use crate::kilo::peer::{EndpointFlaw, Peer};
use crate::net::Cidr;
use crate::wireguard::{Endpoint, Host, Keepalive};

/// The lines of a document.
struct Lines<'a> {
    text: &'a str,
    /// The start of the next line.
    next: usize,
    /// Up to where it was looked at last.
    seen: usize,
}

/// Reads a document that is byte for byte what we write for the Peer in it.
///
/// # Errors
/// The place of the first difference.
pub(super) fn peer(text: &str) -> Result<OldPeer, usize> {
    let mut lines = Lines {
        text,
        next: 0,
        seen: 0,
    };
    let Some((peer, name)) = lines.peer() else {
        return Err(lines.seen);
    };
    let mut again = String::with_capacity(text.len());
    push_peer(&mut again, &peer);
    if again != text {
        let pairs = again.bytes().zip(text.bytes());
        return Err(pairs.take_while(|(a, b)| a == b).count());
    }
    Ok(OldPeer {
        name: peer.name.as_str().to_owned(),
        source: Some(peer.cluster.as_str().to_owned()),
        key: Some(*peer.key.as_bytes()),
        ranges: peer.allowed_ips,
        endpoint_flaw: EndpointFlaw::find(peer.endpoint.as_ref(), peer.keepalive.is_some()),
        bytes: name,
    })
}

impl<'a> Lines<'a> {
    /// Returns the Peer, and where its name is.
    fn peer(&mut self) -> Option<(Peer, std::ops::Range<usize>)> {
        self.exactly("apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  labels:\n")?;
        self.exactly("    app.kubernetes.io/managed-by: clustermesh\n    ")?;
        let mesh = self.field(MESH_LABEL)?.parse().ok()?;
        self.exactly("    ")?;
        let cluster = self.field(SOURCE_LABEL)?.parse().ok()?;
        let start = self.next + "  name: ".len();
        let name = self.field("  name")?;
        let bytes = start..self.next - 1;
        let name = name.parse().ok()?;
        self.exactly("spec:\n  allowedIPs:\n")?;
        let mut allowed_ips: Vec<Cidr> = Vec::new();
        while let Some(item) = self.after("  - \"") {
            allowed_ips.push(item.strip_suffix('"')?.parse().ok()?);
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
                Some(seconds) => Some(Keepalive(seconds.parse().ok()?)),
                None => None,
            },
            key: self.field("  publicKey")?.parse().ok()?,
        };
        self.seen = self.next;
        (self.next == self.text.len()).then_some((peer, bytes))
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let host = match self.field("      ip") {
            Some(text) => Host::Ip(text.parse::<IpAddr>().ok()?),
            None => Host::Dns(self.field("      dns")?.to_owned()),
        };
        host.check().ok()?;
        let port = self.after("    port: ")?.parse().ok()?;
        Some(Endpoint { host, port })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.next..).unwrap_or_default()
    }

    fn exactly(&mut self, expected: &str) -> Option<()> {
        let pairs = self.rest().bytes().zip(expected.bytes());
        let alike = pairs.take_while(|(a, b)| a == b).count();
        self.seen = self.next + alike;
        (alike == expected.len()).then(|| self.next = self.seen)
    }

    /// Returns what stands behind the beginning of a line, and goes on to the next.
    fn after(&mut self, beginning: &str) -> Option<&'a str> {
        self.seen = self.next;
        let rest = self.rest().strip_prefix(beginning)?;
        let line = rest.get(..rest.find('\n')?)?;
        self.next += beginning.len() + line.len() + 1;
        Some(line)
    }

    /// Returns a value, without quotes. None that we write needs an escape.
    fn field(&mut self, key: &str) -> Option<&'a str> {
        self.seen = self.next;
        let rest = self.rest().strip_prefix(key)?;
        rest.starts_with(": ").then_some(())?;
        self.next += key.len();
        let value = self.after(": ")?;
        let quoted = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        Some(quoted.unwrap_or(value))
    }
}
