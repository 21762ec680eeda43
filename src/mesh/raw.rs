//! The resource as it is written: what a `ClusterMesh` may look like, before anybody judges it.
//!
//! The comments here are what editors show.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::granularity::Granularity;
use crate::schema::pattern;

use super::anchor::COUNTS;
use super::{DEFAULT_ENDPOINT_FROM, DEFAULT_PORT, DEFAULT_TOPOLOGY_LABEL, EndpointSource};

/// Clusters that are joined with Kilo: every cluster gets a Peer for every segment of every other
/// cluster it is linked to.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClusterMesh", example = example())]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema needs what is skipped")]
pub(super) struct Resource {
    /// The version of this format.
    pub(super) api_version: ApiVersion,
    /// The kind of this document.
    pub(super) kind: Kind,
    /// What the mesh is called.
    pub(super) metadata: Metadata,
    /// What is wanted.
    pub(super) spec: Spec,
    /// What the operator said about it. Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    status: Option<Value>,
}

/// The only version of a `ClusterMesh`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) enum ApiVersion {
    /// The operator's.
    #[serde(rename = "kilo.squat.ai/v1alpha1")]
    V1Alpha1,
}

/// The only kind of a `ClusterMesh`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) enum Kind {
    /// A mesh.
    ClusterMesh,
}

/// What a mesh is called. Everything but the two names is skipped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema needs what is skipped")]
pub(super) struct Metadata {
    /// The name of the mesh, which begins the names of all its Peers: at most 63 characters, no
    /// two meshes alike.
    #[schemars(length(max = 63), regex(pattern = pattern::subdomain()))]
    pub(super) name: String,
    /// The namespace in which the operator kept it.
    pub(super) namespace: Option<String>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    annotations: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    creation_timestamp: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    deletion_grace_period_seconds: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    deletion_timestamp: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    finalizers: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    generate_name: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    generation: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    labels: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    managed_fields: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    owner_references: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    resource_version: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    self_link: Option<Value>,
    /// Not looked at.
    #[schemars(with = "Value")]
    #[serde(default)]
    uid: Option<Value>,
}

/// What is wanted of a mesh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Spec {
    /// The clusters in order of trust: where two of them claim one thing, the first keeps it.
    #[schemars(length(min = 2))]
    pub(super) clusters: Vec<Cluster>,
    /// Who is linked to whom; everyone to everyone by default.
    pub(super) topology: Option<Topology>,
}

/// Who is linked to whom.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [only_with("Hub", "hubs"), only_with("Links", "links")]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Topology {
    /// The pattern; `FullMesh` by default.
    #[schemars(extend("default" = "FullMesh"))]
    pub(super) mode: Option<Mode>,
    /// With `mode: Hub`, the clusters that see everyone.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)))]
    pub(super) hubs: Option<Vec<String>>,
    /// With `mode: Links`, the pairs of clusters that see each other.
    #[schemars(length(min = 1), inner(inner(regex(pattern = pattern::CLUSTER_NAME))))]
    pub(super) links: Option<Vec<[String; 2]>>,
}

/// The pattern of links.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub(super) enum Mode {
    /// Everyone sees everyone.
    #[default]
    FullMesh,
    /// Hubs see each other and everyone; the others see the hubs only.
    Hub,
    /// Those see each other that are given as a pair.
    Links,
}

