//! Templates: text around data. A string keeps its meaning in every place that a template may put it.

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, context};
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

mod format;
mod steps;
mod whole;

pub use format::Format;
pub use steps::StepBudget;

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
#[derive(Debug, Deserialize, Serialize, ThisError)]
pub enum Problem {
    /// The template cannot be parsed, or its values do not fit.
    #[error("{0}")]
    Template(String),
    /// A string is only a part of a value, so that quotes would end up inside of the value.
    #[error(
        "line {line} of the result: a value is only a part of a text; write `{{{{ VALUE ~ \"-TEXT\" }}}}` or `{{{{ VALUE | plain }}}}-TEXT`"
    )]
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
    /// The result is too large.
    #[error("the result has more than {SIZE_LIMIT} bytes")]
    TooLarge,
    /// The templates of the run take too many steps together.
    #[error("the templates of this run need more than {} steps together", steps::LIMIT)]
    TooManySteps,
}

/// The largest result, in bytes.
pub const SIZE_LIMIT: usize = 1 << 20;

/// The number of instructions that a template of a user may take for one result.
const FUEL: u64 = 5_000_000;

/// The template of a kustomization: its name and its text.
const KUSTOMIZATION: (&str, &str) =
    ("kustomization.yaml", include_str!("../templates/kustomization.yaml"));

/// Returns the `kustomization.yaml` that applies `files`, in their order.
///
/// # Errors
/// A template that does not fit, which the tests rule out.
pub fn kustomization(files: &[&str]) -> Result<String, TemplateError> {
    let files: Vec<Value> = files.iter().copied().map(Value::from).collect();
    let (name, text) = KUSTOMIZATION;
    filled(name, text, Format::Yaml, context! { files => files })
}

/// Fills in a template of this program.
///
/// # Errors
/// A template that does not fit, which the tests rule out.
pub fn filled(
    name: &'static str,
    text: &str,
    format: Format,
    values: Value,
) -> Result<String, TemplateError> {
    TemplateEngine::new(StepBudget::default(), |_| None)
        .and_then(|engine| engine.compile(name, text, format))
        .and_then(|mut template| template.fill(values))
        .map_err(|source| TemplateError { name, source })
}

/// Compiles templates.
///
/// Every variable must be defined. In YAML and JSON a string is written with the quotes that it needs,
/// so it has to be a value of its own: a template that works for one name works for all. `plain` writes
/// a string as it is, if it has nothing but letters, digits and `._:/@+-`.
///
/// A [`StepBudget`] bounds neither the memory, nor the stack, nor the time that one step takes. So a template of a user
/// is filled in by a process of its own.
#[derive(Debug)]
pub struct TemplateEngine {
    environment: Environment<'static>,
    steps: StepBudget,
}

/// A template that can be filled in for many values.
#[derive(Debug)]
pub struct CompiledTemplate {
    environment: Environment<'static>,
    name: String,
    format: Format,
    steps: StepBudget,
}

impl TemplateEngine {
    /// Returns an engine whose templates include others, whose text `load` returns by name.
    ///
    /// # Errors
    /// A syntax that the engine refuses, which the tests rule out.
    pub fn new(
        steps: StepBudget,
        load: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, Problem> {
        let mut environment = Environment::new();
        environment.set_syntax(syntax()?);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // Errors name what is undefined.
        environment.set_debug(true);
        let included = steps.clone();
        environment.set_loader(move |name| {
            let text = load(name);
            included
                .take_text(text.as_deref().unwrap_or_default())
                .map_err(|_| Error::from(ErrorKind::OutOfFuel))?;
            Ok(text.map(|it| whole::template(&it)))
        });
        environment.add_filter("plain", format::plain);
        Ok(Self { environment, steps })
    }

    /// Compiles a template, given its name and its text.
    ///
    /// # Errors
    /// A mistake in the template.
    pub fn compile(
        &self,
        name: &str,
        text: &str,
        format: Format,
    ) -> Result<CompiledTemplate, Problem> {
        let mut environment = self.environment.clone();
        environment.set_formatter(move |out: &mut Output, _: &mut State, value: &Value| {
            format::write(format, out, value)
        });
        environment.add_template_owned(name.to_owned(), whole::template(text))?;
        Ok(CompiledTemplate {
            environment,
            name: name.to_owned(),
            format,
            steps: self.steps.clone(),
        })
    }
}

impl CompiledTemplate {
    /// Fills in the template.
    ///
    /// # Errors
    /// A mistake in the template or its result.
    pub fn fill(&mut self, values: Value) -> Result<String, Problem> {
        let mut result = Bounded::default();
        let rendered = self.render(values, &mut result);
        if result.is_full {
            return Err(Problem::TooLarge);
        }
        rendered?;
        let format = self.format;
        let marked = String::from_utf8_lossy(&result.bytes);
        let text = whole::result(&marked, format).map_err(|line| Problem::Part { line })?;
        if SIZE_LIMIT < text.len() {
            return Err(Problem::TooLarge);
        }
        format.check(&text).map_err(|reason| Problem::Malformed { format, reason })?;
        Ok(text)
    }

    fn render(&mut self, values: Value, result: &mut Bounded) -> Result<(), Problem> {
        let fuel = FUEL.min(self.steps.left());
        self.environment.set_fuel(Some(fuel));
        let template = self.environment.get_template(&self.name)?;
        let taken = match template.render_captured_to(values, result) {
            Ok(captured) => captured.state().fuel_levels().map_or(0, |(taken, _)| taken),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => {
                self.steps.take(fuel)?;
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        self.steps.take(taken)
    }
}

/// Returns the syntax of templates.
fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .lstrip_blocks(true)
        .trim_blocks(true)
        .build()
}

/// Output up to a limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if whole::MARKED_LIMIT < self.bytes.len() + bytes.len() {
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

impl From<Error> for Problem {
    /// Keeps the message of the engine, without the name of the template, which the caller knows.
    fn from(error: Error) -> Self {
        let what = match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => "the template needs too many steps".to_owned(),
            (ErrorKind::UndefinedError, Some(detail)) => detail.to_owned(),
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        };
        Self::Template(match error.line() {
            Some(line) => format!("line {line}: {what}"),
            None => what,
        })
    }
}

#[cfg(test)]
mod tests;
