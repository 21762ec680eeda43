//! The steps after which nothing is left of a cluster that leaves.

use std::collections::BTreeSet;
use std::path::Path;

use clustermesh::mesh::{Entry, State};
use clustermesh::name::ClusterName;
use clustermesh::template::{self, Format};
use clustermesh::text::{NAMED, list};
use minijinja::context;

use crate::inputs::Inputs;
use crate::printing::numbered;
use crate::{disk, input_file};

/// The steps, each a paragraph.
const STEPS: &str = include_str!("../../../../../templates/leave/next-steps.md");

/// Returns what people do for the clusters that leave, unless there are many.
pub(super) fn steps(inputs: &Inputs) -> anyhow::Result<Vec<String>> {
    let entries = inputs.meshes.iter().flat_map(|it| &it.entries);
    let mut known = BTreeSet::new();
    let leaving = entries.filter(|it| it.state == State::Leaving && known.insert(&it.name));
    let leaving: Vec<&Entry> = leaving.collect();
    let few = leaving.iter().filter(|_| leaving.len() <= NAMED);
    few.map(|it| steps_of(it, inputs)).collect()
}

fn steps_of(entry: &Entry, inputs: &Inputs) -> anyhow::Result<String> {
    let name = &entry.name;
    let meshes: Vec<&str> = inputs
        .meshes
        .iter()
        .filter(|mesh| mesh.entries.iter().any(|it| it.name == *name))
        .map(|it| it.name.as_str())
        .collect();
    let selector = match meshes.as_slice() {
        [mesh] => format!("kilo-clustermesh.io/mesh={mesh}"),
        meshes => format!("'kilo-clustermesh.io/mesh in ({})'", list(meshes)),
    };
    let guard = inputs.guards.iter().find(|it| it.0 == *name).map(|it| input_file::name(&it.1));
    let snapshot = inputs.settings.snapshots.value.join(format!("{name}.json"));
    let values = context! {
        cluster => name.as_str(),
        file => &*entry.place.source,
        has_guards => !inputs.guards.is_empty(),
        kubectl => inputs.settings.config.content.kubectl(name),
        selector,
        objects => objects(name, inputs),
        files => [Some(input_file::name(&snapshot)), guard.clone()],
        guard,
    };
    let steps = template::filled("next-steps", STEPS, Format::Text, values)?;
    Ok(format!("\nNext steps for {name}, which leaves:\n{}", numbered(&steps)))
}

/// Returns the objects of Flux that `init` makes for a cluster, as far as they are there.
fn objects(cluster: &ClusterName, inputs: &Inputs) -> Vec<String> {
    let settings = &inputs.settings;
    let paths = [format!("flux/{cluster}.yaml"), "flux/gitrepository.yaml".to_owned()];
    let is_there = |path: &String| {
        let path = settings.home.join(Path::new(path));
        disk::is_there(&settings.home_roots(), &path).unwrap_or_default()
    };
    paths.into_iter().filter(is_there).collect()
}
