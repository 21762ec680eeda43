//! Words about undeclared paths that the expectations forbid.

use std::collections::BTreeSet;

use crate::agent::fabric::{Fabric, SiteId};
use crate::config::Date;
use crate::diagnostic::{Finding, Quoted};
use crate::expectations::{DeniedPaths, Exception};
use crate::packet::messages::whose;
use crate::proof::rule;
use crate::proof::verify::{Unallowed, Verification};
use crate::text::{count, list};

/// The most clusters that a proposed exception lists.
const LISTED: usize = 8;

/// Returns findings for the paths that are forbidden and work, and for the exceptions that allow none.
pub fn findings(
    fabric: &Fabric,
    denied: &DeniedPaths,
    today: Date,
    verification: &Verification,
) -> Vec<Finding> {
    let unallowed = verification.unallowed.iter();
    let unallowed = unallowed.map(|it| undeclared(fabric, denied, it));
    let holding = denied.holding(today).enumerate();
    let unused = holding.filter(|(index, _)| !verification.used.contains(index));
    let unused = unused.map(|(_, it)| unused_exception(it));
    let over = denied.exceptions.iter().filter(|it| !it.holds(today));
    unallowed.chain(unused).chain(over.map(expired)).collect()
}

fn undeclared(fabric: &Fabric, denied: &DeniedPaths, unallowed: &Unallowed) -> Finding {
    let Unallowed {
        classes: (from, to),
        paths,
        between,
        example: (pair, [sender, receiver]),
    } = unallowed;
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
    let senders = clusters(fabric, between.iter().map(|it| it.from));
    let receivers = clusters(fabric, between.iter().map(|it| it.to));
    let class = |name: &str| {
        let mut letters = name.chars();
        let first = letters.next().map(|it| it.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    let exception = format!(
        "{{ name: {from}s to {to}s, from: {{ class: {}{} }}, to: {{{}}}, class: {}, reason: WHY }}",
        class(&from.to_string()),
        senders.map(|it| format!(", {it}")).unwrap_or_default(),
        receivers.map(|it| format!(" {it} ")).unwrap_or_default(),
        class(&to.to_string()),
    );
    Finding::new(&rule::UNDECLARED_PATH, message)
        .at(denied.place.clone(), "forbidden here")
        .help(format!(
            "list the paths with `clustermesh verify --undeclared`; to allow them, add to `exceptions`: `{exception}`"
        ))
}

/// Returns the field that selects some clusters, if there are few.
fn clusters(fabric: &Fabric, sites: impl Iterator<Item = SiteId>) -> Option<String> {
    let sites: BTreeSet<SiteId> = sites.collect();
    let names = sites.iter().map(|it| fabric.site(*it).cluster.to_string());
    let names: Vec<String> = names.collect();
    (names.len() <= LISTED).then(|| format!("clusters: [{}]", list(names)))
}

fn unused_exception(exception: &Exception) -> Finding {
    let name = Quoted(&exception.name);
    let message =
        format!("exception {name} allows nothing: no undeclared path that works matches it");
    Finding::new(&rule::UNUSED_EXCEPTION, message)
        .at(exception.place.key("name"), "")
        .help("remove it, or correct its `from`, `to` and `class`")
}

fn expired(exception: &Exception) -> Finding {
    let until = exception.until.map(|it| it.to_string()).unwrap_or_default();
    let message = format!(
        "exception {} expired after {until}",
        Quoted(&exception.name)
    );
    Finding::new(&rule::UNUSED_EXCEPTION, message)
        .at(exception.place.key("until"), "")
        .help("remove it, or write a later day if the paths are still needed")
}
