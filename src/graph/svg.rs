//! Graphs as SVG: boxes with lines between them, or with a matrix if there are too many lines.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::folded::ListedGroups;
use super::layout::{self, BoxSize, Layout, LayoutLine, Point};
use super::parts::cluster_box;
use super::text_box::{LINE_HEIGHT, LONGEST, PADDING, TextBox, text_width, xml};
use super::{GraphLevel, GraphLink, LINES, LinkState, MeshGraph, matrix};
use crate::report::origin::ResultOrigin;

/// The styles of a graph, as they are in its `style` element.
pub const STYLE: &str = include_str!("svg/style.css");

/// The space around everything, in pixels.
const MARGIN: f64 = 16.0;

/// The width of a sample in the legend, in pixels.
const SAMPLE: f64 = 36.0;

/// The form in which links are drawn.
enum DrawnLinks<'g> {
    /// As lines between the boxes of clusters.
    Lines,
    /// As lines between groups of alike clusters, each of which lists its clusters.
    Groups(ListedGroups<'g>),
    /// As cells.
    Matrix,
}

/// Returns the graph as a document of its own.
pub fn svg(graph: &MeshGraph) -> String {
    let mut content = String::new();
    let drawn = DrawnLinks::of(graph);
    let mut size = match &drawn {
        DrawnLinks::Lines => {
            let boxes: Vec<TextBox> = graph.clusters.iter().map(cluster_box).collect();
            lines(graph, &boxes, &mut content)
        }
        DrawnLinks::Groups(groups) => {
            let details = details(graph, &mut content);
            let boxes: Vec<TextBox> = groups.boxes().collect();
            let mut picture = String::new();
            let size = lines(&groups.graph, &boxes, &mut picture);
            let _ = writeln!(
                content,
                "<g transform=\"translate(0 {:.1})\">\n{picture}</g>",
                details.height
            );
            details.above(size)
        }
        DrawnLinks::Matrix => {
            let details = details(graph, &mut content);
            let matrix = matrix::draw(graph, details.height, &mut content);
            details.above(matrix)
        }
    };
    size.height += MARGIN;
    let is_matrix = matches!(drawn, DrawnLinks::Matrix);
    let legend = legend(graph, is_matrix, size.height, &mut content);
    let origin = origin(graph, size.height + legend.height, &mut content);
    let width = size.width.max(legend.width).max(origin.width) + 2.0 * MARGIN;
    let height = size.height + legend.height + origin.height + 2.0 * MARGIN;
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

impl<'g> DrawnLinks<'g> {
    fn of(graph: &'g MeshGraph) -> Self {
        if graph.links.len() <= LINES {
            return Self::Lines;
        }
        graph.listed_groups().map_or(Self::Matrix, Self::Groups)
    }
}

impl ListedGroups<'_> {
    /// Returns the boxes, which list the clusters of a group in lines.
    fn boxes(&self) -> impl Iterator<Item = TextBox> {
        self.graph.clusters.iter().zip(&self.names).map(|(cluster, names)| {
            let mut listed = cluster_box(cluster);
            if 1 < names.len() {
                listed.cluster = None;
                listed.lines.extend(name_lines(names).into_iter().map(|it| ("note", it)));
            }
            listed
        })
    }
}

/// Returns names in lines that fit into a box.
fn name_lines(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + name.chars().count() <= LONGEST => {
                line.push_str(" · ");
                line.push_str(name);
            }
            _ => lines.push((*name).to_owned()),
        }
    }
    lines
}

impl BoxSize {
    /// Returns the size of it with another one below.
    fn above(self, below: Self) -> Self {
        Self { width: self.width.max(below.width), height: self.height + below.height }
    }
}

/// Draws boxes with lines between them.
fn lines(graph: &MeshGraph, boxes: &[TextBox], content: &mut String) -> BoxSize {
    let sizes: Vec<BoxSize> = boxes.iter().map(TextBox::size).collect();
    let drawn = graph.placed().map(|(link, ends)| {
        let label = BoxSize { width: text_width(&link.label()) + PADDING, height: LINE_HEIGHT };
        (link, LayoutLine { ends, label })
    });
    let (links, routes): (Vec<&GraphLink>, Vec<LayoutLine>) = drawn.unzip();
    let layout = layout::columns(&sizes, &routes);
    for (link, points) in links.iter().zip(&layout.lines) {
        draw_line(link, points, content);
    }
    draw_boxes(boxes, &layout, content);
    for (link, middle) in links.iter().zip(&layout.labels) {
        draw_label(&link.label(), *middle, content);
    }
    layout.size
}

/// Draws the boxes of clusters if they have details.
fn details(graph: &MeshGraph, content: &mut String) -> BoxSize {
    if graph.level == GraphLevel::Clusters {
        return BoxSize::default();
    }
    let boxes: Vec<TextBox> = graph.clusters.iter().map(cluster_box).collect();
    let sizes: Vec<BoxSize> = boxes.iter().map(TextBox::size).collect();
    let layout = layout::rows(&sizes, MARGIN);
    draw_boxes(&boxes, &layout, content);
    BoxSize { height: layout.size.height + 2.0 * MARGIN, ..layout.size }
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

/// Writes what the graph was made from below the legend, if that is known.
fn origin(graph: &MeshGraph, top: f64, content: &mut String) -> BoxSize {
    let Some(origin) = graph.origin.as_ref().map(ResultOrigin::sentence) else {
        return BoxSize { width: 0.0, height: 0.0 };
    };
    let y = top + LINE_HEIGHT / 2.0 + 4.0;
    let _ = writeln!(content, "<text class=\"note\" x=\"0\" y=\"{y:.1}\">{}</text>", xml(&origin));
    BoxSize { width: text_width(&origin), height: LINE_HEIGHT }
}

/// Draws the results that occur, with their styles.
fn legend(graph: &MeshGraph, is_matrix: bool, top: f64, content: &mut String) -> BoxSize {
    // A cell shows only one direction.
    let is_cell = |it: &LinkState| !is_matrix || *it != LinkState::OneWay;
    let mut states: BTreeSet<LinkState> = graph.states().filter(is_cell).collect();
    if states.len() < graph.states().count() {
        states.insert(LinkState::Fails);
    }
    let mut x = 0.0;
    for state in states {
        let y = top + LINE_HEIGHT / 2.0;
        if is_matrix {
            matrix::draw_row(&[Some(state)], (x, top), LINE_HEIGHT, content);
        } else {
            let state = state.name();
            let _ = write!(content, "<path class=\"link {state}\" d=\"M{x:.1} {y:.1}h{SAMPLE}\"/>");
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
    BoxSize { width: x, height }
}
