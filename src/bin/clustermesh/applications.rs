//! Applications of Argo CD in the repository, and the order in which they change the Peers of each cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clustermesh::engine::{ArgoApplication, StepOrder};
use clustermesh::name::ClusterName;

use crate::settings::Settings;
use crate::{disk, input_file, outputs};

/// The folder for the objects of Argo CD, as `init --gitops argocd` makes it.
const FOLDER: &str = "argocd";

/// The largest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// Returns the order in which Argo CD changes the Peers of each cluster, if an Application delivers it. If several do,
/// in different orders, there is no order.
pub(crate) fn orders<'c>(
    settings: &Settings,
    clusters: impl IntoIterator<Item = &'c ClusterName>,
) -> BTreeMap<ClusterName, StepOrder> {
    let tree = settings.rendered.value.file_name();
    let tree = tree.unwrap_or_default().to_string_lossy();
    let applications = applications(settings);
    let order = |cluster: &ClusterName| {
        applications
            .iter()
            .filter(|it| it.delivers(&tree, cluster.as_str()))
            .map(|it| it.order)
            .reduce(either)
    };
    let orders = clusters.into_iter();
    orders.filter_map(|it| Some((it.clone(), order(it)?))).collect()
}

/// Adds the orders of another version of the files: both may be in effect.
pub(crate) fn add_others(
    orders: &mut BTreeMap<ClusterName, StepOrder>,
    others: &BTreeMap<ClusterName, StepOrder>,
) {
    for (cluster, order) in orders {
        let other = others.get(cluster).copied();
        *order = other.map_or(*order, |other| either(*order, other));
    }
}

/// Returns the order of which only is known that it is one of two.
fn either(one: StepOrder, other: StepOrder) -> StepOrder {
    if one == other { one } else { StepOrder::Mixed }
}

/// Reads the files of the folder, beside the config and at the top of the repository, and the outputs of the last
/// render. One that cannot be read shows nothing, so for its clusters the default of Argo CD is assumed.
fn applications(settings: &Settings) -> Vec<ArgoApplication> {
    let roots = &settings.config.roots;
    let top = settings.surroundings.repository();
    let folders = [Some(settings.config.join("")), top].into_iter().flatten();
    let files: Vec<PathBuf> = folders
        .map(|it| it.join(FOLDER))
        .filter(|it| disk::is_folder(roots, it).unwrap_or(false))
        .flat_map(|it| disk::files_in(roots, &it, &["yaml", "yml"]).unwrap_or_default())
        .chain(outputs::recorded(settings))
        .collect();
    files
        .iter()
        .filter_map(|path| Some((path, disk::read_text(roots, path, LIMIT).ok()?)))
        .flat_map(|(path, text)| ArgoApplication::all(&input_file::name(path), &text))
        .collect()
}