/// What a mesh says about one cluster. Its networks are either `podCIDRs`, `wireguardCIDR`,
/// `serviceCIDR` and `additionalCIDRs`, or `allowedNetworks` in place of all four.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [one_form()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Cluster {
    /// The name of the cluster: a DNS-1123 label.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    pub(super) name: String,
    /// Whether the operator ran in this cluster. At most one.
    pub(super) local: Option<bool>,
    /// The Secret from which the operator read this cluster's kubeconfig.
    pub(super) kubeconfig_secret_ref: Option<SecretKeyRef>,
    /// The ranges that its nodes take the addresses of their pods from.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.42.0.0/16"])]
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Option<Vec<String>>,
    /// The range that its nodes take their `WireGuard` addresses from.
    #[schemars(regex(pattern = pattern::range_or_nothing()), example = &"10.4.0.0/16")]
    #[serde(rename = "wireguardCIDR")]
    pub(super) wireguard_cidr: Option<String>,
    /// The range of its services.
    #[schemars(regex(pattern = pattern::range_or_nothing()), example = &"10.43.0.0/16")]
    #[serde(rename = "serviceCIDR")]
    pub(super) service_cidr: Option<String>,
    /// Whatever else can be reached through it: host networks, storage.
    #[schemars(inner(regex(pattern = pattern::range())), example = ["10.0.2.0/24"])]
    #[serde(rename = "additionalCIDRs")]
    pub(super) additional_cidrs: Option<Vec<String>>,
    /// All its ranges in one list, in place of the four fields above.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.8.0.0/14"])]
    pub(super) allowed_networks: Option<Vec<String>>,
    /// The port of an endpoint that comes without one; 51820 by default.
    #[schemars(range(min = 1, max = 65535), extend("default" = DEFAULT_PORT.get()))]
    pub(super) wireguard_port: Option<u16>,
    /// Seconds between two keepalive packets; 0, the default, for none.
    #[schemars(range(max = 65535), extend("default" = 0), example = 25)]
    pub(super) persistent_keepalive: Option<u16>,
    /// The nodes whose ranges are given to others; all by default.
    pub(super) node_selector: Option<Selector>,
    /// How Kilo cuts this cluster into segments; by default what most of its nodes say.
    pub(super) granularity: Option<Granularity>,
    /// The node label that names the location where the annotation doesn't;
    /// `topology.kubernetes.io/region` by default.
    #[schemars(regex(pattern = pattern::label_key()), extend("default" = DEFAULT_TOPOLOGY_LABEL))]
    pub(super) topology_label: Option<String>,
    /// Where a node's endpoint is looked for, first to last; `[Annotation, ExternalIP]` by
    /// default.
    #[schemars(
        length(min = 1),
        extend("uniqueItems" = true, "default" = DEFAULT_ENDPOINT_FROM.map(|it| format!("{it:?}")))
    )]
    pub(super) endpoint_from: Option<Vec<EndpointSource>>,
    /// The DNS names under which a node's endpoint may be a name; none by default.
    #[schemars(inner(regex(pattern = pattern::suffix())), example = ["nodes.example.org"])]
    pub(super) endpoint_domains: Option<Vec<String>>,
    /// What this cluster takes from the others: a range of a Peer that does not lie wholly in one of
    /// these is left out here. Everything by default, and then the field is not there: an empty list
    /// would be a cluster that sees nobody, which a topology says better. Where the config has
    /// `acceptedNetworks` for the cluster too, both must hold.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.0.0.0/8"])]
    pub(super) accepted_networks: Option<Vec<String>>,
    /// Networks of this cluster that no Peer may take over here, such as the LAN of its nodes: what
    /// other clusters declare of these addresses is left out here, or cut out of a wider range.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["192.168.1.0/24"])]
    pub(super) local_networks: Option<Vec<String>>,
    /// Which nodes carry what belongs to the cluster as a whole; by default a segment
    /// on whose LAN a range lies, else the first by name of those with at least half as many nodes
    /// as the largest.
    pub(super) anchors: Option<Vec<Anchor>>,
}

/// Who carries some of the ranges that belong to a cluster as a whole: `serviceCIDR` and
/// `additionalCIDRs`, or what `allowedNetworks` holds beside the nodes' own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Anchor {
    /// The ranges, as they are declared; by default all that no other anchor names.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.43.0.0/16"])]
    pub(super) ranges: Option<Vec<String>>,
    /// The nodes that are to carry them, the best first. One that is not there, or cannot be
    /// dialled, is passed over; after them come those that would carry them by default.
    #[schemars(
        length(min = 1),
        inner(length(min = 1)),
        extend("uniqueItems" = true),
        example = ["gateway-1", "gateway-2"]
    )]
    pub(super) nodes: Option<Vec<String>>,
    /// Over how many nodes each range is spread, in as many equal parts: a power of two, 1 by
    /// default. Where fewer nodes can carry it, it is spread over as many as can.
    #[schemars(range(min = 1, max = 256), extend("enum" = counts(), "default" = 1))]
    pub(super) count: Option<u16>,
}

