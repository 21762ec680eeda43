//! Consequences: findings that follow from a finding of another rule, because both are about the same thing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Finding, Rule};
use crate::diagnostic::FindingCause;
use crate::place::Place;

/// The common part of a consequence and its cause.
#[derive(Clone, Copy)]
pub(super) enum Common {
    /// The run: there is one cause at most.
    Run,
    /// The cluster that they are about.
    Cluster,
    /// The node that they are about.
    Node,
    /// The file of their first places.
    File,
    /// The first place of the cause, at which the consequence is, too.
    Place,
    /// The name that the consequence is about, which is the name or the cluster that the cause is about.
    Name,
}

/// A rule of which findings follow from those of another rule. No rule follows from itself over others.
pub(super) type ConsequenceRow = (&'static Rule, &'static Rule, Common);

/// The findings of a run, by what a consequence may have in common with them.
struct PossibleCauses<'f> {
    /// The first finding of each rule with each common part.
    by_part: BTreeMap<(&'static str, CommonPart), &'f Finding>,
    /// The first finding of each subject, below which consequences are listed.
    by_subject: BTreeMap<FindingCause, &'f Finding>,
    /// The rules and clusters of all.
    of_clusters: BTreeSet<(&'static str, Option<String>)>,
}

/// A part that two findings may have in common.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CommonPart {
    Run,
    Cluster(String),
    Node(String, String),
    File(Arc<str>),
    Place(Place),
    Name(String),
}

impl<'f> PossibleCauses<'f> {
    fn new(reported: &'f [Finding]) -> Self {
        let mut causes = Self {
            by_part: BTreeMap::new(),
            by_subject: BTreeMap::new(),
            of_clusters: BTreeSet::new(),
        };
        for finding in reported {
            let rule = finding.rule.name();
            for part in parts(finding) {
                causes.by_part.entry((rule, part)).or_insert(finding);
            }
            causes.by_subject.entry(finding.as_cause()).or_insert(finding);
            causes.of_clusters.insert((rule, finding.cluster.clone()));
        }
        causes
    }

    /// Returns whether a cause is reported: itself, or a finding about a node of its cluster if it is about all nodes.
    fn has(&self, cause: &FindingCause) -> bool {
        let of_node = || self.of_clusters.contains(&(cause.rule.name(), cause.cluster.clone()));
        self.by_subject.contains_key(cause) || cause.node.is_none() && of_node()
    }

    fn find(
        &self,
        consequence: &Finding,
        &(_, rule, common): &ConsequenceRow,
    ) -> Option<FindingCause> {
        let of_places = consequence.labels.iter().map(|it| CommonPart::Place(it.place.clone()));
        let mut of_consequence: Vec<CommonPart> = match common {
            Common::Place => of_places.collect(),
            _ => part(consequence, common).into_iter().collect(),
        };
        of_consequence.retain(|it| self.by_part.contains_key(&(rule.name(), it.clone())));
        let part = of_consequence.into_iter().next()?;
        let cause = self.by_part.get(&(rule.name(), part.clone()))?.as_cause();
        // Of several with one subject, a consequence is listed below the first.
        let first = self.by_subject.get(&cause)?;
        parts(first).any(|it| it == part).then_some(cause)
    }
}

/// Sets the causes of findings that have none among themselves.
pub(super) fn link_all(findings: &mut [Finding], rows: &[ConsequenceRow]) {
    // Of very many findings, few can be a cause.
    let known = findings.iter().filter_map(|it| Some(it.cause.as_ref()?.rule.name()));
    let rules: BTreeSet<&str> = rows.iter().map(|it| it.1.name()).chain(known).collect();
    let can_be_cause = |it: &&Finding| rules.contains(it.rule.name());
    let reported: Vec<Finding> = findings.iter().filter(can_be_cause).cloned().collect();
    link(findings, &reported, rows);
}

/// Sets the causes of findings that have none among all that are reported.
pub(super) fn link(findings: &mut [Finding], reported: &[Finding], rows: &[ConsequenceRow]) {
    let causes = PossibleCauses::new(reported);
    for finding in findings.iter_mut() {
        if finding.cause.as_ref().is_some_and(|it| causes.has(it)) {
            continue;
        }
        let mut rows = rows.iter().filter(|it| it.0 == finding.rule);
        if let Some(cause) = rows.find_map(|row| causes.find(finding, row)) {
            finding.cause = Some(cause);
        }
    }
}

/// Returns the part of a consequence that its cause has too.
fn part(consequence: &Finding, common: Common) -> Option<CommonPart> {
    Some(match common {
        Common::Run => CommonPart::Run,
        Common::Cluster => CommonPart::Cluster(consequence.cluster.clone()?),
        Common::Node => CommonPart::Node(consequence.cluster.clone()?, consequence.node.clone()?),
        Common::File => CommonPart::File(Arc::clone(&consequence.labels.first()?.place.source)),
        Common::Place => CommonPart::Place(consequence.labels.first()?.place.clone()),
        Common::Name => CommonPart::Name(consequence.named.clone()?.into()),
    })
}

/// Returns all parts of a cause. A name may be that of its cluster.
fn parts(cause: &Finding) -> impl Iterator<Item = CommonPart> {
    let all =
        [Common::Run, Common::Cluster, Common::Node, Common::File, Common::Place, Common::Name];
    let parts = all.into_iter().filter_map(|it| part(cause, it));
    parts.chain(cause.cluster.clone().map(CommonPart::Name))
}
