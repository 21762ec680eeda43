//! `clustermesh validate`

use std::mem::ManuallyDrop;

use anyhow::anyhow;
use clustermesh::diagnostic::{Mistakes, Severity};
use clustermesh::expectations::Expectations;
use clustermesh::proof::messages::{denied, expectation};
use clustermesh::results::findings::Report;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::Allowing;
use clustermesh::rules::{Finding, Purpose};

use super::verify::expectations;
use crate::checked_plan::{CheckResult, OutputCheck};
use crate::cluster_peers::ClusterPeers;
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{Inputs, unread_controls};
use crate::output::{Printer, ReportFormat};
use crate::settings::FileOptions;
use crate::threshold::{FailOn, Threshold};
use crate::{Outcome, checked_plan, clock, inputs};

/// Report problems in meshes, snapshots and rendered files
///
/// Reports mistakes in the meshes and the snapshots, and every node and range that `render` leaves out.
/// Each finding has a place, a reason and the next step. If there is a rendered tree, its files are
/// checked too, and Peers that `render` would remove or rename are reported. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output: ReportFormat,

    /// Count the findings by rule instead of listing them
    ///
    /// Only with the output formats `human` and `json`.
    #[arg(long)]
    statistics: bool,

    #[command(flatten)]
    fail_on: FailOn,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh validate
  clustermesh validate --fail-on warning
  clustermesh validate --statistics
  clustermesh validate --output sarif > clustermesh.sarif
  clustermesh validate --output json | jq '.findings[] | select(.cluster == \"east\")'";

/// Checks everything that was read.
pub(crate) fn check(inputs: &Inputs) -> anyhow::Result<CheckResult<'_>> {
    let fate = Some(Fate::Kept);
    let mut checked = checked_plan::check(inputs, Purpose::Validate, fate, OutputCheck::Compared)?;
    let losses = checked.rendered.as_ref().map(|it| it.changes.losses.clone());
    checked.add_losses(&losses.unwrap_or_default(), Allowing::Write);
    Ok(checked)
}

/// Returns findings about expectations that name what is not there, select nothing, or forbid nothing.
fn about_expectations(inputs: &Inputs, expectations: &Expectations) -> Vec<Finding> {
    let mut unknown = Mistakes::default();
    expectation::find_unknown(&expectations.expectations, &inputs.meshes, &mut unknown);
    let mut found = unknown.into_findings();
    let denied = expectations.denied.iter();
    found.extend(denied.flat_map(|it| denied::boundless(it, &inputs.meshes, clock::today())));
    found.extend(empty_expectations(inputs, expectations));
    found
}

/// Returns findings about expectations that select nothing, if the nodes of all clusters are known.
fn empty_expectations(inputs: &Inputs, expectations: &Expectations) -> Vec<Finding> {
    let (fleet, missing) = checked_plan::fleet(inputs);
    if expectations.expectations.is_empty() || !missing.is_empty() {
        return Vec::new();
    }
    let peers = ClusterPeers::default();
    let fabric = peers.fabric_of(inputs, Some(&fleet), None);
    expectation::empty_selections(&fabric, &expectations.expectations)
}

pub(crate) fn run(
    args: &ValidateArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    if args.statistics && !matches!(args.output, ReportFormat::Human | ReportFormat::Json) {
        let problem = "`--statistics` works only with `--output human` and `--output json`";
        return Err(anyhow!(problem).into());
    }
    // The process ends with the command, and everything is freed then.
    let mut inputs = ManuallyDrop::new(inputs::gather(files)?);
    let unread = unread_controls::find_elsewhere(&inputs)?;
    inputs.findings.extend(unread);
    match expectations::read(&mut inputs, None) {
        Ok((expectations, mistakes)) => {
            inputs.findings.extend(mistakes);
            let has_clusters = inputs.meshes.iter().any(|it| it.all_entries().next().is_some());
            if inputs.is_whole && has_clusters {
                let found = about_expectations(&inputs, &expectations);
                inputs.findings.extend(found);
            }
        }
        Err(CommandFailure::Syntax(broken)) => {
            inputs.findings.extend(broken.problems);
            inputs.files.add(broken.source);
            inputs.is_unparsable = true;
        }
        Err(failure) => return Err(failure),
    }
    let checked = ManuallyDrop::new(check(&inputs)?);
    let findings = &checked.findings;
    let report = Report::new(&inputs.files, findings);
    let text = match (args.statistics, args.output) {
        (false, format) => format.text(&report)?,
        (true, ReportFormat::Json) => report.statistics().json()?,
        (true, _) => report.statistics().human(),
    };
    printer.answer(&text, args.output == ReportFormat::Human)?;
    match args.output {
        ReportFormat::Human => {
            printer.counts(findings, checked.checked().as_ref());
            // An error stops a render.
            let is_right = !Threshold(Severity::Error).fails(findings.iter());
            let rendered = checked.rendered.as_ref().filter(|_| is_right);
            if let Some(note) = rendered.and_then(|it| it.outdated(&inputs.settings)) {
                printer.note(&note);
            }
        }
        ReportFormat::Github => printer.summarize(&report),
        _ => {}
    }
    Ok(if inputs.is_unparsable {
        Outcome::Unreadable
    } else {
        args.fail_on.threshold().outcome(findings)
    })
}
