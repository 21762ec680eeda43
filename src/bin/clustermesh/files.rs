//! Files: the texts that findings point into, and what of them may be shown.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clustermesh::diagnostic::{Label, Quotes};
use clustermesh::document::{Position, Source};
use clustermesh::place::Place;
use clustermesh::rules::Finding;
use clustermesh::snapshot::SIZE_LIMIT;

use crate::disk::tree_file::{self, MANIFEST_LIMIT};
use crate::disk::{self, Roots};
use crate::quotable;
use crate::secrets::{self, Secrets};

pub(crate) use later_files::LaterFiles;

mod later_files;

/// Texts by what their files are called.
pub(crate) struct ShownFiles {
    read: Vec<KnownFile>,
    /// Files that are read only when they are shown.
    later: LaterFiles,
    /// Files of the rendered tree, which are known only once there is a plan.
    rendered: OnceCell<LaterFiles>,
}

/// A file that was read.
struct KnownFile {
    source: Source,
    /// Whether our first line is enough to show it.
    is_rendered: bool,
    look: OnceCell<FileLook>,
}

/// The parts of a file that may be shown.
enum FileLook {
    /// Nothing but where a problem is.
    Withheld,
    /// All but its secrets.
    Shown {
        secrets: Secrets,
        /// The text without them, if there are any.
        masked: Option<String>,
    },
}

/// A file that is read only when it is shown.
pub(crate) struct LaterFile {
    path: PathBuf,
    roots: Roots,
    form: FileForm,
    is_rendered: bool,
    known: OnceCell<Option<Box<KnownFile>>>,
}

/// The way in which places in a file are found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FileForm {
    /// By bytes, or in JSON.
    Plain,
    /// In manifests, YAML or JSON.
    Manifests,
}

impl KnownFile {
    fn new(source: Source) -> Self {
        Self { source, is_rendered: false, look: OnceCell::new() }
    }

    fn look(&self) -> &FileLook {
        self.look.get_or_init(|| {
            let text = &self.source.text;
            let is_ours = if self.is_rendered {
                quotable::is_rendered(text)
            } else {
                quotable::is_ours(text)
            };
            if !is_ours {
                return FileLook::Withheld;
            }
            let secrets = Secrets::find(text);
            let masked = (!secrets.is_empty()).then(|| secrets.masked(text));
            FileLook::Shown { secrets, masked }
        })
    }
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

