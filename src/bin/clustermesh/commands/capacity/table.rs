//! Tables: rows of aligned cells, in any colours.

use anstream::adapter::strip_str;

/// How the cells of a column stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows that have the same columns.
pub(crate) struct TextTable {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns a table without rows.
    pub(crate) fn new(columns: Vec<Align>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Only its last cell may have several lines, which are aligned.
    pub(crate) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Returns the rows as lines, each after an indent. Columns that are empty in every row are left
    /// out.
    pub(crate) fn text(&self, indent: &str) -> String {
        let last = self.columns.len().saturating_sub(1);
        let widths: Vec<usize> = (0..self.columns.len()).map(|it| self.width(it)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            let cells = row.iter().zip(&self.columns).zip(&widths).enumerate();
            for (column, ((cell, align), &width)) in cells {
                if width == 0 {
                    continue;
                }
                if line.len() > indent.len() {
                    line.push_str("  ");
                }
                if column == last && *align == Align::Left {
                    let below = format!("\n{}", " ".repeat(self::width(&line)));
                    line.push_str(&cell.replace('\n', &below));
                    continue;
                }
                let padding = " ".repeat(width.saturating_sub(self::width(cell)));
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

/// Returns how wide a text is. Colours take no room.
fn width(text: &str) -> usize {
    strip_str(text).map(|part| part.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other_whatever_their_colour() {
        let mut table = TextTable::new(vec![Align::Left, Align::Right, Align::Left, Align::Left]);
        let rows = [
            ["\u{1b}[31merror\u{1b}[0m", "1", "", "µ\nsecond line"],
            ["ok", "1,000", "", "last"],
        ];
        for row in rows {
            table.add(row.map(str::to_owned).to_vec());
        }
        let text = strip_str(&table.text("  ")).to_string();
        insta::assert_snapshot!(text, @"
          error      1  µ
                        second line
          ok     1,000  last
        ");
    }
}
