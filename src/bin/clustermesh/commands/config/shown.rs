//! Settings as they are printed: a table for people, an object for programs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clustermesh::config::capacity::Steps;
use clustermesh::diagnostic::escaped;
use clustermesh::document::Source;
use clustermesh::report::json::JsonDocument;
use clustermesh::yaml;
use serde::{Serialize, Serializer};

use crate::settings::SettingOrigin;
use clustermesh::report::width::{Width, broken};

/// The longest name and the longest value that are shown, in characters.
const SHOWN: usize = 400;

/// A setting.
#[derive(Serialize)]
pub(super) struct Shown {
    name: String,
    value: ShownValue,
    origin: ShownOrigin,
}

/// The value of a setting.
pub(super) enum ShownValue {
    Text(String),
    /// Several of them.
    List(Vec<String>),
    Number(u64),
    /// A threshold.
    Steps(Steps),
    /// Yes or no.
    Boolean(bool),
    /// No value, and what that means.
    Nothing(&'static str),
}

/// The source of the value.
#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
enum ShownOrigin {
    Flag { flag: &'static str },
    Variable { variable: &'static str },
    File { file: String, line: usize, column: usize },
    Default,
}

/// Everything together.
#[derive(Serialize)]
struct ShownSettings<'a> {
    settings: &'a [Shown],
}

impl Shown {
    /// Returns a setting with the lines and columns of files.
    pub(super) fn new(
        name: &str,
        value: ShownValue,
        origin: &SettingOrigin,
        sources: &[Source],
    ) -> Self {
        Self { name: name.to_owned(), value, origin: ShownOrigin::new(origin, sources) }
    }

    /// Returns a line for each value, and at least one.
    fn lines(&self) -> Vec<[String; 3]> {
        let values = match &self.value {
            ShownValue::Text(text) => vec![escaped(text, SHOWN)],
            ShownValue::List(texts) if texts.is_empty() => vec!["(none)".to_owned()],
            ShownValue::List(texts) => texts.iter().map(|text| escaped(text, SHOWN)).collect(),
            ShownValue::Number(number) => vec![number.to_string()],
            ShownValue::Steps(steps) => vec![said(*steps)],
            ShownValue::Boolean(is_so) => vec![is_so.to_string()],
            ShownValue::Nothing(meaning) => vec![format!("({meaning})")],
        };
        let line = |value| [self.name.clone(), value, self.origin.text()];
        values.into_iter().map(line).collect()
    }
}

impl ShownValue {
    pub(super) fn path(path: &Path) -> Self {
        Self::Text(path.to_string_lossy().into_owned())
    }

    /// Returns several paths.
    pub(super) fn paths(paths: &[PathBuf]) -> Self {
        let texts = paths.iter().map(|path| path.to_string_lossy().into_owned());
        Self::List(texts.collect())
    }
}

impl Serialize for ShownValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(texts) => texts.serialize(serializer),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Steps(steps) => serializer.collect_map(given(*steps)),
            Self::Boolean(is_so) => serializer.serialize_bool(*is_so),
            Self::Nothing(_) => serializer.serialize_unit(),
        }
    }
}

/// Returns the steps that there are, by name.
fn given(steps: Steps) -> impl Iterator<Item = (String, u64)> {
    steps.all().into_iter().filter_map(|(severity, step)| Some((severity.to_string(), step?)))
}

fn said(steps: Steps) -> String {
    let steps: Vec<String> =
        given(steps).map(|(severity, step)| format!("{severity} {step}")).collect();
    if steps.is_empty() { "(none)".to_owned() } else { steps.join(", ") }
}

