//! Networks: ranges, host routes, and when two of them share an address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

mod families;
mod without;
pub mod prefixes;

pub use families::Families;

/// An address range in canonical form: host bits are zero, never IPv4-mapped.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cidr(IpNet);

/// An address with the prefix length of its network, such as `10.4.0.1/16`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Interface {
    /// The host's own address.
    pub address: IpAddr,
    /// Its network.
    pub network: Cidr,
}

/// One of the two kinds of address, which never mix in a route.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// 32 bits.
    V4,
    /// 128 bits.
    V6,
}

/// The reason why a text is not a range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CidrError {
    /// No `/length` behind the address.
    #[error("`{0}` has no prefix length such as `/16`")]
    NoLength(String),
    /// The part before the slash is not an address.
    #[error("`{0}` is not an IP address")]
    Address(String),
    /// The part after the slash is not a prefix length of that family.
    #[error("`{0}` is not a prefix length from 0 to {1}")]
    Length(String, u8),
    /// An IPv4 address in IPv6 clothes, which kernels and Kilo read differently.
    #[error("`{0}` is an IPv4-mapped IPv6 range; write it as IPv4")]
    Mapped(String),
}

impl Cidr {
    /// Returns the host route of `address`: `/32` or `/128`.
    pub fn host(address: IpAddr) -> Self {
        Self(IpNet::from(address.to_canonical()))
    }

    /// Returns whether the range is a single address.
    pub fn is_host(self) -> bool {
        self.0.prefix_len() == self.0.max_prefix_len()
    }

    /// Returns the first address.
    pub fn first(self) -> IpAddr {
        // It has no host bits, so nothing has to be masked.
        self.0.addr()
    }

    /// Returns the last address.
    pub fn last(self) -> IpAddr {
        self.0.broadcast()
    }

    /// Returns the address that many behind the first, if the range has as many.
    pub fn address(self, offset: u128) -> Option<IpAddr> {
        let address: IpAddr = match self.first() {
            IpAddr::V4(v4) => v4
                .to_bits()
                .checked_add(u32::try_from(offset).ok()?)
                .map(|bits| IpAddr::from(bits.to_be_bytes())),
            IpAddr::V6(v6) => {
                v6.to_bits().checked_add(offset).map(|bits| IpAddr::from(bits.to_be_bytes()))
            }
        }?;
        self.holds(address).then_some(address)
    }

    /// Returns the number of leading bits that its first address and another one have in common.
    pub fn common_bits(self, other: IpAddr) -> u32 {
        match (self.first(), other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => 0,
        }
    }

    /// Returns the number of leading bits that all its addresses share.
    pub fn prefix_length(self) -> u8 {
        self.0.prefix_len()
    }

    /// Returns the range of that prefix length around it, or `None` where that would be narrower.
    pub fn widened(self, length: u8) -> Option<Self> {
        let wider = IpNet::new(self.first(), length).ok()?;
        (length <= self.prefix_length()).then_some(Self(wider.trunc()))
    }

    /// Returns its parts with this many more leading bits, in order; none if these would be
    /// narrower than an address.
    pub fn parts(self, bits: u8) -> Vec<Self> {
        let length = self.prefix_length().saturating_add(bits);
        let parts = self.0.subnets(length).into_iter().flatten();
        parts.map(Self).collect()
    }

    /// Returns by how many bits the range could be narrowed.
    pub fn host_bits(self) -> u8 {
        self.0.max_prefix_len() - self.0.prefix_len()
    }

    /// Returns whether every address of `inner` is in this range.
    pub fn contains(self, inner: Self) -> bool {
        self.0.contains(&inner.0)
    }

    /// Returns whether `address` is in this range.
    pub fn holds(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Returns whether the two share an address.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Returns the kind of its addresses.
    pub fn family(self) -> Family {
        match self.0 {
            IpNet::V4(_) => Family::V4,
            IpNet::V6(_) => Family::V6,
        }
    }
}

impl Family {
    /// Returns the other kind.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

impl Interface {
    /// Returns an address in a network with this prefix length, if it has as many bits; an
    /// IPv4-mapped address counts as an IPv4 one.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = address.to_canonical();
        let network = Cidr(IpNet::new(address, length).ok()?.trunc());
        Some(Self { address, network })
    }

