//! Our admission rules against the verdicts of Kilo's own webhook.

use std::num::NonZeroU16;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::kilo::peer::translation::AllowedIp;
use clustermesh::kilo::peer::{self, Peer, Refusal, Translation, crd};
use clustermesh::net::Cidr;
use clustermesh::wireguard::{Endpoint, Host, Keepalive, PublicKey};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const WEBHOOK: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/kilo-peer-admission.json"));
const OPERATOR: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/operator.json"));

/// The message of the webhook for a failed rule, and the rule; the first failure counts.
const MESSAGES: [(&str, &str); 10] = [
    ("could not unmarshal", "Undecodable"),
    ("invalid CIDR address", "AllowedIp"),
    ("either an endpoint DNS name", "EndpointNeither"),
    ("a lowercase RFC 1123 subdomain", "EndpointDns"),
    ("no more than 253 characters", "EndpointDns"),
    ("as a valid IP address", "EndpointIp"),
    ("valid UDP port number", "Port"),
    ("persistent keepalive", "Keepalive"),
    ("not base64 encoded", "KeyEncoding"),
    ("public key has invalid length", "KeyLength"),
];

/// The rule that the webhook's message names; none if it admits.
fn named(message: &str) -> &'static str {
    if message.is_empty() {
        return "";
    }
    let rule = MESSAGES.iter().find(|(text, _)| message.contains(text));
    rule.map(|(_, rule)| *rule).unwrap()
}

/// Asks what Kilo's webhook asks of a spec (`Peer.Validate` in `pkg/k8s/apis/kilo/v1alpha1/types.go`).
fn admit(spec: &Value) -> Result<(), Refusal> {
    Translation::from_spec(&peer::decode(spec)?).map(drop)
}

/// The rule that fails here; none if we admit.
fn rule(verdict: &Result<(), Refusal>) -> &'static str {
    match verdict {
        Ok(()) => "",
        Err(Refusal::Undecodable { .. }) => "Undecodable",
        Err(Refusal::AllowedIp { .. }) => "AllowedIp",
        Err(Refusal::EndpointNeither) => "EndpointNeither",
        Err(Refusal::EndpointDns(_)) => "EndpointDns",
        Err(Refusal::EndpointIp(_)) => "EndpointIp",
        Err(Refusal::Port(_)) => "Port",
        Err(Refusal::Keepalive(_)) => "Keepalive",
        Err(Refusal::KeyEncoding) => "KeyEncoding",
        Err(Refusal::KeyLength(_)) => "KeyLength",
    }
}

/// What of our refusal the webhook's message must repeat.
fn detail(verdict: &Result<(), Refusal>) -> String {
    match verdict {
        Err(Refusal::Undecodable { field, .. }) => format!("{field} of type"),
        Err(Refusal::AllowedIp { text, .. } | Refusal::EndpointIp(text)) => format!("{text:?}"),
        Err(Refusal::Port(port)) => format!("got {port}"),
        _ => String::new(),
    }
}

#[test]
fn agrees_with_the_webhook() {
    let cases: Vec<Value> = serde_json::from_str(WEBHOOK).unwrap();
    assert_eq!(cases.len(), 79);
    for case in cases {
        let message = case["message"].as_str().unwrap();
        let verdict = admit(&case["spec"]);
        let undecodable = matches!(verdict, Err(Refusal::Undecodable { .. }));
        let status = if undecodable { 400 } else { 200 };
        let ours = json!([verdict.is_ok(), status, rule(&verdict)]);
        let theirs = json!([case["allowed"], case["httpStatus"], named(message)]);
        assert_eq!(ours, theirs, "{case:#}");
        assert!(message.contains(&detail(&verdict)), "{case:#}");
    }
}

