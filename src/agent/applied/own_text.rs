//! The very text that we write, read without a parser: a mesh is 100,000 of these.
//!
//! A text that differs from it by a byte is left to the parser.

use super::{Applied, Claims, OptionalFields, Spot};
use crate::kilo::peer::translation::TranslationFault;
use crate::kilo::peer::{Decoded, RawEndpoint, Translation};
use crate::name;
use crate::place::Pointer;

/// The beginning of every Peer that clustermesh writes.
const HEAD: &str = "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: clustermesh\n    kilo-clustermesh.io/mesh: ";

/// Returns the Peers of a text that clustermesh wrote.
pub(super) fn peers(text: &str) -> Option<Vec<Applied>> {
    let (comment, mut rest) = text.split_once('\n')?;
    if !comment.starts_with("# ") || !comment.bytes().all(is_printable) {
        return None;
    }
    let mut peers = Vec::new();
    loop {
        let peer;
        (peer, rest) = self::peer(rest, peers.len())?;
        peers.push(peer);
        if rest.is_empty() {
            return Some(peers);
        }
        rest = rest.strip_prefix("---\n")?;
    }
}

fn peer(text: &str, document: usize) -> Option<(Applied, &str)> {
    let (_, rest) = scalar(text.strip_prefix(HEAD)?)?;
    let (source, rest) = field(rest, "    kilo-clustermesh.io/source-cluster: ")?;
    let (name, rest) = field(rest, "  name: ")?;
    if !name::is_dns_subdomain(name) {
        return None;
    }
    let (spec, rest) = spec(rest)?;
    let pointer = Pointer::default();
    let applied = Applied {
        spot: Spot { document, pointer },
        name: name.to_owned(),
        claims: Claims {
            source: source.parse().ok(),
            is_rendered: true,
        },
        is_ending: false,
        fields: OptionalFields::of_own(&spec),
        spec: Translation::from_spec(&spec).map_err(TranslationFault::Ignored),
    };
    Some((applied, rest))
}

fn spec(text: &str) -> Option<(Decoded<'_>, &str)> {
    let mut rest = text.strip_prefix("spec:\n  allowedIPs:\n")?;
    let mut allowed_ips = Vec::with_capacity(4);
    while let Some(item) = rest.strip_prefix("  - ") {
        let allowed;
        (allowed, rest) = quoted(item)?;
        allowed_ips.push(allowed);
    }
    if allowed_ips.is_empty() {
        return None;
    }
    let mut endpoint = None;
    if let Some(inner) = rest.strip_prefix("  endpoint:\n    dnsOrIP:\n") {
        let (read, after) = self::endpoint(inner)?;
        (endpoint, rest) = (Some(read), after);
    }
    let mut keepalive = 0;
    if let Some(inner) = rest.strip_prefix("  persistentKeepalive: ") {
        let (read, after) = number(inner)?;
        (keepalive, rest) = (i64::from(read), after);
    }
    let (public_key, rest) = field(rest, "  publicKey: ")?;
    let spec = Decoded {
        allowed_ips,
        endpoint,
        keepalive,
        public_key,
        preshared_key: "",
    };
    Some((spec, rest))
}

fn endpoint(text: &str) -> Option<(RawEndpoint<'_>, &str)> {
    let (mut ip, mut dns) = ("", "");
    let rest;
    if let Some(inner) = text.strip_prefix("      ip: ") {
        (ip, rest) = scalar(inner)?;
    } else {
        (dns, rest) = field(text, "      dns: ")?;
    }
    let (port, rest) = number(rest.strip_prefix("    port: ")?)?;
    let port = u32::from(port);
    Some((RawEndpoint { dns, ip, port }, rest))
}

/// Returns the scalar behind `key`, and what follows the line.
fn field<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    scalar(text.strip_prefix(key)?)
}

/// Returns a text that needs no reader to be understood, and what follows the line.
fn scalar(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('"') {
        return quoted(text);
    }
    let (word, rest) = text.split_once('\n')?;
    is_plain(word).then_some((word, rest))
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    let end = inner.bytes().position(|byte| !is_harmless(byte))?;
    let (word, rest) = inner.split_at_checked(end)?;
    Some((word, rest.strip_prefix("\"\n")?))
}

fn number(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_once('\n')?;
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (!digits.starts_with('0') || digits == "0");
    let number = digits.parse().ok()?;
    is_canonical.then_some((number, rest))
}

/// Words that some reader takes for something else than themselves.
const TYPED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

fn is_plain(word: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"._/-".contains(byte);
    let bytes = word.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(inner)
        && !TYPED.iter().any(|typed| typed.eq_ignore_ascii_case(word))
}

fn is_harmless(byte: u8) -> bool {
    is_printable(byte) && !matches!(byte, b'"' | b'\\')
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}
