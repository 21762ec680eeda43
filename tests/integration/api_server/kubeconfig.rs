//! Kubeconfigs, as people and cloud vendors write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::identity::{Authority, Identity};

/// A context, with a cluster and a user of its own.
#[derive(Clone)]
pub(crate) struct Context {
    name: String,
    cluster: Map<String, Value>,
    user: Map<String, Value>,
}

impl Context {
    pub(crate) fn new(name: &str, server: &str) -> Self {
        let context = Self { name: name.to_owned(), cluster: Map::new(), user: Map::new() };
        context.cluster("server", server)
    }

    /// Sets a field of the cluster, such as `proxy-url`.
    #[must_use]
    pub(crate) fn cluster(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.cluster.insert(field.to_owned(), value.into());
        self
    }

    /// Sets a field of the user, such as `token`.
    #[must_use]
    pub(crate) fn user(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.user.insert(field.to_owned(), value.into());
        self
    }

    /// Trusts the servers of an authority.
    #[must_use]
    pub(crate) fn trusting(self, authority: &Authority) -> Self {
        self.cluster("certificate-authority-data", inline(&authority.pem()))
    }

    /// Logs in with a certificate.
    #[must_use]
    pub(crate) fn identified_by(self, identity: &Identity) -> Self {
        self.user("client-certificate-data", inline(&identity.certificate))
            .user("client-key-data", inline(&identity.key))
    }

    /// Logs in with what a command prints.
    #[must_use]
    pub(crate) fn plugin(self, command: &str, arguments: &[&str]) -> Self {
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "args": arguments,
            "env": null,
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": false,
        });
        self.user("exec", exec)
    }
}

/// Returns a kubeconfig in YAML; its current context is the first.
pub(crate) fn kubeconfig(contexts: &[Context]) -> String {
    let named = |what: &str, value: fn(&Context) -> Value| -> Vec<Value> {
        let entry = |it: &Context| json!({ "name": it.name, what: value(it) });
        contexts.iter().map(entry).collect()
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": contexts.first().map_or("", |it| it.name.as_str()),
        "clusters": named("cluster", |it| json!(it.cluster)),
        "contexts": named("context", |it| json!({ "cluster": it.name, "user": it.name })),
        "users": named("user", |it| json!(it.user)),
    });
    serde_yaml::to_string(&config).unwrap()
}

/// Returns what a plugin prints that has a token.
pub(crate) fn credential(token: &str) -> String {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": { "token": token },
    });
    credential.to_string()
}

fn inline(text: &str) -> String {
    STANDARD.encode(text)
}
