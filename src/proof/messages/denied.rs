//! Words about undeclared paths that the expectations forbid.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::fabric::{Fabric, SiteId};
use crate::config::Date;
use crate::diagnostic::{Finding, Quoted, mistake};
use crate::expectations::{DeniedPaths, Exception};
use crate::mesh::{AddressClass, Mesh};
use crate::name::ClusterName;
use crate::packet::messages::whose;
use crate::proof::rule;
use crate::proof::verify::{Unallowed, Verification};
use crate::text::{count, quoted};

/// The most exceptions that are proposed for paths between two classes.
const LISTED: usize = 8;

/// Returns findings for the paths that are forbidden and work, and for the exceptions that allow none.
pub fn findings(
    fabric: &Fabric,
    meshes: &[Mesh],
    (denied, today): (&DeniedPaths, Date),
    verification: &Verification,
) -> Vec<Finding> {
    let unallowed = verification.unallowed.iter();
    let unallowed = unallowed.map(|it| undeclared(fabric, denied, it));
    let holding = denied.holding(today).enumerate();
    let unused = holding.filter(|(index, _)| !verification.used.contains(index));
    let unused = unused.map(|(_, it)| unused_exception(it));
    let over = denied.exceptions.iter().filter(|it| !it.holds(today));
    let found = unallowed.chain(unused).chain(over.map(expired));
    found.chain(boundless(denied, meshes, today)).collect()
}

/// Returns findings about the exceptions that allow all paths, so that nothing is forbidden.
pub fn boundless(denied: &DeniedPaths, meshes: &[Mesh], today: Date) -> Vec<Finding> {
    let clusters: Vec<&ClusterName> =
        meshes.iter().flat_map(Mesh::all_entries).map(|it| &it.name).collect();
    let boundless = denied.boundless(&clusters, today).map(|it| {
        let message = format!(
            "exception {} allows every path, so `undeclared: Deny` forbids nothing",
            Quoted(&it.name)
        );
        Finding::new(&mistake::CONTRADICTING_FIELDS, message)
            .at(it.place.clone(), "")
            .at(denied.place.clone(), "forbids nothing")
            .help("name clusters in `from` and `to`, or write `undeclared: Allow` and remove `exceptions`")
    });
    boundless.collect()
}

fn undeclared(fabric: &Fabric, denied: &DeniedPaths, unallowed: &Unallowed) -> Finding {
    let Unallowed { classes: (from, to), paths, between: _, example: (pair, [sender, receiver]) } =
        unallowed;
    let [source, destination] = [sender, receiver].map(|it| it.span.first_address());
    let message = format!(
        "{} from {from}s to {to}s of other clusters, such as {source} ({}) to {destination} ({})",
        match paths {
            1 => "1 undeclared path works".to_owned(),
            _ => format!("{} work", count(*paths, "undeclared path")),
        },
        whose(fabric, pair.from, source),
        whose(fabric, pair.to, destination),
    );
    let exceptions = exceptions(fabric, unallowed);
    let help = "list the paths with `clustermesh verify --undeclared`";
    let help = match exceptions.as_slice() {
        [] => help.to_owned(),
        all => format!("{help}; to allow them, add to `exceptions`: {}", quoted(all)),
    };
    Finding::new(&rule::UNDECLARED_PATH, message)
        .at(denied.place.clone(), "forbidden here")
        .help(help)
}

/// Returns exceptions with exactly these pairs of clusters, unless there are many. Senders with the same receivers share
/// one; paths within a cluster do not count.
fn exceptions(fabric: &Fabric, unallowed: &Unallowed) -> Vec<String> {
    let mut receivers: BTreeMap<SiteId, BTreeSet<SiteId>> = BTreeMap::new();
    for pair in &unallowed.between {
        receivers.entry(pair.from).or_default().insert(pair.to);
    }
    let mut groups: BTreeMap<BTreeSet<SiteId>, Vec<SiteId>> = BTreeMap::new();
    for (from, mut to) in receivers {
        // With the sender itself, clusters that all reach each other have the same receivers.
        to.insert(from);
        groups.entry(to).or_default().push(from);
    }
    if LISTED < groups.len() {
        return Vec::new();
    }
    let (from_class, to_class) = unallowed.classes;
    let exceptions = groups.into_iter().enumerate().map(|(index, (mut to, from))| {
        // A single sender is not one of its receivers.
        if let [one] = from.as_slice() {
            to.remove(one);
        }
        let number = if index == 0 { String::new() } else { format!(" {}", index + 1) };
        format!(
            "- {{ name: {from_class}s to {to_class}s{number}, from: {{ class: {}, clusters: [{}] }}, to: {{ clusters: [{}] }}, \
             class: {}, reason: WHY }}",
            written(from_class),
            clusters(fabric, from),
            clusters(fabric, to),
            written(to_class),
        )
    });
    exceptions.collect()
}

/// Returns a class as it is written in expectations.
fn written(class: AddressClass) -> String {
    format!("{class:?}")
}

fn clusters(fabric: &Fabric, sites: impl IntoIterator<Item = SiteId>) -> String {
    let names = sites.into_iter().map(|it| fabric.site(it).cluster.to_string());
    names.collect::<Vec<_>>().join(", ")
}

fn unused_exception(exception: &Exception) -> Finding {
    let name = Quoted(&exception.name);
    let message = format!("exception {name} covers no working undeclared path as a whole");
    Finding::new(&rule::UNUSED_EXCEPTION, message)
        .at(exception.place.key("name"), "")
        .help("remove it, or correct its `from`, `to` and `class`")
}

fn expired(exception: &Exception) -> Finding {
    let until = exception.until.map(|it| it.to_string()).unwrap_or_default();
    let message = format!("exception {} expired after {until}", Quoted(&exception.name));
    Finding::new(&rule::UNUSED_EXCEPTION, message)
        .at(exception.place.key("until"), "")
        .help("remove it, or write a later day if the paths are still needed")
}
