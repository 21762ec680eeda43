//! Costs: what the mesh costs each cluster, from what would be rendered and from what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::model::Model;
use clustermesh::capacity::{Estimate, FileLoad, Lever, Load, Wave, estimates, levers};
use clustermesh::config::Capacity;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::kilo::topology::KiloTopology;
use clustermesh::manifest::{KUSTOMIZATION, Tree};
use clustermesh::mesh;
use clustermesh::name::ClusterName;
use clustermesh::plan::Plan;
use rayon::prelude::*;

use crate::disk::tree_file;
use crate::rendered::Rendered;
use crate::settings::Settings;

/// A cluster and its load.
pub(super) struct Cost {
    /// The cluster.
    pub(super) cluster: String,
    /// Its load.
    pub(super) load: Load,
    /// The changes that a render would make for it; empty if there are none.
    pub(super) wave: Wave,
    /// Every quantity.
    pub(super) estimates: Vec<Estimate>,
    /// The ways to reduce the load.
    pub(super) levers: Vec<Lever>,
}

impl Cost {
    /// Returns the most severe grade.
    pub(super) fn grade(&self) -> Option<Severity> {
        self.estimates.iter().filter_map(|it| it.grade).max()
    }
}

/// Files of Peers, by cluster.
pub(super) type ByTarget = BTreeMap<String, Vec<AppliedFile>>;

/// The inputs from which the costs are counted.
pub(super) struct Ledger<'a> {
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
    /// The internal addresses of all nodes.
    internal: BTreeSet<IpAddr>,
}

impl<'a> Ledger<'a> {
    /// Reads what would be rendered, and what differs from it: the tree on disk, or what people have
    /// looked up in clusters.
    pub(super) fn new(
        fleet: &'a Fleet<'a>,
        plan: &'a Plan,
        rendered: &'a Rendered,
        settings: &'a Settings,
        dumps: &BTreeMap<ClusterName, Vec<AppliedFile>>,
    ) -> Self {
        let after = rendered_files(&rendered.tree);
        let mut before = before(rendered, settings);
        for (target, files) in &mut before {
            // Equal files are not read twice.
            let same = after.get(target).into_iter().flatten();
            let same = same.filter(|it| {
                let path = format!("{target}/{}.yaml", it.source);
                rendered.on_disk.same.contains(&path)
            });
            files.splice(0..0, same.cloned().collect::<Vec<_>>());
        }
        before.extend(
            dumps
                .iter()
                .map(|(it, files)| (it.to_string(), files.clone())),
        );
        let mut unread = rendered.on_disk.unread_targets();
        unread.retain(|it| !dumps.keys().any(|dumped| dumped.as_str() == *it));
        let foreign = dumps.iter().map(|(cluster, files)| {
            let files = files.iter().map(|it| foreign(fleet, it));
            (cluster.to_string(), files.collect())
        });
        Self {
            fleet,
            plan,
            tree: &rendered.tree,
            capacity: &settings.config.content.limits.capacity,
            after,
            before,
            unread,
            foreign: foreign.collect(),
            internal: internal_addresses(fleet, plan),
        }
    }

