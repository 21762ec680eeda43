//! The policies of clusters: what their owners accept, each in a file of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clustermesh::document::{Source, nearest};
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::policy::{self, Policy};
use clustermesh::rules::{self, Finding};

use crate::disk;
use crate::failure::CommandFailure;
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::settings::Settings;

/// The policies of the clusters in meshes.
#[derive(Default)]
pub(super) struct ReadPolicies {
    /// The policies.
    policies: Vec<Policy>,
    /// Their files.
    pub(super) sources: Vec<Source>,
    /// The mistakes in them.
    pub(super) findings: Vec<Finding>,
    /// Whether a policy is wrong, so that it is unknown what its cluster accepts.
    pub(super) is_broken: bool,
    /// Whether one is not YAML at all.
    pub(super) is_unparsable: bool,
}

impl ReadPolicies {
    /// Reads the policies of the clusters that meshes name.
    pub(super) fn read(
        settings: &Settings,
        named: &BTreeSet<String>,
    ) -> Result<Self, CommandFailure> {
        let mut read = Self::default();
        let Some(folder) = &settings.policies.value else {
            return Ok(read);
        };
        let roots = &settings.config.roots;
        for path in disk::files_in(roots, folder, &["yaml", "yml"])? {
            let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            let cluster = stem.parse().ok().filter(|_| named.contains(stem));
            let Some(cluster) = cluster else {
                read.findings
                    .push(unnamed(stem, &input_file::name(&path), named));
                continue;
            };
            let roots = roots.clone();
            match input_file::source(&InputFile { path, roots }, MESH_LIMIT) {
                Ok(source) => read.add(&cluster, source),
                Err(CommandFailure::Syntax(it)) => {
                    read.findings.extend(it.problems);
                    read.sources.push(it.source);
                    (read.is_broken, read.is_unparsable) = (true, true);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(read)
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

    /// Narrows meshes by them.
    pub(super) fn apply(&mut self, meshes: &mut [Mesh]) {
        self.findings.extend(policy::apply(&self.policies, meshes));
    }
}

/// Reports a file that is not about a cluster of a mesh: its name is a mistake, or a leftover.
fn unnamed(stem: &str, file: &str, named: &BTreeSet<String>) -> Finding {
    let nearest = nearest(stem, named.iter().map(String::as_str));
    let place = Place::document(&file.into(), 0);
    rules::snapshots::unnamed(stem, nearest, place)
}
