//! Guards that the repository records: which Peers each cluster accepts.

use super::Controls;
use super::limit::{Limit, Passing};
use crate::place::Place;
use crate::rules::gitops::GuardFile;

/// Returns the guard of each cluster in the meshes of a version, or that it has none.
pub(super) fn limits<'c>(controls: &Controls<'c>) -> Vec<Limit<'c>> {
    let clusters = controls.members().into_iter();
    let limits = clusters.map(|cluster| {
        let file = controls.guards.iter().find(|it| it.cluster == *cluster);
        let recorded = file.and_then(GuardFile::guard);
        let place = file.zip(recorded).map(|(file, it)| Place::document(&file.source, it.policy));
        let passing = Passing::Peers(recorded.map(|it| &it.guard));
        let limit = Limit::new(format!("guard of {cluster}"), [""; 0], place, passing);
        Limit {
            kind: "guard".to_owned(),
            cluster: Some(cluster),
            written: limit.written.filter(|_| recorded.is_some()),
            ..limit
        }
    });
    limits.collect()
}
