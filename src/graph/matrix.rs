//! Matrices of links, which stay readable where lines would not: a row for each sender, a column for each receiver.

use std::fmt::Write as _;

use super::layout::BoxSize;
use super::text_box::{text_width, times, xml};
use super::{LinkState, MeshGraph};

/// The largest number of clusters for cells of a size in pixels, and the class of texts beside them.
const SIZES: [(usize, f64, &str); 3] =
    [(40, 18.0, "large"), (100, 12.0, "medium"), (usize::MAX, 9.0, "small")];

/// The share of the width of a usual character that one in a cell's size takes.
const SHARE: f64 = 0.9;

/// Cells beside each other that look alike.
struct CellRun {
    from: usize,
    cells: usize,
    state: LinkState,
}

/// Draws the matrix below a height.
pub(super) fn draw(graph: &MeshGraph, top: f64, content: &mut String) -> BoxSize {
    let names: Vec<&str> = graph.clusters.iter().map(|it| it.name.as_str()).collect();
    let size = SIZES.into_iter().find(|it| names.len() <= it.0);
    let (_, cell, class) = size.unwrap_or(SIZES[SIZES.len() - 1]);
    let widths = names.iter().map(|it| text_width(it) * SHARE + 8.0);
    let margin = widths.fold(text_width("from, to"), f64::max);
    let left = margin;
    let first = top + margin;
    let at = |place: usize| times(cell, place);
    for (place, name) in names.iter().enumerate() {
        let middle = at(place) + cell / 2.0;
        let (x, y) = (left + middle, first + middle);
        let name = xml(name);
        let _ = writeln!(
            content,
            "<text class=\"axis {class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <text class=\"axis {class}\" transform=\"translate({:.1} {:.1}) rotate(-90)\">{name}</text>",
            left - 6.0,
            y + 0.3 * cell,
            x + 0.3 * cell,
            first - 6.0,
        );
    }
    let edge = at(names.len());
    let _ = writeln!(
        content,
        "<rect class=\"grid\" x=\"{left:.1}\" y=\"{first:.1}\" width=\"{edge:.1}\" height=\"{edge:.1}\"/>"
    );
    for (row, states) in rows(graph).iter().enumerate() {
        draw_row(states, (left, first + at(row)), cell, content);
    }
    BoxSize { width: left + edge, height: margin + edge }
}

/// Draws the cells of a row from its upper left corner.
pub(super) fn draw_row(
    states: &[Option<LinkState>],
    corner: (f64, f64),
    cell: f64,
    content: &mut String,
) {
    let (left, y) = corner;
    let mut marks = String::new();
    for run in runs(states) {
        let x = left + times(cell, run.from);
        let width = times(cell, run.cells);
        let state = run.state.name();
        let _ = write!(
            content,
            "<rect class=\"cell {state}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{cell}\"/>"
        );
        for number in 0..run.cells {
            mark(run.state, (x + times(cell, number), y), cell, &mut marks);
        }
    }
    if !marks.is_empty() {
        let _ = write!(content, "<path class=\"mark\" d=\"{marks}\"/>");
    }
    content.push('\n');
}

/// Marks a cell, so that results do not differ in colour alone.
fn mark(state: LinkState, (x, y): (f64, f64), cell: f64, marks: &mut String) {
    let (a, b) = (cell * 0.25, cell * 0.5);
    let _ = match state {
        LinkState::Fails | LinkState::OneWay => {
            write!(marks, "M{:.1} {:.1}l{b:.1} {b:.1}m0 -{b:.1}l-{b:.1} {b:.1}", x + a, y + a)
        }
        LinkState::Assumed => write!(marks, "M{:.1} {:.1}h{b:.1}", x + a, y + b),
        LinkState::Unproved => write!(marks, "M{x:.1} {:.1}L{:.1} {y:.1}", y + cell, x + cell),
        LinkState::Works => Ok(()),
    };
}

/// Returns the results of the paths of each ordered pair, by sender; none for clusters without a link.
fn rows(graph: &MeshGraph) -> Vec<Vec<Option<LinkState>>> {
    let side = graph.clusters.len();
    let mut rows = vec![vec![None; side]; side];
    for (link, [one, other]) in graph.placed() {
        rows[one][other] = Some(LinkState::of(link.there, link.there));
        rows[other][one] = Some(LinkState::of(link.back, link.back));
    }
    rows
}

/// Joins cells that look alike.
fn runs(states: &[Option<LinkState>]) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
    for (place, state) in states.iter().enumerate() {
        let Some(state) = *state else { continue };
        match runs.last_mut() {
            Some(run) if run.state == state && run.from + run.cells == place => run.cells += 1,
            _ => runs.push(CellRun { from: place, cells: 1, state }),
        }
    }
    runs
}
