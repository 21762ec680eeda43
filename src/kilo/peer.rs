//! The Peer: what joins a node to a foreign one, and what Kilo admits as one (`kilo.md` §1).

use serde_json::{Map, Value};
use thiserror::Error;

use crate::diagnostic::Quoted;
use crate::name::{ClusterName, MeshName, PeerName};
use crate::net::Cidr;
use crate::wireguard::{Endpoint, Keepalive, PublicKey};

pub mod crd;
pub mod loose;
mod resource;
pub mod translation;
pub mod written;

pub use resource::{PeerSpec, schema, strict_schema};
pub use translation::Translation;

/// The label that names the cluster a Peer leads to, as the operator set it.
pub const SOURCE_LABEL: &str = "kilo-clustermesh.io/source-cluster";

/// The label that names the external peer that a Peer leads to, instead of a cluster.
pub const EXTERNAL_LABEL: &str = "kilo-clustermesh.io/external-peer";

/// The label that names a Peer's mesh, as the operator set it.
pub const MESH_LABEL: &str = "kilo-clustermesh.io/mesh";

/// The label that names the program that manages an object, as Kubernetes recommends it.
pub const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";

/// Its value on Peers that we render.
pub const MANAGER: &str = "clustermesh";

/// A Peer as we render it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Peer {
    /// The object's name.
    pub name: PeerName,
    /// The mesh that asked for it.
    pub mesh: MeshName,
    /// The cluster it leads to.
    pub cluster: ClusterName,
    /// The ranges that are routed to it and accepted from it, in this order.
    pub allowed_ips: Vec<Cidr>,
    /// Its endpoint: [`Endpoint::PLACEHOLDER`] if it must connect first. One that was read may have none.
    pub endpoint: Option<Endpoint>,
    /// Whether, and how often, it is called unasked.
    pub keepalive: Option<Keepalive>,
    /// Its public key.
    pub key: PublicKey,
}

/// A flaw in how a Peer is dialled, by which Kilo neglects other Peers or resets its tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndpointFlaw {
    /// It has no endpoint, so changes behind it are not applied until it connects (`kilo.md` §2.10).
    Missing,
    /// It has the placeholder without a keepalive, so each pass resets its tunnel (`kilo.md` §2.9).
    IdlePlaceholder,
}

impl Peer {
    /// Returns its labels, in order.
    pub fn labels(&self) -> [(&'static str, &str); 3] {
        let manager = (MANAGER_LABEL, MANAGER);
        let mesh = (MESH_LABEL, self.mesh.as_str());
        match self.cluster.external() {
            Some(name) => [manager, (EXTERNAL_LABEL, name), mesh],
            None => [manager, mesh, (SOURCE_LABEL, self.cluster.as_str())],
        }
    }
}

impl EndpointFlaw {
    /// Finds the flaw of a Peer with this endpoint.
    pub fn find(endpoint: Option<&Endpoint>, has_keepalive: bool) -> Option<Self> {
        match endpoint {
            None => Some(Self::Missing),
            Some(it) if it.is_placeholder() && !has_keepalive => Some(Self::IdlePlaceholder),
            Some(_) => None,
        }
    }
}

/// The reason why Kilo's admission webhook refuses a Peer: the first rule that fails, in its order.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// The webhook can't read the object and answers HTTP 400, before any rule is checked.
    #[error("`{field}` must be {wanted}, not {found}")]
    Undecodable {
        /// The field, from `spec` on.
        field: &'static str,
        /// The accepted type, with its article.
        wanted: &'static str,
        /// The given value.
        found: String,
    },
    /// An allowed IP that is not a CIDR.
    #[error("allowed IP {} is not a CIDR", Quoted(text))]
    AllowedIp {
        /// Its index.
        index: usize,
        /// Its content.
        text: String,
    },
    /// An endpoint without an address.
    #[error("the endpoint has neither a DNS name nor an IP address")]
    EndpointNeither,
    /// A name that is not a lowercase RFC 1123 subdomain.
    #[error("the endpoint's DNS name {} is not a lowercase RFC 1123 subdomain", Quoted(.0))]
    EndpointDns(String),
    /// An invalid address.
    #[error("the endpoint's IP address {} is not valid", Quoted(.0))]
    EndpointIp(String),
    /// A port outside 1 to 65535.
    #[error("the endpoint's port must be from 1 to 65535, not {0}")]
    Port(u32),
    /// Less than no time.
    #[error("the persistent keepalive {0} is negative")]
    Keepalive(i64),
    /// A key that is not padded standard base64.
    #[error("the public key is not base64")]
    KeyEncoding,
    /// A key that is too short or too long.
    #[error("the public key has {0} bytes instead of 32")]
    KeyLength(usize),
}

