//! The resource as written: the structure of a `ClusterMesh`, before any check.
//!
//! The comments here are what editors show.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::granularity::Granularity;
use crate::schema::{ExampleFile, pattern};

mod anchor;
mod external;
mod schema;
mod service;
mod underlay;

pub(super) use self::anchor::RawAnchor;
pub(super) use self::external::RawExternalPeer;
use self::schema::{one_form, only_with, values_to_compare};
pub(super) use self::service::{RawService, RawServicePort};
pub(super) use self::underlay::RawUnderlay;
use super::group::{WrittenGroups, members};
use super::{
    DEFAULT_DOMAIN, DEFAULT_ENDPOINT_FROM, DEFAULT_PORT, DEFAULT_TOPOLOGY_LABEL, EndpointSource,
    PodRanges, PodSource, State, WireguardAddresses,
};

/// Over how many nodes a range can be spread.
pub(super) const COUNTS: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Clusters to join with Kilo. Each cluster gets a Peer for every segment of every cluster it is
/// linked to.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ClusterMesh", example = ExampleFile(include_str!("raw/example.json")))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema needs what is skipped")]
pub(super) struct RawMesh {
    /// The version of this format.
    pub(super) api_version: RawApiVersion,
    /// The kind of this document.
    pub(super) kind: RawKind,
    /// The name of the mesh.
    pub(super) metadata: RawMetadata,
    /// The clusters and how they are linked.
    pub(super) spec: RawSpec,
    /// The operator's status. Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    status: Option<Value>,
}

/// The only version of a `ClusterMesh`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ApiVersion")]
pub(super) enum RawApiVersion {
    /// The version of the ClusterMesh operator.
    #[serde(rename = "kilo.squat.ai/v1alpha1")]
    V1Alpha1,
}

/// The only kind of a `ClusterMesh`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Kind")]
pub(super) enum RawKind {
    /// A mesh.
    ClusterMesh,
}

/// The name of a mesh. Only `name` and `namespace` are used.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema needs what is skipped")]
#[schemars(rename = "Metadata")]
pub(super) struct RawMetadata {
    /// The name of the mesh, unique, at most 63 characters. The names of all its Peers begin with
    /// it.
    #[schemars(length(max = 63), regex(pattern = pattern::subdomain()))]
    pub(super) name: String,
    /// The namespace of the operator's object.
    pub(super) namespace: Option<String>,
    /// Ignored, except `config.kubernetes.io/local-config`: with the value `"true"`, `validate` no longer reports
    /// fields that the operator lacks.
    #[schemars(with = "Value")]
    #[serde(default)]
    annotations: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    creation_timestamp: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    deletion_grace_period_seconds: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    deletion_timestamp: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    finalizers: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    generate_name: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    generation: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    labels: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    managed_fields: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    owner_references: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    resource_version: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    self_link: Option<Value>,
    /// Ignored.
    #[schemars(with = "Value")]
    #[serde(default)]
    uid: Option<Value>,
}

/// The clusters of a mesh and how they are linked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Spec")]
pub(super) struct RawSpec {
    /// The clusters in order of trust. If two clusters claim the same key, the first one keeps it.
    /// Ranges must not overlap.
    #[schemars(length(min = 2))]
    pub(super) clusters: Vec<RawCluster>,
    /// The links between clusters; by default, every cluster with every other.
    pub(super) topology: Option<RawTopology>,
    /// The values of fields that entries leave out. An entry with the field replaces the whole value.
    pub(super) defaults: Option<RawDefaults>,
    /// Laptops, routers and other hosts that belong to no cluster.
    pub(super) external_peers: Option<Vec<RawExternalPeer>>,
    /// Services of one cluster that others get as Services of their own.
    #[schemars(length(max = 1000))]
    pub(super) services: Option<Vec<RawService>>,
    /// Clusters of this mesh that expectations select under one name.
    #[schemars(
        extend("propertyNames" = { "pattern": pattern::CLUSTER_NAME }, "additionalProperties" = members()),
        example = json!({ "tenants": ["east", "west"] })
    )]
    pub(super) groups: Option<WrittenGroups>,
}

