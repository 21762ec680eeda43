//! Judgement: what the rules say of the evidence, and the plan, if there is nothing against it.

use clustermesh::change::Loss;
use clustermesh::config::ceilings::Counted;
use clustermesh::diagnostic::gravest_first;
use clustermesh::fleet::{Candidate, Fleet, Member};
use clustermesh::plan::{self, Plan};
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::{self, Finding, Purpose};
use rayon::prelude::*;

use crate::evidence::Evidence;
use crate::rendered::{self, Rendered};
use crate::settings::Settings;
use crate::{clock, input};

/// What the rules say.
pub(crate) struct Judgement<'a> {
    /// Everything that there is to tell.
    pub(crate) findings: Vec<Finding>,
    /// What can be rendered, unless something keeps it from being planned.
    pub(crate) planned: Option<(Fleet<'a>, Plan)>,
    /// How the rendered tree differs from that, if somebody wants to know.
    pub(crate) rendered: Option<Rendered>,
}

impl Judgement<'_> {
    /// Adds what targets would lose altogether, the gravest first as ever.
    pub(crate) fn add_losses(&mut self, losses: &[Loss]) {
        // Where there is no mesh at all, that says it all.
        let is_told = self.findings.iter().any(|it| it.rule.name == "no-mesh");
        if !losses.is_empty() && !is_told {
            self.findings.extend(rules::rendered::losses(losses));
            gravest_first(&mut self.findings);
        }
    }
}

/// Judges the evidence, and how much of it is to matter. The rendered tree is looked at if something
/// becomes of it; what targets would lose altogether is left to [`Judgement::add_losses`].
///
/// # Errors
/// A tree that cannot be read, or a plan that goes beyond what was declared: a mistake of this
/// program.
pub(crate) fn judge(
    evidence: &Evidence,
    purpose: Purpose,
    fate: Option<Fate>,
) -> anyhow::Result<Judgement<'_>> {
    let mut judgement = facts(evidence, fate)?;
    let (levels, today) = (&evidence.settings.config.levels, clock::today());
    let mut findings = judgement.findings;
    let mut doubts = levels.expired(today, purpose);
    if judgement.rendered.is_some() {
        // Without a plan, and a look at the tree, nobody knows what else would have been found.
        doubts.extend(levels.unused(&findings, today));
    }
    findings.extend(doubts);
    judgement.findings = levels.apply(findings, today, purpose);
    Ok(judgement)
}

/// Finds whatever there is.
fn facts(evidence: &Evidence, fate: Option<Fate>) -> anyhow::Result<Judgement<'_>> {
    let (candidates, missing) = Candidate::all(&evidence.meshes, &evidence.snapshots);
    let members: Vec<Member> = candidates.into_par_iter().map(Candidate::member).collect();
    let mut findings = evidence.findings.clone();
    let unread = missing.iter().filter(|missing| {
        // A file that is there and wrong is not missing.
        let mut findings = evidence.findings.iter();
        !findings.any(|it| it.cluster.as_deref() == Some(missing.cluster.as_str()))
    });
    findings.extend(unread.map(|missing| {
        let folder = &evidence.settings.snapshots.value;
        let path = folder.join(format!("{}.json", missing.cluster));
        rules::mesh::missing_snapshot(missing, &input::name(&path))
    }));
    let config = &evidence.settings.config.content;
    findings.extend(config.warnings.iter().cloned());
    if evidence.is_whole {
        findings.extend(evidence.settings.config.unnamed(&evidence.meshes));
    }
    let configured = config.clusters.keys().collect();
    findings.extend(rules::access::findings(&evidence.meshes, &configured));
    if evidence.is_whole && evidence.meshes.is_empty() {
        let files = evidence.settings.mesh_files()?;
        let files: Vec<String> = files.iter().map(|path| input::name(path)).collect();
        findings.push(rules::mesh::no_mesh(&files));
    }
    let fleet = Fleet::assemble(members, &evidence.snapshots).accepting(&config.accepted);
    let ceilings = evidence.settings.ceilings;
    let exceeded = ceilings.exceeded(Counted::Peers, fleet.peers());
    findings.extend(exceeded.iter().map(rules::mesh::beyond_ceiling));
    let is_whole = evidence.is_whole && missing.is_empty() && exceeded.is_none();
    let plan = is_whole.then(|| plan::plan(&fleet)).transpose()?;
    let settings = &evidence.settings;
    // Neither needs the other.
    let (mut told, of_files) = rayon::join(
        || rules::findings(&fleet, plan.as_ref()),
        || {
            let plan = plan.as_ref();
            plan.map(|plan| files((&fleet, plan), settings, fate))
                .transpose()
        },
    );
    let mut rendered = None;
    if let Some((of_files, compared)) = of_files? {
        told.extend(of_files);
        if let Some(compared) = &compared {
            rendered::show(&compared.standing, &evidence.files, settings);
        }
        rendered = compared;
    } else if fate.is_some() {
        // Nothing is replaced then.
        let standing = rendered::alone(&evidence.settings)?;
        told.extend(rules::gitops::standing(
            &standing,
            &Plan::default(),
            Fate::Kept,
        ));
        rendered::show(&standing, &evidence.files, &evidence.settings);
    }
    findings.extend(told);
    Ok(Judgement {
        findings,
        planned: plan.map(|plan| (fleet, plan)),
        rendered,
    })
}

/// Finds what there is to tell about the files of a plan, and how the rendered tree differs from them.
fn files(
    (fleet, plan): (&Fleet, &Plan),
    settings: &Settings,
    fate: Option<Fate>,
) -> anyhow::Result<(Vec<Finding>, Option<Rendered>)> {
    let texts = rendered::texts(plan);
    let bytes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    let limits = &settings.config.content.limits;
    let mut told = rules::gitops::planned(plan, &bytes, limits);
    let loads = rules::capacity::loads(fleet, plan, &bytes);
    told.extend(rules::capacity::planned(plan, &loads, &limits.capacity));
    let Some(fate) = fate else {
        return Ok((told, None));
    };
    let compared = rendered::compare(plan, &texts, settings)?;
    let standing = &compared.standing;
    told.extend(rules::rendered::findings(&compared.changes, fleet));
    told.extend(rules::gitops::standing(standing, plan, fate));
    let capacity = &limits.capacity;
    told.extend(rules::capacity::waves(plan, &loads, standing, capacity));
    Ok((told, Some(compared)))
}
