//! The HTML report: everything about a mesh as one page, made of the JSON documents of the commands.
//!
//! A page loads nothing from elsewhere, and works without its script. Every text in the documents is foreign: the
//! template escapes all of them.

use minijinja::value::Serde;
use minijinja::{Value, context};

mod address_space;
mod answers;
mod change;
mod change_document;
mod cluster_card;
mod content_policy;
mod cut_off;
mod range_claims;
mod documents;
mod environment;
mod error;
mod finding_document;
mod finding_list;
mod graph_document;
mod ids;
mod load;
mod losses;
mod markup;
mod matrix;
mod pair;
mod path_state;
mod proof_document;
mod outage_document;
mod picture;
mod rule_notes;
mod verdict;

pub use answers::MeshAnswers;
pub use error::HtmlError;

use documents::PageDocuments;
use ids::PageIds;

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

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the page.
///
/// # Errors
/// A document that has another form, or a template that does not fit, which the tests rule out.
pub fn page(answers: &MeshAnswers) -> Result<String, HtmlError> {
    let documents = PageDocuments::read(answers)?;
    let mut ids = PageIds::new(&documents);
    let pairs = pair::all(&documents, &mut ids);
    let findings = finding_list::FindingList::new(&documents);
    let ranges = range_claims::all(&documents);
    let cut_off = cut_off::all(&documents, &ids);
    let verdict = verdict::Verdict::new(&documents, &findings, &cut_off);
    let has_change = documents.difference.is_some();
    let parts = PARTS.iter().filter(|it| has_change || it.0 != "change");
    let values = context! {
        parts => Serde(parts.collect::<Vec<_>>()),
        has_change,
        version => VERSION,
        policy => content_policy::policy(),
        style => Value::from_safe_string(content_policy::style()),
        script => Value::from_safe_string(content_policy::SCRIPT.to_owned()),
        verdict => Serde(&verdict),
        refusals => Serde(documents.refusals()),
        picture => Serde(answers.picture.as_deref().and_then(picture::PagePicture::new)),
        cut_off => Serde(&cut_off),
        matrix => Serde(matrix::PathMatrix::new(&documents, &ids)),
        pairs => Serde(&pairs),
        cards => Serde(cluster_card::all(&documents, &ids, &findings, &ranges)),
        addresses => Serde(address_space::AddressSpaces::new(&ranges)),
        loads => Serde(load::all(&documents, &ids)),
        rules => Serde(rule_notes::all(&findings)),
        findings => Serde(&findings),
        expectations => Serde(documents.expectations()),
        losses => Serde(losses::Losses::new(&documents)),
        change => Serde(change::ChangeView::new(&documents)),
    };
    Ok(environment::environment()?.get_template(environment::PAGE)?.render(values)?)
}

#[cfg(test)]
mod tests;
