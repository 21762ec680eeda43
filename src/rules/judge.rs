//! Judgement: everything that the rules find in what was read and planned.

use super::{Finding, Levels, Purpose, access, capacity, findings, gitops, rendered};
use crate::change::{Changes, Standing};
use crate::config::{Config, Date};
use crate::fleet::Fleet;
use crate::mesh::Mesh;
use crate::plan::Plan;

/// Everything that is judged.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What is wrong with the files in themselves.
    pub mistakes: &'a [Finding],
    /// The meshes, and what is left of those with mistakes.
    pub meshes: &'a [Mesh],
    /// The config.
    pub config: &'a Config,
    /// The clusters, with the values of their nodes.
    pub fleet: &'a Fleet<'a>,
    /// What can be rendered, unless something keeps it from being planned.
    pub planned: Option<Planned<'a>>,
    /// The rendered tree, if something becomes of it.
    pub tree: Option<Tree<'a>>,
}

/// A plan, with the sizes of its files.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How many bytes the text of each of its blocks has.
    pub bytes: &'a [usize],
}

/// The rendered tree as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// What is in the files that differ from the plan, and what else is there.
    pub standing: &'a Standing,
    /// What a render would change, if there is a plan.
    pub changes: Option<&'a Changes>,
    /// What becomes of it.
    pub fate: gitops::Fate,
}

/// How much findings matter, and why they are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Standard<'a> {
    /// The levels and hidden findings of the config.
    pub levels: &'a Levels,
    /// The day.
    pub today: Date,
    /// Why findings are looked for.
    pub purpose: Purpose,
}

/// Returns everything that the rules find, as grave as it is to be, the gravest first. What targets
/// would lose altogether depends on flags, and is left to [`rendered::add_losses`].
pub fn judge(evidence: &Evidence, standard: Standard) -> Vec<Finding> {
    let Standard {
        levels,
        today,
        purpose,
    } = standard;
    let mut found = facts(evidence);
    let mut doubts = levels.expired(today, purpose);
    if evidence.tree.is_some_and(|tree| tree.changes.is_some()) {
        // Without a plan, and a look at the tree, other rules may still have had findings.
        doubts.extend(levels.unused(&found, today));
    }
    found.extend(doubts);
    levels.apply(found, today, purpose)
}

fn facts(evidence: &Evidence) -> Vec<Finding> {
    let configured = evidence.config.clusters.keys().collect();
    let plan = evidence.planned.map(|it| it.plan);
    // Neither needs the other.
    let (of_clusters, of_files) =
        rayon::join(|| findings(evidence.fleet, plan), || files(evidence));
    evidence
        .mistakes
        .iter()
        .cloned()
        .chain(access::findings(evidence.meshes, &configured))
        .chain(of_clusters)
        .chain(of_files)
        .collect()
}

/// Returns what there is to report of the files of a plan, and of those in the tree.
fn files(evidence: &Evidence) -> Vec<Finding> {
    let limits = &evidence.config.limits;
    let Some(Planned { plan, bytes }) = evidence.planned else {
        // Nothing is replaced then.
        let standing = evidence.tree.map(|it| it.standing).into_iter();
        let fate = gitops::Fate::Kept;
        return standing
            .flat_map(|it| gitops::standing(it, &Plan::default(), fate))
            .collect();
    };
    let mut findings = gitops::planned(plan, bytes, limits);
    let loads = capacity::loads(evidence.fleet, plan, bytes);
    findings.extend(capacity::planned(plan, &loads, &limits.capacity));
    if let Some(Tree {
        standing,
        changes,
        fate,
    }) = evidence.tree
    {
        let changes = changes.into_iter();
        findings.extend(changes.flat_map(|it| rendered::findings(it, evidence.fleet)));
        findings.extend(gitops::standing(standing, plan, fate));
        let capacity = &limits.capacity;
        findings.extend(capacity::waves(plan, &loads, standing, capacity));
    }
    findings
}
