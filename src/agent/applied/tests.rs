use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::kilo::peer::Refusal;
use crate::place::Part;

const KEY: &str = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";

fn read(text: &str) -> Content {
    let file = AppliedFile::read(&"f.yaml".into(), &text.into());
    file.content.as_ref().clone()
}

fn report(text: &str) -> String {
    let content = read(text);
    let mut report = String::new();
    for peer in &content.peers {
        let Spot { document, pointer } = &peer.spot;
        let spec = match &peer.spec {
            Ok(spec) => {
                let ranges = spec.allowed_ips.iter().map(ToString::to_string);
                ranges.collect::<Vec<_>>().join(" ")
            }
            Err(fault) => format!("{fault:?}"),
        };
        writeln!(report, "{document}#{pointer} {}: {spec}", peer.name).unwrap();
    }
    for other in &content.others {
        let Spot { document, pointer } = &other.spot;
        writeln!(report, "{document}#{pointer} other: {:?}", other.what).unwrap();
    }
    report
}

#[test]
fn reads_what_a_cluster_lists() {
    let yaml = format!(
        "apiVersion: v1
items:
- apiVersion: kilo.squat.ai/v1alpha1
  kind: Peer
  metadata: {{creationTimestamp: 2026-11-20T10:00:00Z, generation: 1, name: a, uid: 0e1}}
  spec: {{allowedIPs: [10.0.0.0/24, 10.9.0.1/32], publicKey: {KEY}}}
- apiVersion: v1
  kind: Node
kind: List
metadata: {{resourceVersion: ''}}
"
    );
    insta::assert_snapshot!(report(&yaml), @r#"
    0#/items/0 a: 10.0.0.0/24 10.9.0.1/32
    0#/items/1 other: Kind { api_version: "v1", kind: "Node" }
    "#);
    let json = format!(
        r#"{{"kind": "PeerList", "items": [{{"apiVersion": "{API_VERSION}", "kind": "Peer",
        "metadata": {{"name": "a"}}, "spec": {{"allowedIPs": ["10.0.0.1/8"], "publicKey": "{KEY}"}}}}]}}"#
    );
    insta::assert_snapshot!(report(&json), @"0#/items/0 a: 10.0.0.1/8");
}

