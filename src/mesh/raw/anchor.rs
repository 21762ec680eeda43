//! Anchors as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::schema::counts;
use crate::schema::pattern;

/// The nodes that carry some of the cluster-wide ranges: `serviceCIDR`, `additionalCIDRs`, the ranges of
/// `allowedNetworks` that are not the nodes' own, and those that `advertise` gives as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Anchor")]
pub(in crate::mesh) struct RawAnchor {
    /// The ranges, written as they are declared; by default all that no other anchor names. Ranges of
    /// pods and of Kilo's subnet only if `advertise` gives them as a whole.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.43.0.0/16"])]
    pub(in crate::mesh) ranges: Option<Vec<String>>,
    /// The nodes that carry the ranges, the preferred one first. Nodes that do not exist, cannot be
    /// dialled or have a silent Kilo agent are skipped. If none is left, the default applies.
    #[schemars(
        length(min = 1),
        inner(length(min = 1)),
        extend("uniqueItems" = true),
        example = ["gateway-1", "gateway-2"]
    )]
    pub(in crate::mesh) nodes: Option<Vec<String>>,
    /// The number of nodes among which each range is split into equal parts: a power of two, 1 by
    /// default. If fewer nodes can carry it, it is split among these.
    #[schemars(range(min = 1, max = 256), extend("enum" = counts(), "default" = 1))]
    pub(in crate::mesh) count: Option<u16>,
}
