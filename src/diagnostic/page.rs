//! Pages: the documentation of a rule, as sections of Markdown.

/// The titles of the sections of every page, in order.
pub const SECTIONS: [&str; 4] = ["What it finds", "Why it matters", "Example", "Remedy"];

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

/// A block of code in a section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The language.
    pub language: &'static str,
    /// The lines.
    pub code: String,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(text: &'static str) -> Self {
        let sections = text.split("## ").skip(1).map(|part| {
            let (title, text) = part.split_once('\n').unwrap_or((part, ""));
            Section {
                title: title.trim(),
                text: text.trim(),
            }
        });
        Self {
            sections: sections.collect(),
        }
    }

    /// Returns the section under a heading.
    pub fn section(&self, title: &str) -> Option<&Section> {
        self.sections.iter().find(|it| it.title == title)
    }

    /// Returns in a sentence what the rule finds.
    pub fn summary(&self) -> &'static str {
        let text = self.sections.first().map_or("", |it| it.text);
        let ends = [". ", ".\n"].map(|end| text.find(end));
        let end = ends.into_iter().flatten().min();
        end.and_then(|end| text.get(..=end)).unwrap_or(text)
    }
}

impl Section {
    /// Returns the blocks of code in it.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), open.take()) {
                (Some(language), None) => {
                    open = Some(Block {
                        language,
                        code: String::new(),
                    });
                }
                (Some(_), Some(block)) => blocks.push(block),
                (None, Some(mut block)) => {
                    block.code.push_str(line);
                    block.code.push('\n');
                    open = Some(block);
                }
                (None, None) => {}
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## What it finds\nA node.\nAlso more. And so on.\n\n## Example\n```yaml\na: 1\n```\ntext\n```console\n$ x\n```\n";

    #[test]
    fn a_page_is_sections_with_blocks() {
        let page = Page::read(PAGE);
        assert_eq!(page.summary(), "A node.");
        let blocks = page.section("Example").unwrap().blocks();
        let blocks: Vec<(&str, &str)> = blocks
            .iter()
            .map(|block| (block.language, block.code.as_str()))
            .collect();
        assert_eq!(blocks, [("yaml", "a: 1\n"), ("console", "$ x\n")]);
        assert_eq!(page.section("Remedy"), None);
    }
}
