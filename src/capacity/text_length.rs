//! Lengths of values as text. There are too many of them to write each.

use std::net::IpAddr;

use crate::wireguard::{Endpoint, Host};

/// Returns the length of an endpoint.
pub(super) fn endpoint_length(endpoint: &Endpoint) -> usize {
    let host = match &endpoint.host {
        Host::Ip(address @ IpAddr::V4(_)) => address_length(*address),
        Host::Ip(address @ IpAddr::V6(_)) => "[]".len() + address_length(*address),
        Host::Dns(name) => name.len(),
    };
    host + ":".len() + digits(endpoint.port.get())
}

/// Returns the length of an address.
pub(super) fn address_length(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => {
            let octets = address.octets().into_iter();
            "...".len() + octets.map(|it| digits(it.into())).sum::<usize>()
        }
        IpAddr::V6(address) => address.to_string().len(),
    }
}

/// Returns the number of digits.
pub(super) fn digits(number: u16) -> usize {
    let powers = [10, 100, 1000, 10_000].into_iter();
    1 + powers.filter(|it| *it <= number).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_texts() {
        for number in 0..=u16::MAX {
            assert_eq!(digits(number), number.to_string().len());
        }
        for text in
            ["0.0.0.0", "9.10.99.100", "255.255.255.255", "::", "fd00::1", "2001:db8:1:2:3:4:5:6"]
        {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(address_length(address), text.len());
        }
        for text in ["9.10.99.100:1", "[fd00::1]:51820", "vpn.example.com:65535"] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(endpoint_length(&endpoint), text.len());
        }
    }
}
