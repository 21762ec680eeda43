//! Reach: how clusters are contacted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::config::kubectl;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::rules::clusters::Fault;
use serde_json::Value;

use crate::cluster::{self, ClusterAnswer, Kubeconfigs, TimeLimits, Wanted};
use crate::input_file;
use crate::settings::{CLUSTER_ACCESS, ClusterAccess, SettingOrigin, Settings};

mod contexts;
mod routes;

pub(crate) use contexts::Addressed;
use contexts::Contexts;
use routes::Routes;

/// Options for the clusters that a command contacts.
#[derive(Default, clap::Args)]
#[command(next_help_heading = CLUSTER_ACCESS)]
pub(crate) struct ReachOptions {
    /// Kubeconfig with the contexts [default: $KUBECONFIG, ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// Context of the cluster, or CLUSTER=CONTEXT for one of several; repeatable
    ///
    /// By default, a cluster is read with the context in the config, or else with the context of the
    /// cluster's name.
    #[arg(
        long = "context",
        value_name = "[CLUSTER=]CONTEXT",
        value_parser = NonEmptyStringValueParser::new()
    )]
    contexts: Vec<String>,

    /// Read the kubeconfigs from Secrets in the cluster of this context
    ///
    /// The mesh names the Secrets in `kubeconfigSecretRef`, as for the ClusterMesh operator.
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) secrets_from: Option<String>,

    /// Timeout for each response and each login plugin, in seconds [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    timeout: Option<u64>,
}

impl ReachOptions {
    /// Returns `kubectl` as it reaches a cluster, if a kubeconfig of this machine does.
    pub(crate) fn kubectl(&self, cluster: &ClusterName, settings: &Settings) -> Option<String> {
        if !self.contexts.is_empty() || self.secrets_from.is_some() {
            return None;
        }
        let ClusterAccess::Kubeconfig { files, context } = settings.access(cluster) else {
            return None;
        };
        // kubectl finds the default itself.
        let named = match files.origin {
            SettingOrigin::Flag(_) | SettingOrigin::File(_) => files.value.first(),
            _ => None,
        };
        let file = named.map(|it| input_file::name(it));
        Some(kubectl(file.as_deref(), context.value.as_deref()))
    }

    /// The names of these options in clap.
    pub(crate) const NAMES: [&str; 4] = ["kubeconfig", "contexts", "secrets_from", "timeout"];

    /// Returns the options for clusters whose contexts are known.
    pub(crate) fn new<'a>(
        contexts: impl Iterator<Item = (&'a ClusterName, &'a str)>,
        kubeconfig: Option<&PathBuf>,
        timeout: Option<u64>,
    ) -> Self {
        let contexts = contexts.map(|(cluster, context)| format!("{cluster}={context}"));
        Self {
            kubeconfig: kubeconfig.cloned(),
            contexts: contexts.collect(),
            secrets_from: None,
            timeout,
        }
    }

    /// Returns the same with the Secrets of the operator in the cluster of this context.
    pub(crate) fn with_secrets_from(self, context: &str) -> Self {
        Self { secrets_from: Some(context.to_owned()), ..self }
    }

    /// Lists the operator's `ClusterMesh` objects in the cluster that has the Secrets.
    pub(crate) fn meshes(
        &self,
        settings: &Settings,
        kubeconfigs: &mut Kubeconfigs,
    ) -> io::Result<Result<Vec<Value>, Fault>> {
        let context = self.secrets_from.as_deref().unwrap_or_default();
        match routes::store_context(context, settings, kubeconfigs) {
            Ok(selected) => cluster::meshes(selected, self.patience()),
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// The time that an answer, or a login plugin, may take.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout.unwrap_or(60))
    }

    /// Takes the kubeconfig that was named.
    pub(crate) fn settle(&self, settings: &mut Settings) {
        settings.name_kubeconfig("--kubeconfig", self.kubeconfig.as_ref());
    }

    /// Returns how clusters are contacted. The cluster of a context depends on all of them, so it is
    /// decided once.
    ///
    /// # Errors
    /// A context is named for no cluster.
    pub(crate) fn contact<'a>(
        &'a self,
        clusters: Addressed<'_>,
        settings: &'a Settings,
        meshes: &'a [Mesh],
    ) -> anyhow::Result<Contact<'a>> {
        let kubeconfigs = Kubeconfigs::new(self.patience());
        self.contact_with(kubeconfigs, clusters, settings, meshes)
    }

    /// Returns the same with kubeconfigs that may be read already.
    ///
    /// # Errors
    /// A context is named for no cluster.
    pub(crate) fn contact_with<'a>(
        &'a self,
        kubeconfigs: Kubeconfigs,
        clusters: Addressed<'_>,
        settings: &'a Settings,
        meshes: &'a [Mesh],
    ) -> anyhow::Result<Contact<'a>> {
        Ok(Contact {
            contexts: contexts::read(&self.contexts, clusters, meshes)?,
            options: self,
            settings,
            meshes,
            kubeconfigs,
        })
    }

    /// Returns the first of the options that was given, as it is written.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.kubeconfig.is_some(), "--kubeconfig"),
            (!self.contexts.is_empty(), "--context"),
            (self.secrets_from.is_some(), "--secrets-from"),
            (self.timeout.is_some(), "--timeout"),
        ];
        given.into_iter().find(|it| it.0).map(|it| it.1)
    }
}

/// The access to the clusters of a command, for any number of requests.
pub(crate) struct Contact<'a> {
    options: &'a ReachOptions,
    settings: &'a Settings,
    meshes: &'a [Mesh],
    contexts: Contexts,
    /// Read once, as a pipe gives them only once.
    kubeconfigs: Kubeconfigs,
}

impl Contact<'_> {
    /// Returns how clusters are reached, and which are not.
    pub(crate) fn routes(&mut self, clusters: &BTreeSet<&ClusterName>) -> Routes {
        routes::routes(
            clusters,
            self.settings,
            self.meshes,
            self.options,
            &self.contexts,
            &mut self.kubeconfigs,
        )
    }

    /// Asks clusters, reads each answer or failure when it arrives, and returns what was read. All of it
    /// takes no longer than `limit`.
    pub(crate) fn ask<T>(
        &mut self,
        clusters: &BTreeSet<&ClusterName>,
        wanted: Wanted,
        limit: Option<Duration>,
        mut read: impl FnMut(&ClusterName, Result<ClusterAnswer, Fault>) -> T,
    ) -> anyhow::Result<BTreeMap<ClusterName, T>> {
        let (routes, lost) = self.routes(clusters);
        let mut answers = BTreeMap::new();
        for (cluster, fault) in lost {
            let answer = read(&cluster, Err(fault));
            answers.insert(cluster, answer);
        }
        let limits = TimeLimits { answer: self.options.patience(), total: limit };
        cluster::ask(routes, wanted, limits, |arrival| {
            let answer = read(&arrival.cluster, arrival.answer);
            answers.insert(arrival.cluster, answer);
        })?;
        Ok(answers)
    }
}
