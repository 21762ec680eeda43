//! The other side of the comparison: a commit, a rendered folder, files of Peers, or clusters.

use std::collections::BTreeSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clustermesh::changes::Changes;
use clustermesh::diagnostic::{Quoted, escaped};
use clustermesh::fleet::Fleet;
use clustermesh::name::ClusterName;
use clustermesh::rules::reach;

use super::DiffArgs;
use crate::disk::{self, Revision, Roots};
use crate::fabric::{AppliedFiles, Dumps, KnownContents};
use crate::input_file::Unreadable;
use crate::inputs::{self, Inputs, KnownSnapshots};
use crate::settings::{FileOptions, NoMesh, Setting, SettingOrigin, Settings};
use crate::{check, fabric, input_file};

/// The commit that is compared with by default.
const HEAD: &str = "HEAD";

/// The longest name of a commit that is shown, in characters.
const SHOWN: usize = 200;

/// The flag that names a commit or a folder.
const AGAINST: &str = "--against";

/// The state that is compared with.
pub(super) enum Against<'a> {
    /// A commit, with its mesh and snapshots.
    Revision(Arc<Revision>),
    /// A rendered folder.
    Folder(PathBuf),
    /// Peers of clusters.
    Dumps(&'a Dumps),
}

/// The earlier state.
pub(super) struct Before {
    /// Its mesh and snapshots; nothing if only its Peers are known.
    pub(super) inputs: Option<Inputs>,
    /// Its Peers.
    pub(super) applied: AppliedFiles,
    /// Their texts.
    pub(super) known: KnownContents,
    /// Facts about it that change what the comparison means.
    pub(super) notes: Vec<String>,
}

impl<'a> Against<'a> {
    /// Returns what a command line names.
    pub(super) fn named_by(args: &'a DiffArgs) -> anyhow::Result<Self> {
        if args.dumps.are_any() {
            if args.against.is_some() {
                bail!("{AGAINST} cannot be combined with --peers and --live");
            }
            return Ok(Self::Dumps(&args.dumps));
        }
        let Some(name) = &args.against else {
            return Ok(Self::Revision(Arc::new(Revision::open(HEAD)?)));
        };
        let path = Path::new(name);
        let is_folder = disk::is_folder(&Roots::anywhere(), path);
        match (name.to_str().map(Revision::open), is_folder) {
            (Some(Ok(_)), true) => bail!(
                "{0} is a commit and a folder; write `./{1}` for the folder, or `refs/heads/{1}` for a branch",
                disk::shown(path),
                path.display()
            ),
            (Some(Ok(revision)), false) => Ok(Self::Revision(Arc::new(revision))),
            (_, true) => Ok(Self::Folder(path.to_owned())),
            (Some(Err(error)), false) => Err(error),
            (None, false) => bail!("{} is neither a commit nor a folder", disk::shown(path)),
        }
    }

    /// Returns what it is called in outputs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Revision(revision) => escaped(revision.name(), SHOWN),
            Self::Folder(folder) => input_file::name(folder),
            Self::Dumps(_) => "the Peers of clusters".to_owned(),
        }
    }

    /// Reads the earlier state.
    pub(super) fn read(
        self,
        options: &FileOptions,
        inputs: &mut Inputs,
        snapshots: &mut KnownSnapshots,
    ) -> Result<Before, Unreadable> {
        let name = match &self {
            Self::Revision(_) | Self::Folder(_) => format!("`{}`", self.name()),
            Self::Dumps(_) => "the rendered tree".to_owned(),
        };
        let before = self.read_any(options, inputs, snapshots)?;
        all_read(&before.applied, &name)?;
        Ok(before)
    }

    fn read_any(
        self,
        options: &FileOptions,
        inputs: &mut Inputs,
        snapshots: &mut KnownSnapshots,
    ) -> Result<Before, Unreadable> {
        match self {
            Self::Revision(revision) => of_revision(&revision, options, inputs, snapshots),
            Self::Folder(folder) => {
                let named = Setting {
                    value: folder,
                    origin: SettingOrigin::Flag(AGAINST),
                };
                let own = mem::replace(&mut inputs.settings.rendered, named);
                let before = of_folder(inputs);
                inputs.settings.rendered = own;
                before
            }
            Self::Dumps(dumps) => {
                let mut known = KnownContents::default();
                let applied = fabric::read_and_keep(inputs, Some(dumps), Some(&mut known))?;
                applied.check_left(&fabric::clusters(inputs))?;
                let left = applied.left().keys();
                let notes = left.map(|it| {
                    format!("no mesh contains {it}, so it counts as a cluster that left")
                });
                Ok(Before {
                    notes: notes.collect(),
                    ..Before::of_peers(applied, known)
                })
            }
        }
    }
}

