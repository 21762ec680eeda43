//! Steps: a limit for all templates of a run together. A step is an instruction of a template, or a byte that
//! is read or written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Problem;

/// The number of steps that the templates of a run may take.
pub(super) const LIMIT: u64 = 50_000_000;

/// The steps of a file that is read or written, besides its bytes.
const FILE: u64 = 2500;

/// The steps that are left to the templates of a run.
#[derive(Clone, Debug)]
pub struct StepBudget(Arc<AtomicU64>);

impl Default for StepBudget {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(LIMIT)))
    }
}

impl StepBudget {
    /// Returns how many are left.
    pub(super) fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts some steps.
    pub(super) fn take(&self, steps: u64) -> Result<(), Problem> {
        let left = self.left().saturating_sub(steps);
        self.0.store(left, Ordering::Relaxed);
        if left == 0 {
            return Err(Problem::TooManySteps);
        }
        Ok(())
    }

    /// Counts a text that is read or written.
    ///
    /// # Errors
    /// The templates of the run have taken too many steps.
    pub fn take_text(&self, text: &str) -> Result<(), Problem> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.take(FILE.saturating_add(bytes))
    }
}
