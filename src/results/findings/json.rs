//! Findings as an object for programs, in a form of its own that is versioned.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use crate::diagnostic::{Label, Severity};
use crate::place::Place;
use crate::report::json::JsonDocument;
use crate::rules::Finding;
use crate::schema::ExampleFile;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Report, excerpt};
use crate::results::source_texts::SourceTexts;

/// The output of `clustermesh validate --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Report", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct WrittenReport {
    /// The number of findings of each severity.
    summary: Summary,
    /// The findings, in the order in which they are reported.
    findings: Vec<WrittenFinding>,
}

/// The number of findings of each severity.
#[derive(JsonSchema, Serialize)]
struct Summary {
    /// Findings that fail the run.
    errors: usize,
    /// Findings that fail the run with `--fail-on warning`.
    warnings: usize,
    /// Findings that are only reported.
    notices: usize,
}

/// A problem, or something worth knowing.
#[derive(Clone, JsonSchema, Serialize)]
pub struct WrittenFinding {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// The places, the most important one first.
    pub places: Vec<WrittenPlace>,
}

impl Borrow<Finding> for &WrittenFinding {
    fn borrow(&self) -> &Finding {
        &self.finding
    }
}

/// A place in a file. Lines and columns are omitted if the place is not in the file.
#[derive(Clone, JsonSchema, Serialize)]
#[schemars(rename = "Place", transform = whole_range)]
#[serde(rename_all = "camelCase")]
pub struct WrittenPlace {
    /// The path of the file, as given.
    #[schemars(example = &"mesh.yaml")]
    file: String,
    /// The number of the document in the file, if it is not the first, and a JSON pointer.
    #[schemars(example = &"/spec/clusters/0/podCIDRs/0")]
    pointer: String,
    #[serde(flatten)]
    range: Option<WrittenRange>,
    /// A remark about this place.
    #[schemars(example = &"first here")]
    #[serde(skip_serializing_if = "String::is_empty")]
    label: String,
    /// The text that corrects it, if it is written there instead. Nothing writes it by itself.
    #[schemars(example = &"podCIDRs")]
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
    /// The first line, without its secrets, or its part around the place if it is long. Missing if the file is not one of
    /// clustermesh.
    #[schemars(example = &"  - 10.42.0.0/16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

/// Lines and columns from one, columns in characters, the end being the first character after.
#[derive(Clone, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenRange {
    /// The first line, counted from 1.
    #[schemars(range(min = 1))]
    line: usize,
    /// The column of the first character, counted from 1 in characters.
    #[schemars(range(min = 1))]
    column: usize,
    /// The last line.
    #[schemars(range(min = 1))]
    end_line: usize,
    /// The column after the last character.
    #[schemars(range(min = 1))]
    end_column: usize,
}

impl WrittenPlace {
    /// Returns it as `file:line:column`.
    pub fn shown(&self) -> String {
        let Self { file, range, .. } = self;
        let range = range.as_ref().map(|it| format!(":{}:{}", it.line, it.column));
        format!("{file}{}", range.unwrap_or_default())
    }
}

/// Returns the object.
pub(super) fn text(report: &Report) -> serde_json::Result<String> {
    let count = |severity: Severity| {
        let findings = report.findings.iter();
        findings.filter(|it| it.severity == severity).count()
    };
    let document = JsonDocument::of(WrittenReport {
        summary: Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notices: count(Severity::Notice),
        },
        findings: findings(report),
    });
    document.text()
}

/// Returns the findings of a report, for an object that has more than them.
pub fn findings(report: &Report) -> Vec<WrittenFinding> {
    let findings = report.findings.iter();
    findings.map(|it| written(it, report.files)).collect()
}

/// Returns the findings of a report, those beyond the first `most` of each rule without lines and excerpts: to find these,
/// each file of a large tree would be parsed.
pub fn findings_with_lines(report: &Report, most: usize) -> Vec<WrittenFinding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let written = report.findings.iter().map(|it| {
        let count = counts.entry(it.rule.name()).or_default();
        *count += 1;
        if *count <= most { written(it, report.files) } else { unlocated(it) }
    });
    written.collect()
}

fn unlocated(finding: &Finding) -> WrittenFinding {
    let places = finding.labels.iter().map(|it| WrittenPlace {
        file: it.place.source.to_string(),
        pointer: it.place.pointer.to_string(),
        range: None,
        label: it.text.clone(),
        replacement: None,
        excerpt: None,
    });
    WrittenFinding { places: places.collect(), finding: finding.clone() }
}

/// Returns a finding with its lines and columns.
pub fn written(finding: &Finding, files: &dyn SourceTexts) -> WrittenFinding {
    let places = finding.labels.iter().map(|it| WrittenPlace {
        replacement: finding.replacement_of(it).map(str::to_owned),
        ..place(it, files)
    });
    WrittenFinding { places: places.collect(), finding: finding.clone() }
}

/// Writes each item of a list.
pub fn each<'a, T: 'a, U>(
    all: impl IntoIterator<Item = &'a T>,
    write: impl Fn(&'a T) -> U,
) -> Vec<U> {
    all.into_iter().map(write).collect()
}

/// Declares that lines and columns come together.
fn whole_range(schema: &mut Schema) {
    const RANGE: [&str; 4] = ["line", "column", "endLine", "endColumn"];
    let together = RANGE.map(|field| (field.to_owned(), json!(RANGE)));
    schema.insert("dependentRequired".to_owned(), Value::Object(together.into_iter().collect()));
}

/// Returns the place of a label.
pub fn place(label: &Label, files: &dyn SourceTexts) -> WrittenPlace {
    bare_place(&label.place, &label.text, files)
}

/// Returns a place that needs no finding.
pub fn bare_place(place: &Place, label: &str, files: &dyn SourceTexts) -> WrittenPlace {
    let range = files.positions(place).map(|positions| WrittenRange {
        line: positions.start.line,
        column: positions.start.column,
        end_line: positions.end.line,
        end_column: positions.end.column,
    });
    WrittenPlace {
        file: place.source.to_string(),
        pointer: place.pointer.to_string(),
        range,
        label: label.to_owned(),
        replacement: None,
        excerpt: excerpt::line(files, place),
    }
}
