//! The resource as it is written in manifests, and its schemas.
//!
//! The comments here are what editors show.

use std::num::NonZeroU16;

use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::Peer;
use crate::schema::{self, ExampleFile, pattern};
use crate::wireguard::{self, Host};

/// The version of a Peer, the only one that Kilo has.
const API_VERSION: &str = "kilo.squat.ai/v1alpha1";

/// The kind of a Peer.
const KIND: &str = "Peer";

/// Checks that are not in the schema of Kilo's CRD, which has only fields and their types, and does
/// not limit their values or forbid other fields.
const STRICT: [&str; 8] = [
    "additionalProperties",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "oneOf",
    "pattern",
    "propertyNames",
];

/// A WireGuard peer that is not a node of this cluster. Every node that runs WireGuard accepts
/// packets from the peer and routes the peer's ranges to it.
#[derive(JsonSchema)]
#[schemars(
    rename = "Peer",
    rename_all = "camelCase",
    deny_unknown_fields,
    example = ExampleFile(include_str!("resource/example.json"))
)]
#[expect(dead_code, reason = "only its schema is asked for")]
struct PeerResource {
    /// The version of this resource.
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The kind of this resource.
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// The name of the Peer. Peers are cluster-scoped.
    metadata: ResourceMetadata,
    /// The key, the endpoint and the ranges of the Peer.
    spec: PeerSpec,
}

/// The name of a Peer.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is asked for")]
#[schemars(rename = "Metadata")]
struct ResourceMetadata {
    /// The name of the Peer, unique in the cluster.
    #[schemars(length(max = 253), regex(pattern = pattern::subdomain()))]
    name: String,
}

/// The key, the endpoint and the ranges of a Peer.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Spec")]
pub struct PeerSpec {
    /// The ranges that are routed to the Peer and accepted from it. Their host bits must be zero,
    /// although Kilo does not document this.
    #[schemars(inner(regex(pattern = pattern::range())), example = ["10.42.0.0/24"])]
    #[serde(rename = "allowedIPs")]
    allowed_ips: Vec<String>,
    /// The endpoint of the Peer; without one, the Peer must connect first.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<PeerEndpoint>,
    /// Seconds between packets that keep a NAT mapping open; 0 disables them.
    #[schemars(example = 25)]
    #[serde(skip_serializing_if = "Option::is_none")]
    persistent_keepalive: Option<u16>,
    /// A secret that both sides share, 32 bytes in base64. Do not store it in git.
    #[schemars(regex(pattern = pattern::KEY_OR_NOTHING))]
    #[serde(skip_serializing_if = "Option::is_none")]
    preshared_key: Option<String>,
    /// The public key of the Peer, 32 bytes in base64. No other Peer or node may have the same key.
    #[schemars(
        regex(pattern = pattern::KEY),
        example = &"vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4="
    )]
    public_key: String,
}

/// The endpoint of a Peer.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Endpoint")]
struct PeerEndpoint {
    /// The IP address or DNS name.
    #[serde(rename = "dnsOrIP")]
    dns_or_ip: DnsOrIp,
    /// The UDP port.
    #[schemars(example = 51820)]
    port: NonZeroU16,
}

/// An IP address or a DNS name. If both are set, Kilo uses the name.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[schemars(rename = "DNSOrIP", deny_unknown_fields, extend("oneOf" = [only("dns"), only("ip")]))]
struct DnsOrIp {
    /// A DNS name in lowercase. A name that does not resolve stops Kilo on the node that looks it
    /// up.
    #[schemars(
        length(max = 253),
        regex(pattern = pattern::subdomain()),
        example = &"node.example.org"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<String>,
    /// An IPv4 or IPv6 address, without brackets.
    #[schemars(regex(pattern = pattern::address()), example = &"203.0.113.10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
}

/// Returns the JSON Schema of a Peer as Kilo's CRD has it: what the API server takes.
pub fn schema() -> Schema {
    let mut schema = strict_schema();
    RecursiveTransform(|schema: &mut Schema| {
        for keyword in STRICT {
            schema.remove(keyword);
        }
    })
    .transform(&mut schema);
    schema.insert("required".to_owned(), json!(["spec"]));
    // The only bounds that the CRD has: its `format: int32` for the port.
    if let Some(Value::Object(port)) = schema.pointer_mut("/$defs/Endpoint/properties/port") {
        port.insert("format".to_owned(), json!("int32"));
        port.insert("maximum".to_owned(), json!(i32::MAX));
        port.insert("minimum".to_owned(), json!(i32::MIN));
    }
    if let Some(Value::Object(metadata)) = schema.pointer_mut("/$defs/Metadata") {
        metadata.remove("required");
    }
    schema
}

/// Returns the JSON Schema of a Peer that Kilo can use: the rules of its admission webhook, and no
/// field that would be passed over.
///
/// It is stricter than the webhook in three cases that Kilo ignores silently: a name beside an
/// address, a keepalive of more than 16 bits, and an invalid pre-shared key.
pub fn strict_schema() -> Schema {
    schema::of_input::<PeerResource>()
}

impl Peer {
    /// Returns the object's `spec`.
    pub fn spec(&self) -> PeerSpec {
        PeerSpec {
            allowed_ips: self.allowed_ips.iter().map(ToString::to_string).collect(),
            endpoint: self.endpoint.as_ref().map(PeerEndpoint::new),
            persistent_keepalive: self.keepalive.map(|keepalive| keepalive.0.get()),
            preshared_key: None,
            public_key: self.key.to_string(),
        }
    }
}

impl PeerEndpoint {
    fn new(endpoint: &wireguard::Endpoint) -> Self {
        let mut dns_or_ip = DnsOrIp::default();
        match &endpoint.host {
            Host::Ip(address) => dns_or_ip.ip = Some(address.to_string()),
            Host::Dns(name) => dns_or_ip.dns = Some(name.clone()),
        }
        Self { dns_or_ip, port: endpoint.port }
    }
}

/// Objects that have this field, and not as null.
fn only(field: &str) -> Value {
    json!({ "properties": { field: { "type": "string" } }, "required": [field] })
}
