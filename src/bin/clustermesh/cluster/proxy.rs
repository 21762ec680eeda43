//! Proxies: the proxy through which a server is reached, the setting that names it, and the servers that are reached
//! without it, listed in `NO_PROXY` and read like Go does.

use std::env;
use std::net::IpAddr;

use clustermesh::rules::clusters::{Fault, PROXY, shown};
use http::Uri;
use http::uri::Authority;
use ipnet::IpNet;

/// The schemes of proxies, and their ports.
const SCHEMES: [(&str, u16); 3] = [("http", 80), ("https", 443), ("socks5", 1080)];

/// The field of a kubeconfig that names a proxy.
const CONFIGURED: &str = "proxy-url";

/// A proxy on the way to a server.
#[derive(Clone)]
pub(super) struct Proxy {
    /// The URL, with the credentials for the proxy.
    pub(super) url: Uri,
    /// The setting that names it: a field of the kubeconfig, or a variable.
    pub(super) origin: &'static str,
}

impl Proxy {
    /// Returns the proxy on the way: the kubeconfig's, else the environment's, as kubectl takes it.
    pub(super) fn before(server: &Uri, configured: Option<&str>) -> Result<Option<Self>, String> {
        let configured = configured.map(|proxy| (CONFIGURED, proxy.to_owned()));
        let Some((origin, text)) = configured.or_else(|| environment_proxy(server)) else {
            return Ok(None);
        };
        // As for client-go: only a variable may lack the scheme.
        let is_whole = origin != CONFIGURED || text.contains("://");
        match url(&text).filter(|_| is_whole) {
            Some(url) => Ok(Some(Self { url, origin })),
            None => Err(format!("`{origin}` is not the URL of an http, https or socks5 proxy")),
        }
    }

    /// Returns where it is, as `host:port`, without anything that may be a secret.
    pub(super) fn address(&self) -> String {
        host_and_port(&self.url)
    }

    /// Returns the fault that it does not lead to a server.
    pub(super) fn unusable(&self, server: &str, problem: &str) -> Fault {
        let (origin, server) = (self.origin, shown(server));
        let sentence = format!(
            "no connection through the proxy {} (`{origin}`) to {server}: {}",
            shown(&self.address()),
            shown(problem)
        );
        let fault = Fault::new(&PROXY, sentence);
        if origin == CONFIGURED {
            return fault;
        }
        fault.help(format!("correct `{origin}`, or add {server} to `NO_PROXY`"))
    }

    /// Returns the credentials that the proxy requires, or nothing.
    pub(super) fn userinfo(&self) -> &str {
        self.url.authority().map_or("", Authority::as_str).split_once('@').map_or("", |it| it.0)
    }
}

/// Returns whether a server is this machine.
pub(super) fn is_local(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(|it: IpAddr| it.is_loopback())
}

/// Returns whether a server or proxy is named by its address, so that nothing is looked up.
pub(super) fn is_address(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok()
}

/// Returns a server or proxy as `host:port`, without anything that may be a secret.
pub(super) fn host_and_port(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    let port = match (url.port_u16(), url.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("http")) => 80,
        (None, _) => 443,
    };
    format!("{host}:{port}")
}

/// Reads a URL, which may lack scheme and port.
fn url(text: &str) -> Option<Uri> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    // A name that the proxy resolves is one that we don't look at either way.
    let scheme = if scheme == "socks5h" { "socks5" } else { scheme };
    let (_, port) = SCHEMES.into_iter().find(|(it, _)| *it == scheme)?;
    let url: Uri = format!("{scheme}://{rest}").parse().ok()?;
    url.host().filter(|host| !host.is_empty())?;
    // Text behind the host may be the rest of a password with a slash.
    if !matches!(url.path(), "" | "/") {
        return None;
    }
    if url.port().is_some() {
        return Some(url);
    }
    format!("{scheme}://{}:{port}", url.authority()?).parse().ok()
}

/// Returns the proxy that the environment wants for a server, and the variable. As in Go, none for
/// this machine.
fn environment_proxy(server: &Uri) -> Option<(&'static str, String)> {
    let variable = |names: [&'static str; 2]| {
        let mut values = names.into_iter().filter_map(|name| Some((name, env::var(name).ok()?)));
        values.find(|(_, value)| !value.is_empty())
    };
    let proxy = if server.scheme_str() == Some("https") {
        variable(["HTTPS_PROXY", "https_proxy"])
    } else {
        variable(["HTTP_PROXY", "http_proxy"])
    };
    let exempt = variable(["NO_PROXY", "no_proxy"]).map(|(_, value)| value).unwrap_or_default();
    proxy.filter(|_| !is_local(server) && !is_exempt(server, &exempt))
}

/// Servers that are reached without a proxy.
enum Exemption {
    All,
    Address(IpAddr, Option<u16>),
    Network(IpNet),
    /// A name with those below it; with a dot before it, only those.
    Name(String, Option<u16>),
}

/// Returns whether `exempt`, the value of `NO_PROXY`, names a server.
fn is_exempt(server: &Uri, exempt: &str) -> bool {
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
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
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
