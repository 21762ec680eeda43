//! Mistakes: the findings about one file, of which the first ones are listed and the others counted.

use std::collections::BTreeMap;

use super::{Finding, Label, Rule, Severity};
use crate::place::Place;
use crate::text::noun;

/// The largest number of findings about a file that are listed one by one.
pub const LISTED: usize = 1000;

/// The findings about a file, so that what they take and print depends on the size of the file only as far as
/// they can be read.
#[derive(Clone, Debug, Default)]
pub struct Mistakes {
    listed: Vec<Finding>,
    /// The number of the others of each rule.
    more: BTreeMap<&'static Rule, usize>,
    errors: usize,
}

impl Mistakes {
    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        let (rule, severity) = (finding.rule, finding.severity);
        self.add((rule, severity), || finding);
    }

    /// Adds a finding of a rule, which is not made if it is only counted.
    pub fn push_with(&mut self, rule: &'static Rule, find: impl FnOnce() -> Finding) {
        self.add((rule, rule.severity), find);
    }

    fn add(&mut self, (rule, severity): (&'static Rule, Severity), find: impl FnOnce() -> Finding) {
        let is_error = severity == Severity::Error;
        if self.listed.len() == LISTED && is_error && self.errors < LISTED {
            self.displace();
        }
        self.errors += usize::from(is_error);
        if self.listed.len() < LISTED {
            self.listed.push(find());
        } else {
            self.count(rule, 1);
        }
    }

    /// Makes room for an error: no number of warnings hides it.
    fn displace(&mut self) {
        let is_less = |it: &Finding| it.severity != Severity::Error;
        if let Some(place) = self.listed.iter().rposition(is_less) {
            let rule = self.listed.remove(place).rule;
            self.count(rule, 1);
        }
    }

    fn count(&mut self, rule: &'static Rule, findings: usize) {
        *self.more.entry(rule).or_default() += findings;
    }

    /// Returns what was read, or adds what is wrong with it.
    pub fn without<T>(&mut self, read: Result<T, Vec<Finding>>) -> Option<T> {
        read.map_err(|found| self.extend(found)).ok()
    }

    /// Adds all findings of others.
    pub fn append(&mut self, others: Self) {
        let errors = self.errors + others.errors;
        self.extend(others.listed);
        self.errors = errors;
        for (rule, count) in others.more {
            self.count(rule, count);
        }
    }

    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many there are, whether they are listed or not.
    pub fn len(&self) -> usize {
        let more: usize = self.more.values().sum();
        self.listed.len() + more
    }

    /// Returns how many of them are errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Returns those that are listed; all of them if [`Mistakes::are_listed`].
    pub fn listed(&self) -> &[Finding] {
        &self.listed
    }

    /// Returns whether all of them are listed.
    pub fn are_listed(&self) -> bool {
        self.more.is_empty()
    }

    /// Replaces those of a rule that are listed.
    pub(crate) fn explain(&mut self, rule: &'static Rule, explain: impl Fn(Finding) -> Finding) {
        for finding in self.listed.iter_mut().filter(|it| it.rule == rule) {
            *finding = explain(finding.clone());
        }
    }

    /// Retains only some of those that are listed.
    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&Finding) -> bool) {
        self.listed.retain(is_kept);
    }

    /// Returns a finding for the others of each rule, and those that are listed. A report that shows only the first
    /// ones shows how many there are.
    pub fn into_findings(self) -> Vec<Finding> {
        let file = self.listed.iter().flat_map(|it| &it.labels).next();
        let place = file.map(|Label { place, .. }| Place::document(&place.source, 0));
        self.counted("file", place.as_ref())
    }

    /// Returns the same for the findings about the files of a folder.
    pub fn into_findings_of_folder(self) -> Vec<Finding> {
        self.counted("folder", None)
    }

    fn counted(self, of: &str, place: Option<&Place>) -> Vec<Finding> {
        let more = self.more.into_iter().map(|(rule, count)| {
            let findings = noun(count, "finding");
            Finding::new(
                rule,
                format!("{count} more {findings} of this rule in this {of} are not listed"),
            )
            .at(place.cloned(), "")
        });
        more.chain(self.listed).collect()
    }
}

impl Extend<Finding> for Mistakes {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        findings.into_iter().for_each(|it| self.push(it));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::mistake;

    #[test]
    fn no_warning_hides_an_error() {
        let mut all = Mistakes::default();
        all.extend((0..2 * LISTED).map(|_| Finding::new(&mistake::HOST_BITS, "warning")));
        all.push(Finding::new(&mistake::UNKNOWN_FIELD, "error"));
        assert_eq!((all.len(), all.errors()), (2 * LISTED + 1, 1));
        assert_eq!(all.listed().last().unwrap().message.shown(), "error");
    }

    #[test]
    fn the_first_are_listed_and_the_others_counted() {
        let place = Place::document(&"mesh.yaml".into(), 2);
        let finding = |rule: &'static Rule| Finding::new(rule, "x").at(place.clone(), "");
        let mut all = Mistakes::default();
        all.extend((0..LISTED - 1).map(|_| finding(&mistake::UNKNOWN_FIELD)));
        let mut others = Mistakes::default();
        others.extend((0..LISTED + 2).map(|_| finding(&mistake::HOST_BITS)));
        assert!(all.are_listed() && !others.are_listed());
        all.append(others);
        assert_eq!((all.len(), all.errors()), (2 * LISTED + 1, LISTED - 1));
        let findings = all.into_findings();
        assert_eq!(findings.len(), LISTED + 1);
        let more = &findings[0];
        assert_eq!(
            more.message.shown(),
            "1001 more findings of this rule in this file are not listed"
        );
        assert_eq!((more.rule.name(), more.severity), ("host-bits", Severity::Warning));
        assert_eq!(&*more.labels[0].place.source, "mesh.yaml");
    }
}
