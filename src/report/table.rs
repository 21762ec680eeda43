//! Tables: rows of aligned cells, in any colours.

use std::ops::Range;

use super::markdown::add_rows;
use super::style::{plain, plain_parts};
use super::width::{Width, broken};

/// The smallest width of a wrapped cell.
const NARROW: usize = 20;

/// The alignment of the cells of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows that have the same columns.
pub struct TextTable {
    /// The number of columns that name a row.
    named: usize,
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns a table with these names of columns. The cells below a name that begins with `>` are aligned right.
    /// If no column has a name, the table has no head.
    pub fn new<'n>(columns: impl IntoIterator<Item = &'n str>) -> Self {
        let columns = columns.into_iter().map(|it| match it.strip_prefix('>') {
            Some(name) => (Align::Right, name.to_owned()),
            None => (Align::Left, it.to_owned()),
        });
        let (columns, head): (Vec<Align>, Vec<String>) = columns.unzip();
        let has_head = head.iter().any(|it| !it.is_empty());
        Self { named: 1, columns, rows: has_head.then_some(head).into_iter().collect() }
    }

    /// Returns the table with rows that this many columns name, of which there is one otherwise.
    #[must_use]
    pub fn named_by(self, named: usize) -> Self {
        Self { named, ..self }
    }

    /// Adds a row. Only its last cell may have several lines, which are aligned.
    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Returns the rows as lines, each after an indent. Columns that are empty in every row are left
    /// out. A last column of words is wrapped if the terminal is too narrow.
    pub fn text(&self, indent: &str, width: Width) -> String {
        self.part(indent, width, 0..self.columns.len())
    }

    /// Returns the rows like [`TextTable::text`], but as several tables below each other if the terminal is
    /// too narrow. Each of them has the columns that name a row.
    pub fn folded(&self, width: Width) -> String {
        let Some(room) = width.columns() else {
            return self.text("", width);
        };
        let total = self.columns.len();
        let mut parts = Vec::new();
        let mut start = self.named;
        while start < total {
            let part = |end: usize| self.part("", Width::default(), start..end);
            let fits = |end: &usize| part(*end).lines().all(|it| self::width(it) <= room);
            let ends = (start + 2..=total).take_while(fits);
            let end = ends.last().unwrap_or(start + 1);
            parts.push(part(end));
            start = end;
        }
        parts.join("\n")
    }

    /// Returns the rows, of which the first is the head, as a table of Markdown of at most `limit` bytes.
    /// Columns that are empty in every row are left out, and so are colours.
    pub fn markdown(&self, limit: usize) -> String {
        let shown: Vec<usize> =
            (0..self.columns.len()).filter(|column| 0 < self.width(*column)).collect();
        let line = |row: &Vec<String>| {
            let cells: Vec<String> =
                shown.iter().filter_map(|column| row.get(*column)).map(|it| plain(it)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut rows = self.rows.iter();
        let mut text = rows.next().map(line).unwrap_or_default();
        for align in shown.iter().filter_map(|column| self.columns.get(*column)) {
            text.push_str(match align {
                Align::Left => "|---",
                Align::Right => "|--:",
            });
        }
        text.push_str("|\n");
        add_rows(&mut text, rows.map(line), limit, "row");
        text
    }

    /// Returns the columns that name a row and those of a range.
    fn part(&self, indent: &str, width: Width, range: Range<usize>) -> String {
        let last = self.columns.len().saturating_sub(1);
        let widths: Vec<usize> = (0..self.columns.len()).map(|it| self.width(it)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            let cells = row
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .enumerate()
                .filter(|(column, _)| *column < self.named || range.contains(column));
            for (column, ((cell, align), &cell_width)) in cells {
                if cell_width == 0 {
                    continue;
                }
                if line.len() > indent.len() {
                    line.push_str("  ");
                }
                if column == last && *align == Align::Left {
                    let before = self::width(&line);
                    let below = format!("\n{}", " ".repeat(before));
                    line.push_str(&wrapped(cell, before, width).replace('\n', &below));
                    continue;
                }
                let padding = " ".repeat(cell_width.saturating_sub(self::width(cell)));
                match align {
                    Align::Left => line.extend([cell, padding.as_str()]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|it| width(it)).max().unwrap_or(0)
    }
}

/// Returns a cell whose lines fit behind `before` columns. Coloured cells are words and are not broken.
fn wrapped(cell: &str, before: usize, width: Width) -> String {
    let Some(columns) = width.columns() else {
        return cell.to_owned();
    };
    let room = columns.saturating_sub(before).max(NARROW);
    let lines: Vec<String> = cell.split('\n').map(|it| broken(it, room)).collect();
    lines.join("\n")
}

/// Returns how wide a text is. Colours take no room.
fn width(text: &str) -> usize {
    plain_parts(text).map(|it| it.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other_whatever_their_colour() {
        let mut table = TextTable::new(["", ">", "", ""]);
        let rows =
            [["\u{1b}[31merror\u{1b}[0m", "1", "", "µ\nsecond line"], ["ok", "1,000", "", "last"]];
        for row in rows {
            table.add(row.map(str::to_owned).to_vec());
        }
        let text = plain(&table.text("  ", Width::default()));
        insta::assert_snapshot!(text, @"
          error      1  µ
                        second line
          ok     1,000  last
        ");
    }

    #[test]
    fn a_narrow_terminal_wraps_the_last_column() {
        let mut table = TextTable::new(["", ""]);
        table.add(vec!["ok".to_owned(), "one two three four five six seven".to_owned()]);
        let text = table.text("", Width::new(28));
        insta::assert_snapshot!(text, @"
        ok  one two three four five
            six seven
        ");
    }

    #[test]
    fn markdown_has_no_colours_and_an_end() {
        let mut table = TextTable::new(["NAME", ">FIRST", ""]);
        for name in ["\u{1b}[31meast\u{1b}[0m", "north", "west"] {
            table.add([name, "1", ""].map(str::to_owned).to_vec());
        }
        insta::assert_snapshot!(table.markdown(50), @"
        | NAME | FIRST |
        |---|--:|
        | east | 1 |

        … and 2 more rows
        ");
    }

    #[test]
    fn a_narrow_terminal_folds_columns() {
        let mut table = TextTable::new(["NAME", ">FIRST", ">SECOND", "GRADE"]);
        table.add(["east", "1", "1,000", "ok"].map(str::to_owned).to_vec());
        insta::assert_snapshot!(table.folded(Width::new(20)), @"
        NAME  FIRST  SECOND
        east      1   1,000

        NAME  GRADE
        east  ok
        ");
        assert_eq!(table.folded(Width::default()).lines().count(), 2);
    }
}
