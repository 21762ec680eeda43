//! Does it get there, and back? What the proof says of the manifests as they are applied.

use super::endpoints::NO_INITIATOR;
use super::gitops::{REFUSED_PEER, UNREADABLE_MANIFEST};
use super::{Finding, Page, Rule, bare};
use crate::diagnostic::{Diagnostic, Quoted, Severity};
use crate::kilo::peer::translation::Fault;
use crate::name::ClusterName;
use crate::place::Place;
use crate::proof::applied::{Applied, File, What};
use crate::proof::expectation::Check;
use crate::proof::fabric::Fabric;
use crate::proof::hostile::Hostile;
use crate::proof::words::hostile::Kind;
use crate::proof::words::{self, Told};

rules! {
    "reach" about Proof;
    NO_ROUTE = "no-route" Error;
    LOCAL_SHADOW = "local-shadow" Error;
    STOLEN_BY = "stolen-by" Error;
    UNKNOWN_KEY = "unknown-key" Error;
    NOT_ACCEPTED = "not-accepted" Error;
    LOOPS = "loops" Error;
    SOURCE_REJECTED = "source-rejected" Error;
    AMBIGUOUS = "ambiguous" Error;
    NOT_READY = "not-ready" Error;
    RETURN_FAILS = "return-fails" Error;
    UNPROMISED_REACH = "unpromised-reach" Error;
    OUTSIDE_PEER = "outside-peer" Warning;
    FAILED_EXPECTATION = "failed-expectation" Error;
    EMPTY_EXPECTATION = "empty-expectation" Error;
    IMPERSONATION = "impersonation" Error;
    CAPTURE = "capture" Error;
    BROKEN_ISOLATION = "broken-isolation" Error;
}

/// A word that is no fault and that people may look up all the same.
#[derive(Debug)]
pub struct Term {
    /// The word.
    pub name: &'static str,
    /// What it means, as Markdown.
    page: &'static str,
}

/// Every such word.
pub static TERMS: &[Term] = &[Term {
    name: "delivered",
    page: include_str!("reach/delivered.md"),
}];

impl Finding {
    /// Returns a finding about no cluster in particular.
    fn told(rule: &'static Rule, told: Told) -> Self {
        Self {
            rule,
            severity: rule.severity,
            is_final: rule.is_final(),
            cluster: None,
            node: None,
            group: String::new(),
            message: told.message,
            labels: told.labels,
            help: told.help,
        }
    }
}

impl Term {
    /// Returns what it means.
    pub fn page(&self) -> Page {
        Page::read(self.page)
    }
}

/// Returns the rule of an ending that is not the good one.
pub fn rule(ending: &str) -> Option<&'static Rule> {
    if ending == NO_INITIATOR.name {
        return Some(&NO_INITIATOR);
    }
    RULES.iter().copied().find(|rule| rule.name == ending)
}

/// Returns what there is to tell about a way that does not end well, of a packet from a cluster.
pub fn failure(ending: &str, from: &ClusterName, told: Told) -> Option<Finding> {
    let mut finding = Finding::on_cluster(rule(ending)?, from, told.message);
    finding.severity = Severity::Error;
    finding.labels = told.labels;
    finding.help = told.help;
    Some(finding)
}

/// Returns what there is to tell about an expectation, each at its own place and at those that are
/// responsible; nothing where it holds.
pub fn expectation(fabric: &Fabric, check: &Check) -> Vec<Finding> {
    let failure = words::expectation::failure(fabric, check);
    let voids = words::expectation::voids(fabric, check).into_iter();
    let failure = failure.map(|told| Finding::told(&FAILED_EXPECTATION, told));
    let voids = voids.map(|told| Finding::told(&EMPTY_EXPECTATION, told));
    failure.into_iter().chain(voids).collect()
}

/// Returns what a hostile cluster could do that no mesh lets it, each about the cluster whose
/// manifests are responsible; nothing if it is contained.
pub fn hostility(fabric: &Fabric, hostile: &Hostile) -> Vec<Finding> {
    let tellings = words::hostile::tellings(fabric, hostile).into_iter();
    let findings = tellings.filter_map(|telling| {
        let rule = match telling.kind {
            Kind::Impersonation => &IMPERSONATION,
            Kind::Capture => &CAPTURE,
            Kind::BrokenIsolation => &BROKEN_ISOLATION,
        };
        let cluster = fabric.site(telling.site)?.cluster;
        let mut finding = Finding::on_cluster(rule, cluster, telling.told.message);
        finding.labels = telling.told.labels;
        finding.help = telling.told.help;
        Some(finding)
    });
    findings.collect()
}

/// Returns what keeps manifests of a cluster from being what somebody meant them to be: files that
/// are none, and Peers that never get to WireGuard.
pub fn manifests(target: &ClusterName, files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .flat_map(|file| manifest(target, file))
        .collect()
}

/// Returns a finding about a file that could not be read at all.
pub fn unread(target: &ClusterName, place: Place, problem: &str) -> Finding {
    let message = format!("{} is not read: {problem}", Quoted(&place.source));
    Finding::on_cluster(&UNREADABLE_MANIFEST, target, message).at(place, "")
}

fn manifest(target: &ClusterName, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for other in &file.content.others {
        match &other.what {
            What::Broken(problems) => {
                findings.extend(problems.iter().map(|it| broken(target, file, it)));
            }
            What::Name(name) => {
                let message = match name {
                    Some(name) => format!("{} is no name of a Peer", Quoted(name)),
                    None => "there is a Peer without a name".to_owned(),
                };
                let finding = Finding::on_cluster(&REFUSED_PEER, target, message);
                findings.push(finding.at(file.place(&other.spot), ""));
            }
            // Whatever else belongs there is not ours to judge.
            What::Kind { .. } => {}
        }
    }
    let faulty = file.content.peers.iter();
    findings.extend(faulty.filter_map(|peer| refused(target, file, peer)));
    findings
}

/// Returns what is wrong with a text, at the place where it is.
fn broken(target: &ClusterName, file: &File, problem: &Diagnostic) -> Finding {
    let message = format!(
        "{} cannot be read: {}",
        Quoted(&file.source),
        problem.message
    );
    let mut finding = Finding::on_cluster(&UNREADABLE_MANIFEST, target, message);
    // Texts that are equal share what was found in the first of them.
    let of_file = problem.labels.iter().cloned().map(|mut label| {
        label.place.source = file.source.clone();
        label
    });
    finding.labels = of_file.collect();
    finding
}

fn refused(target: &ClusterName, file: &File, peer: &Applied) -> Option<Finding> {
    let fault = peer.spec.as_ref().err()?;
    let name = bare(&peer.name);
    let message = match fault {
        Fault::NotStored(mismatch) => format!(
            "{name} is refused by the API server: {} {}",
            mismatch.field, mismatch.problem
        ),
        Fault::Undecodable(refusal) => {
            format!("{name} keeps every agent that starts from reading any Peer: {refusal}")
        }
        Fault::Ignored(refusal) => format!("{name} is ignored by Kilo: {refusal}"),
    };
    let finding = Finding::on_cluster(&REFUSED_PEER, target, message);
    Some(finding.at(file.place(&peer.spot), ""))
}
