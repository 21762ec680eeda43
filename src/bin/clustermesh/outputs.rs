//! Outputs beside the rendered tree: their wanted content, and how those on disk differ.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clustermesh::fleet::Fleet;
use clustermesh::manifest::PeerSetTexts;
use clustermesh::mirror::Mirrors;
use clustermesh::outputs::{
    self, Digest, FleetFacts, Record, TemplateTexts, UnreadTemplate, wrong_output,
};
use clustermesh::plan::Plan;
use clustermesh::rules::Finding;
use clustermesh::rules::capacity::target_load;
use clustermesh::text::{self, CONFLICT, count, listed};

use crate::disk::swap::Beside;
use crate::disk::tree::RECORD;
use crate::disk::{self, Roots};
use crate::input_file;
use crate::settings::Settings;
use crate::template_process::TemplateProcess;

mod mirrors;
mod templates;

pub(crate) use templates::read_template;
use templates::{is_hidden, of_unread};

/// The largest template that is read, in bytes.
pub(crate) const TEMPLATE_LIMIT: u64 = 1 << 20;

/// The largest record and the largest output that are read, in bytes.
const LIMIT: u64 = 16 << 20;

/// The differences between the outputs on disk and the wanted ones, each as a path from the working
/// folder.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// Wanted, but not there.
    pub(crate) missing: Vec<PathBuf>,
    /// Wanted, written by us, and different.
    pub(crate) changed: Vec<PathBuf>,
    /// Written by us, and no longer wanted.
    pub(crate) stale: Vec<PathBuf>,
    /// The changes that a render would make.
    pub(crate) beside: Beside,
    /// Whether the config lists no outputs any more.
    is_given_up: bool,
    /// The remedy for clusters whose folder of Services is removed.
    unserved: Vec<String>,
}

impl Outputs {
    /// Returns whether a render would change none.
    pub(crate) fn are_current(&self) -> bool {
        [&self.missing, &self.changed, &self.stale].into_iter().all(Vec::is_empty)
    }

    /// Returns what a render did, if it did anything.
    pub(crate) fn summary(&self) -> Option<String> {
        let written = self.missing.len() + self.changed.len();
        let written = (0 < written).then(|| format!("{written} written"));
        let stale = self.stale.iter().map(|it| input_file::name(it));
        let removed = (!self.stale.is_empty()).then(|| format!("removed {}", listed(stale)));
        let parts: Vec<String> = written.into_iter().chain(removed).collect();
        (!parts.is_empty()).then(|| format!("outputs: {}", parts.join(", ")))
    }

    /// Returns the reason for which all are removed, if they are, and what a removal leaves undone.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let names = || listed(self.stale.iter().map(|it| input_file::name(it)));
        let given_up = (self.is_given_up && !self.stale.is_empty()).then(|| {
            let names = names();
            format!("the config lists no `outputs`, so a render removes {names}")
        });
        given_up.into_iter().chain(self.unserved.iter().cloned())
    }
}

/// Returns the facts that the values of templates are made of.
pub(crate) fn facts<'a>(
    fleet: &'a Fleet,
    plan: &'a Plan,
    texts: &PeerSetTexts,
    settings: &Settings,
) -> FleetFacts<'a> {
    let config = &settings.config.content;
    let loads = target_load::loads(fleet, plan, texts);
    let rendered = own_tree(settings);
    FleetFacts::new(fleet, plan, &loads, &config.limits.capacity, rendered)
}

