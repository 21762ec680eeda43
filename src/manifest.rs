//! Manifests: the plan as the files that Flux, Argo CD or `kubectl` apply.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use thiserror::Error;

use crate::kilo::peer::Peer;
use crate::name::ClusterName;
use crate::plan::{EachPeerSet, PeerSet, Plan, Target};
use crate::template::{self, TemplateError};

mod kustomization;
mod old_peer;
mod reading;

pub use crate::kilo::peer::{MESH_LABEL, SOURCE_LABEL};
pub use crate::yaml::HEADER;
pub use kustomization::Kustomization;
pub use old_peer::OldPeer;
pub use reading::{Oddity, Reading, Unfit, reading};

/// The file of a target that lists the files to apply.
pub const KUSTOMIZATION: &str = "kustomization.yaml";

/// The annotation in which `kubectl apply` keeps what it applied, without server-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Files by path, relative to the rendered tree, with `/` between folder and name.
///
/// A text that several targets share is held once.
pub type Tree = BTreeMap<String, Arc<str>>;

/// The reason why there is no tree.
#[derive(Debug, Error)]
#[error("cannot write the kustomization of `{target}`")]
pub struct ManifestError {
    target: ClusterName,
    #[source]
    source: TemplateError,
}

/// The text of each set of Peers of a plan.
pub type PeerSetTexts = EachPeerSet<Arc<str>>;

/// Returns the files of every target.
///
/// # Errors
/// A template that does not fit its values, which is a mistake of this program.
pub fn tree(plan: &Plan) -> Result<Tree, ManifestError> {
    tree_of(plan, &texts(plan))
}

/// Returns the text of every set of Peers.
pub fn texts(plan: &Plan) -> PeerSetTexts {
    PeerSetTexts::new(plan.peer_sets.par_iter().map(text).collect())
}

/// Returns the files of every target, given the text of each set of Peers. They are independent of each
/// other, so a caller can build several in parallel.
///
/// # Errors
/// As [`tree`].
pub fn tree_of(plan: &Plan, texts: &PeerSetTexts) -> Result<Tree, ManifestError> {
    let mut tree = Tree::new();
    for target in &plan.targets {
        let mut files = Vec::new();
        for &peer_set in &target.peer_sets {
            let file = file(&plan.peer_sets[peer_set]);
            tree.insert(format!("{}/{file}", target.cluster), Arc::clone(&texts[peer_set]));
            files.push(file);
        }
        let kustomization = kustomization(target, &files)?;
        let path = format!("{}/{KUSTOMIZATION}", target.cluster);
        tree.insert(path, Arc::from(kustomization));
    }
    Ok(tree)
}

/// Returns the name of the file of a set of Peers in the folder of a target.
pub fn file(peer_set: &PeerSet) -> String {
    format!("{}.yaml", peer_set.name)
}

/// Returns whether a file in the folder of a target has the name of one that a render writes.
pub fn is_file(name: &str) -> bool {
    name.strip_suffix(".yaml").is_some_and(|it| it.contains("--"))
}

/// Returns the Peers of one target as a single stream of documents.
pub fn stream(plan: &Plan, target: &Target) -> String {
    let mut stream = format!("{HEADER}\n");
    for (position, peer) in plan.sets_of(target).flat_map(|it| &it.peers).enumerate() {
        if 0 < position {
            stream.push_str("---\n");
        }
        peer.push_to(&mut stream);
    }
    stream
}

/// Returns the file that every target gets that gets this set of Peers.
pub fn text(peer_set: &PeerSet) -> Arc<str> {
    let mut text = format!("{HEADER}\n");
    for (position, peer) in peer_set.peers.iter().enumerate() {
        if 0 < position {
            text.push_str("---\n");
        }
        peer.push_to(&mut text);
    }
    Arc::from(text)
}

fn kustomization(target: &Target, files: &[String]) -> Result<String, ManifestError> {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    template::kustomization(&files)
        .map_err(|source| ManifestError { target: target.cluster.clone(), source })
}

/// Returns how many bytes the annotation has in which `kubectl apply` keeps a whole Peer, its name
/// included: Kubernetes counts both.
pub fn last_applied_bytes(peer: &Peer) -> usize {
    let object = serde_json::json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "Peer",
        "metadata": {
            "annotations": {},
            "labels": BTreeMap::from(peer.labels()),
            "name": peer.name.as_str(),
        },
        "spec": peer.spec(),
    });
    // kubectl ends the text with a line break.
    LAST_APPLIED.len() + object.to_string().len() + 1
}
