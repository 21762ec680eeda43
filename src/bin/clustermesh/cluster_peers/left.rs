//! Clusters that left: those in no mesh, of which there are Peers.

use std::collections::BTreeMap;

use anyhow::bail;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::changes::renamed_clusters;
use clustermesh::document::nearest;
use clustermesh::fleet::Fleet;
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, reach};

use super::{ClusterPeers, clusters, within_ceiling};
use crate::allowed_losses::unknown_cluster;
use crate::disk;
use crate::failure::CommandResult;
use crate::inputs::Inputs;

impl ClusterPeers {
    /// Returns the Peers of clusters that left.
    pub(crate) fn left(&self) -> &BTreeMap<ClusterName, Vec<AppliedFile>> {
        &self.left
    }

    /// Checks the names of clusters that left: one that is almost that of a cluster is a mistake, unless other Peers
    /// have it as their source.
    ///
    /// # Errors
    /// A name is such a mistake.
    pub(crate) fn check_left(&self, clusters: &[ClusterName]) -> anyhow::Result<()> {
        let names = || clusters.iter().map(ClusterName::as_str);
        let is_mistake =
            |it: &&ClusterName| nearest(it.as_str(), names()).is_some() && !self.has_source(it);
        match self.left.keys().find(is_mistake) {
            Some(mistake) => bail!("--peers: {}", unknown_cluster(mistake.as_str(), names())),
            None => Ok(()),
        }
    }

    /// Returns whether a Peer has a cluster as its source.
    fn has_source(&self, cluster: &ClusterName) -> bool {
        let files = self.files.values().chain(self.left.values()).flatten();
        let mut peers = files.flat_map(|it| &it.content.peers);
        peers.any(|it| it.claims.source.as_ref() == Some(cluster))
    }

    /// Reads the folders of clusters that are in no mesh. Only a Peer with the label of a source shows that
    /// a folder is that of a cluster: one in it, or one of another cluster that has it as its source.
    ///
    /// # Errors
    /// The tree cannot be listed, or there are more Peers than a run accepts.
    pub(crate) fn read_left(&mut self, inputs: &mut Inputs) -> CommandResult<()> {
        let root = inputs.settings.rendered.value.clone();
        let roots = inputs.settings.roots_of(&inputs.settings.rendered);
        let known = clusters(inputs);
        let folders = disk::entries(&roots, &root)?.into_iter();
        let names = folders.filter_map(|(name, _)| name.to_str()?.parse().ok());
        let mut left: Vec<ClusterName> = names.filter(|it| !known.contains(it)).collect();
        left.sort();
        let mut found = Self::default();
        let later = found.read_folders(&inputs.settings, &left, None, |_, _| true)?;
        inputs.files.add_all_later(later);
        found.files.retain(|cluster, files| {
            files.iter().flat_map(|it| &it.content.peers).any(|it| it.claims.source.is_some())
                || self.has_source(cluster)
        });
        let is_left = |it: &Finding| {
            found.files.keys().any(|cluster| it.cluster.as_deref() == Some(cluster.as_str()))
        };
        found.findings.retain(is_left);
        let files = found.files.iter();
        let findings = files.flat_map(|(cluster, files)| reach::manifests(cluster, files));
        self.findings.extend(findings);
        self.findings.extend(found.findings);
        self.left = found.files;
        let all = self.files.iter().chain(&self.left);
        within_ceiling(inputs, all.flat_map(|it| it.1))
    }

    /// Takes the folders of clusters that left for those of clusters without a folder that have their nodes,
    /// and returns the names of both.
    pub(crate) fn rename_left(&mut self, fleet: &Fleet) -> Vec<(ClusterName, ClusterName)> {
        let files: Vec<&AppliedFile> = self.files.values().flatten().collect();
        let left = self.left.keys().collect();
        let renamed = renamed_clusters(&files, fleet, (&left, &self.absent));
        let mut names = Vec::new();
        for (was, is) in renamed {
            if let Some(files) = self.left.remove(&was) {
                self.absent.remove(&is);
                self.files.insert(is.clone(), files);
                names.push((was, is));
            }
        }
        names
    }
}
