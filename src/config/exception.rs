//! Exceptions: what a config says about findings, before anybody knows which rules there are.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Date, cluster_name};
use crate::diagnostic::{Finding, Quoted, Severity, mistake};
use crate::name::ClusterName;
use crate::place::Place;
use crate::schema::pattern;

/// How much the findings of a rule are to matter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleLevel {
    /// The rule's name, or a reason code of the operator's.
    pub rule: String,
    /// How much.
    pub level: Level,
    /// Why; there is one if they are not to be told at all.
    pub reason: Option<String>,
    /// The last day on which that holds.
    pub until: Option<Date>,
    /// Where it says so.
    pub place: Place,
}

/// Findings that are not to be told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ignore {
    /// The rule's name, or a reason code of the operator's.
    pub rule: String,
    /// Only those about this cluster.
    pub cluster: Option<ClusterName>,
    /// Only those about a node of this name.
    pub node: Option<String>,
    /// Why.
    pub reason: String,
    /// The last day on which that holds.
    pub until: Option<Date>,
    /// Where it says so.
    pub place: Place,
}

/// How much a finding is to matter.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It fails.
    Error,
    /// It fails if one is strict.
    Warning,
    /// It is told.
    Notice,
    /// It is not told; needs a `reason`. In quotes, for some readers of YAML take it for a boolean.
    Off,
}

/// How much the findings of a rule matter.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RuleLevel", extend("allOf" = [off_for_a_reason()]))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenLevel {
    /// How much.
    level: Level,
    /// Why; `off` needs one.
    #[schemars(length(min = 1))]
    reason: Option<String>,
    /// The last day (UTC) on which that holds. After it `validate` counts the findings again.
    #[schemars(
        regex(pattern = pattern::DATE),
        extend("format" = "date"),
        example = &"2027-01-31"
    )]
    until: Option<String>,
}

/// Findings that are not told.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Ignore")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenIgnore {
    /// Of this rule, by its name or the operator's reason code.
    #[schemars(length(min = 1), example = &"missing-endpoint")]
    rule: String,
    /// About this cluster; default: about any.
    #[schemars(length(min = 1), regex(pattern = pattern::CLUSTER_NAME))]
    cluster: Option<String>,
    /// About the node of this name; default: about any, and the cluster as a whole.
    #[schemars(length(min = 1))]
    node: Option<String>,
    /// Why.
    #[schemars(length(min = 1))]
    reason: String,
    /// The last day (UTC) on which that holds. After it `validate` counts the findings again.
    #[schemars(
        regex(pattern = pattern::DATE),
        extend("format" = "date"),
        example = &"2027-01-31"
    )]
    until: Option<String>,
}

impl Level {
    /// Returns how much a finding of this level matters, if it is told at all.
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
        let until = date(self.until.as_deref(), &place);
        let mut problems: Vec<Finding> = until.as_ref().err().cloned().into_iter().collect();
        if self.level == Level::Off && self.reason.is_none() {
            problems.push(no_reason(&rule, &place));
        }
        match until {
            Ok(until) if problems.is_empty() => Ok(RuleLevel {
                rule,
                level: self.level,
                reason: self.reason,
                until,
                place,
            }),
            _ => Err(problems),
        }
    }
}

impl WrittenIgnore {
    pub(super) fn read(self, place: Place) -> Result<Ignore, Vec<Finding>> {
        let cluster = self.cluster.as_deref();
        let cluster = cluster.map(|name| cluster_name(name, place.key("cluster")));
        match (cluster.transpose(), date(self.until.as_deref(), &place)) {
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

fn date(text: Option<&str>, place: &Place) -> Result<Option<Date>, Finding> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: super::DateError| {
        let message = format!("{} is no date: {error}", Quoted(text.unwrap_or_default()));
        Finding::new(&mistake::INVALID_DATE, message).at(place.key("until"), "")
    })
}

/// A reason where there is nothing to tell any more.
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
    let message = format!("{} is `off` without a `reason`", Quoted(rule));
    Finding::new(&mistake::MISSING_FIELD, message)
        .at(place.key("level"), "")
        .help("say why: `reason: \"…\"`")
}