impl Refusal {
    /// Returns the text that is refused, if the message quotes it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::AllowedIp { text, .. } | Self::EndpointDns(text) | Self::EndpointIp(text) => {
                Some(text)
            }
            Self::Undecodable { .. }
            | Self::EndpointNeither
            | Self::Port(_)
            | Self::Keepalive(_)
            | Self::KeyEncoding
            | Self::KeyLength(_) => None,
        }
    }
}

/// A spec as Kilo's decoder reads it; a field that is missing or null is zero.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decoded<'a> {
    /// The ranges that are routed to the Peer.
    pub allowed_ips: Vec<&'a str>,
    /// The endpoint.
    pub endpoint: Option<RawEndpoint<'a>>,
    /// In seconds.
    pub keepalive: i64,
    /// In base64.
    pub public_key: &'a str,
    /// In base64.
    pub preshared_key: &'a str,
}

/// The endpoint of a [`Decoded`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RawEndpoint<'a> {
    /// A name; empty for none.
    pub dns: &'a str,
    /// An address; empty for none.
    pub ip: &'a str,
    /// The port.
    pub port: u32,
}

/// Reads a spec as Go's decoder reads it into Kilo's types.
///
/// # Errors
/// A field of the wrong type: [`Refusal::Undecodable`].
pub fn decode(value: &Value) -> Result<Decoded<'_>, Refusal> {
    let mut spec = Decoded::default();
    for (name, value) in members("spec", value)? {
        match folded(name).as_str() {
            "allowedips" => spec.allowed_ips = texts("spec.allowedIPs", value)?,
            "endpoint" if value.is_null() => spec.endpoint = None,
            "endpoint" => decode_endpoint(spec.endpoint.get_or_insert_default(), value)?,
            _ if value.is_null() => {}
            "persistentkeepalive" => spec.keepalive = seconds(value)?,
            "publickey" => spec.public_key = string("spec.publicKey", value)?,
            "presharedkey" => spec.preshared_key = string("spec.presharedKey", value)?,
            _ => {}
        }
    }
    Ok(spec)
}

fn decode_endpoint<'a>(endpoint: &mut RawEndpoint<'a>, value: &'a Value) -> Result<(), Refusal> {
    for (name, value) in members("spec.endpoint", value)? {
        match folded(name).as_str() {
            _ if value.is_null() => {}
            "dnsorip" => decode_host(endpoint, value)?,
            "port" => endpoint.port = port(value)?,
            _ => {}
        }
    }
    Ok(())
}

fn decode_host<'a>(endpoint: &mut RawEndpoint<'a>, value: &'a Value) -> Result<(), Refusal> {
    for (name, value) in members("spec.endpoint.dnsOrIP", value)? {
        match folded(name).as_str() {
            _ if value.is_null() => {}
            "dns" => endpoint.dns = string("spec.endpoint.dnsOrIP.dns", value)?,
            "ip" => endpoint.ip = string("spec.endpoint.dnsOrIP.ip", value)?,
            _ => {}
        }
    }
    Ok(())
}

