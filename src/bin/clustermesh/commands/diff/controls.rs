//! Controls of both versions: those of the commit judge the new Peers.

use std::path::Path;

use anyhow::anyhow;
use clustermesh::agent::fabric::{Fabric, NodeRef};
use clustermesh::config::Config;
use clustermesh::controls::{Controls, JudgedChange};
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::expectations::Expectations;
use clustermesh::fleet::Fleet;
use clustermesh::mesh::Mesh;
use clustermesh::place::Place;
use clustermesh::policy::Policy;
use clustermesh::proof::old_controls::{self, JudgedVersion};
use clustermesh::rules::Finding;
use clustermesh::rules::gitops::GuardFile;
use clustermesh::rules::mesh;

use crate::commands::verify::{self, expectations};
use crate::failure::CommandFailure;
use crate::files::ShownFiles;
use crate::inputs::Inputs;
use crate::settings::Settings;
use crate::{clock, disk, guard_files, input_file};

/// The longest reason that is shown, in characters.
const SHOWN: usize = 1000;

/// The controls of a version, apart from its snapshots.
pub(super) struct ReadControls {
    meshes: Vec<Mesh>,
    policies: Vec<Policy>,
    expectations: Expectations,
    config: Config,
    config_place: Option<Place>,
    paths: Vec<(&'static str, String)>,
    guards: Vec<GuardFile>,
    /// The mistakes that keep controls from being read.
    unread: Vec<Finding>,
    /// The files, if nothing else has them.
    pub(super) files: Option<ShownFiles>,
}

/// The controls of the commit and of the working folder.
pub(super) struct BothControls {
    old: ReadControls,
    new: ReadControls,
}

impl BothControls {
    /// Reads the new controls, if there are old ones.
    pub(super) fn read(old: Option<ReadControls>, inputs: &mut Inputs) -> Option<Self> {
        old.map(|old| Self { old, new: ReadControls::read(inputs) })
    }

    /// Returns the files of the old controls, if nothing else has them.
    pub(super) fn old_files(&self) -> Option<&ShownFiles> {
        self.old.files.as_ref()
    }

    /// Returns what a mistake in the new controls means.
    pub(super) fn note(&self) -> Option<String> {
        let note = "new controls contain errors and count as removed; `clustermesh validate` and `clustermesh verify` \
                    list them";
        (!self.new.unread.is_empty()).then(|| note.to_owned())
    }

    /// Compares the controls, and judges the new Peers by the old ones. Without the old Peers, it is not known what the old
    /// controls refuse.
    pub(super) fn judge(
        &self,
        versions: Option<[(&Fabric, &Fleet); 2]>,
        most: u64,
    ) -> JudgedChange<'_> {
        let (old, new) = (self.old.controls(), self.new.controls());
        let controls = old.of_paths(clock::today());
        let mut judged = JudgedChange {
            changes: old.changes(&new, versions.map(|it| (it[0].0, it[1].0))),
            unread: self.old.unread.clone(),
            ..JudgedChange::default()
        };
        if let Some([before, after]) = versions {
            let left_out = [before, after]
                .map(|(fabric, fleet)| move |at: NodeRef| verify::is_left_out(fleet, fabric, at));
            let before =
                JudgedVersion { fabric: before.0, meshes: old.meshes, left_out: &left_out[0] };
            let after =
                JudgedVersion { fabric: after.0, meshes: new.meshes, left_out: &left_out[1] };
            match old_controls::refused(&controls, before, after, most) {
                Ok(refused) => judged.refused = refused,
                Err(_) => judged.is_unproven = true,
            }
            judged.unjudged = old_controls::unjudged(&controls, before, after);
        } else {
            judged.is_unproven = !controls.is_empty();
        }
        JudgedChange { controls, ..judged }
    }
}