/// Returns what `count` may be; like any field, it may be empty.
fn counts() -> Vec<Option<u16>> {
    let counts = COUNTS.into_iter().map(Some);
    counts.chain([None]).collect()
}

/// A key of a Secret in the namespace of the mesh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SecretKeyRef {
    /// The Secret.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The key in its data.
    #[schemars(length(min = 1))]
    pub(super) key: String,
}

/// A label selector; all of it must hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Selector {
    /// Labels with the value they must have.
    #[schemars(
        extend(
            "propertyNames" = { "pattern": pattern::label_key() },
            "additionalProperties" = { "type": "string", "pattern": pattern::LABEL_VALUE }
        ),
        example = json!({"node-role.kubernetes.io/gateway": "true"})
    )]
    pub(super) match_labels: Option<BTreeMap<String, String>>,
    /// Conditions on labels.
    pub(super) match_expressions: Option<Vec<Requirement>>,
}

/// A condition on a label.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [values_to_compare()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Requirement {
    /// The label.
    #[schemars(regex(pattern = pattern::label_key()), example = &"topology.kubernetes.io/zone")]
    pub(super) key: String,
    /// What must be true of it.
    pub(super) operator: Operator,
    /// The values to compare with, for `In` and `NotIn` only.
    #[schemars(inner(regex(pattern = pattern::LABEL_VALUE)))]
    pub(super) values: Option<Vec<String>>,
}

/// What must be true of a label.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
pub(super) enum Operator {
    /// It is there and has one of the values.
    In,
    /// It is absent, or has none of the values.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// The smallest mesh of both forms.
fn example() -> Value {
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "ClusterMesh",
        "metadata": { "name": "prod" },
        "spec": {
            "clusters": [
                {
                    "name": "east",
                    "podCIDRs": ["10.42.0.0/16"],
                    "wireguardCIDR": "10.4.0.0/16",
                    "serviceCIDR": "10.43.0.0/16",
                },
                { "name": "west", "allowedNetworks": ["10.8.0.0/14"] },
            ],
        },
    })
}

/// Either `allowedNetworks`, or pod and `WireGuard` ranges; the operator writes empty ones for none.
fn one_form() -> Value {
    json!({
        "if": {
            "properties": { "allowedNetworks": { "type": "array" } },
            "required": ["allowedNetworks"],
        },
        "then": {
            "properties": {
                "podCIDRs": { "type": "null" },
                "wireguardCIDR": { "enum": ["", null] },
                "serviceCIDR": { "enum": ["", null] },
                "additionalCIDRs": { "enum": [[], null] },
            },
        },
        "else": {
            "properties": {
                "podCIDRs": { "type": "array" },
                "wireguardCIDR": { "type": "string", "minLength": 1 },
            },
            "required": ["podCIDRs", "wireguardCIDR"],
        },
    })
}

/// A field that is there with its mode and not without.
fn only_with(mode: &str, field: &str) -> Value {
    json!({
        "if": {
            "properties": { "mode": { "const": mode } },
            "required": ["mode"],
        },
        "then": {
            "properties": { field: { "type": "array" } },
            "required": [field],
        },
        "else": {
            "properties": { field: { "type": "null" } },
        },
    })
}

/// Values that are there for the operators that compare and not for the others.
fn values_to_compare() -> Value {
    json!({
        "if": {
            "properties": { "operator": { "enum": ["In", "NotIn"] } },
        },
        "then": {
            "properties": { "values": { "type": "array", "minItems": 1 } },
            "required": ["values"],
        },
        "else": {
            "properties": { "values": { "enum": [[], null] } },
        },
    })
}