    /// Returns whether the address is the network's own, that is, no host bits are set.
    pub fn is_network(self) -> bool {
        self.address == self.network.first()
    }
}

/// Returns the kind of an address.
pub fn family(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}

/// Returns the ranges of a list that another list lacks.
pub fn without(all: &[Cidr], others: &[Cidr]) -> Vec<Cidr> {
    let rest = all.iter().filter(|it| !others.contains(it));
    rest.copied().collect()
}

/// Returns the fewest ranges that hold exactly the addresses of these, in order of address.
pub fn merged(ranges: impl IntoIterator<Item = Cidr>) -> Vec<Cidr> {
    let ranges: Vec<IpNet> = ranges.into_iter().map(|it| it.0).collect();
    IpNet::aggregate(&ranges).into_iter().map(Cidr).collect()
}

/// Returns the pairs of `ranges` that share an address, by index, lower index first, except the pairs of which
/// both are `apart`; at most `most` of them, for a hostile list has as many as its length squared.
///
/// Sorted by address, a range can only meet those that are still open when it begins: one sweep
/// with a stack finds all pairs.
pub fn overlaps(
    ranges: &[Cidr],
    most: usize,
    is_apart: impl Fn(usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&i| (ranges[i].first(), ranges[i].prefix_length(), i));
    let (mut open, mut apart): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut pairs = Vec::new();
    for i in order {
        for stack in [&mut open, &mut apart] {
            while stack.last().is_some_and(|&j| !ranges[j].contains(ranges[i])) {
                stack.pop();
            }
        }
        let room = most.saturating_sub(pairs.len());
        let met = apart.iter().filter(|_| !is_apart(i)).chain(&open).take(room);
        pairs.extend(met.map(|&j| (i.min(j), i.max(j))));
        if is_apart(i) {
            apart.push(i);
        } else {
            open.push(i);
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Reads what Go's `net.ParseCIDR` reads, but for IPv4-mapped ranges.
///
/// Host bits are allowed here; a declared range is masked, a node's own address needs them.
impl FromStr for Interface {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (address, length) =
            text.split_once('/').ok_or_else(|| CidrError::NoLength(text.to_owned()))?;
        let ip: IpAddr = address.parse().map_err(|_| CidrError::Address(address.to_owned()))?;
        if ip.to_canonical() != ip {
            return Err(CidrError::Mapped(text.to_owned()));
        }
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        let length = prefix_length(length)
            .filter(|&length| length <= longest)
            .ok_or_else(|| CidrError::Length(length.to_owned(), longest))?;
        let network = IpNet::new(ip, length)
            .map_err(|_| CidrError::Length(length.to_string(), longest))?
            .trunc();
        Ok(Self { address: ip, network: Cidr(network) })
    }
}

/// Reads a range and drops its host bits.
impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        Ok(text.parse::<Interface>()?.network)
    }
}

fn prefix_length(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return None;
    }
    text.parse().ok()
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.network.prefix_length())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// Returns the usual network of a private address, `None` for a public one.
///
/// A node knows how long the prefix of its subnet is, but not how many subnets its site has, so
/// the usual size of one network counts: `/24` of the 192.168s, `/16` of the others of RFC 1918,
/// `/48` of unique local addresses (RFC 4193), and all of a carrier's shared space (RFC 6598).
pub fn private_network(address: IpAddr) -> Option<Cidr> {
    let length = match address {
        IpAddr::V4(v4) => match v4.octets() {
            [10, ..] | [172, 16..=31, ..] => 16,
            [192, 168, ..] => 24,
            [100, 64..=127, ..] => 10,
            _ => return None,
        },
        IpAddr::V6(v6) => match v6.octets() {
            [0xfc | 0xfd, ..] => 48,
            _ => return None,
        },
    };
    Cidr::host(address).widened(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn reads_what_go_reads_and_masks_it() {
        assert_eq!(cidr("10.0.1.5/16").to_string(), "10.0.0.0/16");
        assert_eq!(cidr("FD00::1/064").to_string(), "fd00::/64");
        assert_eq!(cidr("0.0.0.0/0").to_string(), "0.0.0.0/0");
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |text: &str| text.parse::<Cidr>().unwrap_err().to_string();
        insta::assert_snapshot!(error("10.0.0.0"), @"`10.0.0.0` has no prefix length such as `/16`");
        insta::assert_snapshot!(error("010.0.0.0/8"), @"`010.0.0.0` is not an IP address");
        insta::assert_snapshot!(error("10.0.0.0/33"), @"`33` is not a prefix length from 0 to 32");
        insta::assert_snapshot!(error("10.0.0.0/+8"), @"`+8` is not a prefix length from 0 to 32");
        insta::assert_snapshot!(error("::ffff:10.0.0.0/104"), @"`::ffff:10.0.0.0/104` is an IPv4-mapped IPv6 range; write it as IPv4");
    }

    #[test]
    fn a_range_has_equal_parts() {
        let parts = |text: &str, bits| -> Vec<String> {
            let parts = cidr(text).parts(bits).into_iter();
            parts.map(|it| it.to_string()).collect()
        };
        assert_eq!(parts("10.0.0.0/16", 0), ["10.0.0.0/16"]);
        assert_eq!(
            parts("10.0.0.0/16", 2),
            ["10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18", "10.0.192.0/18"]
        );
        assert_eq!(parts("fd00::/127", 1), ["fd00::/128", "fd00::1/128"]);
        assert_eq!(parts("10.0.0.0/31", 2), [""; 0]);
        assert_eq!(cidr("10.0.0.0/31").host_bits(), 1);
    }

    #[test]
    fn families_never_overlap() {
        assert!(!cidr("0.0.0.0/0").overlaps(cidr("::/0")));
        assert!(!cidr("::/0").holds("10.0.0.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn text_round_trips(bits: u32, length in 0u8..=32) {
            let text = format!("{}/{length}", std::net::Ipv4Addr::from(bits));
            let range = cidr(&text);
            prop_assert_eq!(cidr(&range.to_string()), range);
        }

        #[test]
        fn the_sweep_finds_what_comparing_all_pairs_finds(
            seeds in proptest::collection::vec((0u32..4096, 20u8..=32, any::<bool>()), 0..40)
        ) {
            let ranges: Vec<Cidr> = seeds
                .iter()
                .map(|&(bits, length, six)| {
                    if six {
                        cidr(&format!("::{bits:x}:0/{}", length + 80))
                    } else {
                        cidr(&format!("{}/{length}", std::net::Ipv4Addr::from(bits)))
                    }
                })
                .collect();
            let mut naive = Vec::new();
            for i in 0..ranges.len() {
                for j in i + 1..ranges.len() {
                    if ranges[i].overlaps(ranges[j]) {
                        naive.push((i, j));
                    }
                }
            }
            prop_assert_eq!(&overlaps(&ranges, usize::MAX, |_| false), &naive);
            prop_assert_eq!(overlaps(&ranges, 3, |_| false).len(), naive.len().min(3));
            let mut apart = naive;
            apart.retain(|(i, j)| i % 2 == 0 || j % 2 == 0);
            prop_assert_eq!(overlaps(&ranges, usize::MAX, |it| it % 2 == 1), apart);
        }
    }
}
