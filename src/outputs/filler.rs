//! The filler: the engine with the values of a run. It bounds neither its memory nor its time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::context::{Facts, Values};
use super::{FillOrder, ResultPath, ResultSubject, record};
use crate::diagnostic::Quoted;
use crate::template::{CompiledTemplate, Format, Problem, StepBudget, TemplateEngine};

/// The engine with the values of a run.
#[derive(Debug)]
pub struct Filler {
    values: Values,
    steps: StepBudget,
}

/// An order in work: its paths, and its texts one after the other, up to the first mistake.
#[derive(Debug)]
pub struct OrderResults<'a> {
    /// The path of each result.
    pub paths: Vec<String>,
    filler: &'a Filler,
    order: &'a FillOrder,
    engine: TemplateEngine,
    templates: BTreeMap<Format, CompiledTemplate>,
    next: usize,
}

impl Filler {
    /// Returns a filler with the values of a run.
    pub fn new(facts: Facts) -> Self {
        Self { values: facts.values(), steps: StepBudget::default() }
    }

    /// Returns the results of an order, given the text of a template by its path.
    ///
    /// # Errors
    /// A mistake in the path, or too many steps.
    pub fn results<'a>(
        &'a self,
        order: &'a FillOrder,
        load: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<OrderResults<'a>, Problem> {
        let folder = order.template.rsplit_once('/');
        let folder = folder.map_or_else(String::new, |(folder, _)| format!("{folder}/"));
        let load = move |name: &str| load(&format!("{folder}{name}"));
        let engine = TemplateEngine::new(self.steps.clone(), load)?;
        self.steps.take_text(&order.text)?;
        let paths = match &order.path {
            ResultPath::Fixed(path) => vec![path.clone(); order.subjects.len()],
            ResultPath::Template(path) => {
                let mut template = engine.compile(path, path, Format::Text)?;
                let paths = order.subjects.iter().map(|it| self.path(&mut template, it));
                paths.collect::<Result<_, _>>()?
            }
        };
        Ok(OrderResults { paths, filler: self, order, engine, templates: BTreeMap::new(), next: 0 })
    }

    fn path(
        &self,
        template: &mut CompiledTemplate,
        subject: &ResultSubject,
    ) -> Result<String, Problem> {
        let path = template.fill(self.values.of(subject))?;
        record::check_path(&path)
            .map_err(|reason| Problem::Template(format!("{} {reason}", Quoted(&path))))?;
        Ok(path)
    }
}

impl Iterator for OrderResults<'_> {
    type Item = Result<String, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.text(self.next)?;
        self.next = match result {
            Ok(_) => self.next + 1,
            Err(_) => self.order.subjects.len(),
        };
        Some(result)
    }
}

impl OrderResults<'_> {
    /// Returns the text for a subject.
    fn text(&mut self, index: usize) -> Option<Result<String, Problem>> {
        let values = self.filler.values.of(self.order.subjects.get(index)?);
        let format = Format::from_path(self.paths.get(index)?);
        let text = self.template(format).and_then(|it| it.fill(values));
        Some(text.and_then(|text| self.filler.steps.take_text(&text).map(|()| text)))
    }

    /// Returns the template with the strings of a format, compiled once.
    fn template(&mut self, format: Format) -> Result<&mut CompiledTemplate, Problem> {
        Ok(match self.templates.entry(format) {
            Entry::Occupied(compiled) => compiled.into_mut(),
            Entry::Vacant(free) => {
                let order = self.order;
                free.insert(self.engine.compile(&order.template, &order.text, format)?)
            }
        })
    }
}
