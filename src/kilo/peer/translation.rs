//! Translation: how Kilo's agent reads the spec of a Peer (`kilo.md` §1.3, §2.1).

use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU64};

use serde_json::Value;

use super::crd::{self, Mismatch};
use super::{Decoded, EndpointFlaw, Peer, RawEndpoint, Refusal, decode};
use crate::id::{Id, Numbered};
use crate::name;
use crate::net::{Cidr, Interface};
use crate::wireguard::{Endpoint, Host, PublicKey, decoded_as_go_reads};

/// The number of nanoseconds in a second.
pub(in crate::kilo) const NANOSECONDS: i64 = 1_000_000_000;

/// The allowed IPs of a Peer.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfAllowedIp {}

/// The number of an allowed IP in the spec of its Peer.
pub type AllowedIpId = Id<OfAllowedIp>;

/// A Peer as Kilo's agent works with it (`translatePeer` in `pkg/k8s/backend.go`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Translation {
    /// The ranges that are routed to it and accepted from it, in the order of the spec.
    pub allowed_ips: Numbered<OfAllowedIp, AllowedIp>,
    /// The endpoint that Kilo writes: the name if there are both, and an address that was given as
    /// a name. [`Translation::dialled`] returns whether it can be dialled.
    pub endpoint: Option<Endpoint>,
    /// Seconds; to the agent only a sign that the Peer may be found elsewhere (`kilo.md` §2.9).
    pub keepalive: Option<NonZeroU64>,
    /// The key's bytes, however they were written; may be zero.
    pub key: [u8; 32],
    /// The secret of both sides; one that can't be read is dropped without a word.
    pub preshared_key: Option<PresharedKey>,
}

/// A range as the agent holds it (`normalizeIP`): the address as it was written, not masked.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AllowedIp {
    /// The address, IPv4 where it was mapped into IPv6, and its network. This is how it prints, and
    /// Kilo compares what is printed.
    pub interface: Interface,
    /// Whether it was IPv4 mapped into IPv6. The mask stays 128 bits long, which kernels refuse.
    pub is_mapped: bool,
}

/// A secret, which is compared and never shown.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct PresharedKey([u8; 32]);

/// The reason why the Peer of a manifest is never configured in WireGuard.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TranslationFault {
    /// The API server refuses it, so the Peer does not exist.
    NotStored(Mismatch),
    /// The API server takes it, but no agent can decode it, nor the list that it is in: none that
    /// starts gets to see any Peer (`kilo.md` §1.4).
    Undecodable(Refusal),
    /// The agents drop it without a word.
    Ignored(Refusal),
}

impl TranslationFault {
    /// Returns the text that is refused, if the message quotes it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::NotStored(_) => None,
            Self::Undecodable(refusal) | Self::Ignored(refusal) => refusal.text(),
        }
    }
}

impl Translation {
    /// Returns the ranges of its allowed IPs, in their order.
    pub fn networks(&self) -> Vec<Cidr> {
        self.allowed_ips.iter().map(|it| it.interface.network).collect()
    }

    /// Translates a spec, and asks before what Kilo's webhook asks, in its order (`Peer.Validate` in
    /// `pkg/k8s/apis/kilo/v1alpha1/types.go`).
    ///
    /// # Errors
    /// The first rule that fails.
    pub fn from_spec(spec: &Decoded) -> Result<Self, Refusal> {
        let mut allowed_ips = Vec::with_capacity(spec.allowed_ips.len());
        for (index, text) in spec.allowed_ips.iter().enumerate() {
            let allowed = AllowedIp::read(text)
                .ok_or_else(|| Refusal::AllowedIp { index, text: (*text).to_owned() })?;
            allowed_ips.push(allowed);
        }
        let endpoint = spec.endpoint.as_ref().map(endpoint).transpose()?;
        let keepalive =
            u64::try_from(spec.keepalive).map_err(|_| Refusal::Keepalive(spec.keepalive))?;
        // Kilo computes nanoseconds in 64 bits and then asks whether they are zero.
        let is_zero = spec.keepalive.wrapping_mul(NANOSECONDS) == 0;
        let key = decoded_as_go_reads(spec.public_key).ok_or(Refusal::KeyEncoding)?;
        let length = key.len();
        Ok(Self {
            allowed_ips: Numbered::new(allowed_ips),
            endpoint,
            keepalive: NonZeroU64::new(keepalive).filter(|_| !is_zero),
            key: key.try_into().map_err(|_| Refusal::KeyLength(length))?,
            preshared_key: PublicKey::bytes_as_kilo_reads(spec.preshared_key).map(PresharedKey),
        })
    }