#[test]
fn translates_as_the_agent_does() {
    let cases: Vec<Value> = serde_json::from_str(WEBHOOK).unwrap();
    let mut translated = 0;
    for case in cases {
        let ours = peer::decode(&case["spec"]).and_then(|spec| Translation::from_spec(&spec));
        let Some(theirs) = case.get("kg") else {
            assert!(ours.is_err(), "{case:#}");
            continue;
        };
        let ours = ours.unwrap();
        translated += 1;
        let texts: Vec<String> = ours.allowed_ips.iter().map(AllowedIp::to_string).collect();
        let endpoint = ours.endpoint.as_ref().map(ToString::to_string);
        assert_eq!(json!(texts), theirs["allowedIPs"], "{case:#}");
        assert_eq!(json!(STANDARD.encode(ours.key)), theirs["publicKey"], "{case:#}");
        assert_eq!(json!(endpoint.unwrap_or_default()), theirs["endpoint"], "{case:#}");
        assert_eq!(json!(ours.is_ready()), theirs["ready"], "{case:#}");
        let keepalive = ours.keepalive.map_or(0, std::num::NonZeroU64::get);
        assert_eq!(json!(keepalive), theirs["persistentKeepaliveSeconds"], "{case:#}");
        let secret = theirs.get("presharedKey").and_then(Value::as_str);
        assert_eq!(ours.preshared_key.is_some(), secret.is_some(), "{case:#}");
    }
    assert_eq!(translated, 31);
}

#[test]
fn stores_what_the_schema_takes() {
    let cases: Vec<Value> = serde_json::from_str(WEBHOOK).unwrap();
    for case in cases {
        let stored = crd::stored(&case["spec"]);
        let theirs = &case["crdSchemaAcceptsDerived"];
        assert_eq!(&json!(stored.is_ok()), theirs, "{stored:?} {case:#}");
    }
}

#[test]
fn agrees_with_the_operators_tests() {
    let file: Value = serde_json::from_str(OPERATOR).unwrap();
    let vectors = file["vectors"].as_array().unwrap().iter();
    let cases: Vec<&Value> =
        vectors.filter(|vector| vector["group"] == "kiloPeerValidation").collect();
    assert_eq!(cases.len(), 11);
    for case in cases {
        let verdict = admit(&case["input"]["spec"]);
        let accepted = &case["expect"][0]["result"]["accepted"];
        assert_eq!(&json!(verdict.is_ok()), accepted, "{case:#}");
    }
}

/// Any JSON, with names that matter among its keys.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[0-9a-f.:/%=+\r\n]{0,20}".prop_map(Value::from),
    ];
    let name = "allowedIPs|publicKey|endpoint|dnsOrIP|dns|IP|port|persistentKeepalive|\\PC*";
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn cidr() -> impl Strategy<Value = Cidr> {
    (any::<std::net::IpAddr>(), 0u8..=128).prop_filter_map("mapped", |(address, length)| {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let text = format!("{address}/{}", length.min(longest));
        text.parse().ok()
    })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let host = prop_oneof![
        any::<std::net::IpAddr>().prop_map(|address| Host::Ip(address.to_canonical())),
        "[a-z0-9]{1,70}(\\.[a-z]([a-z-]{0,20}[a-z])?){0,4}".prop_map(Host::Dns),
    ];
    let endpoint = (host, any::<NonZeroU16>()).prop_map(|(host, port)| Endpoint { host, port });
    endpoint.prop_filter("nobody can dial it", |endpoint| endpoint.host.check().is_ok())
}

prop_compose! {
    fn ours()(
        allowed_ips in prop::collection::vec(cidr(), 0..5),
        endpoint in prop::option::of(endpoint()),
        keepalive in prop::option::of(any::<NonZeroU16>()),
        key in any::<[u8; 32]>().prop_filter_map("unusable", |bytes| {
            STANDARD.encode(bytes).parse::<PublicKey>().ok()
        }),
    ) -> Peer {
        Peer {
            name: clustermesh::name::PeerName::new(
                &"mesh".parse().unwrap(),
                &"east".parse().unwrap(),
                &"node".parse().unwrap(),
            ),
            mesh: "mesh".parse().unwrap(),
            cluster: "east".parse().unwrap(),
            allowed_ips,
            endpoint,
            keepalive: keepalive.map(Keepalive),
            key,
        }
    }
}

proptest! {
    #[test]
    fn no_json_makes_it_panic(value in value()) {
        let _ = admit(&value);
    }

    #[test]
    fn every_peer_of_ours_is_admitted(peer in ours()) {
        prop_assert_eq!(admit(&json!(peer.spec())), Ok(()));
    }
}
