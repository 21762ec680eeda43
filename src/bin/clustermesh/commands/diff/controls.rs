//! Controls of both versions: those of the commit judge the new Peers.

use anyhow::anyhow;
use clustermesh::agent::fabric::Fabric;
use clustermesh::config::Config;
use clustermesh::controls::{Controls, JudgedChange};
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::expectations::Expectations;
use clustermesh::mesh::Mesh;
use clustermesh::place::Place;
use clustermesh::policy::Policy;
use clustermesh::proof::old_controls::{self, JudgedVersion};
use clustermesh::rules::Finding;
use clustermesh::rules::gitops::GuardFile;
use clustermesh::rules::mesh;

use crate::commands::verify::expectations;
use crate::failure::{CommandFailure, CommandResult};
use crate::files::ShownFiles;
use crate::inputs::Inputs;
use crate::{clock, guard_files, input_file};

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
    ///
    /// # Errors
    /// A guard cannot be read.
    pub(super) fn read(
        old: Option<ReadControls>,
        inputs: &mut Inputs,
    ) -> CommandResult<Option<Self>> {
        let both = old.map(|old| Ok(Self { old, new: ReadControls::read(inputs)? }));
        both.transpose()
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
    pub(super) fn judge(&self, fabrics: Option<(&Fabric, &Fabric)>, most: u64) -> JudgedChange<'_> {
        let (old, new) = (self.old.controls(), self.new.controls());
        let controls = old.of_paths(clock::today());
        let mut judged = JudgedChange {
            changes: old.changes(&new),
            unread: self.old.unread.clone(),
            ..JudgedChange::default()
        };
        if let Some((before, after)) = fabrics {
            let before = JudgedVersion { fabric: before, meshes: old.meshes };
            let after = JudgedVersion { fabric: after, meshes: new.meshes };
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
    ///
    /// # Errors
    /// A guard cannot be read.
    pub(super) fn read(inputs: &mut Inputs) -> CommandResult<Self> {
        let (expectations, mistakes) = match expectations::read(inputs, None) {
            Ok(read) => read,
            Err(failure) => (Expectations::default(), unread(failure, inputs)),
        };
        let is_error = |it: &&Finding| it.severity == Severity::Error;
        let wrong = inputs.findings.iter().filter(is_error).cloned();
        let config = &inputs.settings.config;
        let source = config.source.as_ref();
        Ok(Self {
            unread: wrong.chain(mistakes).collect(),
            meshes: inputs.meshes.clone(),
            policies: inputs.policies.clone(),
            expectations,
            config: config.content.clone(),
            config_place: source.map(|it| Place::document(&it.name, 0)),
            paths: paths(inputs),
            guards: guard_files::read(inputs)?,
            files: None,
        })
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
    .map(|(field, path)| (field, input_file::name(&path)))
    .into()
}

/// Returns why expectations cannot be read.
fn unread(failure: CommandFailure, inputs: &mut Inputs) -> Vec<Finding> {
    match failure.into_mistakes() {
        Ok(mistakes) => {
            for source in mistakes.files.read() {
                inputs.files.add(source.clone());
            }
            mistakes.findings
        }
        Err(error) => {
            let path = inputs.settings.expectations.value.as_deref();
            let file = path.map(input_file::name).unwrap_or_default();
            let message = escaped(&format!("{error:#}"), SHOWN);
            vec![mesh::unreadable(&file.into(), message)]
        }
    }
}

/// Returns the failure of `--fail-on-weaker` without a commit.
pub(super) fn unknown(name: &str) -> CommandFailure {
    let problem = "controls cannot be compared without those of the old version; compare with a commit, not with";
    anyhow!("{problem} {name}").into()
}
