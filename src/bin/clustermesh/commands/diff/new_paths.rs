//! New paths: those between clusters that a change must not open.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clustermesh::changes::WatchedPaths;
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::mesh::{KnownGroups, Mesh};
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
        let (from, to) = text
            .split_once(':')
            .filter(|(from, to)| !from.is_empty() && !to.is_empty())
            .ok_or("expected FROM:TO, for example `dev:prod`")?;
        Ok(Self { from: from.to_owned(), to: to.to_owned() })
    }
}

/// Returns the clusters between which no path may open. A group has the members that it has in any version: a change cannot
/// remove a cluster from it to open a path.
///
/// # Errors
/// The name of neither a cluster nor a group.
pub(super) fn watched(
    named: &[NamedPaths],
    inputs: &Inputs,
    before: Option<&Inputs>,
) -> anyhow::Result<Vec<WatchedPaths>> {
    let watched = named.iter().map(|it| {
        let versions: Vec<&Inputs> = before.into_iter().chain([inputs]).collect();
        let sides =
            clusters(&it.from, &versions).and_then(|from| Ok((from, clusters(&it.to, &versions)?)));
        let name = format!("{}:{}", it.from, it.to);
        let (from, to) = sides.with_context(|| format!("--fail-on-new-path {name}"))?;
        Ok(WatchedPaths { name, from, to })
    });
    watched.collect()
}

/// Returns the clusters of a name in any version: a cluster, or the members of a group.
fn clusters(name: &str, versions: &[&Inputs]) -> anyhow::Result<BTreeSet<ClusterName>> {
    let meshes = versions.iter().flat_map(|it| &it.meshes);
    let entries = meshes.flat_map(Mesh::all_entries);
    let known: BTreeSet<&ClusterName> = entries.map(|it| &it.name).collect();
    let groups: Vec<KnownGroups> = versions.iter().map(|it| it.groups().0).collect();
    let members = groups.iter().filter_map(|it| it.get(name));
    let members = members.flat_map(|it| &it.clusters);
    let own = known.iter().copied().filter(|it| it.as_str() == name);
    let clusters: BTreeSet<ClusterName> = members.chain(own).cloned().collect();
    if clusters.is_empty() {
        let names = known.iter().map(|it| it.as_str());
        let names = names.chain(groups.iter().flat_map(KnownGroups::names));
        let meant = nearest(name, names).map(|it| format!("; did you mean {}?", Quoted(it)));
        bail!(
            "no mesh has a cluster {0}, and there is no group {0}{1}",
            Quoted(name),
            meant.unwrap_or_default()
        );
    }
    Ok(clusters)
}
