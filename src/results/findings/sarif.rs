//! Findings as SARIF 2.1.0, which code scanning reads.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Severity, escaped, plain_json};
use crate::document::Position;
use crate::rules::{Finding, QUESTIONS, Rule, page_of};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::entry::{ReportEntry, at_most, select};
use super::fingerprint::Fingerprints;
use super::repository_place::{RepositoryPlace, RepositoryPlaces};
use super::{Report, wording};

mod log;

use log::{
    ArtifactChange, ArtifactLocation, AutomationDetails, Configuration, Descriptor, Driver, Fix,
    Help, Invocation, Location, Log, Notification, PartialFingerprints, PhysicalLocation,
    Properties, Region, Replacement, Run, SarifMessage, SarifResult, Tool,
};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The identifier of an analysis, by which GitHub distinguishes our runs from others.
const CATEGORY: &str = "clustermesh/validate/";

/// The most results that GitHub takes; of a file with more it takes none.
const RESULTS: usize = 25_000;

/// The most further places of a result: GitHub shows no more.
const PLACES: usize = 100;

/// The longest text of a result, in characters.
const SHOWN: usize = 2000;

/// The characters that are encoded in a path: all but slashes and unreserved ones (RFC 3986).
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the log, with the most severe findings if there are too many.
pub(super) fn text(report: &Report) -> serde_json::Result<String> {
    // Folding is for people: a program gets what follows from a finding too.
    let entries = report.entries().into_iter().flat_map(ReportEntry::unfolded);
    let entries: Vec<ReportEntry> = entries.collect();
    let selection = select(&entries.iter().collect::<Vec<_>>(), at_most(RESULTS));
    let places = RepositoryPlaces::new(report.files);
    let mut fingerprints = Fingerprints::default();
    let mut rules = Rules::default();
    let results: Vec<SarifResult> = selection
        .shown
        .into_iter()
        .map(|entry| {
            let finding = entry.finding;
            let place = places.first(finding);
            SarifResult {
                rule_id: finding.rule.name(),
                rule_index: rules.index(finding.rule),
                level: level(finding.severity),
                message: message(&wording::text(entry, SHOWN)),
                partial_fingerprints: PartialFingerprints {
                    primary_location_line_hash: fingerprints.next(finding, &place),
                },
                locations: [location(&place, None)],
                related_locations: related(entry, &places),
                fixes: fix(finding, &places).into_iter().collect(),
            }
        })
        .collect();
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool { driver: driver(rules) },
            automation_details: AutomationDetails { id: CATEGORY },
            column_kind: "unicodeCodePoints",
            invocations: [invocation(selection.left_out.len())],
            results,
        }],
    };
    let mut text = serde_json::to_string_pretty(&log)?;
    text.push('\n');
    Ok(plain_json(text))
}

/// The rules that occur, in the order of their first occurrence. Other rules would only make each
/// upload longer.
#[derive(Default)]
struct Rules {
    indices: BTreeMap<&'static str, usize>,
    descriptors: Vec<Descriptor>,
}

impl Rules {
    fn index(&mut self, rule: &'static Rule) -> usize {
        *self.indices.entry(rule.name()).or_insert_with(|| {
            self.descriptors.push(descriptor(rule));
            self.descriptors.len() - 1
        })
    }
}

fn driver(rules: Rules) -> Driver {
    let addresses = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")];
    Driver {
        name: "clustermesh",
        semantic_version: env!("CARGO_PKG_VERSION"),
        information_uri: addresses.into_iter().find(|address| !address.is_empty()),
        rules: rules.descriptors,
    }
}

fn descriptor(rule: &'static Rule) -> Descriptor {
    let mut questions = QUESTIONS.iter();
    let question = questions.find(|question| question.rules.contains(&rule));
    let tags = question.map(|question| question.title).into_iter();
    Descriptor {
        id: rule.name(),
        name: name(rule),
        short_description: message(&wording::description(rule)),
        help: Help { text: page_of(rule, 1), markdown: page_of(rule, 1) },
        default_configuration: Configuration { level: level(rule.severity) },
        properties: Properties { tags: tags.chain(rule.aliases.iter().copied()).collect() },
    }
}

/// Returns a rule's name as SARIF writes names: `MissingPodCidr`.
fn name(rule: &Rule) -> String {
    let words = rule.name().split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    }
}

