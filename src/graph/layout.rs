//! Layouts: where boxes and lines are drawn.

use dagre::graph::{Graph, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, RankDir};

/// The space between boxes with lines, in pixels.
const GAP: f64 = 28.0;

/// The widest row, in pixels.
const WIDEST: f64 = 1200.0;

/// A width and a height, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BoxSize {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A point, in pixels from the upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A line between two boxes, with room for a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutLine {
    /// The places of the boxes.
    pub(super) ends: [usize; 2],
    /// The size of its label.
    pub(super) label: BoxSize,
}

/// The positions of boxes and lines.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The size of everything.
    pub(super) size: BoxSize,
    /// The upper left corner of each box.
    pub(super) boxes: Vec<Point>,
    /// The points of each line, from one box to the other.
    pub(super) lines: Vec<Vec<Point>>,
    /// The middle of each label.
    pub(super) labels: Vec<Point>,
}

/// Arranges boxes without lines in rows, with a space between them.
pub(super) fn rows(boxes: &[BoxSize], gap: f64) -> Layout {
    let area: f64 = boxes.iter().map(|it| it.width * it.height).sum();
    let widest = boxes.iter().map(|it| it.width).fold(0.0, f64::max);
    let limit = (area * 2.0).sqrt().clamp(widest, WIDEST.max(widest));
    let mut layout = Layout::default();
    let (mut corner, mut height) = (Point::default(), 0.0_f64);
    for size in boxes {
        if 0.0 < corner.x && limit < corner.x + size.width {
            corner = Point { x: 0.0, y: corner.y + height + gap };
            height = 0.0;
        }
        layout.boxes.push(corner);
        height = height.max(size.height);
        layout.size.width = layout.size.width.max(corner.x + size.width);
        layout.size.height = layout.size.height.max(corner.y + size.height);
        corner.x += size.width + gap;
    }
    layout
}

/// Arranges boxes in columns, so that lines lead from left to right and do not cross boxes. Boxes without a line
/// follow in rows.
pub(super) fn columns(boxes: &[BoxSize], lines: &[LayoutLine]) -> Layout {
    let mut graph: Graph<NodeLabel, EdgeLabel> =
        Graph::with_options(GraphOptions { directed: true, multigraph: false, compound: false });
    let is_linked = |place: usize| lines.iter().any(|it| it.ends.contains(&place));
    for (place, size) in boxes.iter().enumerate().filter(|it| is_linked(it.0)) {
        let label = NodeLabel { width: size.width, height: size.height, ..NodeLabel::default() };
        graph.set_node(place.to_string(), Some(label));
    }
    for line in lines {
        let label = EdgeLabel {
            width: line.label.width,
            height: line.label.height,
            labelpos: LabelPos::Center,
            ..EdgeLabel::default()
        };
        let [from, to] = line.ends.map(|it| it.to_string());
        graph.set_edge(from, to, Some(label), None);
    }
    // The more lines lead away from a box, the more room they need to part.
    let lines_of = |place| lines.iter().filter(|it| it.ends.contains(&place)).count();
    let most = (0..boxes.len()).map(lines_of).max().unwrap_or_default();
    dagre::layout(
        &mut graph,
        Some(LayoutOptions {
            rankdir: RankDir::LR,
            nodesep: GAP,
            edgesep: GAP / 2.0,
            ranksep: GAP + 5.0 * f64::from(u8::try_from(most).unwrap_or(u8::MAX)),
            tie_keep_first: true,
            ..LayoutOptions::default()
        }),
    );
    let mut layout = read(&graph, boxes, lines);
    layout.append(boxes, is_linked);
    layout
}

/// Reads the positions of boxes with lines.
fn read(graph: &Graph<NodeLabel, EdgeLabel>, boxes: &[BoxSize], lines: &[LayoutLine]) -> Layout {
    let mut layout = Layout::default();
    let mut grow = |point: Point| {
        layout.size.width = layout.size.width.max(point.x);
        layout.size.height = layout.size.height.max(point.y);
    };
    let corners = boxes.iter().enumerate().map(|(place, size)| {
        let middle = graph.node(&place.to_string())?;
        let (x, y) = middle.x.zip(middle.y)?;
        grow(Point { x: x + size.width / 2.0, y: y + size.height / 2.0 });
        Some(Point { x: x - size.width / 2.0, y: y - size.height / 2.0 })
    });
    let corners: Vec<Option<Point>> = corners.collect();
    let mut routes = Vec::new();
    for line in lines {
        let [from, to] = line.ends.map(|it| it.to_string());
        let edge = graph.edge(&from, &to, None);
        let points = edge.into_iter().flat_map(|it| &it.points);
        let points: Vec<Point> = points.map(|it| Point { x: it.x, y: it.y }).collect();
        let middle = edge.and_then(|it| it.x.zip(it.y));
        let middle = middle.map(|(x, y)| Point { x, y }).unwrap_or_default();
        points.iter().copied().for_each(&mut grow);
        grow(Point { x: middle.x + line.label.width / 2.0, y: middle.y + line.label.height / 2.0 });
        routes.push((points, middle));
    }
    layout.boxes = corners.into_iter().map(Option::unwrap_or_default).collect();
    (layout.lines, layout.labels) = routes.into_iter().unzip();
    layout
}

impl Layout {
    /// Adds the boxes without lines below the others.
    fn append(&mut self, boxes: &[BoxSize], is_linked: impl Fn(usize) -> bool) {
        let alone: Vec<usize> = (0..boxes.len()).filter(|it| !is_linked(*it)).collect();
        if alone.is_empty() {
            return;
        }
        let sizes = alone.iter().filter_map(|it| boxes.get(*it)).copied();
        let below = rows(&sizes.collect::<Vec<_>>(), GAP);
        let top = if self.lines.is_empty() { 0.0 } else { self.size.height + GAP };
        for (place, corner) in alone.into_iter().zip(below.boxes) {
            if let Some(it) = self.boxes.get_mut(place) {
                *it = Point { x: corner.x, y: top + corner.y };
            }
        }
        self.size.width = self.size.width.max(below.size.width);
        self.size.height = top + below.size.height;
    }
}
