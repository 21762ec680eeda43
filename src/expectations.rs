//! Expectations: packets between clusters that must arrive, and packets that must not.

use std::collections::BTreeMap;

use schemars::Schema;

use crate::config::Date;
use crate::diagnostic::{Finding, Quoted, mistake};
use crate::document::{Form, SingleDocument, Source};
use crate::mesh::{AddressClass, KnownGroups};
use crate::name::ClusterName;
use crate::net::{self, Cidr, Family};
use crate::place::Place;
use crate::schema;
use crate::selector::Selector;

mod side;
mod written;

use side::SideReader;
use written::WrittenExpectations;

/// The content of a file of expectations.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expectations {
    /// The expectations.
    pub expectations: Vec<Expectation>,
    /// Set if paths that no mesh declares must not work.
    pub denied: Option<DeniedPaths>,
}

/// The prohibition of all paths that no mesh declares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeniedPaths {
    /// The paths that are allowed nevertheless.
    pub exceptions: Vec<Exception>,
    /// Its place.
    pub place: Place,
}

/// Undeclared paths that are allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exception {
    /// Its name.
    pub name: String,
    /// The sender.
    pub from: Selection,
    /// The receiver.
    pub to: Selection,
    /// The reason.
    pub reason: String,
    /// The last day on which it holds.
    pub until: Option<Date>,
    /// Its place.
    pub place: Place,
}

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
    /// The clusters; none for any.
    pub clusters: Option<SelectedClusters>,
    /// Labels of the node that has them; none if they need not be a node's.
    pub nodes: Option<Selector>,
    /// Ranges that hold them, in the order in which they are written; empty for any.
    pub addresses: Vec<Cidr>,
    /// The kind of address; none for any.
    pub class: Option<AddressClass>,
    /// Its place.
    pub place: Place,
}

/// Clusters that a person names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SelectedClusters {
    /// Each with the place that names it.
    pub members: BTreeMap<ClusterName, Place>,
    /// The name of the group that they are, if they are one.
    pub group: Option<String>,
}

/// Reads a file of expectations, which may name these groups.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(source: &Source, groups: &KnownGroups) -> Result<Expectations, Vec<Finding>> {
    let SingleDocument { place, content, others } = source
        .single_document(
            "the file contains no expectations",
            "expectations must be a single document",
        )
        .map_err(|empty| vec![empty])?;
    let (written, mut problems) = Form::<WrittenExpectations>::new().salvage(content, &place);
    let mut read = Expectations::default();
    if let Some(written) = written.filter(|_| problems.is_empty()) {
        let mut reader = SideReader { groups, findings: &mut problems };
        read = written.spec.read(&place.key("spec"), &mut reader);
        problems.extend(repeated(&read));
    }
    problems.extend(others);
    if problems.is_empty() { Ok(read) } else { Err(problems.into_findings()) }
}

/// Returns the JSON Schema of a file of expectations.
pub fn schema() -> Schema {
    schema::of_written::<WrittenExpectations>()
}

/// Undeclared paths that may work although all others are forbidden.
#[derive(Clone, Copy, Debug)]
pub struct AllowedPaths<'e> {
    /// The sender.
    pub from: &'e Selection,
    /// The receiver.
    pub to: &'e Selection,
}

impl DeniedPaths {
    /// Returns the paths that are allowed on a day: by the exceptions, as many as hold, and then by expectations that need
    /// them.
    pub fn allowed<'e>(
        &'e self,
        expectations: &'e [Expectation],
        today: Date,
    ) -> Vec<AllowedPaths<'e>> {
        let exceptions = self.holding(today);
        let exceptions = exceptions.map(|it| (&it.from, &it.to));
        let needed = expectations.iter().filter(|it| it.expected == Expected::Reach);
        let allowed = exceptions.chain(needed.map(|it| (&it.from, &it.to)));
        allowed.map(|(from, to)| AllowedPaths { from, to }).collect()
    }

    /// Returns the exceptions that allow all paths between clusters on a day.
    pub fn boundless<'e>(
        &'e self,
        clusters: &[&ClusterName],
        today: Date,
    ) -> impl Iterator<Item = &'e Exception> {
        self.holding(today).filter(|it| {
            let sides = [&it.from, &it.to];
            let has_all = |family| sides.iter().all(|it| it.is_whole(clusters, family));
            has_all(Family::V4) || has_all(Family::V6)
        })
    }

    /// Returns the exceptions that hold on a day.
    pub fn holding(&self, today: Date) -> impl Iterator<Item = &Exception> {
        self.exceptions.iter().filter(move |it| it.holds(today))
    }
}

impl Selection {
    /// Returns whether it selects addresses of a cluster.
    pub fn has_cluster(&self, cluster: &ClusterName) -> bool {
        let clusters = self.clusters.as_ref();
        clusters.is_none_or(|it| it.members.contains_key(cluster))
    }

    /// Returns whether it selects all addresses of clusters in a family.
    fn is_whole(&self, clusters: &[&ClusterName], family: Family) -> bool {
        let all = |it: &Cidr| it.family() == family && it.prefix_length() == 0;
        let has_all = self.addresses.is_empty()
            || net::merged(self.addresses.iter().copied()).iter().any(all);
        let is_narrowed = self.class.is_some() || self.nodes.is_some();
        has_all && !is_narrowed && clusters.iter().all(|it| self.has_cluster(it))
    }
}

impl Exception {
    /// Returns whether it holds on a day.
    pub fn holds(&self, today: Date) -> bool {
        self.until.is_none_or(|it| today <= it)
    }
}

/// Reports names that occur more than once: a failure could not be assigned to one of them.
fn repeated(read: &Expectations) -> Vec<Finding> {
    let expectations = read.expectations.iter();
    let expectations = expectations.filter_map(|it| Some((it.name.as_ref()?, &it.place)));
    let exceptions = read.denied.iter().flat_map(|it| &it.exceptions);
    let exceptions = exceptions.map(|it| (&it.name, &it.place));
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, place) in expectations.chain(exceptions) {
        let Some(before) = first.get(&**name) else {
            first.insert(name, place);
            continue;
        };
        let message = format!("duplicate expectation name {}", Quoted(name));
        let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
        let finding = finding.at_both(place.key("name"), before.key("name"));
        problems.push(finding.help("give each expectation a name of its own"));
    }
    problems
}

#[cfg(test)]
mod tests;
