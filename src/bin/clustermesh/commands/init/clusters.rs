//! Clusters of which the nodes are known: `init` proposes their mesh.

use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "snapshot")]
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::{Quoted, escaped};
use clustermesh::guard::NodeUids;
use clustermesh::name::{ClusterName, MeshName};
use clustermesh::net::Cidr;
use clustermesh::proposal::{HandMadePeer, Proposal};
use clustermesh::rules::{Finding, proposal};
use clustermesh::snapshot::Snapshot;
use clustermesh::text::{self, shell_word};

use super::home::Home;
use super::mesh_addition::MeshAddition;
use crate::commands::snapshot::{ClusterDump, ListedNodes, cluster_dump, read_nodes};
use crate::failure::{CommandFailure, CommandResult};
use crate::{Outcome, cluster_peers};

use crate::settings::Settings;

#[cfg(feature = "snapshot")]
mod live;

/// The clusters to join.
#[derive(clap::Args)]
#[command(next_help_heading = "Your clusters")]
pub(super) struct ClusterOptions {
    /// Propose the mesh from the nodes of this context's cluster; repeatable
    ///
    /// The nodes are listed and saved as by `clustermesh snapshot`. Without CLUSTER, the cluster gets the
    /// name of the context. Add ranges that nodes do not report yourself, such as the Service range.
    #[cfg(feature = "snapshot")]
    #[arg(long = "context", value_name = "[CLUSTER=]CONTEXT", value_parser = context)]
    contexts: Vec<ClusterContext>,

    /// Propose the mesh from a file with the nodes of a cluster; repeatable
    ///
    /// The file is the output of `kubectl get nodes -o json`; `-` is standard input.
    #[arg(long, value_name = "CLUSTER=FILE", value_parser = cluster_dump)]
    from: Vec<ClusterDump>,

    /// Propose entries for laptops from a file with the Peers of a cluster; repeatable
    ///
    /// The file is the output of `kubectl get peers -o yaml`; `-` is standard input. Peers of laptops and other hosts, which
    /// were made by hand, become entries of `externalPeers` as comments in the proposed mesh. Those of nodes are left out.
    #[arg(long, value_name = "CLUSTER=FILE", value_parser = cluster_dump)]
    peers: Vec<ClusterDump>,

    /// Take over the meshes of the ClusterMesh operator in this context's cluster
    ///
    /// Reads the ClusterMesh objects, and the nodes of their clusters with the kubeconfigs in the Secrets that
    /// they name. Needs the rights to list `clustermeshes.kilo.squat.ai` and to get these Secrets.
    #[cfg(feature = "snapshot")]
    #[arg(long, value_name = "CONTEXT", conflicts_with_all = ["contexts", "from", "name", "peers"])]
    secrets_from: Option<String>,

    /// Name of the new mesh, or of the one to extend [default: of the repository]
    #[arg(long, value_name = "MESH")]
    name: Option<MeshName>,

    /// Kubeconfig with the contexts [default: $KUBECONFIG, ~/.kube/config]
    #[cfg(feature = "snapshot")]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// Timeout for each response and each login plugin, in seconds [default: 60]
    #[cfg(feature = "snapshot")]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    timeout: Option<u64>,
}

/// A cluster and its context.
#[derive(Clone, Debug)]
pub(super) struct ClusterContext {
    pub(super) cluster: ClusterName,
    pub(super) context: String,
}

/// A proposed mesh, with the nodes of its clusters.
pub(super) struct ProposedMesh {
    /// The mesh.
    pub(super) yaml: String,
    /// Whether it is the operator's.
    pub(super) is_operators: bool,
    /// The nodes of its clusters.
    pub(super) nodes: Vec<ListedNodes>,
    /// The `--subnet` with which Kilo is to be started, where it does not run yet.
    pub(super) subnets: Vec<(ClusterName, Cidr)>,
    /// The next snapshot of each cluster, as a step.
    pub(super) next_snapshots: BTreeMap<ClusterName, String>,
    /// Whether it lists Peers that were made by hand.
    pub(super) lists_peers: bool,
    /// The mesh to which the clusters are added, if there is one.
    pub(super) addition: Option<MeshAddition>,
    /// Contexts that have other names than their clusters.
    pub(super) contexts: Vec<ClusterContext>,
    /// Findings about the servers that answered, which may not be those of the clusters.
    pub(super) findings: Vec<Finding>,
}

/// The nodes of a cluster, listed.
pub(super) struct ReadCluster {
    pub(super) nodes: ListedNodes,
    pub(super) snapshot: Snapshot,
    /// The ranges of its Services, if its API server shows them.
    pub(super) service_ranges: Vec<Cidr>,
    findings: Vec<Finding>,
}