    /// Translates the `spec` of a manifest: what the API server keeps of it, as an agent reads it.
    ///
    /// # Errors
    /// The reason why it is not configured in WireGuard.
    pub fn of_manifest(spec: &Value) -> Result<Self, TranslationFault> {
        let stored = crd::stored(spec).map_err(TranslationFault::NotStored)?;
        let spec = decode(&stored).map_err(TranslationFault::Undecodable)?;
        Self::from_spec(&spec).map_err(TranslationFault::Ignored)
    }

    /// Translates a Peer as clustermesh writes it, which Kilo always takes.
    pub fn of_own(peer: &Peer) -> Self {
        let allowed_ips = peer.allowed_ips.iter().map(|it| AllowedIp::new(*it));
        Self {
            allowed_ips: Numbered::new(allowed_ips.collect()),
            endpoint: peer.endpoint.clone(),
            keepalive: peer.keepalive.map(|it| it.0.into()),
            key: *peer.key.as_bytes(),
            preshared_key: None,
        }
    }

    /// Returns where it is dialled; `None` without an endpoint, or with the placeholder for one.
    pub fn dialled(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref().filter(|it| !it.is_placeholder())
    }

    /// Returns the flaw in how it is dialled, if there is one.
    pub fn endpoint_flaw(&self) -> Option<EndpointFlaw> {
        EndpointFlaw::find(self.endpoint.as_ref(), self.keepalive.is_some())
    }

    /// Returns whether the agent configures it (`Peer.Ready`); an endpoint is not asked for.
    pub fn is_ready(&self) -> bool {
        !self.allowed_ips.is_empty() && self.key != [0; 32]
    }
}

impl AllowedIp {
    /// Reads what Go's `net.ParseCIDR` reads: host bits, leading zeros of the length and
    /// IPv4-mapped addresses are fine.
    ///
    /// Rust and Go agree on what an address is, zones aside, which neither takes here.
    pub fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        // Rust's own parser would take a plus sign.
        if !length.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let length: u8 = length.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let is_mapped = address.to_canonical() != address;
        if longest < length {
            return None;
        }
        // Go prints the last four bytes of the mask.
        let printed = if is_mapped { length.saturating_sub(96) } else { length };
        Some(Self { interface: Interface::new(address, printed)?, is_mapped })
    }

    /// Returns a range without host bits.
    pub fn new(range: Cidr) -> Self {
        Self { interface: Interface { address: range.first(), network: range }, is_mapped: false }
    }

    /// Returns an address by itself, as `oneAddressCIDR` does.
    pub fn host(address: IpAddr) -> Self {
        Self::new(Cidr::host(address))
    }
}

