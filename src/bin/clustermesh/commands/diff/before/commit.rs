//! Commits: their mesh, their snapshots and their rendered tree, and what their Peers are if something of it is not there.

use std::mem;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;

use super::super::controls::{self, ReadControls};
use super::{Before, REMEDY, has_folders};
use crate::cluster_peers::{ClusterPeers, KnownContents};
use crate::disk::{self, Revision};
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs, KnownSnapshots};
use crate::settings::{FileOptions, NoMesh, Settings};
use crate::{Outcome, checked_plan, cluster_peers, git};

/// The patterns that match every text of a mesh.
const MESH: [&str; 2] =
    [r"kilo\.squat\.ai/v1alpha1", r#"kind["']?[[:space:]]*:[[:space:]]*["']?ClusterMesh"#];

/// The patterns that match every text of a snapshot and of rendered Peers.
const RENDERED: [&str; 2] =
    [r"kilo-clustermesh\.io/", r#"kind["']?[[:space:]]*:[[:space:]]*["']?(NodeSnapshot|Peer)"#];

/// The problem of a commit of which the Peers cannot be computed.
const UNRENDERED: &str = "cannot be rendered";

/// Reads a commit: its mesh, its snapshots and its rendered tree. If its controls are asked for, and it is not known what it
/// renders, the failure has its mistakes.
pub(super) fn read(
    revision: &Arc<Revision>,
    options: &FileOptions,
    now: &mut Inputs,
    snapshots: &mut KnownSnapshots,
    are_controls_asked: bool,
) -> CommandResult<Before> {
    let options = options.at(revision);
    let gathered = inputs::gather_and_keep(&options, snapshots, &now.named);
    revision.check()?;
    let mut inputs = match gathered {
        Ok(inputs) => inputs,
        Err(CommandFailure::Error(error)) if error.is::<NoMesh>() => {
            return without_mesh(revision, options.settle()?, now);
        }
        // A folder with the name of a control is a mistake like one in its text.
        Err(CommandFailure::Error(error)) => {
            let unreadable = vec![controls::unreadable(&error)];
            return Err(CommandFailure::without_files(unreadable, Outcome::Unreadable));
        }
        Err(failure) => return Err(failure),
    };
    let mut controls = ReadControls::read(&mut inputs);
    revision.check()?;
    let name = disk::shown(Path::new(revision.name()));
    let problem = UnusableInputs::find(&inputs);
    let known = KnownContents::default();
    let (applied, note) = match problem {
        None => (of_mesh(revision, &mut inputs, now, &known)?, None),
        Some(problem) => {
            // The tree is read for the clusters of a mesh.
            inputs.meshes.clone_from(&now.meshes);
            let consequence = format!(
                "the meshes or snapshots of {name} {}, so no causes are listed",
                problem.name()
            );
            let beginning = format!(
                "neither {name} nor any commit before it has a snapshot, so nothing was rendered and all Peers are new"
            );
            match tree(&mut inputs, &known)? {
                Some(applied) => (applied, Some(consequence)),
                None if problem == UnusableInputs::Missing
                    && is_beginning(revision, &[&RENDERED], [&inputs, now])? =>
                {
                    (ClusterPeers::default(), Some(beginning))
                }
                None if are_controls_asked && problem == UnusableInputs::Errors => {
                    return Err(mistakes(revision, &inputs));
                }
                None => return Err(unknown(revision, UNRENDERED)),
            }
        }
    };
    revision.check()?;
    if problem.is_some() {
        controls.files = Some(mem::take(&mut inputs.files));
    }
    Ok(Before {
        inputs: problem.is_none().then_some(inputs),
        controls: Some(controls),
        has_unknown_controls: false,
        applied,
        known,
        notes: note.into_iter().collect(),
    })
}

/// Reads the tree of a commit with a mesh. If no tree is in git, as with the plugin of Argo CD, the rendered Peers count
/// as applied.
fn of_mesh(
    revision: &Revision,
    inputs: &mut Inputs,
    now: &Inputs,
    known: &KnownContents,
) -> CommandResult<ClusterPeers> {
    if let Some(applied) = own_tree(inputs, known)? {
        return Ok(applied);
    }
    if is_there(now)? {
        let problem = "has no rendered tree, and the plugin of Argo CD may have rendered it";
        return Err(unknown(revision, problem));
    }
    rendered(inputs, known)?.ok_or_else(|| unknown(revision, UNRENDERED))
}

/// Returns the mistakes for which a commit cannot be rendered, with their places: they are what a person repairs.
fn mistakes(revision: &Revision, inputs: &Inputs) -> CommandFailure {
    let refused = checked_plan::plan_or_refusal(inputs).err();
    refused.unwrap_or_else(|| unknown(revision, UNRENDERED))
}

/// Returns the error about a commit of which the Peers are not known.
fn unknown(revision: &Revision, problem: &str) -> CommandFailure {
    let name = disk::shown(Path::new(revision.name()));
    let error = revision.check().and_then(|()| {
        let history = git::missing_history()?;
        let history = history.map(|it| format!("; {it}")).unwrap_or_default();
        Ok(anyhow!("{name} {problem}, so its Peers are unknown; {REMEDY}{history}"))
    });
    error.unwrap_or_else(|error| error).into()
}

/// Returns whether nothing was rendered up to a commit: no file of it has texts of one of these kinds, and neither it nor
/// any commit before it has a file with the name of a snapshot or of rendered Peers.
fn is_beginning(
    revision: &Revision,
    kinds: &[&[&str]],
    versions: [&Inputs; 2],
) -> anyhow::Result<bool> {
    for patterns in kinds {
        if revision.contains(patterns)? {
            return Ok(false);
        }
    }
    let clusters = versions.into_iter().flat_map(cluster_peers::clusters);
    let names = clusters.flat_map(|it| [format!("{it}.json"), format!("*--{it}.yaml")]);
    let settings = versions.map(|it| &it.settings);
    let folders = settings.map(|it| [&*it.snapshots.value, &*it.rendered.value]);
    let may_have_had = revision.may_have_had(folders.as_flattened(), &names.collect())?;
    Ok(!may_have_had)
}

/// The reason for which the meshes and snapshots of a commit cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UnusableInputs {
    Errors,
    Missing,
}

impl UnusableInputs {
    fn find(inputs: &Inputs) -> Option<Self> {
        if !inputs.is_whole {
            return Some(Self::Errors);
        }
        let has_no_mesh = inputs.meshes.is_empty();
        (has_no_mesh || !checked_plan::missing(inputs).is_empty()).then_some(Self::Missing)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Errors => "contain errors",
            Self::Missing => "are missing",
        }
    }
}

