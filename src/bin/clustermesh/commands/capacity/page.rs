//! The costs of the mesh as a page. In Markdown, all foreign text is in code.

use clustermesh::capacity::Cost;
use clustermesh::diagnostic::Quoted;
use clustermesh::report::page::{PageForm, ReportPage};
use clustermesh::results::findings::markdown::COMMENT;
use clustermesh::{joining, text};

use super::joining::{JoinOutlook, waiting};
use super::{AssumedMeshes, growth, shown};
use crate::output;

/// The room for a table, in bytes.
const TABLE: usize = COMMENT / 3;

/// The room for the exceeded limits, in bytes.
const LIMITS: usize = COMMENT / 4;

/// Returns the load of each cluster, or everything about it, and the load with the clusters that join.
pub(super) fn text(
    costs: &[Cost],
    outlook: &JoinOutlook,
    meshes: &AssumedMeshes,
    is_detailed: bool,
    form: PageForm,
) -> String {
    let mut page = ReportPage::new(form, "clustermesh capacity");
    if is_detailed {
        page.block(COMMENT / 2, |width| shown::details(costs, width));
    } else {
        overview(&mut page, costs, outlook);
    }
    if let Some(sentence) = output::keeping_nodes(&meshes.keeping_nodes) {
        page.sentence(&sentence);
    }
    if !meshes.assumed.is_empty() {
        let values = meshes.assumed.iter().map(|it| Quoted(&it.to_string()).to_string());
        page.sentence(&format!("Computed with {}.", text::list(values)));
    }
    if let Some(together) = &outlook.together {
        let with = match form {
            PageForm::Terminal(_) => "with",
            PageForm::Markdown => "With",
        };
        let names = joining::listed(&together.joiners);
        page.heading(&format!("{with} {names} joined"));
        page.table(&shown::clusters(&together.costs), TABLE);
    }
    page.text(&waiting(&outlook.waiting));
    page.finish()
}

fn overview(page: &mut ReportPage, costs: &[Cost], outlook: &JoinOutlook) {
    page.table(&shown::clusters(costs), TABLE);
    page.paragraph(&shown::total(costs));
    page.block(LIMITS, |width| shown::exceeded(costs, width));
    let Some(outgrowth) = &outlook.outgrowth else {
        return;
    };
    page.heading(&format!("How many more clusters like {} fit?", outgrowth.like));
    page.table(&growth::table(&outgrowth.rooms), TABLE);
    if let Some(closing) = growth::closing(outgrowth) {
        page.paragraph(&closing);
    }
}
