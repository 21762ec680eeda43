//! Routes: how each cluster of a run is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clustermesh::mesh::{Mesh, SecretKeyRef};
use clustermesh::name::ClusterName;
use clustermesh::rules::clusters::{AMBIGUOUS, Fault, UNSAFE, shown};
use clustermesh::text::{self, shell_word};

use super::ReachOptions;
use super::contexts::Contexts;
use crate::cluster::{ClusterRoute, Kubeconfigs, SecretKey, SelectedContext, Store, wrong_secret};
use crate::input_file;
use crate::settings::{ClusterAccess, SettingOrigin, Settings};

/// The routes to clusters, and the clusters without a route.
pub(crate) type Routes = (BTreeMap<ClusterName, ClusterRoute>, Vec<(ClusterName, Fault)>);

/// Returns how clusters are reached: with the context of a flag, else as set in the config, else with a
/// Secret of the operator if `--secrets-from` names the context of its cluster, else with the context of
/// the cluster's name.
pub(super) fn routes(
    clusters: &BTreeSet<&ClusterName>,
    settings: &Settings,
    meshes: &[Mesh],
    reach: &ReachOptions,
    contexts: &Contexts,
    kubeconfigs: &mut Kubeconfigs,
) -> Routes {
    let store = reach.secrets_from.as_deref().map(|context| {
        let selected = store_context(context, settings, kubeconfigs);
        Arc::new(Store::new(selected))
    });
    let mut route = |cluster: &ClusterName| {
        let named = contexts.get(cluster);
        let is_configured = settings.config.content.clusters.contains_key(cluster);
        if let Some(store) = store.as_ref().filter(|_| !is_configured && named.is_none())
            && let Some(route) = operator_route(cluster, meshes, store)
        {
            return route;
        }
        let (files, context) = match settings.access(cluster) {
            ClusterAccess::InCluster if named.is_none() => return Ok(ClusterRoute::InCluster),
            ClusterAccess::Secret { namespace, secret } if named.is_none() => {
                return configured_route(&namespace, &secret, store.as_ref());
            }
            ClusterAccess::InCluster | ClusterAccess::Secret { .. } => {
                (settings.kubeconfig.clone(), None)
            }
            ClusterAccess::Kubeconfig { files, context } => (files, context.value),
        };
        if let SettingOrigin::File(_) = files.origin {
            check_owner(&files.value, settings)?;
        }
        let context = named.cloned().or(context);
        let selected = match &context {
            Some(context) => kubeconfigs.context(&files.value, context)?,
            None => kubeconfigs.context_or_only(&files.value, cluster.as_str())?,
        };
        let selected = match (&files.origin, settings.config.of_other()) {
            (SettingOrigin::File(_), Some(config)) => {
                selected.named_by_other(&input_file::name(config))?
            }
            _ => selected,
        };
        Ok(ClusterRoute::Context(Box::new(selected)))
    };
    let (mut routes, mut lost) = (BTreeMap::new(), Vec::new());
    for &cluster in clusters {
        match route(cluster) {
            Ok(route) => drop(routes.insert(cluster.clone(), route)),
            Err(fault) => lost.push((cluster.clone(), fault)),
        }
    }
    (routes, lost)
}

/// Fails if the config names a kubeconfig that anyone may have put there.
fn check_owner(kubeconfigs: &[PathBuf], settings: &Settings) -> Result<(), Fault> {
    let foreign = kubeconfigs.iter().find_map(|it| Some((it, settings.config.names_foreign(it)?)));
    let Some((kubeconfig, config)) = foreign else {
        return Ok(());
    };
    let name = |path| shown(&input_file::name(path));
    let (kubeconfig, config) = (name(kubeconfig), name(config));
    let sentence =
        format!("the kubeconfig {kubeconfig}, which {config} names, belongs to another user");
    Err(Fault::new(&UNSAFE, sentence).help(format!(
        "if you trust it, become its owner: `sudo chown \"$(id -u)\" {}`",
        shell_word(&kubeconfig)
    )))
}

/// Returns the context of the cluster that has the operator's Secrets.
pub(super) fn store_context(
    context: &str,
    settings: &Settings,
    kubeconfigs: &mut Kubeconfigs,
) -> Result<SelectedContext, Fault> {
    let files = &settings.kubeconfig.value;
    kubeconfigs.context_of_flag("--secrets-from", files, context)
}

/// Returns how a cluster is reached whose Secret the config names.
fn configured_route(
    namespace: &str,
    secret: &SecretKeyRef,
    store: Option<&Arc<Store>>,
) -> Result<ClusterRoute, Fault> {
    let key = SecretKey::new(namespace, secret)?;
    let store = store.ok_or_else(|| {
        let problem =
            "`--secrets-from` is missing, which names the context of the cluster with the Secret";
        wrong_secret(&format!("{namespace}/{}", secret.name), problem)
            .help("add `--secrets-from CONTEXT`")
    })?;
    Ok(ClusterRoute::Secret(Arc::clone(store), key))
}

/// Returns how the operator reaches a cluster, if a mesh declares it.
fn operator_route(
    cluster: &ClusterName,
    meshes: &[Mesh],
    store: &Arc<Store>,
) -> Option<Result<ClusterRoute, Fault>> {
    let entries = || {
        meshes.iter().flat_map(|mesh| {
            let named = mesh.entries.iter().filter(|entry| entry.name == *cluster);
            named.map(move |entry| (mesh, entry))
        })
    };
    if entries().any(|(_, entry)| entry.local) {
        return Some(local_route(meshes, store));
    }
    let mut secrets =
        entries().filter_map(|(mesh, entry)| Some((mesh, entry.kubeconfig.as_ref()?)));
    let (mesh, secret) = secrets.next()?;
    let other = secrets.find(|(other, it)| (&other.namespace, *it) != (&mesh.namespace, secret));
    if let Some((other, _)) = other {
        let problem = format!(
            "meshes {} and {} name different Secrets for its kubeconfig",
            mesh.name, other.name
        );
        return Some(Err(ambiguous(&problem)));
    }
    let Some(namespace) = &mesh.namespace else {
        let problem =
            format!("mesh {} has no `metadata.namespace`, so its namespace is unknown", mesh.name);
        return Some(Err(wrong_secret(&secret.name, &problem)));
    };
    let key = SecretKey::new(namespace, secret);
    Some(key.map(|key| ClusterRoute::Secret(Arc::clone(store), key)))
}

/// Returns how a cluster is reached in which an operator runs: only one can be the store's.
fn local_route(meshes: &[Mesh], store: &Arc<Store>) -> Result<ClusterRoute, Fault> {
    let local: BTreeSet<&str> = meshes
        .iter()
        .flat_map(|mesh| &mesh.entries)
        .filter(|entry| entry.local)
        .map(|entry| entry.name.as_str())
        .collect();
    if local.len() == 1 {
        return Ok(ClusterRoute::Store(Arc::clone(store)));
    }
    Err(ambiguous(&format!(
        "several clusters are `local` in a mesh ({}), but --secrets-from can read only one",
        text::list(local)
    )))
}

fn ambiguous(problem: &str) -> Fault {
    Fault::new(&AMBIGUOUS, shown(problem)).context("CONTEXT")
}
