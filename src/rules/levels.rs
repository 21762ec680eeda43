//! The levels of findings in the config, and whether they still apply.

use std::collections::BTreeSet;

use super::folding::folded;
use super::registry::all;
use super::{LevelledFindings, Rule, Subject, config, find};
use crate::config::{Config, Date, Ignore, RuleLevel};
use crate::diagnostic::{Finding, FindingCause, Quoted, Severity, gravest_first, mistake};
use crate::document::nearest;
use crate::name::ClusterName;
use crate::place::Place;

/// The levels and hidden findings of the config, by rule.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    levels: Vec<(Vec<&'static Rule>, RuleLevel)>,
    ignores: Vec<(Vec<&'static Rule>, Ignore)>,
}

/// The purpose of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// To judge: what has had its time counts again.
    Validate,
    /// For `render`: an expired entry must not stop it.
    Render,
    /// To keep snapshots: neither must it here.
    Snapshot,
}

/// Findings that an ignore hides: those of a rule, about any cluster and node or only about one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Scope<'a> {
    rule: &'static Rule,
    cluster: Option<&'a str>,
    node: Option<&'a str>,
}

impl Levels {
    /// Finds the rules that a config means.
    ///
    /// # Errors
    /// Every unknown rule, and every rule whose level is final.
    pub fn new(config: &Config) -> Result<Self, Vec<Finding>> {
        let (mut said, mut problems) = (Self::default(), Vec::new());
        for level in &config.rules {
            match meant(&level.rule, level.place.clone().named()) {
                Ok(rules) => {
                    problems.extend(lowered(&rules, level));
                    said.levels.push((rules, level.clone()));
                }
                Err(unknown) => problems.push(unknown),
            }
        }
        for ignore in &config.ignore {
            let place = ignore.place.key("rule");
            match meant(&ignore.rule, place.clone()) {
                Ok(rules) => {
                    let last = rules.iter().find(|rule| rule.is_final());
                    problems.extend(last.map(|rule| unlowerable(rule, "ignored", place)));
                    said.ignores.push((rules, ignore.clone()));
                }
                Err(unknown) => problems.push(unknown),
            }
        }
        if problems.is_empty() { Ok(said) } else { Err(problems) }
    }

    /// Returns the findings to report: without those that are ignored or off, with the level of
    /// their rule, the most severe first, and similar ones combined. Final findings stay.
    pub(super) fn apply(
        &self,
        findings: Vec<Finding>,
        today: Date,
        purpose: Purpose,
    ) -> LevelledFindings {
        let is_in_force = |until| purpose != Purpose::Validate || !is_over(until, today);
        let in_force = self.ignores.iter().filter(|(_, it)| is_in_force(it.until));
        let ignored: BTreeSet<Scope> = in_force.flat_map(Scope::of_ignore).collect();
        let mut findings: Vec<Finding> = findings
            .into_iter()
            .filter_map(|mut finding| {
                if finding.is_final {
                    return Some(finding);
                }
                let is_ignored =
                    |it: &FindingCause| Scope::of_subject(it).any(|it| ignored.contains(&it));
                let level = |rule| self.level(rule).filter(|it| is_in_force(it.until));
                let is_off = |rule| level(rule).is_some_and(|it| it.level.severity().is_none());
                if is_ignored(&finding.as_cause()) {
                    return None;
                }
                // A cause that is not reported swallows nothing.
                finding
                    .cause
                    .take_if(|it| !it.rule.is_final() && (is_ignored(it) || is_off(it.rule)));
                match level(finding.rule) {
                    Some(level) => finding.severity = level.level.severity()?,
                    // The nodes of one cluster must not stop the others.
                    None if finding.is_of_nodes && purpose == Purpose::Render => {
                        finding.severity = finding.severity.min(Severity::Warning);
                    }
                    None => {}
                }
                Some(finding)
            })
            .collect();
        gravest_first(&mut findings);
        LevelledFindings(folded(findings))
    }

    /// Returns what has had its time, as far as it is about what is looked for.
    pub(super) fn expired(&self, today: Date, purpose: Purpose) -> Vec<Finding> {
        let levels = self.levels.iter().filter_map(|(rules, level)| {
            let until = level.until.filter(|&until| until < today)?;
            let then = then(rules, purpose)?;
            Some(config::expired_level(level, until, then))
        });
        let ignores = self.ignores.iter().filter_map(|(rules, ignore)| {
            let until = ignore.until.filter(|&until| until < today)?;
            let then = then(rules, purpose)?;
            Some(config::expired_ignore(ignore, until, then))
        });
        levels.chain(ignores).collect()
    }

