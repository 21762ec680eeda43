//! The other side of the comparison: a commit, a rendered folder, files of Peers, or clusters.

use std::collections::BTreeSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clustermesh::changes::Changes;
use clustermesh::diagnostic::{Quoted, Quotes, escaped};
use clustermesh::fleet::Fleet;
use clustermesh::name::ClusterName;
use clustermesh::rules::{clusters, reach};

use super::DiffArgs;
use super::controls::ReadControls;
use crate::cluster_peers::{ClusterPeers, Dumps, KnownContents};
use crate::disk::{self, Revision, Roots};
use crate::failure::CommandResult;
use crate::inputs::{Inputs, KnownSnapshots};
use crate::settings::{FileOptions, Setting, SettingOrigin};
use crate::{cluster_peers, input_file};

mod commit;

pub(super) use commit::is_there;

/// The commit that is compared with by default.
pub(super) const HEAD: &str = "HEAD";

/// The longest name of a commit that is shown, in characters.
const SHOWN: usize = 200;

/// The flag that names a commit or a folder.
const AGAINST: &str = "--against";

/// The word that compares with nothing.
const NOTHING: &str = "none";

/// The way out if the Peers of the other side are not known.
const REMEDY: &str = "compare with another commit (--against REV), with a rendered folder (--against DIR) or with the \
                      clusters (--live), or with nothing if nothing was applied yet (--against none)";

/// The state that is compared with.
pub(super) enum Against<'a> {
    Nothing,
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
    /// Its controls, if it is a commit with a mesh.
    pub(super) controls: Option<ReadControls>,
    /// Whether it is a commit without a mesh that has files with controls, or Peers that controls limited.
    pub(super) has_unknown_controls: bool,
    /// Its Peers.
    pub(super) applied: ClusterPeers,
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
            let revision = Revision::open(HEAD).map_err(|error| {
                anyhow!(
                    "{error:#}; compare with a rendered folder ({AGAINST} DIR), or with nothing if nothing was applied yet \
                     ({AGAINST} {NOTHING})"
                )
            })?;
            return Ok(Self::Revision(Arc::new(revision)));
        };
        let path = Path::new(name);
        let is_folder = disk::is_folder(&Roots::anywhere(), path)?;
        let commit = name.to_str().map(Revision::open);
        if name == NOTHING {
            if is_folder || matches!(commit, Some(Ok(_))) {
                bail!(
                    "{AGAINST} {NOTHING} compares with nothing, but this is also a folder or a commit; write \
                     `./{NOTHING}` for the folder, or `refs/heads/{NOTHING}` for a branch"
                );
            }
            return Ok(Self::Nothing);
        }
        let is_path =
            name.to_string_lossy().ends_with('/') || disk::is_there(&Roots::anywhere(), path)?;
        match (commit, is_folder) {
            (Some(Ok(_)), true) => bail!(
                "{0} is a commit and a folder; write `./{1}` for the folder, or `refs/heads/{1}` for a branch",
                disk::shown(path),
                path.display()
            ),
            (Some(Ok(revision)), false) => Ok(Self::Revision(Arc::new(revision))),
            (_, true) => Ok(Self::Folder(path.to_owned())),
            (Some(Err(error)), false) if !is_path => Err(error),
            (_, false) => bail!("{} is neither a commit nor a folder", disk::shown(path)),
        }
    }

    /// Returns what it is called in outputs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Revision(revision) => escaped(revision.name(), SHOWN),
            Self::Folder(folder) => input_file::name(folder),
            Self::Dumps(_) => "the Peers of clusters".to_owned(),
            Self::Nothing => "nothing".to_owned(),
        }
    }

    /// Reads the earlier state.
    pub(super) fn read(
        self,
        options: &FileOptions,
        inputs: &mut Inputs,
        snapshots: &mut KnownSnapshots,
        are_controls_asked: bool,
    ) -> CommandResult<Before> {
        let name = match &self {
            Self::Revision(_) | Self::Folder(_) => format!("`{}`", self.name()),
            Self::Dumps(_) | Self::Nothing => "the rendered tree".to_owned(),
        };
        let before = self.read_any(options, inputs, snapshots, are_controls_asked)?;
        all_read(&before.applied, &name)?;
        Ok(before)
    }

    fn read_any(
        self,
        options: &FileOptions,
        inputs: &mut Inputs,
        snapshots: &mut KnownSnapshots,
        are_controls_asked: bool,
    ) -> CommandResult<Before> {
        match self {
            Self::Nothing => Ok(Before {
                notes: vec!["all Peers count as new (--against none)".to_owned()],
                ..Before::of_peers(ClusterPeers::default(), KnownContents::default())
            }),
            Self::Revision(revision) => {
                commit::read(&revision, options, inputs, snapshots, are_controls_asked)
            }
            Self::Folder(folder) => {
                let named = Setting { value: folder, origin: SettingOrigin::Flag(AGAINST) };
                let own = mem::replace(&mut inputs.settings.rendered, named);
                let before = of_folder(inputs);
                inputs.settings.rendered = own;
                before
            }
            Self::Dumps(dumps) => {
                let known = KnownContents::default();
                let applied = cluster_peers::read_and_keep(inputs, Some(dumps), Some(&known))?;
                applied.check_left(&cluster_peers::clusters(inputs))?;
                let left = applied.left().keys().map(|it| {
                    format!("no mesh contains {it}, so it counts as a cluster that left")
                });
                let findings = applied.findings.iter();
                let without_crd = findings.filter(|it| clusters::is_missing_crd(it));
                let without_crd = without_crd.map(|it| {
                    let cluster = it.cluster.as_deref().unwrap_or_default();
                    format!("{cluster}: {}", it.message)
                });
                let notes: Vec<String> = left.chain(without_crd).collect();
                let wrong = dumps.wrong(&applied.fabric(inputs));
                Ok(Before {
                    notes: notes.into_iter().chain(wrong).collect(),
                    ..Before::of_peers(applied, known)
                })
            }
        }
    }
}