#[cfg(feature = "snapshot")]
fn context(text: &str) -> Result<ClusterContext, String> {
    let named = text.split_once('=').and_then(|(cluster, context)| {
        let cluster = cluster.parse().ok()?;
        let context = context.to_owned();
        (!context.is_empty()).then_some(ClusterContext { cluster, context })
    });
    match (named, text.parse()) {
        (Some(named), _) => Ok(named),
        (None, Ok(cluster)) => Ok(ClusterContext { cluster, context: text.to_owned() }),
        (None, Err(_)) => {
            Err(format!("{} is not a valid cluster name; write CLUSTER=CONTEXT", Quoted(text)))
        }
    }
}

impl ClusterOptions {
    /// Returns whether a mesh is to be proposed.
    pub(super) fn are_given(&self) -> bool {
        #[cfg(feature = "snapshot")]
        if self.secrets_from.is_some() {
            return true;
        }
        0 < self.names().count()
    }

    /// Reads the nodes and proposes a mesh.
    ///
    /// # Errors
    /// A cluster that cannot be read, or clusters that cannot be joined.
    pub(super) fn propose(
        &self,
        settings: &mut Settings,
        home: &Home,
    ) -> CommandResult<ProposedMesh> {
        #[cfg(feature = "snapshot")]
        if let Some(context) = &self.secrets_from {
            return self.take_over(context, settings);
        }
        let all = self.different_names()?;
        if all.len() < 2 {
            let problem = "a mesh has at least two clusters; add another --context or --from";
            let above = settings.mesh_above().map(|it| {
                format!("; to add the cluster to the mesh of `{0}`, use -C {0}", it.display())
            });
            return Err(anyhow!("{problem}{}", above.unwrap_or_default()).into());
        }
        let read = self.read(settings)?;
        let name = self.name.clone().or_else(|| home.mesh_name());
        let name = name.map_or_else(|| "mesh".parse(), Ok);
        let name = name.map_err(|error| anyhow!("--name: {error}"))?;
        let snapshots: Vec<Snapshot> = read.iter().map(|it| it.snapshot.clone()).collect();
        let peers = self.hand_made(&all)?;
        let mut proposal = Proposal::new(name, &snapshots).map_err(|obstacles| {
            let mut uids = NodeUids::default();
            for snapshot in &snapshots {
                uids.set(&snapshot.cluster, &snapshot.nodes);
            }
            let order: Vec<ClusterName> = snapshots.iter().map(|it| it.cluster.clone()).collect();
            let findings = proposal::obstacles(&obstacles, &uids.twins(&order));
            CommandFailure::without_files(findings, Outcome::Findings)
        })?;
        proposal.add_externals(&peers, &snapshots);
        add_service_ranges(&mut proposal, &read);
        let mut mesh = ProposedMesh::new(proposal.to_yaml(), read);
        mesh.lists_peers = proposal.lists_peers();
        mesh.subnets = proposal.subnets().map(|(name, it)| (name.clone(), it)).collect();
        self.add_to(&mut mesh);
        Ok(mesh)
    }

    /// Reads the nodes of the clusters.
    pub(super) fn read(&self, settings: &mut Settings) -> CommandResult<Vec<ReadCluster>> {
        self.different_names()?;
        let mut read = self.read_live(settings)?;
        for dump in &self.from {
            let (nodes, snapshot) = read_nodes(dump, settings)?;
            read.push(ReadCluster {
                nodes,
                snapshot,
                service_ranges: Vec::new(),
                findings: Vec::new(),
            });
        }
        Ok(read)
    }

    /// Returns the command that takes the snapshot of a cluster from where it is read now.
    pub(super) fn snapshot_command(&self, name: &ClusterName) -> String {
        if let Some(dump) = self.from.iter().find(|it| it.cluster == *name) {
            let path = dump.path.to_str().filter(|it| *it != "-").unwrap_or("FILE");
            let path = shell_word(&escaped(path, 400));
            return format!("clustermesh snapshot --from {name}={path}");
        }
        #[cfg(feature = "snapshot")]
        if let Some(it) = self.other_contexts().iter().find(|it| it.cluster == *name) {
            let context = shell_word(&escaped(&it.context, 400));
            return format!("clustermesh snapshot {name} --context {context}");
        }
        format!("clustermesh snapshot {name}")
    }

    /// Returns these commands for all clusters, as a message lists them.
    pub(super) fn snapshot_commands(&self) -> String {
        text::list(self.names().map(|it| format!("`{}`", self.snapshot_command(it))))
    }

    fn different_names(&self) -> anyhow::Result<BTreeSet<&ClusterName>> {
        let mut all: BTreeSet<&ClusterName> = BTreeSet::new();
        if let Some(twice) = self.names().find(|it| !all.insert(it)) {
            let problem = "is given twice; write `--context NAME=CONTEXT` or `--from NAME=FILE`";
            bail!("the cluster name `{twice}` {problem} with different names");
        }
        Ok(all)
    }