    /// Returns the ignores that match none of `findings`, which must be all that there are of a mesh.
    /// One that is about snapshots in the making may match another day, and one about the proof does
    /// where that is done.
    pub(super) fn unused(&self, findings: &[Finding], today: Date) -> Vec<Finding> {
        let elsewhere = [Subject::Snapshots, Subject::Proof];
        let found: Vec<FindingCause> = findings.iter().map(Finding::as_cause).collect();
        let found: BTreeSet<Scope> = found.iter().flat_map(Scope::of_subject).collect();
        let unused = self.ignores.iter().filter(|entry| {
            let (rules, ignore) = entry;
            let is_of_mesh = rules.iter().any(|rule| !elsewhere.contains(&rule.subject));
            let is_used = Scope::of_ignore(entry).any(|it| found.contains(&it));
            is_of_mesh && !is_used && !is_over(ignore.until, today)
        });
        unused.map(|(_, ignore)| config::unused_ignore(ignore)).collect()
    }

    /// Returns the level of a rule. Its own name takes precedence over a code that it shares.
    fn level(&self, rule: &'static Rule) -> Option<&RuleLevel> {
        self.levels
            .iter()
            .filter(|(rules, _)| rules.contains(&rule))
            .map(|(_, level)| level)
            .max_by_key(|level| level.rule == rule.name())
    }
}

/// Returns what the end of an entry about these rules means, if that matters for the purpose.
fn then(rules: &[&'static Rule], purpose: Purpose) -> Option<&'static str> {
    let is_of_mesh = rules.iter().any(|rule| rule.subject != Subject::Snapshots);
    match purpose {
        Purpose::Snapshot if is_of_mesh => None,
        Purpose::Validate if is_of_mesh => Some("the finding counts again"),
        Purpose::Render if is_of_mesh => {
            Some("`validate` counts the finding again, `render` does not")
        }
        // Only `snapshot` finds it, and goes on.
        _ => Some("`snapshot` still applies it"),
    }
}

impl<'a> Scope<'a> {
    /// Returns what an ignore of these rules hides.
    fn of_ignore((rules, ignore): &'a (Vec<&'static Rule>, Ignore)) -> impl Iterator<Item = Self> {
        rules.iter().map(|rule| Self {
            rule,
            cluster: ignore.cluster.as_ref().map(ClusterName::as_str),
            node: ignore.node.as_deref(),
        })
    }

    /// Returns every scope that a finding is in.
    fn of_subject(finding: &'a FindingCause) -> impl Iterator<Item = Self> {
        let nodes = [None, finding.node.as_deref()];
        let clusters = [None, finding.cluster.as_deref()].into_iter();
        clusters
            .flat_map(move |cluster| nodes.map(|node| Self { rule: finding.rule, cluster, node }))
    }
}

fn is_over(until: Option<Date>, today: Date) -> bool {
    until.is_some_and(|until| until < today)
}

/// Returns the rules of a name or code.
fn meant(name: &str, place: Place) -> Result<Vec<&'static Rule>, Finding> {
    let rules = find(name);
    if !rules.is_empty() {
        return Ok(rules);
    }
    let message = format!("unknown rule {}", Quoted(name));
    let unknown = Finding::new(&mistake::INVALID_LEVEL, message).at(place, "");
    let all = all();
    let names = all.iter().flat_map(|rule| [&[rule.name()], rule.aliases].concat());
    Err(match nearest(name, names) {
        Some(meant) => unknown.meant(meant),
        None => unknown,
    })
}

/// Reports a rule whose level is lower than its final severity.
fn lowered(rules: &[&'static Rule], level: &RuleLevel) -> Option<Finding> {
    let is_lowered =
        |rule: &&&Rule| rule.is_final() && level.level.severity() < Some(rule.severity);
    let rule = rules.iter().find(is_lowered)?;
    Some(unlowerable(rule, "lowered", level.place.key("level")))
}

fn unlowerable(rule: &Rule, what: &str, place: Place) -> Finding {
    let message = format!("`{}` cannot be {what}: it prevents rendering", rule.name());
    Finding::new(&mistake::INVALID_LEVEL, message).at(place, "")
}

#[cfg(test)]
mod tests;
