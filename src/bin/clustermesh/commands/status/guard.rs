//! Guards: the installed one of a cluster, compared with what `guard` would print now and with its file.

use clustermesh::admission::{Enforcement, Excess, Guard, GuardAccess, Recorded};
use clustermesh::diagnostic::escaped;
use clustermesh::results::status::state::{ClusterStatus, GuardProblem, GuardState, GuardStatus};
use clustermesh::rules::clusters::{self, Fault};
use clustermesh::rules::gitops::GuardFile;
use clustermesh::text::and_more;
use serde_json::Value;

use crate::guard_files;
use crate::inputs::Inputs;

/// The longest problem, in characters.
const SHOWN: usize = 400;

/// The declarations and files that guards are compared with.
pub(super) struct GuardComparison<'i> {
    inputs: &'i Inputs,
    files: Vec<GuardFile>,
}

impl<'i> GuardComparison<'i> {
    /// Reads the files.
    pub(super) fn new(inputs: &'i Inputs) -> anyhow::Result<Self> {
        Ok(Self { inputs, files: guard_files::read(inputs)? })
    }

    /// Compares the objects that a cluster has.
    pub(super) fn status(
        &self,
        state: &ClusterStatus,
        objects: Result<Vec<Value>, Fault>,
    ) -> GuardStatus {
        let cluster = &state.cluster;
        let objects = match objects {
            Ok(objects) => objects,
            Err(fault) => {
                let help = clusters::unread(cluster, &fault).help.unwrap_or_default();
                let message = fault.to_string();
                return GuardStatus {
                    state: GuardState::Unknown,
                    problem: Some(GuardProblem { message, help }),
                };
            }
        };
        let file = self.files.iter().find(|it| it.cluster == *cluster);
        let live = Recorded::read(&objects);
        let (guard_state, message) = match (&live, file) {
            (None, Some(file)) if objects.is_empty() => {
                (GuardState::Absent, Some(format!("{} is not applied", file.source)))
            }
            (None, None) if objects.is_empty() => (GuardState::Absent, None),
            (None, _) => {
                let problem = match objects.as_slice() {
                    [_] => "it refuses nothing, because its policy or its binding is missing",
                    _ => "it is not what `clustermesh guard` prints",
                };
                (GuardState::Outdated, Some(problem.to_owned()))
            }
            (Some(live), file) => match self.difference(state, live, file) {
                message @ Some(_) => (GuardState::Outdated, message),
                None if live.guard.access.enforcement == Enforcement::Warn => {
                    let message = "it only warns, and refuses no Peer".to_owned();
                    (GuardState::Warning, Some(message))
                }
                None => (GuardState::Current, None),
            },
        };
        let problem = message.map(|message| GuardProblem {
            message: escaped(&message, SHOWN),
            help: self.help(state, guard_state, live.as_ref(), file),
        });
        GuardStatus { state: guard_state, problem }
    }

    /// Describes the first difference of an installed guard.
    fn difference(
        &self,
        state: &ClusterStatus,
        live: &Recorded,
        file: Option<&GuardFile>,
    ) -> Option<String> {
        let guard = &live.guard;
        if guard.cluster != state.cluster {
            return Some(format!("it is the guard of {}", guard.cluster));
        }
        let wanted = self.wanted(state, guard.access.clone());
        let first = |excess: &[Excess]| {
            let (first, rest) = excess.split_first()?;
            Some(format!("{first}{}", and_more(rest.len(), "")))
        };
        if let Some(excess) = first(&guard.beyond(&wanted)) {
            return Some(format!("it accepts {excess}, which the mesh does not allow"));
        }
        if let Some(lack) = first(&wanted.beyond(guard)) {
            return Some(format!("it refuses {lack}, which the mesh accepts"));
        }
        if let Some(file) = file.filter(|it| it.guard().is_some_and(|it| it.guard != *guard)) {
            return Some(format!("it differs from {}", file.source));
        }
        if let Some((name, error)) = wanted.impossible_peers(&self.inputs.meshes).pop_first() {
            return Some(format!("it allows Peer {name}, but {error}"));
        }
        let is_current = live.is_whole() && *guard == wanted;
        (!is_current).then(|| "it is not what `clustermesh guard` prints".to_owned())
    }

    /// Returns the guard that would be printed now, with decisions of the owner.
    fn wanted(&self, state: &ClusterStatus, access: GuardAccess) -> Guard {
        Guard::new(&self.inputs.meshes, &state.cluster, access)
    }

    /// Returns how the owner of the cluster installs the current guard, with the decisions of the file, else of the
    /// installed guard. No remedy makes a guard that refuses Peers only warn, and one that only warns is to refuse them next.
    fn help(
        &self,
        state: &ClusterStatus,
        guard: GuardState,
        live: Option<&Recorded>,
        file: Option<&GuardFile>,
    ) -> String {
        let name = &state.cluster;
        let kubectl = state.kubectl.as_deref().unwrap_or("kubectl");
        let known = file.and_then(GuardFile::guard).or(live);
        let options = known.and_then(|known| {
            let mut access = known.guard.access.clone();
            let installed = live.map_or(Enforcement::Warn, |it| it.guard.access.enforcement);
            access.enforcement = match guard {
                GuardState::Warning => Enforcement::Deny,
                _ => access.enforcement.max(installed),
            };
            self.wanted(state, access).options(&self.inputs.meshes)
        });
        let help = match (file, &options) {
            (Some(file), options) => file.help(options.as_ref(), kubectl),
            (None, Some(options)) => {
                let left_out = options.first_left_out();
                let left_out = left_out.map_or(String::new(), |it| format!("; {it}"));
                format!(
                    "as the owner of {name}, run `clustermesh guard {name}{} | {kubectl} apply --server-side -f -`{left_out}",
                    options.text
                )
            }
            (None, None) => format!(
                "as the owner of {name}, print its guard again with your options (`clustermesh guard --help`) and apply it"
            ),
        };
        match guard {
            GuardState::Warning => format!("when no Peer is reported any more, {help}"),
            _ => help,
        }
    }
}
