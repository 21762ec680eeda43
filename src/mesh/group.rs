//! Groups: clusters that expectations select under one name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::document::suggesting;
use crate::name::ClusterName;
use crate::place::Place;
use crate::schema::pattern;
use crate::text::{list, listed};

use super::invalid_name;
use super::mistakes::{REMOVE_ONE, member_name};

/// Some clusters under one name. A person declares them, so no node decides who belongs to them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group {
    /// Its name: a DNS-1123 label.
    pub name: String,
    /// Its members in the order in which they are written.
    pub clusters: Vec<ClusterName>,
    /// The list of its members.
    pub place: Place,
}

/// The groups of all files, by name.
#[derive(Clone, Debug, Default)]
pub struct KnownGroups<'g>(BTreeMap<&'g str, &'g Group>);

/// Groups as they are written, by name.
pub(crate) type WrittenGroups = BTreeMap<String, Vec<String>>;

/// Returns the groups of a file, and reports mistakes in them.
pub(crate) fn groups(
    written: Option<WrittenGroups>,
    place: &Place,
    findings: &mut Mistakes,
) -> Vec<Group> {
    let written = written.unwrap_or_default().into_iter();
    let groups = written.map(|(name, members)| {
        let place = place.key(&name);
        if let Err(error) = name.parse::<ClusterName>() {
            findings.push(invalid_name("group", &name, &error, place.clone().named()));
        }
        let mut clusters: Vec<ClusterName> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, text) in members.iter().enumerate() {
            let own = place.index(index);
            let Some(cluster) = member_name(text, &own, findings) else {
                continue;
            };
            if let Some(first) = places.get(&**text) {
                let message = format!("duplicate cluster `{cluster}` in group {}", Quoted(&name));
                let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
                findings.push(finding.at_both(own, place.index(*first)).help(REMOVE_ONE));
            } else {
                places.insert(text, index);
                clusters.push(cluster);
            }
        }
        Group { name, clusters, place }
    });
    groups.collect()
}

/// Returns the schema of the members of each group.
pub(crate) fn members() -> Value {
    let name = json!({ "type": "string", "pattern": pattern::MEMBER_NAME });
    json!({ "type": "array", "items": name, "minItems": 1 })
}

impl Group {
    /// Reports the members that are not among these clusters.
    pub fn find_unknown(&self, known: &BTreeSet<&str>, prefix: &str, findings: &mut Mistakes) {
        let clusters = self.clusters.iter().enumerate();
        for (index, cluster) in clusters.filter(|it| !known.contains(it.1.as_str())) {
            findings.push_with(&mistake::UNKNOWN_CLUSTER, || {
                let known = known.iter().copied();
                unknown_cluster(cluster.as_str(), self.place.index(index), known, prefix)
            });
        }
    }
}

/// Returns the finding about a cluster that is not among those that are known.
pub(crate) fn unknown_cluster<'a>(
    text: &str,
    place: Place,
    known: impl Iterator<Item = &'a str>,
    prefix: &str,
) -> Finding {
    let message = format!("{prefix} {}", Quoted(text));
    let finding = Finding::new(&mistake::UNKNOWN_CLUSTER, message).at(place, "").of_name(text);
    let known: Vec<&str> = known.filter(|it| !it.is_empty()).collect();
    suggesting(text, known.iter().copied(), finding).unwrap_or_else(|finding| match &known[..] {
        [] => finding,
        known => finding.help(format!(
            "correct or remove {}, or declare a cluster of this name; known clusters: {}",
            Quoted(text),
            listed(known.iter().map(|it| Quoted(it)))
        )),
    })
}

/// Returns a finding about a cluster that is not known, or that its name is that of one of these groups. Without a field for
/// groups, people write the members.
pub(crate) fn or_group<'g>(
    finding: Finding,
    groups: impl IntoIterator<Item = &'g Group>,
    has_field: bool,
) -> Finding {
    let name = finding.named.as_deref();
    let Some(group) = groups.into_iter().find(|it| Some(&*it.name) == name) else {
        return finding;
    };
    let quoted = Quoted(&group.name);
    let help = if has_field {
        format!("write `group: {}` instead", group.name)
    } else {
        format!("write its clusters: {}", list(group.clusters.iter().map(|it| format!("`{it}`"))))
    };
    let message = format!("{quoted} is a group, not a cluster").into();
    Finding { message, replacement: None, alike: None, ..finding }
        .at(group.place.clone(), "the group")
        .help(help)
}

/// Returns a finding about a group that is not known, or that its name is that of one of these clusters.
pub fn or_cluster(finding: Finding, clusters: &BTreeSet<String>) -> Finding {
    let Some(name) =
        finding.named.clone().filter(|it| finding.is_shadow && clusters.contains(&**it))
    else {
        return finding;
    };
    let message = format!("{} is a cluster, not a group", Quoted(&name)).into();
    Finding { message, replacement: None, ..finding }.help(format!("write `cluster: {name}`"))
}

impl<'g> KnownGroups<'g> {
    /// Takes the groups of all files, and reports names that occur more than once.
    pub fn new(groups: impl IntoIterator<Item = &'g Group>) -> (Self, Vec<Finding>) {
        let (mut known, mut findings) = (BTreeMap::<&str, &Group>::new(), Vec::new());
        for group in groups {
            if let Some(first) = known.get(&*group.name) {
                let message = format!("duplicate group name {}", Quoted(&group.name));
                let finding = Finding::new(&mistake::DUPLICATE_NAME, message)
                    .at_both(group.place.clone().named(), first.place.clone().named());
                findings.push(finding.help(
                    "give one of them another name, or write the group once in the `groups` of the config",
                ));
            } else {
                known.insert(&group.name, group);
            }
        }
        (Self(known), findings)
    }

    /// Returns the group of a name.
    pub fn get(&self, name: &str) -> Option<&'g Group> {
        self.0.get(name).copied()
    }

    /// Returns the names of all groups.
    pub fn names(&self) -> impl Iterator<Item = &'g str> {
        self.0.keys().copied()
    }
}