impl Before {
    /// Returns Peers of which no mesh is known.
    fn of_peers(applied: AppliedFiles, known: KnownContents) -> Self {
        Self {
            inputs: None,
            applied,
            known,
            notes: Vec::new(),
        }
    }
}

impl Before {
    /// Finds clusters that have another name now, if no mesh shows them.
    pub(super) fn find_renamed(&mut self, fleet: &Fleet) {
        if self.inputs.is_some() {
            return;
        }
        let renamed = self.applied.rename_left(fleet).into_iter();
        self.notes.extend(renamed.map(|(was, is)| {
            format!(
                "cluster {was} is now called {is}: its nodes have the same keys; its Kustomization or Application must \
                 apply the folder `{is}`"
            )
        }));
    }

    /// Notes the clusters that gave Peers, are in no mesh and were not read: they keep their Peers.
    pub(super) fn note_unread(&mut self, changes: &Changes, clusters: &[ClusterName]) {
        let gone = changes.targets.iter().flat_map(|it| &it.sources_gone);
        let gone: BTreeSet<&ClusterName> = gone.collect();
        let unread = gone.into_iter().filter(|it| !clusters.contains(it));
        let unread = unread.filter(|it| !self.applied.left().contains_key(it));
        let notes: Vec<String> = unread
            .map(|it| {
                format!(
                    "no mesh contains {it}, so its own Peers were not read; to see what it loses, add --peers \
                     {it}=FILE with the output of `kubectl get peers -o yaml`"
                )
            })
            .collect();
        self.notes.extend(notes);
    }
}

/// Reads a rendered folder.
fn of_folder(inputs: &mut Inputs) -> Result<Before, Unreadable> {
    let folder = inputs.settings.rendered.value.clone();
    let is_empty = disk::entries(&Roots::anywhere(), &folder)?.is_empty();
    let mut known = KnownContents::default();
    let mut applied = fabric::read_and_keep(inputs, None, Some(&mut known))?;
    let mut clusters = fabric::clusters(inputs).into_iter();
    if !is_empty && clusters.all(|it| applied.absent.contains(&it)) {
        let name = disk::shown(&folder);
        let error = anyhow!("{name} is not a rendered folder: it has no folder of a cluster");
        return Err(error.into());
    }
    applied.read_left(inputs)?;
    Ok(Before::of_peers(applied, known))
}

/// Checks that every manifest was read: clusters keep the Peers of one that cannot be applied, so its Peers count as
/// unknown, not as new.
fn all_read(applied: &AppliedFiles, name: &str) -> anyhow::Result<()> {
    let Some(unread) = applied.findings.iter().find(|it| reach::is_unread(it)) else {
        return Ok(());
    };
    let file = unread.labels.first().map(|it| &*it.place.source);
    let file = file.filter(|it| !unread.message.contains(*it));
    let file = file.map(|it| format!("{}: ", Quoted(it)));
    bail!(
        "{}{}; the old Peers in {name} are therefore unknown; compare with another commit (--against REV), or with \
         the clusters (--live)",
        file.unwrap_or_default(),
        unread.message
    );
}

