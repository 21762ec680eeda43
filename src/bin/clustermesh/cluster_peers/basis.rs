//! The basis of a result: which meshes, and where their Peers come from.

use std::collections::BTreeSet;

use clustermesh::diagnostic::escaped;
use clustermesh::mesh::State;
use clustermesh::text::{self, count};

use super::Dumps;
use crate::input_file;
use crate::inputs::Inputs;

/// The longest name that is shown, in characters.
const SHOWN: usize = 120;

/// The number of meshes and files that are named.
const LISTED: usize = 4;

/// Describes what a proof is made from, in one line.
pub(crate) fn basis(inputs: &Inputs, dumps: &Dumps) -> String {
    let meshes = inputs.meshes.iter();
    let meshes = meshes.map(|it| format!("{} ({})", it.name, escaped(&it.place.source, SHOWN)));
    let clusters: BTreeSet<_> =
        inputs.meshes.iter().flat_map(|it| &it.entries).map(|it| &it.name).collect();
    let noun = if inputs.meshes.len() == 1 { "mesh" } else { "meshes" };
    let folder = input_file::name(&inputs.settings.rendered.value);
    let entries = inputs.meshes.iter().flat_map(|it| &it.entries);
    let leaving: BTreeSet<_> =
        entries.filter(|it| it.state == State::Leaving).map(|it| &it.name).collect();
    let leave = if leaving.len() == 1 { "leaves" } else { "leave" };
    let of_leaving = if leaving.is_empty() {
        String::new()
    } else {
        format!(", of which {} {leave}", text::first(LISTED, &leaving))
    };
    format!(
        "{noun} {}: {}{of_leaving}, {}",
        text::first(LISTED, meshes),
        count(clusters.len(), "cluster"),
        dumps.origin(&escaped(&folder, SHOWN))
    )
}

impl Dumps {
    /// Describes where the Peers come from.
    fn origin(&self, folder: &str) -> String {
        let files = self.peers.iter().map(|it| {
            let path = input_file::name(&it.path);
            format!("{} from {}", escaped(&it.cluster, SHOWN), escaped(&path, SHOWN))
        });
        let files: Vec<String> = files.collect();
        let others = if self.is_live() {
            "Peers from their API servers".to_owned()
        } else {
            format!("Peers from {folder}")
        };
        if files.is_empty() {
            return others;
        }
        format!("{others}, those of {}", text::first(LISTED, files))
    }
}
