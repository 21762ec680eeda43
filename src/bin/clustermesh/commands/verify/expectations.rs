//! The expectations that a verification checks.

use std::path::PathBuf;

use clustermesh::config::ceilings::Counted;
use clustermesh::expectations::{self, Expectation};
use clustermesh::rules::Finding;
use clustermesh::rules::mesh::beyond_ceiling;

use crate::disk::Roots;
use crate::evidence::Evidence;
use crate::input::{self, InputFile, MESH_LIMIT, Unreadable};

/// Reads the given file, else that of the settings. A file with mistakes has no expectations, and
/// the mistakes are reported.
pub(super) fn read(
    evidence: &mut Evidence,
    given: Option<&PathBuf>,
) -> Result<(Vec<Expectation>, Vec<Finding>), Unreadable> {
    let settled = evidence.settings.expectations.value.as_ref();
    let roots = given.map_or_else(
        || evidence.settings.config.roots.clone(),
        |_| Roots::anywhere(),
    );
    let Some(path) = given.or(settled).cloned() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let source = input::source(&InputFile { path, roots }, MESH_LIMIT)?;
    let read = expectations::read(&source);
    evidence.files.add(source);
    let ceilings = evidence.settings.ceilings;
    let expectations = match read {
        Ok(expectations) => expectations,
        Err(problems) => {
            let problems = evidence.files.presentable(&problems).into_owned();
            return Ok((Vec::new(), problems));
        }
    };
    Ok(
        match ceilings.exceeded(Counted::Expectations, expectations.len()) {
            Some(exceeded) => (Vec::new(), vec![beyond_ceiling(&exceeded)]),
            None => (expectations, Vec::new()),
        },
    )
}
