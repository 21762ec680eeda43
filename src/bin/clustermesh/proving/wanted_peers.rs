//! The Peers that `render` would write. The proof does not use them: they only show whether the tree is up
//! to date, and what nodes are the cause of.

use std::collections::BTreeSet;

use clustermesh::agent::fabric::Fabric;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::manifest;
use clustermesh::mirror::Mirrors;
use clustermesh::plan::Plan;
use clustermesh::proof::excused::Excused;
use clustermesh::rules::rendered::PlannedFleet;
use clustermesh::rules::verified::{OutdatedTree, RenderDoubts};
use clustermesh::rules::{self, Finding, Subject};

use crate::checked_plan::{self, RenderPlan};
use crate::cluster_peers::{ClusterPeers, Dumps, KnownContents, Undelivered};
use crate::input_file;
use crate::inputs::Inputs;
use crate::threshold::Threshold;
use crate::tree_comparison::{self, TreeComparison};

/// The result of a `render`, compared with the rendered tree.
pub(crate) struct WantedPeers<'a> {
    /// The clusters.
    pub(crate) fleet: Fleet<'a>,
    /// Their Peers, unless a mistake prevents a plan.
    pub(crate) plan: Option<Plan>,
    /// The rendered tree, if it is another one.
    pub(crate) outdated: Option<OutdatedTree>,
    /// The changes of the tree that clusters lack, if it is up to date. All have the Peers of the tree unless there are dumps.
    undelivered: Option<Undelivered>,
}

impl<'a> WantedPeers<'a> {
    /// Plans the inputs, and compares the rendered tree if all Peers are those of the tree. It may have been compared before.
    ///
    /// # Errors
    /// As for [`checked_plan::check`].
    pub(crate) fn plan(
        inputs: &'a Inputs,
        dumps: &Dumps,
        applied: &ClusterPeers,
        compared: Option<TreeComparison>,
    ) -> anyhow::Result<Self> {
        let Some(planned) = checked_plan::plan(inputs)? else {
            return Ok(Self {
                fleet: checked_plan::fleet(inputs).0,
                plan: None,
                outdated: None,
                undelivered: None,
            });
        };
        let compare = || tree_comparison::compare(&planned.plan, &planned.texts, &inputs.settings);
        let compared = compared.map_or_else(compare, Ok);
        // A tree that cannot be read is not up to date, and nothing else depends on it with dumps.
        let is_current = compared.as_ref().is_ok_and(|it| it.survey.is_current());
        let (mut outdated, mut undelivered) = (None, None);
        if is_current {
            undelivered = Some(applied.undelivered(inputs, dumps, &planned));
        } else if !dumps.are_any() {
            outdated = Some(outdated_tree(inputs, &planned, &compared?)?);
        }
        let RenderPlan { fleet, plan, .. } = planned;
        Ok(Self { fleet, plan: Some(plan), outdated, undelivered })
    }

    /// Returns what `render` would write; nothing without a plan.
    pub(crate) fn planned(&self) -> Option<PlannedFleet<'_>> {
        self.plan.as_ref().map(|plan| PlannedFleet { fleet: &self.fleet, plan })
    }

    /// Returns the Peers that `render` would write, if the tree has others.
    pub(crate) fn unwritten(&self, inputs: &Inputs) -> Option<ClusterPeers> {
        let plan = self.outdated.as_ref().and(self.plan.as_ref())?;
        let (settings, texts) = (&inputs.settings, manifest::texts(plan));
        Some(ClusterPeers::planned(settings, plan, &texts, &KnownContents::default()))
    }

    /// Adds to a fabric what the tree delivers to clusters that lack it.
    pub(crate) fn delivered<'f>(&'f self, fabric: Fabric<'f>) -> Fabric<'f> {
        match &self.undelivered {
            Some(undelivered) => undelivered.to(fabric),
            None => fabric,
        }
    }

    /// Returns the Services that clusters get of others; none without a plan.
    pub(crate) fn mirrors(&self, inputs: &'a Inputs) -> Mirrors<'a> {
        let plan = self.plan.as_ref();
        plan.map_or_else(Mirrors::default, |it| checked_plan::mirrors(inputs, &self.fleet, it))
    }

    /// Returns what only the nodes of single clusters cause.
    pub(crate) fn of_nodes(&self, inputs: &Inputs) -> Vec<Finding> {
        rules::of_nodes(&self.fleet, self.plan.as_ref(), &inputs.settings.config.content)
    }

    /// Returns what is left out for nodes' claims; nothing without a plan.
    pub(crate) fn excused(&self) -> Excused {
        let plan = self.plan.as_ref();
        plan.map_or_else(Excused::default, |plan| rules::excused(&self.fleet, plan))
    }
}

/// Returns how a tree differs from what `render` would write.
fn outdated_tree(
    inputs: &Inputs,
    planned: &RenderPlan,
    rendered: &TreeComparison,
) -> anyhow::Result<OutdatedTree> {
    let survey = &rendered.survey;
    let root = &inputs.settings.rendered.value;
    let named = |path: &String| input_file::name(&root.join(path));
    let blocked: BTreeSet<String> = survey.blocked.iter().map(|it| named(&it.path)).collect();
    let differing = [&survey.missing, &survey.changed, &survey.stale];
    let files = differing.into_iter().flatten().map(named).chain(blocked.clone());
    let findings = checked_plan::of_render(inputs, planned, rendered)?;
    let is_refusal = |it: &&Finding| Threshold(Severity::Error).fails([*it]);
    let refusals = findings.iter().filter(is_refusal);
    let losses = rendered.changes.losses.iter();
    let refused = refusals.map(|it| it.rule).chain(losses.map(rules::rendered::rule_of)).collect();
    let foreign = survey.foreign.iter().map(|it| named(&it.path)).collect();
    let is_doubt =
        |it: &&Finding| it.severity == Severity::Warning && it.rule.subject == Subject::Plan;
    let doubts = findings.iter().filter(is_doubt).map(|it| it.rule).collect();
    let reasons = RenderDoubts { refused, doubts };
    let outdated = OutdatedTree::new(&input_file::name(root), files.collect(), &blocked, &reasons);
    Ok(outdated.beside(foreign))
}
