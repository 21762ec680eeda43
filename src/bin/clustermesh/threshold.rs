//! Thresholds: from which severity on a run fails.

use clap::builder::FalseyValueParser;
use clustermesh::diagnostic::Severity;
use clustermesh::rules::Finding;

use crate::Outcome;
use crate::choice::choice;

/// The flag of commands that fail for errors, or for warnings too.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct Strict {
    /// Treat warnings as errors
    #[arg(long, env = "CLUSTERMESH_STRICT", hide_env_values = true, value_parser = FalseyValueParser::new())]
    strict: bool,
}

/// The flags of commands that may fail for notices too.
#[derive(clap::Args)]
pub(crate) struct FailOn {
    /// Lowest severity that makes the exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: NamedThreshold,

    #[command(flatten)]
    strict: Strict,
}

choice! {
    /// From which severity on findings fail.
    enum NamedThreshold of Severity {
        /// Only errors
        Error,
        /// Errors and warnings
        Warning,
        /// Errors, warnings and notices
        Notice,
    }
}

/// The least severity that fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Threshold(pub(crate) Severity);

impl Strict {
    /// Returns the least severity that fails.
    pub(crate) fn threshold(self) -> Threshold {
        Threshold(if self.strict {
            Severity::Warning
        } else {
            Severity::Error
        })
    }
}

impl FailOn {
    /// Returns the least severity that fails.
    pub(crate) fn threshold(&self) -> Threshold {
        Threshold(Severity::from(self.fail_on).min(self.strict.threshold().0))
    }
}

impl Threshold {
    /// Returns whether one of these findings fails.
    pub(crate) fn fails<'f>(self, findings: impl IntoIterator<Item = &'f Finding>) -> bool {
        findings.into_iter().any(|it| self.0 <= it.severity)
    }

    /// Returns the outcome of these findings.
    pub(crate) fn outcome<'f>(self, findings: impl IntoIterator<Item = &'f Finding>) -> Outcome {
        Outcome::findings_if(self.fails(findings))
    }
}
