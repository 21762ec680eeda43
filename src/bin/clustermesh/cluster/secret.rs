//! Secrets: the kubeconfigs that the operator's mesh refers to, read from its own cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::mesh::SecretKeyRef;
use clustermesh::rules::clusters::{Fault, SECRET, UNSAFE, Weakness, shown};
use kube::config::{AuthInfo, Cluster};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::connection::Connection;
use super::failure::{self, RequestFailure};
use super::kubeconfig::{Loaded, SelectedContext};
use super::request::{ApiRequest, ApiResponse, SMALL, answer, encoded};
use super::right::Right;

/// The cluster that holds the Secrets.
pub(crate) struct Store {
    selected: Result<SelectedContext, Fault>,
    opened: OnceCell<Result<Connection, Fault>>,
}

/// A key of a Secret.
#[derive(Clone, Debug)]
pub(crate) struct SecretKey {
    namespace: String,
    secret: SecretKeyRef,
}

/// The used part of a Secret.
#[derive(Deserialize)]
struct SecretObject {
    kind: Option<String>,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl SecretKey {
    /// Returns the Secret that a mesh names in its namespace. Only names that Kubernetes allows are
    /// accepted: in a path, `..` would lead elsewhere.
    pub(crate) fn new(namespace: &str, secret: &SecretKeyRef) -> Result<Self, Fault> {
        match secret.problem(namespace) {
            None => Ok(Self { namespace: namespace.to_owned(), secret: secret.clone() }),
            Some(problem) => Err(wrong_secret(&format!("{namespace}/{}", secret.name), problem)),
        }
    }
}

impl Store {
    /// Returns the cluster of a context.
    pub(crate) fn new(selected: Result<SelectedContext, Fault>) -> Self {
        Self { selected, opened: OnceCell::new() }
    }

    /// Opens the cluster, once for all who ask.
    pub(super) async fn connection(&self, patience: Duration) -> Result<Connection, Fault> {
        let open = || async { Connection::open(self.selected.clone()?, patience).await };
        self.opened.get_or_init(open).await.clone()
    }

    /// Opens another cluster, of which the kubeconfig is in a Secret.
    pub(super) async fn another(
        &self,
        key: &SecretKey,
        patience: Duration,
    ) -> Result<Connection, Fault> {
        let store = self.connection(patience).await?;
        let selected = kubeconfig(&store, key).await?;
        let mut connection = Connection::open(selected, patience).await?;
        let weaknesses = store.weaknesses.iter().map(|weakness| match weakness {
            Weakness::UncheckedCertificate | Weakness::UncheckedStore => Weakness::UncheckedStore,
            Weakness::Unencrypted | Weakness::UnencryptedStore => Weakness::UnencryptedStore,
        });
        connection.weaknesses.extend(weaknesses);
        Ok(connection)
    }
}

/// Returns the fault of a Secret that cannot be used.
pub(crate) fn wrong_secret(name: &str, problem: &str) -> Fault {
    let secret = shown(&format!("Secret {name}"));
    Fault::new(&SECRET, format!("{secret}: {}", shown(problem)))
}

/// Reads a kubeconfig.
async fn kubeconfig(connection: &Connection, key: &SecretKey) -> Result<SelectedContext, Fault> {
    let SecretKey { namespace, secret } = key;
    let SecretKeyRef { name, key } = secret;
    let full_name = format!("{namespace}/{name}");
    let wrong = |problem: &str| wrong_secret(&full_name, problem);
    let request = ApiRequest {
        path: format!("/api/v1/namespaces/{}/secrets/{}", encoded(namespace), encoded(name)),
        right: Right::get_secret(namespace, name),
        limit: SMALL,
    };
    let read = |bytes: &[u8]| {
        serde_json::from_slice(bytes).map_err(|error| {
            if error.is_eof() {
                return failure::of_half();
            }
            // Its content must not be shown, not even in an error.
            RequestFailure::Final(wrong("the response is not a Secret"))
        })
    };
    let secret: SecretObject = match answer(connection, &request, read).await? {
        ApiResponse::With(secret) => secret,
        ApiResponse::Missing(_) => return Err(wrong("the Secret does not exist")),
    };
    if secret.kind.as_deref() != Some("Secret") {
        return Err(wrong("the response is not a Secret"));
    }
    let data = secret.data.unwrap_or_default();
    let Some(value) = data.get(key) else {
        let known: Vec<&str> = data.keys().map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "the Secret is empty".to_owned(),
            known => connection.hidden.hide(&format!("it has {}", known.join(", "))),
        };
        return Err(wrong(&format!("the Secret has no key `{key}`; {known}")));
    };
    let text = STANDARD
        .decode(value.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| wrong(&format!("the value of key `{key}` is not UTF-8")))?;
    let loaded = Loaded::from_text(&text, format!("Secret {full_name}, key {key}"))?;
    harmless(loaded.current()?)
}

/// Refuses fields with which the author of the Secret could run programs or read files here.
pub(super) fn harmless(selected: SelectedContext) -> Result<SelectedContext, Fault> {
    let SelectedContext { origin, cluster, user, .. } = &selected;
    let Cluster { certificate_authority, .. } = cluster;
    let AuthInfo { token_file, client_certificate, client_key, auth_provider, exec, .. } = user;
    let fields = [
        ("exec", exec.is_some()),
        ("auth-provider", auth_provider.is_some()),
        ("tokenFile", token_file.is_some()),
        ("client-certificate", client_certificate.is_some()),
        ("client-key", client_key.is_some()),
        ("certificate-authority", certificate_authority.is_some()),
    ];
    // A cluster has none of them; they would make our request one to something else.
    let server = cluster.server.as_deref().unwrap_or_default();
    if server.contains(['?', '#']) {
        let problem = "`server` has a query or fragment";
        return Err(Fault::of_kubeconfig(origin, problem));
    }
    let Some((field, _)) = fields.into_iter().find(|(_, is_there)| *is_there) else {
        return Ok(selected);
    };
    let sentence = format!(
        "the kubeconfig in {} contains `{field}`, which runs a program or reads a file on this \
         machine",
        shown(origin)
    );
    Err(Fault::new(&UNSAFE, sentence))
}
