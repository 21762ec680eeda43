//! `clustermesh validate`

use std::io::Write;

use clap::ValueEnum;
use clap::builder::FalseyValueParser;
use clustermesh::diagnostic::Severity;
use clustermesh::rules::Purpose;
use clustermesh::rules::gitops::Fate;

use crate::output::{Format, Report, Talk};
use crate::settings::Options;
use crate::{Outcome, evidence, judgement};

/// Find what is wrong with meshes, snapshots and what is rendered
///
/// Reads the meshes and the snapshots of their clusters and tells the mistakes in them, and every
/// node and range that a render leaves out, each with its place, its reason and what to do. So it
/// does with the rendered tree, if there is one, and with what a render would take away from it or
/// move. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How to print what is found
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    output: Format,

    /// From which severity on to fail
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,

    /// Let warnings fail too
    #[arg(long, env = "CLUSTERMESH_STRICT", hide_env_values = true, value_parser = FalseyValueParser::new())]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh validate
  clustermesh validate --fail-on warning
  clustermesh validate --output sarif > clustermesh.sarif
  clustermesh validate --output json | jq '.findings[] | select(.cluster == \"east\")'";

/// From which severity on findings fail.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    /// Only errors
    Error,
    /// Warnings too
    Warning,
    /// Notices too
    Notice,
}

pub(crate) fn run(
    args: &Args,
    options: &Options,
    talk: &mut Talk,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let evidence = match evidence::gather(options) {
        Ok(evidence) => evidence,
        Err(unreadable) => return Ok(talk.unreadable(unreadable)),
    };
    let mut judgement = judgement::judge(&evidence, Purpose::Validate, Some(Fate::Kept))?;
    let losses = judgement
        .rendered
        .as_ref()
        .map(|it| it.changes.losses.clone());
    judgement.add_losses(&losses.unwrap_or_default());
    let findings = &judgement.findings;
    let report = Report {
        files: &evidence.files,
        findings,
    };
    let text = report.text(args.output)?;
    if args.output == Format::Human {
        talk.result(result, &text)?;
        talk.counts(findings);
    } else {
        crate::print(result, &text)?;
    }
    if args.output == Format::Github {
        talk.summarize(&report);
    }
    let limit = match args.fail_on {
        FailOn::Error if args.strict => Severity::Warning,
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
        FailOn::Notice => Severity::Notice,
    };
    let is_grave = findings.iter().any(|finding| limit <= finding.severity);
    Ok(if evidence.is_unparsable {
        Outcome::Unreadable
    } else if is_grave {
        Outcome::Findings
    } else {
        Outcome::Clean
    })
}
