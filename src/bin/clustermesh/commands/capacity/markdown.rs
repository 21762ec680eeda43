//! The costs of the mesh as Markdown, for a comment on a pull request. All foreign text is in code.

use std::fmt::Write as _;

use clustermesh::joining;

use super::cost::Cost;
use super::growth;
use super::shown;
use super::waves::{self, JoinOutlook, JoinWave};
use crate::output::COMMENT;
use clustermesh::report::markdown::{fenced, prose};
use clustermesh::report::width::Width;

/// The room for a table, in bytes.
const TABLE: usize = COMMENT / 3;

/// The room for the exceeded limits, in bytes.
const LIMITS: usize = COMMENT / 4;

/// Returns the load of each cluster, and that with the clusters that join.
pub(super) fn overview(costs: &[Cost], outlook: &JoinOutlook) -> String {
    let mut page = format!(
        "### clustermesh capacity\n\n{}\n{}\n{}",
        shown::clusters(costs).markdown(TABLE),
        shown::total(costs),
        fenced(&shown::exceeded(costs, Width::default()), LIMITS)
    );
    if let Some(outgrowth) = &outlook.outgrowth {
        let _ = writeln!(
            page,
            "\n#### How many more clusters like {} fit?\n\n{}",
            outgrowth.like,
            growth::table(&outgrowth.rooms).markdown(TABLE)
        );
        if let Some(closing) = growth::closing(outgrowth) {
            let _ = writeln!(page, "{closing}");
        }
    }
    page.push_str(&joined(outlook));
    page
}

/// Returns everything about each cluster.
pub(super) fn details(costs: &[Cost], outlook: &JoinOutlook) -> String {
    let details = fenced(&shown::details(costs, Width::default()), COMMENT / 2);
    format!("### clustermesh capacity\n{details}{}", joined(outlook))
}

/// Returns the load with the clusters that join.
fn joined(outlook: &JoinOutlook) -> String {
    let mut text = String::new();
    if let Some(together) = &outlook.together {
        let names = joining::listed(&together.joiners);
        let _ = writeln!(
            text,
            "\n#### With {names} joined\n\n{}\n{}",
            shown::clusters(&together.costs).markdown(TABLE),
            waves::ASK_FOR_WAVES
        );
    }
    text.push_str(&waves::waiting(&outlook.waiting));
    text
}

/// Returns a row for each wave, and the exceeded limits.
pub(super) fn waves(waves: &[JoinWave], outlook: &JoinOutlook) -> String {
    let mut page = "### clustermesh capacity: waves\n\n".to_owned();
    if waves.is_empty() {
        page.push_str(waves::no_wave(&outlook.waiting));
    } else {
        let _ = write!(
            page,
            "{}{}\n{}",
            waves::table(waves).markdown(TABLE),
            fenced(&waves::exceeded(waves, Width::default()), LIMITS),
            waves::closing(waves)
        );
        for advice in &outlook.advice {
            let _ = writeln!(page, "\n{}", prose(advice));
        }
    }
    page.push_str(&waves::waiting(&outlook.waiting));
    page
}
