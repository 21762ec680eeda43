//! `clustermesh guard --update`: the guards in the repository, printed again with the options that they have.

use std::fmt::Write as _;

use anyhow::bail;
use clustermesh::admission::{Excess, Guard, GuardOptions};
use clustermesh::mesh::leaves;
use clustermesh::name::ClusterName;
use clustermesh::plan::Plan;
use clustermesh::rules::gitops::GuardFile;
use clustermesh::text::count;

use super::within_limits;
use crate::inputs::Inputs;
use crate::output::Printer;
use crate::{Outcome, disk, guard_files};

/// A guard file, as it should be.
struct UpdatedGuard<'f> {
    file: &'f GuardFile,
    text: String,
    options: GuardOptions,
    /// Whether the cluster needs it before it gets the Peers of this commit: the old one refuses some, or has other rules.
    is_first: bool,
}

impl<'f> UpdatedGuard<'f> {
    fn new(file: &'f GuardFile, inputs: &Inputs, plan: &Plan) -> anyhow::Result<Self> {
        let name = &file.cluster;
        let recorded = file.guard();
        let options = recorded.and_then(|it| {
            let guard = Guard::new(&inputs.meshes, name, it.guard.access.clone());
            guard.options(&inputs.meshes)
        });
        let (Some(recorded), Some(options)) = (recorded, options) else {
            let help = file.help(None, &inputs.settings.config.content.kubectl(name));
            let refusal = file.refusal();
            let refusal = refusal.unwrap_or_else(|| {
                format!("{} has accounts or Peers that no option can have", file.source)
            });
            bail!("{refusal}; {help}");
        };
        let guard = Guard::new(&inputs.meshes, name, options.access.clone());
        within_limits(&guard, plan)?;
        // The cluster's own ranges stop no Peer that `render` writes.
        let mut more = guard.beyond(&recorded.guard).into_iter();
        let is_first =
            recorded.other_rules.is_some() || more.any(|it| !matches!(it, Excess::Own(_)));
        Ok(Self { file, text: guard.manifests()?, options, is_first })
    }
}

/// Writes the guards of all clusters or of one, and prints how their owners apply them.
pub(super) fn run(
    asked: Option<&ClusterName>,
    inputs: &Inputs,
    plan: &Plan,
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let files = guard_files::read(inputs)?;
    let files = files.iter().zip(&inputs.guards).filter(|(it, _)| {
        asked.is_none_or(|asked| it.cluster == *asked) && !leaves(&inputs.meshes, &it.cluster)
    });
    let updated = files.map(|(it, (_, path))| Ok((UpdatedGuard::new(it, inputs, plan)?, path)));
    let updated = updated.collect::<anyhow::Result<Vec<_>>>()?;
    if updated.is_empty() {
        let name = asked.map_or("CLUSTER", ClusterName::as_str);
        bail!(
            "no guard to update: `clustermesh guard {name} --writers ACCOUNT > guards/{name}.yaml` prints a new one"
        );
    }
    let (mut before, mut after, mut unchanged) = (String::new(), String::new(), 0);
    for (UpdatedGuard { file, text, options, is_first }, path) in &updated {
        if !disk::write_file(&inputs.settings.home_roots(), path, text.as_bytes())? {
            unchanged += 1;
            continue;
        }
        printer.line(&format!("{}: written", file.source));
        if let Some(left_out) = options.first_left_out() {
            printer.note(&format!("{}: {left_out}", file.source));
        }
        let commands = if *is_first { &mut before } else { &mut after };
        let kubectl = inputs.settings.config.content.kubectl(&file.cluster);
        let _ = writeln!(commands, "  {}", file.apply(&kubectl));
    }
    if 0 < unchanged {
        printer.line(&format!("{} unchanged", count(unchanged, "guard")));
    }
    for (commands, when) in [
        (before, "Before the merge"),
        (after, "After the merge, when the clusters have applied it"),
    ] {
        if !commands.is_empty() {
            printer.print(&format!("{when}, as the owner of each cluster:\n{commands}"))?;
        }
    }
    Ok(Outcome::Clean)
}
