//! The picture of the graph, as a part of the page.

use serde::Serialize;

use crate::graph::svg;

/// The largest picture, in bytes. A larger one is a matrix of links, which the page has anyway.
const LARGEST: usize = 1 << 20;

/// The widths of pictures that are made smaller to fit, in pixels. Texts of wider ones would be too small to read.
const FITTED: std::ops::RangeInclusive<u32> = 1000..=1700;

/// A picture.
#[derive(Serialize)]
pub(super) struct PagePicture {
    svg: String,
    /// Whether it can be made smaller to fit.
    is_fitted: bool,
}

impl PagePicture {
    /// Returns a picture without its own style, which is in that of the page, and without the name of its format, which a
    /// page does not need; nothing if it is too large.
    pub(super) fn new(picture: &str) -> Option<Self> {
        let style = format!("<style>{}</style>", svg::STYLE);
        let svg = picture.replacen(&style, "", 1).replacen(
            " xmlns=\"http://www.w3.org/2000/svg\"",
            "",
            1,
        );
        let width = svg.split_once(" width=\"").and_then(|it| it.1.split_once('"'));
        let width: Option<u32> = width.and_then(|it| it.0.parse().ok());
        Some(Self { is_fitted: width.is_some_and(|it| FITTED.contains(&it)), svg })
            .filter(|it| it.svg.len() <= LARGEST && has_more_than_a_matrix(&it.svg))
    }
}

/// Returns whether a picture shows what the matrix of the page does not.
fn has_more_than_a_matrix(svg: &str) -> bool {
    svg.contains("<g class=") || !svg.contains("class=\"cell ")
}