impl ReadControls {
    /// Reads all controls, as far as possible.
    pub(super) fn read(inputs: &mut Inputs) -> Self {
        let (expectations, mistakes) = match expectations::read(inputs, None) {
            Ok(read) => read,
            Err(failure) => (Expectations::default(), unread(failure, inputs)),
        };
        let guards = guard_files::read(inputs);
        let (guards, of_guards) = match guards {
            Ok(guards) => (guards, None),
            Err(error) => (Vec::new(), Some(unreadable(&error))),
        };
        let foreign = guards.iter().filter(|it| it.guard().is_none());
        let foreign = foreign.map(|it| {
            mesh::unreadable(Some(&it.source), format!("it is not the guard of {}", it.cluster))
        });
        // Snapshots are not controls, but their folder may have a folder with some.
        let snapshots = input_file::name(&inputs.settings.snapshots.value);
        let is_snapshot = |it: &Path| {
            it.parent() == Some(Path::new(&snapshots)) && it.extension() == Some("json".as_ref())
        };
        let is_control = |it: &&Finding| {
            let mut files = it.labels.iter().map(|it| Path::new(&*it.place.source));
            !files.any(is_snapshot)
        };
        let is_error = |it: &&Finding| it.severity == Severity::Error;
        let wrong = inputs.findings.iter().filter(is_error).filter(is_control).cloned();
        let config = &inputs.settings.config;
        let source = config.source.as_ref();
        Self {
            unread: wrong.chain(mistakes).chain(foreign).chain(of_guards).collect(),
            meshes: inputs.meshes.clone(),
            policies: inputs.policies.clone(),
            expectations,
            config: config.content.clone(),
            config_place: source.map(|it| Place::document(&it.name, 0)),
            paths: paths(inputs),
            guards,
            files: None,
        }
    }

    fn controls(&self) -> Controls<'_> {
        Controls {
            meshes: &self.meshes,
            policies: &self.policies,
            expectations: &self.expectations,
            config: &self.config,
            config_place: self.config_place.as_ref(),
            paths: &self.paths,
            guards: &self.guards,
        }
    }
}

/// Returns the file of the expectations and the folder of the policies, whether or not they are there.
fn paths(inputs: &Inputs) -> Vec<(&'static str, String)> {
    let settings = &inputs.settings;
    let expectations = settings.expectations.value.clone();
    let policies = settings.policies.value.clone();
    let by_default = |name: &str| settings.home.join(name);
    [
        ("expectations", expectations.unwrap_or_else(|| by_default("expectations.yaml"))),
        ("policies", policies.unwrap_or_else(|| by_default("policies"))),
    ]
    .map(|(field, path)| (field, input_file::name(&input_file::plain(&path))))
    .into()
}

/// Returns why expectations cannot be read.
fn unread(failure: CommandFailure, inputs: &mut Inputs) -> Vec<Finding> {
    match failure.into_mistakes() {
        Ok(mistakes) => {
            for source in mistakes.files.read() {
                inputs.files.add(source.clone());
            }
            mistakes.findings.to_vec()
        }
        Err(error) => {
            let path = inputs.settings.expectations.value.as_deref();
            let file = path.map(input_file::name).unwrap_or_default();
            let message = escaped(&format!("{error:#}"), SHOWN);
            vec![mesh::unreadable(Some(&file.into()), message)]
        }
    }
}

/// Returns that a control cannot be read, for example because it is a folder.
pub(super) fn unreadable(error: &anyhow::Error) -> Finding {
    mesh::unreadable(None, escaped(&format!("{error:#}"), SHOWN))
}

/// Returns whether a version without a mesh has files with controls.
pub(super) fn are_any(settings: &Settings) -> anyhow::Result<bool> {
    let files = [&settings.expectations.value, &settings.policies.value];
    Ok(settings.config.source.is_some()
        || files.iter().any(|it| it.is_some())
        || disk::is_folder(&settings.home_roots(), &settings.home.join("guards"))?)
}

/// Returns the failure of `--fail-on-weaker` without a commit.
pub(super) fn unknown(name: &str) -> CommandFailure {
    let problem = "controls cannot be compared without those of the old version; compare with a commit, not with";
    anyhow!("{problem} {name}").into()
}
