//! Clusters of which the nodes are known: `init` proposes their mesh.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::Quoted;
use clustermesh::name::{ClusterName, MeshName};
use clustermesh::proposal::Proposal;
#[cfg(feature = "snapshot")]
use clustermesh::rules::clusters::{self, Fault};
use clustermesh::rules::{Finding, proposal};
use clustermesh::snapshot::Snapshot;

use crate::Outcome;
#[cfg(feature = "snapshot")]
use crate::clock;
#[cfg(feature = "snapshot")]
use crate::cluster::{ClusterAnswer, Wanted};
use crate::commands::snapshot::{ListedNodes, dump_name, no_snapshot, read_dump};
use crate::files::ShownFiles;
use crate::input_file::{Mistakes, Unreadable};
#[cfg(feature = "snapshot")]
use crate::reach::{Addressed, ReachOptions};
use crate::settings::Settings;

/// The clusters to join.
#[derive(clap::Args)]
#[command(next_help_heading = "Your clusters")]
pub(super) struct ClusterOptions {
    /// Propose the mesh from the nodes of this context's cluster; repeatable
    ///
    /// The nodes are listed and saved as by `clustermesh snapshot`. Without CLUSTER, the cluster gets the
    /// name of the context. Ranges that nodes do not report, such as that of the Services, are left to you.
    #[cfg(feature = "snapshot")]
    #[arg(long = "context", value_name = "[CLUSTER=]CONTEXT", value_parser = context)]
    contexts: Vec<ClusterContext>,

    /// Propose the mesh from a JSON or YAML file with the nodes of a cluster; repeatable
    ///
    /// The file is the output of `kubectl get nodes -o json`; `-` is standard input.
    #[arg(long, value_name = "CLUSTER=FILE", value_parser = dump)]
    from: Vec<ClusterDump>,

    /// Name of the proposed mesh [default: mesh]
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

/// A cluster and the dump of its nodes.
#[derive(Clone, Debug)]
struct ClusterDump {
    cluster: ClusterName,
    path: PathBuf,
}

/// What is proposed.
pub(super) struct ProposedMesh {
    /// The mesh.
    pub(super) proposal: Proposal,
    /// The nodes of its clusters.
    pub(super) nodes: Vec<ListedNodes>,
    /// Contexts that have other names than their clusters.
    pub(super) contexts: Vec<ClusterContext>,
    /// Why it may not have been the clusters that answered.
    pub(super) findings: Vec<Finding>,
}

/// The nodes of a cluster, listed.
struct ReadCluster {
    nodes: ListedNodes,
    snapshot: Snapshot,
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
        (None, Ok(cluster)) => Ok(ClusterContext {
            cluster,
            context: text.to_owned(),
        }),
        (None, Err(_)) => Err(format!(
            "{} is not a valid cluster name; write CLUSTER=CONTEXT",
            Quoted(text)
        )),
    }
}

fn dump(text: &str) -> Result<ClusterDump, String> {
    let (cluster, path) = text
        .split_once('=')
        .filter(|it| !it.1.is_empty())
        .ok_or("expected CLUSTER=FILE")?;
    let cluster = cluster
        .parse()
        .map_err(|error| format!("{} is not a valid cluster name: {error}", Quoted(cluster)))?;
    let path = PathBuf::from(path);
    Ok(ClusterDump { cluster, path })
}

impl ClusterOptions {
    /// Returns whether a mesh is to be proposed.
    pub(super) fn are_given(&self) -> bool {
        0 < self.names().count()
    }

    /// Reads the nodes and proposes a mesh.
    ///
    /// # Errors
    /// A cluster that cannot be read, or clusters that cannot be joined.
    pub(super) fn propose(&self, settings: &mut Settings) -> Result<ProposedMesh, Unreadable> {
        let all: BTreeSet<&ClusterName> = self.names().collect();
        if all.len() < self.names().count() {
            return Err(anyhow!("every cluster needs a name of its own").into());
        }
        if all.len() < 2 {
            let problem = "a mesh has at least two clusters; add another --context or --from";
            return Err(anyhow!(problem).into());
        }
        let mut read = self.read_live(settings)?;
        for dump in &self.from {
            read.push(read_file(dump, settings)?);
        }
        let name = self.name.clone().map_or_else(|| "mesh".parse(), Ok);
        let name = name.map_err(|error| anyhow!("--name: {error}"))?;
        let snapshots: Vec<Snapshot> = read.iter().map(|it| it.snapshot.clone()).collect();
        let proposal = Proposal::new(name, &snapshots).map_err(|obstacles| {
            let findings = obstacles.iter().map(proposal::obstacle).collect();
            failed(findings, Outcome::Findings)
        })?;
        let findings = read
            .iter_mut()
            .flat_map(|it| std::mem::take(&mut it.findings));
        Ok(ProposedMesh {
            proposal,
            findings: findings.collect(),
            nodes: read.into_iter().map(|it| it.nodes).collect(),
            contexts: self.other_contexts(),
        })
    }

