//! Failed answers: the old snapshot is kept, and the cause is reported.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Site, nodes};
use crate::api_server::{Answer, Context, Listener, Login, Reply, Setup, list};
use crate::cli::{SOON, api_node};
use crate::support::assert_contains;

/// A server that always sends the same answer.
fn always(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Site {
    Site::new(Setup::default().fault(move |_, _| Some(reply())))
}

fn answer(status: u16, content_type: &'static str, body: &'static str) -> Site {
    always(move || Answer::new(status, content_type, body).into())
}

fn said(site: &Site) -> String {
    let said = site.failure(&[]);
    assert_eq!(site.east.requests().len(), 1, "was asked again");
    said
}

#[test]
fn it_does_not_know_us() {
    let site = Site::new(Setup::nodes(&nodes(1)).login(Login::token("sesame")));
    insta::assert_snapshot!(said(&site), @"
    error[unauthorized]: east: could not be read: 127.0.0.1:PORT requires credentials, and user `east` of kubeconfig has none (401: Unauthorized); snapshots/east.json was kept
    help: add a token, a client certificate or a login plugin (`exec`) to user `east` of kubeconfig
    ");
}

#[test]
fn we_may_not() {
    let site = always(|| Answer::forbidden("ada").into());
    insta::assert_snapshot!(said(&site), @r#"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: nodes is forbidden: User "ada" cannot list resource "nodes" in API group "" at the cluster scope); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right
    "#);
}

#[test]
fn nobody_gets_rights_who_is_anonymous() {
    let anonymous = || Answer::forbidden("system:anonymous").into();
    let site = always(anonymous);
    insta::assert_snapshot!(said(&site), @r#"
    error[forbidden]: east: could not be read: user `east` of kubeconfig has no credentials (403: nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope); snapshots/east.json was kept
    help: add a token, a client certificate or a login plugin (`exec`) to user `east` of kubeconfig
    "#);
    // As behind a proxy that ends TLS.
    let setup = Setup::default().fault(move |_, _| Some(anonymous()));
    let site = Site::with(setup.start(), |context| context.user("token", "sesame"));
    insta::assert_snapshot!(said(&site), @r#"
    error[forbidden]: east: could not be read: the server received no credentials from user `east` of kubeconfig (403: nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope); snapshots/east.json was kept
    help: add a token, a client certificate or a login plugin (`exec`) to user `east` of kubeconfig
    "#);
}

#[test]
fn there_is_no_such_thing() {
    let site = always(|| Answer::failure(404, "NotFound", "the server could not find it").into());
    insta::assert_snapshot!(said(&site), @"
    error[refused-request]: east: could not be read: the server responded with 404: the server has no node list; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(404, "text/plain", "404 page not found\n")), @"
    error[refused-request]: east: could not be read: the server responded with 404: the server has no node list; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn it_is_ill() {
    let site = always(|| Answer::failure(500, "InternalError", "etcd has no leader").into());
    insta::assert_snapshot!(site.failure(&[]), @"
    error[refused-request]: east: could not be read: the server responded 5 times with 500: etcd has no leader; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
    assert_eq!(site.east.requests().len(), 5);
    let page = "<html>\n<head><title>503 Service Unavailable</title></head></html>";
    insta::assert_snapshot!(answer(503, "text/html", page).failure(&[]), @"
    error[refused-request]: east: could not be read: the server responded 5 times with 503; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
    insta::assert_snapshot!(answer(502, "text/plain", "").failure(&[]), @"
    error[refused-request]: east: could not be read: the server responded 5 times with 502; snapshots/east.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
}

#[test]
fn it_is_something_else() {
    let html = "<!doctype html><title>Sign in</title>";
    insta::assert_snapshot!(said(&answer(200, "text/html", html)), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: it is a web page; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", "nonsense")), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: it is not JSON: expected ident at line 1 column 2; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", r#"{"kind":"NodeList","items":7}"#)), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a list of at most 50000 items at line 1 column 28; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", r#"{"kind":"PodList","items":[]}"#)), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a NodeList, found the kind `PodList`; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", r#"{"kind":"Status","status":"Failure","code":500}"#)), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a NodeList, found the kind `Status`; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", "[]")), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected an object at line 1 column 2; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(&answer(200, "application/json", r#"{"kind":"NodeList","items":[{"metadata":{}}]}"#)), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: item 0 of the list has no name; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn it_has_two_nodes_of_one_name() {
    let site = Site::new(Setup::nodes(&[api_node(1, 1), api_node(1, 1)]));
    insta::assert_snapshot!(said(&site), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: duplicate node name `n1`; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn it_has_no_nodes() {
    let site = Site::new(Setup::default());
    let before = site.folder.read("snapshots/east.json");
    let run = site.snapshot(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_eq!(site.folder.read("snapshots/east.json"), before);
    insta::assert_snapshot!(site.about_east(&run), @"
    snapshots/east.json: 0 nodes, 0 usable, not written
    error[empty-snapshot]: east: the node list is empty; snapshots/east.json was kept
    help: the list is probably incomplete: run the command again with a new list; if the cluster has no node any more, add `--accept east`
    ");
    // `null` is how Go writes an empty list.
    let site = answer(200, "application/json", r#"{"kind":"NodeList","items":null}"#);
    assert_eq!(site.snapshot(&[]).code, 1);
}

#[test]
fn it_breaks_off_every_time() {
    let site = always(|| Reply::HangUp);
    insta::assert_snapshot!(site.failure(&[]), @"
    error[cut-answer]: east: could not be read: the response was cut off 5 times: connection closed before message completed; snapshots/east.json was kept
    help: check whether a proxy or load balancer cuts long responses
    ");
    assert_eq!(site.east.requests().len(), 5);
    insta::assert_snapshot!(always(|| Reply::Cut(list(&nodes(1), None))).failure(&[]), @"
    error[cut-answer]: east: could not be read: the response was cut off 5 times: end of file before message length reached; snapshots/east.json was kept
    help: check whether a proxy or load balancer cuts long responses
    ");
    let halves: [fn() -> Reply; 4] = [
        || Reply::CutToFit(list(&nodes(1), None)),
        || Answer::new(200, "application/json", "").into(),
        || {
            Answer::new(200, "application/json", r#"{"kind":"NodeList","items":[{"metadata""#)
                .into()
        },
        || Answer::new(204, "text/plain", "").into(),
    ];
    for half in halves {
        insta::allow_duplicates!(insta::assert_snapshot!(always(half).failure(&[]), @"
        error[cut-answer]: east: could not be read: the response was cut off 5 times: the response is incomplete; snapshots/east.json was kept
        help: check whether a proxy or load balancer cuts long responses
        "));
    }
    insta::assert_snapshot!(always(|| Reply::CutChunks(list(&nodes(1), None))).failure(&[]), @"
    error[cut-answer]: east: could not be read: the response was cut off 5 times: unexpected EOF during chunk size line; snapshots/east.json was kept
    help: check whether a proxy or load balancer cuts long responses
    ");
}

#[test]
fn it_takes_too_long() {
    for reply in [|| Reply::Silence, || Reply::SlowHead, || Reply::SlowBody] {
        let site = always(reply);
        let start = Instant::now();
        let said = site.failure(&["--timeout", "1"]);
        assert!(start.elapsed() < SOON);
        assert_eq!(site.east.requests().len(), 1, "was asked again");
        insta::allow_duplicates!(insta::assert_snapshot!(said, @"
        error[slow-cluster]: east: could not be read: no response from 127.0.0.1:PORT within 1 s; snapshots/east.json was kept
        help: increase `--timeout` if the cluster is slow
        "));
    }
}

#[test]
fn it_sends_us_elsewhere() {
    let other = Setup::nodes(&nodes(1)).start();
    let target = format!("{}/api/v1/nodes?session=0123456789", other.url());
    let redirect = Setup::default().fault(move |_, _| Some(Answer::redirect(&target).into()));
    let site = Site::with(redirect.start(), |context| context.user("token", "sesame-sesame"));
    insta::assert_snapshot!(said(&site), @"
    error[redirected]: east: could not be read: the server redirects to 127.0.0.1, which clustermesh does not follow; snapshots/east.json was kept
    help: correct `server` in the kubeconfig: credentials are not sent to other servers
    ");
    let requests = site.east.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sesame-sesame"));
    assert_eq!(other.connections(), 0);
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site =
        Site::with(Setup::default().start(), |_| Context::new("east", &format!("http://{port}")));
    let started = Instant::now();
    let said = site.failure(&["--timeout", "2"]);
    assert!(started.elapsed() < SOON);
    let said = said.replace(&port.to_string(), "SERVER");
    // A busy machine makes fewer attempts in the same time.
    let said = ["3", "2"]
        .iter()
        .fold(said, |said, few| said.replace(&format!("(attempts: {few})"), "(attempts: 4)"));
    insta::assert_snapshot!(said, @"
    error[unreachable-cluster]: east: could not be read: cannot connect to SERVER (attempts: 4): Connection refused (os error 111); snapshots/east.json was kept
    help: check that the cluster runs, that the network path is open, and `server` in the kubeconfig; or read a dump with `--from east=FILE`
    ");
}

#[test]
fn it_restarts() {
    // Nothing listens on the port for a second.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site =
        Site::with(Setup::default().start(), |_| Context::new("east", &format!("http://{port}")));
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        let listener = TcpListener::bind(port).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        // At first it does not know who has rights.
        let forbidden = r#"{"kind":"Status","message":"nodes is forbidden"}"#;
        let list = r#"{"kind":"NodeList","metadata":{},"items":[]}"#;
        for (status, body) in [("403 Forbidden", forbidden), ("200 OK", list)] {
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        }
    });
    let run = site.snapshot(&["east", "--accept", "east"]);
    server.join().unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn its_name_does_not_resolve() {
    let site = Site::with(Setup::default().start(), |_| {
        Context::new("east", "https://api.east.invalid:6443")
    });
    insta::assert_snapshot!(site.failure(&["--timeout", "10"]), @"
    error[unknown-host]: east: could not be read: the name `api.east.invalid` does not resolve; snapshots/east.json was kept
    help: check `server` in the kubeconfig, and that this machine can resolve it (VPN?); or read a dump with `--from east=FILE`
    ");
}

#[test]
fn it_speaks_no_tls() {
    let server = Setup::nodes(&nodes(1)).start();
    let url = format!("https://{}", server.address());
    let site = Site::with(server, |context| context.cluster("server", url.as_str()));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[untrusted-certificate]: east: could not be read: 127.0.0.1:PORT does not support TLS; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn it_hangs_up_on_tls() {
    let listener = Listener::start(|mut stream| {
        // Before its last byte is read, closing would be a reset.
        let _ = stream.read(&mut [0; 4096]).unwrap();
    });
    let url = format!("https://{}", listener.address());
    let site =
        Site::with(Setup::default().start(), |context| context.cluster("server", url.as_str()));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[cut-answer]: east: could not be read: the response was cut off 5 times: tls handshake eof; snapshots/east.json was kept
    help: check whether a proxy or load balancer cuts long responses
    ");
    assert_eq!(listener.connections(), 5);
}

/// Its error may repeat our credentials.
#[test]
fn it_repeats_our_secrets() {
    for status in [401, 403, 400, 500] {
        let setup = Setup::default().fault(move |request, _| {
            let message = format!("who is {}?", request.header("authorization").unwrap());
            Some(Answer::failure(status, "Odd", &message).into())
        });
        let site = Site::with(setup.start(), |context| context.user("token", "sesame-sesame"));
        let said = site.failure(&[]);
        assert_contains(&said, "who is Bearer [hidden]?");
        assert!(!said.contains("sesame"), "{said}");
    }
}

/// Neither its message nor its list may end up in a repository.
#[test]
fn it_lists_our_secrets() {
    let repeating = |list: fn(&str) -> Value| {
        let setup = Setup::default().fault(move |request, _| {
            let authorization = request.header("authorization").unwrap();
            Some(Answer::json(&list(authorization)).into())
        });
        Site::with(setup.start(), |context| {
            context.user("username", "ada").user("password", "sesame-sesame")
        })
    };
    let site = repeating(|authorization| json!({ "kind": authorization }));
    insta::assert_snapshot!(said(&site), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a NodeList; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let site = repeating(|authorization| {
        let mut node = api_node(1, 1);
        node["metadata"]["labels"]["who"] = authorization.into();
        json!({ "kind": "NodeList", "items": [node] })
    });
    insta::assert_snapshot!(said(&site), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: it contains the request's credentials; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

/// Every way to write it in JSON is the same text when it is read.
#[test]
fn it_lists_our_secrets_with_escapes() {
    let token = r#"sesame"sesame\/sesame"#;
    let escapes: [fn(char) -> String; 4] = [
        |it| format!("\\u{:04x}", u32::from(it)),
        |it| format!("\\u{:04X}", u32::from(it)),
        |it| match it {
            's' => "\\u0073".to_owned(),
            '/' => "\\/".to_owned(),
            '"' | '\\' => format!("\\{it}"),
            other => other.to_string(),
        },
        |it| match it {
            '"' | '\\' => format!("\\{it}"),
            other => other.to_string(),
        },
    ];
    let places = [
        r#"{"metadata":{"name":"TOKEN"}}"#,
        r#"{"metadata":{"name":"n1","uid":"TOKEN"}}"#,
        r#"{"metadata":{"name":"n1","labels":{"TOKEN":""}}}"#,
        r#"{"metadata":{"name":"n1","labels":{"a":"b TOKEN"}}}"#,
        r#"{"metadata":{"name":"n1","annotations":{"kilo.squat.ai/key":"TOKEN"}}}"#,
        r#"{"metadata":{"name":"n1"},"spec":{"podCIDR":"TOKEN"}}"#,
        r#"{"metadata":{"name":"n1"},"spec":{"podCIDRs":["TOKEN"]}}"#,
        r#"{"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"TOKEN"}]}}"#,
    ];
    for escape in escapes {
        let written: String = token.chars().map(escape).collect();
        for place in places {
            let node = place.replace("TOKEN", &written);
            let page = format!(r#"{{"kind":"NodeList","items":[{node}]}}"#);
            serde_json::from_str::<Value>(&page).unwrap();
            let setup = Setup::default()
                .fault(move |_, _| Some(Answer::new(200, "application/json", page.clone()).into()));
            let site = Site::with(setup.start(), |context| context.user("token", token));
            let said = said(&site);
            assert!(said.contains("it contains the request's credentials"), "{node}: {said}");
        }
    }
}

#[test]
fn it_names_its_nodes_after_our_secrets() {
    let mut node = api_node(1, 1);
    node["metadata"]["name"] = "sesame".into();
    let setup = Setup::nodes(&[node.clone(), node]);
    let site = Site::with(setup.start(), |context| context.user("token", "sesame"));
    insta::assert_snapshot!(said(&site), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: duplicate node name `[hidden]`; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn it_sends_us_to_our_secrets() {
    let elsewhere = || Answer::redirect("https://sesame-sesame.example/x");
    let setup = Setup::default().fault(move |_, _| Some(elsewhere().into()));
    let site = Site::with(setup.start(), |context| context.user("token", "sesame-sesame"));
    insta::assert_snapshot!(said(&site), @"
    error[redirected]: east: could not be read: the server redirects to [hidden].example, which clustermesh does not follow; snapshots/east.json was kept
    help: correct `server` in the kubeconfig: credentials are not sent to other servers
    ");
}

#[test]
fn it_repeats_the_secrets_of_a_provider() {
    let config = json!({
        "id-token": "sesame-id",
        "refresh-token": "sesame-refresh",
        "client-secret": "sesame-client",
        "idp-issuer-url": "https://idp.example",
    });
    let message = "sesame-id sesame-refresh sesame-client https://idp.example";
    let setup =
        Setup::default().fault(move |_, _| Some(Answer::failure(403, "Forbidden", message).into()));
    let provider = json!({ "name": "oidc", "config": config });
    let site = Site::with(setup.start(), |context| context.user("auth-provider", provider.clone()));
    insta::assert_snapshot!(said(&site), @"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403: [hidden] [hidden] [hidden] https://idp.example); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right
    ");
}

#[test]
fn it_tells_stories() {
    let long = "\u{1b}[2J\u{202e}\n".repeat(10_000);
    let site = always(move || Answer::failure(400, "Odd", &long).into());
    let said = site.failure(&[]);
    assert!(said.len() < 1500, "{} bytes", said.len());
    crate::cli::assert_plain(&said);
}
