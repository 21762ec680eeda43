//! `clustermesh render`

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::plan::Plan;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::Allowing;
use clustermesh::rules::{Finding, Purpose, Subject};
use clustermesh::tree_diff::Loss;

use crate::allowed_losses::{self, Allowance};
use crate::checked_plan::{CheckResult, OutputCheck};
use crate::disk::swap;
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::Printer;
use crate::printing::{self, PrintOrder};
use crate::settings::{FileOptions, Settings};
use crate::threshold::{FailOn, Threshold};
use crate::tree_comparison::{self, TreeComparison};
use crate::{Outcome, checked_plan, input_file, inputs};

mod leaving;

/// Write the Kilo Peers of each cluster
///
/// Reads the meshes and the snapshots and writes one folder for each cluster, `rendered/TARGET/`, with a
/// kustomization and a file of Peers for each linked cluster. Writes only files that differ and removes
/// its own files that are no longer needed. If there is an error, nothing is written.
///
/// With `--target`, prints the Peers of one cluster. If there is an error, prints no Peers.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RenderArgs {
    /// Compare instead of writing; list differences, and exit with 1 if there are any
    #[arg(long, conflicts_with = "target")]
    check: bool,

    /// Print the manifests of one cluster instead of writing files
    #[arg(long, value_name = "CLUSTER", value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,

    #[command(flatten)]
    fail_on: FailOn,

    /// Allow a cluster to lose all Peers, or all Peers of one source; repeatable
    ///
    /// TARGET is the cluster that loses Peers, or `*` for all clusters. SOURCE is the cluster that the
    /// Peers lead to. `*/MESH` allows renaming the mesh MESH.
    #[arg(long, value_name = "TARGET[/SOURCE]")]
    allow_empty: Vec<Allowance>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh render
  clustermesh render --check                    in CI: are the committed files up to date?
  clustermesh render --target east              print the Peers of east
  clustermesh render --allow-empty west --allow-empty '*/west'     remove west immediately";

pub(crate) fn run(args: &RenderArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    // The process ends with the command, and everything is freed then.
    let inputs = ManuallyDrop::new(inputs::gather(files)?);
    if let Some(target) = &args.target {
        return Ok(print(args, target, &inputs, printer)?);
    }
    let fate = if args.check { Fate::Kept } else { Fate::Replaced };
    let checked = checked_plan::check(&inputs, Purpose::Render, Some(fate), OutputCheck::Compared)?;
    let mut checked = ManuallyDrop::new(checked);
    allowed_losses::allow_no_mesh(&args.allow_empty, &mut checked, args.check);
    let losses = losses(args, &checked)?;
    let threshold = args.fail_on.threshold();
    let is_wrong = threshold.fails(&checked.findings);
    // `--check` lists the content of the tree.
    let is_of_tree = |it: &&Finding| it.rule.subject == Subject::Tree;
    let of_input = checked.findings.iter().filter(|it| !is_of_tree(it));
    let is_input_wrong = Threshold(Severity::Error).fails(of_input);
    checked.add_losses(&losses, Allowing::Write);
    printer.findings(&inputs.files.of_people(), &checked.findings);
    let is_refused = is_wrong || !losses.is_empty();
    if args.check
        && !is_input_wrong
        && let Some(rendered) = &checked.rendered
    {
        let outcome = check(rendered, &inputs.settings.rendered.value, printer)?;
        if let Some((_, plan)) = &checked.planned {
            let counts = tree_comparison::peer_counts(rendered, &inputs.settings);
            printer.outdated(plan, &rendered.survey, &counts);
            for note in rendered.outputs.notes() {
                printer.note(&note);
            }
        }
        return Ok(outcome.max(Outcome::findings_if(is_refused)));
    }
    let planned = checked.planned.as_ref().zip(checked.rendered.as_ref());
    let Some(((fleet, plan), rendered)) = planned.filter(|_| !is_refused) else {
        printer.counts(&checked.findings, None);
        if !args.check {
            printer.line("nothing was written");
        }
        return Ok(inputs.failure());
    };
    write(rendered, plan, fleet, &inputs.settings, printer)?;
    for steps in leaving::steps(&inputs)? {
        printer.line(&steps);
    }
    Ok(Outcome::Clean)
}

/// Writes the files that differ, and prints which.
fn write(
    rendered: &TreeComparison,
    plan: &Plan,
    fleet: &Fleet,
    settings: &Settings,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let root = &settings.rendered.value;
    let TreeComparison { tree, survey, outputs, .. } = rendered;
    let counts = tree_comparison::peer_counts(rendered, settings);
    swap::apply(root, tree, survey, &outputs.beside)
        .with_context(|| format!("cannot write `{}`; it is unchanged", root.display()))?;
    let membership = fleet.members().iter().map(|member| &member.membership);
    let excluded = membership.map(|membership| membership.excluded.len()).sum();
    printer.summary(plan, excluded, survey, &counts);
    if let Some(line) = outputs.summary() {
        printer.line(&line);
    }
    for note in outputs.notes() {
        printer.note(&note);
    }
    Ok(())
}

/// Returns what targets would lose altogether and no flag allows.
fn losses(args: &RenderArgs, checked: &CheckResult) -> anyhow::Result<Vec<Loss>> {
    let planned = checked.planned.as_ref().zip(checked.rendered.as_ref());
    let Some(((_, plan), rendered)) = planned else {
        return Ok(Vec::new());
    };
    allowed_losses::check(&args.allow_empty, Allowing::Write.name(), plan, checked)?;
    let losses = rendered.changes.losses.clone();
    Ok(allowed_losses::unallowed(&args.allow_empty, losses))
}

/// Prints one target's manifests.
fn print(
    args: &RenderArgs,
    target: &str,
    inputs: &Inputs,
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let order = PrintOrder {
        target,
        allowances: &args.allow_empty,
        threshold: args.fail_on.threshold(),
        allowing: Allowing::Print(target),
    };
    let direct = ManuallyDrop::new(printing::print(inputs, &order)?);
    let findings = &direct.checked.findings;
    printer.findings(&inputs.files.of_people(), findings);
    let Some(manifests) = &direct.manifests else {
        printer.counts(findings, None);
        return Ok(inputs.failure());
    };
    printer.write(manifests.as_bytes())?;
    Ok(Outcome::Clean)
}

/// Lists what a render would do to the tree, and what else is in it.
fn check(rendered: &TreeComparison, root: &Path, printer: &mut Printer) -> anyhow::Result<Outcome> {
    let TreeComparison { survey, outputs, .. } = rendered;
    let mut lines: BTreeMap<PathBuf, String> = BTreeMap::new();
    let groups =
        [("missing", &survey.missing), ("changed", &survey.changed), ("stale", &survey.stale)];
    for (what, paths) in groups {
        lines.extend(paths.iter().map(|path| (root.join(path), what.to_owned())));
    }
    let groups =
        [("missing", &outputs.missing), ("changed", &outputs.changed), ("stale", &outputs.stale)];
    for (what, paths) in groups {
        lines.extend(paths.iter().map(|path| (path.clone(), what.to_owned())));
    }
    let foreign = survey.foreign.iter().chain(&survey.blocked);
    lines.extend(foreign.map(|it| (root.join(&it.path), format!("foreign ({})", it.kind))));
    let list = lines.iter().map(|(path, what)| {
        let path = input_file::name(path);
        format!("{what}: {path}\n")
    });
    printer.print(&list.collect::<String>())?;
    Ok(Outcome::findings_if(!lines.is_empty()))
}
