//! WireGuard's own words: keys, endpoints, keepalive.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::name;

/// A Curve25519 public key that a handshake can use: 32 bytes, not zero, not of low order.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublicKey([u8; 32]);

/// The address and port of a WireGuard peer.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Endpoint {
    /// The IP address or DNS name.
    pub host: Host,
    /// The UDP port.
    pub port: NonZeroU16,
}

/// The first half of an [`Endpoint`].
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Host {
    /// An address, never IPv4-mapped.
    Ip(IpAddr),
    /// A name. Kilo requires a lowercase RFC 1123 subdomain, which [`Host::check`] verifies.
    Dns(String),
}

/// Seconds between two keepalive packets; never zero, which would mean off.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Keepalive(pub NonZeroU16);

/// The reason why a text is not a usable public key.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum KeyError {
    /// Not padded standard base64, or not the one way to write these bytes.
    #[error("not canonical base64")]
    Encoding,
    /// Not 32 bytes.
    #[error("{0} bytes instead of 32")]
    Length(usize),
    /// The all-zero key, which Kilo takes for "not there".
    #[error("the all-zero key")]
    Zero,
    /// A point of small order: every handshake with it yields the same secret.
    #[error("a weak key (a point of low order)")]
    LowOrder,
}

/// The reason why a text is not an endpoint.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum EndpointError {
    /// Not `host:port`, with brackets around IPv6.
    #[error("expected `host:port`, with brackets around an IPv6 address")]
    Form,
    /// No port behind the host.
    #[error("the port is missing, as in `203.0.113.1:51820`")]
    NoPort,
    /// Nothing before the port.
    #[error("the host is missing")]
    NoHost,
    /// Not a number from 1 to 65535.
    #[error("`{0}` is not a port from 1 to 65535")]
    Port(String),
    /// An address that no remote host can send to.
    #[error("{address} is {what}, which other clusters cannot dial")]
    Unreachable {
        /// The address.
        address: IpAddr,
        /// The kind of address, with its article.
        what: &'static str,
    },
    /// The endpoint of Peers whose real one is not known.
    #[error("{placeholder} is the placeholder for nodes without an endpoint", placeholder = Endpoint::PLACEHOLDER)]
    Placeholder,
    /// A name that Kilo refuses.
    #[error("`{0}` is neither an IP address nor a lowercase DNS name")]
    Dns(String),
}

impl PublicKey {
    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the bytes that Kilo's agent would read from `text`, usable or not.
    ///
    /// Go's decoder skips line breaks and ignores bits beyond the last byte (`kilo.md` §1.3), so
    /// several texts denote one key. Two keys must be compared in this form.
    pub fn bytes_as_kilo_reads(text: &str) -> Option<[u8; 32]> {
        decoded_as_go_reads(text)?.try_into().ok()
    }
}

/// Returns the one canonical text of a key. Kilo sorts and compares keys by their texts.
pub fn text_of_key(key: &[u8; 32]) -> String {
    STANDARD.encode(key)
}

/// Decodes padded standard base64 like Go: line breaks are skipped, and bits beyond the last byte
/// ignored.
pub fn decoded_as_go_reads(text: &str) -> Option<Vec<u8>> {
    const BREAKS: [char; 2] = ['\r', '\n'];
    if text.contains(BREAKS) {
        return LENIENT.decode(text.replace(BREAKS, "")).ok();
    }
    LENIENT.decode(text).ok()
}

/// Standard padded base64 whose last character may have bits to spare, as Go's.
const LENIENT: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        decoded(text)?.try_into()
    }
}

fn decoded(text: &str) -> Result<[u8; 32], KeyError> {
    let bytes = STANDARD.decode(text).map_err(|_| KeyError::Encoding)?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| KeyError::Length(length))
}

impl TryFrom<[u8; 32]> for PublicKey {
    type Error = KeyError;

    fn try_from(key: [u8; 32]) -> Result<Self, KeyError> {
        if key == [0; 32] {
            return Err(KeyError::Zero);
        }
        if is_low_order(key) {
            return Err(KeyError::LowOrder);
        }
        Ok(Self(key))
    }
}

/// The u-coordinates of Curve25519's points of small order, little-endian, up to the modulus + 1
/// (RFC 7748 §6.1; the list of cr.yp.to/ecdh.html). The top bit is ignored by X25519.
const LOW_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    with_ends(1, 0, 0),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    with_ends(0xec, 0xff, 0x7f),
    with_ends(0xed, 0xff, 0x7f),
    with_ends(0xee, 0xff, 0x7f),
];