impl ShownOrigin {
    fn new(origin: &SettingOrigin, sources: &[Source]) -> Self {
        match origin {
            SettingOrigin::Flag(flag) => Self::Flag { flag },
            SettingOrigin::Variable(variable) => Self::Variable { variable },
            SettingOrigin::Default => Self::Default,
            SettingOrigin::File(place) => {
                let source = sources.iter().find(|it| it.name == place.source);
                let offset = source.and_then(|it| Some(it.position(it.locate(place)?.start)));
                let (line, column) = offset.map_or((1, 1), |it| (it.line, it.column));
                Self::File { file: place.source.to_string(), line, column }
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Flag { flag } => (*flag).to_owned(),
            Self::Variable { variable } => (*variable).to_owned(),
            Self::File { file, line, column } => format!("{file}:{line}:{column}"),
            Self::Default => "default".to_owned(),
        }
    }
}

/// Returns a line for every value, in columns. On a terminal that is too narrow, a setting that does not fit
/// takes several lines: long names and long values have lines of their own.
pub(super) fn table(settings: &[Shown], width: Width) -> String {
    let mut lines = vec![["SETTING", "VALUE", "ORIGIN"].map(str::to_owned)];
    lines.extend(settings.iter().flat_map(Shown::lines));
    let widest = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (widest(0), widest(1));
    let is_wide = |columns: usize| columns < first + second + widest(2) + 4;
    match width.columns().filter(|it| is_wide(*it)) {
        None => {
            let text = lines
                .iter()
                .map(|[name, value, origin]| format!("{name:first$}  {value:second$}  {origin}\n"));
            text.collect()
        }
        Some(columns) => {
            let first = first.min(columns * 2 / 5);
            let second = second.min((columns * 9 / 20).saturating_sub(2));
            lines.iter().map(|it| folded(it, [first, second, columns])).collect()
        }
    }
}

/// Returns a row whose name has `first` columns and whose value has `second`, if they fit. An origin that goes beyond
/// `columns` has a line of its own.
fn folded([name, value, origin]: &[String; 3], [first, second, columns]: [usize; 3]) -> String {
    let below = format!("\n{}", " ".repeat(first + 2));
    let value = broken(value, second);
    let (head, rest) = value.split_once('\n').unwrap_or((&value, ""));
    let mut text = format!("{name:first$}");
    let is_long = first < name.chars().count();
    text.push_str(if is_long { &below } else { "  " });
    if columns < first + second + origin.chars().count() + 4 {
        text.extend([head, &below, origin]);
    } else if second < head.chars().count() {
        text.extend([head, &below, &" ".repeat(second), "  ", origin]);
    } else {
        let _ = write!(text, "{head:second$}  {origin}");
    }
    if !rest.is_empty() {
        text.push_str(&below);
        text.push_str(&rest.replace('\n', &below));
    }
    text.push('\n');
    text
}

/// Returns JSON, in which everything that could steer a terminal is escaped.
pub(super) fn json(settings: &[Shown]) -> anyhow::Result<String> {
    Ok(document(settings).text()?)
}

/// Returns the same as YAML.
pub(super) fn yaml(settings: &[Shown]) -> anyhow::Result<String> {
    Ok(yaml::document(&serde_json::to_value(document(settings))?))
}

fn document(settings: &[Shown]) -> JsonDocument<ShownSettings<'_>> {
    JsonDocument::named("Settings", ShownSettings { settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, value: &str) -> Shown {
        Shown {
            name: name.to_owned(),
            value: ShownValue::Text(value.to_owned()),
            origin: ShownOrigin::Default,
        }
    }

    #[test]
    fn a_narrow_terminal_gets_several_lines_for_a_long_setting() {
        let settings = [
            shown("meshes", "mesh.yaml"),
            shown("limits.capacity.fileBytes", "notice 262144, warning 1048576, error 104857600"),
            shown("limits.capacity.costs.nanosecondsPerSquaredResource", "850"),
            shown("kubeconfig", "/home/a-user/with-a-long-name/kubeconfigs/all"),
        ];
        let text = table(&settings, Width::new(80));
        insta::assert_snapshot!(text, @"
        SETTING                           VALUE                               ORIGIN
        meshes                            mesh.yaml                           default
        limits.capacity.fileBytes         notice 262144, warning 1048576,     default
                                          error 104857600
        limits.capacity.costs.nanosecondsPerSquaredResource
                                          850                                 default
        kubeconfig                        /home/a-user/with-a-long-name/kubeconfigs/all
                                                                              default
        ");
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{text}");
        assert_eq!(table(&settings, Width::default()).lines().count(), 5);
    }
}
