//! Contexts: which cluster each `--context` is for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::text;

/// The contexts that flags name.
pub(super) type Contexts = BTreeMap<ClusterName, String>;

/// The clusters of a command.
#[derive(Clone, Copy)]
pub(crate) struct Addressed<'a> {
    /// The clusters that are contacted.
    pub(crate) read: &'a BTreeSet<&'a ClusterName>,
    /// The clusters that may have a context, including those that are read from files.
    pub(crate) nameable: &'a BTreeSet<&'a ClusterName>,
}

/// Reads `CLUSTER=CONTEXT`, or `CONTEXT` if one cluster is read. A context may contain `=` too:
/// then the text before it is not the name of a cluster of any mesh.
///
/// # Errors
/// A context of a cluster that the command is not about, or two contexts of one cluster.
pub(super) fn read(
    given: &[String],
    Addressed { read, nameable }: Addressed<'_>,
    meshes: &[Mesh],
) -> anyhow::Result<Contexts> {
    let entries = || meshes.iter().flat_map(|mesh| &mesh.entries);
    let is_cluster = |name: &str| entries().any(|it| it.name.as_str() == name);
    let mut contexts = Contexts::new();
    for text in given {
        let named = text.split_once('=').and_then(|(name, context)| {
            let cluster = nameable.iter().find(|it| it.as_str() == name)?;
            Some((*cluster, context))
        });
        let is_of_other = text.split_once('=').is_some_and(|it| is_cluster(it.0));
        let only = read.first().filter(|_| read.len() == 1 && !is_of_other);
        let (cluster, context) = named
            .or_else(|| Some((*only?, text.as_str())))
            .ok_or_else(|| unclear(text, nameable))?;
        if context.is_empty() {
            bail!("--context {} has no context", Quoted(text));
        }
        if contexts.insert(cluster.clone(), context.to_owned()).is_some() {
            bail!("--context names two contexts for `{cluster}`");
        }
    }
    Ok(contexts)
}

fn unclear(text: &str, clusters: &BTreeSet<&ClusterName>) -> anyhow::Error {
    let Some((name, _)) = text.split_once('=') else {
        return anyhow!(
            "--context {} is for one cluster, but {} are read: name one, or write CLUSTER=CONTEXT",
            Quoted(text),
            clusters.len()
        );
    };
    let names = clusters.iter().map(|it| it.as_str());
    if let Some(meant) = nearest(name, names) {
        return anyhow!("--context names {}; did you mean `{meant}`?", Quoted(name));
    }
    let names = text::quoted(clusters);
    anyhow!("--context names {}, but the clusters are {names}", Quoted(name))
}
