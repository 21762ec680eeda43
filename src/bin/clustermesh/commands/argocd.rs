//! `clustermesh argocd`

use std::io::{self, Write as _};
use std::mem::ManuallyDrop;

use anyhow::Context as _;
use clap::Subcommand;
use clustermesh::results::findings::{Report, plugin};
use clustermesh::rules::rendered::Allowing;

use crate::failure::CommandFailure;
use crate::inputs::{self, Inputs};
use crate::output::Printer;
use crate::printing::{self, PrintOrder};
use crate::settings::FileOptions;
use crate::threshold::{FailOn, Threshold};
use crate::{Outcome, input_file, tree_comparison};

mod announcement;
mod application;
mod parameters;

use application::Application;
use parameters::Parameters;

/// Run as an Argo CD config-management plugin
///
/// Argo CD's plugin server runs these commands in the folder of an Application and describes the
/// Application in `ARGOCD_APP_*` variables. Files outside the repository are not read. Errors are
/// written to standard error, up to 8 kB, without colours and without contents of files.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArgocdArgs {
    #[command(subcommand)]
    command: ArgocdCommand,
}

#[derive(Subcommand)]
enum ArgocdCommand {
    /// Print the Peers of the Application's cluster
    ///
    /// The parameter `target` names the cluster. Its default is the last part of the Application's path.
    /// The parameter `allow-empty`, a list of TARGET[/SOURCE], allows lost Peers like
    /// `clustermesh render --allow-empty`.
    #[command(after_help = EXAMPLES)]
    Generate(GenerateArgs),

    /// Print the parameters that Argo CD shows in its user interface
    #[command(after_help = EXAMPLES)]
    Parameters,
}

#[derive(clap::Args)]
struct GenerateArgs {
    #[command(flatten)]
    fail_on: FailOn,
}

const EXAMPLES: &str = "\
Examples:
  cd rendered/west && ARGOCD_APP_SOURCE_PATH=rendered/west clustermesh argocd generate

In plugin.yaml:
  generate:
    command: [/clustermesh, argocd, generate]";

/// The reason why nothing is printed, as Argo CD shows it.
struct PluginRefusal(String, Outcome);

impl From<anyhow::Error> for PluginRefusal {
    fn from(error: anyhow::Error) -> Self {
        Self(plugin::failure(&format!("{error:#}")), Outcome::Unreadable)
    }
}

impl PluginRefusal {
    fn new(failure: CommandFailure, threshold: Threshold) -> Self {
        match failure.into_mistakes() {
            Ok(mistakes) => {
                let report = Report::new(&mistakes.files, &mistakes.findings);
                Self(plugin::refusal(&report, |it| threshold.fails([it])), mistakes.outcome)
            }
            Err(error) => error.into(),
        }
    }
}

pub(crate) fn run(args: &ArgocdArgs, files: &FileOptions, printer: &mut Printer) -> Outcome {
    let answer = match &args.command {
        ArgocdCommand::Generate(args) => generate(args, files),
        ArgocdCommand::Parameters => parameters(files),
    };
    let written =
        answer.and_then(|text| Ok(printer.write(text.as_bytes()).context("cannot write")?));
    let Err(PluginRefusal(text, outcome)) = written else {
        return Outcome::Clean;
    };
    // There is no other place to report that standard error is closed.
    let _ = io::stderr().write_all(text.as_bytes());
    outcome
}

fn generate(args: &GenerateArgs, files: &FileOptions) -> Result<String, PluginRefusal> {
    let application = Application::of_environment()?;
    let parameters = Parameters::of_environment()?;
    let target = application.target(parameters.target.as_deref())?;
    let options = files.enter_repository(application.root.clone())?;
    let threshold = args.fail_on.threshold();
    let inputs = inputs::gather(&options);
    let inputs = inputs.map_err(|it| PluginRefusal::new(it, threshold))?;
    // The process ends with the command, and everything is freed then.
    let mut inputs = ManuallyDrop::new(inputs);
    find_overrides(&mut inputs, &application)?;
    let order = PrintOrder {
        target: &target,
        allowances: &parameters.allow_empty,
        threshold,
        allowing: Allowing::Parameter,
    };
    let printed = ManuallyDrop::new(printing::print(&inputs, &order)?);
    if let Some(manifests) = &printed.manifests {
        return Ok(manifests.clone());
    }
    let report = Report::new(&inputs.files, &printed.checked.findings);
    let text = plugin::refusal(&report, |it| threshold.fails([it]));
    Err(PluginRefusal(text, inputs.failure()))
}

/// Finds files in the folder of the Application that change what Argo CD delivers from it.
fn find_overrides(inputs: &mut Inputs, application: &Application) -> anyhow::Result<()> {
    let settings = &inputs.settings;
    let roots = &settings.config.roots;
    let found = tree_comparison::overrides_in(roots, &application.folder, settings)?;
    inputs.findings.extend(found);
    Ok(())
}

fn parameters(options: &FileOptions) -> Result<String, PluginRefusal> {
    let application = Application::of_environment()?;
    let clusters = options
        .enter_repository(application.root.clone())?
        .settle()
        .and_then(|settings| input_file::clusters(&settings.mesh_files()?, settings.ceilings));
    let threshold = FailOn::default().threshold();
    let clusters = clusters.map_err(|it| PluginRefusal::new(it, threshold))?;
    Ok(announcement::text(&clusters.meshes, application.name())?)
}
