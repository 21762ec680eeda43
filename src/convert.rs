//! Conversion: a file of meshes with its entries in the other of the operator's two forms.
//!
//! The text is edited where the networks are written, so that everything else stays as it is.

use std::collections::BTreeMap;

use crate::diagnostic::mistake::INCONVERTIBLE_ENTRY;
use crate::diagnostic::{Finding, Severity};
use crate::document::{Source, TreeNode, TreeValue};
use crate::fleet::SnapshotFile;
use crate::kilo::cluster::Cluster;
use crate::mesh::{self, Entry, Mesh, Networks, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;

use self::entry::WrittenEntry;
use self::field::{Field, FieldItem};

mod entry;
mod field;

/// One of the operator's two forms of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NetworkForm {
    /// Each range with its use.
    Typed,
    /// One list for all uses.
    Flat,
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
        Some(entry) => Err(vec![refusal(
            entry,
            "cannot be edited in place",
            "write the networks of the entry as plain lists and strings",
        )]),
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
            let uses = uses(entry, allowed, snapshots)?;
            let of = |meant: Use| {
                let mut uses = uses.iter();
                let items = items.iter().filter(|_| uses.next() == Some(&meant));
                items.cloned().collect::<Vec<FieldItem>>()
            };
            let wireguard = of(Use::WireGuard).into_iter().next();
            let fields = [
                Some(Field::list("podCIDRs", of(Use::Pods))),
                wireguard.map(|it| Field::one("wireguardCIDR", it)),
                Some(Field::list("additionalCIDRs", of(Use::Other))),
            ]
            .into_iter()
            .flatten();
            Ok(fields.filter(|it| !it.items.is_empty()).collect())
        }
    }
}

/// The use of a range of a flat list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Use {
    Pods,
    WireGuard,
    Other,
}

/// Finds what each range is for, by the addresses that the nodes have in it.
fn uses(
    entry: &Entry,
    allowed: &[Range],
    snapshots: &BTreeMap<ClusterName, SnapshotFile>,
) -> Result<Vec<Use>, Finding> {
    let Some(file) = snapshots.get(&entry.name) else {
        let what = "has no snapshot, so the use of its ranges is unknown";
        let help = format!("run `clustermesh snapshot {}`", entry.name);
        return Err(refusal(entry, what, &help));
    };
    let cluster = Cluster::new(entry, &file.snapshot);
    let nodes = || cluster.nodes.iter();
    let pods: Vec<Cidr> = nodes().flat_map(|it| it.kilo.pods()).collect();
    let wireguard: Vec<Cidr> = nodes()
        .filter_map(|it| it.kilo.wireguard_ip())
        .map(|it| Cidr::host(it.address))
        .collect();
    let mut uses = Vec::new();
    for range in allowed {
        let has = |cidrs: &[Cidr]| cidrs.iter().any(|it| range.cidr.contains(*it));
        uses.push(match (has(&pods), has(&wireguard)) {
            (true, true) => {
                let what = format!("has pod CIDRs and WireGuard addresses in {}", range.cidr);
                let help = "declare a range for pods, and another one for WireGuard addresses";
                return Err(refusal(entry, &what, help).at(range.place.clone(), "this range"));
            }
            (true, false) => Use::Pods,
            (false, true) => Use::WireGuard,
            (false, false) => Use::Other,
        });
    }
    let count = |meant| uses.iter().filter(|it| **it == meant).count();
    match (count(Use::Pods), count(Use::WireGuard)) {
        (0, _) => Err(refusal(
            entry,
            "declares no range that contains pod CIDRs of its nodes",
            "add the range of the pods to `allowedNetworks`",
        )),
        (_, 0) => Err(refusal(
            entry,
            "declares no range that contains WireGuard addresses of its nodes",
            "add Kilo's `--subnet` to `allowedNetworks`",
        )),
        (_, 1) => Ok(uses),
        (_, ranges) => Err(refusal(
            entry,
            &format!(
                "has WireGuard addresses in {ranges} ranges, but `wireguardCIDR` is one range"
            ),
            "declare one range that contains all WireGuard addresses",
        )),
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

/// Returns an entry that is not what it was, except for its form, in the edited text.
fn differing<'m>(
    source: &Source,
    meshes: &'m [Mesh],
    text: &str,
    form: NetworkForm,
) -> Option<&'m Entry> {
    let mut own = meshes
        .iter()
        .filter(|it| it.place.source == source.name)
        .flat_map(|mesh| &mesh.entries);
    let Ok(edited) = Source::parse(source.name.clone(), text) else {
        return own.next();
    };
    let reading = mesh::read(&[edited]);
    let is_wrong = |it: &Finding| it.severity == Severity::Error;
    if reading.diagnostics.iter().any(is_wrong) {
        return own.next();
    }
    let mut entries = reading.meshes.iter().flat_map(|mesh| &mesh.entries);
    own.find(|entry| entries.next().is_none_or(|it| !is_same(entry, it, form)))
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
