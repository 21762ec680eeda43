//! Files: the texts that findings point into.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clustermesh::document::{Position, Source};
use clustermesh::place::Place;
use clustermesh::snapshot::SIZE_LIMIT;

use crate::disk;
use crate::rendered::MANIFEST_LIMIT;

/// Texts by what their files are called.
pub(crate) struct Files {
    read: Vec<Source>,
    /// Files that are read when somebody wants to see them.
    later: BTreeMap<Arc<str>, Later>,
    /// Files of the rendered tree, which are known only once there is a plan.
    rendered: OnceCell<BTreeMap<Arc<str>, Later>>,
}

struct Later {
    path: PathBuf,
    form: Form,
    source: OnceCell<Option<Source>>,
}

/// How places in a file are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// By bytes, or in JSON.
    Plain,
    /// In manifests, YAML or JSON.
    Manifests,
}

impl Later {
    fn new(path: PathBuf, form: Form) -> Self {
        Self {
            path,
            form,
            source: OnceCell::new(),
        }
    }

    fn read(&self, name: &str) -> Option<Source> {
        match self.form {
            Form::Plain => {
                let text = disk::read_text(&self.path, SIZE_LIMIT).ok()?;
                Some(Source::unread(name, text))
            }
            Form::Manifests => {
                let text = disk::read_text(&self.path, MANIFEST_LIMIT).ok()?;
                Some(manifests(name, text))
            }
        }
    }
}

/// Returns manifests in which places can be found.
pub(crate) fn manifests(name: &str, text: String) -> Source {
    if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        return Source::unread(name, text);
    }
    Source::parse(name, text).unwrap_or_else(|broken| broken.source)
}

impl Files {
    /// Returns files that were read.
    pub(crate) fn new(read: Vec<Source>) -> Self {
        Self {
            read,
            later: BTreeMap::new(),
            rendered: OnceCell::new(),
        }
    }

    /// Adds a file that was read.
    pub(crate) fn add(&mut self, source: Source) {
        self.read.push(source);
    }

    /// Adds a JSON file that is read when somebody wants to see it.
    pub(crate) fn add_later(&mut self, name: Arc<str>, path: PathBuf) {
        self.later.insert(name, Later::new(path, Form::Plain));
    }

    /// Adds a file of manifests that is read when somebody wants to see it.
    pub(crate) fn add_manifests(&mut self, name: Arc<str>, path: PathBuf) {
        self.later.insert(name, Later::new(path, Form::Manifests));
    }

    /// Adds files of the rendered tree, once, which are read when somebody wants to see them.
    pub(crate) fn add_rendered(&self, files: impl Iterator<Item = (Arc<str>, PathBuf)>) {
        self.rendered.get_or_init(|| {
            let files = files.map(|(name, path)| (name, Later::new(path, Form::Plain)));
            files.collect()
        });
    }

    /// Returns the files that were read from the start.
    pub(crate) fn read(&self) -> &[Source] {
        &self.read
    }

    /// Returns only the files that people wrote: a node is told by its name.
    pub(crate) fn of_people(&self) -> Self {
        Self::new(self.read.clone())
    }

    /// Returns the file of a name; what can't be read any more is not shown.
    pub(crate) fn get(&self, name: &str) -> Option<&Source> {
        if let Some(source) = self.read.iter().find(|it| &*it.name == name) {
            return Some(source);
        }
        let rendered = || self.rendered.get()?.get(name);
        let later = self.later.get(name).or_else(rendered)?;
        later.source.get_or_init(|| later.read(name)).as_ref()
    }

    /// Returns from where to where a place reaches, the end being the first character after.
    pub(crate) fn positions(&self, place: &Place) -> Option<Range<Position>> {
        let source = self.get(&place.source)?;
        let span = source.locate(place)?;
        Some(source.position(span.start)..source.position(span.end))
    }
}
