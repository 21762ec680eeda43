//! Proxies: the kubeconfig's, the environment's, and none.

use std::io::{Read as _, Write as _};

use super::{SNAPSHOT, Site, nodes};
use crate::api_server::{Authority, Context, Listener, Proxy, Setup, kubeconfig};
use crate::cli::Folder;
use crate::support::assert_contains;

/// Returns how the proxy was asked, and for what.
fn asked(proxy: &Proxy) -> Vec<(String, String)> {
    let visits = proxy.visits().into_iter();
    visits.map(|visit| (visit.method, visit.target)).collect()
}

#[test]
fn goes_through_the_proxy_of_the_kubeconfig() {
    let authority = Authority::new("ours");
    let identity = authority.server(&["api.east.invalid"]);
    for (scheme, method) in [("http", "CONNECT"), ("socks5", "SOCKS")] {
        let server = Setup::nodes(&nodes(1)).tls(&identity).start();
        let proxy = Proxy::to(server.address());
        let url = format!("{scheme}://{}", proxy.address());
        let site = Site::with(server, |context| {
            context
                .cluster("server", "https://api.east.invalid:6443")
                .cluster("proxy-url", url.as_str())
                .trusting(&authority)
        });
        let said = site.success(&[]);
        assert_eq!(said, "snapshots/east.json: 2 nodes, 2 usable, written\n");
        let expected = (method.to_owned(), "api.east.invalid:6443".to_owned());
        assert_eq!(asked(&proxy), [expected]);
    }
}

#[test]
fn logs_in_to_a_proxy() {
    let authority = Authority::new("ours");
    let identity = authority.server(&["api.east.invalid"]);
    let server = Setup::nodes(&nodes(1)).tls(&identity).start();
    let proxy = Proxy::to(server.address());
    let url = format!("http://ada:sesame@{}", proxy.address());
    let site = Site::with(server, |context| {
        context
            .cluster("server", "https://api.east.invalid:6443")
            .cluster("proxy-url", url.as_str())
            .trusting(&authority)
            .user("token", "swordfish")
    });
    site.success(&[]);
    let visits = proxy.visits();
    // `ada:sesame`
    assert_eq!(visits[0].authorization.as_deref(), Some("Basic YWRhOnNlc2FtZQ=="));
    assert_eq!(site.east.requests()[0].header("proxy-authorization"), None);
}

