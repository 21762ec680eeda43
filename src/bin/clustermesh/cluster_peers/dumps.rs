//! Dumps: Peers that are not read from the rendered tree, but from files or API servers.

use std::collections::BTreeMap;
#[cfg(feature = "snapshot")]
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::fabric::Fabric;
use clustermesh::name::ClusterName;
use clustermesh::packet::messages;
use clustermesh::rules::Finding;
#[cfg(feature = "snapshot")]
use clustermesh::rules::clusters;

use super::{clusters as named_clusters, named, within_ceiling};
#[cfg(feature = "snapshot")]
use crate::Outcome;
#[cfg(feature = "snapshot")]
use crate::cluster::Wanted;
use crate::disk::Roots;
use crate::disk::tree::MANIFEST_LIMIT;
#[cfg(feature = "snapshot")]
use crate::failure::CommandFailure;
use crate::failure::CommandResult;
use crate::files::{LaterFile, manifests};
use crate::inputs::Inputs;
#[cfg(feature = "snapshot")]
use crate::reach::{Addressed, ReachOptions};
use crate::{disk, input_file};

/// Sources of Peers other than the rendered tree.
#[derive(Default, clap::Args)]
pub(crate) struct Dumps {
    /// Read the Peers of a cluster from a file instead of its rendered folder
    ///
    /// The file is the output of `kubectl get peers -o yaml`, or other manifests of Peers; `-` is standard input.
    #[arg(long, value_name = "CLUSTER=FILE", value_parser = dump)]
    pub(super) peers: Vec<Dump>,

    #[cfg(feature = "snapshot")]
    #[command(flatten)]
    live: Live,
}

/// The clusters whose Peers are read from their API servers.
#[cfg(feature = "snapshot")]
#[derive(Default, clap::Args)]
struct Live {
    /// Read the Peers of all clusters from their API servers
    ///
    /// `--peers` still reads the Peers of its cluster from a file. `clustermesh rbac --peers` prints the
    /// manifests that grant the rights.
    #[arg(long)]
    live: bool,

    #[command(flatten)]
    reach: ReachOptions,
}

/// A file with the Peers of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Dump {
    pub(super) cluster: String,
    pub(super) path: PathBuf,
}

/// The Peers of clusters that are not read from the rendered tree.
#[derive(Default)]
pub(crate) struct DumpedPeers {
    pub(crate) files: BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// The files of clusters that are in no mesh.
    pub(crate) left: BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// Reasons for which other servers may have answered, and clusters without the CRD.
    pub(crate) findings: Vec<Finding>,
}

/// Whether files of clusters that are in no mesh are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LeftClusters {
    Read,
    Refused,
}

fn dump(text: &str) -> Result<Dump, String> {
    match text.split_once('=') {
        Some((cluster, path)) if !cluster.is_empty() && !path.is_empty() => {
            Ok(Dump { cluster: cluster.to_owned(), path: PathBuf::from(path) })
        }
        _ => Err("expected CLUSTER=FILE".to_owned()),
    }
}

/// Reads the file with the Peers of a cluster, and returns its name and text too.
///
/// # Errors
/// It cannot be read, or contains anything but Peers.
pub(crate) fn read_file(
    cluster: &ClusterName,
    path: &Path,
) -> anyhow::Result<(Arc<str>, String, AppliedFile)> {
    let text = disk::read_text(&Roots::anywhere(), path, MANIFEST_LIMIT)?;
    let source: Arc<str> = Arc::from(input_file::name(path));
    let read = AppliedFile::of_dump(&source, &Arc::from(text.as_str()));
    let file = read.map_err(|error| {
        let name = match &*source {
            "-" => "the standard input".to_owned(),
            name => format!("`{name}`"),
        };
        anyhow!("cannot read the Peers of `{cluster}`: {name} {error}")
    })?;
    Ok((source, text, file))
}

impl Dumps {
    /// Returns whether the Peers of any cluster are not those of the rendered tree.
    pub(crate) fn are_any(&self) -> bool {
        self.is_live() || !self.peers.is_empty()
    }