#[test]
fn what_cannot_be_read_is_a_fact_of_its_own() {
    let yaml = format!(
        "---
apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: {{name: A_b}}
---
# nothing
---
apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: {{name: yes}}
---
apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: {{name: c}}
spec: {{allowedIPs: 10.0.0.0/8, publicKey: {KEY}}}
---
apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: {{name: d}}
spec: {{allowedIPs: [10.0.0.0/8], publicKey: {KEY}, endpoint: {{dnsOrIP: {{ip: 1.2.3.4}}, port: 0x1}}}}
---
- a list
"
    );
    insta::assert_snapshot!(report(&yaml), @r#"
    3# c: NotStored(Mismatch { field: "spec.allowedIPs", problem: Type("a list") })
    4# d: NotStored(Mismatch { field: "spec.endpoint.port", problem: Type("a 32-bit integer") })
    0# other: Name(Some("A_b"))
    2# other: Name(None)
    5# other: Kind { api_version: "", kind: "" }
    "#);
    assert!(report("a: [").contains("not valid YAML"));
    assert!(report("{\"a\": ").contains("not valid YAML"));
    assert_eq!(report(""), "");
}

#[test]
fn a_place_leads_to_the_line() {
    let text = format!(
        "apiVersion: kilo.squat.ai/v1alpha1
kind: Peer
metadata: {{name: a}}
spec:
  allowedIPs:
  - 10.0.0.0/24
  - 10.9.0.0/32
  publicKey: {KEY}
"
    );
    let file = AppliedFile::read(&"f.yaml".into(), &text.as_str().into());
    let place = file.allowed_ip(&file.content.peers[0], 1);
    assert_eq!(place.part, Part::Value);
    let source = Source::parse("f.yaml", text.as_str()).unwrap();
    let span = source.locate(&place).unwrap();
    assert_eq!(source.position(span.start).line, 7);
    assert_eq!(&text[span], "10.9.0.0/32");
}

#[test]
fn one_text_is_read_once() {
    let text: Arc<str> = own(&PeerText::default()).into();
    let other: Arc<str> = "kind: Kustomization\n".into();
    let files = [
        ("a/x.yaml".into(), Arc::clone(&text)),
        ("a/k.yaml".into(), Arc::clone(&other)),
        ("b/x.yaml".into(), text),
        ("b/k.yaml".into(), other),
    ];
    let read = AppliedFile::read_all(&files);
    assert!(Arc::ptr_eq(&read[0].content, &read[2].content));
    assert_eq!(read[1].content.others.len(), 1);
    assert_eq!(&*read[2].source, "b/x.yaml");
    assert_eq!(read[0].content.peers.len(), 1);
}

/// The parts of a generated file that a test varies.
#[derive(Clone, Debug)]
struct PeerText {
    name: String,
    allowed_ips: Vec<String>,
    endpoint: Option<(&'static str, String, u32)>,
    keepalive: Option<u32>,
    key: String,
}

impl Default for PeerText {
    fn default() -> Self {
        Self {
            name: "prod--east--a".to_owned(),
            allowed_ips: vec!["10.0.0.0/24".to_owned()],
            endpoint: None,
            keepalive: None,
            key: KEY.to_owned(),
        }
    }
}

/// Writes as the manifests are written.
fn own(peer: &PeerText) -> String {
    let mut text =
        format!("# Made by hand.\n{HEAD}prod\n    kilo-clustermesh.io/source-cluster: east\n");
    writeln!(text, "  name: {}\nspec:\n  allowedIPs:", peer.name).unwrap();
    for range in &peer.allowed_ips {
        writeln!(text, "  - \"{range}\"").unwrap();
    }
    if let Some((kind, host, port)) = &peer.endpoint {
        write!(text, "  endpoint:\n    dnsOrIP:\n      {kind}: {host}\n    port: {port}\n")
            .unwrap();
    }
    if let Some(seconds) = peer.keepalive {
        writeln!(text, "  persistentKeepalive: {seconds}").unwrap();
    }
    writeln!(text, "  publicKey: \"{}\"", peer.key).unwrap();
    text
}

const HEAD: &str = "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: clustermesh\n    kilo-clustermesh.io/mesh: ";

/// Files that clustermesh writes, as in the examples.
#[test]
fn rendered_files_take_the_short_way() {
    let rendered = [
        include_str!("../../../examples/quickstart/rendered/east/quickstart--west.yaml"),
        include_str!(
            "../../../examples/hub-and-spokes/rendered/tenant-ada/platform--management.yaml"
        ),
        include_str!(
            "../../../examples/multi-cloud-location/rendered/aws/multi-cloud--onprem.yaml"
        ),
    ];
    for text in rendered {
        let peers = super::own(text).unwrap();
        let others = Vec::new();
        assert_eq!(Content { peers, others }, general(&"f".into(), &text.into()));
    }
}

#[test]
fn what_we_would_not_write_takes_the_long_way_and_is_judged() {
    let peer = PeerText { allowed_ips: vec!["10.0.0.0/33".to_owned()], ..PeerText::default() };
    let text = own(&peer);
    assert!(super::own(&text).is_none());
    assert!(matches!(
        read(&text).peers[0].spec,
        Err(TranslationFault::Ignored(Refusal::AllowedIp { index: 0, .. }))
    ));
    assert!(super::own("# x\n").is_none());
    // Kilo keeps host bits, and takes an address that is given as a name for an address.
    let with = |range: &str, host: &str| PeerText {
        allowed_ips: vec![range.to_owned()],
        endpoint: Some(("dns", host.to_owned(), 7)),
        ..PeerText::default()
    };
    let is_own = |peer: PeerText| super::own(&own(&peer)).is_some();
    assert!(is_own(with("10.0.0.0/8", "wg.example")));
    assert!(!is_own(with("10.0.0.1/8", "wg.example")));
    assert!(!is_own(with("10.0.0.0/8", "192.0.2.1")));
}

fn peer() -> impl Strategy<Value = PeerText> {
    let word = "(yes|On|NULL|[a-zA-Z]{1,5}|\"[a-z0-9:. ]{0,4}\"|7|1e3)";
    let name = prop_oneof![3 => "prod--east--[a-z0-9.-]{0,4}", 1 => word];
    let range = "(10\\.[0-9]{1,3}\\.0\\.[0-9]{1,2}/[0-9]{1,2}|fd00::[0-9]/[0-9]{1,3}|\\PC{0,4})";
    let endpoint = (prop::sample::select(vec!["ip", "dns"]), word, 0u32..70000);
    (
        name,
        prop::collection::vec(range, 0..4),
        prop::option::of(endpoint),
        prop::option::of(0u32..70000),
        prop_oneof![Just(KEY.to_owned()), "[A-Za-z0-9+/]{0,6}={0,2}"],
    )
        .prop_map(|(name, allowed_ips, endpoint, keepalive, key)| PeerText {
            name,
            allowed_ips,
            endpoint,
            keepalive,
            key,
        })
}

proptest! {
    /// Every text that is read the short way is what the parser finds in it.
    #[test]
    fn the_short_way_is_the_long_way(
        peers in prop::collection::vec(peer(), 1..4),
        cut in prop::option::of((0usize..2000, "[\\PC\n]{0,3}")),
    ) {
        let mut text = String::new();
        for (index, peer) in peers.iter().enumerate() {
            let written = own(peer);
            let body = if index == 0 { &written[..] } else { &written["# Made by hand.\n".len()..] };
            if 0 < index {
                text.push_str("---\n");
            }
            text.push_str(body);
        }
        if let Some((at, with)) = cut
            && text.is_char_boundary(at.min(text.len()))
        {
            text.insert_str(at.min(text.len()), &with);
        }
        if let Some(peers) = super::own(&text) {
            let others = Vec::new();
            prop_assert_eq!(Content { peers, others }, general(&"f".into(), &text.as_str().into()));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text: String) {
        read(&text);
        read(&format!("{{\"kind\": \"List\", \"items\": [{text}]}}"));
    }
}
