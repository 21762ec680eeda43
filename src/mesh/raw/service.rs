//! Items of `services` as the mesh file has them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::port::Protocol;
use crate::schema::pattern;

/// A Service of one cluster that other clusters also get. Its packets go to its cluster IP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Service")]
pub(in crate::mesh) struct RawService {
    /// The name of the Service.
    #[schemars(regex(pattern = pattern::SERVICE_NAME), example = &"api")]
    pub(in crate::mesh) name: String,
    /// The namespace of the Service.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"shop")]
    pub(in crate::mesh) namespace: String,
    /// The cluster that has the Service.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"west")]
    pub(in crate::mesh) cluster: String,
    /// The cluster IPs of the Service, at most one of each address family. Other clusters must reach their ranges.
    #[schemars(length(min = 1, max = 2), inner(regex(pattern = pattern::address())), example = ["10.45.0.20"])]
    #[serde(rename = "clusterIPs")]
    pub(in crate::mesh) cluster_ips: Vec<String>,
    /// The ports that other clusters use.
    #[schemars(length(min = 1, max = 100))]
    pub(in crate::mesh) ports: Vec<RawServicePort>,
    /// The clusters that get the Service. `acceptedServices` of each of them must contain the namespace.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)), example = ["east"])]
    pub(in crate::mesh) r#in: Vec<String>,
    /// Another name or namespace of the Service in the clusters that get it.
    pub(in crate::mesh) r#as: Option<RawServiceName>,
}

/// A port of a Service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ServicePort")]
pub(in crate::mesh) struct RawServicePort {
    /// The name of the port, required if the Service has several ports.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"http")]
    pub(in crate::mesh) name: Option<String>,
    /// The number of the port.
    #[schemars(range(min = 1, max = 65535), example = 80)]
    pub(in crate::mesh) port: u16,
    /// The protocol; default: `TCP`.
    #[schemars(extend("default" = "TCP"))]
    pub(in crate::mesh) protocol: Option<Protocol>,
    /// The application protocol, for proxies that use it.
    #[schemars(regex(pattern = pattern::label_key()), example = &"http")]
    pub(in crate::mesh) app_protocol: Option<String>,
}

/// Another name or namespace of a Service.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ServiceName")]
pub(in crate::mesh) struct RawServiceName {
    /// The name; default: the name of the Service.
    #[schemars(regex(pattern = pattern::SERVICE_NAME), example = &"west-api")]
    pub(in crate::mesh) name: Option<String>,
    /// The namespace; default: the namespace of the Service.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"shop")]
    pub(in crate::mesh) namespace: Option<String>,
}
