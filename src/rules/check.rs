//! The check: everything that the rules find in what was read and planned.

use super::command::with_access;
use super::kilo::DIFFERENT_FAMILIES;
use super::rendered::PlannedFleet;
use super::{
    Finding, LevelledFindings, Levels, Purpose, access, capacity, costs, findings, gitops,
    rendered, services, states,
};
use crate::config::{Config, Date};
use crate::fleet::Fleet;
use crate::manifest::PeerSetTexts;
use crate::mesh::Mesh;
use crate::mirror::Mirrors;
use crate::plan::Plan;
use crate::rules::capacity::target_load;
use crate::tree_diff::{OnDiskTree, TreeDiff};

/// Everything that is judged.
#[derive(Clone, Copy, Debug)]
pub struct CheckInputs<'a> {
    /// The mistakes in single files.
    pub mistakes: &'a [Finding],
    /// The meshes, and what is left of those with mistakes.
    pub meshes: &'a [Mesh],
    /// The config.
    pub config: &'a Config,
    /// The clusters, with the values of their nodes.
    pub fleet: &'a Fleet<'a>,
    /// The plan, unless a mistake prevents it.
    pub planned: Option<CheckedPlan<'a>>,
    /// The rendered tree, if something becomes of it.
    pub tree: Option<CheckedTree<'a>>,
    /// The Services that clusters get, if there is a plan.
    pub mirrors: Option<&'a Mirrors<'a>>,
    /// The guards in the repository.
    pub guards: &'a [gitops::GuardFile],
}

/// A plan, with its files.
#[derive(Clone, Copy, Debug)]
pub struct CheckedPlan<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The text of each set of Peers.
    pub texts: &'a PeerSetTexts,
}

/// The rendered tree as it stands.
#[derive(Clone, Copy, Debug)]
pub struct CheckedTree<'a> {
    /// The files that differ from the plan, and foreign files.
    pub on_disk: &'a OnDiskTree,
    /// The changes that a render would make, if there is a plan.
    pub changes: Option<&'a TreeDiff>,
    /// The next change to the generated files.
    pub fate: gitops::Fate,
}

/// The severity of findings, and the purpose of the check.
#[derive(Clone, Copy, Debug)]
pub struct CheckStandard<'a> {
    /// The levels and hidden findings of the config.
    pub levels: &'a Levels,
    /// The day.
    pub today: Date,
    /// The purpose of the check.
    pub purpose: Purpose,
}

impl CheckStandard<'_> {
    /// Returns findings with their levels. Every finding of a command passes here before it counts or is printed.
    pub fn level(self, findings: Vec<Finding>) -> LevelledFindings {
        self.levels.apply(findings, self.today, self.purpose)
    }

    /// Returns the entries that have expired, as far as they matter for the purpose.
    pub fn expired(self) -> Vec<Finding> {
        self.levels.expired(self.today, self.purpose)
    }
}

/// Returns everything that the rules find, as severe as it is to be, the most severe first. The
/// losses of whole targets depend on flags, and are left to [`rendered::add_losses`].
pub fn check(inputs: &CheckInputs, standard: CheckStandard) -> LevelledFindings {
    let CheckStandard { levels, today, purpose } = standard;
    let mut found = facts(inputs);
    if let (Purpose::Validate, Some(planned)) = (purpose, inputs.planned) {
        found.extend(costs::findings(inputs.fleet, inputs.config));
        found.extend(costs::many_tunnels(inputs.meshes, planned.plan));
    }
    if inputs.planned.is_some() {
        found.extend(gitops::guards(inputs, purpose));
    }
    let mut doubts = standard.expired();
    if inputs.tree.is_some_and(|tree| tree.changes.is_some()) {
        // Without a plan, and a look at the tree, other rules may still have had findings.
        doubts.extend(levels.unused(&found, today));
    }
    found.extend(doubts);
    standard.level(found)
}

fn facts(inputs: &CheckInputs) -> Vec<Finding> {
    let configured = inputs.config.clusters.keys().collect();
    let plan = inputs.planned.map(|it| it.plan);
    // Neither needs the other.
    let (of_clusters, of_files) = rayon::join(|| findings(inputs.fleet, plan), || files(inputs));
    let mut found: Vec<Finding> = inputs
        .mistakes
        .iter()
        .cloned()
        .chain(access::findings(inputs.meshes, &configured))
        .chain(states::findings(inputs.config, inputs.meshes, inputs.fleet, plan))
        .chain(of_clusters)
        .chain(inputs.mirrors.into_iter().flat_map(services::findings))
        .chain(of_files)
        .map(|it| match it.rule {
            // Its help may be about nodes of the other cluster, which it names.
            rule if rule == &DIFFERENT_FAMILIES => it,
            _ => with_access(it, inputs.config),
        })
        .collect();
    if let (Some(plan), Some(tree)) = (plan, inputs.tree) {
        rendered::raise_lost(&mut found, plan, tree.on_disk);
    }
    found
}

/// Returns what there is to report of the files of a plan, and of those in the tree.
fn files(inputs: &CheckInputs) -> Vec<Finding> {
    let limits = &inputs.config.limits;
    let Some(CheckedPlan { plan, texts }) = inputs.planned else {
        // Nothing is replaced then.
        let on_disk = inputs.tree.map(|it| it.on_disk).into_iter();
        let fate = gitops::Fate::Kept;
        return on_disk.flat_map(|it| gitops::on_disk(it, &Plan::default(), fate)).collect();
    };
    let mut findings = gitops::planned(plan, texts, limits);
    let loads = target_load::loads(inputs.fleet, plan, texts);
    findings.extend(capacity::planned(plan, &loads, &limits.capacity));
    if let Some(CheckedTree { on_disk, changes, fate }) = inputs.tree {
        let changes = changes.into_iter();
        let planned = PlannedFleet { fleet: inputs.fleet, plan };
        findings.extend(changes.flat_map(|it| rendered::findings(it, planned, inputs.config)));
        findings.extend(gitops::on_disk(on_disk, plan, fate));
    }
    findings
}