    /// Returns the options that only a new mesh can have, if any is given.
    pub(super) fn only_for_new(&self) -> Option<&'static str> {
        #[cfg(feature = "snapshot")]
        if self.secrets_from.is_some() {
            return Some("--secrets-from");
        }
        (!self.peers.is_empty()).then_some("--peers")
    }

    /// Returns the name of the mesh, if it is given.
    pub(super) fn mesh_name(&self) -> Option<&MeshName> {
        self.name.as_ref()
    }

    /// Checks that nothing is given that has no effect.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let mut idle = vec![
            (self.name.is_some(), "--name works only with --context and --from"),
            (!self.peers.is_empty(), "--peers works only with --context and --from"),
        ];
        #[cfg(feature = "snapshot")]
        if self.contexts.is_empty() && self.secrets_from.is_none() {
            let problem = "--kubeconfig works only with --context and --secrets-from";
            idle.push((self.kubeconfig.is_some(), problem));
            let problem = "--timeout works only with --context and --secrets-from";
            idle.push((self.timeout.is_some(), problem));
        }
        if self.are_given() {
            idle.drain(..2);
        }
        match idle.into_iter().find(|it| it.0) {
            Some((_, problem)) => bail!("{problem}"),
            None => Ok(()),
        }
    }

    /// Reads the Peers that neither clustermesh nor its predecessor made.
    fn hand_made(&self, clusters: &BTreeSet<&ClusterName>) -> anyhow::Result<Vec<HandMadePeer>> {
        let mut peers = Vec::new();
        let mut read = BTreeSet::new();
        for ClusterDump { cluster, path } in &self.peers {
            if !read.insert(cluster) {
                bail!("--peers: `{cluster}` has more than one file; put all of its Peers into one");
            }
            if !clusters.contains(cluster) {
                bail!(
                    "--peers: {} is not a cluster of --context or --from",
                    Quoted(cluster.as_str())
                );
            }
            let (_, _, file) = cluster_peers::read_file(cluster, path)?;
            let made = file.content.peers.iter();
            let made = made
                .filter(|it| it.claims.source.is_none() && !it.claims.is_rendered && !it.is_ending);
            peers.extend(made.map(|it| HandMadePeer {
                cluster: cluster.clone(),
                name: it.name.clone(),
                spec: it.spec.clone(),
            }));
        }
        Ok(peers)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &ClusterName> {
        let dumps = self.from.iter().map(|it| &it.cluster);
        #[cfg(feature = "snapshot")]
        let dumps = self.contexts.iter().map(|it| &it.cluster).chain(dumps);
        dumps
    }

    /// Adds how the clusters of a mesh are read.
    pub(super) fn add_to(&self, mesh: &mut ProposedMesh) {
        mesh.contexts = self.other_contexts();
        let next = self.names().map(|name| {
            let is_dump = self.from.iter().any(|it| it.cluster == *name);
            let again = if is_dump { "dump its nodes again and " } else { "" };
            (name.clone(), format!("{again}run `{}`", self.snapshot_command(name)))
        });
        mesh.next_snapshots = next.collect();
    }

    #[cfg(feature = "snapshot")]
    fn other_contexts(&self) -> Vec<ClusterContext> {
        let contexts = self.contexts.iter();
        let others = contexts.filter(|it| it.cluster.as_str() != it.context);
        others.cloned().collect()
    }

    #[cfg(not(feature = "snapshot"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn other_contexts(&self) -> Vec<ClusterContext> {
        Vec::new()
    }

    #[cfg(not(feature = "snapshot"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    fn read_live(&self, _: &mut Settings) -> CommandResult<Vec<ReadCluster>> {
        Ok(Vec::new())
    }
}

/// Adds the ranges of Services that API servers show.
pub(super) fn add_service_ranges(proposal: &mut Proposal, read: &[ReadCluster]) {
    for ReadCluster { nodes, service_ranges, .. } in read {
        proposal.add_service_ranges(&nodes.cluster, service_ranges);
    }
}

impl ProposedMesh {
    pub(super) fn new(yaml: String, mut read: Vec<ReadCluster>) -> Self {
        let findings = read.iter_mut().flat_map(|it| std::mem::take(&mut it.findings));
        Self {
            yaml,
            is_operators: false,
            findings: findings.collect(),
            nodes: read.into_iter().map(|it| it.nodes).collect(),
            subnets: Vec::new(),
            next_snapshots: BTreeMap::new(),
            lists_peers: false,
            addition: None,
            contexts: Vec::new(),
        }
    }
}