    /// Reads what would be rendered by another plan, after these Peers have been applied.
    pub(super) fn next<'n>(
        &self,
        fleet: &'n Fleet<'n>,
        plan: &'n Plan,
        tree: &'n Tree,
        applied: &ByTarget,
    ) -> Ledger<'n>
    where
        'a: 'n,
    {
        let mut before = applied.clone();
        for target in &plan.targets {
            before.entry(target.cluster.to_string()).or_default();
        }
        for (target, files) in &self.foreign {
            before
                .entry(target.clone())
                .or_default()
                .extend(files.iter().cloned());
        }
        Ledger {
            fleet,
            plan,
            tree,
            capacity: self.capacity,
            after: rendered_files(tree),
            before,
            unread: BTreeSet::new(),
            foreign: self.foreign.clone(),
            internal: internal_addresses(fleet, plan),
        }
    }

    /// Returns the limits.
    pub(super) fn capacity(&self) -> &'a Capacity {
        self.capacity
    }

    /// Returns whether it is unknown which Peers a target has.
    pub(super) fn is_unread(&self, target: &str) -> bool {
        self.unread.contains(target)
    }

    /// Returns what each cluster should have.
    pub(super) fn after(&self) -> &ByTarget {
        &self.after
    }

    /// Returns what the mesh costs each cluster, by name.
    pub(super) fn costs(&self) -> Vec<Cost> {
        let targets = self.plan.targets.par_iter();
        targets.filter_map(|it| self.cost(&it.cluster)).collect()
    }

    fn cost(&self, cluster: &ClusterName) -> Option<Cost> {
        let own = own(self.fleet, cluster)?;
        let files = |of: &ByTarget| of.get(cluster.as_str()).cloned();
        let foreign = files(&self.foreign).unwrap_or_default();
        let mut after = files(&self.after).unwrap_or_default();
        after.extend(foreign.iter().cloned());
        let model = Model::new(own, &after);
        let mut load = Load::count(&model, Some(self.sizes(cluster)));
        for bundle in &mut load.bundles {
            bundle.is_foreign = foreign.iter().any(|it| *it.source == *bundle.name);
        }
        let wave = files(&self.before)
            .map(|before| {
                let before = Model::new(own, &before);
                Wave::between(&before, &model)
            })
            .unwrap_or_default();
        Some(Cost {
            cluster: cluster.to_string(),
            estimates: estimates(&load, Some(&wave), self.capacity),
            levers: levers(&model, &load, Some(&wave), &self.internal, self.capacity),
            load,
            wave,
        })
    }

    fn sizes(&self, cluster: &ClusterName) -> FileLoad {
        let prefix = format!("{cluster}/");
        let texts = self.tree.iter();
        let sizes: Vec<usize> = texts
            .filter(|(path, _)| path.starts_with(&prefix))
            .map(|(_, text)| text.len())
            .collect();
        FileLoad {
            entries: sizes.len(),
            largest: sizes.into_iter().max().unwrap_or_default(),
        }
    }
}

/// Returns the Peers of a dump that do not come from a mesh of this run. A render does not change
/// them.
fn foreign(fleet: &Fleet, dump: &AppliedFile) -> AppliedFile {
    let meshes = || fleet.members().iter().map(|it| it.mesh);
    let mut content = (*dump.content).clone();
    content
        .peers
        .retain(|it| !mesh::is_ours(&it.name, meshes()));
    AppliedFile {
        source: Arc::clone(&dump.source),
        content: Arc::new(content),
    }
}

fn own<'f>(fleet: &'f Fleet, cluster: &ClusterName) -> Option<&'f Arc<KiloTopology>> {
    Some(&fleet.memberships(cluster).next()?.cluster.topology)
}

/// Returns the files of Peers of a wanted tree, by target.
fn rendered_files(tree: &Tree) -> ByTarget {
    by_target(tree.iter().map(|(path, text)| (path, Arc::clone(text))))
}

/// Returns the files of Peers, named without their folder and extension.
fn by_target<'p>(texts: impl Iterator<Item = (&'p String, Arc<str>)>) -> ByTarget {
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
        files.push((Arc::from(stem), text));
    }
    let mut by_target = ByTarget::new();
    for (target, file) in targets.into_iter().zip(AppliedFile::read_all(&files)) {
        by_target.entry(target).or_default().push(file);
    }
    by_target
}

/// Returns the current content of files that are out of date, by target.
fn before(rendered: &Rendered, settings: &Settings) -> ByTarget {
    let root = &settings.rendered.value;
    let roots = settings.roots_of(&settings.rendered);
    let on_disk = &rendered.on_disk;
    let texts = on_disk.files.iter().map(|file| {
        let text = tree_file::read(&roots, &root.join(&file.path));
        (&file.path, text.unwrap_or_default())
    });
    let mut before = by_target(texts);
    // Something else at the path of a generated file is not one.
    let blocked = on_disk.blocked.iter().map(|it| &it.path);
    for path in on_disk.missing.iter().chain(blocked) {
        if let Some((target, _)) = path.split_once('/') {
            before.entry(target.to_owned()).or_default();
        }
    }
    before
}

/// Returns the internal addresses of all nodes.
fn internal_addresses(fleet: &Fleet, plan: &Plan) -> BTreeSet<IpAddr> {
    plan.targets
        .iter()
        .filter_map(|it| own(fleet, &it.cluster))
        .flat_map(|target| target.nodes.iter())
        .filter_map(|it| it.kilo.internal_address())
        .collect()
}
