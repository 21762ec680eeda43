//! Formats: how a value is written in YAML, in JSON and in plain text.

use std::collections::BTreeSet;
use std::fmt;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Output, Value};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_saphyr::granit_parser::{Event, Options, Parser};

use super::{SIZE_LIMIT, whole};
use crate::diagnostic::is_deceptive;
use crate::yaml;

/// The depth to which lists and maps can be nested in a value.
const NESTED: usize = 64;

/// The format of a result.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Format {
    /// Strings are quoted where YAML needs it.
    Yaml,
    /// Strings are quoted.
    Json,
    /// Strings are written as they are.
    Text,
}

impl Format {
    /// Returns the format of a file, by the extension in its path. That of a template, as in
    /// `west.json.j2`, does not count.
    pub fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.strip_suffix(".j2").unwrap_or(name);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self::Yaml,
            "json" => Self::Json,
            _ => Self::Text,
        }
    }

    /// Fails, with the reason, if a text is not in this format.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::Yaml => check_yaml(text),
            Self::Json => serde_json::from_str::<IgnoredAny>(text)
                .map(drop)
                .map_err(|error| unparsed(error.line())),
            Self::Text => Ok(()),
        }
    }
}

/// Fails if a text is not YAML or has a key twice. Nothing is made of the events, because aliases and nesting can make
/// that huge.
fn check_yaml(text: &str) -> Result<(), String> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // Of each open mapping, its keys, and whether a value comes next; nothing of a list.
    let mut open: Vec<Option<(BTreeSet<String>, bool)>> = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| unparsed(error.marker().line()))?;
        let is_node = matches!(
            event,
            Event::Scalar(..)
                | Event::Alias(_)
                | Event::SequenceStart(..)
                | Event::MappingStart(..)
        );
        if let Some(Some((keys, is_value))) = open.last_mut().filter(|_| is_node) {
            if let Event::Scalar(key, ..) = &event
                && !*is_value
                && !keys.insert(key.to_string())
            {
                return Err(format!("line {} repeats a key", span.start.line()));
            }
            *is_value = !*is_value;
        }
        match event {
            Event::SequenceStart(..) => open.push(None),
            Event::MappingStart(..) => open.push(Some(Default::default())),
            Event::SequenceEnd | Event::MappingEnd => drop(open.pop()),
            _ => {}
        }
    }
    Ok(())
}

/// Returns a reason without the parser's own words, which may quote the text.
fn unparsed(line: impl fmt::Display) -> String {
    format!("it cannot be parsed from line {line} on")
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
            Self::Text => "text",
        })
    }
}

/// Returns a string that is written as it is; an error if it has characters that could mean anything
/// to the text around it.
pub(super) fn plain(text: &str) -> Result<Value, Error> {
    if is_plain(text) {
        return Ok(Value::from_safe_string(text.to_owned()));
    }
    let detail = "`plain` accepts only strings of letters, digits and `._:/@+-`";
    Err(Error::new(ErrorKind::InvalidOperation, detail))
}

fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Writes a value in a format: strings, booleans and finite numbers, in YAML and JSON also lists and
/// maps of them.
pub(super) fn write(format: Format, out: &mut Output, value: &Value) -> Result<(), Error> {
    match (value.kind(), value.as_str()) {
        (ValueKind::String, Some(text)) if value.is_safe() && is_plain(text) => {
            out.write_str(text)?;
        }
        (ValueKind::String, Some(text)) => match format {
            Format::Text => out.write_str(harmless(text)?)?,
            Format::Yaml => out.write_str(&whole::marked(&yaml::scalar(text)))?,
            Format::Json => out.write_str(&whole::marked(&json(text)))?,
        },
        // The value's own text is Python's, with a capital letter.
        (ValueKind::Bool, _) => write!(out, "{}", value.is_true())?,
        (ValueKind::Number, _) if is_finite(value) => write!(out, "{value}")?,
        (ValueKind::Seq | ValueKind::Iterable | ValueKind::Map, _) if format != Format::Text => {
            out.write_str(&whole::marked(&flow(format, value)?))?;
        }
        (kind, _) => return Err(unprintable(kind, format)),
    }
    Ok(())
}

/// Returns a list or map on one line, as JSON writes it and YAML reads it.
fn flow(format: Format, value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write_flow(format, value, NESTED, &mut text)?;
    Ok(text)
}

/// Writes a value in which lists and maps are nested at most this many times. A few steps of a
/// template can build a list of lists that is deeper than the stack, or longer than memory.
fn write_flow(format: Format, value: &Value, left: usize, out: &mut String) -> Result<(), Error> {
    if SIZE_LIMIT < out.len() {
        return Err(refused("the value is too large"));
    }
    let Some(left) = left.checked_sub(1) else {
        return Err(refused("lists and maps are nested too deeply"));
    };
    match (value.kind(), value.as_str()) {
        (ValueKind::String, Some(text)) if format == Format::Yaml => {
            out.push_str(&yaml::quoted(text));
        }
        (ValueKind::String, Some(text)) => out.push_str(&json(text)),
        (ValueKind::Bool, _) => out.push_str(if value.is_true() { "true" } else { "false" }),
        (ValueKind::Number, _) if is_finite(value) => out.push_str(&value.to_string()),
        (ValueKind::None, _) => out.push_str("null"),
        (ValueKind::Seq | ValueKind::Iterable, _) => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_flow(format, &item, left, out)?;
            }
            out.push(']');
        }
        (ValueKind::Map, _) => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_flow(format, &key, left, out)?;
                out.push_str(": ");
                write_flow(format, &value.get_item(&key)?, left, out)?;
            }
            out.push('}');
        }
        (kind, _) => return Err(unprintable(kind, format)),
    }
    Ok(())
}

/// Returns a JSON string in which nothing is invisible.
fn json(text: &str) -> String {
    use std::fmt::Write as _;

    let quoted = serde_json::Value::from(text).to_string();
    let mut harmless = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        if is_deceptive(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing into memory cannot fail.
                let _ = write!(harmless, "\\u{unit:04x}");
            }
        } else {
            harmless.push(character);
        }
    }
    harmless
}

fn harmless(text: &str) -> Result<&str, Error> {
    if text.chars().any(|it| it.is_control() || is_deceptive(it)) {
        let detail =
            "the string contains control or invisible characters, which plain text cannot contain";
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    Ok(text)
}

/// Infinities and NaN have no text that all readers share.
fn is_finite(value: &Value) -> bool {
    value.is_integer() || f64::try_from(value.clone()).is_ok_and(f64::is_finite)
}

fn unprintable(kind: ValueKind, format: Format) -> Error {
    let detail = format!("a value of type {kind} cannot be written as {format}");
    Error::new(ErrorKind::InvalidOperation, detail)
}

fn refused(why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
