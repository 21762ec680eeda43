//! Access: how a cluster is reached.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::diagnostic::{Finding, mistake};
use crate::mesh::SecretKeyRef;
use crate::place::Place;

/// The access to a cluster's API server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Access {
    /// With the service account of the pod we run in.
    InCluster,
    /// With a kubeconfig in a Secret of the cluster that `--secrets-from` names.
    Secret {
        /// The namespace of the Secret.
        namespace: String,
        /// The Secret, and the key in it.
        secret: SecretKeyRef,
    },
    /// With a kubeconfig.
    Kubeconfig {
        /// The file, relative to the config's folder; none for the one that `kubectl` would read.
        path: Option<String>,
        /// The context in it; none for one of the cluster's name, or, where the config names the
        /// file, for the only one there is.
        context: Option<String>,
    },
}

/// The access to a cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Cluster", extend("allOf" = [in_cluster_alone(), secret_alone()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenCluster {
    /// The kubeconfig; default: `--kubeconfig`, else the same files as `kubectl`.
    #[schemars(length(min = 1), example = &"east.yaml")]
    kubeconfig: Option<String>,
    /// The context in the kubeconfig; default: the cluster's name or, with `kubeconfig`, the only
    /// context in that file.
    #[schemars(length(min = 1), example = &"admin@east")]
    context: Option<String>,
    /// clustermesh runs in this cluster: use the pod's service account.
    in_cluster: Option<bool>,
    /// The Secret with the kubeconfig, in the cluster that `--secrets-from` names.
    kubeconfig_secret: Option<WrittenSecret>,
}

/// A key of a Secret.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SecretKey")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenSecret {
    /// The namespace of the Secret.
    #[schemars(length(min = 1), example = &"tenant-west")]
    namespace: String,
    /// The name of the Secret.
    #[schemars(length(min = 1), example = &"kubernetes-west-admin-kubeconfig")]
    name: String,
    /// The key in its data.
    #[schemars(length(min = 1), example = &"super-admin.svc")]
    key: String,
}

impl WrittenCluster {
    /// Returns how the cluster is reached.
    pub(super) fn access(self, place: &Place) -> Result<Access, Finding> {
        match self {
            Self {
                kubeconfig: None,
                context: None,
                in_cluster: None | Some(false),
                kubeconfig_secret: Some(secret),
            } => {
                let WrittenSecret {
                    namespace,
                    name,
                    key,
                } = secret;
                let secret = SecretKeyRef { name, key };
                Ok(Access::Secret { namespace, secret })
            }
            Self {
                kubeconfig_secret: Some(_),
                ..
            } => Err(Finding::new(
                &mistake::CONTRADICTING_FIELDS,
                "`kubeconfigSecret` cannot be combined with `kubeconfig`, `context` or `inCluster: true`",
            )
            .at(place.key("kubeconfigSecret"), "")
            .help("remove `kubeconfigSecret`, or remove the other fields")),
            Self {
                kubeconfig: None,
                context: None,
                in_cluster: Some(true),
                ..
            } => Ok(Access::InCluster),
            Self {
                in_cluster: Some(true),
                ..
            } => Err(Finding::new(
                &mistake::CONTRADICTING_FIELDS,
                "`inCluster: true` cannot be combined with `kubeconfig` or `context`",
            )
            .at(place.key("inCluster"), "")
            .help("remove `inCluster`, or remove the other fields")),
            Self {
                kubeconfig,
                context,
                ..
            } => Ok(Access::Kubeconfig {
                path: kubeconfig,
                context,
            }),
        }
    }
}

/// No kubeconfig beside the pod's own account.
fn in_cluster_alone() -> Value {
    json!({
        "if": {
            "properties": { "inCluster": { "const": true } },
            "required": ["inCluster"],
        },
        "then": {
            "properties": { "kubeconfig": { "type": "null" }, "context": { "type": "null" } },
        },
    })
}

/// No other access beside a Secret.
fn secret_alone() -> Value {
    json!({
        "if": {
            "properties": { "kubeconfigSecret": { "type": "object" } },
            "required": ["kubeconfigSecret"],
        },
        "then": {
            "properties": {
                "kubeconfig": { "type": "null" },
                "context": { "type": "null" },
                "inCluster": { "enum": [false, null] },
            },
        },
    })
}
