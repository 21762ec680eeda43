//! Ledgers: what a plan costs each cluster, and what it changes there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::{Estimate, WrittenGrade, estimates, written_grade};
use super::load::{FileLoad, Load};
use super::peer_delta::PeerDelta;
use super::units::written_number;
use crate::agent::applied::AppliedFile;
use crate::agent::model::Model;
use crate::config::Capacity;
use crate::diagnostic::Severity;
use crate::fleet::Fleet;
use crate::kilo::topology::KiloTopology;
use crate::manifest::{KUSTOMIZATION, Tree};
use crate::mesh;
use crate::name::ClusterName;
use crate::plan::Plan;
use crate::tree_diff::OnDiskTree;

/// A cluster and its load.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Target")]
pub struct Cost {
    /// Its name.
    #[schemars(example = &"east")]
    pub cluster: String,
    /// The worst grade of its quantities.
    #[schemars(with = "WrittenGrade")]
    #[serde(serialize_with = "written_grade")]
    pub grade: Option<Severity>,
    /// The quantities.
    #[serde(rename = "quantities")]
    pub estimates: Vec<Estimate>,
    /// The changes of the next render.
    pub change: CostChange,
    /// Its load.
    #[serde(skip)]
    pub load: Load,
}

/// The changes of the next render.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Change")]
pub struct CostChange {
    /// The Peers that change; empty if there are none.
    #[serde(flatten)]
    pub delta: PeerDelta,
    /// The seconds that Kilo needs to apply the change.
    #[serde(serialize_with = "written_number")]
    pub seconds: f64,
}

/// Files of Peers, by cluster.
pub type ByTarget = BTreeMap<String, Vec<AppliedFile>>;

/// The inputs from which the costs are counted.
#[derive(Debug)]
pub struct Ledger<'a> {
    fleet: &'a Fleet<'a>,
    plan: &'a Plan,
    tree: &'a Tree,
    capacity: &'a Capacity,
    /// The Peers that each cluster should have.
    after: ByTarget,
    /// The Peers that each cluster has now; nothing for those that are up to date.
    before: ByTarget,
    /// The targets of which a file cannot be read, so that it is unknown which Peers they have.
    unread: BTreeSet<&'a str>,
    /// The Peers in clusters that belong to no mesh.
    foreign: ByTarget,
}

impl Cost {
    /// Returns the quantities that exceed a limit.
    pub fn exceeded(&self) -> Vec<&Estimate> {
        self.estimates.iter().filter(|it| it.grade.is_some()).collect()
    }
}

impl<'a> Ledger<'a> {
    /// Reads a plan and its tree, which clusters have already.
    pub fn new(
        fleet: &'a Fleet<'a>,
        plan: &'a Plan,
        tree: &'a Tree,
        capacity: &'a Capacity,
    ) -> Self {
        Self {
            fleet,
            plan,
            tree,
            capacity,
            after: by_target(tree.iter().map(|(path, text)| (path.as_str(), text))),
            before: ByTarget::new(),
            unread: BTreeSet::new(),
            foreign: ByTarget::new(),
        }
    }

    /// Returns the same for clusters that have the tree on disk. The texts of its readable files that
    /// differ are given by path.
    #[must_use]
    pub fn replacing(
        mut self,
        on_disk: &'a OnDiskTree,
        differing: &[(Arc<str>, Arc<str>)],
    ) -> Self {
        self.before = by_target(differing.iter().map(|(path, text)| (&**path, text)));
        // Something else at the path of a generated file is not one.
        let blocked = on_disk.blocked.iter().map(|it| &it.path);
        for path in on_disk.missing.iter().chain(blocked) {
            if let Some((target, _)) = path.split_once('/') {
                self.before.entry(target.to_owned()).or_default();
            }
        }
        for (target, files) in &mut self.before {
            // Equal files are not read twice.
            let same = self.after.get(target).into_iter().flatten();
            let same = same.filter(|it| {
                let path = format!("{target}/{}.yaml", it.source);
                on_disk.same.contains(&path)
            });
            files.splice(0..0, same.cloned().collect::<Vec<_>>());
        }
        self.unread = on_disk.unread_targets();
        self
    }

