//! Findings as an object for programs, in a form of its own that is versioned.

use clustermesh::diagnostic::{Label, Severity, plain_json};
use clustermesh::rules::Finding;
use serde::Serialize;

use super::Report;
use crate::files::Files;

/// The version of the format.
const API_VERSION: &str = "kilo-clustermesh.io/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'static str,
    kind: &'static str,
    summary: Summary,
    findings: Vec<WrittenFinding<'a>>,
}

/// How many there are of each severity.
#[derive(Serialize)]
struct Summary {
    errors: usize,
    warnings: usize,
    notices: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenFinding<'a> {
    rule: &'static str,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    aliases: &'static [&'static str],
    severity: String,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    places: Vec<WrittenPlace<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPlace<'a> {
    file: &'a str,
    pointer: String,
    #[serde(flatten)]
    range: Option<Range>,
    #[serde(skip_serializing_if = "str::is_empty")]
    label: &'a str,
}

/// Lines and columns from one, columns in characters, the end being the first character after.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// Returns the object.
pub(super) fn text(report: &Report) -> serde_json::Result<String> {
    let count = |severity: Severity| {
        let findings = report.findings.iter();
        findings.filter(|it| it.severity == severity).count()
    };
    let findings = report.findings.iter();
    let mut text = serde_json::to_string_pretty(&Written {
        api_version: API_VERSION,
        kind: "Report",
        summary: Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notices: count(Severity::Notice),
        },
        findings: findings.map(|it| written(it, report.files)).collect(),
    })?;
    text.push('\n');
    Ok(plain_json(text))
}

fn written<'a>(finding: &'a Finding, files: &Files) -> WrittenFinding<'a> {
    WrittenFinding {
        rule: finding.rule.name,
        aliases: finding.rule.aliases,
        severity: finding.severity.to_string(),
        message: &finding.message,
        cluster: finding.cluster.as_deref(),
        node: finding.node.as_deref(),
        help: finding.help.as_deref(),
        places: finding.labels.iter().map(|it| place(it, files)).collect(),
    }
}

fn place<'a>(label: &'a Label, files: &Files) -> WrittenPlace<'a> {
    let range = files.positions(&label.place).map(|positions| Range {
        line: positions.start.line,
        column: positions.start.column,
        end_line: positions.end.line,
        end_column: positions.end.column,
    });
    WrittenPlace {
        file: &label.place.source,
        pointer: label.place.pointer.to_string(),
        range,
        label: &label.text,
    }
}