#[test]
fn tells_when_the_proxy_is_away() {
    let address = Proxy::to(([127, 0, 0, 1], 1).into()).address();
    let site = Site::with(Setup::nodes(&nodes(1)).start(), |context| {
        context.cluster("proxy-url", format!("http://ada:sesame@{address}"))
    });
    let said = site.failure(&[]).replace(&address.to_string(), "PROXY");
    insta::assert_snapshot!(said, @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy PROXY (`proxy-url`) to 127.0.0.1:PORT: Connection refused (os error 111); snapshots/east.json was kept
    help: check `proxy-url` in the kubeconfig
    ");
    site.reach(|context| context.cluster("proxy-url", "gopher://ada:sesame@proxy"));
    insta::assert_snapshot!(site.snapshot(&["east"]).stderr, @"
    error[invalid-kubeconfig]: east: could not be read: `proxy-url` is not the URL of an http, https or socks5 proxy (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn tells_when_the_proxy_leads_nowhere() {
    let said = |answer: &'static [u8], scheme: &str| {
        let proxy = Listener::start(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let site = Site::with(Setup::default().start(), |context| {
            let url = format!("{scheme}://ada:sesame@{}", proxy.address());
            context.cluster("server", "https://api.east.invalid:6443").cluster("proxy-url", url)
        });
        let said = site.failure(&[]);
        assert!(!said.contains("sesame"), "{said}");
        said.replace(&proxy.address().to_string(), "PROXY")
    };
    insta::assert_snapshot!(said(b"HTTP/1.1 407 Who are you?\r\n\r\n", "http"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy PROXY (`proxy-url`) to api.east.invalid:6443: tunnel error: proxy authorization required; snapshots/east.json was kept
    help: check `proxy-url` in the kubeconfig
    ");
    insta::assert_snapshot!(said(b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "http"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy PROXY (`proxy-url`) to api.east.invalid:6443: tunnel error: unsuccessful; snapshots/east.json was kept
    help: check `proxy-url` in the kubeconfig
    ");
    insta::assert_snapshot!(said(b"", "http"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy PROXY (`proxy-url`) to api.east.invalid:6443: tunnel error: unexpected end of file; snapshots/east.json was kept
    help: check `proxy-url` in the kubeconfig
    ");
    insta::assert_snapshot!(said(b"\x05\xff", "socks5"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy PROXY (`proxy-url`) to api.east.invalid:6443: SOCKS error: server does not support user/pass authentication; snapshots/east.json was kept
    help: check `proxy-url` in the kubeconfig
    ");
}

#[test]
fn tells_who_named_the_proxy() {
    let context = Context::new("east", "https://api.east.invalid:6443");
    let folder = Folder::mesh();
    folder.write("kubeconfig", kubeconfig(&[context]));
    let arguments = [SNAPSHOT.as_slice(), &["east", "--timeout", "10"]].concat();
    let said = |variable: &str, proxy: &str| {
        let run = folder.run_with(&[(variable, proxy)], &arguments);
        assert_eq!(run.code, 2);
        assert!(!run.stderr.contains("sesame"), "{}", run.stderr);
        run.stderr
    };
    insta::assert_snapshot!(said("HTTPS_PROXY", "http://ada:sesame@proxy.invalid:3128"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy proxy.invalid:3128 (`HTTPS_PROXY`) to api.east.invalid:6443: the name does not resolve; snapshots/east.json was kept
    help: correct `HTTPS_PROXY`, or add api.east.invalid:6443 to `NO_PROXY`
    ");
    insta::assert_snapshot!(said("https_proxy", "proxy.invalid"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy proxy.invalid:80 (`https_proxy`) to api.east.invalid:6443: the name does not resolve; snapshots/east.json was kept
    help: correct `https_proxy`, or add api.east.invalid:6443 to `NO_PROXY`
    ");
    insta::assert_snapshot!(said("HTTPS_PROXY", "socks5h://proxy.invalid"), @"
    error[unusable-proxy]: east: could not be read: no connection through the proxy proxy.invalid:1080 (`HTTPS_PROXY`) to api.east.invalid:6443: SOCKS error: failed to create underlying connection; snapshots/east.json was kept
    help: correct `HTTPS_PROXY`, or add api.east.invalid:6443 to `NO_PROXY`
    ");
    insta::assert_snapshot!(said("HTTPS_PROXY", "gopher://proxy.invalid"), @"
    error[invalid-kubeconfig]: east: could not be read: `HTTPS_PROXY` is not the URL of an http, https or socks5 proxy (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn goes_through_the_proxy_of_the_environment() {
    let authority = Authority::new("ours");
    let identity = authority.server(&["api.east.invalid"]);
    let server = Setup::nodes(&nodes(1)).tls(&identity).start();
    let proxy = Proxy::to(server.address());
    let context = Context::new("east", "https://api.east.invalid:6443").trusting(&authority);
    let folder = Folder::mesh();
    folder.write("kubeconfig", kubeconfig(&[context]));
    let url = format!("http://{}", proxy.address());
    let arguments = [SNAPSHOT.as_slice(), &["east"]].concat();

    let run = folder.run_with(&[("HTTPS_PROXY", &url)], &arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(asked(&proxy).len(), 1);

    let exempting = [
        "api.east.invalid",
        ".invalid",
        "198.18.2.1,invalid",
        "*.east.invalid",
        "API.east.invalid:6443",
        "*",
    ];
    for exempt in exempting {
        let variables = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", exempt)];
        let run = folder.run_with(&variables, &arguments);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert_contains(&run.stderr, "`api.east.invalid` does not resolve");
    }
    assert_eq!(asked(&proxy).len(), 1);

    for other in [".api.east.invalid", "api.east.invalid:443", "st.invalid"] {
        let variables = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", other)];
        let run = folder.run_with(&variables, &arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    assert_eq!(asked(&proxy).len(), 4);
}

#[test]
fn goes_straight_to_this_machine() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    let proxy = Proxy::to(site.east.address());
    let url = format!("http://{}", proxy.address());
    let run = site.folder.run_with(&[("HTTP_PROXY", &url)], &SNAPSHOT);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(asked(&proxy), []);
}
