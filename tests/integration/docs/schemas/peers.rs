//! Peers: the two schemas against the verdicts of the API server and of Kilo's webhook.

use super::*;

const WEBHOOK: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/kilo-peer-admission.json"));
const OPERATOR: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/operator.json"));

/// What the webhook admits and the strict schema refuses, and why it does.
const STRICTER: [(&str, &str); 4] = [
    (
        "capitalised-field-names",
        "Go reads them, the API server drops them, and then nothing is left",
    ),
    ("keepalive-65536", "WireGuard has 16 bits for it"),
    ("psk-not-base64", "Kilo drops it without output"),
    ("unknown-spec-field", "it would be passed over"),
];

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "Peer",
        "metadata": { "name": "peer" },
        "spec": spec,
    })
}

fn is_met(schema: &Value, peer: &Value) -> bool {
    violations(schema, peer).is_empty()
}

#[test]
fn the_schema_is_the_crd_s() {
    let schema = schema("kilo.squat.ai/peer_v1alpha1.json");
    let cases: Vec<Value> = serde_json::from_str(WEBHOOK).unwrap();
    for case in cases {
        let verdict = is_met(&schema, &object(&case["spec"]));
        assert_eq!(json!(verdict), case["crdSchemaAcceptsDerived"], "{case:#}");
    }
}

/// The strict schema refuses everything that the webhook refuses: it can express all of these
/// rules.
#[test]
fn the_strict_schema_is_the_webhook_s_and_more() {
    let schema = schema("kilo.squat.ai/peer-strict_v1alpha1.json");
    let cases: Vec<Value> = serde_json::from_str(WEBHOOK).unwrap();
    let mut stricter = BTreeSet::new();
    for case in &cases {
        let (allowed, verdict) = (case["allowed"] == true, is_met(&schema, &object(&case["spec"])));
        assert!(allowed || !verdict, "{case:#}");
        if allowed && !verdict {
            stricter.insert(case["name"].as_str().unwrap());
        }
    }
    assert_eq!(stricter, STRICTER.iter().map(|(name, _)| *name).collect());
}

#[test]
fn the_strict_schema_agrees_with_the_operator_s_tests() {
    let schema = schema("kilo.squat.ai/peer-strict_v1alpha1.json");
    let file: Value = serde_json::from_str(OPERATOR).unwrap();
    let vectors = file["vectors"].as_array().unwrap().iter();
    let mut held = 0;
    for case in vectors.filter(|it| it["group"] == "kiloPeerValidation") {
        let verdict = is_met(&schema, &object(&case["input"]["spec"]));
        let accepted = &case["expect"][0]["result"]["accepted"];
        assert_eq!(json!(verdict), *accepted, "{case:#}");
        held += 1;
    }
    assert_eq!(held, 11);
}

#[test]
fn only_the_strict_schema_wants_one_of_name_and_address() {
    let endpoint = |host: Value| {
        object(&json!({
            "allowedIPs": [],
            "endpoint": { "dnsOrIP": host, "port": 1 },
            "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
        }))
    };
    let strict = schema("kilo.squat.ai/peer-strict_v1alpha1.json");
    let loose = schema("kilo.squat.ai/peer_v1alpha1.json");
    for (host, is_one) in [
        (json!({ "ip": "::1" }), true),
        (json!({ "dns": "a.example" }), true),
        (json!({ "ip": "::1", "dns": null }), true),
        (json!({ "ip": "::1", "dns": "a.example" }), false),
        (json!({ "ip": null, "dns": null }), false),
        (json!({}), false),
    ] {
        let peer = endpoint(host);
        assert_eq!(is_met(&strict, &peer), is_one, "{peer}");
        assert!(is_met(&loose, &peer), "{peer}");
    }
}
