//! `clustermesh template`

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::manifest;
use clustermesh::outputs::{FillOrder, FleetFacts, ResultPath, ResultSubject};
use clustermesh::rules::Purpose;

use crate::checked_plan::OutputCheck;
use crate::disk::{self, Roots};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::outputs::{TEMPLATE_LIMIT, facts, read_template};
use crate::settings::{FileOptions, Settings};
use crate::template_process::TemplateProcess;
use crate::{Outcome, allowed_losses, checked_plan, input_file, inputs};

/// Fill in a template and print the result
///
/// Templates use Jinja syntax. `clustermesh schema template-context` describes the values. The file extension decides whether strings are quoted as YAML or as JSON.
/// To write the results to files with `clustermesh render`, list the templates in `outputs` in the
/// config.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TemplateArgs {
    /// Template file; `-` for standard input, as YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Cluster for the value `target`
    #[arg(long, value_name = "CLUSTER", value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh template templates/application.yaml --target west
  echo '{{ targets | length }}' | clustermesh template -";

pub(crate) fn run(
    args: &TemplateArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let inputs = inputs::gather(files)?;
    let checked = checked_plan::check(&inputs, Purpose::Render, None, OutputCheck::Unasked)?;
    let Some((fleet, plan)) = &checked.planned else {
        return Err(inputs.refusal(checked.findings));
    };
    let facts = facts(fleet, plan, &manifest::texts(plan), &inputs.settings);
    let subject = match &args.target {
        None => ResultSubject::Repository,
        Some(name) if facts.targets().any(|it| it == name) => ResultSubject::Target(name.clone()),
        Some(name) => return Err(allowed_losses::unknown_target(name, plan).into()),
    };
    let filled = filled(&args.file, subject, &facts, &inputs.settings).map_err(|error| {
        let needs_target =
            args.target.is_none() && error.to_string().ends_with("`target` is undefined");
        if needs_target { anyhow!("{error}; name a cluster with `--target`") } else { error }
    })?;
    printer.print(&filled)?;
    Ok(Outcome::Clean)
}

/// Returns the result of a template.
fn filled(
    file: &Path,
    subject: ResultSubject,
    facts: &FleetFacts,
    settings: &Settings,
) -> anyhow::Result<String> {
    let name = input_file::name(file);
    let is_input = file == Path::new("-");
    let order = FillOrder {
        text: disk::read_text(&Roots::anywhere(), file, TEMPLATE_LIMIT)?,
        path: ResultPath::Fixed(if is_input { "stdin.yaml".to_owned() } else { name.clone() }),
        // Included templates are in the same folder.
        template: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        subjects: vec![subject],
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let roots = settings.config.roots.clone().and(folder);
    let load = |included: &str| read_template(&roots, folder, included).ok();
    let filled = TemplateProcess::new(facts).fill(&order, load);
    let filled = filled.map_err(|failure| anyhow!("{name}: {}", failure.problem))?;
    Ok(filled.into_iter().map(|it| it.text).collect())
}
