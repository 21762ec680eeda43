//! Outputs: files that users keep for each cluster or mesh, filled in from their templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;

use crate::config::{Output, Per};
use crate::diagnostic::{Finding, Quoted, mistake};
use crate::place::Place;
use crate::template::{Format, Problem, TemplateEngine};

pub mod context;
mod path;
mod record;

use path::TakenPaths;

pub use context::{Context, Values};
pub use record::{Digest, Record};

/// Texts by path, each relative to the config's folder and with `/` between names.
pub type TemplateTexts = BTreeMap<String, Arc<str>>;

/// Returns the files of all outputs, given the text of a template by the path that the config has for
/// it.
///
/// # Errors
/// Mistakes in templates, paths and results.
pub fn fill(
    outputs: &[Output],
    values: &Values,
    load: impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static,
) -> Result<TemplateTexts, Vec<Finding>> {
    let mut texts = TemplateTexts::new();
    let mut places = TakenPaths::default();
    let mut findings = Vec::new();
    for output in outputs {
        match filled(output, values, load.clone()) {
            Ok(filled) => {
                for (path, text) in filled {
                    if !places.take(&path) {
                        findings.push(repeated(output, &path));
                    }
                    texts.insert(path, text);
                }
            }
            Err(finding) => findings.push(*finding),
        }
    }
    if findings.is_empty() {
        Ok(texts)
    } else {
        Err(findings)
    }
}

/// Returns the result of one template, as [`fill`] would, for a target or without one.
///
/// # Errors
/// A mistake in the template.
pub fn one(
    name: &str,
    text: &str,
    format: Format,
    values: Value,
    load: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Result<String, Problem> {
    TemplateEngine::new(load)?.fill(name, text, format, values)
}

fn filled(
    output: &Output,
    values: &Values,
    load: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
) -> Result<Vec<(String, Arc<str>)>, Box<Finding>> {
    let text = load(&output.template).map_err(|reason| {
        let message = format!(
            "cannot read the template {}: {reason}",
            Quoted(&output.template)
        );
        Box::new(wrong(&mistake::INVALID_OUTPUT, output, "template", message))
    })?;
    let folder = output.template.rsplit_once('/');
    let folder = folder.map_or_else(String::new, |(folder, _)| format!("{folder}/"));
    let engine = TemplateEngine::new(move |name| load(&format!("{folder}{name}")).ok())
        .map_err(|problem| of_template(output, None, &problem))?;
    let mut filled = Vec::new();
    for (subject, values) in values.each(output.per) {
        let path = engine
            .fill(&output.path, &output.path, Format::Text, values.clone())
            .map_err(|problem| of_path(output, &problem.to_string()))?;
        path::check(&path)
            .map_err(|reason| of_path(output, &format!("{} {reason}", Quoted(&path))))?;
        let result = engine
            .fill(&output.template, &text, Format::from_path(&path), values)
            .map_err(|problem| of_template(output, subject, &problem))?;
        filled.push((path, Arc::from(result)));
    }
    Ok(filled)
}

fn of_template(output: &Output, subject: Option<&str>, problem: &Problem) -> Box<Finding> {
    let subject = subject.map_or_else(String::new, |it| format!(" for {}", Quoted(it)));
    let message = format!("template {}{subject}: {problem}", Quoted(&output.template));
    let finding = wrong(&mistake::INVALID_OUTPUT, output, "template", message);
    Box::new(match problem {
        Problem::Part { .. } => finding.help(
            "make the whole value one expression, such as `{{ \"./rendered/\" ~ target.name }}`; \
             where quotes are not allowed, use `{{ target.name | plain }}`",
        ),
        _ => finding,
    })
}

fn of_path(output: &Output, reason: &str) -> Box<Finding> {
    let message = format!("invalid output path: {reason}");
    Box::new(wrong(&mistake::INVALID_OUTPUT, output, "path", message))
}

fn repeated(output: &Output, path: &str) -> Finding {
    let message = format!(
        "{} would be written twice, or is also the folder of another output",
        Quoted(path)
    );
    let help = match output.per {
        Per::Target => "add `{{ target.name }}` to the path, or remove one of the outputs",
        Per::Mesh => "add `{{ mesh.name }}` to the path, or remove one of the outputs",
        Per::Repository => "give each output its own path",
    };
    wrong(&mistake::INVALID_OUTPUT, output, "path", message).help(help)
}

/// Returns a finding about a file that cannot be an output.
pub fn wrong_output(message: String) -> Finding {
    Finding::new(&mistake::INVALID_OUTPUT, message)
}

fn wrong(
    rule: &'static crate::diagnostic::Rule,
    output: &Output,
    field: &str,
    message: String,
) -> Finding {
    let place: Place = output.place.key(field);
    Finding::new(rule, message).at(place, "")
}
