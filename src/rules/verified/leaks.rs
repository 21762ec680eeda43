//! Words for packets that arrive although no mesh declares their paths.

use std::collections::BTreeMap;

use super::cluster;
use crate::agent::fabric::{Fabric, SiteId};
use crate::diagnostic::{FindingCause, Severity};
use crate::mesh::{acceptance, at_policies, refusing};
use crate::packet::messages;
use crate::place::Place;
use crate::proof::rule::UNPROMISED_REACH;
use crate::proof::verify::{Leak, LeakedRange};
use crate::rules::Finding;
use crate::text::{NAMED, count, listed};

/// Reports leaks, one finding for two clusters: with the ranges if they are linked, otherwise with a packet.
pub(super) fn leaks(fabric: &Fabric, leaks: &[Leak], mistakes: &[Finding]) -> Vec<Finding> {
    let mut apart: BTreeMap<[SiteId; 2], Vec<&Leak>> = BTreeMap::new();
    let mut of_pairs: BTreeMap<[SiteId; 2], Vec<(&Leak, LeakedRange)>> = BTreeMap::new();
    for leak in leaks {
        let packet = &leak.trace.packet;
        let mut pair = [packet.from.site, packet.to.site()];
        if let Some(range) = leak.range {
            of_pairs.entry(pair).or_default().push((leak, range));
        } else {
            pair.sort_unstable();
            apart.entry(pair).or_default().push(leak);
        }
    }
    let apart = apart.values().filter_map(|it| unlinked(fabric, it, mistakes));
    let of_pairs = of_pairs.iter().map(|(pair, leaked)| undeclared(fabric, *pair, leaked));
    apart.chain(of_pairs).collect()
}

/// Reports the ranges that one cluster routes to another one, which does not declare them.
fn undeclared(fabric: &Fabric, pair: [SiteId; 2], leaked: &[(&Leak, LeakedRange)]) -> Finding {
    let [from, to] = pair.map(|it| cluster(fabric, it));
    let further: u64 = leaked.iter().map(|(_, it)| it.others).sum();
    let named = listed(leaked.iter().map(|(_, it)| it.range));
    let is_one = leaked.len() == 1 && further == 0;
    let and_further = match further {
        0 => String::new(),
        further => format!(" and {}", count(further, "other range")),
    };
    let (verb, them, ranges) =
        if is_one { ("is", "it", "the range") } else { ("are", "them", "the ranges") };
    let reached = leaked.first().map(|(leak, _)| leak.trace.packet.destination.to_string());
    let message = format!(
        "{named}{and_further} {verb} routed from {from} to {to}, which does not declare {them}: {} is reachable",
        reached.unwrap_or_default()
    );
    let is_rendered = leaked.iter().all(|(_, it)| {
        let model = &fabric.site(it.site).model;
        it.claim.peer().is_some_and(|peer| model.peers[peer].applied.claims.is_rendered)
    });
    let remedy = match (is_rendered, is_one) {
        (true, _) => "run `clustermesh diff` to see what `clustermesh render` removes",
        (false, true) => "remove it from the Peer",
        (false, false) => "remove them from the Peers",
    };
    let places = leaked.iter().filter_map(|(_, it)| fabric.site(it.site).model.place(it.claim));
    Finding::on_cluster(&UNPROMISED_REACH, from, message)
        .at_each(places.take(NAMED).map(|it| (it, "through this range")))
        .help(format!(
            "if `{to}` has these addresses, declare {ranges} in the mesh; otherwise {remedy}"
        ))
}

/// Reports the first packet between two clusters that exchange no Peers, and how many more there are.
fn unlinked(fabric: &Fabric, leaks: &[&Leak], mistakes: &[Finding]) -> Option<Finding> {
    let (leak, others) = leaks.split_first()?;
    let packet = &leak.trace.packet;
    let from = cluster(fabric, packet.from.site);
    let to = cluster(fabric, packet.to.site());
    let refused = refusing(&leak.refusals);
    let more = match others.len() {
        0 => String::new(),
        1 => "; 1 more packet between the two gets through".to_owned(),
        more => format!("; {more} more packets between the two get through"),
    };
    let message = format!(
        "{} of {from} reaches {} of {to} although {}{more}",
        packet.source,
        packet.destination,
        refused.as_deref().unwrap_or("no mesh links the two clusters")
    );
    let mut steps = leak.trace.there.steps.iter();
    let place = steps.find_map(|step| Some(messages::selected(step)?.place));
    let finding = Finding::on_cluster(&UNPROMISED_REACH, from, message);
    let finding = finding.at(place, "through this range");
    let finding = finding.at(leak.topology.clone(), "does not link the two clusters");
    let help = match refused {
        Some(_) => format!(
            "run `clustermesh render` and apply what it writes, or {}",
            acceptance(&leak.refusals)
        ),
        None => format!("remove the Peers of `{to}` from `{from}`, or link the two in a mesh"),
    };
    let cause = unknown_topology(leak, mistakes).filter(|_| refused.is_none());
    Some(at_policies(finding.with_cause(cause), &leak.refusals).help(help))
}

/// Returns the mistake for which it is unknown whether two clusters are linked.
fn unknown_topology(leak: &Leak, mistakes: &[Finding]) -> Option<FindingCause> {
    let field = leak.topology.as_ref()?;
    let topology = field.pointer.around()?;
    let is_in_it = |it: &Place| {
        (&it.source, it.document) == (&field.source, field.document)
            && it.pointer.is_within(&topology)
    };
    let mut errors = mistakes.iter().filter(|it| it.severity == Severity::Error);
    let cause = errors.find(|it| it.labels.first().is_some_and(|it| is_in_it(&it.place)))?;
    Some(cause.as_cause())
}
