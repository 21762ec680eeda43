//! Pages: the documentation of a rule, as sections of Markdown.

/// The documentation of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// Its sections, in order.
    pub sections: Vec<Section>,
}

/// A part of a page under a heading of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The text below it.
    pub text: &'static str,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(text: &'static str) -> Self {
        let sections = text.split("## ").skip(1).map(|part| {
            let (title, text) = part.split_once('\n').unwrap_or((part, ""));
            Section { title: title.trim(), text: text.trim() }
        });
        Self { sections: sections.collect() }
    }

    /// Returns in a sentence what the rule finds.
    pub fn summary(&self) -> &'static str {
        let text = self.sections.first().map_or("", |it| it.text);
        let end = [". ", ".\n"].map(|end| text.find(end)).into_iter().flatten().min();
        end.and_then(|end| text.get(..=end)).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## What it finds\nA node.\nAlso more. And so on.\n\n## Example\ntext\n";

    #[test]
    fn a_page_is_sections() {
        let page = Page::read(PAGE);
        assert_eq!(page.summary(), "A node.");
        let example = Section { title: "Example", text: "text" };
        assert_eq!(page.sections[1..], [example]);
    }
}