/// The values of fields that entries leave out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Defaults")]
pub(super) struct RawDefaults {
    /// The port of endpoints that are given without a port.
    #[schemars(range(min = 1, max = 65535))]
    pub(super) wireguard_port: Option<u16>,
    /// The nodes that other clusters can reach.
    pub(super) node_selector: Option<RawSelector>,
    /// Kilo's `--mesh-granularity`.
    pub(super) granularity: Option<Granularity>,
    /// The node label with the location of nodes without the annotation.
    #[schemars(regex(pattern = pattern::label_key()), example = DEFAULT_TOPOLOGY_LABEL)]
    pub(super) topology_label: Option<String>,
    /// The sources of a node's endpoint. The first one that the node has is used.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub(super) endpoint_from: Option<Vec<EndpointSource>>,
    /// The DNS suffixes of endpoints that may be names.
    #[schemars(inner(regex(pattern = pattern::suffix())), example = ["nodes.example.org"])]
    pub(super) endpoint_domains: Option<Vec<String>>,
    /// The addresses of nodes that other clusters get.
    pub(super) advertise: Option<RawAdvertise>,
}

/// The links between clusters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [only_with("Hub", "hubs"), only_with("Links", "links")]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Topology")]
pub(super) struct RawTopology {
    /// The pattern of links; `FullMesh` by default.
    #[schemars(extend("default" = "FullMesh"))]
    pub(super) mode: Option<Mode>,
    /// With `mode: Hub`, the clusters that are linked to all others.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)))]
    pub(super) hubs: Option<Vec<String>>,
    /// With `mode: Links`, the pairs of clusters that are linked.
    #[schemars(length(min = 1), inner(inner(regex(pattern = pattern::CLUSTER_NAME))))]
    pub(super) links: Option<Vec<[String; 2]>>,
}

/// The pattern of links.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub(super) enum Mode {
    /// Every cluster is linked to every other.
    #[default]
    FullMesh,
    /// Hubs are linked to all clusters; the other clusters only to the hubs.
    Hub,
    /// Only the listed pairs are linked.
    Links,
}

