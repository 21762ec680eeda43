//! The policies of clusters: what their owners accept, each in a file of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clustermesh::document::{Source, nearest};
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::policy::{self, Policy};
use clustermesh::rules::{self, Finding};

use crate::disk;
use crate::failure::CommandFailure;
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::settings::{SettingOrigin, Settings};

/// The policies of the clusters in meshes.
#[derive(Default)]
pub(crate) struct ReadPolicies {
    /// The policies.
    pub(crate) policies: Vec<Policy>,
    /// Their files.
    pub(crate) sources: Vec<Source>,
    /// The mistakes in them.
    pub(super) findings: Vec<Finding>,
    /// Files that are not about any of the clusters, each with the name that it is about.
    unnamed: Vec<(String, PathBuf)>,
    /// Whether a policy is wrong, so that it is unknown what its cluster accepts.
    pub(crate) is_broken: bool,
    /// Whether one is not YAML at all.
    pub(super) is_unparsable: bool,
}

impl ReadPolicies {
    /// Reads the policies of the clusters that meshes name.
    pub(crate) fn read(
        settings: &Settings,
        named: &BTreeSet<String>,
    ) -> Result<Self, CommandFailure> {
        let mut read = Self::default();
        let Some(folder) = &settings.policies.value else {
            return Ok(read);
        };
        let roots = settings.home_roots();
        for (name, _) in disk::entries(&roots, folder)? {
            let path = folder.join(&name);
            let text =
                |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
            let (stem, ending) = (text(path.file_stem()), text(path.extension()));
            let looks_like_one = ["yaml", "yml", "json"].contains(&&*ending.to_lowercase());
            if ending == "yaml" && named.contains(&stem) {
                let cluster = stem.parse().with_context(|| disk::shown(&path))?;
                let roots = roots.clone();
                read.read_file(&cluster, &InputFile { path, roots })?;
            } else if looks_like_one && named.contains(&stem.to_lowercase()) {
                read.findings.push(misnamed(&stem, &path));
                read.is_broken = true;
            } else if looks_like_one {
                read.unnamed.push((stem, path));
            }
        }
        Ok(read)
    }

    /// Reads the file of a cluster. Anything but a file is a failure: what the cluster accepts is unknown.
    fn read_file(&mut self, cluster: &ClusterName, file: &InputFile) -> Result<(), CommandFailure> {
        match input_file::source(file, MESH_LIMIT) {
            Ok(source) => self.add(cluster, source),
            Err(CommandFailure::Syntax(it)) => {
                self.findings.extend(it.problems);
                self.sources.push(it.source);
                (self.is_broken, self.is_unparsable) = (true, true);
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn add(&mut self, cluster: &ClusterName, source: Source) {
        match policy::read(cluster, &source) {
            Ok(policy) => {
                self.findings.extend(policy.warnings.iter().cloned());
                self.policies.push(policy);
            }
            Err(problems) => {
                self.findings.extend(problems);
                self.is_broken = true;
            }
        }
        self.sources.push(source);
    }

    /// Reports files that are about none of the clusters that meshes name. Without all meshes, that is not known.
    pub(super) fn find_unnamed(&mut self, named: &BTreeSet<String>, settings: &Settings) {
        // Another folder may have the default name.
        if let SettingOrigin::File(place) = &settings.policies.origin
            && self.sources.is_empty()
            && !self.is_broken
        {
            self.findings.push(policy::none_in(place.clone()));
        }
        let unnamed = self.unnamed.iter();
        let unnamed = unnamed.map(|(stem, path)| unnamed_file(stem, path, named));
        self.findings.extend(unnamed);
    }

    /// Narrows meshes by them.
    pub(super) fn apply(&mut self, meshes: &mut [Mesh]) {
        self.findings.extend(policy::apply(&self.policies, meshes));
    }
}

/// Reports a file that is not about a cluster of a mesh: its name is a mistake, or a leftover.
fn unnamed_file(stem: &str, path: &Path, named: &BTreeSet<String>) -> Finding {
    let nearest = nearest(stem, named.iter().map(String::as_str));
    rules::snapshots::unnamed(stem, nearest, place(path))
}

/// Reports a file that looks like the policy of a cluster and would not be read.
fn misnamed(stem: &str, path: &Path) -> Finding {
    policy::misnamed(&stem.to_lowercase(), place(path))
}

fn place(path: &Path) -> Place {
    Place::document(&input_file::name(path).into(), 0)
}
