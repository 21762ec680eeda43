//! Rules: names, severities and words for the facts that the fleet and the plan have found.
//!
//! A fact is decided where it matters, once; here it only gets a voice. So what `render` does and
//! what any command says about it cannot differ.

use crate::diagnostic::{Label, Severity};
use crate::fleet::Fleet;
use crate::plan::Plan;

mod nodes;
mod targets;

/// What a finding is about, and how much it matters.
#[derive(Debug, Eq, PartialEq)]
pub struct Rule {
    /// Its name: kebab-case, names the fault, never reused.
    pub name: &'static str,
    /// The operator's reason code for the same, if it has one.
    pub alias: Option<&'static str>,
    /// How much it matters.
    pub severity: Severity,
}

/// A case of a rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Whom it concerns, such as `east/worker-1`; findings of one group are told together.
    pub subject: String,
    /// The cluster, or the source and the target, that the subject belongs to.
    pub group: String,
    /// What is the matter, with the offending values, harmless to print.
    pub message: String,
    /// Where, the most important place first.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
}

impl Rule {
    /// Returns the name by which people look it up: the operator's code where there is one.
    pub fn code(&self) -> &'static str {
        self.alias.unwrap_or(self.name)
    }
}

impl Finding {
    fn new(rule: &'static Rule, group: String, subject: String, message: String) -> Self {
        Self {
            rule,
            subject,
            group,
            message,
            labels: Vec::new(),
            help: None,
        }
    }
}

/// Returns everything to tell about a plan, the gravest first, in an order that is always the same.
pub fn findings(fleet: &Fleet, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut members: Vec<_> = fleet.members().iter().collect();
    members.sort_by_key(|member| (&member.entry.name, member.rank));
    for member in members {
        findings.extend(nodes::findings(member));
    }
    findings.extend(targets::findings(plan));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.rule.severity));
    findings
}

const fn rule(name: &'static str, severity: Severity) -> Rule {
    Rule {
        name,
        alias: None,
        severity,
    }
}

const fn aliased(name: &'static str, alias: &'static str) -> Rule {
    Rule {
        name,
        alias: Some(alias),
        severity: Severity::Warning,
    }
}
