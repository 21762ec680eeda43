//! Expectations as they are written, and what is wrong with them.
//!
//! The comments here are what editors show.

use schemars::JsonSchema;
use serde::Deserialize;

mod schema;

use self::schema::{
    a_destination, anything, exceptions_of_denied_paths, no_denied_survival,
    no_node_behind_a_cluster, one_choice,
};
use super::side::{SideClass, SideReader, WrittenPaths, WrittenSide};
use super::{DeniedPaths, Exception, Expectation, Expectations, Expected};
use crate::config::read_date;
use crate::diagnostic::{Finding, mistake};
use crate::mesh::{AddressClass, WrittenSelector};
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
    /// The expectations, each of which is checked separately; or a mapping that also decides on all paths that
    /// no mesh declares.
    pub(super) spec: WrittenSpec,
}

/// The expectations, alone or with a decision on undeclared paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Spec")]
#[serde(untagged)]
pub(super) enum WrittenSpec {
    /// The expectations.
    List(#[schemars(length(min = 1))] Vec<WrittenExpectation>),
    /// The expectations, and a decision on undeclared paths.
    Whole(WrittenRequirements),
}

/// The expectations, and a decision on undeclared paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Requirements", extend("allOf" = [exceptions_of_denied_paths()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenRequirements {
    /// Whether paths that no mesh declares may work; `Allow` by default. With `Deny`, `clustermesh verify` fails
    /// if one does, except those of `exceptions` and of expectations with `Reach`.
    #[schemars(extend("default" = "Allow"))]
    undeclared: Option<WrittenUndeclared>,
    /// With `undeclared: Deny`, the undeclared paths that may work.
    exceptions: Option<Vec<WrittenException>>,
    /// The expectations. Each one is checked separately.
    expectations: Option<Vec<WrittenExpectation>>,
}

/// Whether paths that no mesh declares may work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[schemars(rename = "UndeclaredPaths")]
enum WrittenUndeclared {
    /// They may.
    Allow,
    /// They must not.
    Deny,
}

