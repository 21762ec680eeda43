//! Printing: the manifests of one target, behind the same guards as the rendered tree.

use clustermesh::diagnostic::Severity;
use clustermesh::manifest;
use clustermesh::plan::{Plan, Target};
use clustermesh::rules::Purpose;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::Allowing;
use clustermesh::rules::services::holds_back_services;
use clustermesh::tree_diff::{Loss, losses_of};

use crate::allowed_losses::{self, Allowance};
use crate::checked_plan::{self, CheckResult, OutputCheck};
use crate::disk::{self, Roots};
use crate::inputs::Inputs;
use crate::threshold::Threshold;

/// The target to print, and the losses that a person allows.
pub(crate) struct PrintOrder<'a> {
    pub(crate) target: &'a str,
    /// Losses that are allowed.
    pub(crate) allowances: &'a [Allowance],
    /// The least severity that fails.
    pub(crate) threshold: Threshold,
    /// The way to allow more losses.
    pub(crate) allowing: Allowing<'a>,
}

/// The result of an order.
pub(crate) struct Printed<'a> {
    /// The findings of the rules, including losses.
    pub(crate) checked: CheckResult<'a>,
    /// The manifests, unless something is wrong.
    pub(crate) manifests: Option<String>,
}

/// Returns the manifests of a target, if nothing is wrong and nothing is lost. The rendered tree is
/// compared with the plan, if it is there, as if it were about to be written.
///
/// # Errors
/// An unknown target, or what [`checked_plan::check`] fails with.
pub(crate) fn print<'a>(inputs: &'a Inputs, order: &PrintOrder) -> anyhow::Result<Printed<'a>> {
    let fate = disk::is_there(&Roots::anywhere(), &inputs.settings.rendered.value)?
        .then_some(Fate::Replaced);
    let mut checked = checked_plan::check(inputs, Purpose::Render, fate, OutputCheck::Unasked)?;
    allowed_losses::allow_no_mesh(order.allowances, &mut checked, false);
    let losses = losses(&checked, order)?;
    checked.add_losses(&losses, order.allowing);
    // Only Peers are printed.
    checked.findings = checked.findings.map(|mut it| {
        if holds_back_services(&it) {
            it.severity = it.severity.min(Severity::Warning);
        }
        it
    });
    let is_wrong = !losses.is_empty() || order.threshold.fails(&checked.findings);
    let manifests = match checked.planned.as_ref().filter(|_| !is_wrong) {
        Some((_, plan)) => Some(manifest::stream(plan, target(plan, order.target)?)),
        None => None,
    };
    Ok(Printed { checked, manifests })
}

/// Returns what the target would lose without a person's permission.
fn losses(checked: &CheckResult, order: &PrintOrder) -> anyhow::Result<Vec<Loss>> {
    let Some((_, plan)) = &checked.planned else {
        return Ok(Vec::new());
    };
    if plan.targets.is_empty() && order.threshold.fails(&checked.findings) {
        return Ok(Vec::new());
    }
    let target = target(plan, order.target)?;
    allowed_losses::check(order.allowances, order.allowing.name(), plan, checked)?;
    let tree = checked.rendered.as_ref().map(|it| (&it.on_disk, &it.changes));
    let losses = losses_of(target, plan, tree);
    Ok(allowed_losses::unallowed(order.allowances, losses))
}

fn target<'a>(plan: &'a Plan, name: &str) -> anyhow::Result<&'a Target> {
    plan.targets
        .iter()
        .find(|it| it.cluster.as_str() == name)
        .ok_or_else(|| allowed_losses::unknown_target(name, plan))
}

/// Returns the paragraphs of a text as numbered steps.
pub(crate) fn numbered(steps: &str) -> String {
    let steps = steps
        .split("\n\n")
        .map(|step| step.trim_matches('\n').replace('\n', "\n   "))
        .filter(|step| !step.is_empty());
    let steps = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}\n"));
    steps.collect()
}
