//! The policies of clusters: what their owners accept, each in a file of its own.

use clustermesh::document::Source;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::policy::{self, Policy};
use clustermesh::rules::Finding;

use super::cluster_files::{ClusterFiles, KnownClusters};
use crate::failure::{CommandFailure, CommandResult};
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::settings::{SettingOrigin, Settings};

/// The policies of the clusters in meshes.
#[derive(Default)]
pub(crate) struct ReadPolicies {
    pub(crate) policies: Vec<Policy>,
    /// Their files.
    pub(crate) sources: Vec<Source>,
    /// The mistakes in them.
    pub(super) findings: Vec<Finding>,
    /// Whether a policy is wrong, so that it is unknown what its cluster accepts.
    pub(crate) is_broken: bool,
    /// Whether one is not YAML at all.
    pub(super) is_unparsable: bool,
}

impl ReadPolicies {
    /// Reads the policies of the clusters that meshes name.
    pub(crate) fn read(settings: &Settings, known: KnownClusters) -> CommandResult<Self> {
        let mut read = Self::default();
        let Some(folder) = &settings.policies.value else {
            return Ok(read);
        };
        let roots = settings.home_roots();
        let files = ClusterFiles::list(&roots, folder, "policy", known)?;
        read.is_broken = !files.misnamed.is_empty();
        read.findings = files.misnamed;
        read.findings.extend(files.unnamed);
        for (cluster, path) in files.named {
            let roots = roots.clone();
            read.read_file(&cluster, &InputFile { path, roots })?;
        }
        // Another folder may have the default name.
        if let (SettingOrigin::File(place), true) = (&settings.policies.origin, known.are_all())
            && read.sources.is_empty()
            && !read.is_broken
        {
            read.findings.push(policy::none_in(place.clone()));
        }
        Ok(read)
    }

    /// Reads the file of a cluster. Anything but a file is a failure: what the cluster accepts is unknown.
    fn read_file(&mut self, cluster: &ClusterName, file: &InputFile) -> CommandResult<()> {
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

    /// Narrows meshes by them.
    pub(super) fn apply(&mut self, meshes: &mut [Mesh], is_whole: bool) {
        self.findings.extend(policy::apply(&self.policies, meshes, is_whole));
    }
}
