//! Words about hostility: what a cluster could do to others that no mesh lets it do.

use std::collections::BTreeSet;

use crate::agent::fabric::{Fabric, SiteId};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::diagnostic::Finding;
use crate::mesh::{acceptance, at_policies, refusing};
use crate::packet::messages::{called, tunnel, whose};
use crate::place::Place;
use crate::proof::hostile::{Breach, Exposure, Hold, Hostile, Relay, Whose};
use crate::proof::rule;
use crate::text::{count, first_of, listed};

/// The number of ranges that a sentence names.
const NAMED: usize = 3;

/// Returns findings for everything that a hostile cluster could do although no mesh allows it, one
/// for each responsible range of a manifest.
pub fn findings(fabric: &Fabric, hostile: &Hostile) -> Vec<Finding> {
    let breaches = hostile.breaches();
    let mut findings = Vec::new();
    let mut rest = breaches.as_slice();
    while let Some((first, following)) = rest.split_first() {
        let alike = following.iter().take_while(|it| are_one(first, it)).count();
        let (group, others) = rest.split_at(1 + alike);
        rest = others;
        let (site, finding) = match *first {
            Breach::Heard(exposure) => (exposure.site, heard(fabric, hostile, exposure)),
            Breach::Impersonation(exposure, hold) | Breach::Capture(exposure, hold) => {
                let is_sender = matches!(first, Breach::Impersonation(..));
                let range = RangeOfOthers { exposure, hold, parts: holds(group) };
                (exposure.site, range.finding(fabric, hostile, is_sender))
            }
            Breach::Impersonations(exposure, more) => {
                (exposure.site, impersonations(fabric, hostile, more))
            }
            Breach::Captures(exposure, more) => (exposure.site, captures(fabric, hostile, more)),
            Breach::Passage(exposure, relay) => {
                (relay.site, passage(fabric, hostile, exposure, relay))
            }
            Breach::Passages(exposure, more) => {
                (exposure.site, passages(fabric, hostile, exposure, more))
            }
        };
        findings.push(finding.about(fabric.site(site).cluster));
    }
    findings
}

/// A range of a Peer that gives a hostile cluster addresses of others.
struct RangeOfOthers<'h> {
    exposure: &'h Exposure,
    /// The first of its parts.
    hold: &'h Hold,
    /// Its parts by the owners of the addresses.
    parts: Vec<&'h Hold>,
}

/// Returns whether two breaches have the same remedy.
fn are_one(a: &Breach, b: &Breach) -> bool {
    let is_same = |a: &Hold, b: &Hold| (a.claim, a.is_certain) == (b.claim, b.is_certain);
    match (a, b) {
        (Breach::Impersonation(at, a), Breach::Impersonation(too, b))
        | (Breach::Capture(at, a), Breach::Capture(too, b)) => at.site == too.site && is_same(a, b),
        (Breach::Heard(a), Breach::Heard(b)) => a.site == b.site,
        (Breach::Passage(at, a), Breach::Passage(too, b)) => {
            (at.site, a.site) == (too.site, b.site)
        }
        _ => false,
    }
}

fn holds<'h>(breaches: &[Breach<'h>]) -> Vec<&'h Hold> {
    let holds = breaches.iter().filter_map(|breach| match breach {
        Breach::Impersonation(_, hold) | Breach::Capture(_, hold) => Some(*hold),
        Breach::Heard(_)
        | Breach::Impersonations(..)
        | Breach::Captures(..)
        | Breach::Passage(..)
        | Breach::Passages(..) => None,
    });
    holds.collect()
}

fn cluster<'f>(fabric: &'f Fabric, site: SiteId) -> &'f str {
    fabric.site(site).cluster.as_str()
}

fn heard(fabric: &Fabric, hostile: &Hostile, exposure: &Exposure) -> Finding {
    let other = cluster(fabric, hostile.site);
    let ends: Vec<String> =
        exposure.heard.listed().iter().map(|it| far_end(fabric, exposure.site, *it)).collect();
    let refused = refusing(&exposure.refusals);
    let finding = Finding::new(
        &rule::BROKEN_ISOLATION,
        format!(
            "has Peers with keys of {other} although {}: {}",
            refused.as_deref().unwrap_or("no mesh links the two"),
            first_of(NAMED, &ends, exposure.heard.unlisted())
        ),
    );
    let site = fabric.site(exposure.site);
    let peers = exposure.heard.listed().iter().take(NAMED);
    let places = peers.filter_map(|it| match it {
        Tunnel::Peer(peer) => Some(site.model.peers[*peer].place()),
        Tunnel::Segment(_) => None,
    });
    let finding = finding.at_each(places.map(|it| (it, "lets it in")));
    let finding = at_policies(finding, &exposure.refusals);
    finding.help(match refused {
        Some(_) => format!("delete these Peers, or {}", acceptance(&exposure.refusals)),
        None => "delete these Peers, or link the two clusters in a mesh".to_owned(),
    })
}

