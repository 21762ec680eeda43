//! The figures of the page about the size of meshes, and its chart.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::generated;
use crate::support::scale::{self, Row};
use crate::support::tenants::Tenants;
use crate::support::{clustermesh, project};

const PAGE: &str = "docs/concepts/scale.md";
const CHART: &str = "docs/images/tenants.svg";

/// The lines around the table.
const BEGIN: &str = "<!-- The figures of `cargo bench --bench tenants`. -->\n\n";
const END: &str = "\n<!-- End of the figures. -->";

fn capacity(folder: &Path) -> String {
    let run = clustermesh(folder, scale::CAPACITY);
    // The largest have a grade that is an error.
    assert!(run.code <= 1, "{}{}", run.stdout, run.stderr);
    run.stdout
}

fn rows(tenants: Vec<Tenants>) -> Vec<Row> {
    let rows = tenants.into_par_iter().map(|tenants| {
        let folder = tempfile::tempdir().unwrap();
        scale::row(tenants, folder.path(), capacity)
    });
    rows.collect()
}

#[test]
fn the_page_has_the_figures_of_the_model() {
    let rows = rows(scale::all());
    let page = fs::read_to_string(project().join(PAGE)).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = [before, BEGIN, &scale::table(&rows), END, after].concat();
    generated::compare(PAGE, &expected);
    generated::compare(CHART, &scale::chart(&rows));
}
