//! Expectations as they are written, and what is wrong with them.
//!
//! The comments here are what editors show.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Expectation, Expected, Selection};
use crate::diagnostic::{Finding, Mistakes, Quoted, escaped, mistake};
use crate::mesh::AddressClass;
use crate::mesh::{WrittenSelector, invalid_name, selector};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::schema::{ExampleFile, pattern};

/// Expectations that `clustermesh verify` checks in addition to the links of the meshes: packets
/// between clusters that must arrive, and packets that must not.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Expectations", example = ExampleFile(include_str!("written/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "the walk has looked at version and kind")]
pub(super) struct WrittenExpectations {
    /// The version of this format.
    api_version: ExpectationsApiVersion,
    /// The kind of this document.
    kind: ExpectationsKind,
    /// The expectations. Each one is checked separately.
    #[schemars(length(min = 1))]
    pub(super) spec: Vec<WrittenExpectation>,
}

/// The only version of this format.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ApiVersion")]
enum ExpectationsApiVersion {
    /// The first version.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind of this format.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
enum ExpectationsKind {
    /// Expectations.
    Expectations,
}

/// An expectation about packets between clusters. Packets within a cluster are not checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Expectation", extend("allOf" = [no_node_behind_a_cluster(), no_denied_survival()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenExpectation {
    /// The name under which a failure is reported; unique.
    #[schemars(length(min = 1), example = &"the shop reaches the ledger")]
    name: Option<String>,
    /// The sender; at least one field. All given fields must match.
    from: Sender,
    /// The receiver; at least one field. All given fields must match.
    to: Receiver,
    /// The class of the destination; default: `Pod` or, with `to.addresses`, any class that has
    /// these addresses.
    class: Option<ReceiverClass>,
    /// The expected result.
    expect: WrittenExpected,
    /// Losses after which the packets must still arrive, with the Peers of the last render; only with `expect: Reach`.
    survives: Option<WrittenSurvives>,
}

/// Losses that paths must survive.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Survives")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "the walk has looked at the number")]
struct WrittenSurvives {
    /// The number of lost nodes: any one that is not an end of the path.
    #[schemars(range(min = 1, max = 1))]
    nodes: u8,
}

/// The sender.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [anything_of(&[
    ("cluster", "string"),
    ("nodeSelector", "object"),
    ("addresses", "array"),
    ("class", "string"),
])]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sender {
    /// The cluster; default: any.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    cluster: Option<String>,
    /// The nodes of the sender, by their labels; default: all.
    node_selector: Option<WrittenSelector>,
    /// The source addresses: ranges or single addresses; default: all.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = pattern::address_or_range())),
        example = ["10.42.7.0/24", "10.42.1.5"]
    )]
    addresses: Option<Vec<String>>,
    /// The class of the source; default: `Pod` or, with `addresses`, any class that has these
    /// addresses.
    class: Option<SenderClass>,
}

/// The receiver.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [anything_of(&[
    ("cluster", "string"),
    ("nodeSelector", "object"),
    ("addresses", "array"),
])]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Receiver {
    /// The cluster; default: any.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"west")]
    cluster: Option<String>,
    /// The nodes of the destination, by their labels; default: all.
    node_selector: Option<WrittenSelector>,
    /// The destination addresses: ranges or single addresses; default: all.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = pattern::address_or_range())),
        example = ["10.43.0.10"]
    )]
    addresses: Option<Vec<String>>,
}

/// The class of a source.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
enum SenderClass {
    /// Pods.
    Pod,
    /// Nodes, and pods that share their network: from the node's internal address.
    Node,
}

/// The class of a destination.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
enum ReceiverClass {
    /// Pods.
    Pod,
    /// Nodes, and pods that share their network: at the node's internal address.
    Node,
    /// Services, in the `serviceCIDR` of their cluster.
    Service,
    /// Other networks that the cluster declares.
    Network,
}

/// The expected result.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Expected")]
enum WrittenExpected {
    /// All packets and their answers arrive.
    Reach,
    /// No packet arrives.
    Deny,
}

/// The fields that both sides have.
struct WrittenSide {
    cluster: Option<String>,
    node_selector: Option<WrittenSelector>,
    addresses: Option<Vec<String>>,
    class: Option<AddressClass>,
}

impl WrittenExpectation {
    /// Returns the expectation, or reports what is wrong with it.
    pub(super) fn read(self, place: Place, findings: &mut Mistakes) -> Option<Expectation> {
        let class = self.class.map(AddressClass::from);
        if matches!(class, Some(AddressClass::Service | AddressClass::Network))
            && self.to.node_selector.is_some()
        {
            findings.push(behind_no_node(&place));
        }
        if self.survives.is_some() && matches!(self.expect, WrittenExpected::Deny) {
            findings.push(denied_survival(&place));
        }
        let from = WrittenSide {
            cluster: self.from.cluster,
            node_selector: self.from.node_selector,
            addresses: self.from.addresses,
            class: self.from.class.map(AddressClass::from),
        };
        let to = WrittenSide {
            cluster: self.to.cluster,
            node_selector: self.to.node_selector,
            addresses: self.to.addresses,
            class,
        };
        // Both, so that all mistakes are reported.
        let from = from.read("from", &place, findings);
        let to = to.read("to", &place, findings);
        Some(Expectation {
            name: self.name,
            from: from?,
            to: to?,
            expected: match self.expect {
                WrittenExpected::Reach => Expected::Reach,
                WrittenExpected::Deny => Expected::Deny,
            },
            survives_a_node: self.survives.is_some(),
            place,
        })
    }
}