/// The rules for an endpoint, in their order; then the name wins, contrary to the API's text.
fn endpoint(raw: &RawEndpoint) -> Result<Endpoint, Refusal> {
    let RawEndpoint { dns, ip, port } = *raw;
    if dns.is_empty() && ip.is_empty() {
        return Err(Refusal::EndpointNeither);
    }
    if !dns.is_empty() && !name::is_dns_subdomain(dns) {
        return Err(Refusal::EndpointDns(dns.to_owned()));
    }
    let address = ip.parse::<IpAddr>();
    if !ip.is_empty() && address.is_err() {
        return Err(Refusal::EndpointIp(ip.to_owned()));
    }
    let port = u16::try_from(port).ok().and_then(NonZeroU16::new).ok_or(Refusal::Port(port))?;
    let host = match (dns, address) {
        ("", Ok(address)) => Host::Ip(address.to_canonical()),
        _ => match dns.parse::<IpAddr>() {
            Ok(address) => Host::Ip(address.to_canonical()),
            Err(_) => Host::Dns(dns.to_owned()),
        },
    };
    Ok(Endpoint { host, port })
}

impl fmt::Display for AllowedIp {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.interface.fmt(formatter)
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("PresharedKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";

    #[test]
    fn an_allowed_ip_keeps_its_host_bits_and_prints_as_in_go() {
        let printed = |text: &str| AllowedIp::read(text).map(|it| (it.to_string(), it.is_mapped));
        assert_eq!(printed("10.96.0.1/016"), Some(("10.96.0.1/16".into(), false)));
        assert_eq!(printed("FD00::7/64"), Some(("fd00::7/64".into(), false)));
        assert_eq!(printed("::ffff:10.0.0.1/104"), Some(("10.0.0.1/8".into(), true)));
        assert_eq!(printed("::ffff:10.0.0.1/90"), Some(("10.0.0.1/0".into(), true)));
        for text in ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10.0.0.0/", "a/8"] {
            assert_eq!(printed(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_wins_over_an_address_and_may_be_one() {
        let dialled = |host: Value| {
            let endpoint = json!({"dnsOrIP": host, "port": 7});
            let spec = json!({"allowedIPs": [], "publicKey": KEY, "endpoint": endpoint});
            Translation::of_manifest(&spec).unwrap().endpoint.unwrap()
        };
        let both = dialled(json!({"dns": "wg.example", "ip": "192.0.2.1"}));
        assert_eq!(both.host, Host::Dns("wg.example".to_owned()));
        let quad = dialled(json!({"dns": "192.0.2.2", "ip": "192.0.2.1"}));
        assert_eq!(quad.to_string(), "192.0.2.2:7");
    }

    #[test]
    fn a_negative_port_is_stored_and_stops_the_agents() {
        let endpoint = |port: i64| {
            let endpoint = json!({"dnsOrIP": {"ip": "192.0.2.1"}, "port": port});
            let spec = json!({"allowedIPs": [], "publicKey": KEY, "endpoint": endpoint});
            Translation::of_manifest(&spec).unwrap_err()
        };
        assert!(matches!(endpoint(-1), TranslationFault::Undecodable(_)));
        assert_eq!(endpoint(70000), TranslationFault::Ignored(Refusal::Port(70000)));
        assert!(matches!(endpoint(1 << 31), TranslationFault::NotStored(_)));
    }

    #[test]
    fn a_keepalive_that_overflows_to_nothing_is_none() {
        let keepalive = |seconds: i64| {
            let spec = json!({"allowedIPs": [], "publicKey": KEY, "persistentKeepalive": seconds});
            Translation::of_manifest(&spec).unwrap().keepalive
        };
        assert_eq!(keepalive(65_536).map(NonZeroU64::get), Some(65_536));
        assert_eq!(keepalive(1 << 54).map(NonZeroU64::get), Some(1 << 54));
        assert_eq!(keepalive(1 << 55), None);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let spec = json!({"allowedIPs": [], "publicKey": KEY, "presharedKey": KEY});
        let translation = Translation::of_manifest(&spec).unwrap();
        assert!(translation.preshared_key.is_some());
        assert_eq!(format!("{:?}", translation.preshared_key), "Some(PresharedKey(…))");
        let unreadable = json!({"allowedIPs": [], "publicKey": KEY, "presharedKey": "no"});
        assert_eq!(Translation::of_manifest(&unreadable).unwrap().preshared_key, None);
    }
}