const fn with_ends(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

fn is_low_order(mut key: [u8; 32]) -> bool {
    key[31] &= 0x7f;
    LOW_ORDER.contains(&key)
}

impl Host {
    /// Returns whether it is this very address.
    pub fn is(&self, address: IpAddr) -> bool {
        matches!(self, Self::Ip(own) if *own == address)
    }

    /// Returns why no other cluster can send packets there, if so.
    ///
    /// # Errors
    /// An address that is not a unicast one of the wide world or of some network, or a name that
    /// Kilo's admission rules refuse.
    pub fn check(&self) -> Result<(), EndpointError> {
        let address = match self {
            Self::Dns(name) if name::is_dns_subdomain(name) => return Ok(()),
            Self::Dns(name) => return Err(EndpointError::Dns(name.clone())),
            Self::Ip(address) => *address,
        };
        match unreachable(address) {
            Some(what) => Err(EndpointError::Unreachable { address, what }),
            None => Ok(()),
        }
    }
}

fn unreachable(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    match address {
        _ if address.is_unspecified() => Some("the unspecified address"),
        _ if address.is_loopback() => Some("a loopback address"),
        _ if address.is_multicast() => Some("a multicast address"),
        _ if link_local => Some("a link-local address"),
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some("the broadcast address"),
        IpAddr::V4(v4) if v4.octets()[0] == 0 => Some("an address of the host itself"),
        _ => None,
    }
}

/// Reads `host:port` as the operator does: Go's `net.SplitHostPort`, a host, a decimal port.
///
/// A text that does not look like an address becomes a name, unchecked; see [`Host::check`].
impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (host, port) = split_host_port(text)?;
        if host.is_empty() {
            return Err(EndpointError::NoHost);
        }
        if port.is_empty() {
            return Err(EndpointError::NoPort);
        }
        let decimal = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = Some(port)
            .filter(|_| decimal)
            .and_then(|port| port.parse().ok())
            .ok_or_else(|| EndpointError::Port(port.to_owned()))?;
        let host = match host.parse::<IpAddr>() {
            Ok(address) => Host::Ip(address.to_canonical()),
            Err(_) => Host::Dns(host.to_owned()),
        };
        Ok(Self { host, port })
    }
}

/// Splits as Go does: at the last colon, brackets kept in pairs and stripped.
fn split_host_port(text: &str) -> Result<(&str, &str), EndpointError> {
    let colon = text.rfind(':').ok_or(EndpointError::NoPort)?;
    let (host, port) = (&text[..colon], &text[colon + 1..]);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or(EndpointError::Form)?,
        None if host.contains(':') => return Err(EndpointError::Form),
        None => host,
    };
    if host.contains(['[', ']']) || port.contains(['[', ']']) {
        return Err(EndpointError::Form);
    }
    Ok((host, port))
}

impl Endpoint {
    /// The endpoint of a Peer that cannot be dialled and has to connect first.
    ///
    /// A Peer without any endpoint makes Kilo skip every later change of the Peers and nodes that
    /// come after it (`kilo.md` §2.10). The address is reserved for documentation (RFC 5737) and the
    /// port is that of the discard service (RFC 863), so packets to it reach no host.
    pub const PLACEHOLDER: Self = Self {
        host: Host::Ip(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
        port: NonZeroU16::MIN.saturating_add(8),
    };

    /// Returns whether it is only a placeholder for an unknown endpoint.
    pub fn is_placeholder(&self) -> bool {
        *self == Self::PLACEHOLDER
    }

    /// Returns why no other cluster can dial it, if so.
    ///
    /// # Errors
    /// A host that [`Host::check`] refuses, or the placeholder.
    pub fn check(&self) -> Result<(), EndpointError> {
        if self.is_placeholder() {
            return Err(EndpointError::Placeholder);
        }
        self.host.check()
    }

    /// Returns the address, if it is not behind a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Ip(address) => Some(address),
            Host::Dns(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &self.host {
            Host::Ip(address) => SocketAddr::new(*address, self.port.get()).fmt(formatter),
            Host::Dns(name) => write!(formatter, "{name}:{}", self.port),
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&text_of_key(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(bytes: [u8; 32]) -> Result<PublicKey, KeyError> {
        STANDARD.encode(bytes).parse()
    }

    #[test]
    fn refuses_keys_that_no_handshake_can_use() {
        assert_eq!(key([0; 32]), Err(KeyError::Zero));
        for point in LOW_ORDER.into_iter().skip(1) {
            assert_eq!(key(point), Err(KeyError::LowOrder));
            let mut other = point;
            other[31] |= 0x80;
            assert_eq!(key(other), Err(KeyError::LowOrder));
        }
        assert_eq!("AAAA".parse::<PublicKey>(), Err(KeyError::Length(3)));
        assert_eq!("foo".parse::<PublicKey>(), Err(KeyError::Encoding));
    }

    #[test]
    fn one_key_has_one_text() {
        let canonical = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";
        let spare_bits = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L5=";
        assert!(canonical.parse::<PublicKey>().is_ok());
        assert_eq!(spare_bits.parse::<PublicKey>(), Err(KeyError::Encoding));
        assert_eq!(
            PublicKey::bytes_as_kilo_reads(&format!("{spare_bits}\n")),
            PublicKey::bytes_as_kilo_reads(canonical),
        );
    }

    #[test]
    fn says_why_nobody_can_dial_it() {
        let error = |text: &str| text.parse::<Endpoint>().unwrap().host.check().unwrap_err();
        insta::assert_snapshot!(error("0.0.0.0:1"), @"0.0.0.0 is the unspecified address, which other clusters cannot dial");
        insta::assert_snapshot!(error("[fe80::1]:1"), @"fe80::1 is a link-local address, which other clusters cannot dial");
        insta::assert_snapshot!(error("[::ffff:127.0.0.1]:1"), @"127.0.0.1 is a loopback address, which other clusters cannot dial");
        insta::assert_snapshot!(error("my_node:1"), @"`my_node` is neither an IP address nor a lowercase DNS name");
    }

    proptest! {
        #[test]
        fn endpoints_round_trip(address: IpAddr, port: NonZeroU16) {
            let endpoint = Endpoint { host: Host::Ip(address.to_canonical()), port };
            prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
        }

        #[test]
        fn keys_round_trip(bytes: [u8; 32]) {
            if let Ok(key) = key(bytes) {
                prop_assert_eq!(key.to_string().parse::<PublicKey>(), Ok(key));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = text.parse::<Endpoint>();
            let _ = text.parse::<PublicKey>();
        }
    }
}
