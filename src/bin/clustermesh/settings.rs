//! Settings: the values of a run and their sources. Precedence: flags, variables, config, defaults.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clustermesh::config::{self, Ceilings};
use clustermesh::mesh::SecretKeyRef;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::rules::{CheckStandard, Finding, LevelledFindings, Purpose};

use crate::clock;
use crate::disk::{self, Revision, Roots};
use crate::failure::CommandResult;
use crate::input_file::InputFile;

mod config_file;
mod options;
mod surroundings;

pub(crate) use config_file::{ConfigFile, NoMesh};
pub(crate) use options::{
    CLUSTER_ACCESS, FILES, FileOptions, OUTPUT, PrintOptions, innermost, options_of, read,
    with_common_options,
};
pub(crate) use surroundings::WorkingRepository;

/// The variable from which `kubectl` takes its kubeconfig.
const KUBECONFIG: &str = "KUBECONFIG";

/// The prefix of labels that snapshots leave out by default: Node Feature Discovery sets some hundred
/// labels on each node, which have nothing to do with a mesh.
const DROPPED_LABELS: &str = "feature.node.kubernetes.io/";

/// The folder of the policies, if it is there.
const POLICIES: &str = "policies";

/// The file of the expectations, if it is there.
const EXPECTATIONS: &str = "expectations.yaml";

/// The settings of a run.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The root of the repository, if there is one, and what else is around.
    pub(crate) surroundings: WorkingRepository,
    /// The config, with its limits and clusters.
    pub(crate) config: ConfigFile,
    /// Mesh files and folders of them, in order; none if none is named and none exists.
    pub(crate) meshes: Setting<Vec<PathBuf>>,
    /// The folder of the snapshots.
    pub(crate) snapshots: Setting<PathBuf>,
    /// Prefixes of labels that snapshots leave out.
    pub(crate) dropped_labels: Setting<Vec<String>>,
    /// The folder of the rendered manifests.
    pub(crate) rendered: Setting<PathBuf>,
    /// The folder of files that need no setting.
    pub(crate) home: PathBuf,
    /// The file of the expectations; none if none is named and none exists.
    pub(crate) expectations: Setting<Option<PathBuf>>,
    /// The folder of the clusters' policies; none if none is named and none exists.
    pub(crate) policies: Setting<Option<PathBuf>>,
    /// The largest accepted input.
    pub(crate) ceilings: Ceilings,
    /// The kubeconfig of every cluster for which the config names none: files that are merged, as
    /// `kubectl` does.
    pub(crate) kubeconfig: Setting<Vec<PathBuf>>,
}

/// The access to a cluster, with defaults for everything that the config leaves open.
#[derive(Debug)]
pub(crate) enum ClusterAccess {
    /// With the service account of the pod we run in.
    InCluster,
    /// With a kubeconfig in a Secret.
    Secret {
        namespace: String,
        /// The Secret, and the key in it.
        secret: SecretKeyRef,
    },
    Kubeconfig {
        /// Its files, merged.
        files: Setting<Vec<PathBuf>>,
        /// The context in it; none for the only one there is.
        context: Setting<Option<String>>,
    },
}

impl FileOptions {
    /// Settles everything. Nothing but the config must be readable; what is there of the meshes is
    /// asked for later.
    pub(crate) fn settle(&self) -> CommandResult<Settings> {
        let config = ConfigFile::read(self.config.clone(), self.roots(), &self.surroundings)?;
        let said = config.content.meshes.iter();
        let meshes = match &self.meshes {
            Some(given) => given.clone(),
            None if config.content.meshes.is_empty() => Setting {
                value: config_file::default_meshes(&config)?,
                origin: SettingOrigin::Default,
            },
            None => Setting {
                value: said.map(|path| config.join(path)).collect(),
                origin: config.origin(&["meshes"]),
            },
        };
        let folder = |given: &Option<Setting<PathBuf>>, said: Option<&String>, name: &str| {
            given.clone().unwrap_or_else(|| Setting {
                value: config.join(said.map_or(name, String::as_str)),
                origin: config.origin(&[name]),
            })
        };
        let home = home(&config, &meshes.value);
        let beside = |said: Option<&String>, field: &str, name: &str| {
            let default = home.join(name);
            let value = match said {
                Some(path) => Some(config.join(path)),
                None => disk::is_there(&config.roots, &default)?.then_some(default),
            };
            anyhow::Ok(Setting { value, origin: config.origin(&[field]) })
        };
        Ok(Settings {
            surroundings: self.surroundings.clone(),
            snapshots: folder(&self.snapshots, config.content.snapshots.as_ref(), "snapshots"),
            dropped_labels: Setting {
                value: match &config.content.dropped_labels {
                    Some(prefixes) => prefixes.clone(),
                    None => vec![DROPPED_LABELS.to_owned()],
                },
                origin: config.origin(&["snapshot", "dropLabels"]),
            },
            rendered: folder(&self.rendered, config.content.rendered.as_ref(), "rendered"),
            expectations: beside(
                config.content.expectations.as_ref(),
                "expectations",
                EXPECTATIONS,
            )?,
            policies: beside(config.content.policies.as_ref(), "policies", POLICIES)?,
            kubeconfig: kubeconfig(),
            ceilings: self.ceilings.iter().fold(config.content.ceilings, |all, it| all.with(*it)),
            home: home.clone(),
            meshes,
            config,
        })
    }
}