/// Compares the outputs on disk with the wanted ones: the Services that clusters get, and what is rendered from templates for
/// a plan whose sets of Peers have these texts.
///
/// # Errors
/// Mistakes in templates and paths, and files in the way.
pub(crate) fn compare(
    (fleet, plan, mirrored): (&Fleet, &Plan, &Mirrors),
    peer_texts: &PeerSetTexts,
    settings: &Settings,
) -> Result<Outputs, Vec<Finding>> {
    let config = &settings.config;
    if !is_own_tree(settings) {
        return Ok(Outputs::default());
    }
    let record = read_record(settings).map_err(|finding| vec![*finding])?;
    let wanted = &config.content.outputs;
    let mirrored = mirrors::texts(mirrored, settings)?;
    if wanted.is_empty() && record.is_none() && mirrored.is_empty() {
        return Ok(Outputs::default());
    }
    let is_mirror = |path: &str| Path::new(path).starts_with(mirrors::folder(settings));
    let has_outputs = record.iter().flat_map(|it| it.0.keys()).any(|it| !is_mirror(it));
    if let (None, Some(record), true) = (&config.path.value, &record, has_outputs) {
        return Err(vec![without_config(settings, record)]);
    }
    let mut texts = if wanted.is_empty() {
        TemplateTexts::new()
    } else {
        filled(&facts(fleet, plan, peer_texts, settings), settings)?
    };
    if let Some(path) = texts.keys().find(|it| is_mirror(it)) {
        let message = format!("`{path}` is in the folder of the Services of other clusters");
        return Err(vec![wrong_output(message).help("give the output another path")]);
    }
    texts.extend(mirrored);
    let mut survey = OutputSurvey {
        settings,
        reserved: reserved(settings),
        taken: BTreeSet::new(),
        outputs: Outputs { is_given_up: wanted.is_empty() && has_outputs, ..Outputs::default() },
        findings: Vec::new(),
    };
    let record = record.unwrap_or_default();
    for (path, text) in &texts {
        survey.wanted(path, text, record.0.get(path));
    }
    for (path, digest) in record.0.iter().filter(|(path, _)| !texts.contains_key(*path)) {
        survey.unwanted(path, digest);
    }
    let is_known = |path: &str| texts.contains_key(path) || record.0.contains_key(path);
    survey.findings.extend(mirrors::strays(settings, is_known));
    survey.finish(&texts)
}

/// Fills in the templates of the config.
fn filled(facts: &FleetFacts, settings: &Settings) -> Result<TemplateTexts, Vec<Finding>> {
    let config = &settings.config;
    let mut process = TemplateProcess::new(facts);
    let base = config.join("");
    let load = |path: &str| read_template(&config.roots, &base, path);
    let load_whole = |path: &str| {
        load(path).map_err(|reason| UnreadTemplate { reason, help: of_unread(settings, path) })
    };
    outputs::fill(&config.content.outputs, facts, load_whole, |order| {
        process.fill(order, |path| load(path).ok())
    })
}

/// Reports that the config is gone, and not only its list of outputs.
fn without_config(settings: &Settings, record: &Record) -> Finding {
    let message = format!(
        "{} lists {} of `outputs`, but there is no config",
        input_file::name(&settings.rendered.value.join(RECORD)),
        count(record.0.len(), "file")
    );
    let restored = if settings.is_committed(Path::new("clustermesh.yaml")) {
        "run `git checkout HEAD -- clustermesh.yaml`"
    } else {
        "write the config again"
    };
    wrong_output(message).help(format!(
        "{restored}; to delete these files, write a config without `outputs`, and run `clustermesh render`"
    ))
}

/// Returns whether the rendered tree is that of the config. Outputs belong to it, and not to one that a
/// person has named for this run.
fn is_own_tree(settings: &Settings) -> bool {
    let own = settings.config.join(own_tree(settings));
    disk::canonical(&own) == disk::canonical(&settings.rendered.value)
}

fn own_tree(settings: &Settings) -> &str {
    let rendered = settings.config.content.rendered.as_deref();
    rendered.unwrap_or("rendered")
}

/// Returns the paths of the outputs that the last render has written; none if that is unknown.
pub(crate) fn recorded(settings: &Settings) -> Vec<PathBuf> {
    let record = read_record(settings).ok().flatten();
    let paths = record.unwrap_or_default().0.into_keys();
    paths.map(|it| settings.config.join(&it)).collect()
}

