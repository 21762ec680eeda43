//! Contexts: which cluster each `--context` is for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::name::ClusterName;

/// The contexts that flags name.
pub(super) type Contexts = BTreeMap<ClusterName, String>;

/// Reads `CLUSTER=CONTEXT`, or `CONTEXT` if there is one cluster. A context may contain `=` too:
/// then the text before it is not the name of a cluster.
///
/// # Errors
/// A context whose cluster is not read, or not known, or two contexts of one cluster.
pub(super) fn read(
    given: &[String],
    clusters: &BTreeSet<&ClusterName>,
) -> anyhow::Result<Contexts> {
    let mut contexts = Contexts::new();
    for text in given {
        let named = text.split_once('=').and_then(|(name, context)| {
            let cluster = clusters.iter().find(|it| it.as_str() == name)?;
            Some((*cluster, context))
        });
        let only = clusters.first().filter(|_| clusters.len() == 1);
        let (cluster, context) = named
            .or_else(|| Some((*only?, text.as_str())))
            .ok_or_else(|| unclear(text, clusters))?;
        if context.is_empty() {
            bail!("--context {} has no context", Quoted(text));
        }
        if contexts
            .insert(cluster.clone(), context.to_owned())
            .is_some()
        {
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
    let names: Vec<String> = clusters.iter().map(|it| format!("`{it}`")).collect();
    let names = names.join(", ");
    anyhow!(
        "--context names {}, but the clusters are {names}",
        Quoted(name)
    )
}