impl Settings {
    /// Takes the kubeconfig that a flag names.
    #[cfg(feature = "snapshot")]
    pub(crate) fn name_kubeconfig(&mut self, flag: &'static str, file: Option<&PathBuf>) {
        if let Some(value) = file.filter(|file| !file.as_os_str().is_empty()) {
            self.kubeconfig =
                Setting { value: vec![value.clone()], origin: SettingOrigin::Flag(flag) };
        }
    }

    /// Returns the levels of findings today.
    pub(crate) fn standard(&self, purpose: Purpose) -> CheckStandard<'_> {
        CheckStandard { levels: &self.config.levels, today: clock::today(), purpose }
    }

    /// Returns findings with their levels today.
    pub(crate) fn in_force(&self, findings: Vec<Finding>) -> LevelledFindings {
        self.standard(Purpose::Validate).level(findings)
    }

    /// Returns the last commit, if there is one and the files are not those of another.
    pub(crate) fn head(&self) -> Option<Roots> {
        let is_of_files = self.roots_of(&self.snapshots).revision().is_none();
        let head = is_of_files.then(|| Revision::open("HEAD").ok()).flatten();
        head.map(|it| Roots::of_revision(Arc::new(it)))
    }

    /// Returns whether the last commit has another text at a path, which can be restored.
    pub(crate) fn is_restorable(&self, path: &Path, text: &str) -> bool {
        let limit = u64::try_from(text.len()).unwrap_or(u64::MAX).saturating_add(1);
        let committed = self.head().filter(|it| disk::is_there(it, path).unwrap_or(false));
        committed.is_some_and(|head| {
            disk::read_text(&head, path, limit).map_or(true, |committed| committed != text)
        })
    }

    /// Returns whether the last commit has something at a path.
    pub(crate) fn is_committed(&self, path: &Path) -> bool {
        self.head().is_some_and(|head| disk::is_there(&head, path).unwrap_or(false))
    }

    /// Checks that nothing of which a render is made is in the folder of its results: it would be taken for stray files.
    pub(crate) fn check_rendered(&self) -> anyhow::Result<()> {
        let rendered = disk::canonical(&self.rendered.value);
        let meshes = self.meshes.value.iter().map(|it| ("mesh", it));
        for (what, path) in meshes.chain([("snapshots", &self.snapshots.value)]) {
            if disk::canonical(path).starts_with(&rendered) {
                bail!(
                    "the rendered folder `{}` contains the {what} `{}`; set `rendered` to a folder of its own",
                    self.rendered.value.display(),
                    path.display()
                );
            }
        }
        Ok(())
    }

    /// Returns the files with meshes, in order. Every folder has one, and there is one at all.
    pub(crate) fn mesh_files(&self) -> anyhow::Result<Vec<InputFile>> {
        let no_mesh = || {
            if disk::is_there(&self.config.roots, &self.config.join("mesh.yml"))? {
                return Ok(NoMesh::OtherEnding);
            }
            let rendered = &self.rendered;
            if !disk::is_folder(&self.roots_of(rendered), &rendered.value)? {
                return Ok(NoMesh::New);
            }
            let mut defaults =
                config_file::DEFAULT_MESHES.map(|it| self.config.join(it)).into_iter();
            Ok(NoMesh::Rendered { committed: defaults.find(|it| self.is_committed(it)) })
        };
        config_file::mesh_files(
            &self.mesh_paths()?,
            &self.config.roots,
            (&self.surroundings, self.config.path.value.as_deref()),
            no_mesh,
        )
    }

    /// Returns the nearest folder above that has meshes, no further than the repository's root.
    pub(crate) fn mesh_above(&self) -> Option<PathBuf> {
        config_file::above(&self.surroundings).filter(|it| it != Path::new(""))
    }

    /// Returns the files with meshes, in order, or none if there is no mesh yet.
    pub(crate) fn mesh_files_if_any(&self) -> anyhow::Result<Vec<InputFile>> {
        config_file::any_mesh_files(&self.mesh_paths()?)
    }

    /// Returns where the files of a folder may be: in the folder, if a flag or a variable names it,
    /// and where files named by a config may be.
    pub(crate) fn roots_of(&self, folder: &Setting<PathBuf>) -> Roots {
        let roots = self.config.roots.clone();
        if folder.is_named() { roots.and(&folder.value) } else { roots }
    }

    /// Returns where files in the folder `home` may be: beside a mesh that a person named for this run, anywhere.
    pub(crate) fn home_roots(&self) -> Roots {
        let roots = self.config.roots.clone();
        if self.meshes.is_named() && self.config.source.is_none() {
            roots.and(&self.home)
        } else {
            roots
        }
    }

    /// Returns the paths of the meshes, and where they may be: a file that a person named for this
    /// run anywhere.
    fn mesh_paths(&self) -> anyhow::Result<Vec<InputFile>> {
        let paths = self.meshes.value.iter();
        let input = |path: &PathBuf| {
            let roots = match self.meshes.is_named() {
                true if disk::is_folder(&self.config.roots.of_named(), path)? => {
                    self.config.roots.clone().and(path)
                }
                true => self.config.roots.of_named(),
                false => self.config.roots.clone(),
            };
            Ok(InputFile { path: path.clone(), roots })
        };
        paths.map(input).collect()
    }

    /// Returns how a cluster is reached, whether the config knows it or not.
    pub(crate) fn access(&self, cluster: &ClusterName) -> ClusterAccess {
        let origin = |field| self.config.origin(&["clusters", cluster.as_str(), field]);
        let is_flag = matches!(self.kubeconfig.origin, SettingOrigin::Flag(_));
        let (path, context) = match self.config.content.clusters.get(cluster) {
            // A kubeconfig that is named for this run takes precedence over the pod's own account.
            Some(config::Access::InCluster) if !is_flag => {
                return ClusterAccess::InCluster;
            }
            Some(config::Access::Secret { namespace, secret }) => {
                return ClusterAccess::Secret {
                    namespace: namespace.clone(),
                    secret: secret.clone(),
                };
            }
            Some(config::Access::InCluster) | None => (None, None),
            Some(config::Access::Kubeconfig { path, context }) => (path.as_ref(), context.as_ref()),
        };
        let files = path.map(|path| Setting {
            value: vec![self.config.join(path)],
            origin: origin("kubeconfig"),
        });
        let default_context = path.is_none().then(|| cluster.to_string());
        ClusterAccess::Kubeconfig {
            files: files.unwrap_or_else(|| self.kubeconfig.clone()),
            context: Setting {
                value: context.cloned().or(default_context),
                origin: origin("context"),
            },
        }
    }
}