impl Before {
    /// Returns Peers of which no mesh is known.
    fn of_peers(applied: ClusterPeers, known: KnownContents) -> Self {
        Self {
            inputs: None,
            controls: None,
            has_unknown_controls: false,
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
        self.notes.extend(self.applied.rename_left(fleet).into_iter().map(|(was, is)| {
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
        let notes: Vec<String> = gone.into_iter().filter(|it| !clusters.contains(it)).filter(|it| !self.applied.left().contains_key(it))
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
fn of_folder(inputs: &mut Inputs) -> CommandResult<Before> {
    let folder = inputs.settings.rendered.value.clone();
    disk::entries(&Roots::anywhere(), &folder)?;
    let known = KnownContents::default();
    let mut applied = cluster_peers::read_and_keep(inputs, None, Some(&known))?;
    if !has_folders(&applied, inputs) {
        let name = disk::shown(&folder);
        let error =
            anyhow!("{name} is not a rendered folder: it has no folder of a cluster; {REMEDY}");
        return Err(error.into());
    }
    applied.read_left(inputs)?;
    Ok(Before::of_peers(applied, known))
}

/// Returns whether a cluster has a folder in a tree that was read.
fn has_folders(applied: &ClusterPeers, inputs: &Inputs) -> bool {
    cluster_peers::clusters(inputs).into_iter().any(|it| !applied.absent.contains(&it))
}

/// Checks that every manifest was read: clusters keep the Peers of one that cannot be applied, so its Peers count as
/// unknown, not as new.
fn all_read(applied: &ClusterPeers, name: &str) -> anyhow::Result<()> {
    let Some(unread) = applied.findings.iter().find(|it| reach::is_unread(it)) else {
        return Ok(());
    };
    // A message that quotes nothing does not name the file.
    let file = unread.labels.first().map(|it| &*it.place.source);
    let file = file.filter(|_| unread.quotes == Quotes::Nothing);
    let file = file.map(|it| format!("{}: ", Quoted(it)));
    bail!(
        "{}{}; the old Peers in {name} are therefore unknown; compare with another commit (--against REV), or with \
         the clusters (--live)",
        file.unwrap_or_default(),
        unread.message
    );
}
