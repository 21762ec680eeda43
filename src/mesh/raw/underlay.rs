//! Underlays as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::schema::pattern;

/// A network that connects nodes of several clusters, such as a VPN or peered VPCs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Underlay")]
pub(in crate::mesh) struct RawUnderlay {
    /// The name of the network, the same in each entry whose nodes are in it: a DNS-1123 label.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"corp")]
    pub(in crate::mesh) name: String,
    /// The ranges in which the nodes of this entry have their addresses in it: those at which they are dialled, and those
    /// from which they dial. They may differ between entries.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["192.168.0.0/16"])]
    pub(in crate::mesh) cidrs: Vec<String>,
}
