//! Proof budgets: how much the proofs of a comparison may take altogether.

use crate::agent::fabric::{Fabric, SiteId};
use crate::proof::reach::Reach;

/// The number of steps that proofs may still take ([`Reach::steps`]).
pub(super) struct ProofBudget(pub(super) u64);

impl ProofBudget {
    /// Looks at the pairs of clusters that are wanted, as [`Reach::among`]; none if a proof of their paths takes more
    /// steps than are left.
    pub(super) fn look<'f, 'a>(
        &mut self,
        fabric: &'f Fabric<'a>,
        is_wanted: impl Fn(SiteId, SiteId) -> bool + Sync,
    ) -> Option<Reach<'f, 'a>> {
        let reach = Reach::among(fabric, self.0, is_wanted);
        self.0 = self.0.checked_sub(reach.steps())?;
        Some(reach)
    }
}