fn message(text: &str) -> SarifMessage {
    // Even in plain messages `[…](…)` is a link, and not every reader knows the escape for it.
    let text = text.replace("](", "] (");
    SarifMessage { text }
}

fn invocation(more: usize) -> Invocation {
    let text = format!(
        "{more} more findings are not included: a SARIF log has at most {RESULTS} \
        results"
    );
    let notification = Notification { level: "note", message: message(&text) };
    Invocation {
        execution_successful: true,
        tool_execution_notifications: Some(notification).filter(|_| 0 < more).into_iter().collect(),
    }
}

/// Returns where else an entry is, and where what follows from it is.
fn related(entry: &ReportEntry, places: &RepositoryPlaces) -> Vec<Location> {
    let followed: Vec<(&Finding, String)> =
        entry.consequences.iter().map(|it| (*it, wording::alone(it))).collect();
    let followed = followed
        .iter()
        .map(|(finding, title)| RepositoryPlace { label: title, ..places.first(finding) });
    places
        .further(entry.finding)
        .chain(followed)
        .take(PLACES)
        .enumerate()
        .map(|(index, place)| location(&place, Some(index)))
        .collect()
}

/// Returns the edits that correct a finding, if they are exact.
fn fix(finding: &Finding, places: &RepositoryPlaces) -> Option<Fix> {
    let changes = places.corrected(finding).filter_map(|(place, text)| {
        Some(ArtifactChange {
            artifact_location: ArtifactLocation { uri: uri(&place.path) },
            replacements: [Replacement {
                deleted_region: region(&place.positions?),
                inserted_content: SarifMessage { text: text.to_owned() },
            }],
        })
    });
    let artifact_changes: Vec<ArtifactChange> = changes.take(PLACES).collect();
    let help = finding.help.as_deref().filter(|_| !artifact_changes.is_empty())?;
    Some(Fix { description: message(&escaped(help, SHOWN)), artifact_changes })
}

fn region(positions: &Range<Position>) -> Region {
    Region {
        start_line: positions.start.line,
        start_column: positions.start.column,
        end_line: positions.end.line,
        end_column: positions.end.column,
    }
}

fn location(place: &RepositoryPlace, id: Option<usize>) -> Location {
    let label = Some(place.label).filter(|label| !label.is_empty());
    Location {
        id,
        physical_location: PhysicalLocation {
            artifact_location: ArtifactLocation { uri: uri(&place.path) },
            region: place.positions.as_ref().map(region),
        },
        message: label.map(|label| message(&escaped(label, SHOWN))),
    }
}

/// Returns a path as a URI reference.
fn uri(path: &str) -> String {
    utf8_percent_encode(path, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use crate::rules;
    use serde_json::Value;

    use super::*;
    use crate::rules::LevelledFindings;
    use crate::testing::NoTexts;

    fn finding(number: usize, rule: &'static Rule) -> Finding {
        Finding {
            cluster: Some("east".to_owned()),
            node: Some(format!("n{number}")),
            ..Finding::new(rule, "left out")
        }
    }

    #[test]
    fn a_log_holds_no_more_than_is_taken_and_the_gravest() {
        let warning = rules::find("missing-endpoint")[0];
        let error = rules::find("unknown-field")[0];
        let mut findings: Vec<Finding> = (0..=RESULTS).map(|it| finding(it, warning)).collect();
        findings.push(finding(0, error));
        let report = Report::new(&NoTexts, &LevelledFindings::fixed(findings));
        let log: Value = serde_json::from_str(&text(&report).unwrap()).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), RESULTS);
        let mut results = run["results"].as_array().unwrap().iter();
        assert!(results.any(|it| it["ruleId"] == "unknown-field"));
        let notes = &run["invocations"][0]["toolExecutionNotifications"];
        insta::assert_snapshot!(notes[0]["message"]["text"].as_str().unwrap(), @"2 more findings are not included: a SARIF log has at most 25000 results");
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a b/100%/ü:#?.yaml"), "a%20b/100%25/%C3%BC%3A%23%3F.yaml");
    }

    #[test]
    fn no_message_holds_a_link() {
        assert_eq!(message("[a](https://b)").text, "[a] (https://b)");
    }
}
