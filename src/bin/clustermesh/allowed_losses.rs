//! Allowed losses: the losses of Peers that a person allows.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::plan::Plan;
use clustermesh::tree_diff::Loss;
use clustermesh::{rules, text};

use crate::checked_plan::CheckResult;
use crate::input_file;
use crate::inputs::Inputs;

/// The largest number of names in a message.
const LISTED: usize = 20;

/// A target that may be emptied, or lose one source.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    /// None for every target.
    target: Option<ClusterName>,
    /// None for every source.
    source: Option<String>,
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (target, source) = match text.split_once('/') {
            Some((target, source)) => (target, Some(source)),
            None => (text, None),
        };
        let target = match target {
            "*" => None,
            name => Some(name.parse().map_err(|error| {
                format!("{} is not a valid cluster name: {error}", Quoted(name))
            })?),
        };
        if source.is_some_and(|source| source.is_empty() || source.contains('/')) {
            return Err("expected TARGET or TARGET/SOURCE".to_owned());
        }
        let source = source.map(str::to_owned);
        Ok(Self { target, source })
    }
}

impl Allowance {
    fn allows(&self, target: Option<&str>, source: Option<&str>) -> bool {
        let is_target = self.target.as_ref().is_none_or(|it| Some(it.as_str()) == target);
        let is_source = self.source.as_ref().is_none_or(|it| Some(it.as_str()) == source);
        is_target && is_source
    }

    fn allows_loss(&self, loss: &Loss) -> bool {
        match loss {
            Loss::EmptyTarget { target } | Loss::Target { target, .. } => {
                self.allows(Some(target), None)
            }
            Loss::Source { target, source, .. } | Loss::Unrecorded { target, source } => {
                self.allows(Some(target), Some(source))
            }
            Loss::SilentSource { source } => self.allows(None, Some(source)),
            Loss::RenamedMesh(renamed) => self.allows(None, Some(&renamed.from)),
        }
    }
}

/// Returns the losses that a person has not allowed.
pub(crate) fn unallowed(allowances: &[Allowance], mut losses: Vec<Loss>) -> Vec<Loss> {
    losses.retain(|loss| !allowances.iter().any(|it| it.allows_loss(loss)));
    losses
}

/// Drops the finding that there is no mesh if a person allows every target to be emptied, or if that
/// has happened: nothing is left of the tree.
pub(crate) fn allow_no_mesh(allowances: &[Allowance], checked: &mut CheckResult, is_check: bool) {
    let rendered = checked.rendered.as_ref().filter(|_| is_check);
    let is_done = rendered.is_some_and(|it| it.tree.is_empty() && it.survey.is_current());
    if is_done || allowances.iter().any(|it| it.allows(None, None)) {
        checked.findings.retain(|it| !rules::mesh::is_no_mesh(it));
    }
}

/// Fails if an allowance names a target that no mesh and no folder of the tree has, as this is a
/// mistake and would not allow what it was meant for. `name` is what the person wrote it into.
pub(crate) fn check(
    allowances: &[Allowance],
    name: &str,
    plan: &Plan,
    checked: &CheckResult,
) -> anyhow::Result<()> {
    let planned = plan.targets.iter().map(|target| target.cluster.as_str());
    let stale = checked.rendered.iter().flat_map(|it| &it.survey.stale);
    let left = stale.filter_map(|path| path.split('/').next());
    let known: BTreeSet<&str> = planned.chain(left).collect();
    let mut targets = allowances.iter().filter_map(|it| it.target.as_ref());
    if let Some(target) = targets.find(|it| !known.contains(it.as_str())) {
        let known = text::quoted(known.iter().map(|name| input_file::name(Path::new(name))));
        bail!("{name} names unknown cluster `{target}`; known clusters: {known}");
    }
    Ok(())
}

/// Returns the error about a target that no mesh has, with what may have been meant.
pub(crate) fn unknown_target(name: &str, plan: &Plan) -> anyhow::Error {
    unknown_cluster(name, plan.targets.iter().map(|it| it.cluster.as_str()))
}

/// Returns the error about a cluster that no mesh has, with what may have been meant.
pub(crate) fn unknown_cluster<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> anyhow::Error {
    let meant = match nearest(name, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "known clusters: {}",
            text::first(LISTED, known.map(|name| format!("`{name}`")))
        ),
    };
    anyhow!("no mesh contains a cluster {}; {meant}", Quoted(name))
}

/// Returns the error about a cluster without a site.
pub(crate) fn without_site(inputs: &Inputs, name: &str) -> String {
    let entries = inputs.meshes.iter().flat_map(Mesh::all_entries);
    let known: BTreeSet<&str> = entries.map(|it| &it.name).map(ClusterName::as_str).collect();
    let shown = Quoted(name);
    if known.contains(name) {
        return format!("{shown} has no snapshot; run `clustermesh snapshot`");
    }
    unknown_cluster(name, known.iter().copied()).to_string()
}
