//! The environment of our own template: it has no limits, and everything is escaped for HTML.

use minijinja::syntax::SyntaxConfig;
use minijinja::{
    AutoEscape, Environment, Error, Output, State, UndefinedBehavior, Value, escape_formatter,
};

use super::error::HtmlError;
use super::{load, markup};
use crate::diagnostic::escaped;

/// The name of the page among the templates.
pub(super) const PAGE: &str = "page.html";

/// The longest text that is shown, in characters: more than the names of all clusters together.
const SHOWN: usize = 100_000;

/// The templates by name.
const TEMPLATES: [(&str, &str); 10] = [
    (PAGE, include_str!("../../templates/report/page.html")),
    ("addresses.html", include_str!("../../templates/report/addresses.html")),
    ("bars.html", include_str!("../../templates/report/bars.html")),
    ("change.html", include_str!("../../templates/report/change.html")),
    ("clusters.html", include_str!("../../templates/report/clusters.html")),
    ("findings.html", include_str!("../../templates/report/findings.html")),
    ("load.html", include_str!("../../templates/report/load.html")),
    ("paths.html", include_str!("../../templates/report/paths.html")),
    ("proofs.html", include_str!("../../templates/report/proofs.html")),
    ("trace.html", include_str!("../../templates/report/trace.html")),
];

/// Returns the environment. An undefined value is false in a condition, and cannot be printed.
pub(super) fn environment() -> Result<Environment<'static>, HtmlError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().lstrip_blocks(true).trim_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_formatter(write);
    environment.add_filter("prose", markup::prose);
    environment.add_filter("advice", markup::advice);
    environment.add_filter("quantity", load::shown);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// Writes a value. Characters that hide or reorder others are shown by their numbers.
fn write(output: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(output, state, &Value::from(escaped(text, SHOWN)))
        }
        _ => escape_formatter(output, state, value),
    }
}
