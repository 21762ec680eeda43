//! Cluster files: a folder with one file for each cluster, such as `policies` and `guards`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clustermesh::document::nearest;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::rules::{self, Finding};
use clustermesh::{diagnostic, policy};

use super::unread_controls::alike;
use crate::disk::{self, EntryType, Roots};
use crate::input_file;
use crate::settings::Settings;

/// The names of clusters in the meshes that could be read.
#[derive(Clone, Copy)]
pub(crate) struct KnownClusters<'n> {
    named: &'n BTreeSet<String>,
    /// Whether another name is a mistake.
    are_all: bool,
}

impl<'n> KnownClusters<'n> {
    /// Returns the names of clusters, and whether they are those of all meshes.
    pub(crate) fn new(named: &'n BTreeSet<String>, are_all: bool) -> Self {
        let are_all = are_all && !named.is_empty();
        Self { named, are_all }
    }

    /// Returns whether these are the names of all clusters.
    pub(super) fn are_all(self) -> bool {
        self.are_all
    }
}

/// The YAML and JSON files of such a folder.
#[derive(Default)]
pub(super) struct ClusterFiles {
    /// The files of clusters that meshes name.
    pub(super) named: Vec<(ClusterName, PathBuf)>,
    /// Findings about files of such clusters that are not read, because of the case or the ending of their names.
    pub(super) misnamed: Vec<Finding>,
    /// Findings about files of other clusters: their names are mistakes, or they are left over. Without all meshes,
    /// that is not known.
    pub(super) unnamed: Vec<Finding>,
}

impl ClusterFiles {
    /// Lists the guards, if there are any.
    pub(super) fn guards(settings: &Settings, known: KnownClusters) -> anyhow::Result<Self> {
        let (folder, roots) = (settings.home.join("guards"), settings.home_roots());
        // git has the files of a submodule elsewhere.
        let is_submodule = disk::type_of(&roots, &folder)? == Some(EntryType::Submodule);
        if !is_submodule && !disk::is_folder(&roots, &folder)? {
            return Ok(Self::default());
        }
        Self::list(&roots, &folder, "guard", known)
    }

    /// Lists the files of a folder, each of which is a `noun`.
    pub(super) fn list(
        roots: &Roots,
        folder: &Path,
        noun: &str,
        known: KnownClusters,
    ) -> anyhow::Result<Self> {
        let KnownClusters { named, are_all } = known;
        let mut files = Self::default();
        let (mut misnamed, mut unnamed) = (Vec::new(), Vec::new());
        let entries = disk::entries(roots, folder)?.into_iter();
        let names: BTreeSet<OsString> = entries.map(|it| it.0).collect();
        for name in names {
            let path = folder.join(&name);
            let text =
                |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
            let (stem, ending) = (text(path.file_stem()), text(path.extension()));
            let looks_like_one = ["yaml", "yml", "json"].contains(&&*ending.to_lowercase());
            if ending == "yaml" && named.contains(&stem) {
                let cluster = stem.parse().with_context(|| disk::shown(&path))?;
                files.named.push((cluster, path));
            } else if looks_like_one && named.contains(&stem.to_lowercase()) {
                misnamed.push((stem.to_lowercase(), path));
            } else if looks_like_one && are_all && alike(&stem).is_none() {
                unnamed.push((stem, path));
            }
        }
        files.misnamed = diagnostic::few(misnamed, "file", |(cluster, path)| {
            policy::misnamed(noun, &cluster, place(&path))
        });
        files.unnamed = diagnostic::few(unnamed, "file", |(stem, path)| {
            let nearest = nearest(&stem, named.iter().map(String::as_str));
            rules::snapshots::unnamed(&stem, None, place(&path)).help(match nearest {
                Some(meant) => format!("rename it to `{meant}.yaml` if `{meant}` is meant"),
                None => {
                    "if the cluster has another name now, rename the file to `CLUSTER.yaml`; if the cluster is gone, delete the file".to_owned()
                }
            })
        });
        Ok(files)
    }
}

fn place(path: &Path) -> Place {
    Place::document(&input_file::name(path).into(), 0)
}
