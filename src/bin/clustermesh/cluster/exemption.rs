//! Exemptions: servers that are reached without the proxy of the environment, listed in `NO_PROXY`
//! and read like Go does.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// Servers that are reached without a proxy.
enum Exemption {
    All,
    Address(IpAddr, Option<u16>),
    Network(IpNet),
    /// A name with those below it; with a dot before it, only those.
    Name(String, Option<u16>),
}

/// Returns whether `exempt`, the value of `NO_PROXY`, names a server.
pub(super) fn is_exempt(server: &Uri, exempt: &str) -> bool {
    let host = server.host().unwrap_or_default().to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(match server.scheme_str() {
        Some("http") => 80,
        _ => 443,
    });
    let mut exemptions = exempt.split(',').filter_map(Exemption::new);
    exemptions.any(|it| it.matches(&host, port))
}

impl Exemption {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = text.parse() {
            return Some(Self::Network(network));
        }
        let (host, port) = match text.rsplit_once(':') {
            // More colons are those of an address.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port.parse().ok()?))
            }
            _ => (text.as_str(), None),
        };
        if let Ok(address) = without_brackets(host).parse() {
            return Some(Self::Address(address, port));
        }
        let name =
            host.strip_prefix('*').filter(|it| it.starts_with('.')).unwrap_or(host).to_owned();
        (!name.is_empty()).then_some(Self::Name(name, port))
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        let address = without_brackets(host).parse().ok();
        let is_port = |it: &Option<u16>| it.is_none_or(|it| it == port);
        match self {
            Self::All => true,
            Self::Address(it, port) => address == Some(*it) && is_port(port),
            Self::Network(it) => address.is_some_and(|address: IpAddr| it.contains(&address)),
            Self::Name(name, port) => is_port(port) && is_at_or_below(host, name),
        }
    }
}

fn is_at_or_below(host: &str, name: &str) -> bool {
    match host.strip_suffix(name) {
        Some(below) if name.starts_with('.') => !below.is_empty(),
        Some(below) => below.is_empty() || below.ends_with('.'),
        None => false,
    }
}

fn without_brackets(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the entries that exempt a server.
    fn exempting<'a>(server: &str, list: &[&'a str]) -> Vec<&'a str> {
        let server = server.parse().unwrap();
        let list = list.iter().copied();
        list.filter(|it| is_exempt(&server, it)).collect()
    }

    #[test]
    fn names_are_read_as_go_reads_them() {
        let list = [
            "api.corp.example",
            "corp.example",
            "CORP.EXAMPLE",
            ".corp.example",
            "*.corp.example",
            "api.corp.example:6443",
            "*.example:6443",
            "*",
            "other, corp.example",
            "",
            ",",
            "*.api.corp.example",
            ".api.corp.example",
            "api.corp.example:443",
            "api.corp.example:x",
            "rp.example",
            "pi.corp.example",
            "*corp.example",
            "api",
            "10.0.0.0/8",
        ];
        let exempting = exempting("https://API.corp.example:6443", &list);
        assert_eq!(exempting, list[..9]);
    }

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let list =
            ["10.1.2.3", "10.0.0.0/8", "10.1.2.3:443", "10.1.2.4", "11.0.0.0/8", "10.1.2.3:6443"];
        assert_eq!(exempting("https://10.1.2.3", &list), list[..3]);
        let list =
            ["fd00::1", "fd00::/8", "[fd00::1]", "[fd00::1]:6443", "fd00::2", "[fd00::1]:443"];
        assert_eq!(exempting("https://[fd00::1]:6443", &list), list[..4]);
    }
}
