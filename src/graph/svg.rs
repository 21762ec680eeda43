//! Graphs as SVG: boxes with lines between them, or with a matrix if there are too many lines.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use minijinja::HtmlEscape;

use super::layout::{self, Layout, Line, Point, Size};
use super::matrix;
use super::parts::cluster_box;
use super::{GraphLevel, GraphLink, LINES, LinkState, MeshGraph};

/// The styles of a graph, as they are in its `style` element.
pub const STYLE: &str = include_str!("svg/style.css");

/// The height of a line of text, in pixels.
pub(super) const LINE_HEIGHT: f64 = 17.0;

/// The width of a character, in pixels.
const CHARACTER: f64 = 7.4;

/// The space around everything, in pixels.
const MARGIN: f64 = 16.0;

/// The space between a box and its content, in pixels.
const PADDING: f64 = 10.0;

/// The longest line, in characters.
const LONGEST: usize = 48;

/// The width of a sample in the legend, in pixels.
const SAMPLE: f64 = 36.0;

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

/// A text in XML.
pub(super) fn xml(text: &str) -> HtmlEscape<'_> {
    HtmlEscape(text)
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

/// Returns the graph as a document of its own.
pub fn svg(graph: &MeshGraph) -> String {
    let mut content = String::new();
    let mut size = if graph.links.len() <= LINES {
        lines(graph, &mut content)
    } else {
        many_links(graph, &mut content)
    };
    size.height += MARGIN;
    let legend = legend(graph, size.height, &mut content);
    let width = size.width.max(legend.width) + 2.0 * MARGIN;
    let height = size.height + legend.height + 2.0 * MARGIN;
    let summary = graph.summary();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mesh-graph\" role=\"img\" aria-labelledby=\"mesh-graph-title\" \
         viewBox=\"-{MARGIN} -{MARGIN} {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <title id=\"mesh-graph-title\">{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n\
         {content}</svg>\n",
        xml(&summary),
    )
}

/// Draws clusters with lines between them.
fn lines(graph: &MeshGraph, content: &mut String) -> Size {
    let boxes: Vec<TextBox> = graph.clusters.iter().map(cluster_box).collect();
    let sizes: Vec<Size> = boxes.iter().map(TextBox::size).collect();
    let drawn = graph.placed().map(|(link, ends)| {
        let label = Size {
            width: text_width(&link.label()) + PADDING,
            height: LINE_HEIGHT,
        };
        (link, Line { ends, label })
    });
    let (links, routes): (Vec<&GraphLink>, Vec<Line>) = drawn.unzip();
    let layout = layout::columns(&sizes, &routes);
    for (link, points) in links.iter().zip(&layout.lines) {
        draw_line(link, points, content);
    }
    draw_boxes(&boxes, &layout, content);
    for (link, middle) in links.iter().zip(&layout.labels) {
        draw_label(&link.label(), *middle, content);
    }
    layout.size
}

/// Draws the boxes of clusters if they have details, and a matrix of their links.
fn many_links(graph: &MeshGraph, content: &mut String) -> Size {
    let mut size = Size::default();
    if graph.level != GraphLevel::Clusters {
        let boxes: Vec<TextBox> = graph.clusters.iter().map(cluster_box).collect();
        let sizes: Vec<Size> = boxes.iter().map(TextBox::size).collect();
        let layout = layout::rows(&sizes, MARGIN);
        draw_boxes(&boxes, &layout, content);
        size = layout.size;
        size.height += 2.0 * MARGIN;
    }
    let matrix = matrix::draw(graph, size.height, content);
    Size {
        width: size.width.max(matrix.width),
        height: size.height + matrix.height,
    }
}

fn draw_boxes(boxes: &[TextBox], layout: &Layout, content: &mut String) {
    for (it, corner) in boxes.iter().zip(&layout.boxes) {
        it.draw(*corner, content);
    }
}