/// Folds a field's name as Go's decoder does; two letters beyond ASCII fold into it.
fn folded(name: &str) -> String {
    let fold = |character: char| match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => character.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

type Fields<'a> = std::iter::Flatten<std::option::IntoIter<&'a Map<String, Value>>>;

fn members<'a>(field: &'static str, value: &'a Value) -> Result<Fields<'a>, Refusal> {
    match value {
        Value::Null => Ok(None.into_iter().flatten()),
        Value::Object(members) => Ok(Some(members).into_iter().flatten()),
        _ => Err(undecodable(field, "an object", value)),
    }
}

fn texts<'a>(field: &'static str, value: &'a Value) -> Result<Vec<&'a str>, Refusal> {
    let text = |item: &'a Value| match item {
        Value::Null => Ok(""),
        _ => string(field, item),
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(text).collect(),
        _ => Err(undecodable(field, "a list of strings", value)),
    }
}

fn string<'a>(field: &'static str, value: &'a Value) -> Result<&'a str, Refusal> {
    let text = value.as_str();
    text.ok_or_else(|| undecodable(field, "a string", value))
}

fn seconds(value: &Value) -> Result<i64, Refusal> {
    let field = "spec.persistentKeepalive";
    let seconds = value.as_i64();
    seconds.ok_or_else(|| undecodable(field, "a 64-bit integer", value))
}

fn port(value: &Value) -> Result<u32, Refusal> {
    let field = "spec.endpoint.port";
    let port = value.as_u64().and_then(|port| u32::try_from(port).ok());
    port.ok_or_else(|| undecodable(field, "an unsigned 32-bit integer", value))
}

fn undecodable(field: &'static str, wanted: &'static str, value: &Value) -> Refusal {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Refusal::Undecodable { field, wanted, found }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";

    fn admit(spec: &Value) -> Result<(), Refusal> {
        Translation::from_spec(&decode(spec)?).map(drop)
    }

    fn refusal(spec: &Value) -> String {
        let refusal = admit(spec).err();
        refusal.map_or_else(String::new, |refusal| refusal.to_string())
    }

    #[test]
    fn says_which_rule_failed() {
        let endpoint = |endpoint: Value| json!({"endpoint": endpoint, "publicKey": KEY});
        let at = |ip: &str| json!({"dnsOrIP": {"ip": ip}, "port": 0});
        insta::assert_snapshot!(refusal(&json!({"allowedIPs": ["::/0", "a\n"]})), @r"allowed IP `a\n` is not a CIDR");
        insta::assert_snapshot!(refusal(&endpoint(json!({}))), @"the endpoint has neither a DNS name nor an IP address");
        insta::assert_snapshot!(refusal(&endpoint(at("1.2.3"))), @"the endpoint's IP address `1.2.3` is not valid");
        insta::assert_snapshot!(refusal(&endpoint(at("1.2.3.4"))), @"the endpoint's port must be from 1 to 65535, not 0");
        insta::assert_snapshot!(refusal(&endpoint(json!({"port": 1.5}))), @"`spec.endpoint.port` must be an unsigned 32-bit integer, not 1.5");
        insta::assert_snapshot!(refusal(&json!({"persistentKeepalive": -1})), @"the persistent keepalive -1 is negative");
        insta::assert_snapshot!(refusal(&json!({"publicKey": "AAAA"})), @"the public key has 3 bytes instead of 32");
        insta::assert_snapshot!(refusal(&json!(["spec"])), @"`spec` must be an object, not a list");
    }

    #[test]
    fn field_names_fold_as_in_go() {
        assert_eq!(refusal(&json!({"PUBLIC\u{212a}EY": KEY})), "");
        assert_ne!(refusal(&json!({"publicKey ": KEY})), "");
        let ranges = json!({"AllowedIP\u{17f}": ["bad"], "publicKey": KEY});
        assert_eq!(refusal(&ranges), "allowed IP `bad` is not a CIDR");
    }

    #[test]
    fn nothing_is_asked_of_what_cannot_be_read() {
        let spec = json!({"allowedIPs": ["bad"], "presharedKey": 1});
        let field = "spec.presharedKey";
        assert!(matches!(admit(&spec), Err(Refusal::Undecodable { field: it, .. }) if it == field));
    }
}
