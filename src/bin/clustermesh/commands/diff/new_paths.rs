//! New paths: those between clusters that a change must not open.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clustermesh::changes::WatchedPaths;
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::name::ClusterName;

use crate::inputs::Inputs;

/// The names of clusters or groups, from which and to which no path may open.
#[derive(Clone, Debug)]
pub(super) struct NamedPaths {
    from: String,
    to: String,
}

impl FromStr for NamedPaths {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sides = text.split_once(':');
        let sides = sides.filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let (from, to) = sides.ok_or("expected FROM:TO, for example `dev:prod`")?;
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}

/// Returns the clusters between which no path may open.
///
/// # Errors
/// The name of neither a cluster nor a group.
pub(super) fn watched(named: &[NamedPaths], inputs: &Inputs) -> anyhow::Result<Vec<WatchedPaths>> {
    let watched = named.iter().map(|it| {
        let clusters = |name| clusters(name, inputs);
        let sides = clusters(&it.from).and_then(|from| Ok((from, clusters(&it.to)?)));
        let (from, to) =
            sides.with_context(|| format!("--fail-on-new-path {}:{}", it.from, it.to))?;
        Ok(WatchedPaths { from, to })
    });
    watched.collect()
}

/// Returns the clusters of a name: a cluster, or the members of a group.
fn clusters(name: &str, inputs: &Inputs) -> anyhow::Result<BTreeSet<ClusterName>> {
    let entries = inputs.meshes.iter().flat_map(|it| &it.entries);
    let known: BTreeSet<&ClusterName> = entries.map(|it| &it.name).collect();
    let (groups, _) = inputs.groups();
    let members = groups.get(name).into_iter().flat_map(|it| &it.clusters);
    let own = known.iter().copied().filter(|it| it.as_str() == name);
    let clusters: BTreeSet<ClusterName> = members.chain(own).cloned().collect();
    if clusters.is_empty() {
        let names = known.iter().map(|it| it.as_str()).chain(groups.names());
        let meant = nearest(name, names).map(|it| format!("; did you mean {}?", Quoted(it)));
        bail!(
            "no mesh has a cluster {0}, and there is no group {0}{1}",
            Quoted(name),
            meant.unwrap_or_default()
        );
    }
    Ok(clusters)
}
