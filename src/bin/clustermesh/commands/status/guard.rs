//! Guards: the installed one of a cluster, compared with what `guard` would print now and with its file.

use clustermesh::admission::{Excess, Guard, Recorded};
use clustermesh::diagnostic::escaped;
use clustermesh::fleet::Fleet;
use clustermesh::rules::clusters::{self, Fault};
use clustermesh::rules::gitops::GuardFile;
use clustermesh::text::and_more;
use serde_json::Value;

use super::state::{ClusterStatus, GuardProblem, GuardState, GuardStatus};
use crate::inputs::Inputs;
use crate::{guard_files, planning};

/// The longest problem, in characters.
const SHOWN: usize = 400;

/// The declarations and files that guards are compared with.
pub(super) struct GuardComparison<'i> {
    inputs: &'i Inputs,
    fleet: Fleet<'i>,
    files: Vec<GuardFile>,
}

impl<'i> GuardComparison<'i> {
    /// Reads the files.
    pub(super) fn new(inputs: &'i Inputs) -> anyhow::Result<Self> {
        Ok(Self {
            inputs,
            fleet: planning::fleet(inputs).0,
            files: guard_files::read(inputs)?,
        })
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
            (None, Some(file)) if objects.is_empty() => (
                GuardState::Absent,
                Some(format!("{} is not applied", file.source)),
            ),
            (None, None) if objects.is_empty() => (GuardState::Absent, None),
            (None, _) => {
                let problem = match objects.as_slice() {
                    [_] => "it refuses nothing, because its policy or its binding is missing",
                    _ => "it is not what `clustermesh guard` prints",
                };
                (GuardState::Outdated, Some(problem.to_owned()))
            }
            (Some(live), file) => match self.difference(state, live, file) {
                None => (GuardState::Current, None),
                message => (GuardState::Outdated, message),
            },
        };
        let problem = message.map(|message| GuardProblem {
            message: escaped(&message, SHOWN),
            help: help(state, live.as_ref(), file),
        });
        GuardStatus {
            state: guard_state,
            problem,
        }
    }

    /// Describes the first difference of an installed guard.
    fn difference(
        &self,
        state: &ClusterStatus,
        live: &Recorded,
        file: Option<&GuardFile>,
    ) -> Option<String> {
        let Recorded { guard, is_whole } = live;
        if guard.cluster != state.cluster {
            return Some(format!("it is the guard of {}", guard.cluster));
        }
        let access = guard.access.clone();
        let wanted = Guard::new(&self.inputs.meshes, &self.fleet, &state.cluster, access);
        let first = |excess: &[Excess]| {
            let (first, rest) = excess.split_first()?;
            Some(format!("{first}{}", and_more(rest.len(), "")))
        };
        if let Some(excess) = first(&guard.beyond(&wanted)) {
            return Some(format!("it accepts {excess}, which the mesh does not"));
        }
        if let Some(lack) = first(&wanted.beyond(guard)) {
            return Some(format!("it refuses {lack}, which the mesh accepts"));
        }
        if let Some(file) = file.filter(|it| it.guard().is_some_and(|it| it.guard != *guard)) {
            return Some(format!("it differs from {}", file.source));
        }
        let is_current = *is_whole && *guard == wanted;
        (!is_current).then(|| "it is not what `clustermesh guard` prints".to_owned())
    }
}

/// Returns how the owner of the cluster installs the current guard, with the decisions of the file, else of the
/// installed guard.
fn help(state: &ClusterStatus, live: Option<&Recorded>, file: Option<&GuardFile>) -> String {
    let name = &state.cluster;
    let kubectl = state.kubectl.as_deref().unwrap_or("kubectl");
    let Some(known) = file.and_then(GuardFile::guard).or(live) else {
        return format!(
            "as the owner of {name}, print its guard again with your options (`clustermesh guard --help`) and apply it"
        );
    };
    let options = known.guard.access.options();
    match file {
        Some(file) => file.help(Some(&options), kubectl),
        None => format!(
            "as the owner of {name}, run `clustermesh guard {name}{options} | {kubectl} apply --server-side -f -`"
        ),
    }
}