/// Returns the folder of files that need no setting: that of the config, or without a config that of the first mesh.
fn home(config: &ConfigFile, meshes: &[PathBuf]) -> PathBuf {
    let of_mesh = meshes.first().and_then(|it| it.parent());
    let of_mesh = of_mesh.filter(|_| config.source.is_none());
    of_mesh.map_or_else(|| config.join(""), Path::to_owned)
}

/// Returns the kubeconfig that `kubectl` reads by default.
fn kubeconfig() -> Setting<Vec<PathBuf>> {
    let listed = env::var_os(KUBECONFIG).unwrap_or_default();
    let is_path = |path: &PathBuf| !path.as_os_str().is_empty();
    let files: Vec<PathBuf> = env::split_paths(&listed).filter(is_path).collect();
    if !files.is_empty() {
        return Setting { value: files, origin: SettingOrigin::Variable(KUBECONFIG) };
    }
    let home = env::home_dir().filter(is_path);
    Setting {
        value: home.map(|home| home.join(".kube/config")).into_iter().collect(),
        origin: SettingOrigin::Default,
    }
}

/// A value and its source.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    /// The source of the value.
    pub(crate) origin: SettingOrigin,
}

impl<T> Setting<T> {
    /// Returns whether it was set for this run, with a flag or a variable.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.origin, SettingOrigin::Flag(_) | SettingOrigin::Variable(_))
    }
}

/// The source of a value.
#[derive(Clone, Debug)]
pub(crate) enum SettingOrigin {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// The config, at this place.
    File(Place),
    Default,
}
