//! Expectations: packets between clusters that must arrive, and packets that must not.

use std::collections::BTreeMap;

use schemars::Schema;

use crate::diagnostic::{Finding, Quoted, mistake};
use crate::document::{Form, SingleDocument, Source};
use crate::mesh::AddressClass;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::schema;
use crate::selector::Selector;

mod written;

use written::WrittenExpectations;

/// Packets with an expected result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Expectation {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The sender.
    pub from: Selection,
    /// The receiver.
    pub to: Selection,
    /// The expected result.
    pub expected: Expected,
    /// Whether the paths must survive the loss of any single node that is not an end of them.
    pub survives_a_node: bool,
    /// Its place.
    pub place: Place,
}

/// The expected result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    /// All packets and their answers arrive.
    Reach,
    /// No packet arrives; answers are not considered.
    Deny,
}

/// Some addresses of some clusters: those that meet all conditions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Selection {
    /// The cluster; none for any.
    pub cluster: Option<ClusterName>,
    /// Labels of the node that has them; none if they need not be a node's.
    pub nodes: Option<Selector>,
    /// Ranges that hold them, in the order in which they are written; empty for any.
    pub addresses: Vec<Cidr>,
    /// The kind of address; none for any.
    pub class: Option<AddressClass>,
    /// Its place.
    pub place: Place,
}

/// Reads a file of expectations.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(source: &Source) -> Result<Vec<Expectation>, Vec<Finding>> {
    let SingleDocument {
        place,
        content,
        others,
    } = source
        .single_document(
            "the file contains no expectations",
            "expectations must be a single document",
        )
        .map_err(|empty| vec![empty])?;
    let (written, mut problems) = Form::<WrittenExpectations>::new().salvage(content, &place);
    let mut expectations = Vec::new();
    if problems.is_empty() {
        let place = place.key("spec");
        let written = written.into_iter().flat_map(|it| it.spec).enumerate();
        for (index, written) in written {
            expectations.extend(written.read(place.index(index), &mut problems));
        }
        problems.extend(repeated(&expectations));
    }
    problems.extend(others);
    if problems.is_empty() {
        Ok(expectations)
    } else {
        Err(problems.into_findings())
    }
}

/// Returns the JSON Schema of a file of expectations.
pub fn schema() -> Schema {
    schema::of_input::<WrittenExpectations>()
}

/// Reports names that occur more than once: a failure could not be assigned to one of them.
fn repeated(expectations: &[Expectation]) -> Vec<Finding> {
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    let mut problems = Vec::new();
    for expectation in expectations {
        let Some(name) = &expectation.name else {
            continue;
        };
        let Some(before) = first.get(&**name) else {
            first.insert(name, &expectation.place);
            continue;
        };
        let message = format!("duplicate expectation name {}", Quoted(name));
        let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
        problems.push(finding.at_both(expectation.place.key("name"), before.key("name")));
    }
    problems
}

#[cfg(test)]
mod tests;
