//! Output: the messages of a run, for the person at the terminal.
//!
//! All of it goes to standard error; results are written by the commands.

use std::io::{self, Write as _};

use annotate_snippets::{Group, Level, Renderer};
use anstream::{AutoStream, ColorChoice};
use clustermesh::diagnostic::escaped;
use clustermesh::plan::Plan;
use clustermesh::report::page::PageForm;
use clustermesh::results::diff::Compared;
use clustermesh::results::findings::{self, Report};
use clustermesh::results::forms::ResultForms;
use clustermesh::rules::LevelledFindings;

use crate::Outcome;
use crate::disk::tree::TreeSurvey;
use crate::failure::CommandFailure;
use crate::files::ShownFiles;
use crate::settings::{NoMesh, PrintOptions};
use crate::tree_comparison::CountsByTarget;

mod checked;
mod format;
pub(crate) mod terminal_markdown;
mod progress;
mod source_texts;
mod step_summary;
mod summary;
pub(crate) mod terminal;

pub(crate) use checked::CheckedCounts;
pub(crate) use format::{DiffFormat, ReportFormat, TableFormat};

/// The printer of a run, for standard output and standard error.
pub(crate) struct Printer {
    choice: clap::ColorChoice,
    stderr: AutoStream<io::Stderr>,
    stdout: io::Stdout,
    renderer: Renderer,
    /// With `--quiet`, what is printed only if the run fails, in order.
    held: Option<Vec<Notes>>,
}

/// A text that waits for the end of the run.
enum Notes {
    /// For standard error.
    Line(String),
    /// For standard output.
    Result(String),
}

impl Printer {
    /// Prints in colour, and holds texts back, as the options ask.
    pub(crate) fn new(voice: PrintOptions) -> Self {
        let choice = voice.color;
        let of_stderr = match choice {
            clap::ColorChoice::Auto => AutoStream::choice(&io::stderr()),
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        Self {
            choice,
            stderr: AutoStream::new(io::stderr(), of_stderr),
            stdout: io::stdout(),
            renderer: Renderer::styled(),
            held: voice.quiet.then(Vec::new),
        }
    }

    /// Prints what was held back, because the run failed, and holds nothing back from now on.
    pub(crate) fn release(&mut self) -> io::Result<()> {
        for held in self.held.take().unwrap_or_default() {
            match held {
                Notes::Line(text) => self.line(&text),
                Notes::Result(text) => self.print(&text)?,
            }
        }
        Ok(())
    }

    /// Returns whether a person watches standard error.
    pub(crate) fn is_terminal(&self) -> bool {
        self.stderr.is_terminal()
    }

    /// Adds a report to the summary of the GitHub job, inside of one. The findings are printed
    /// already, so a failure is only reported.
    pub(crate) fn summarize(&mut self, report: &Report) {
        self.summarize_page(step_summary::append(|room| report.markdown(room)));
    }

    /// Adds a page to the same summary.
    pub(crate) fn summarize_differences(&mut self, compared: &Compared) {
        self.summarize_page(step_summary::append(|room| compared.markdown(room)));
    }

    fn summarize_page(&mut self, added: anyhow::Result<()>) {
        if let Err(error) = added {
            let error = format!("cannot write the job summary: {error:#}");
            self.note(&error);
        }
    }

    /// Prints one line.
    pub(crate) fn line(&mut self, text: &str) {
        if let Some(held) = &mut self.held {
            held.push(Notes::Line(text.to_owned()));
            return;
        }
        // A closed standard error is not a reason to stop.
        let _ = writeln!(self.stderr, "{text}");
    }

    /// Prints a result for a person: in colour where standard output is a terminal, or as was asked.
    pub(crate) fn result(&mut self, text: &str) -> io::Result<()> {
        let text = self.coloured(text);
        match &mut self.held {
            Some(held) => held.push(Notes::Result(text)),
            None => self.print(&text)?,
        }
        Ok(())
    }

    fn coloured(&self, text: &str) -> String {
        let is_coloured = match self.choice {
            clap::ColorChoice::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            clap::ColorChoice::Always => true,
            clap::ColorChoice::Never => false,
        };
        if is_coloured {
            return text.to_owned();
        }
        anstream::adapter::strip_str(text).to_string()
    }

    /// Prints the result of a command.
    pub(crate) fn finish(
        &mut self,
        result: &impl ResultForms,
        format: TableFormat,
    ) -> anyhow::Result<()> {
        match format {
            TableFormat::Human => {
                self.result(&result.page(PageForm::Terminal(terminal::stdout())))?;
            }
            TableFormat::Json => self.print(&result.json()?)?,
            TableFormat::Markdown => self.print(&result.page(PageForm::Markdown))?,
        }
        Ok(())
    }

    /// Prints a result for a person, or one for a program.
    pub(crate) fn answer(&mut self, text: &str, is_for_person: bool) -> io::Result<()> {
        if is_for_person { self.result(text) } else { self.print(text) }
    }

    /// Prints a result for a program. If the reader closes the pipe early, the exit code stays the same.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        self.write(text.as_bytes()).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })
    }