/// Reads a commit without any mesh: its tree, if it has one, for the clusters of the current mesh.
fn without_mesh(
    revision: &Revision,
    settings: Settings,
    now: &mut Inputs,
) -> CommandResult<Before> {
    let own = mem::replace(&mut now.settings, settings);
    let known = KnownContents::default();
    let read = tree(now, &known).and_then(|read| {
        let is_beginning =
            read.is_none() && is_beginning(revision, &[&MESH, &RENDERED], [now, now])?;
        let is_any = read.is_some() || controls::are_any(&now.settings)?;
        Ok((read, is_beginning, is_any))
    });
    now.settings = own;
    let name = disk::shown(Path::new(revision.name()));
    let (read, is_beginning, has_unknown_controls) = read?;
    let (applied, note) = match (read, is_beginning) {
        (Some(applied), _) => (applied, format!("{name} has no mesh, so no causes are listed")),
        (None, true) => (
            ClusterPeers::default(),
            format!(
                "{name} has no mesh, snapshot or rendered Peer, so this is the beginning and all Peers are new"
            ),
        ),
        (None, false) => {
            return Err(unknown(revision, "has no mesh and no rendered tree here"));
        }
    };
    Ok(Before { notes: vec![note], has_unknown_controls, ..Before::of_peers(applied, known) })
}

/// Reads a whole tree of which no mesh is known, with the folders of clusters that left. Nothing if no folder of a
/// cluster is there.
fn tree(inputs: &mut Inputs, known: &KnownContents) -> CommandResult<Option<ClusterPeers>> {
    if !is_there(inputs)? {
        return Ok(None);
    }
    let mut applied = cluster_peers::read_and_keep(inputs, None, Some(known))?;
    applied.read_left(inputs)?;
    let is_any = !applied.left().is_empty() || has_folders(&applied, inputs);
    Ok(is_any.then_some(applied))
}

/// Reads a tree for the clusters of its mesh; nothing if it has no folder of any.
fn own_tree(inputs: &mut Inputs, known: &KnownContents) -> CommandResult<Option<ClusterPeers>> {
    if !is_there(inputs)? {
        return Ok(None);
    }
    let applied = cluster_peers::read_and_keep(inputs, None, Some(known))?;
    Ok(has_folders(&applied, inputs).then_some(applied))
}

/// Returns whether there is a rendered tree.
pub(in crate::commands::diff) fn is_there(inputs: &Inputs) -> anyhow::Result<bool> {
    let rendered = &inputs.settings.rendered;
    disk::is_folder(&inputs.settings.roots_of(rendered), &rendered.value)
}

/// Renders in memory; nothing if the inputs are wrong.
fn rendered(inputs: &Inputs, known: &KnownContents) -> anyhow::Result<Option<ClusterPeers>> {
    let planned = checked_plan::plan(inputs)?;
    let settings = &inputs.settings;
    Ok(planned.map(|it| ClusterPeers::planned(settings, &it.plan, &it.texts, known)))
}
