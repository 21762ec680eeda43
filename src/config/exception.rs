//! Exceptions: the levels and hidden findings of a config, before they are compared with the list
//! of rules.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Date;
use crate::diagnostic::{Finding, Quoted, Severity, escaped, mistake};
use crate::mesh::invalid_name;
use crate::name::ClusterName;
use crate::place::Place;
use crate::schema::pattern;

/// The level of the findings of a rule, as the config sets it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleLevel {
    /// The rule's name, or a reason code of the operator's.
    pub rule: String,
    /// The level.
    pub level: Level,
    /// The reason; required if they are hidden.
    pub reason: Option<String>,
    /// The last day on which that holds.
    pub until: Option<Date>,
    /// Its place.
    pub place: Place,
}

/// Findings to hide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ignore {
    /// The rule's name, or a reason code of the operator's.
    pub rule: String,
    /// Only those about this cluster.
    pub cluster: Option<ClusterName>,
    /// Only those about a node of this name.
    pub node: Option<String>,
    /// The reason.
    pub reason: String,
    /// The last day on which that holds.
    pub until: Option<Date>,
    /// Its place.
    pub place: Place,
}

/// The level of a finding.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The run fails.
    Error,
    /// The run fails with `--fail-on warning`.
    Warning,
    /// Only reported.
    Notice,
    /// Hidden; requires a `reason`. Write it in quotes, because some YAML parsers read it as a
    /// boolean.
    Off,
}

/// The level of the findings of a rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RuleLevel", extend("allOf" = [off_for_a_reason()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenLevel {
    /// The level.
    level: Level,
    /// The reason; required for `off`.
    #[schemars(length(min = 1))]
    reason: Option<String>,
    /// The last day (UTC) on which this applies. After that day, `validate` reports the findings
    /// again.
    #[schemars(
        regex(pattern = pattern::DATE),
        extend("format" = "date"),
        example = &"2027-01-31"
    )]
    until: Option<String>,
}

/// Findings to hide.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Ignore")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenIgnore {
    /// The rule, by its name or the operator's reason code.
    #[schemars(length(min = 1), example = &"missing-endpoint")]
    rule: String,
    /// Only findings about this cluster, or external peer as `external.NAME`; default: all.
    #[schemars(length(min = 1), regex(pattern = pattern::MEMBER_NAME))]
    cluster: Option<String>,
    /// Only findings about the node of this name; default: all, including findings about the
    /// cluster.
    #[schemars(length(min = 1))]
    node: Option<String>,
    /// The reason.
    #[schemars(length(min = 1))]
    reason: String,
    /// The last day (UTC) on which this applies. After that day, `validate` reports the findings
    /// again.
    #[schemars(
        regex(pattern = pattern::DATE),
        extend("format" = "date"),
        example = &"2027-01-31"
    )]
    until: Option<String>,
}

impl Level {
    /// Returns the severity of a finding with this level, unless it is hidden.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Notice => Some(Severity::Notice),
            Self::Off => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.severity() {
            Some(severity) => severity.fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}

impl WrittenLevel {
    pub(super) fn read(self, rule: String, place: Place) -> Result<RuleLevel, Vec<Finding>> {
        let until = read_date(self.until.as_deref(), &place);
        let mut problems: Vec<Finding> = until.as_ref().err().cloned().into_iter().collect();
        if self.level == Level::Off && self.reason.is_none() {
            problems.push(no_reason(&rule, &place));
        }
        match until {
            Ok(until) if problems.is_empty() => {
                Ok(RuleLevel { rule, level: self.level, reason: self.reason, until, place })
            }
            _ => Err(problems),
        }
    }
}

impl WrittenIgnore {
    pub(super) fn read(self, place: Place) -> Result<Ignore, Vec<Finding>> {
        let cluster = self.cluster.as_deref();
        let cluster = cluster.map(|name| {
            let parsed = ClusterName::of_member(name);
            parsed.map_err(|error| invalid_name("cluster", name, &error, place.key("cluster")))
        });
        match (cluster.transpose(), read_date(self.until.as_deref(), &place)) {
            (Ok(cluster), Ok(until)) => Ok(Ignore {
                rule: self.rule,
                cluster,
                node: self.node,
                reason: self.reason,
                until,
                place,
            }),
            (cluster, until) => Err(cluster.err().into_iter().chain(until.err()).collect()),
        }
    }
}

/// Reads the last day of an entry at `place`.
pub(crate) fn read_date(text: Option<&str>, place: &Place) -> Result<Option<Date>, Finding> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: super::DateError| {
        let message = format!("{} is not a valid date: {error}", Quoted(text.unwrap_or_default()));
        Finding::new(&mistake::INVALID_VALUE, message).at(place.key("until"), "")
    })
}

/// A reason for an entry that hides nothing any more.
fn off_for_a_reason() -> Value {
    json!({
        "if": { "properties": { "level": { "const": "off" } } },
        "then": {
            "properties": { "reason": { "type": "string" } },
            "required": ["reason"],
        },
    })
}

fn no_reason(rule: &str, place: &Place) -> Finding {
    let message = format!("{} is set to `off` without a `reason`", Quoted(rule));
    Finding::new(&mistake::MISSING_FIELD, message)
        .at(place.key("level"), "")
        .help(format!("write `{}: {{ level: \"off\", reason: \"WHY\" }}`", escaped(rule, 80)))
}
