//! Exceptions: the levels and hidden findings of a config and their dates, before they are compared with the list of
//! rules.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, civil};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

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

/// A day from the year 0 to 9999.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Date(civil::Date);

/// The reason why a text is not a date.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum DateError {
    /// Not four digits, two and two.
    #[error("expected the form `2027-01-31`")]
    Form,
    /// The day does not exist in the calendar.
    #[error("the day does not exist")]
    Calendar,
}

const EPOCH: civil::Date = civil::date(1970, 1, 1);

impl Date {
    /// Returns the day of a time in Unix seconds, in UTC.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self(EPOCH.saturating_add(SignedDuration::from_secs(seconds.max(0))))
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        // The parser takes other forms of ISO 8601 too.
        let is_of_form = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_of_form {
            return Err(DateError::Form);
        }
        text.parse().map(Self).map_err(|_| DateError::Calendar)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY_SECONDS: i64 = 86_400;

    #[test]
    fn knows_the_calendar() {
        for day in ["2027-01-31", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"] {
            assert_eq!(day.parse::<Date>().unwrap().to_string(), day);
        }
        for day in
            ["2027-02-29", "2100-02-29", "2027-04-31", "2027-13-01", "2027-00-10", "2027-01-00"]
        {
            assert_eq!(day.parse::<Date>(), Err(DateError::Calendar), "{day}");
        }
        for day in [
            "",
            "2027",
            "2027-1-31",
            "27-01-31",
            "2027-01-31T00:00:00Z",
            "2027/01/31",
            "+027-01-31",
            "2027-01-31-",
            "20270131",
            "２027-01-31",
            "31-01-2027",
        ] {
            assert_eq!(day.parse::<Date>(), Err(DateError::Form), "{day}");
        }
    }

    #[test]
    fn knows_the_day_of_a_time() {
        let day = |seconds| Date::from_unix_seconds(seconds).to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(-1), "1970-01-01");
        assert_eq!(day(86_399), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_735_689_599), "2024-12-31");
        assert_eq!(day(1_735_689_600), "2025-01-01");
        assert_eq!(day(4_107_542_400), "2100-03-01");
        assert_eq!(day(i64::MAX), "9999-12-31");
    }

    proptest! {
        #[test]
        fn later_days_are_greater(day in 0..2_932_896_i64) {
            let date = Date::from_unix_seconds(day * DAY_SECONDS);
            prop_assert!(date < Date::from_unix_seconds((day + 1) * DAY_SECONDS));
            prop_assert_eq!(date.to_string().parse(), Ok(date));
        }
    }
}