impl RangeOfOthers<'_> {
    /// Reports that a far end is taken for others: as a sender, or else as a receiver.
    fn finding(&self, fabric: &Fabric, hostile: &Hostile, is_sender: bool) -> Finding {
        let Self { exposure, hold, ref parts } = *self;
        let verb = if hold.is_certain { "can" } else { "may" };
        let culprit = format!("{} {verb}", cluster(fabric, hostile.site));
        let tunnel = far_end(fabric, exposure.site, hold.claim.tunnel);
        let shown = shown(fabric, parts);
        let (rule, message, label) = if is_sender {
            let message = format!(
                "{culprit} send packets from addresses that are not its own: {tunnel} allows the sources \
                 {shown}"
            );
            (&rule::IMPERSONATION, message, "accepts these sources")
        } else {
            let message = format!(
                "{culprit} receive packets for addresses that are not its own: {tunnel} takes the \
                 destinations {shown}"
            );
            (&rule::CAPTURE, message, "routes these destinations")
        };
        Finding::new(rule, message)
            .at(place(fabric, exposure.site, hold.claim), label)
            .help(self.help(fabric, hostile))
    }

    fn help(&self, fabric: &Fabric, hostile: &Hostile) -> String {
        let model = &fabric.site(self.exposure.site).model;
        let key = model.key(self.hold.claim.tunnel);
        let holders = key.map_or(&[][..], |key| fabric.holders(&key));
        if holders.iter().any(|it| it.site != hostile.site) {
            let names: Vec<String> = holders.iter().map(|it| called(fabric, *it)).collect();
            return format!(
                "delete Kilo's key file on all but one of {}, which claim the same key",
                listed(&names)
            );
        }
        if self.hold.is_certain {
            let other = cluster(fabric, hostile.site);
            return format!(
                "remove the range from the Peer, or declare it for `{other}` in the mesh"
            );
        }
        "give each Peer a range, a key and a name of its own: otherwise the Peer that was applied last \
         has them"
            .to_owned()
    }
}

fn passage(fabric: &Fabric, hostile: &Hostile, exposure: &Exposure, relay: &Relay) -> Finding {
    let other = cluster(fabric, hostile.site);
    let second = cluster(fabric, exposure.site);
    let spans: Vec<String> = relay.passages.listed().iter().map(|it| it.span.to_string()).collect();
    let finding = Finding::new(
        &rule::BROKEN_ISOLATION,
        format!(
            "{other} can get in through {second} although no mesh allows it: sources accepted from \
             {second}: {}",
            first_of(NAMED, &spans, relay.passages.unlisted())
        ),
    );
    let passages = relay.passages.listed().iter();
    let places: BTreeSet<Place> =
        passages.filter_map(|it| place(fabric, relay.site, it.claim)).collect();
    places
        .into_iter()
        .take(NAMED)
        .fold(finding, |finding, place| finding.at(Some(place), "lets it in"))
        .help(format!("remove from the Peer the ranges that `{second}` does not declare"))
}

/// Reports the ranges beyond those that are listed, as which it can send.
fn impersonations(fabric: &Fabric, hostile: &Hostile, more: usize) -> Finding {
    let other = cluster(fabric, hostile.site);
    let more = count(more, "more range");
    let message = format!("{other} can send packets from {more} that are not its own");
    Finding::new(&rule::IMPERSONATION, message).help(undeclared_in_peers(other))
}

/// Reports the ranges beyond those that are listed, whose packets it can receive.
fn captures(fabric: &Fabric, hostile: &Hostile, more: usize) -> Finding {
    let other = cluster(fabric, hostile.site);
    let more = count(more, "more range");
    let message = format!("{other} can receive packets for {more} that are not its own");
    Finding::new(&rule::CAPTURE, message).help(undeclared_in_peers(other))
}

fn undeclared_in_peers(other: &str) -> String {
    format!("remove from the Peers of `{other}` the ranges that it does not declare")
}

/// Reports the clusters beyond those that have a finding each.
fn passages(fabric: &Fabric, hostile: &Hostile, exposure: &Exposure, more: usize) -> Finding {
    let other = cluster(fabric, hostile.site);
    let second = cluster(fabric, exposure.site);
    let more = count(more, "more cluster");
    Finding::new(
        &rule::BROKEN_ISOLATION,
        format!("{other} can get in through {second} to {more} although no mesh allows it"),
    )
    .help(format!(
        "remove from the Peers of `{second}` the ranges that it does not declare, in all clusters"
    ))
}

/// Returns some addresses with those whose they should be.
fn shown(fabric: &Fabric, holds: &[&Hold]) -> String {
    let shown: Vec<String> =
        holds.iter().map(|hold| format!("{} ({})", hold.span, owners(fabric, hold))).collect();
    listed(&shown)
}

/// Returns whose the addresses of a hold should be.
pub fn owners(fabric: &Fabric, hold: &Hold) -> String {
    let address = hold.span.first_address();
    match &hold.whose {
        Whose::Declared => "declared".to_owned(),
        Whose::Nobody => "declared by no cluster".to_owned(),
        Whose::Others(owners) => {
            let names: Vec<String> =
                owners.iter().map(|(site, _)| whose(fabric, *site, address)).collect();
            listed(&names)
        }
    }
}

/// Returns what a far end of a cluster's tunnels is called.
pub fn far_end(fabric: &Fabric, site: SiteId, far_end: Tunnel) -> String {
    tunnel(fabric, site, far_end)
}

fn place(fabric: &Fabric, site: SiteId, claim: TunnelClaim) -> Option<Place> {
    fabric.site(site).model.place(claim)
}