    /// Checks that nothing is given that has no effect.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let mut idle = vec![(
            self.name.is_some(),
            "--name works only with --context and --from",
        )];
        #[cfg(feature = "snapshot")]
        if self.contexts.is_empty() {
            idle.push((
                self.kubeconfig.is_some(),
                "--kubeconfig works only with --context",
            ));
            idle.push((
                self.timeout.is_some(),
                "--timeout works only with --context",
            ));
        }
        if self.are_given() {
            idle.remove(0);
        }
        match idle.into_iter().find(|it| it.0) {
            Some((_, problem)) => bail!("{problem}"),
            None => Ok(()),
        }
    }

    fn names(&self) -> impl Iterator<Item = &ClusterName> {
        let dumps = self.from.iter().map(|it| &it.cluster);
        #[cfg(feature = "snapshot")]
        let dumps = self.contexts.iter().map(|it| &it.cluster).chain(dumps);
        dumps
    }

    #[cfg(feature = "snapshot")]
    fn other_contexts(&self) -> Vec<ClusterContext> {
        let contexts = self.contexts.iter();
        let others = contexts.filter(|it| it.cluster.as_str() != it.context);
        others.cloned().collect()
    }

    #[cfg(not(feature = "snapshot"))]
    fn other_contexts(&self) -> Vec<ClusterContext> {
        Vec::new()
    }

    /// Lists the nodes of live clusters, in the given order.
    #[cfg(feature = "snapshot")]
    fn read_live(&self, settings: &mut Settings) -> Result<Vec<ReadCluster>, Unreadable> {
        let clusters: BTreeSet<&ClusterName> = self.contexts.iter().map(|it| &it.cluster).collect();
        let addressed = Addressed {
            read: &clusters,
            nameable: &clusters,
        };
        let contexts = self.contexts.iter();
        let contexts = contexts.map(|it| (&it.cluster, it.context.as_str()));
        let reach = ReachOptions::new(contexts, self.kubeconfig.as_ref(), self.timeout);
        reach.settle(settings);
        let settings: &Settings = settings;
        let mut contact = reach.contact(addressed, settings, &[])?;
        let mut answers = contact.ask(&clusters, (Wanted::Nodes, None), |cluster, answer| {
            read_answer(cluster, answer?, settings)
        })?;
        let (mut read, mut faults) = (Vec::new(), Vec::new());
        for ClusterContext { cluster, .. } in &self.contexts {
            match answers.remove(cluster) {
                Some(Ok(cluster)) => read.push(cluster),
                Some(Err(fault)) => faults.push(clusters::unread(cluster, &fault)),
                None => {}
            }
        }
        if faults.is_empty() {
            return Ok(read);
        }
        Err(failed(faults, Outcome::Unreadable))
    }

    #[cfg(not(feature = "snapshot"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as with the feature"
    )]
    fn read_live(&self, _: &mut Settings) -> Result<Vec<ReadCluster>, Unreadable> {
        Ok(Vec::new())
    }
}

fn failed(findings: Vec<Finding>, outcome: Outcome) -> Unreadable {
    Unreadable::Nothing(Mistakes {
        files: ShownFiles::new(Vec::new()),
        findings,
        outcome,
    })
}

#[cfg(feature = "snapshot")]
fn read_answer(
    cluster: &ClusterName,
    answer: ClusterAnswer,
    settings: &Settings,
) -> Result<ReadCluster, Fault> {
    let weaknesses = answer.weaknesses.into_iter();
    let findings = weaknesses.map(|it| clusters::weakness(cluster, it, Wanted::Nodes.answers()));
    let nodes = ListedNodes {
        cluster: cluster.clone(),
        listing: answer.listing,
        now: Some(clock::now()),
    };
    let snapshot = nodes.snapshot(settings).map_err(|error| {
        let problem = answer.hidden.hide(&error.to_string());
        Fault::Unreadable { problem }
    })?;
    Ok(ReadCluster {
        nodes,
        snapshot,
        findings: findings.collect(),
    })
}

fn read_file(dump: &ClusterDump, settings: &Settings) -> anyhow::Result<ReadCluster> {
    let nodes = ListedNodes {
        cluster: dump.cluster.clone(),
        listing: read_dump(&dump.path)?,
        now: None,
    };
    let snapshot = nodes.snapshot(settings);
    Ok(ReadCluster {
        snapshot: snapshot.map_err(|error| no_snapshot(&dump_name(&dump.path), &error))?,
        nodes,
        findings: Vec::new(),
    })
}
