//! Findings with their levels: the form in which commands print and judge them.

use std::ops::Deref;
use std::slice;

use super::Finding;

/// Findings with the levels of the config. Nothing else is reported, so no command can forget the levels.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LevelledFindings(pub(super) Vec<Finding>);

impl LevelledFindings {
    /// Returns findings that no level changes: mistakes that end a run, and answers to a question on the command line.
    pub fn fixed(findings: Vec<Finding>) -> Self {
        Self(findings)
    }

    /// Keeps some of them.
    pub fn retain(&mut self, is_kept: impl FnMut(&Finding) -> bool) {
        self.0.retain(is_kept);
    }

    /// Returns them after a change of each.
    #[must_use]
    pub fn map(self, change: impl Fn(Finding) -> Finding) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// Returns each of them alone.
    pub fn split(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|it| Self(vec![it]))
    }
}

impl Deref for LevelledFindings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.0
    }
}

impl<'f> IntoIterator for &'f LevelledFindings {
    type Item = &'f Finding;
    type IntoIter = slice::Iter<'f, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Self> for LevelledFindings {
    fn from_iter<I: IntoIterator<Item = Self>>(parts: I) -> Self {
        Self(parts.into_iter().flat_map(|it| it.0).collect())
    }
}