fn draw_line(link: &GraphLink, points: &[Point], content: &mut String) {
    let mut path = String::new();
    for (number, Point { x, y }) in points.iter().enumerate() {
        let step = if number == 0 { "M" } else { "L" };
        let _ = write!(path, "{step}{x:.1} {y:.1}");
    }
    let state = link.state.name();
    let [from, to] = link.directed();
    let _ = writeln!(
        content,
        "<path class=\"link {state}\" d=\"{path}\"><title>{} — {}: {}</title></path>",
        xml(from),
        xml(to),
        xml(&link.label()),
    );
    if link.state == LinkState::OneWay {
        let mut points: Vec<Point> = points.to_vec();
        if from != link.clusters[0] {
            points.reverse();
        }
        if let [.., before, end] = points[..] {
            draw_head(before, end, content);
        }
    }
}

/// Draws the head of an arrow at the end of a line.
fn draw_head(before: Point, end: Point, content: &mut String) {
    let (x, y) = (end.x - before.x, end.y - before.y);
    let length = x.hypot(y).max(1.0);
    let (x, y) = (x / length, y / length);
    let side = |way: f64| Point {
        x: end.x - 12.0 * x - way * 5.0 * y,
        y: end.y - 12.0 * y + way * 5.0 * x,
    };
    let (left, right) = (side(1.0), side(-1.0));
    let _ = writeln!(
        content,
        "<path class=\"head one-way\" d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/>",
        end.x, end.y, left.x, left.y, right.x, right.y,
    );
}

fn draw_label(label: &str, middle: Point, content: &mut String) {
    let width = text_width(label) + PADDING;
    let _ = writeln!(
        content,
        "<rect class=\"label\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{LINE_HEIGHT}\" rx=\"4\"/>\
         <text class=\"count\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        middle.x - width / 2.0,
        middle.y - LINE_HEIGHT / 2.0,
        middle.x,
        middle.y + 4.0,
        xml(label),
    );
}

/// Draws the results that occur, with their styles.
fn legend(graph: &MeshGraph, top: f64, content: &mut String) -> Size {
    let is_matrix = LINES < graph.links.len();
    // A cell shows only one direction.
    let is_cell = |it: &LinkState| !is_matrix || *it != LinkState::OneWay;
    let mut states: BTreeSet<LinkState> = graph.states().filter(is_cell).collect();
    if states.len() < graph.states().count() {
        states.insert(LinkState::Fails);
    }
    let mut x = 0.0;
    for state in states {
        let y = top + LINE_HEIGHT / 2.0;
        if !is_matrix {
            let state = state.name();
            let _ = write!(
                content,
                "<path class=\"link {state}\" d=\"M{x:.1} {y:.1}h{SAMPLE}\"/>"
            );
        } else {
            matrix::draw_row(
                &[Some(state)],
                (x, y - LINE_HEIGHT / 2.0),
                LINE_HEIGHT,
                content,
            );
        }
        let words = state.words();
        let _ = writeln!(
            content,
            "<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{words}</text>",
            x + SAMPLE + 6.0,
            y + 4.0,
        );
        x += SAMPLE + 6.0 + text_width(words) + 2.0 * MARGIN;
    }
    let height = if 0.0 < x { LINE_HEIGHT } else { 0.0 };
    Size { width: x, height }
}

impl TextBox {
    /// Returns its size with everything inside.
    pub(super) fn size(&self) -> Size {
        let inside = self.arranged();
        let lines = self.lines.iter().map(|it| text_width(&cut(&it.1)));
        let height = times(LINE_HEIGHT, self.lines.len());
        let below = if self.inside.is_empty() {
            0.0
        } else {
            PADDING / 2.0 + inside.size.height
        };
        Size {
            width: lines.fold(inside.size.width, f64::max) + 2.0 * PADDING,
            height: height + below + 1.5 * PADDING,
        }
    }

    fn arranged(&self) -> Layout {
        let sizes: Vec<Size> = self.inside.iter().map(Self::size).collect();
        layout::rows(&sizes, PADDING)
    }

    fn draw(&self, corner: Point, content: &mut String) {
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
            let corner = Point {
                x: corner.x + PADDING + within.x,
                y: y + PADDING / 2.0 + within.y,
            };
            it.draw(corner, content);
        }
        content.push_str("</g>\n");
    }
}