    fn read(&self, name: &str) -> Option<KnownFile> {
        let limit = match self.form {
            FileForm::Plain => SIZE_LIMIT,
            FileForm::Manifests => MANIFEST_LIMIT,
        };
        let text: Arc<str> = if self.is_rendered {
            tree_file::read(&self.roots, &self.path).ok()?
        } else {
            disk::read_text(&self.roots, &self.path, limit).ok()?.into()
        };
        let source = match self.form {
            FileForm::Plain => Source::unread(name, text),
            FileForm::Manifests => manifests(name, text),
        };
        Some(KnownFile { is_rendered: self.is_rendered, ..KnownFile::new(source) })
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
            read: read.into_iter().map(KnownFile::new).collect(),
            later: LaterFiles::default(),
            rendered: OnceCell::new(),
        }
    }

    /// Adds a file that was read.
    pub(crate) fn add(&mut self, source: Source) {
        self.read.push(KnownFile::new(source));
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

    /// Returns the files that were read from the start.
    pub(crate) fn read(&self) -> impl Iterator<Item = &Source> {
        self.read.iter().map(|it| &it.source)
    }

    /// Returns only the files that people wrote; a node is identified by its name.
    pub(crate) fn of_people(&self) -> Self {
        Self::new(self.read().cloned().collect())
    }

    /// Returns from where to where a place reaches, the end being the first character after.
    pub(crate) fn positions(&self, place: &Place) -> Option<Range<Position>> {
        let source = &self.get(&place.source)?.source;
        let span = source.locate(place)?;
        Some(source.position(span.start)..source.position(span.end))
    }

    /// Returns a file and its text as it may be shown, in which every span is where it was.
    pub(crate) fn shown(&self, name: &str) -> Option<(&Source, &str)> {
        let known = self.get(name)?;
        match known.look() {
            FileLook::Withheld => None,
            FileLook::Shown { masked, .. } => {
                let text = masked.as_deref().unwrap_or(&known.source.text);
                Some((&known.source, text))
            }
        }
    }

    /// Returns whether nothing of a file may be shown but where a problem is.
    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        let known = self.get(name);
        known.is_some_and(|it| matches!(it.look(), FileLook::Withheld))
    }

    /// Returns findings as they may be shown: only the places in foreign files, and our files
    /// without secrets.
    pub(crate) fn presentable<'f>(&self, findings: &'f [Finding]) -> Cow<'f, [Finding]> {
        if !findings.iter().any(|it| self.changes(it)) {
            return Cow::Borrowed(findings);
        }
        let mut shown: Vec<Finding> = Vec::with_capacity(findings.len());
        for finding in findings {
            let Some(label) = self.withheld_label(finding) else {
                shown.push(self.without_secrets(finding));
                continue;
            };
            let is_harmless = finding.quotes == Quotes::Nothing;
            let mut finding = self.withheld(finding, label);
            // Without their details, several are the same.
            let is_shown = shown.iter().any(|it| {
                (it.rule, &it.message, &it.labels)
                    == (finding.rule, &finding.message, &finding.labels)
            });
            if !is_shown {
                let is_helped = shown.iter().any(|it| it.help == finding.help);
                if is_helped && !is_harmless {
                    finding.help = None;
                }
                shown.push(finding);
            }
        }
        Cow::Owned(shown)
    }

    /// Returns whether a finding is not shown as it is.
    fn changes(&self, finding: &Finding) -> bool {
        let is_sound = |label: &Label| match self.get(&label.place.source).map(KnownFile::look) {
            None => true,
            Some(FileLook::Withheld) => false,
            Some(FileLook::Shown { masked, .. }) => masked.is_none(),
        };
        secrets::has_private_key(finding.message.shown()) || !finding.labels.iter().all(is_sound)
    }

    fn withheld_label<'f>(&self, finding: &'f Finding) -> Option<&'f Label> {
        let mut labels = finding.labels.iter();
        labels.find(|label| self.is_withheld(&label.place.source))
    }

    /// Returns a finding about a file that is not ours: its rule, and where it is.
    fn withheld(&self, finding: &Finding, label: &Label) -> Finding {
        let place = &label.place;
        let mut shown = Place::document(&place.source, 0);
        let source = self.get(&place.source).map(|it| &it.source);
        if let Some(span) = source.and_then(|it| it.locate(place)) {
            shown = shown.bytes(&(span.start..span.start));
        }
        let finding = Finding {
            labels: vec![Label { place: shown, text: String::new() }],
            node: None,
            cause: None,
            ..finding.clone()
        };
        if finding.quotes == Quotes::Nothing {
            return finding;
        }
        Finding {
            message: quotable::WITHHELD.into(),
            group: quotable::WITHHELD.to_owned(),
            help: quotable::remedy(&finding),
            quotes: Quotes::Nothing,
            ..finding
        }
    }

    /// Returns a finding without the secrets at its places.
    fn without_secrets(&self, finding: &Finding) -> Finding {
        let struck = |text: &str| {
            let mut struck = secrets::without_private_keys(text);
            for label in &finding.labels {
                let Some(known) = self.get(&label.place.source) else {
                    continue;
                };
                if let FileLook::Shown { secrets, .. } = known.look()
                    && let Some(span) = known.source.locate(&label.place)
                {
                    struck = secrets.strike(&known.source.text, &span, &struck);
                }
            }
            struck
        };
        let label = |it: &Label| Label { text: struck(&it.text), ..it.clone() };
        Finding {
            message: struck(finding.message.shown()).into(),
            labels: finding.labels.iter().map(label).collect(),
            help: finding.help.as_deref().map(struck),
            ..finding.clone()
        }
    }

    /// Returns the file of a name; what can't be read any more is not shown.
    fn get(&self, name: &str) -> Option<&KnownFile> {
        if let Some(known) = self.read.iter().find(|it| &*it.source.name == name) {
            return Some(known);
        }
        let rendered = || self.rendered.get()?.get(name);
        let later = self.later.get(name).or_else(rendered)?;
        let known = later.known.get_or_init(|| later.read(name).map(Box::new));
        known.as_deref()
    }
}
