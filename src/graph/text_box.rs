//! Boxes with text, as SVG.

use std::fmt::Write as _;

use minijinja::HtmlEscape;

use super::layout::{self, BoxSize, Layout, Point};

/// The height of a line of text, in pixels.
pub(super) const LINE_HEIGHT: f64 = 17.0;

/// The width of a character, in pixels.
const CHARACTER: f64 = 7.4;

/// The space between a box and its content, in pixels.
pub(super) const PADDING: f64 = 10.0;

/// The longest line, in characters.
pub(super) const LONGEST: usize = 48;

/// A box with lines of text and other boxes.
#[derive(Debug, Default)]
pub(super) struct TextBox {
    /// The classes of its style.
    pub(super) class: &'static str,
    /// The cluster that it shows, if it shows a whole one.
    pub(super) cluster: Option<String>,
    /// Its lines, each with the class of its style.
    pub(super) lines: Vec<(&'static str, String)>,
    /// The boxes inside.
    pub(super) inside: Vec<Self>,
}

/// Returns a text for XML, in which two characters cannot be written at all.
pub(super) fn xml(text: &str) -> String {
    HtmlEscape(&text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")).to_string()
}

/// Returns a length times a number.
pub(super) fn times(length: f64, number: usize) -> f64 {
    length * f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Returns the width of a line of text.
pub(super) fn text_width(text: &str) -> f64 {
    times(CHARACTER, text.chars().count())
}

/// Returns a text that fits into a line.
fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

impl TextBox {
    /// Returns its size with everything inside.
    pub(super) fn size(&self) -> BoxSize {
        let inside = self.arranged();
        let lines = self.lines.iter().map(|it| text_width(&cut(&it.1)));
        let height = times(LINE_HEIGHT, self.lines.len());
        let below = if self.inside.is_empty() { 0.0 } else { PADDING / 2.0 + inside.size.height };
        BoxSize {
            width: lines.fold(inside.size.width, f64::max) + 2.0 * PADDING,
            height: height + below + 1.5 * PADDING,
        }
    }

    fn arranged(&self) -> Layout {
        let sizes: Vec<BoxSize> = self.inside.iter().map(Self::size).collect();
        layout::rows(&sizes, PADDING)
    }

    /// Draws it from its upper left corner.
    pub(super) fn draw(&self, corner: Point, content: &mut String) {
        let size = self.size();
        let cluster = self.cluster.as_ref();
        let cluster = cluster.map(|it| format!(" data-cluster=\"{}\"", xml(it)));
        let cluster = cluster.unwrap_or_default();
        let _ = writeln!(
            content,
            "<g class=\"{}\"{cluster}><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\"/>",
            self.class, corner.x, corner.y, size.width, size.height,
        );
        let mut y = corner.y + PADDING / 2.0;
        for (class, line) in &self.lines {
            y += LINE_HEIGHT;
            let shown = cut(line);
            let full = if shown == *line {
                String::new()
            } else {
                format!("<title>{}</title>", xml(line))
            };
            let _ = writeln!(
                content,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{full}{}</text>",
                corner.x + PADDING,
                y - 3.0,
                xml(&shown),
            );
        }
        let inside = self.arranged();
        for (it, within) in self.inside.iter().zip(&inside.boxes) {
            let corner =
                Point { x: corner.x + PADDING + within.x, y: y + PADDING / 2.0 + within.y };
            it.draw(corner, content);
        }
        content.push_str("</g>\n");
    }
}
