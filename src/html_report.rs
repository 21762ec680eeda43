//! The HTML report: everything about a mesh as one page, made of the results of the commands.
//!
//! A page loads nothing from elsewhere, and works without its script. Every text in the results is foreign: the
//! template escapes all of them.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{
    AutoEscape, Environment, Error, Output, State, UndefinedBehavior, Value, context,
    escape_formatter,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::capacity::units;
use crate::config::capacity::as_float;
use crate::diagnostic::{Severity, escaped};
use crate::graph::{MeshGraph, svg};
use crate::report::origin::VERSION;

mod address_space;
mod change;
mod cluster_card;
mod cut_off;
mod finding_list;
mod losses;
mod markup;
mod matrix;
mod mesh_results;
mod pair;
mod verdict;

pub use mesh_results::{MeshResults, NoResult};

use mesh_results::PageIds;

/// The parts of the page and their titles. The change is there only if there is an old version.
const PARTS: [(&str, &str); 11] = [
    ("verdict", "Verdict"),
    ("cut-off", "Cut off"),
    ("change", "Change"),
    ("graph", "Graph"),
    ("paths", "Paths"),
    ("findings", "Findings"),
    ("expectations", "Expectations"),
    ("losses", "Losses"),
    ("clusters", "Clusters"),
    ("address-space", "Addresses"),
    ("load", "Load"),
];

/// A page.
pub struct HtmlPage {
    /// Its text.
    pub html: String,
    /// The problem that a person must look at: errors, or an unknown change.
    pub problem: Option<String>,
}

/// Returns the page.
///
/// # Errors
/// A template that does not fit, which the tests rule out.
pub fn page(results: &MeshResults) -> Result<HtmlPage, Error> {
    let mut ids = PageIds::new(results);
    let pairs = pair::all(results, &mut ids);
    let findings = finding_list::FindingList::new(results);
    let ranges = address_space::range_claims(results);
    let cut_off = cut_off::all(results, &ids);
    let verdict = verdict::Verdict::new(results, &findings, &cut_off);
    let has_change = results.difference.is_some();
    let expectations = results.verification.as_ref().map(|it| &it.expectations);
    let picture = results.graph.as_ref().ok().map(PagePicture::new).transpose();
    let parts = PARTS.iter().filter(|it| has_change || it.0 != "change");
    let values = context! {
        parts => Serde(parts.collect::<Vec<_>>()),
        has_change,
        version => VERSION,
        origin => results.origin.sentence(),
        policy => policy(),
        style => Value::from_safe_string(style()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        verdict => Serde(&verdict),
        refusals => Serde(results.refusals()),
        no_picture => picture.as_ref().err(),
        picture => Serde(picture.ok().flatten()),
        cut_off => Serde(&cut_off),
        matrix => Serde(matrix::PathMatrix::new(results, &ids)),
        pairs => Serde(&pairs),
        cards => Serde(cluster_card::all(results, &ids, &findings, &ranges)),
        addresses => Serde(address_space::AddressSpaces::new(&ranges)),
        loads => Serde(cluster_card::loads(results, &ids)),
        rules => Serde(finding_list::rule_notes(&findings)),
        findings => Serde(&findings),
        expectations => Serde(expectations.ok()),
        losses => Serde(losses::Losses::new(results)),
        change => Serde(change::ChangeView::new(results)),
    };
    let html = environment()?.get_template(PAGE)?.render(values)?;
    let unknown = results.difference.as_ref().and_then(|it| it.as_ref().err());
    let has_errors = verdict.is_bad() || 0 < findings.count(Severity::Error);
    let problem = match unknown {
        Some(reason) => Some(format!("the change is unknown: {}", reason.message)),
        None => has_errors.then(|| "the page shows errors".to_owned()),
    };
    Ok(HtmlPage { html, problem })
}

/// The name of the page among the templates.
const PAGE: &str = "page.html";

/// The longest text that is shown, in characters: more than the names of all clusters together.
const SHOWN: usize = 100_000;

/// The templates by name.
const TEMPLATES: [(&str, &str); 10] = [
    (PAGE, include_str!("../templates/report/page.html")),
    ("addresses.html", include_str!("../templates/report/addresses.html")),
    ("bars.html", include_str!("../templates/report/bars.html")),
    ("change.html", include_str!("../templates/report/change.html")),
    ("clusters.html", include_str!("../templates/report/clusters.html")),
    ("findings.html", include_str!("../templates/report/findings.html")),
    ("load.html", include_str!("../templates/report/load.html")),
    ("paths.html", include_str!("../templates/report/paths.html")),
    ("proofs.html", include_str!("../templates/report/proofs.html")),
    ("trace.html", include_str!("../templates/report/trace.html")),
];

/// Returns the environment. An undefined value is false in a condition, and cannot be printed.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().lstrip_blocks(true).trim_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_formatter(write);
    environment.add_filter("prose", markup::prose);
    environment.add_filter("advice", markup::advice);
    environment.add_filter("quantity", cluster_card::shown);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// Writes a value. Characters that hide or reorder others are shown by their numbers.
fn write(output: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(output, state, &Value::from(escaped(text, SHOWN)))
        }
        _ => escape_formatter(output, state, value),
    }
}

/// The style of the page, without that of the picture.
const STYLE: &str = include_str!("../templates/report/style.css");

/// The script of the page.
const SCRIPT: &str = include_str!("../templates/report/script.js");

/// Returns the whole style.
fn style() -> String {
    format!("{STYLE}{}", svg::STYLE)
}

/// Returns the policy as a browser reads it.
fn policy() -> String {
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(&style()),
        source(SCRIPT)
    )
}

/// Returns the source that allows exactly one text.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The largest picture, in bytes.
const LARGEST: u64 = 1 << 20;

/// The widths of pictures that are made smaller to fit, in pixels. Texts of wider ones would be too small to read.
const FITTED: std::ops::RangeInclusive<u32> = 1000..=1700;

/// A picture.
#[derive(Serialize)]
struct PagePicture {
    svg: String,
    /// Whether it can be made smaller to fit.
    is_fitted: bool,
}

impl PagePicture {
    /// Returns the picture of a graph without its own style, which is in that of the page, and without the name of its format,
    /// which a page does not need; or the reason why it is missing.
    fn new(graph: &MeshGraph) -> Result<Self, String> {
        let picture = svg::svg(&graph.clone().shown(&BTreeSet::new(), None));
        let style = format!("<style>{}</style>", svg::STYLE);
        let svg = picture.replacen(&style, "", 1).replacen(
            " xmlns=\"http://www.w3.org/2000/svg\"",
            "",
            1,
        );
        let width = svg.split_once(" width=\"").and_then(|it| it.1.split_once('"'));
        let width: Option<u32> = width.and_then(|it| it.0.parse().ok());
        if !has_more_than_a_matrix(&svg) {
            let links = graph.links.len();
            return Err(format!(
                "of {links} links it would be the matrix below, without the numbers"
            ));
        }
        let size = u64::try_from(svg.len()).unwrap_or(u64::MAX);
        if LARGEST < size {
            let [size, limit] = [size, LARGEST].map(|it| units::bytes(as_float(it)));
            return Err(format!(
                "it has {size}, and a page shows at most {limit}; run `clustermesh graph > mesh.svg` for it"
            ));
        }
        Ok(Self { is_fitted: width.is_some_and(|it| FITTED.contains(&it)), svg })
    }
}

/// Returns whether a picture shows what the matrix of the page does not.
fn has_more_than_a_matrix(svg: &str) -> bool {
    svg.contains("<g class=") || !svg.contains("class=\"cell ")
}

#[cfg(test)]
mod tests;
