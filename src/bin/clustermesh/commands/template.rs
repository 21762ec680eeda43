//! `clustermesh template`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::outputs;
use clustermesh::rules::Purpose;
use clustermesh::template::Format;

use crate::allowance;
use crate::check::OutputCheck;
use crate::disk::{self, Roots};
use crate::output::Printer;
use crate::outputs::{TEMPLATE_LIMIT, read_template, values};
use crate::settings::CommonOptions;
use crate::{Outcome, check, input_file, inputs};

/// Fill in a template and print the result
///
/// Templates use Jinja syntax. `clustermesh schema template-context` describes the values, and
/// `--values` prints them. The file extension decides whether strings are quoted as YAML or as JSON.
/// To write the results to files with `clustermesh render`, list the templates in `outputs` in the
/// config.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TemplateArgs {
    /// Template file; `-` for standard input, as YAML
    #[arg(value_name = "FILE", required_unless_present = "values")]
    file: Option<PathBuf>,

    /// Print the values for templates as JSON
    #[arg(long, conflicts_with = "file")]
    values: bool,

    /// Cluster for the value `target`
    #[arg(long, value_name = "CLUSTER", value_parser = NonEmptyStringValueParser::new())]
    target: Option<String>,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh template --values --target west
  clustermesh template templates/application.yaml --target west
  echo '{{ targets | length }}' | clustermesh template -";

pub(crate) fn run(
    args: &TemplateArgs,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let inputs = match inputs::gather(&args.common.files) {
        Ok(inputs) => inputs,
        Err(unreadable) => return Ok(printer.unreadable(unreadable)),
    };
    let checked = check::check(&inputs, Purpose::Render, None, OutputCheck::Unasked)?;
    let Some((fleet, plan)) = &checked.planned else {
        printer.findings(&inputs.files.of_people(), &checked.findings);
        printer.counts(&checked.findings, None);
        return Ok(inputs.failure());
    };
    let bytes: Vec<usize> = crate::rendered::texts(plan)
        .iter()
        .map(|it| it.len())
        .collect();
    let values = values(fleet, plan, &bytes, &inputs.settings);
    let Some(context) = values.for_target(args.target.as_deref()) else {
        let name = args.target.as_deref().unwrap_or_default();
        return Err(allowance::unknown_target(name, plan));
    };
    let Some(file) = &args.file else {
        let mut text = serde_json::to_string_pretty(&context)?;
        text.push('\n');
        crate::print(result, &text)?;
        return Ok(Outcome::Clean);
    };
    let name = input_file::name(file);
    let text = disk::read_text(&Roots::anywhere(), file, TEMPLATE_LIMIT)?;
    let format = if file == Path::new("-") {
        Format::Yaml
    } else {
        Format::from_path(&name)
    };
    // Included templates are in the same folder.
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let roots = inputs.settings.config.roots.clone().and(&folder);
    let load = move |included: &str| read_template(&roots, &folder, included).ok();
    let filled = outputs::one(&name, &text, format, context, load);
    let text = filled.map_err(|problem| anyhow!("{name}: {problem}"))?;
    crate::print(result, &text)?;
    Ok(Outcome::Clean)
}
