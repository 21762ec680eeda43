//! Proofs of the Peers that all clusters get.

use clustermesh::agent::fabric::Fabric;
use clustermesh::config::ceilings::{Ceilings, Counted};
use clustermesh::expectations::Expectations;
use clustermesh::proof::excused::Excused;
use clustermesh::proof::expectation;
use clustermesh::proof::reach::Reach;
use clustermesh::proof::verify::{Asked, Verification, verify_excusing, verify_sound};

use crate::failure::{CommandFailure, CommandResult};

mod wanted_peers;

pub(crate) use wanted_peers::WantedPeers;

/// Looks at all clusters from each of them.
///
/// # Errors
/// A proof would take too many steps.
pub(crate) fn look<'f, 'a>(
    fabric: &'f Fabric<'a>,
    ceilings: Ceilings,
) -> CommandResult<Reach<'f, 'a>> {
    let reach = Reach::new(fabric, ceilings.most_steps());
    let steps = usize::try_from(reach.steps()).unwrap_or(usize::MAX);
    match ceilings.exceeded(Counted::Steps, steps) {
        Some(exceeded) => Err(CommandFailure::beyond(&[exceeded], Vec::new())),
        None => Ok(reach),
    }
}

/// Looks at all clusters from each of them, if expectations can be checked too.
///
/// # Errors
/// A proof, or the check of the expectations, would take too many steps.
pub(crate) fn look_with<'f, 'a>(
    fabric: &'f Fabric<'a>,
    expectations: &Expectations,
    ceilings: Ceilings,
) -> CommandResult<Reach<'f, 'a>> {
    let steps = expectation::steps(fabric, &expectations.expectations);
    match ceilings.exceeded(Counted::Steps, steps) {
        Some(exceeded) => Err(CommandFailure::beyond(&[exceeded], Vec::new())),
        None => look(fabric, ceilings),
    }
}

/// Proves the declared paths; nodes' claims are asked for only if one of them does not work.
pub(crate) fn verified(
    reach: &Reach,
    asked: Asked,
    excused: impl FnOnce() -> Excused,
) -> Verification {
    verify_sound(reach, asked).unwrap_or_else(|| verify_excusing(reach, asked, &excused()))
}