/// The entry of one cluster. It declares its networks either with `podCIDRs`, `wireguardCIDR`,
/// `serviceCIDR` and `additionalCIDRs`, or with `allowedNetworks` alone.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [one_form()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Cluster")]
pub(super) struct RawCluster {
    /// The name of the cluster: a DNS-1123 label.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"east")]
    pub(super) name: String,
    /// Whether the cluster exchanges Peers with the clusters that it is linked to; `Joined` by
    /// default.
    #[schemars(extend("default" = "Joined"))]
    pub(super) state: Option<State>,
    /// Whether the operator ran in this cluster. At most one cluster can be local.
    pub(super) local: Option<bool>,
    /// The Secret from which the operator read this cluster's kubeconfig.
    pub(super) kubeconfig_secret_ref: Option<RawSecretKeyRef>,
    /// The ranges that contain the pod CIDRs of all its nodes.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.42.0.0/16"])]
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Option<Vec<String>>,
    /// The range that contains the `WireGuard` addresses of its nodes: Kilo's `--subnet`.
    #[schemars(regex(pattern = pattern::range_or_nothing()), example = &"10.4.0.0/16")]
    #[serde(rename = "wireguardCIDR")]
    pub(super) wireguard_cidr: Option<String>,
    /// The range of its Services, if other clusters should reach them.
    #[schemars(regex(pattern = pattern::range_or_nothing()), example = &"10.43.0.0/16")]
    #[serde(rename = "serviceCIDR")]
    pub(super) service_cidr: Option<String>,
    /// Other networks that can be reached through it, such as those of its nodes or of storage.
    #[schemars(inner(regex(pattern = pattern::range())), example = ["10.0.2.0/24"])]
    #[serde(rename = "additionalCIDRs")]
    pub(super) additional_cidrs: Option<Vec<String>>,
    /// All its ranges in one list, instead of the four fields above.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.8.0.0/14"])]
    pub(super) allowed_networks: Option<Vec<String>>,
    /// The port of endpoints that are given without a port; 51820 by default.
    #[schemars(range(min = 1, max = 65535), extend("default" = DEFAULT_PORT.get()))]
    pub(super) wireguard_port: Option<u16>,
    /// Seconds between keepalive packets; 0, the default, disables them.
    #[schemars(range(max = 65535), extend("default" = 0), example = 25)]
    pub(super) persistent_keepalive: Option<u16>,
    /// The nodes that other clusters can reach; all by default.
    pub(super) node_selector: Option<RawSelector>,
    /// Kilo's `--mesh-granularity` in this cluster; by default the value that most of its nodes
    /// report.
    pub(super) granularity: Option<Granularity>,
    /// The node label with the location of nodes without the annotation;
    /// `topology.kubernetes.io/region` by default.
    #[schemars(regex(pattern = pattern::label_key()), extend("default" = DEFAULT_TOPOLOGY_LABEL))]
    pub(super) topology_label: Option<String>,
    /// The sources of a node's endpoint. The first one that the node has is used; `[Annotation,
    /// ExternalIP]` by default.
    #[schemars(
        length(min = 1),
        extend("uniqueItems" = true, "default" = DEFAULT_ENDPOINT_FROM.map(|it| format!("{it:?}")))
    )]
    pub(super) endpoint_from: Option<Vec<EndpointSource>>,
    /// The DNS suffixes of endpoints that may be names; none by default.
    #[schemars(inner(regex(pattern = pattern::suffix())), example = ["nodes.example.org"])]
    pub(super) endpoint_domains: Option<Vec<String>>,
    /// The ranges that this cluster accepts from others: ranges of Peers with addresses outside of
    /// these are left out. Omit the field to accept all. It cannot be an empty list; to isolate a
    /// cluster, use `topology`. If the policy of the cluster also has `acceptedNetworks`, the
    /// addresses of a range must be in both.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.0.0.0/8"])]
    pub(super) accepted_networks: Option<Vec<String>>,
    /// The namespaces in which this cluster gets Services of other clusters that `services` names; none by default. A
    /// cluster with any has a folder in `rendered-services`.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)), example = ["shop"])]
    pub(super) accepted_services: Option<Vec<String>>,
    /// Networks of this cluster that no Peer may take over, such as the LAN of its nodes.
    /// Overlapping ranges of other clusters are left out or cut.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["192.168.1.0/24"])]
    pub(super) local_networks: Option<Vec<String>>,
    /// The nodes that carry cluster-wide ranges. By default, this is a segment on whose LAN the
    /// range is, else the first by name of the segments that have at least half as many nodes as
    /// the largest.
    pub(super) anchors: Option<Vec<RawAnchor>>,
    /// The addresses of its nodes that other clusters get; by default, all that the operator gives.
    pub(super) advertise: Option<RawAdvertise>,
    /// Its DNS service, if other clusters should resolve the names of its Services. `clustermesh dns` uses it; Peers do not
    /// depend on it.
    pub(super) dns: Option<RawDns>,
    /// The source of packets from its pods in other clusters: kept, or perhaps an address of a node.
    pub(super) pod_source: Option<PodSource>,
    /// The sizes of its packets. Only findings depend on them.
    pub(super) mtu: Option<RawMtu>,
    /// The networks under the tunnels that connect its nodes to nodes of other clusters. Without them it is an assumption
    /// that a private endpoint can be dialled. Peers do not depend on them.
    #[schemars(length(min = 1))]
    pub(super) underlays: Option<Vec<RawUnderlay>>,
}