    /// Returns the same for clusters of which some have other Peers, which people have looked up there.
    #[must_use]
    pub fn with_dumps(mut self, dumps: &BTreeMap<ClusterName, Vec<AppliedFile>>) -> Self {
        for (cluster, files) in dumps {
            let foreign = files.iter().map(|it| foreign(self.fleet, it));
            self.foreign.insert(cluster.to_string(), foreign.collect());
            self.before.insert(cluster.to_string(), files.clone());
            self.unread.remove(cluster.as_str());
        }
        self
    }

    /// Reads another plan and its tree, for clusters to which the Peers of this one have been applied.
    pub fn next<'n>(&self, fleet: &'n Fleet<'n>, plan: &'n Plan, tree: &'n Tree) -> Ledger<'n>
    where
        'a: 'n,
    {
        let mut before = self.after.clone();
        for target in &plan.targets {
            before.entry(target.cluster.to_string()).or_default();
        }
        for (target, files) in &self.foreign {
            let before = before.entry(target.clone()).or_default();
            before.extend(files.iter().cloned());
        }
        Ledger {
            before,
            foreign: self.foreign.clone(),
            ..Ledger::new(fleet, plan, tree, self.capacity)
        }
    }

    /// Returns whether it is unknown which Peers a target has.
    pub fn is_unread(&self, target: &str) -> bool {
        self.unread.contains(target)
    }

    /// Returns what the mesh costs each cluster, by name.
    pub fn costs(&self) -> Vec<Cost> {
        let targets = self.plan.targets.par_iter();
        targets.filter_map(|it| self.cost(&it.cluster)).collect()
    }

    fn cost(&self, cluster: &ClusterName) -> Option<Cost> {
        let own = self.topology(cluster)?;
        let files = |of: &ByTarget| of.get(cluster.as_str()).cloned();
        let mut after = files(&self.after).unwrap_or_default();
        after.extend(files(&self.foreign).unwrap_or_default());
        let model = Model::new(own, &after);
        let load = Load::count(&model, Some(self.sizes(cluster)));
        let delta = files(&self.before)
            .map(|before| PeerDelta::between(&Model::new(own, &before), &model))
            .unwrap_or_default();
        let estimates = estimates(&load, self.capacity);
        let seconds = delta.seconds(&load.nodes, &self.capacity.costs);
        Some(Cost {
            cluster: cluster.to_string(),
            grade: estimates.iter().filter_map(|it| it.grade).max(),
            estimates,
            change: CostChange { delta, seconds },
            load,
        })
    }

    fn sizes(&self, cluster: &ClusterName) -> FileLoad {
        let prefix = format!("{cluster}/");
        let texts = self.tree.range(prefix.clone()..);
        let own = texts.take_while(|(path, _)| path.starts_with(&prefix));
        let sizes: Vec<usize> = own.map(|(_, text)| text.len()).collect();
        FileLoad { entries: sizes.len(), largest: sizes.into_iter().max().unwrap_or_default() }
    }

    fn topology(&self, cluster: &ClusterName) -> Option<&'a Arc<KiloTopology>> {
        Some(&self.fleet.memberships(cluster).next()?.cluster.topology)
    }
}

/// Returns the Peers of a dump that do not come from a mesh of this run. A render does not change
/// them.
fn foreign(fleet: &Fleet, dump: &AppliedFile) -> AppliedFile {
    let meshes = || fleet.members().iter().map(|it| it.mesh);
    let mut content = (*dump.content).clone();
    content.peers.retain(|it| !mesh::is_ours(&it.name, meshes()));
    AppliedFile { source: Arc::clone(&dump.source), content: Arc::new(content) }
}

/// Returns the files of Peers of a tree, named without their folder and extension.
fn by_target<'p>(texts: impl Iterator<Item = (&'p str, &'p Arc<str>)>) -> ByTarget {
    let (mut targets, mut files) = (Vec::new(), Vec::new());
    for (path, text) in texts {
        let Some((target, name)) = path.split_once('/') else {
            continue;
        };
        if name == KUSTOMIZATION {
            continue;
        }
        let stem = name.strip_suffix(".yaml").unwrap_or(name);
        targets.push(target.to_owned());
        files.push((Arc::from(stem), Arc::clone(text)));
    }
    let mut by_target = ByTarget::new();
    for (target, file) in targets.into_iter().zip(AppliedFile::read_all(&files)) {
        by_target.entry(target).or_default().push(file);
    }
    by_target
}
