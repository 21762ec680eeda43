//! The names of files that may have controls.

use std::ffi::OsStr;
use std::path::Path;

use clustermesh::mesh::ControlKind;

/// Returns the control whose name is the same but for case and plural.
pub(in crate::inputs) fn alike(name: &str) -> Option<ControlKind> {
    match &*name.to_lowercase() {
        "clustermesh" => Some(ControlKind::Config),
        "expectation" | "expectations" => Some(ControlKind::Expectations),
        "policy" | "policies" | "policys" => Some(ControlKind::Policy),
        _ => None,
    }
}

/// Returns the control whose name is that of a path without its ending.
pub(super) fn alike_stem(path: &Path) -> Option<ControlKind> {
    alike(&path.file_stem().unwrap_or_default().to_string_lossy())
}

/// Returns the name of a path without any ending and without the marks of backups, in lower case, in each way in which it
/// can be split: `A.b.yaml~` is `a`, `a.b` or `a.b.yaml`.
pub(super) fn stems(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.trim_matches(['#', '~']);
    let ends = name.match_indices('.').map(|it| it.0).chain([name.len()]);
    ends.filter_map(|end| name.get(..end)).map(str::to_owned).collect()
}

/// Returns whether the ending of a name is that of YAML or JSON.
pub(super) fn is_data(path: &Path) -> bool {
    path.extension().is_some_and(is_data_ending)
}

/// Returns whether the name of a path has such an ending, which another one may follow, as in `a.yaml.j2`.
pub(super) fn has_data_ending(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches('~').split('.').skip(1).any(|it| is_data_ending(OsStr::new(it)))
}

fn is_data_ending(ending: &OsStr) -> bool {
    ["yaml", "yml", "json"].iter().any(|it| ending.eq_ignore_ascii_case(it))
}
