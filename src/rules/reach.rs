//! Reachability: the results of the proof for the manifests as they are applied.

use super::Page;
use super::gitops::{PEER_WITHOUT_ENDPOINT, REFUSED_PEER, UNREADABLE_MANIFEST, idle_placeholder};
use super::refusal::consequence;
use crate::agent::applied::{Applied, AppliedFile, What};
use crate::diagnostic::{Finding, Quoted, Severity, bare};
use crate::kilo::peer::{EndpointFlaw, Translation};
use crate::name::ClusterName;
use crate::place::Place;
use crate::text::{NAMED, listed};

/// A term that is not a fault and that users may look up.
#[derive(Debug)]
pub struct Term {
    /// The word.
    pub name: &'static str,
    /// Its meaning, as Markdown.
    page: &'static str,
}

/// Every such word.
pub static TERMS: &[Term] = &[Term { name: "delivered", page: include_str!("reach/delivered.md") }];

impl Term {
    /// Returns what it means.
    pub fn page(&self) -> Page {
        Page::read(self.page)
    }
}

/// Returns findings about manifests of a cluster without the intended effect: files that are not
/// manifests, and Peers that never get to WireGuard.
pub fn manifests(target: &ClusterName, files: &[AppliedFile]) -> Vec<Finding> {
    files.iter().flat_map(|file| manifest(target, file)).collect()
}

/// Returns a finding about a file that could not be read at all.
pub fn unread(target: &ClusterName, place: Place, problem: &str) -> Finding {
    let message = format!("{} cannot be read: {problem}", Quoted(&place.source));
    Finding::on_cluster(&UNREADABLE_MANIFEST, target, message).at(place, "")
}

/// Returns whether a finding is about a file that could not be read.
pub fn is_unread(finding: &Finding) -> bool {
    *finding.rule == UNREADABLE_MANIFEST
}

/// Returns a finding about a rendered tree that is not there, and what helps.
pub fn treeless(tree: &str, help: &str) -> Finding {
    let message = format!("the rendered tree {} does not exist", Quoted(tree));
    let finding =
        Finding { severity: Severity::Error, ..Finding::new(&UNREADABLE_MANIFEST, message) };
    finding.help(help)
}

fn manifest(target: &ClusterName, file: &AppliedFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for other in &file.content.others {
        match &other.what {
            What::Broken(problems) => {
                findings.extend(problems.iter().map(|it| broken(target, file, it)));
            }
            What::Name(name) => {
                let message = match name {
                    Some(name) => format!("{} is not a valid Peer name", Quoted(name)),
                    None => "a Peer has no name".to_owned(),
                };
                let finding = Finding::on_cluster(&REFUSED_PEER, target, message);
                findings.push(finding.at(file.place(&other.spot), ""));
            }
            // Other objects there are not checked.
            What::Kind { .. } => {}
        }
    }
    let faulty = file.content.peers.iter();
    findings.extend(faulty.filter_map(|peer| refused(target, file, peer)));
    findings.extend(idle_placeholders(target, file));
    findings
}

/// Returns what is wrong with a text, at the place where it is.
fn broken(target: &ClusterName, file: &AppliedFile, problem: &Finding) -> Finding {
    let message = format!("{} cannot be read: {}", Quoted(&file.source), problem.message);
    let mut finding = Finding::on_cluster(&UNREADABLE_MANIFEST, target, message);
    // Texts that are equal share what was found in the first of them.
    let of_file = problem.labels.iter().cloned().map(|mut label| {
        label.place.source = file.source.clone();
        label
    });
    finding.labels = of_file.collect();
    finding
}

/// Returns which Peers have the placeholder as endpoint, and no keepalive.
fn idle_placeholders(target: &ClusterName, file: &AppliedFile) -> Option<Finding> {
    let is_idle = |peer: &&Applied| {
        let spec = peer.spec.as_ref().ok().filter(|it| it.is_ready());
        spec.and_then(Translation::endpoint_flaw) == Some(EndpointFlaw::IdlePlaceholder)
    };
    let peers: Vec<&Applied> = file.content.peers.iter().filter(is_idle).collect();
    let names = listed(peers.iter().map(|it| bare(&it.name)));
    let message = match peers.len() {
        0 => return None,
        1 => idle_placeholder(&format!("the Peer {names}"), "has", "its tunnel"),
        _ => idle_placeholder(&format!("the Peers {names}"), "have", "their tunnels"),
    };
    let finding = Finding::on_cluster(&PEER_WITHOUT_ENDPOINT, target, message);
    let places = peers.iter().take(NAMED).map(|it| file.place(&it.spot));
    let finding = finding.at_each(places.map(|it| (it.key("spec").key("endpoint"), "")));
    Some(finding.help("set `persistentKeepalive: 25`, like `clustermesh render`"))
}

fn refused(target: &ClusterName, file: &AppliedFile, peer: &Applied) -> Option<Finding> {
    let fault = peer.spec.as_ref().err()?;
    let message = consequence(&peer.name, fault);
    let finding = Finding::on_cluster(&REFUSED_PEER, target, message);
    Some(finding.at(file.place(&peer.spot), ""))
}
