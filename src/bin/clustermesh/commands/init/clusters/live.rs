//! Live clusters: `init` lists their nodes, and the meshes of the operator.

use std::collections::BTreeSet;
use std::slice;

use anyhow::anyhow;
use clustermesh::diagnostic::Quoted;
use clustermesh::document::Source;
use clustermesh::name::ClusterName;
use clustermesh::rules::Finding;
use clustermesh::rules::clusters::{self, Fault, UNREADABLE};
use clustermesh::{mesh, yaml};

use super::{ClusterContext, ClusterOptions, ProposedMesh, ReadCluster};
use crate::Outcome;
use crate::cluster::{ClusterAnswer, Kubeconfigs, Wanted, useless};
use crate::commands::snapshot::ListedNodes;
use crate::failure::{CommandFailure, CommandResult};
use crate::reach::{Addressed, Contact, ReachOptions};
use crate::settings::Settings;

/// The first lines of a file with the operator's meshes.
const TAKEN_OVER: &str = "\
# The ClusterMesh objects of the operator, taken over by `clustermesh init`. Only
# `clustermesh snapshot --secrets-from` needs the fields `local` and `kubeconfigSecretRef`.
";

impl ClusterOptions {
    /// Lists the nodes of the contexts' clusters, in the given order.
    pub(super) fn read_live(&self, settings: &mut Settings) -> CommandResult<Vec<ReadCluster>> {
        let clusters: BTreeSet<&ClusterName> = self.contexts.iter().map(|it| &it.cluster).collect();
        let addressed = Addressed { read: &clusters, nameable: &clusters };
        let reach = self.reach(&self.contexts);
        reach.settle(settings);
        let mut contact = reach.contact(addressed, settings, &[])?;
        let mut read = read(&mut contact, &clusters, settings, clusters::unread_new)?;
        let given = |it: &ReadCluster| {
            self.contexts.iter().position(|context| context.cluster == it.nodes.cluster)
        };
        read.sort_by_key(given);
        Ok(read)
    }

    /// Reads the meshes of the operator, and the nodes of their clusters.
    pub(super) fn take_over(
        &self,
        context: &str,
        settings: &mut Settings,
    ) -> CommandResult<ProposedMesh> {
        let reach = self.reach(&[]).with_secrets_from(context);
        reach.settle(settings);
        let mut kubeconfigs = Kubeconfigs::new(reach.patience());
        let objects = reach.meshes(settings, &mut kubeconfigs);
        let objects = objects.map_err(anyhow::Error::from)?.map_err(|fault| {
            CommandFailure::without_files(
                vec![clusters::unread_meshes(&fault)],
                Outcome::Unreadable,
            )
        })?;
        if objects.is_empty() {
            let context = Quoted(context);
            let problem = anyhow!("the cluster of context {context} has no ClusterMesh objects");
            return Err(problem.into());
        }
        let documents: Vec<String> = objects.iter().map(yaml::document).collect();
        let yaml = format!("{TAKEN_OVER}{}", documents.join("---\n"));
        let source = Source::parse("mesh.yaml", yaml.as_str()).map_err(CommandFailure::Syntax)?;
        let reading = mesh::read(slice::from_ref(&source));
        if !reading.is_usable() {
            return Err(CommandFailure::wrong(vec![source], reading.diagnostics));
        }
        let entries = reading.meshes.iter().flat_map(|it| &it.entries);
        let all: BTreeSet<&ClusterName> = entries.map(|it| &it.name).collect();
        let addressed = Addressed { read: &all, nameable: &all };
        let mut contact = reach.contact_with(kubeconfigs, addressed, settings, &reading.meshes)?;
        let mut mesh =
            ProposedMesh::new(yaml, read(&mut contact, &all, settings, clusters::unread)?);
        mesh.is_operators = true;
        Ok(mesh)
    }

    fn reach(&self, contexts: &[ClusterContext]) -> ReachOptions {
        let contexts = contexts.iter().map(|it| (&it.cluster, it.context.as_str()));
        ReachOptions::new(contexts, self.kubeconfig.as_ref(), self.timeout)
    }
}

/// Lists the nodes of all clusters, or of none.
fn read(
    contact: &mut Contact,
    clusters: &BTreeSet<&ClusterName>,
    settings: &Settings,
    unread: fn(&ClusterName, &Fault) -> Finding,
) -> CommandResult<Vec<ReadCluster>> {
    let answers =
        contact.ask(clusters, Wanted::NodesAndServiceRanges, None, |cluster, answer| {
            read_answer(cluster, answer?, settings)
        })?;
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for (cluster, answer) in answers {
        match answer {
            Ok(answer) => read.push(answer),
            Err(fault) => faults.push(unread(&cluster, &fault)),
        }
    }
    if faults.is_empty() {
        return Ok(read);
    }
    Err(CommandFailure::without_files(faults, Outcome::Unreadable))
}

fn read_answer(
    cluster: &ClusterName,
    answer: ClusterAnswer,
    settings: &Settings,
) -> Result<ReadCluster, Fault> {
    let findings = answer.findings(cluster);
    let nodes = ListedNodes {
        cluster: cluster.clone(),
        listing: answer.listing,
        now: Some(answer.listed_at),
    };
    let snapshot = nodes.snapshot(settings).map_err(|error| {
        let problem = answer.hidden.hide(&error.to_string());
        useless(&UNREADABLE, &problem)
    })?;
    Ok(ReadCluster { nodes, snapshot, service_ranges: answer.service_ranges, findings })
}
