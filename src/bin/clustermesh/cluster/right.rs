//! Rights: what the user of a request must be allowed to do.

use std::borrow::Cow;

use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::rules::clusters::shown;

/// A required right.
#[derive(Clone)]
pub(super) struct Right {
    /// The right, as a verb and an object.
    pub(super) name: Cow<'static, str>,
    /// Whether it is one in the operator's cluster.
    pub(super) is_of_operator: bool,
    /// The help if it is missing.
    pub(super) help: Cow<'static, str>,
}

/// To list the nodes of the cluster.
pub(super) const LIST_NODES: Right = Right {
    name: Cow::Borrowed("`list` `nodes`"),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac` prints the manifests that grant this right"),
};

/// To list Kilo's Peers in the cluster.
pub(super) const LIST_PEERS: Right = Right {
    name: Cow::Borrowed("`list` `peers.kilo.squat.ai`"),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac --peers` prints the manifests that grant this right"),
};

/// To read the guard of the cluster.
pub(super) const GET_GUARD: Right = Right {
    name: Cow::Borrowed(
        "`get` `validatingadmissionpolicies` and `validatingadmissionpolicybindings`",
    ),
    is_of_operator: false,
    help: Cow::Borrowed("`clustermesh rbac --peers` prints the manifests that grant this right"),
};

/// To list the operator's ClusterMesh objects in its cluster.
pub(super) const LIST_MESHES: Right = Right {
    name: Cow::Borrowed("`list` `clustermeshes.kilo.squat.ai`"),
    is_of_operator: true,
    help: Cow::Borrowed(
        "grant this right in the operator's cluster, or copy the objects into mesh.yaml: `kubectl \
         get clustermeshes -A -o yaml`",
    ),
};

impl Right {
    /// Returns the right to read one Service of a cluster.
    pub(super) fn get_service(cluster: &ClusterName, service: &ServiceName) -> Self {
        Self {
            name: format!("`get` the Service `{service}`").into(),
            is_of_operator: false,
            help: format!(
                "`clustermesh rbac --services {cluster}` prints the manifests that grant this right"
            )
            .into(),
        }
    }

    /// Returns the right to read one Secret.
    pub(super) fn get_secret(namespace: &str, name: &str) -> Self {
        let secret = shown(&format!("{namespace}/{name}"));
        Self {
            name: format!("`get` the Secret `{secret}`").into(),
            is_of_operator: true,
            help: format!(
                "`clustermesh rbac --secret {secret}` prints the manifests that grant this right in \
                 the operator's cluster"
            )
            .into(),
        }
    }
}
