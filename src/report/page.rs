//! Pages: results that are written once, and printed for people or in Markdown.

use std::fmt::Write as _;

use super::markdown::{fenced, prose};
use super::style::bold;
use super::table::TextTable;
use super::width::Width;

/// The form of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageForm {
    /// For people, with lines that fit.
    Terminal(Width),
    /// Markdown, for a comment on a pull request.
    Markdown,
}

/// A page that is being written. In Markdown, an empty line separates its parts.
pub struct ReportPage {
    form: PageForm,
    text: String,
}

impl ReportPage {
    /// Returns a page with a title, which only Markdown shows.
    pub fn new(form: PageForm, title: &str) -> Self {
        let text = match form {
            PageForm::Terminal(_) => String::new(),
            PageForm::Markdown => format!("### {title}\n\n"),
        };
        Self { form, text }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        let _ = match self.form {
            PageForm::Terminal(_) => writeln!(self.text, "\n{}", bold(text)),
            PageForm::Markdown => write!(self.text, "\n#### {text}\n\n"),
        };
    }

    /// Adds a table, in Markdown of at most `limit` bytes.
    pub fn table(&mut self, table: &TextTable, limit: usize) {
        self.text += &match self.form {
            PageForm::Terminal(width) => table.folded(width),
            PageForm::Markdown => table.markdown(limit) + "\n",
        };
    }

    /// Adds a paragraph without foreign text.
    pub fn paragraph(&mut self, text: &str) {
        match self.form {
            PageForm::Terminal(width) => {
                let _ = writeln!(self.text, "\n{}", width.wrapped(0, text));
            }
            PageForm::Markdown => self.separated(&format!("{text}\n")),
        }
    }

    /// Adds a sentence, of which Markdown shows values as code.
    pub fn sentence(&mut self, text: &str) {
        match self.form {
            PageForm::Terminal(_) => self.paragraph(text),
            PageForm::Markdown => self.paragraph(&prose(text)),
        }
    }

    /// Adds a text for people that fits a width, in Markdown as a block of code of about `limit` bytes at most.
    pub fn block(&mut self, limit: usize, block: impl FnOnce(Width) -> String) {
        match self.form {
            PageForm::Terminal(width) => self.text += &block(width),
            PageForm::Markdown => {
                let block = fenced(&block(Width::default()), limit);
                self.separated(block.trim_start_matches('\n'));
            }
        }
    }

    /// Adds a text that is the same in all forms.
    pub fn text(&mut self, text: &str) {
        self.text += text;
    }

    /// Returns the page.
    pub fn finish(self) -> String {
        self.text
    }

    /// Adds a part behind an empty line, unless it is empty.
    fn separated(&mut self, part: &str) {
        if !part.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        self.text += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::plain;

    fn page(form: PageForm) -> String {
        let mut page = ReportPage::new(form, "clustermesh test");
        let mut table = TextTable::new(["NAME", ">PEERS"]);
        table.add(vec!["east".to_owned(), "1".to_owned()]);
        page.table(&table, 100);
        page.block(100, |_| "\n```\n".to_owned());
        page.block(100, |_| String::new());
        page.paragraph("one paragraph of two lines,\nof which each is wrapped");
        page.heading("heading");
        page.sentence("see <b>");
        page.text("\nend\n");
        page.finish()
    }

    #[test]
    fn a_page_for_people_has_no_markdown() {
        let text = page(PageForm::Terminal(Width::new(40)));
        insta::assert_snapshot!(plain(&text), @"
        NAME  PEERS
        east      1

        ```

        one paragraph of two lines,
        of which each is wrapped

        heading

        see <b>

        end
        ");
    }

    #[test]
    fn an_empty_line_separates_the_parts_of_markdown() {
        insta::assert_snapshot!(page(PageForm::Markdown), @"
        ### clustermesh test

        | NAME | PEERS |
        |---|--:|
        | east | 1 |

        ````text
        ```
        ````

        one paragraph of two lines,
        of which each is wrapped

        #### heading

        see `<b>`

        end
        ");
    }
}