/// Undeclared paths that may work.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Exception", extend("allOf" = [no_node_behind_a_cluster(), a_destination()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenException {
    /// Its name; unique.
    #[schemars(length(min = 1), example = &"monitoring reads metrics of nodes")]
    name: String,
    /// The sender; at least one field. All given fields must match.
    from: Sender,
    /// The receiver; at least one field, unless there is a `class`. All given fields must match.
    to: Receiver,
    /// The class of the destination; default: `Pod` or, with `to.addresses`, any class that has
    /// these addresses.
    class: Option<ReceiverClass>,
    /// The reason.
    #[schemars(length(min = 1))]
    reason: String,
    /// The last day (UTC) on which this applies.
    #[schemars(
        regex(pattern = pattern::DATE),
        extend("format" = "date"),
        example = &"2027-01-31"
    )]
    until: Option<String>,
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
#[schemars(
    rename = "Expectation",
    extend("allOf" = [no_node_behind_a_cluster(), a_destination(), no_denied_survival()])
)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenExpectation {
    /// The name under which a failure is reported; unique.
    #[schemars(length(min = 1), example = &"the shop reaches the ledger")]
    name: Option<String>,
    /// The sender; at least one field. All given fields must match.
    from: Sender,
    /// The receiver; at least one field, unless there is a `class`. All given fields must match.
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
#[schemars(extend("allOf" = [anything(&["class"]), one_choice()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sender {
    /// The cluster; default: any.
    #[schemars(regex(pattern = pattern::MEMBER_NAME), example = &"east")]
    cluster: Option<String>,
    /// Several clusters.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::MEMBER_NAME)), example = ["east", "north"])]
    clusters: Option<Vec<String>>,
    /// A group of clusters, which a mesh or the config declares under `groups`.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"tenants")]
    group: Option<String>,
    /// With `true`, the clusters of the other side, for paths from each of them to every other one.
    other: Option<bool>,
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
#[schemars(extend("allOf" = [one_choice()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Receiver {
    /// The cluster; default: any.
    #[schemars(regex(pattern = pattern::MEMBER_NAME), example = &"west")]
    cluster: Option<String>,
    /// Several clusters.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::MEMBER_NAME)), example = ["west", "south"])]
    clusters: Option<Vec<String>>,
    /// A group of clusters, which a mesh or the config declares under `groups`.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"tenants")]
    group: Option<String>,
    /// With `true`, the clusters of the other side, for paths from each of them to every other one.
    other: Option<bool>,
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
    /// Both.
    Any,
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
    /// All of these.
    Any,
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

impl WrittenSpec {
    /// Returns what is expected, and reports what is wrong with it.
    pub(super) fn read(self, place: &Place, reader: &mut SideReader) -> Expectations {
        let (whole, listed) = match self {
            Self::List(expectations) => {
                let read = expectations_at(expectations, place, reader);
                return Expectations { expectations: read, denied: None };
            }
            Self::Whole(whole) => (whole, place.key("expectations")),
        };
        let expectations = whole.expectations.unwrap_or_default();
        let own = place.key("exceptions");
        let exceptions = whole.exceptions.into_iter().flatten().enumerate();
        let exceptions = exceptions.filter_map(|(index, it)| it.read(own.index(index), reader));
        let exceptions: Vec<Exception> = exceptions.collect();
        let is_denied = whole.undeclared == Some(WrittenUndeclared::Deny);
        if !is_denied && !exceptions.is_empty() {
            let message = "`exceptions` have no effect without `undeclared: Deny`";
            let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
            let finding = finding.at(own.named(), "");
            reader.findings.push(finding.help("write `undeclared: Deny`, or remove `exceptions`"));
        }
        Expectations {
            expectations: expectations_at(expectations, &listed, reader),
            denied: is_denied.then(|| DeniedPaths { exceptions, place: place.key("undeclared") }),
        }
    }
}

fn expectations_at(
    written: Vec<WrittenExpectation>,
    place: &Place,
    reader: &mut SideReader,
) -> Vec<Expectation> {
    let written = written.into_iter().enumerate();
    let read = written.filter_map(|(index, it)| it.read(place.index(index), reader));
    read.collect()
}

impl WrittenExpectation {
    fn read(self, place: Place, reader: &mut SideReader) -> Option<Expectation> {
        if self.survives.is_some() && matches!(self.expect, WrittenExpected::Deny) {
            reader.findings.push(denied_survival(&place));
        }
        let paths = WrittenPaths { from: self.from.into(), to: self.to.with_class(self.class) };
        let (from, to) = reader.paths(paths, &place)?;
        Some(Expectation {
            name: self.name,
            from,
            to,
            expected: match self.expect {
                WrittenExpected::Reach => Expected::Reach,
                WrittenExpected::Deny => Expected::Deny,
            },
            survives_a_node: self.survives.is_some(),
            place,
        })
    }
}

impl WrittenException {
    fn read(self, place: Place, reader: &mut SideReader) -> Option<Exception> {
        let paths = WrittenPaths { from: self.from.into(), to: self.to.with_class(self.class) };
        let paths = reader.paths(paths, &place);
        let until = read_date(self.until.as_deref(), &place);
        let until = until.map_err(|it| reader.findings.push(it)).ok();
        let (from, to) = paths?;
        Some(Exception { name: self.name, from, to, reason: self.reason, until: until?, place })
    }
}

impl From<Sender> for WrittenSide {
    fn from(sender: Sender) -> Self {
        let Sender { cluster, clusters, group, other, node_selector, addresses, class } = sender;
        Self {
            cluster,
            clusters,
            group,
            other,
            node_selector,
            addresses,
            class: class.map(SideClass::from),
        }
    }
}

impl Receiver {
    fn with_class(self, class: Option<ReceiverClass>) -> WrittenSide {
        let Self { cluster, clusters, group, other, node_selector, addresses } = self;
        WrittenSide {
            cluster,
            clusters,
            group,
            other,
            node_selector,
            addresses,
            class: class.map(SideClass::from),
        }
    }
}

impl From<SenderClass> for SideClass {
    fn from(class: SenderClass) -> Self {
        match class {
            SenderClass::Pod => Self::One(AddressClass::Pod),
            SenderClass::Node => Self::One(AddressClass::Node),
            SenderClass::Any => Self::Any,
        }
    }
}

impl From<ReceiverClass> for SideClass {
    fn from(class: ReceiverClass) -> Self {
        match class {
            ReceiverClass::Pod => Self::One(AddressClass::Pod),
            ReceiverClass::Node => Self::One(AddressClass::Node),
            ReceiverClass::Service => Self::One(AddressClass::Service),
            ReceiverClass::Network => Self::One(AddressClass::Network),
            ReceiverClass::Any => Self::Any,
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