    /// Returns whether Peers are read from API servers.
    #[cfg_attr(
        not(feature = "snapshot"),
        expect(clippy::unused_self, reason = "nothing is live without the feature")
    )]
    pub(super) fn is_live(&self) -> bool {
        #[cfg(feature = "snapshot")]
        let is_live = self.live.live || self.live.reach.given().is_some();
        #[cfg(not(feature = "snapshot"))]
        let is_live = false;
        is_live
    }

    /// Returns why files may be those of other clusters.
    pub(crate) fn wrong(&self, fabric: &Fabric) -> Vec<String> {
        let sites = self.peers.iter().filter_map(|it| fabric.site_named(&it.cluster));
        sites.filter_map(|it| messages::wrong_dump(fabric.site(it))).collect()
    }

    /// Reads the files of every cluster that has any.
    ///
    /// # Errors
    /// A file is of no cluster, cannot be read, or contains anything but Peers.
    pub(crate) fn read(&self, inputs: &mut Inputs) -> CommandResult<DumpedPeers> {
        self.read_for(inputs, LeftClusters::Refused)
    }

    /// Reads the files of every cluster that has any, also of those that left.
    ///
    /// # Errors
    /// A file cannot be read, or contains anything but Peers.
    pub(crate) fn read_all(&self, inputs: &mut Inputs) -> CommandResult<DumpedPeers> {
        self.read_for(inputs, LeftClusters::Read)
    }

    /// Reads the file of one cluster.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_one(
        &self,
        inputs: &mut Inputs,
        cluster: &ClusterName,
    ) -> CommandResult<DumpedPeers> {
        self.read_of(inputs, slice::from_ref(cluster), LeftClusters::Refused)
    }

    fn read_for(&self, inputs: &mut Inputs, of_left: LeftClusters) -> CommandResult<DumpedPeers> {
        let clusters = named_clusters(inputs);
        self.read_of(inputs, &clusters, of_left)
    }

    fn read_of(
        &self,
        inputs: &mut Inputs,
        clusters: &[ClusterName],
        of_left: LeftClusters,
    ) -> CommandResult<DumpedPeers> {
        let mut dumped = DumpedPeers::default();
        for Dump { cluster, path } in &self.peers {
            let left = cluster.parse().ok().filter(|_| of_left == LeftClusters::Read);
            let known = match (named(cluster, clusters), left) {
                (Ok(known), _) => known.clone(),
                (Err(_), Some(left)) => left,
                (Err(error), None) => return Err(anyhow!("--peers: {error}").into()),
            };
            if dumped.files.contains_key(&known) || dumped.left.contains_key(&known) {
                return Err(anyhow!(
                    "--peers: `{known}` has more than one file; put all of its Peers into one"
                )
                .into());
            }
            let (source, text, file) = read_file(&known, path)?;
            if disk::is_file(&Roots::anywhere(), path)? {
                let later = LaterFile::manifests(path.clone(), &Roots::anywhere());
                inputs.files.add_later(source, later);
            } else {
                // A pipe cannot be read again.
                inputs.files.add(manifests(&source, text));
            }
            let files =
                if clusters.contains(&known) { &mut dumped.files } else { &mut dumped.left };
            files.entry(known).or_default().push(file);
        }
        #[cfg(feature = "snapshot")]
        self.live.read(inputs, clusters, &mut dumped)?;
        let all = dumped.files.values().chain(dumped.left.values());
        within_ceiling(inputs, all.flatten())?;
        Ok(dumped)
    }
}

#[cfg(feature = "snapshot")]
impl Live {
    /// Reads the Peers of every cluster that has no files yet.
    fn read(
        &self,
        inputs: &mut Inputs,
        clusters: &[ClusterName],
        dumped: &mut DumpedPeers,
    ) -> CommandResult<()> {
        if !self.live {
            if let Some(option) = self.reach.given() {
                return Err(anyhow!("{option} works only with --live").into());
            }
            return Ok(());
        }
        let nameable: BTreeSet<&ClusterName> = clusters.iter().collect();
        let mut asked = nameable.clone();
        asked.retain(|it| !dumped.files.contains_key(*it));
        let addressed = Addressed { read: &asked, nameable: &nameable };
        self.reach.settle(&mut inputs.settings);
        let (settings, meshes) = (&inputs.settings, &inputs.meshes);
        let mut contact = self.reach.contact(addressed, settings, meshes)?;
        let answers = contact.ask(&asked, Wanted::Peers, None, |cluster, answer| {
            let answer = answer?;
            let has_crd = !answer.peers.versions.is_empty();
            let mut findings = answer.findings(cluster);
            findings.extend((!has_crd).then(|| clusters::missing_crd(cluster)));
            Ok((answer.peers.into_file(cluster)?, findings))
        })?;
        let mut findings = Vec::new();
        for (cluster, answer) in answers {
            match answer {
                Ok((file, findings)) => {
                    dumped.findings.extend(findings);
                    dumped.files.insert(cluster, file.into_iter().collect());
                }
                Err(fault) => findings.push(clusters::unread(&cluster, &fault)),
            }
        }
        if findings.is_empty() {
            return Ok(());
        }
        Err(CommandFailure::without_files(findings, Outcome::Unreadable))
    }
}
