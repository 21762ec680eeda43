//! Thresholds: from which severity on a run fails.

use std::env;

use clap::ValueEnum as _;
use clap::builder::{EnumValueParser, TypedValueParser as _};
use clustermesh::diagnostic::Severity;
use clustermesh::rules::Finding;

use crate::Outcome;
use crate::choice::choice;

/// The variable with the highest severity that the flag may choose.
const FLOOR: &str = "CLUSTERMESH_FAIL_ON";

/// The flag of commands that fail for findings.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct FailOn {
    /// Lowest severity that makes the exit code 1 [default: error]
    ///
    /// If `CLUSTERMESH_FAIL_ON` has a lower severity than the flag, the variable applies.
    #[arg(
        long,
        value_name = "SEVERITY",
        env = FLOOR,
        hide_env_values = true,
        value_parser = EnumValueParser::<NamedThreshold>::new().try_map(Threshold::with_floor)
    )]
    fail_on: Option<Threshold>,
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

impl FailOn {
    /// Returns the least severity that fails.
    pub(crate) fn threshold(self) -> Threshold {
        self.fail_on.unwrap_or(Threshold(Severity::Error))
    }
}

impl Threshold {
    /// Returns the lower one of a severity and that of the variable.
    fn with_floor(named: NamedThreshold) -> Result<Self, String> {
        let severity = Severity::from(named);
        let Some(floor) = env::var_os(FLOOR) else {
            return Ok(Self(severity));
        };
        let floor = NamedThreshold::from_str(&floor.to_string_lossy(), true)
            .map_err(|_| format!("the value of `{FLOOR}` is not a severity"))?;
        Ok(Self(severity.min(floor.into())))
    }

    /// Returns whether one of these findings fails.
    pub(crate) fn fails<'f>(self, findings: impl IntoIterator<Item = &'f Finding>) -> bool {
        findings.into_iter().any(|it| self.0 <= it.severity)
    }

    /// Returns the outcome of these findings.
    pub(crate) fn outcome<'f>(self, findings: impl IntoIterator<Item = &'f Finding>) -> Outcome {
        Outcome::findings_if(self.fails(findings))
    }
}