/// Reads what the last render has written; none if it wrote no outputs.
fn read_record(settings: &Settings) -> Result<Option<Record>, Box<Finding>> {
    let path = settings.rendered.value.join(RECORD);
    let roots = settings.roots_of(&settings.rendered);
    if matches!(disk::is_there(&roots, &path), Ok(false)) {
        return Ok(None);
    }
    let name = input_file::name(&path);
    let read = disk::read_text(&roots, &path, LIMIT)
        .map_err(|error| format!("{:#}", error.root_cause()))
        .and_then(|text| {
            Record::read(&text).map_err(|line| match text::conflict(&text) {
                Some(_) => CONFLICT.to_owned(),
                None => format!("line {line} is invalid"),
            })
        });
    read.map(Some).map_err(|reason| {
        let message = format!("`{name}` cannot be read: {reason}");
        let help = "restore it from git, or delete it together with the outputs that it lists, and run `clustermesh render`";
        Box::new(wrong_output(message).help(help))
    })
}

/// Returns the foreign files and folders.
fn reserved(settings: &Settings) -> Vec<(PathBuf, &'static str)> {
    let config = &settings.config;
    let mut paths: Vec<(PathBuf, &'static str)> = Vec::new();
    let mut reserve = |path: &Path, what| {
        paths.push((path.to_owned(), what));
        paths.push((disk::canonical(path), what));
    };
    if let Some(path) = &config.path.value {
        reserve(path, "the config");
    }
    for path in &settings.meshes.value {
        reserve(path, "a mesh");
    }
    reserve(&settings.snapshots.value, "the folder of the snapshots");
    reserve(&settings.rendered.value, "the rendered tree");
    if let Some(path) = &settings.expectations.value {
        reserve(path, "the expectations");
    }
    if let Some(path) = &settings.policies.value {
        reserve(path, "the policies");
    }
    for output in &config.content.outputs {
        reserve(&config.join(&output.template), "a template");
    }
    paths
}

/// A comparison in progress.
struct OutputSurvey<'a> {
    settings: &'a Settings,
    reserved: Vec<(PathBuf, &'static str)>,
    /// The owners of paths of outputs that are reported.
    taken: BTreeSet<String>,
    outputs: Outputs,
    findings: Vec<Finding>,
}

/// A file with the path of an output.
struct FoundOutput {
    digest: Digest,
    is_conflicted: bool,
}

impl OutputSurvey<'_> {
    fn wanted(&mut self, path: &str, text: &Arc<str>, recorded: Option<&Digest>) {
        let file = self.settings.config.join(path);
        if let Some(what) = self.owner(&file) {
            let message =
                format!("`{}` cannot be an output because it is {what}", input_file::name(&file));
            let help = self.help(&file, "move it to another folder");
            // One output may have a file for each cluster.
            if self.taken.insert(what) {
                self.findings.push(wrong_output(message).help(help));
            }
            return;
        }
        match self.found(&file) {
            Ok(None) => self.outputs.missing.push(file.clone()),
            Ok(Some(found)) if found.digest == Digest::new(text.as_bytes()) => return,
            Ok(Some(found)) if Some(&found.digest) == recorded => {
                self.outputs.changed.push(file.clone());
            }
            Ok(Some(found)) if recorded.is_some() => {
                return self.edited(&file, &found);
            }
            Ok(Some(_)) => {
                let message = format!(
                    "`{}` already exists, and `render` did not write it",
                    input_file::name(&file)
                );
                let help = "move it, or delete it to let the output replace it";
                self.findings.push(wrong_output(message).help(help));
                return;
            }
            Err(reason) => return self.unread(&file, &reason),
        }
        self.outputs.beside.write.push((file, Arc::clone(text)));
    }

    fn unwanted(&mut self, path: &str, recorded: &Digest) {
        let file = self.settings.config.join(path);
        if self.owner(&file).is_some() {
            return;
        }
        match self.found(&file) {
            Ok(None) => self.outputs.beside.gone.push(file),
            Ok(Some(found)) if found.digest == *recorded => {
                let note = mirrors::unserved(self.settings, path);
                self.outputs.unserved.extend(note);
                self.outputs.stale.push(file.clone());
                self.outputs.beside.remove.push(file);
            }
            Ok(Some(found)) => self.edited(&file, &found),
            Err(reason) => self.unread(&file, &reason),
        }
    }

    /// Returns what a file belongs to, if it is not free.
    fn owner(&self, file: &Path) -> Option<String> {
        let canonical = disk::canonical(file);
        let is_below = |folder: &Path| file.starts_with(folder) || canonical.starts_with(folder);
        let (path, what) = self.reserved.iter().find(|(path, _)| is_below(path))?;
        let is_inside = path != file && *path != canonical;
        Some(if is_inside { format!("in {what}") } else { (*what).to_owned() })
    }

    /// Returns the file with the path of an output, if it is there.
    fn found(&self, file: &Path) -> Result<Option<FoundOutput>, String> {
        let roots = &self.settings.config.roots;
        let reason = |error: anyhow::Error| format!("{:#}", error.root_cause());
        disk::check_output(roots, file).map_err(reason)?;
        let file_type = disk::type_of(roots, file).map_err(reason)?;
        // An error must not reveal where a link leads.
        if let Some(file_type) = file_type.filter(|file_type| !file_type.is_file()) {
            return Err(format!("{} exists in its place", disk::kind(file_type)));
        }
        if is_hidden(&self.settings.config.join(""), file) {
            return Err("a link leads to a hidden folder".to_owned());
        }
        if file_type.is_none() {
            return Ok(None);
        }
        let text = disk::read_text(roots, file, LIMIT).map_err(reason)?;
        Ok(Some(FoundOutput {
            digest: Digest::new(text.as_bytes()),
            is_conflicted: text::conflict(&text).is_some(),
        }))
    }

    fn edited(&mut self, file: &Path, found: &FoundOutput) {
        let name = input_file::name(file);
        let (message, help) = if found.is_conflicted {
            let help = "delete the file, then run `clustermesh render`";
            (format!("`{name}` has {CONFLICT}"), help)
        } else {
            let help = if self.is_mirror(file) {
                "to keep the change, make it in `services` of the mesh; then delete the file and run `clustermesh render`"
            } else {
                "to keep the change, make it in its template; then delete the file and run `clustermesh render`"
            };
            (format!("`{name}` was changed since `render` wrote it"), help)
        };
        self.findings.push(wrong_output(message).help(help));
    }

    fn unread(&mut self, file: &Path, reason: &str) {
        let message = format!("`{}` cannot be an output: {reason}", input_file::name(file));
        let help = self
            .help(file, "delete it, or the link that leads to it, then run `clustermesh render`");
        self.findings.push(wrong_output(message).help(help));
    }

    /// Returns the help for a path that is taken. A person cannot choose another one for a Service.
    fn help(&self, file: &Path, of_mirror: &'static str) -> &'static str {
        if self.is_mirror(file) { of_mirror } else { "give the output another path" }
    }

    /// Returns whether a file is in the folder of the Services of other clusters.
    fn is_mirror(&self, file: &Path) -> bool {
        let folder = mirrors::folder(self.settings);
        file.starts_with(self.settings.config.join(&folder))
    }

    fn finish(mut self, texts: &TemplateTexts) -> Result<Outputs, Vec<Finding>> {
        if !self.findings.is_empty() {
            return Err(self.findings);
        }
        let path = self.settings.rendered.value.join(RECORD);
        let beside = &mut self.outputs.beside;
        if texts.is_empty() {
            let is_absent = matches!(disk::is_there(&Roots::anywhere(), &path), Ok(false));
            beside.remove.extend((!is_absent).then_some(path));
            return Ok(self.outputs);
        }
        let text = Record::new(texts).text();
        let roots = self.settings.roots_of(&self.settings.rendered);
        let is_current = disk::has(&roots, &path, text.as_bytes()).unwrap_or(false);
        if !is_current {
            if beside.write.is_empty() && beside.remove.is_empty() {
                self.outputs.changed.push(path.clone());
            }
            // Last, so that a later run after a kill finds its files.
            beside.write.push((path, Arc::from(text)));
        }
        Ok(self.outputs)
    }
}
