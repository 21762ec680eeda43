//! Files: the texts that findings point into, and what of them may be shown.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use clustermesh::document::Source;
use clustermesh::results::shown_source::ShownSource;
use clustermesh::snapshot::SIZE_LIMIT;

use crate::disk::tree::{self, MANIFEST_LIMIT};
use crate::disk::{self, Roots};

pub(crate) use later_files::LaterFiles;

mod later_files;

/// Texts by what their files are called.
#[derive(Default)]
pub(crate) struct ShownFiles {
    read: Vec<ShownSource>,
    /// Files that are read only when they are shown.
    later: LaterFiles,
    /// Files of the rendered tree, which are known only once there is a plan.
    rendered: OnceCell<LaterFiles>,
}

/// A file that is read only when it is shown.
pub(crate) struct LaterFile {
    path: PathBuf,
    roots: Roots,
    form: FileForm,
    is_rendered: bool,
    known: OnceCell<Option<Box<ShownSource>>>,
}

/// The way in which places in a file are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FileForm {
    /// By bytes, or in JSON.
    Plain,
    /// In manifests, YAML or JSON.
    Manifests,
}

impl LaterFile {
    /// Returns a JSON file.
    pub(crate) fn json(path: PathBuf, roots: &Roots) -> Self {
        Self::new(path, roots, FileForm::Plain)
    }

    /// Returns a file of manifests.
    pub(crate) fn manifests(path: PathBuf, roots: &Roots) -> Self {
        Self::new(path, roots, FileForm::Manifests)
    }

    /// Returns it as a file of the rendered tree, which is shown for its first line alone.
    pub(crate) fn of_tree(self) -> Self {
        Self { is_rendered: true, ..self }
    }

    fn new(path: PathBuf, roots: &Roots, form: FileForm) -> Self {
        Self { path, roots: roots.clone(), form, is_rendered: false, known: OnceCell::new() }
    }

    fn read(&self, name: &str) -> Option<ShownSource> {
        let limit = match self.form {
            FileForm::Plain => SIZE_LIMIT,
            FileForm::Manifests => MANIFEST_LIMIT,
        };
        let text: Arc<str> = if self.is_rendered {
            tree::read(&self.roots, &self.path).ok()?
        } else {
            disk::read_text(&self.roots, &self.path, limit).ok()?.into()
        };
        let source = match self.form {
            FileForm::Plain => Source::unread(name, text),
            FileForm::Manifests => manifests(name, text),
        };
        Some(ShownSource::new(source, self.is_rendered))
    }
}

/// Returns manifests in which places can be found.
pub(crate) fn manifests(name: &str, text: impl Into<Arc<str>>) -> Source {
    let text = text.into();
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        return Source::unread(name, text);
    }
    Source::later(name, text)
}

impl ShownFiles {
    /// Returns files that were read.
    pub(crate) fn new(read: Vec<Source>) -> Self {
        Self {
            read: read.into_iter().map(|it| ShownSource::new(it, false)).collect(),
            later: LaterFiles::default(),
            rendered: OnceCell::new(),
        }
    }

    /// Adds a file that was read.
    pub(crate) fn add(&mut self, source: Source) {
        self.read.push(ShownSource::new(source, false));
    }

    /// Adds a file that is read only when it is shown.
    pub(crate) fn add_later(&mut self, name: Arc<str>, later: LaterFile) {
        self.later.add(name, later);
    }

    /// Adds files that are read only when they are shown.
    pub(crate) fn add_all_later(&mut self, later: LaterFiles) {
        self.later.append(later);
    }

    /// Adds files of the rendered tree, once. They are read only when they are shown.
    pub(crate) fn add_rendered(&self, files: impl Iterator<Item = (Arc<str>, LaterFile)>) {
        self.rendered.get_or_init(|| files.collect());
    }

    /// Returns only the files that people wrote; a node is identified by its name.
    pub(crate) fn of_people(&self) -> Self {
        Self::new(self.read().cloned().collect())
    }

    /// Returns the files that were read from the start.
    pub(crate) fn read(&self) -> impl Iterator<Item = &Source> {
        self.read.iter().map(ShownSource::source)
    }

    /// Returns the file of a name; what can't be read any more is not shown.
    pub(crate) fn get(&self, name: &str) -> Option<&ShownSource> {
        if let Some(known) = self.read.iter().find(|it| &*it.source().name == name) {
            return Some(known);
        }
        let rendered = || self.rendered.get()?.get(name);
        let later = self.later.get(name).or_else(rendered)?;
        later.known.get_or_init(|| later.read(name).map(Box::new)).as_deref()
    }
}
