//! Fields of an entry, or of the defaults of a mesh, that are checked on their own.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use crate::diagnostic::{Finding, Mistakes, Quoted, Severity, mistake};
use crate::name::{Namespace, is_dns_subdomain, is_label_key};
use crate::place::Place;
use crate::wireguard::Keepalive;

use super::mistakes::{REMOVE_ONE, name_or_finding};
use super::{DEFAULT_ENDPOINT_FROM, DEFAULT_TOPOLOGY_LABEL, EndpointSource, selector};

/// Returns the node label with the location, or reports why it is not a label.
pub(super) fn topology_label(
    label: Option<String>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<String> {
    let label = label.unwrap_or_else(|| DEFAULT_TOPOLOGY_LABEL.to_owned());
    if is_label_key(&label) {
        return Some(label);
    }
    findings.push(selector::not_a_label_key(&label, place.key("topologyLabel")));
    None
}

/// The longest time after which every NAT may still know a connection, in seconds: RFC 4787 asks for two minutes.
const NAT_TIMEOUT: u16 = 120;

/// Returns the time between keepalives, and warns of one that keeps no way open.
pub(super) fn keepalive(
    seconds: Option<u16>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Keepalive> {
    let seconds = seconds.and_then(NonZeroU16::new)?;
    if NAT_TIMEOUT < seconds.get() {
        let message = format!("a NAT forgets a connection long before {seconds} seconds");
        let finding = Finding::new(&mistake::INVALID_VALUE, message);
        let finding = finding.at(place.key("persistentKeepalive"), "");
        let finding = Finding { severity: Severity::Warning, ..finding };
        findings.push(finding.help("write `25`; the unit is seconds"));
    }
    Some(Keepalive(seconds))
}

/// Returns the sources of endpoints in their order, or reports those that are there twice.
pub(super) fn endpoint_from(
    sources: Option<Vec<EndpointSource>>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<EndpointSource>> {
    let sources = sources.unwrap_or_else(|| DEFAULT_ENDPOINT_FROM.to_vec());
    let place = place.key("endpointFrom");
    let before = findings.len();
    for (index, source) in sources.iter().enumerate() {
        let first = sources.iter().position(|other| other == source);
        if let Some(first) = first.filter(|first| *first < index) {
            let message = format!("duplicate endpoint source `{source:?}`");
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            let finding = finding.at_both(place.index(index), place.index(first));
            findings.push(finding.help(REMOVE_ONE));
        }
    }
    (findings.len() == before).then_some(sources)
}

/// Returns the DNS suffixes of endpoints, or reports those that are not.
pub(super) fn endpoint_domains(
    domains: Option<Vec<String>>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<String>> {
    let place = place.key("endpointDomains");
    let before = findings.len();
    let (mut kept, mut seen) = (Vec::new(), BTreeSet::new());
    let domains = domains.unwrap_or_default();
    for (index, text) in domains.iter().enumerate() {
        let domain = text.strip_prefix('.').unwrap_or(text);
        if !is_dns_subdomain(domain) {
            findings.push(not_a_domain(text, place.index(index)));
        } else if seen.insert(domain) {
            kept.push(domain.to_owned());
        }
    }
    (findings.len() == before).then_some(kept)
}

/// Returns whether a DNS name is one of these or under one of them.
pub(super) fn is_under(domains: &[String], name: &str) -> bool {
    domains.iter().any(|domain| {
        name.strip_suffix(domain.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

fn not_a_domain(text: &str, place: Place) -> Finding {
    let message = format!("{} is not a lowercase DNS name", Quoted(text));
    let diagnostic = Finding::new(&mistake::INVALID_VALUE, message).at(place, "");
    let meant = text.trim_start_matches(['*', '.']).to_lowercase();
    if is_dns_subdomain(&meant) {
        return diagnostic.help(format!("write `{meant}`, which matches every name under it"));
    }
    diagnostic
}

/// Returns the namespaces in which a cluster accepts Services of others, or reports what is wrong with them.
pub(super) fn accepted_services(
    written: &[String],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<BTreeSet<Namespace>> {
    let place = place.key("acceptedServices");
    let mut accepted = BTreeMap::new();
    let before = findings.len();
    for (index, text) in written.iter().enumerate() {
        let own = place.index(index);
        let parsed = text.parse::<Namespace>();
        let Some(namespace) = name_or_finding("namespace", text, parsed, &own, findings) else {
            continue;
        };
        if namespace.is_of_kubernetes() {
            let message = format!("{} is a namespace of Kubernetes", Quoted(text));
            let finding = Finding::new(&mistake::INVALID_VALUE, message).at(own, "");
            findings
                .push(finding.help("accept Services of other clusters in a namespace of yours"));
        } else if let Some(first) = accepted.insert(namespace, own.clone()) {
            let message = format!("duplicate namespace {}", Quoted(text));
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            findings.push(finding.at_both(own, first).help(REMOVE_ONE));
        }
    }
    (findings.len() == before).then(|| accepted.into_keys().collect())
}
