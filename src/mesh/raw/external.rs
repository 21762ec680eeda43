//! External peers as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::underlay::RawUnderlay;
use crate::schema::pattern;

/// A laptop, a router or another host that belongs to no cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "ExternalPeer")]
pub(in crate::mesh) struct RawExternalPeer {
    /// The name of the host: a DNS-1123 label. Its Peer is called `MESH--external.NAME`.
    #[schemars(regex(pattern = pattern::CLUSTER_NAME), example = &"laptop")]
    pub(in crate::mesh) name: String,
    /// Its `WireGuard` public key.
    #[schemars(regex(pattern = pattern::KEY))]
    pub(in crate::mesh) public_key: String,
    /// Its own addresses, and the networks behind it. They must not overlap ranges of clusters or of other
    /// external peers.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::range())), example = ["10.200.0.5/32"])]
    pub(in crate::mesh) ranges: Vec<String>,
    /// The address or DNS name, and the port, at which the clusters dial it. Leave it out if the host is
    /// behind NAT or if its address changes.
    #[schemars(example = &"203.0.113.7:51820")]
    pub(in crate::mesh) endpoint: Option<String>,
    /// Seconds between the keepalives that clusters send to it. With an endpoint 0 by default, which disables
    /// them; otherwise 25, and not 0.
    #[schemars(range(max = 65535))]
    pub(in crate::mesh) persistent_keepalive: Option<u16>,
    /// The clusters of this mesh that it reaches.
    #[schemars(length(min = 1), inner(regex(pattern = pattern::CLUSTER_NAME)), example = ["east"])]
    pub(in crate::mesh) clusters: Vec<String>,
    /// The networks under the tunnels that it shares with clusters. It counts as being in each of them.
    #[schemars(length(min = 1))]
    pub(in crate::mesh) underlays: Option<Vec<RawUnderlay>>,
}

impl RawExternalPeer {
    /// Returns its name among clusters, which may be wrong.
    pub(in crate::mesh) fn member_name(&self) -> String {
        format!("external.{}", self.name)
    }
}
