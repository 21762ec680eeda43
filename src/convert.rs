//! Conversion: a file of meshes with its entries in the other of the operator's two forms.
//!
//! The text is edited where the networks are written, so that everything else stays as it is.

use std::collections::BTreeMap;
use std::fmt;

use crate::diagnostic::mistake::INCONVERTIBLE_ENTRY;
use crate::diagnostic::{Finding, Severity};
use crate::document::{Source, TreeNode, TreeValue};
use crate::fleet::SnapshotFile;
use crate::mesh::{self, Entry, Mesh, Networks};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;

use self::entry::WrittenEntry;
use self::field::{Field, FieldItem};
use self::range_use::{FlatRangeUse, uses};

mod entry;
mod field;
mod range_use;

/// One of the operator's two forms of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NetworkForm {
    /// Each range with its use.
    Typed,
    /// One list for all uses.
    Flat,
}

impl fmt::Display for NetworkForm {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Typed => "typed",
            Self::Flat => "flat",
        })
    }
}

/// A part of a text, and what to write instead.
#[derive(Clone, Debug)]
struct Edit {
    bytes: std::ops::Range<usize>,
    text: String,
}

/// Returns the text of a file with all its entries in a form, given the meshes in it.
///
/// # Errors
/// The entries that cannot be written in it, and why.
pub fn converted(
    source: &Source,
    meshes: &[Mesh],
    snapshots: &BTreeMap<ClusterName, SnapshotFile>,
    form: NetworkForm,
) -> Result<String, Vec<Finding>> {
    let (mut edits, mut findings) = (Vec::new(), Vec::new());
    let own = meshes.iter().filter(|it| it.place.source == source.name);
    for entry in own.flat_map(|mesh| &mesh.entries) {
        if form_of(entry) == form {
            continue;
        }
        let edited = WrittenEntry::read(source, entry).and_then(|written| {
            let fields = fields(&written, entry, snapshots)?;
            written.rewritten(&fields)
        });
        match edited {
            Ok(edited) => edits.extend(edited),
            Err(finding) => findings.push(finding),
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let text = applied(&source.text, edits);
    match differing(source, meshes, &text, form) {
        None => Ok(text),
        Some(finding) => Err(vec![finding]),
    }
}

fn form_of(entry: &Entry) -> NetworkForm {
    match entry.networks {
        Networks::Typed { .. } => NetworkForm::Typed,
        Networks::Flat { .. } => NetworkForm::Flat,
    }
}

/// Returns the fields that an entry has in the other form.
fn fields(
    written: &WrittenEntry,
    entry: &Entry,
    snapshots: &BTreeMap<ClusterName, SnapshotFile>,
) -> Result<Vec<Field>, Finding> {
    let items = written.items()?;
    match &entry.networks {
        Networks::Typed { .. } => Ok(vec![Field::list("allowedNetworks", items)]),
        Networks::Flat { allowed } => {
            let uses = uses(entry, allowed, snapshots.get(&entry.name))?;
            let of = |meant: FlatRangeUse| {
                let mut uses = uses.iter();
                let items = items.iter().filter(|_| uses.next() == Some(&meant));
                items.cloned().collect::<Vec<FieldItem>>()
            };
            let wireguard = of(FlatRangeUse::WireGuard).into_iter().next();
            let fields = [
                Some(Field::list("podCIDRs", of(FlatRangeUse::Pods))),
                wireguard.map(|it| Field::one("wireguardCIDR", it)),
                Some(Field::list("additionalCIDRs", of(FlatRangeUse::Other))),
            ]
            .into_iter()
            .flatten();
            Ok(fields.filter(|it| !it.items.is_empty()).collect())
        }
    }
}

fn refusal(entry: &Entry, what: &str, help: &str) -> Finding {
    let message = format!("`{}` {what}", entry.name);
    Finding::new(&INCONVERTIBLE_ENTRY, message)
        .at(entry.place.key("name"), "")
        .help(help)
}

/// Applies edits that do not overlap. Their lines end like those of the text.
fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|it| it.bytes.start);
    if text.contains("\r\n") {
        for edit in &mut edits {
            edit.text = edit.text.replace('\n', "\r\n");
        }
    }
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        result.push_str(text.get(done..edit.bytes.start).unwrap_or_default());
        result.push_str(&edit.text);
        done = edit.bytes.end;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

/// Returns what is wrong with the edited text: an entry that is not what it was, except for its form.
fn differing(source: &Source, meshes: &[Mesh], text: &str, form: NetworkForm) -> Option<Finding> {
    let own = || {
        let own = meshes.iter().filter(|it| it.place.source == source.name);
        own.flat_map(|mesh| &mesh.entries)
    };
    let uneditable = |entry: &Entry| {
        let help = "write the networks of the entry as plain lists and strings";
        refusal(entry, "cannot be edited in place", help)
    };
    let Ok(edited) = Source::parse(source.name.clone(), text) else {
        return own().next().map(uneditable);
    };
    let reading = mesh::read(&[edited]);
    let mut diagnostics = reading.diagnostics.iter();
    if let Some(error) = diagnostics.find(|it| it.severity == Severity::Error) {
        let is_meant = |it: &&Entry| error.cluster.as_deref() == Some(it.name.as_str());
        let entry = own().find(is_meant).or_else(|| own().next())?;
        let what = format!("would be invalid in the {form} form: {}", error.message);
        let finding = refusal(entry, &what, "keep the form of the entry");
        return Some(match &error.help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }
    let mut entries = reading.meshes.iter().flat_map(|mesh| &mesh.entries);
    let mut own = own();
    let differing = own.find(|entry| entries.next().is_none_or(|it| !is_same(entry, it, form)));
    differing.map(uneditable)
}

/// Returns whether two entries differ in their form only.
fn is_same(one: &Entry, other: &Entry, form: NetworkForm) -> bool {
    let ranges = |entry: &Entry| {
        let mut cidrs: Vec<Cidr> = entry.networks.all().iter().map(|it| it.cidr).collect();
        cidrs.sort();
        cidrs
    };
    let anchors = |entry: &Entry| entry.anchors.len();
    form_of(other) == form
        && ranges(one) == ranges(other)
        && (&one.name, one.state, one.port, one.keepalive, anchors(one))
            == (
                &other.name,
                other.state,
                other.port,
                other.keepalive,
                anchors(other),
            )
}

/// Returns the value at a place, unless it is written elsewhere.
fn node_at<'s>(source: &'s Source, place: &Place) -> Option<&'s TreeNode> {
    let mut node = source.documents.get(place.document)?;
    for step in place.pointer.steps() {
        node = match &node.value {
            TreeValue::Sequence(items) => items.get(step.parse::<usize>().ok()?)?,
            TreeValue::Mapping(_) => node.get(&step)?,
            TreeValue::Scalar(_) => return None,
        };
        if node.alias {
            return None;
        }
    }
    Some(node)
}

#[cfg(test)]
mod tests;
