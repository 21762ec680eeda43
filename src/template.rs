//! Templates: text around data. A string keeps its meaning in every place that a template may put it.

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, context};
use thiserror::Error as ThisError;

mod format;
mod tag;
mod whole;

pub use format::Format;

/// A built-in template that does not fit its values, which is a bug in clustermesh.
#[derive(Debug, ThisError)]
#[error("cannot fill in the template `{name}`")]
pub struct TemplateError {
    /// The template.
    pub name: &'static str,
    /// The problem, with its line.
    pub source: Problem,
}

/// A problem of a template or of its result.
#[derive(Debug, ThisError)]
pub enum Problem {
    /// The template cannot be parsed, or its values do not fit.
    #[error("{}", of_engine(.0))]
    Template(#[from] Error),
    /// A string is only a part of a value, so that quotes would end up inside of the value.
    #[error("line {line} of the result: a value is written next to other text")]
    Part {
        /// The line of the result, counted from one.
        line: usize,
    },
    /// The result is not in its format.
    #[error("the result is not valid {format}: {reason}")]
    Malformed {
        /// The format.
        format: Format,
        /// The reason, with the line of the result.
        reason: String,
    },
    /// A tag is longer than the engine's stack may be deep.
    #[error("line {line}: a tag has more than {} bytes", tag::LIMIT)]
    LongTag {
        /// The line of the template, counted from one.
        line: usize,
    },
    /// The result is too large.
    #[error("the result has more than {SIZE_LIMIT} bytes")]
    TooLarge,
}

/// The largest result, in bytes.
pub const SIZE_LIMIT: usize = 16 << 20;

/// The number of instructions that a template of a user may take.
const FUEL: u64 = 5_000_000;

/// The template of a kustomization: its name and its text.
const KUSTOMIZATION: (&str, &str) = (
    "kustomization.yaml",
    include_str!("../templates/kustomization.yaml"),
);

/// Returns the `kustomization.yaml` that applies `files`, in their order.
///
/// # Errors
/// A template that does not fit, which the tests rule out.
pub fn kustomization(files: &[&str]) -> Result<String, TemplateError> {
    let files: Vec<Value> = files.iter().copied().map(Value::from).collect();
    let (name, text) = KUSTOMIZATION;
    TemplateEngine::new(|_| None)
        .and_then(|engine| engine.fill(name, text, Format::Yaml, context! { files => files }))
        .map_err(|source| TemplateError { name, source })
}

/// Fills in templates.
///
/// Every variable must be defined. In YAML and JSON a string is written with the quotes that it needs,
/// so it has to be a value of its own: a template that works for one name works for all. `plain` writes
/// a string as it is, if it has nothing but letters, digits and `._:/@+-`.
#[derive(Debug)]
pub struct TemplateEngine {
    environment: Environment<'static>,
}

impl TemplateEngine {
    /// Returns an engine whose templates include others, whose text `load` returns by name.
    ///
    /// # Errors
    /// A syntax that the engine refuses, which the tests rule out.
    pub fn new(
        load: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, Problem> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .keep_trailing_newline(true)
                .lstrip_blocks(true)
                .trim_blocks(true)
                .build()?,
        );
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        // Errors name what is undefined.
        environment.set_debug(true);
        environment.set_loader(move |name| match load(name) {
            Some(text) if tag::check(&text).is_err() => Err(ErrorKind::SyntaxError.into()),
            text => Ok(text),
        });
        environment.add_filter("plain", format::plain);
        // These take a width or a count, and make a text of any length of it.
        for filter in ["batch", "format", "indent", "slice"] {
            environment.remove_filter(filter);
        }
        Ok(Self { environment })
    }

    /// Fills in a template, given its name and its text.
    ///
    /// # Errors
    /// A mistake in the template or its result.
    pub fn fill(
        &self,
        name: &str,
        text: &str,
        format: Format,
        values: Value,
    ) -> Result<String, Problem> {
        let mut environment = self.environment.clone();
        environment.set_formatter(move |out: &mut Output, _: &mut State, value: &Value| {
            format::write(format, out, value)
        });
        let text = whole::template(text);
        tag::check(&text)?;
        let template = environment.template_from_named_str(name, &text)?;
        let mut result = Bounded::default();
        let rendered = template.render_captured_to(values, &mut result);
        if result.is_full {
            return Err(Problem::TooLarge);
        }
        rendered?;
        let marked = String::from_utf8_lossy(&result.bytes);
        let text = whole::result(&marked, format).map_err(|line| Problem::Part { line })?;
        format
            .check(&text)
            .map_err(|reason| Problem::Malformed { format, reason })?;
        Ok(text)
    }
}

/// Output up to a limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if SIZE_LIMIT < self.bytes.len() + bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the message of the engine, without the name of the template, which the caller knows.
fn of_engine(error: &Error) -> String {
    let what = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "the template needs too many steps".to_owned(),
        (ErrorKind::UndefinedError, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

#[cfg(test)]
mod tests;
