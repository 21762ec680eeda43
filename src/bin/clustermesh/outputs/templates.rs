//! Templates of outputs: their texts, and the help for one that cannot be read.

use std::ffi::OsStr;
use std::path::{Component, Path};

use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::text::shell_word;

use super::TEMPLATE_LIMIT;
use crate::disk::{self, Roots};
use crate::input_file;
use crate::settings::Settings;

/// Returns what helps if the template at a path cannot be read.
pub(super) fn of_unread(settings: &Settings, path: &str) -> String {
    let file = settings.config.join(path);
    if settings.is_committed(&file) {
        return format!(
            "run `git checkout HEAD -- {}` if the template was deleted by mistake; otherwise remove this item from \
             `outputs`, and `clustermesh render` removes the files that it wrote",
            shell_word(&input_file::name(&file))
        );
    }
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = disk::entries(&settings.config.roots, folder).unwrap_or_default();
    let names: Vec<String> = names.iter().map(|it| it.0.to_string_lossy().into_owned()).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&name, names.iter().map(String::as_str)) {
        Some(meant) => format!(
            "did you mean {}?",
            Quoted(&Path::new(path).with_file_name(meant).to_string_lossy())
        ),
        None => "correct the path in `template`, or remove this item from `outputs`".to_owned(),
    }
}

/// Returns the text of a template that is named relative to a folder.
pub(crate) fn read_template(roots: &Roots, base: &Path, path: &str) -> Result<String, String> {
    let file = base.join(path);
    // An error must not reveal whether a file outside exists.
    let text = disk::read_text(roots, &file, TEMPLATE_LIMIT);
    if has_hidden(Path::new(path)) || text.is_ok() && is_hidden(base, &file) {
        return Err("a template must not be a hidden file or in a hidden folder".to_owned());
    }
    text.map_err(|error| format!("{:#}", error.root_cause()))
}

/// Returns whether a file, links included, is hidden from a folder, which may be hidden itself.
pub(super) fn is_hidden(base: &Path, file: &Path) -> bool {
    let here = Path::new(".");
    let base = disk::canonical(if base == Path::new("") { here } else { base });
    let file = disk::canonical(file);
    let mut names = file.components();
    let common = base.components().zip(file.components());
    for _ in common.take_while(|(one, other)| one == other) {
        names.next();
    }
    has_hidden(names.as_path())
}

fn has_hidden(path: &Path) -> bool {
    let is_hidden = |name: &OsStr| name.to_string_lossy().starts_with('.');
    path.components().any(|it| matches!(it, Component::Normal(name) if is_hidden(name)))
}
