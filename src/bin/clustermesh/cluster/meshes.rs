//! Meshes: the `ClusterMesh` objects of the operator, and the kubeconfigs in Secrets to which they refer.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::mesh::SecretKeyRef;
use clustermesh::rules::clusters::{Fault, OVERSIZED, SECRET, UNSAFE, Weakness, shown};
use kube::config::{AuthInfo, Cluster};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::{runtime, time};

use super::ANSWERS;
use super::connection::Connection;
use super::failure::{self, RequestFailure, endless, useless};
use super::kubeconfig::{Loaded, SelectedContext};
use super::pages::{self, Collection, unreadable};
use super::request::{ApiRequest, ApiResponse, LIST_MESHES, Right, SMALL, answer, encoded};
use crate::secrets::Redactions;

/// The list of them in all namespaces.
const PATH: &str = "/apis/kilo.squat.ai/v1alpha1/clustermeshes";

/// The most bytes of all of them: a mesh file may have no more.
const LIMIT: usize = 8 << 20;

/// The objects that were listed.
#[derive(Default)]
struct MeshListing {
    meshes: Vec<Value>,
    bytes: usize,
}

#[derive(Deserialize)]
struct MeshPage {
    kind: String,
    metadata: Option<MeshListMetadata>,
    items: Vec<MeshItem>,
}

#[derive(Deserialize)]
struct MeshListMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

#[derive(Deserialize)]
struct MeshItem {
    metadata: MeshMetadata,
    spec: Box<RawValue>,
}

#[derive(Deserialize)]
struct MeshMetadata {
    name: String,
    namespace: String,
}

/// Lists the `ClusterMesh` objects of a cluster, without what only its API server needs.
pub(crate) fn meshes(
    selected: SelectedContext,
    patience: Duration,
) -> io::Result<Result<Vec<Value>, Fault>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = patience * ANSWERS;
    let list = async {
        let connection = Connection::open(selected, patience).await?;
        let listed = pages::list(&connection, PATH, &LIST_MESHES).await?;
        Ok(listed.map_or_else(Vec::new, |(it, _): (MeshListing, usize)| it.meshes))
    };
    // A timeout begins within the runtime.
    let listed = runtime.block_on(async { time::timeout(limit, list).await });
    // Do not wait for a plugin that hangs.
    runtime.shutdown_background();
    Ok(listed.unwrap_or_else(|_| Err(endless("ClusterMesh objects", limit))))
}

impl Collection for MeshListing {
    fn count(&self) -> usize {
        self.meshes.len()
    }

    fn add(&mut self, bytes: &[u8], hidden: &Redactions) -> Result<Option<String>, RequestFailure> {
        let text = pages::text(bytes)?;
        let wrong = |error: serde_json::Error| pages::wrong(&error, text, hidden);
        let page: MeshPage = serde_json::from_slice(bytes).map_err(wrong)?;
        if page.kind != "ClusterMeshList" {
            return Err(unreadable("expected a ClusterMeshList"));
        }
        let sizes = page.items.iter().map(|it| it.spec.get().len());
        let bytes = self.bytes + sizes.sum::<usize>();
        if LIMIT < bytes {
            let problem = format!("the ClusterMesh objects have more than {} MiB", LIMIT >> 20);
            return Err(RequestFailure::Final(useless(&OVERSIZED, &problem)));
        }
        let objects: Vec<Value> = page
            .items
            .into_iter()
            .map(MeshItem::object)
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        // They end up in a repository.
        if objects.iter().any(|it| hidden.are_within(it)) {
            return Err(unreadable("it contains the request's credentials"));
        }
        self.meshes.extend(objects);
        self.bytes = bytes;
        let more = page.metadata.and_then(|it| it.more);
        Ok(more.filter(|token| !token.is_empty()))
    }
}

impl MeshItem {
    fn object(self) -> serde_json::Result<Value> {
        let spec: Value = serde_json::from_str(self.spec.get())?;
        let MeshMetadata { name, namespace } = self.metadata;
        Ok(json!({
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "ClusterMesh",
            "metadata": { "name": name, "namespace": namespace },
            "spec": spec,
        }))
    }
}

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
