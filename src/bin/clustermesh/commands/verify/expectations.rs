//! The expectations that a verification checks.

use std::path::PathBuf;

use clustermesh::config::ceilings::Counted;
use clustermesh::expectations::{self, Expectations};
use clustermesh::mesh::or_cluster;
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::Finding;
use clustermesh::rules::mesh::beyond_ceiling;

use crate::disk::Roots;
use crate::failure::CommandResult;
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::inputs::Inputs;

/// Reads the given file, else that of the settings. A file with mistakes has no expectations, and
/// the mistakes are reported. The groups are those of the inputs.
pub(crate) fn read(
    inputs: &mut Inputs,
    given: Option<&PathBuf>,
) -> CommandResult<(Expectations, Vec<Finding>)> {
    let settled = inputs.settings.expectations.value.as_ref();
    let roots = given.map_or_else(|| inputs.settings.home_roots(), |_| Roots::anywhere());
    let Some(path) = given.or(settled).cloned() else {
        return Ok((Expectations::default(), Vec::new()));
    };
    let source = input_file::source(&InputFile { path, roots }, MESH_LIMIT)?;
    let (groups, _) = inputs.groups();
    let read = expectations::read(&source, &groups);
    inputs.files.add(source);
    let ceilings = inputs.settings.ceilings;
    let expectations = match read {
        Ok(expectations) => expectations,
        Err(mut problems) => {
            // Their groups may be in a mesh that was not read as it is meant.
            problems.retain(|it| inputs.is_whole || !it.is_shadow);
            let problems = problems.into_iter().map(|it| or_cluster(it, &inputs.named));
            let problems: Vec<Finding> = problems.collect();
            let problems = inputs.files.presentable(&problems).into_owned();
            return Ok((Expectations::default(), problems));
        }
    };
    let exceptions = expectations.denied.iter().flat_map(|it| &it.exceptions);
    let count = expectations.expectations.len() + exceptions.count();
    Ok(match ceilings.exceeded(Counted::Expectations, count) {
        Some(exceeded) => (Expectations::default(), vec![beyond_ceiling(&exceeded)]),
        None => (expectations, Vec::new()),
    })
}
