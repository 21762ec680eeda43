//! The other side of the comparison: a commit, a rendered folder, files of Peers, or clusters.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::escaped;

use super::DiffArgs;
use crate::disk::{self, Revision, Roots};
use crate::fabric::{AppliedFiles, Dumps, KnownContents};
use crate::input_file::Unreadable;
use crate::inputs::{self, Inputs};
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
    /// Something unknown about it, with the reason.
    pub(super) note: Option<String>,
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
    ) -> Result<Before, Unreadable> {
        match self {
            Self::Revision(revision) => of_revision(&revision, options, inputs),
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
                let applied = fabric::read_and_keep(inputs, Some(dumps), Some(&mut known));
                Ok(Before::of_peers(applied?, known))
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
            note: None,
        }
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

/// Reads a commit: its mesh, its snapshots and its rendered tree.
fn of_revision(
    revision: &Arc<Revision>,
    options: &FileOptions,
    now: &mut Inputs,
) -> Result<Before, Unreadable> {
    let options = options.at(revision);
    let gathered = inputs::gather(&options);
    revision.check()?;
    let mut inputs = match gathered {
        Ok(inputs) => inputs,
        Err(Unreadable::Failed(error)) if error.is::<NoMesh>() => {
            return without_mesh(options.settle()?, now);
        }
        Err(unreadable) => return Err(unreadable),
    };
    let problem = if !inputs.is_whole {
        Some("contain errors")
    } else if inputs.meshes.is_empty() && is_there(&inputs) || !check::missing(&inputs).is_empty() {
        Some("are missing")
    } else {
        None
    };
    if problem.is_some() {
        // The tree is read for the clusters of a mesh.
        inputs.meshes.clone_from(&now.meshes);
    }
    let mut known = KnownContents::default();
    let applied = if is_there(&inputs) && problem.is_some() {
        tree(&mut inputs, &mut known)?
    } else if is_there(&inputs) {
        fabric::read_and_keep(&mut inputs, None, Some(&mut known))?
    } else if is_there(now) {
        AppliedFiles::default()
    } else {
        // If the tree is not in git, as with the plugin of Argo CD, the rendered Peers count as applied.
        rendered(&inputs, &mut known)?.ok_or_else(|| {
            let name = disk::shown(Path::new(revision.name()));
            anyhow!(
                "{name} cannot be rendered, so its Peers are unknown; compare with another commit"
            )
        })?
    };
    revision.check()?;
    Ok(Before {
        inputs: problem.is_none().then_some(inputs),
        applied,
        known,
        note: problem.map(|problem| {
            format!(
                "the meshes or snapshots of {} {problem}, so no causes are listed",
                disk::shown(Path::new(revision.name()))
            )
        }),
    })
}

/// Reads the tree of a commit without any mesh, if it has one, for the clusters of the current mesh.
fn without_mesh(settings: Settings, now: &mut Inputs) -> Result<Before, Unreadable> {
    let own = mem::replace(&mut now.settings, settings);
    let mut known = KnownContents::default();
    let applied = if is_there(now) {
        tree(now, &mut known)
    } else {
        Ok(AppliedFiles::default())
    };
    now.settings = own;
    Ok(Before::of_peers(applied?, known))
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
