//! Does the server keep its word? Seen with bare sockets.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::identity::provider;
use super::*;
use crate::support::assert_contains;

const PATIENCE: Duration = Duration::from_secs(60);

fn node(number: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": format!("n{number}") } })
}

fn nodes(count: usize) -> Vec<Value> {
    (1..=count).map(node).collect()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(mut stream: impl Write, target: &str, headers: &str) {
    write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").unwrap();
}

/// Asks on a connection of its own, and returns everything that comes.
fn exchange(server: &ApiServer, target: &str, headers: &str) -> Vec<u8> {
    let mut stream = connect(server.address());
    ask(&stream, target, headers);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Splits what came into head and body.
fn split(answer: &[u8]) -> (String, &[u8]) {
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head, &answer[end + 4..])
}

fn answer(server: &ApiServer, target: &str, headers: &str) -> (String, Value) {
    let answer = exchange(server, target, headers);
    let (head, body) = split(&answer);
    (head, serde_json::from_slice(body).unwrap())
}

fn failing(reply: fn() -> Reply) -> ApiServer {
    let setup = Setup::nodes(&nodes(1));
    setup.fault(move |_, _| Some(reply())).start()
}

#[test]
fn pages_add_up() {
    let server = Setup::nodes(&nodes(5)).start();
    let (mut names, mut left) = (Vec::new(), Vec::new());
    let mut target = format!("{NODES}?limit=2");
    loop {
        let (_, page) = answer(&server, &target, "");
        let items = page["items"].as_array().unwrap();
        assert!(items.iter().all(|it| it.get("kind").is_none()));
        let metadata = &page["metadata"];
        names.extend(items.iter().map(|it| it["metadata"]["name"].to_string()));
        left.push(metadata["remainingItemCount"].as_u64());
        let Some(token) = metadata["continue"].as_str() else {
            break;
        };
        target = format!("{NODES}?limit=2&continue={}", token.replace('=', "%3D"));
    }
    assert_eq!(names.concat(), r#""n1""n2""n3""n4""n5""#);
    assert_eq!(left, [Some(3), Some(1), None]);
    assert_eq!(server.requests().len(), 3);
    assert_eq!(server.requests()[2].query["limit"], "2");

    let (head, _) = answer(&server, &format!("{NODES}?continue=x"), "");
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    server.change(&nodes(1));
    let (_, page) = answer(&server, NODES, "");
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}

/// An answer of a real API server, as `tests/cluster` records it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    name: String,
    path: String,
    user: String,
    status: u16,
    content_type: String,
    body: String,
}

/// Takes away what differs between two servers: the objects of a list, tokens and versions.
fn comparable(body: &str) -> String {
    let mut text = body.to_owned();
    if let Some((before, items)) = body.split_once(r#""items":["#) {
        let after = &items[items.rfind(']').unwrap()..];
        text = [before, r#""items":["#, after].concat();
    }
    for field in [r#""continue":""#, r#""resourceVersion":""#] {
        let Some((before, value)) = text.split_once(field) else {
            continue;
        };
        let (value, after) = value.split_once('"').unwrap();
        let value = if value.is_empty() { "" } else { "…" };
        text = [before, field, value, "\"", after].concat();
    }
    text
}

#[test]
fn answers_like_a_real_server() {
    let laptop = json!({ "apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": {} });
    let setup = Setup::nodes(&nodes(2)).login(Login::token("admin"));
    let server = setup
        .fault(|request, _| {
            let is_stranger = request.header("authorization") == Some("Bearer stranger");
            is_stranger.then(|| Answer::forbidden("stranger").into())
        })
        .start();
    server.apply(&[laptop]);
    let recorded = include_str!("../../vectors/api-server.json");
    let recorded: Vec<Recorded> = serde_json::from_str(recorded).unwrap();
    assert!(10 < recorded.len());
    for it in recorded {
        let login = format!("Authorization: Bearer {}\r\n", it.user);
        let answer = exchange(&server, &it.path, &login);
        let (head, body) = split(&answer);
        let status = format!("HTTP/1.1 {} ", it.status);
        assert!(head.starts_with(&status), "{}: {head}", it.name);
        let content_type = format!("Content-Type: {}", it.content_type);
        assert!(head.contains(&content_type), "{}: {head}", it.name);
        let body = comparable(str::from_utf8(body).unwrap());
        assert_eq!(body, it.body, "{}", it.name);
    }
}

#[test]
fn speaks_gzip_to_who_accepts_it() {
    const GZIP: &str = "Accept-Encoding: deflate, gzip\r\n";
    let server = Setup::nodes(&nodes(5000)).start();
    // Small answers are not worth it.
    let small = exchange(&server, &format!("{NODES}?limit=100"), GZIP);
    let (head, _) = split(&small);
    assert!(
        head.ends_with("Transfer-Encoding: chunked\r\nContent-Type: application/json"),
        "{head}"
    );
    let answer = exchange(&server, NODES, GZIP);
    let (head, body) = split(&answer);
    assert_contains(&head, "Content-Encoding: gzip");
    let mut chunks = body;
    let mut packed = Vec::new();
    loop {
        let end = chunks.iter().position(|&it| it == b'\r').unwrap();
        let length = str::from_utf8(&chunks[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        packed.extend(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + length + 4..];
    }
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    assert_contains(&text, r#""name":"n5000""#);
}

#[test]
fn keeps_connections() {
    let server = Setup::nodes(&nodes(1)).start();
    let mut stream = connect(server.address());
    for _ in 0..3 {
        ask(&stream, NODES, "");
        let mut page = Vec::new();
        while !page.ends_with(b"}\n") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).unwrap();
            page.extend(&bytes[..count]);
        }
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
    assert_eq!(server.busiest(), 1);
}

#[test]
fn lets_in_who_logs_in() {
    for (login, header) in [
        (Login::token("sesame"), "Authorization: Bearer sesame\r\n"),
        (Login::password("ada", "sesame"), "Authorization: Basic YWRhOnNlc2FtZQ==\r\n"),
    ] {
        let server = Setup::nodes(&nodes(1)).login(login).start();
        let (head, status) = answer(&server, NODES, "Authorization: Bearer other\r\n");
        assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
        assert_eq!(status["reason"], "Unauthorized");
        assert_eq!(answer(&server, NODES, header).1["kind"], "NodeList");
    }
}

#[test]
fn serves_secrets() {
    let setup = Setup::default().secret(["kilo", "east", "kubeconfig"], "text");
    let server = setup.start();
    let (_, secret) = answer(&server, "/api/v1/namespaces/kilo/secrets/east", "");
    assert_eq!(secret["data"]["kubeconfig"], STANDARD.encode("text"));
    let (head, status) = answer(&server, "/api/v1/namespaces/kilo/secrets/west", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    assert_eq!(status["message"], "secrets \"west\" not found");
}

#[test]
fn fails_as_told() {
    let server = Setup::nodes(&nodes(1))
        .fault(|request, number| match (request.path.as_str(), number) {
            (NODES, 1) => Some(Answer::too_many("1").into()),
            (NODES, 2) => Some(Answer::redirect("http://198.18.2.1/").into()),
            _ => None,
        })
        .start();
    let busy = String::from_utf8(exchange(&server, NODES, "")).unwrap();
    assert_contains(&busy, "Retry-After: 1\r\n");
    assert_contains(&busy, "\r\n\r\nToo many requests, ");
    let head = String::from_utf8(exchange(&server, NODES, "")).unwrap();
    assert_contains(&head, "Location: http://198.18.2.1/\r\n");
    assert_eq!(answer(&server, NODES, "").1["kind"], "NodeList");
}

#[test]
fn cuts_answers() {
    let server = failing(|| Reply::Cut(list(&nodes(9), None)));
    let answer = exchange(&server, NODES, "");
    let (head, body) = split(&answer);
    let promised: usize =
        head.split_once("Content-Length: ").unwrap().1.lines().next().unwrap().parse().unwrap();
    assert_eq!(body.len(), promised / 2);

    let more = More { token: "x".to_owned(), left: 1 };
    let page = list(&nodes(9), Some(&more));
    let server = Setup::default().fault(move |_, _| Some(Reply::CutChunks(page.clone()))).start();
    let answer = exchange(&server, NODES, "");
    assert!(!answer.ends_with(b"0\r\n\r\n"));
    let server = failing(|| Reply::HangUp);
    assert_eq!(exchange(&server, NODES, ""), b"");
}

#[test]
fn is_slow_until_it_is_dropped() {
    for reply in [|| Reply::Silence, || Reply::SlowHead, || Reply::SlowBody] {
        let server = failing(reply);
        let mut stream = connect(server.address());
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        ask(&stream, NODES, "");
        let mut answer = Vec::<u8>::new();
        let error = loop {
            let mut bytes = [0; 1024];
            match stream.read(&mut bytes) {
                Ok(count) if answer.len() < 30 => answer.extend(&bytes[..count]),
                Ok(_) => break None,
                Err(error) => break Some(error.kind()),
            }
        };
        let is_silent = error == Some(ErrorKind::WouldBlock);
        assert_eq!(is_silent, answer.is_empty(), "{answer:?}");
        let start = Instant::now();
        drop(server);
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn floods() {
    let server = failing(|| Reply::Flood(3_000_000));
    let answer = exchange(&server, NODES, "");
    let (_, body) = split(&answer);
    assert_eq!(body.len(), 3_000_000);
    let list: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(list["items"][0]["metadata"]["name"], "n1");

    let server = failing(|| Reply::Bomb(3_000_000));
    let answer = exchange(&server, NODES, "");
    let (_, bomb) = split(&answer);
    let mut text = Vec::new();
    GzDecoder::new(bomb).read_to_end(&mut text).unwrap();
    assert!(3_000_000 < text.len());
}

#[test]
fn shows_its_certificate_and_looks_at_others() {
    let authority = Authority::new("ours");
    let setup = Setup::nodes(&nodes(1)).login(Login::Certificate);
    let server = setup.tls_for(&authority.server(&["api.example"]), &authority).start();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let known = tls(&server, &authority, Some(&authority.user("ada"))).unwrap();
    assert!(known.starts_with("HTTP/1.1 200 "), "{known}");
    let unknown = tls(&server, &authority, None).unwrap();
    assert!(unknown.starts_with("HTTP/1.1 401 "), "{unknown}");
    assert!(tls(&server, &Authority::new("theirs"), None).is_err());

    let expired = authority.expired_server(&["api.example"]);
    let server = Setup::default().tls(&expired).start();
    let error = tls(&server, &authority, None).unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

/// Asks for nodes and returns what comes first.
fn tls(server: &ApiServer, roots: &Authority, user: Option<&Identity>) -> io::Result<String> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.roots());
    let config = match user {
        None => config.with_no_client_auth(),
        Some(user) => user.client(config),
    };
    let name = ServerName::try_from("api.example").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(server.address()));
    write!(stream, "GET {NODES} HTTP/1.1\r\n\r\n")?;
    let mut bytes = [0; 64];
    let count = stream.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

#[test]
fn proxies_lead_to_the_server() {
    let server = Setup::nodes(&nodes(1)).start();
    let proxy = Proxy::to(server.address());
    let get =
        "GET http://api.invalid/api/v1/nodes HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\n\r\n";
    let connect_first = "CONNECT api.invalid:6443 HTTP/1.1\r\n\r\n";
    let socks = b"\x05\x01\x00\x05\x01\x00\x03\x0bapi.invalid\x19\x2b";
    let plain = b"GET /api/v1/nodes HTTP/1.1\r\n\r\n";
    for greeting in [
        get.as_bytes().to_vec(),
        [connect_first.as_bytes(), plain].concat(),
        [socks.as_slice(), plain].concat(),
    ] {
        let mut stream = connect(proxy.address());
        stream.write_all(&greeting).unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"}\n") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).unwrap();
            assert_ne!(count, 0);
            seen.extend(&bytes[..count]);
        }
    }
    let visits = proxy.visits();
    let expected = |method: &str, target: &str, authorization: Option<&str>| Visit {
        method: method.to_owned(),
        target: target.to_owned(),
        authorization: authorization.map(str::to_owned),
    };
    assert_eq!(
        visits,
        [
            expected("GET", NODES, Some("Basic eA==")),
            expected("CONNECT", "api.invalid:6443", None),
            expected("SOCKS", "api.invalid:6443", None),
        ]
    );
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn kubeconfigs_say_what_they_should() {
    let authority = Authority::new("ours");
    let east = Context::new("east", "https://127.0.0.1:1")
        .trusting(&authority)
        .identified_by(&authority.user("ada"));
    let west = Context::new("west", "http://127.0.0.1:2")
        .cluster("proxy-url", "http://127.0.0.1:3")
        .plugin("/bin/sh", &["-c", "true"]);
    let text = kubeconfig(&[east, west]);
    let read: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(read["current-context"], "east");
    let ca = &read["clusters"][0]["cluster"]["certificate-authority-data"];
    assert_eq!(*ca, STANDARD.encode(authority.pem()));
    assert_eq!(read["users"][1]["user"]["exec"]["command"], "/bin/sh");
    assert!(credential("x").contains("ExecCredential"));
}
