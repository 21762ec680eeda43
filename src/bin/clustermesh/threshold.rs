//! Thresholds: from which severity on a run fails.

use std::env;
use std::ffi::OsString;

use clap::ValueEnum as _;
use clap::builder::{EnumValueParser, TypedValueParser as _};
use clustermesh::diagnostic::Severity;
use clustermesh::rules::Finding;

use crate::Outcome;
use crate::choice::choice;

/// The variable with the highest severity that the flag may choose.
pub(crate) const FLOOR: &str = "CLUSTERMESH_FAIL_ON";

/// The flag, by clap.
pub(crate) const FLAG: &str = "fail-on-severity";

/// The flag of commands that fail for findings.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct FailOn {
    /// Lowest severity that makes the exit code 1 [default: error]
    ///
    /// If `CLUSTERMESH_FAIL_ON` has a lower severity than the flag, the variable applies.
    #[arg(
        id = FLAG,
        long = "fail-on",
        value_name = "SEVERITY",
        default_value = "error",
        hide_default_value = true,
        value_parser = EnumValueParser::<NamedThreshold>::new().map(Threshold::with_floor)
    )]
    fail_on: Option<Threshold>,
}

choice! {
    /// From which severity on findings fail.
    pub(crate) enum NamedThreshold of Severity {
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
    /// Returns the least severity that fails. Commands without the flag ignore the variable.
    pub(crate) fn threshold(self) -> Threshold {
        self.fail_on.unwrap_or(Threshold(Severity::Error))
    }
}

/// Returns the value of the variable, if it is set.
///
/// # Errors
/// It is not a severity.
pub(crate) fn floor() -> Result<Option<NamedThreshold>, String> {
    let value = env::var_os(FLOOR).filter(|it| !it.is_empty());
    let read = |text: OsString| {
        let named = NamedThreshold::from_str(&text.to_string_lossy(), true);
        named.map_err(|_| format!("`{FLOOR}` must be `error`, `warning` or `notice`"))
    };
    value.map(read).transpose()
}

impl Threshold {
    /// Returns the lower one of a severity and that of the variable. An invalid variable has been refused already.
    fn with_floor(named: NamedThreshold) -> Self {
        let severity = Severity::from(named);
        let floor = floor().ok().flatten().map_or(severity, Severity::from);
        Self(severity.min(floor))
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