/// The MTUs of a cluster: the largest packets of its networks, in bytes.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Mtu")]
pub(super) struct RawMtu {
    /// The MTU of the interface with the default route of its nodes, or less if a network on the way to the other clusters
    /// carries less. With Kilo's `--mtu=auto`, the MTU of the tunnels is this less 80.
    #[schemars(range(min = 1280, max = 65535), example = 1500)]
    pub(super) underlay: Option<u16>,
    /// The MTU of the network between nodes of a location; that of `underlay` by default.
    #[schemars(range(min = 1280, max = 65535), example = 1400)]
    pub(super) internal: Option<u16>,
    /// The MTU of the interfaces of pods, which the CNI sets.
    #[schemars(range(min = 576, max = 65535), example = 1420)]
    pub(super) pods: Option<u16>,
}

/// The DNS service of a cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Dns")]
pub(super) struct RawDns {
    /// The cluster IP of the Service, in a range that other clusters reach. It is usually the tenth address of `serviceCIDR`.
    #[schemars(example = &"10.43.0.10")]
    pub(super) service: String,
    /// The domain of the cluster; `cluster.local` by default.
    #[schemars(regex(pattern = pattern::subdomain()), extend("default" = DEFAULT_DOMAIN))]
    pub(super) domain: Option<String>,
}

/// The addresses of nodes that other clusters get. With fewer ranges, Kilo applies changes faster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Advertise")]
pub(super) struct RawAdvertise {
    /// The ranges of pods; `PerNode` by default.
    #[schemars(extend("default" = "PerNode"))]
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Option<PodRanges>,
    /// Whether internal addresses in declared ranges are given; `true` by default.
    #[schemars(extend("default" = true))]
    pub(super) node_addresses: Option<bool>,
    /// The addresses in Kilo's subnet; `PerNode` by default.
    #[schemars(extend("default" = "PerNode"))]
    pub(super) wireguard_addresses: Option<WireguardAddresses>,
}

/// A key of a Secret in the namespace of the mesh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "SecretKeyRef")]
pub(super) struct RawSecretKeyRef {
    /// The Secret.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The key in its data.
    #[schemars(length(min = 1))]
    pub(super) key: String,
}

/// A label selector: conditions under `matchLabels` and `matchExpressions`, or only labels with their required values, as
/// in the `nodeSelector` of a Pod. All its conditions must be met.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    rename = "Selector",
    extend(
        "propertyNames" = { "pattern": pattern::label_key() },
        "additionalProperties" = label_value()
    )
)]
pub(crate) struct RawSelector {
    /// Labels and their required values.
    #[schemars(
        extend(
            "propertyNames" = { "pattern": pattern::label_key() },
            "additionalProperties" = label_value()
        ),
        example = json!({"node-role.kubernetes.io/gateway": "true"})
    )]
    pub(super) match_labels: Option<BTreeMap<String, String>>,
    /// Conditions on labels.
    pub(super) match_expressions: Option<Vec<RawRequirement>>,
    /// Labels and their required values.
    #[serde(flatten)]
    pub(super) labels: BTreeMap<String, String>,
}

fn label_value() -> serde_json::Value {
    json!({ "type": "string", "pattern": pattern::LABEL_VALUE })
}

/// A condition on a label.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [values_to_compare()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Requirement")]
pub(super) struct RawRequirement {
    /// The label.
    #[schemars(regex(pattern = pattern::label_key()), example = &"topology.kubernetes.io/zone")]
    pub(super) key: String,
    /// The condition.
    pub(super) operator: Operator,
    /// The values to compare with, for `In` and `NotIn` only.
    #[schemars(inner(regex(pattern = pattern::LABEL_VALUE)))]
    pub(super) values: Option<Vec<String>>,
}

/// A condition on a label.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
pub(super) enum Operator {
    /// The label exists and has one of the values.
    In,
    /// The label is missing or has another value.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}