/// Reads a commit: its mesh, its snapshots and its rendered tree.
fn of_revision(
    revision: &Arc<Revision>,
    options: &FileOptions,
    now: &mut Inputs,
    snapshots: &mut KnownSnapshots,
) -> Result<Before, Unreadable> {
    let options = options.at(revision);
    let gathered = inputs::gather_and_keep(&options, Some(snapshots));
    revision.check()?;
    let mut inputs = match gathered {
        Ok(inputs) => inputs,
        Err(Unreadable::Failed(error)) if error.is::<NoMesh>() => {
            return without_mesh(revision, options.settle()?, now);
        }
        Err(unreadable) => return Err(unreadable),
    };
    let name = disk::shown(Path::new(revision.name()));
    let problem = UnusableInputs::find(&inputs);
    let is_new = !is_there(&inputs)
        && !is_there(now)
        && problem == Some(UnusableInputs::Missing)
        && !revision.may_have_had(
            &inputs.settings.snapshots.value,
            &snapshot_names([&inputs, now]),
        )?;
    if problem.is_some() {
        // The tree is read for the clusters of a mesh.
        inputs.meshes.clone_from(&now.meshes);
    }
    let mut known = KnownContents::default();
    let applied = if is_there(&inputs) && problem.is_some() {
        tree(&mut inputs, &mut known)?
    } else if is_there(&inputs) {
        fabric::read_and_keep(&mut inputs, None, Some(&mut known))?
    } else if is_there(now) || is_new {
        AppliedFiles::default()
    } else {
        // If the tree is not in git, as with the plugin of Argo CD, the rendered Peers count as applied.
        rendered(&inputs, &mut known)?.ok_or_else(|| {
            anyhow!(
                "{name} cannot be rendered, so its Peers are unknown; compare with one that can be rendered \
                 (--against REV), or with the clusters (--live)"
            )
        })?
    };
    revision.check()?;
    let note = match problem {
        Some(_) if is_new => Some(format!(
            "neither {name} nor any commit before it has a snapshot, so nothing was rendered and all Peers are new"
        )),
        Some(problem) => Some(format!(
            "the meshes or snapshots of {name} {}, so no causes are listed",
            problem.name()
        )),
        None if !is_there(&inputs) && is_there(now) => Some(format!(
            "{name} has no rendered tree, so all Peers count as new; if the plugin of Argo CD rendered it, clusters \
             have Peers already: compare with them (--live)"
        )),
        None => None,
    };
    Ok(Before {
        inputs: problem.is_none().then_some(inputs),
        applied,
        known,
        notes: note.into_iter().collect(),
    })
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
        let has_no_mesh = inputs.meshes.is_empty() && is_there(inputs);
        (has_no_mesh || !check::missing(inputs).is_empty()).then_some(Self::Missing)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Errors => "contain errors",
            Self::Missing => "are missing",
        }
    }
}

/// Returns the names of the snapshots of all clusters.
fn snapshot_names(versions: [&Inputs; 2]) -> BTreeSet<String> {
    let clusters = versions.into_iter().flat_map(fabric::clusters);
    clusters.map(|it| format!("{it}.json")).collect()
}

/// Reads the tree of a commit without any mesh, if it has one, for the clusters of the current mesh.
fn without_mesh(
    revision: &Revision,
    settings: Settings,
    now: &mut Inputs,
) -> Result<Before, Unreadable> {
    let own = mem::replace(&mut now.settings, settings);
    let mut known = KnownContents::default();
    let (applied, consequence) = if is_there(now) {
        (tree(now, &mut known), ", so no causes are listed")
    } else {
        let consequence = " and no rendered tree here, so all Peers count as new; if the files were moved, check \
                           it out elsewhere and compare with its rendered folder (--against DIR)";
        (Ok(AppliedFiles::default()), consequence)
    };
    now.settings = own;
    let name = disk::shown(Path::new(revision.name()));
    Ok(Before {
        notes: vec![format!("{name} has no mesh{consequence}")],
        ..Before::of_peers(applied?, known)
    })
}

/// Reads a whole tree of which no mesh is known, with the folders of clusters that left.
fn tree(inputs: &mut Inputs, known: &mut KnownContents) -> Result<AppliedFiles, Unreadable> {
    let mut applied = fabric::read_and_keep(inputs, None, Some(known))?;
    applied.read_left(inputs)?;
    Ok(applied)
}

/// Returns whether there is a rendered tree.
fn is_there(inputs: &Inputs) -> bool {
    let rendered = &inputs.settings.rendered;
    disk::is_folder(&inputs.settings.roots_of(rendered), &rendered.value)
}

/// Renders in memory; nothing if the inputs are wrong.
fn rendered(inputs: &Inputs, known: &mut KnownContents) -> anyhow::Result<Option<AppliedFiles>> {
    let planned = check::plan(inputs)?;
    let settings = &inputs.settings;
    Ok(planned.map(|it| AppliedFiles::planned(settings, &it.plan, &it.texts, known)))
}
