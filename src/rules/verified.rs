//! Words for what a verification finds: promises that do not hold, and what holds without a promise.

use super::reach::{OUTSIDE_PEER, UNPROMISED_REACH, failure};
use super::{Finding, bare, listed};
use crate::name::ClusterName;
use crate::place::Place;
use crate::proof::fabric::{At, Fabric, Owner};
use crate::proof::packet::Step;
use crate::proof::verify::{Failure, Leak, Outsider, Verification};
use crate::proof::words;

/// Returns what there is to tell: what fails, what leaks, and who is there that nobody knows.
pub fn findings(fabric: &Fabric, verification: &Verification) -> Vec<Finding> {
    let failures = verification.failures.iter();
    let failures = failures.filter_map(|it| failed(fabric, it));
    let leaks = verification.leaks.iter().filter_map(|it| leak(fabric, it));
    let outsiders = verification.outsiders.iter();
    let outsiders = outsiders.filter_map(|it| outsider(fabric, *it));
    failures.chain(leaks).chain(outsiders).collect()
}

fn cluster<'a>(fabric: &Fabric<'a>, site: usize) -> Option<&'a ClusterName> {
    Some(fabric.site(site)?.cluster)
}

/// Tells a broken promise by the smallest packet that shows it, and says how much more fails alike.
fn failed(fabric: &Fabric, failed: &Failure) -> Option<Finding> {
    let trace = &failed.trace;
    let packet = &trace.packet;
    let from = cluster(fabric, packet.from.site)?;
    let mut finding = failure(trace.verdict(), from, words::verdict(fabric, trace))?;
    let to = cluster(fabric, packet.to.site())?;
    let pairs = match failed.pairs {
        1 => "1 promised pair fails".to_owned(),
        pairs => format!("{pairs} promised pairs fail"),
    };
    let between: Vec<String> = failed
        .between
        .iter()
        .filter_map(|&(from, to)| {
            Some(format!(
                "{} → {}",
                cluster(fabric, from)?,
                cluster(fabric, to)?
            ))
        })
        .collect();
    let receivers: Vec<String> = failed
        .receivers
        .iter()
        .filter_map(|&(site, owner)| whose(fabric, site, owner))
        .collect();
    finding.message = format!(
        "{} → {} ({from} → {to}): {}; {pairs} like this ({}; to {})",
        packet.source,
        packet.destination,
        finding.message,
        listed(between.into_iter()),
        listed(receivers.into_iter()),
    );
    Some(finding)
}

/// Names an owner: a node with its cluster, or what a cluster has as a whole.
fn whose(fabric: &Fabric, site: usize, owner: Owner) -> Option<String> {
    let name = cluster(fabric, site)?;
    Some(match owner {
        Owner::Pods(node) => format!("pods of {}", words::called(fabric, At { site, node })),
        Owner::Node(node) | Owner::Tunnel(node) => words::called(fabric, At { site, node }),
        Owner::Services => format!("services of {name}"),
        Owner::Network | Owner::Pool => format!("ranges of {name}"),
    })
}

fn leak(fabric: &Fabric, leak: &Leak) -> Option<Finding> {
    let packet = &leak.trace.packet;
    let from = cluster(fabric, packet.from.site)?;
    let to = cluster(fabric, packet.to.site())?;
    let (message, place, help) = match leak.claim {
        Some((site, claim, range)) => (
            format!(
                "{range} leads from {from} to {to}, which does not declare it: {} gets there",
                packet.destination
            ),
            fabric.site(site)?.model.place(claim),
            format!("take the range out of the Peer, or declare it for `{to}` in the mesh"),
        ),
        None => (
            format!(
                "{} of {from} gets to {} of {to}, though no mesh links the two",
                packet.source, packet.destination
            ),
            leak.trace.there.steps.iter().find_map(selected),
            format!("take the Peers of `{to}` away from `{from}`, or link the two in a mesh"),
        ),
    };
    let mut finding = Finding::on_cluster(&UNPROMISED_REACH, from, message).help(help);
    if let Some(place) = place {
        finding = finding.at(place, "by this range");
    }
    Some(finding)
}

/// Returns where a range is written by which a packet was sent.
fn selected(step: &Step) -> Option<Place> {
    match step {
        Step::Selected { place, .. } => place.clone(),
        _ => None,
    }
}

fn outsider(fabric: &Fabric, Outsider { site, peer }: Outsider) -> Option<Finding> {
    let it = fabric.site(site)?;
    let peer = it.model.peers.get(peer)?;
    let message = format!(
        "the Peer {} has a key that no node of any cluster has",
        bare(&peer.applied.name)
    );
    let help = "if it is a client or another network of yours, nothing is wrong; if a node has a new \
                key, take a snapshot and render again";
    let finding = Finding::on_cluster(&OUTSIDE_PEER, it.cluster, message);
    Some(finding.at(peer.place(), "").help(help))
}
