//! The Peers that `render` would write. The proof does not use them: they only show whether the tree is up
//! to date, and what nodes are the cause of.

use clustermesh::agent::fabric::Fabric;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::mirror::Mirrors;
use clustermesh::plan::Plan;
use clustermesh::proof::excused::Excused;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::PlannedFleet;
use clustermesh::rules::verified::OutdatedTree;
use clustermesh::rules::{self, Finding, Purpose};

use crate::checked_plan::{self, OutputCheck, RenderPlan};
use crate::cluster_peers::{ClusterPeers, Dumps, Undelivered};
use crate::input_file;
use crate::inputs::Inputs;
use crate::threshold::Threshold;

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
    /// Plans the inputs, and compares the rendered tree if all Peers are those of the tree.
    ///
    /// # Errors
    /// As for [`checked_plan::check`].
    pub(crate) fn plan(
        inputs: &'a Inputs,
        dumps: &Dumps,
        applied: &ClusterPeers,
    ) -> anyhow::Result<Self> {
        let Some(planned) = checked_plan::plan(inputs)? else {
            return Ok(Self {
                fleet: checked_plan::fleet(inputs).0,
                plan: None,
                outdated: None,
                undelivered: None,
            });
        };
        let undelivered = applied.undelivered(inputs, dumps, &planned);
        let RenderPlan { fleet, plan, .. } = planned;
        let is_outdated = !dumps.are_any() && undelivered.is_none();
        Ok(Self {
            fleet,
            plan: Some(plan),
            outdated: is_outdated.then(|| outdated(inputs)).transpose()?.flatten(),
            undelivered,
        })
    }

    /// Returns what `render` would write; nothing without a plan.
    pub(crate) fn planned(&self) -> Option<PlannedFleet<'_>> {
        self.plan.as_ref().map(|plan| PlannedFleet { fleet: &self.fleet, plan })
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

/// Returns the tree if it is not what `render` would write, and there is a plan.
fn outdated(inputs: &Inputs) -> anyhow::Result<Option<OutdatedTree>> {
    let fate = Some(Fate::Replaced);
    let checked = checked_plan::check(inputs, Purpose::Render, fate, OutputCheck::Unasked)?;
    // Another run may have rendered it in between.
    let Some(rendered) = checked.rendered.as_ref().filter(|it| !it.survey.is_current()) else {
        return Ok(None);
    };
    let survey = &rendered.survey;
    let blocked = survey.blocked.iter().map(|it| &it.path);
    let differing = [&survey.missing, &survey.changed, &survey.stale];
    let differing = differing.into_iter().flatten().chain(blocked);
    let root = &inputs.settings.rendered.value;
    let differing: Vec<&String> = differing.collect();
    let folders = differing.iter().filter_map(|path| path.split_once('/'));
    let targets = folders.map(|(target, _)| target.to_owned()).collect();
    let files = differing.iter().map(|path| input_file::name(&root.join(path)));
    let is_refusal = |it: &&Finding| Threshold(Severity::Error).fails([*it]);
    let refusals = checked.findings.iter().filter(is_refusal);
    let losses = rendered.changes.losses.iter();
    let refused = refusals.map(|it| it.rule).chain(losses.map(rules::rendered::rule_of)).collect();
    Ok(Some(OutdatedTree::new(files.collect(), targets, &refused)))
}
