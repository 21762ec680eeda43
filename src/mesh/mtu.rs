//! The MTUs of a cluster: the largest packets of its networks (`kilo.md` §6.1).

use std::fmt;

use crate::diagnostic::{Finding, Mistakes, mistake};
use crate::net::Family;
use crate::place::Place;

use super::networks::DeclaredNetworks;
use super::raw::RawMtu;

/// The bytes by which Kilo's `--mtu=auto` makes its tunnels smaller than the underlay: WireGuard over IPv6.
const WIREGUARD: u16 = 80;

/// The bytes that IPIP adds to packets between nodes of a location.
const IPIP: u16 = 20;

/// The bytes that VXLAN adds to them.
const VXLAN: u16 = 50;

/// The smallest MTU of a network with IPv6 (RFC 8200, section 5).
pub const LEAST_WITH_IPV6: u16 = 1280;

/// The declared MTUs of a cluster.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Mtu {
    /// That of the interface with the default route, from which Kilo computes that of its tunnels.
    pub underlay: Option<u16>,
    /// That of the interface with the internal IP, if it is declared to differ.
    internal: Option<u16>,
    /// That of the interfaces of pods.
    pub pods: Option<u16>,
}

impl Mtu {
    /// Returns the MTU of the tunnels, if it is known.
    pub fn tunnel(&self) -> Option<u16> {
        Some(self.underlay?.saturating_sub(WIREGUARD))
    }

    /// Returns the largest packet that fits into IPIP between nodes of a location, also if IPIP is in VXLAN. A leader
    /// removes both before it sends a packet into a tunnel, so their bytes are never added to those of the tunnel.
    pub fn within_location(&self, has_vxlan: bool) -> Option<u16> {
        let headers = if has_vxlan { IPIP + VXLAN } else { IPIP };
        Some(self.internal.or(self.underlay)?.saturating_sub(headers))
    }
}

/// Returns the MTUs of an entry, or reports those that are too small for the addresses of its networks.
pub(super) fn mtu(
    written: Option<&RawMtu>,
    declared: &DeclaredNetworks,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Mtu> {
    let Some(&RawMtu { underlay, internal, pods }) = written else {
        return Some(Mtu::default());
    };
    let ranges = declared.networks.iter().flat_map(|it| it.all());
    let has_ipv6 = ranges.into_iter().any(|it| it.cidr.family() == Family::V6);
    let before = findings.len();
    for (field, value, header) in
        [("underlay", underlay, WIREGUARD), ("internal", internal, IPIP), ("pods", pods, 0)]
    {
        let least = LEAST_WITH_IPV6 + header;
        if let Some(value) = value.filter(|it| has_ipv6 && *it < least) {
            let message = format!(
                "`{field}: {value}` is too small for IPv6, which needs packets of {LEAST_WITH_IPV6} bytes"
            );
            let finding = Finding::new(&mistake::INVALID_VALUE, message);
            findings.push(finding.at(place.key(field), "").help(format!(
                "write a number from {least} to 65535, or remove the IPv6 ranges from the entry"
            )));
        }
    }
    (findings.len() == before).then_some(Mtu { underlay, internal, pods })
}

impl fmt::Display for Mtu {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let fields =
            [("underlay", self.underlay), ("internal", self.internal), ("pods", self.pods)];
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(field, value)| Some(format!("{field}: {}", value?)));
        formatter.write_str(&crate::text::list(fields))
    }
}
