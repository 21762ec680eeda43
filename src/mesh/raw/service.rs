//! Mirrored Services as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::port::Protocol;
use crate::schema::pattern;

/// A Service of one cluster that others get as a Service of their own. Its packets go to its cluster IP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Service")]
pub(in crate::mesh) struct RawService {
    /// The name of the Service.
    #[schemars(regex(pattern = pattern::SERVICE_NAME), example = &"api")]
    pub(in crate::mesh) name: String,
    /// Its namespace.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"shop")]
    pub(in crate::mesh) namespace: String,
    /// The cluster that has it.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"west")]
    pub(in crate::mesh) cluster: String,
    /// Its cluster IPs, at most one of each family, in ranges that other clusters reach.
    #[schemars(length(min = 1, max = 2), inner(regex(pattern = pattern::address())), example = ["10.45.0.20"])]
    #[serde(rename = "clusterIPs")]
    pub(in crate::mesh) cluster_ips: Vec<String>,
    /// Its ports that others use.
    #[schemars(length(min = 1, max = 100))]
    pub(in crate::mesh) ports: Vec<RawServicePort>,
    /// The clusters that get it. The entry of each must accept its namespace there: `acceptedServices`.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)), example = ["east"])]
    pub(in crate::mesh) r#in: Vec<String>,
    /// Its name and namespace in the clusters that get it, if they are others there.
    pub(in crate::mesh) r#as: Option<RawServiceName>,
}

/// A port of a Service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ServicePort")]
pub(in crate::mesh) struct RawServicePort {
    /// The name of the port. A Service with one port needs none.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"http")]
    pub(in crate::mesh) name: Option<String>,
    /// The number.
    #[schemars(range(min = 1, max = 65535), example = 80)]
    pub(in crate::mesh) port: u16,
    /// The protocol; `TCP` by default.
    #[schemars(extend("default" = "TCP"))]
    pub(in crate::mesh) protocol: Option<Protocol>,
    /// The application protocol, for proxies that use it.
    #[schemars(regex(pattern = pattern::label_key()), example = &"http")]
    pub(in crate::mesh) app_protocol: Option<String>,
}

/// The name of a Service where it is not that of the cluster that has it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ServiceName")]
pub(in crate::mesh) struct RawServiceName {
    /// The name; by default the same.
    #[schemars(regex(pattern = pattern::SERVICE_NAME), example = &"west-api")]
    pub(in crate::mesh) name: Option<String>,
    /// The namespace; by default the same.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"shop")]
    pub(in crate::mesh) namespace: Option<String>,
}
