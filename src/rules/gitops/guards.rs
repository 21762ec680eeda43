//! Guards in the repository, compared with the meshes and with what `render` writes.

use std::sync::Arc;

use rayon::prelude::*;

use super::OUTDATED_GUARD;
use crate::admission::{Enforcement, Excess, Guard, GuardOptions, OtherRules, PeerForm, Recorded};
use crate::diagnostic::{Finding, Quoted, Quotes, Severity};
use crate::name::ClusterName;
use crate::place::Place;
use crate::rules::{CheckInputs, Purpose};
use crate::text::{and_more, count, shell_word};

/// The options with which a guard is printed whose writers are not known.
const UNKNOWN: &str = " --writers ACCOUNT";

/// A file with the guard of a cluster.
#[derive(Clone, Debug)]
pub struct GuardFile {
    /// The cluster.
    pub cluster: ClusterName,
    /// The file, as the shell calls it.
    pub source: Arc<str>,
    /// The guard, if it is one.
    pub recorded: Option<Recorded>,
}

/// A problem of such a file.
struct OutdatedGuard {
    severity: Severity,
    message: String,
    /// The condition with which the remedy begins.
    order: String,
    /// The options with which the guard is printed again, if they are known.
    options: Option<GuardOptions>,
}

impl GuardFile {
    /// Returns the guard, if it is one of this cluster.
    pub fn guard(&self) -> Option<&Recorded> {
        let recorded = self.recorded.as_ref();
        recorded.filter(|it| it.guard.cluster == self.cluster)
    }

    /// Returns how the owner of the cluster prints the guard again, with these options, and applies it.
    pub fn help(&self, options: Option<&GuardOptions>, kubectl: &str) -> String {
        let (text, accounts) = match options {
            Some(options) => (options.text.as_str(), ""),
            None => (UNKNOWN, " with the accounts that may write Peers"),
        };
        let left_out = options.and_then(GuardOptions::first_left_out);
        let left_out = left_out.map_or(String::new(), |it| format!("; {it}"));
        let name = &self.cluster;
        let path = shell_word(&self.source);
        format!(
            "run `clustermesh guard {name}{text} > {path}`{accounts} and, as the owner of {name}, `{kubectl} \
             apply --server-side -f {path}`{left_out}"
        )
    }

    fn problem(&self, inputs: &CheckInputs) -> Option<OutdatedGuard> {
        let name = &self.cluster;
        let Some(recorded @ Recorded { guard, .. }) = self.guard() else {
            return Some(OutdatedGuard {
                severity: Severity::Error,
                message: format!(
                    "{} is not the guard of {name}, or it contains other objects too",
                    self.source
                ),
                order: String::new(),
                options: None,
            });
        };
        let access = guard.access.clone();
        let wanted = Guard::new(inputs.meshes, name, access);
        let mut impossible = wanted.impossible_peers(inputs.meshes);
        let refused = refused(guard, inputs);
        let excess = guard.beyond(&wanted);
        let mut order = String::new();
        let (severity, message) = match (refused, excess.split_first()) {
            (Some(refused), _) => match guard.access.enforcement {
                Enforcement::Deny => {
                    (Severity::Error, format!("the guard of {name} refuses {refused}"))
                }
                Enforcement::Warn => {
                    (Severity::Warning, format!("the guard of {name} warns of {refused}"))
                }
            },
            (None, Some((first, rest))) => {
                order = format!("after {name} has applied this commit, ");
                let more = and_more(rest.len(), "");
                let message =
                    format!("the guard of {name} accepts {first}{more}, which the mesh does not");
                (Severity::Warning, message)
            }
            (None, None) => match impossible.pop_first() {
                Some((peer, error)) => (
                    Severity::Warning,
                    format!("the guard of {name} allows Peer {}, but {error}", Quoted(&peer)),
                ),
                None => match &recorded.other_rules {
                    None => {
                        inputs.planned?;
                        (Severity::Notice, unready(guard, &wanted)?)
                    }
                    Some(OtherRules { printed, .. }) => {
                        let file = &self.source;
                        let message =
                            format!("{file} is not what this version prints, which has {printed}");
                        (Severity::Warning, message)
                    }
                },
            },
        };
        Some(OutdatedGuard { severity, message, order, options: wanted.options(inputs.meshes) })
    }
}

/// Reports guards that refuse what `render` writes, or that accept what the meshes do not.
pub(in crate::rules) fn guards(inputs: &CheckInputs, purpose: Purpose) -> Vec<Finding> {
    let guards = inputs.guards.par_iter();
    guards.filter_map(|it| outdated(it, inputs, purpose)).collect()
}

fn outdated(file: &GuardFile, inputs: &CheckInputs, purpose: Purpose) -> Option<Finding> {
    let problem = file.problem(inputs)?;
    let name = &file.cluster;
    let policy = file.recorded.as_ref().map_or(0, |it| it.policy);
    let help = file.help(problem.options.as_ref(), &inputs.config.kubectl(name));
    let mut finding = Finding::on_cluster(&OUTDATED_GUARD, name, problem.message)
        .at(Place::document(&file.source, policy), "")
        .help(format!("{}{help}", problem.order));
    finding.severity = match purpose {
        Purpose::Validate => problem.severity,
        // The guard of the cluster may be newer than the file.
        Purpose::Render | Purpose::Snapshot => problem.severity.min(Severity::Warning),
    };
    // A guard is not one of our formats; only what is read from it is shown.
    finding.quotes = Quotes::Nothing;
    Some(finding)
}

/// Reports a source or a range of one whose Peers a guard will refuse as soon as `render` writes them.
fn unready(guard: &Guard, wanted: &Guard) -> Option<String> {
    let mut lacking = wanted.beyond(guard).into_iter();
    let new = lacking.find(|it| matches!(it, Excess::Source(_) | Excess::Range(..)))?;
    let name = &guard.cluster;
    Some(format!("the guard of {name} does not accept {new}, which `render` does not write yet"))
}

/// Describes the Peers of the plan that a guard refuses.
fn refused(guard: &Guard, inputs: &CheckInputs) -> Option<String> {
    let plan = inputs.planned?.plan;
    let judged = plan.peers_of(&guard.cluster).filter_map(|peer| {
        let refusals = guard.refusals(&PeerForm::rendered(peer));
        Some((&peer.name, *refusals.first()?))
    });
    let refused: Vec<_> = judged.collect();
    let (name, refusal) = refused.first()?;
    let peers = count(refused.len(), "Peer");
    let such = if refused.len() == 1 { ":" } else { ", such as" };
    Some(format!("{peers} that `render` writes{such} {name} ({refusal})"))
}