    /// Prints a result that is of use only as a whole.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)?;
        self.stdout.flush()
    }

    /// Prints how many findings there are of each severity, or how much was checked without any.
    pub(crate) fn counts(&mut self, findings: &LevelledFindings, checked: Option<&CheckedCounts>) {
        let counts = findings::counts(findings);
        self.line(&counts.unwrap_or_else(|| checked::no_problems(checked)));
    }

    /// Prints why the command failed.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let text = escaped(&format!("{error:#}"), 4000);
        let text = terminal::stderr().wrapped("error: ".len(), &text);
        let report = Level::ERROR.primary_title(text);
        self.report(&[Group::with_title(report)]);
        if let Some((help, mesh)) = error.downcast_ref().map(NoMesh::help) {
            let help = Level::HELP.primary_title(help);
            self.report(&[Group::with_title(help)]);
            if let Some(mesh) = mesh {
                self.line(&format!("\n{mesh}"));
            }
        }
    }

    /// Prints a note.
    pub(crate) fn note(&mut self, message: &str) {
        let text = terminal::stderr().wrapped("note: ".len(), &escaped(message, 4000));
        let note = Level::NOTE.primary_title(text);
        self.report(&[Group::with_title(note)]);
    }

    /// Prints why there is no result, for a person.
    pub(crate) fn failure(&mut self, failure: CommandFailure) -> Outcome {
        match failure.into_mistakes() {
            Ok(mistakes) => {
                self.findings(&mistakes.files, &mistakes.findings);
                self.counts(&mistakes.findings, None);
                if let Some(note) = mistakes.note {
                    self.note(&note);
                }
                mistakes.outcome
            }
            Err(error) => {
                self.error(&error);
                Outcome::Unreadable
            }
        }
    }

    /// Reports why there is no result, in the requested format if it has a place for mistakes, so that
    /// its reader always gets a report.
    pub(crate) fn failure_as(
        &mut self,
        failure: CommandFailure,
        format: ReportFormat,
    ) -> anyhow::Result<Outcome> {
        if format == ReportFormat::Human {
            return Ok(self.failure(failure));
        }
        let mistakes = failure.into_mistakes()?;
        let report = Report::new(&mistakes.files, &mistakes.findings);
        self.print(&format.text(&report)?)?;
        if format == ReportFormat::Github {
            self.summarize(&report);
        }
        Ok(mistakes.outcome)
    }

    /// Prints findings. Of many similar ones, it prints the first few and their number.
    pub(crate) fn findings(&mut self, files: &ShownFiles, findings: &LevelledFindings) {
        for text in Report::new(files, findings).pieces(terminal::stderr()) {
            self.line(&text);
        }
    }

    /// Prints what was rendered, and how many nodes were left out.
    pub(crate) fn summary(
        &mut self,
        plan: &Plan,
        left_out: usize,
        survey: &TreeSurvey,
        counts: &CountsByTarget,
    ) {
        for line in summary::lines(plan, left_out, survey, counts) {
            self.line(&line);
        }
    }

    /// Prints what would be rendered.
    pub(crate) fn outdated(&mut self, plan: &Plan, survey: &TreeSurvey, counts: &CountsByTarget) {
        for line in summary::targets(plan, survey, counts) {
            self.line(&line);
        }
    }

    fn report(&mut self, report: &[Group]) {
        let text = self.renderer.render(report);
        self.line(&text);
    }
}