impl WrittenSide {
    fn read(self, field: &str, place: &Place, findings: &mut Mistakes) -> Option<Selection> {
        let place = place.key(field);
        let is_sender_class = field == "from" && self.class.is_some();
        if self.cluster.is_none()
            && self.node_selector.is_none()
            && self.addresses.is_none()
            && !is_sender_class
        {
            let message = format!("`{field}` selects nothing");
            findings.push(
                Finding::new(&mistake::MISSING_FIELD, message)
                    .at(place.clone(), "")
                    .help("add a `cluster`, a `nodeSelector` or `addresses`"),
            );
            return None;
        }
        let by_default = self.addresses.is_none().then_some(AddressClass::Pod);
        let cluster = self.cluster.map(|text| cluster(&text, &place, findings));
        let nodes = self
            .node_selector
            .map(|written| selector(Some(written), &place.key("nodeSelector"), findings));
        let addresses = self.addresses.unwrap_or_default();
        let addresses: Vec<Option<Cidr>> = addresses
            .iter()
            .enumerate()
            .map(|(index, text)| address(text, place.key("addresses").index(index), findings))
            .collect();
        Some(Selection {
            cluster: present(cluster)?,
            nodes: present(nodes)?,
            addresses: addresses.into_iter().collect::<Option<_>>()?,
            class: self.class.or(by_default),
            place,
        })
    }
}

impl From<SenderClass> for AddressClass {
    fn from(class: SenderClass) -> Self {
        match class {
            SenderClass::Pod => Self::Pod,
            SenderClass::Node => Self::Node,
        }
    }
}

impl From<ReceiverClass> for AddressClass {
    fn from(class: ReceiverClass) -> Self {
        match class {
            ReceiverClass::Pod => Self::Pod,
            ReceiverClass::Node => Self::Node,
            ReceiverClass::Service => Self::Service,
            ReceiverClass::Network => Self::Network,
        }
    }
}

/// Returns what is not there as absent, and what is there but wrong as nothing at all.
#[expect(clippy::option_option, reason = "a field, and whether it is right")]
fn present<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    match field {
        None => Some(None),
        Some(value) => value.map(Some),
    }
}

fn cluster(text: &str, place: &Place, findings: &mut Mistakes) -> Option<ClusterName> {
    let parsed = text.parse();
    parsed
        .map_err(|error| findings.push(invalid_name("cluster", text, &error, place.key("cluster"))))
        .ok()
}

/// Reads a range, of which host bits are dropped, or a single address.
fn address(text: &str, place: Place, findings: &mut Mistakes) -> Option<Cidr> {
    let read = match text.parse::<IpAddr>() {
        Ok(address) if address.to_canonical() == address => Ok(Cidr::host(address)),
        Ok(_) => Err("IPv4-mapped IPv6 address; write it as IPv4".to_owned()),
        Err(_) if !text.contains('/') => Err("not an IP address".to_owned()),
        Err(_) => text.parse().map_err(|error| format!("{error}")),
    };
    match read {
        Ok(range) => Some(range),
        Err(reason) => {
            let reason = escaped(&reason, 240);
            let message = format!(
                "{} is neither an address nor a range: {reason}",
                Quoted(text)
            );
            findings.push(Finding::new(&mistake::INVALID_RANGE, message).at(place, ""));
            None
        }
    }
}

fn denied_survival(place: &Place) -> Finding {
    let message = "`survives` cannot be combined with `expect: Deny`: a loss opens no path";
    Finding::new(&mistake::CONTRADICTING_FIELDS, message)
        .at(place.key("survives").named(), "")
        .at(place.key("expect"), "")
        .help("remove `survives`")
}

fn behind_no_node(place: &Place) -> Finding {
    let message = "the classes `Service` and `Network` cannot be combined with `nodeSelector`";
    Finding::new(&mistake::CONTRADICTING_FIELDS, message)
        .at(place.key("to").key("nodeSelector").named(), "")
        .at(place.key("class"), "")
        .help("remove one of the two fields")
}

/// At least one of some fields is there.
fn anything_of(fields: &[(&str, &str)]) -> Value {
    let choices = fields.iter().map(
        |(field, kind)| json!({ "properties": { *field: { "type": kind } }, "required": [field] }),
    );
    json!({ "anyOf": choices.collect::<Vec<_>>() })
}

/// No labels of a node where there is none.
fn no_node_behind_a_cluster() -> Value {
    json!({
        "if": {
            "properties": { "class": { "enum": ["Service", "Network"] } },
            "required": ["class"],
        },
        "then": {
            "properties": { "to": { "properties": { "nodeSelector": { "type": "null" } } } },
        },
    })
}

/// No losses that packets survive which must not arrive.
fn no_denied_survival() -> Value {
    json!({
        "if": {
            "properties": { "survives": { "type": "object" } },
            "required": ["survives"],
        },
        "then": { "properties": { "expect": { "enum": ["Reach"] } } },
    })
}
