//! Judgement: what the rules say of the evidence, and the plan, if there is nothing against it.

use clustermesh::fleet::{Candidate, Fleet, Member};
use clustermesh::plan::{self, Plan};
use clustermesh::rules::{self, Finding, Purpose};
use rayon::prelude::*;

use crate::evidence::Evidence;
use crate::{clock, input};

/// What the rules say.
pub(crate) struct Judgement<'a> {
    /// Everything that there is to tell.
    pub(crate) findings: Vec<Finding>,
    /// What can be rendered, unless something keeps it from being planned.
    pub(crate) planned: Option<(Fleet<'a>, Plan)>,
}

/// Judges the evidence, and how much of it is to matter.
///
/// # Errors
/// A plan that goes beyond what was declared: a mistake of this program.
pub(crate) fn judge(evidence: &Evidence, purpose: Purpose) -> anyhow::Result<Judgement<'_>> {
    let mut judgement = facts(evidence)?;
    let (levels, today) = (&evidence.settings.config.levels, clock::today());
    let mut findings = judgement.findings;
    let mut doubts = levels.expired(today, purpose);
    if judgement.planned.is_some() {
        // Without a plan nobody knows what else would have been found.
        doubts.extend(levels.unused(&findings, today));
    }
    findings.extend(doubts);
    let mut findings = levels.apply(findings, today, purpose);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    judgement.findings = findings;
    Ok(judgement)
}

/// Finds whatever there is.
fn facts(evidence: &Evidence) -> anyhow::Result<Judgement<'_>> {
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
    let configured = evidence.settings.config.content.clusters.keys().collect();
    findings.extend(rules::access::findings(&evidence.meshes, &configured));
    if evidence.is_whole && evidence.meshes.is_empty() {
        let files = evidence.settings.mesh_files()?;
        let files: Vec<String> = files.iter().map(|path| input::name(path)).collect();
        findings.push(rules::mesh::no_mesh(&files));
    }
    let fleet = Fleet::assemble(members, &evidence.snapshots);
    let is_whole = evidence.is_whole && missing.is_empty();
    let plan = is_whole.then(|| plan::plan(&fleet)).transpose()?;
    findings.extend(rules::findings(&fleet, plan.as_ref()));
    Ok(Judgement {
        findings,
        planned: plan.map(|plan| (fleet, plan)),
    })
}
