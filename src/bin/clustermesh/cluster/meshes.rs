//! Meshes: the `ClusterMesh` objects of the operator.

use std::io;
use std::time::Duration;

use clustermesh::rules::clusters::{Fault, OVERSIZED};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::{runtime, time};

use super::ANSWERS;
use super::connection::Connection;
use super::failure::{self, RequestFailure, endless, useless};
use super::kubeconfig::SelectedContext;
use super::pages::{self, Collection, unreadable};
use super::right::LIST_MESHES;
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
        let wrong = |error: &serde_json::Error| {
            if error.is_eof() {
                return failure::of_half();
            }
            unreadable(&hidden.hide(&pages::problem(error, text)))
        };
        let page: MeshPage = serde_json::from_slice(bytes).map_err(|error| wrong(&error))?;
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
            .map_err(|error| wrong(&error))?;
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
