//! Guards in the repository, compared with the meshes and with what `render` writes.

use std::sync::Arc;

use rayon::prelude::*;

use super::OUTDATED_GUARD;
use crate::admission::{
    Enforcement, Excess, Guard, GuardOptions, OtherRules, PeerForm, Recorded, RecordedError,
};
use crate::diagnostic::{Finding, Quoted, Quotes, Severity};
use crate::mesh::leaves;
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::Plan;
use crate::rules::{CheckInputs, Purpose};
use crate::text::{and_more, count, shell_word};

/// The remedy if the options of the guard are known. It names no cluster, so that all guards share it.
const UPDATE: &str = "run `clustermesh guard --update`, then the commands that it prints";

/// The options with which a guard is printed whose writers are not known.
const UNKNOWN: &str = " --writers ACCOUNT";

/// A file with the guard of a cluster.
#[derive(Clone, Debug)]
pub struct GuardFile {
    /// The cluster.
    pub cluster: ClusterName,
    /// The file, as the shell calls it.
    pub source: Arc<str>,
    /// Whether the last commit has another text of the file.
    pub is_restorable: bool,
    /// The guard.
    pub recorded: Result<Recorded, RecordedError>,
}

/// A problem of such a file.
struct OutdatedGuard {
    severity: Severity,
    message: String,
    /// The cluster of which it accepts too much.
    source: Option<ClusterName>,
    /// The options with which the guard is printed again, if they are known.
    options: Option<GuardOptions>,
}

impl GuardFile {
    /// Returns the guard, if it is one of this cluster.
    pub fn guard(&self) -> Option<&Recorded> {
        let recorded = self.recorded.as_ref().ok();
        recorded.filter(|it| it.guard.cluster == self.cluster)
    }

    /// Returns how the owner of the cluster prints the guard again, with these options, and applies it.
    pub fn help(&self, options: Option<&GuardOptions>, kubectl: &str) -> String {
        let path = shell_word(&self.source);
        let (restore, text, accounts) = match options {
            Some(options) => (String::new(), options.text.as_str(), ""),
            None => (
                if self.is_restorable {
                    format!("restore it with `git checkout HEAD -- {path}`, or ")
                } else {
                    String::new()
                },
                UNKNOWN,
                " with the accounts that may write Peers",
            ),
        };
        let left_out = options.and_then(GuardOptions::first_left_out);
        let left_out = left_out.map_or(String::new(), |it| format!("; {it}"));
        let name = &self.cluster;
        format!(
            "{restore}run `clustermesh guard {name}{text} > {path}`{accounts} and, as the owner of {name}, `{}`{left_out}",
            self.apply(kubectl)
        )
    }

    /// Returns the command that applies the file.
    pub fn apply(&self, kubectl: &str) -> String {
        format!("{kubectl} apply --server-side -f {}", shell_word(&self.source))
    }

    /// Describes why the file is not the guard of its cluster.
    pub fn refusal(&self) -> Option<String> {
        match &self.recorded {
            Ok(recorded) if recorded.guard.cluster == self.cluster => None,
            Ok(recorded) => {
                Some(format!("{} is the guard of {}", self.source, recorded.guard.cluster))
            }
            Err(error) => Some(format!("{} {error}", self.source)),
        }
    }

    fn problem(&self, inputs: &CheckInputs) -> Option<OutdatedGuard> {
        let name = &self.cluster;
        let Some(recorded @ Recorded { guard, .. }) = self.guard() else {
            let message = self.refusal()?;
            let (severity, source, options) = (Severity::Error, None, None);
            return Some(OutdatedGuard { severity, message, source, options });
        };
        let access = guard.access.clone();
        let wanted = Guard::new(inputs.meshes, name, access);
        let mut impossible = wanted.impossible_peers(inputs.meshes);
        let refused = refused(guard, inputs);
        // The last step of a cluster that leaves deletes its guard.
        let excess = if leaves(inputs.meshes, name) { Vec::new() } else { guard.beyond(&wanted) };
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
                let more = and_more(rest.len(), "");
                let message = format!(
                    "the guard of {name} accepts {first}{more}, which the mesh does not allow"
                );
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
                    Some(OtherRules { printed, .. }) => (
                        Severity::Warning,
                        format!(
                            "the guard of {name} is outdated: this version prints it with {printed}"
                        ),
                    ),
                },
            },
        };
        let source = excess.into_iter().find_map(|it| match it {
            Excess::Range(source, _) | Excess::Source(source) => {
                source.rsplit('/').next()?.parse().ok()
            }
            _ => None,
        });
        let options = wanted.options(inputs.meshes);
        Some(OutdatedGuard { severity, message, source, options })
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
    let help = match problem.options {
        None => file.help(None, &inputs.config.kubectl(name)),
        Some(options) => {
            let left_out = options.first_left_out();
            left_out.map_or(UPDATE.to_owned(), |it| format!("{UPDATE}; {it}"))
        }
    };
    let mut finding = Finding::on_cluster(&OUTDATED_GUARD, name, problem.message)
        .at(Place::document(&file.source, policy), "")
        .help(help);
    if let Some(source) = problem.source {
        finding = finding.of_name(source.as_str());
    }
    finding.severity = match (purpose, problem.severity) {
        (Purpose::Validate, severity) => severity,
        // The guard of the cluster may be newer than the file.
        (Purpose::Render | Purpose::Snapshot, Severity::Error) => Severity::Warning,
        // No obstacle to what is rendered; `validate` reports it.
        (Purpose::Render | Purpose::Snapshot, _) => return None,
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
    refused_peers(guard, inputs.planned?.plan)
}

/// Describes the Peers of a plan that a guard refuses, if there are any.
pub fn refused_peers(guard: &Guard, plan: &Plan) -> Option<String> {
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
