//! Words for a rendered tree that is not what a render would write.

use std::collections::BTreeSet;

use crate::diagnostic::{Severity, bare};
use crate::packet::rule::NO_ROUTE;
use crate::proof::rule::OUTDATED_TREE;
use crate::rules::{Finding, Rule};
use crate::text::{count, list, listed, shell_word};

/// A rendered tree in which files differ from those that `render` would write.
#[derive(Clone, Debug)]
pub struct OutdatedTree {
    /// Its finding.
    pub finding: Finding,
    files: BTreeSet<String>,
    /// The targets of these files.
    targets: BTreeSet<String>,
}

impl OutdatedTree {
    /// Looks at the files of a tree that differ and their targets, given the rules for which `render` would refuse to write
    /// them.
    pub fn new(
        tree: &str,
        files: BTreeSet<String>,
        targets: BTreeSet<String>,
        refused: &BTreeSet<&'static Rule>,
    ) -> Self {
        Self { finding: finding(tree, &files, refused), files, targets }
    }

    /// Gives findings about these files the remedy that lasts: a change by hand would be overwritten.
    pub fn renew(&self, findings: &mut [Finding]) {
        let is_meant = |it: &&mut Finding| {
            // A Peer that is not there has no place. A render that leaves the range out does not correct it.
            let of_target = || {
                let is_left_out = it.cause.is_some();
                let is_of_target = it.cluster.iter().any(|it| self.targets.contains(it));
                it.rule == &NO_ROUTE && is_of_target && !is_left_out
            };
            let first = it.labels.first();
            first.map_or_else(of_target, |label| self.files.contains(&*label.place.source))
        };
        for finding in findings.iter_mut().filter(is_meant) {
            finding.help.clone_from(&self.finding.help);
        }
    }
}

fn finding(tree: &str, files: &BTreeSet<String>, refused: &BTreeSet<&'static Rule>) -> Finding {
    let differ = if files.len() == 1 { "differs" } else { "differ" };
    let what = format!(
        "the rendered tree is not what `render` would write: {} {differ} ({})",
        count(files.len(), "file"),
        listed(files.iter().map(|it| bare(it)))
    );
    if refused.is_empty() {
        return Finding::new(&OUTDATED_TREE, what).help(format!(
            "run `clustermesh diff --against {}` to see what changes, then `clustermesh render`",
            shell_word(tree)
        ));
    }
    let names = list(refused.iter().map(|it| it.name()));
    let finding =
        Finding::new(&OUTDATED_TREE, format!("{what}, and `render` would refuse ({names})"));
    Finding {
        severity: Severity::Error,
        ..finding
            .help("correct the errors of `clustermesh validate`, then run `clustermesh render`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::proof::rule::UNPROVED_CLUSTER;

    #[test]
    fn only_what_a_render_mends_gets_its_remedy() {
        let path = "rendered/west/prod--east.yaml";
        let set = |it: &str| BTreeSet::from([it.to_owned()]);
        let tree = OutdatedTree::new("rendered", set(path), set("west"), &BTreeSet::new());
        let found = |rule, cluster: &str| {
            let finding = Finding::on_named(rule, cluster, String::new());
            finding.help("another")
        };
        let at = |path: &str| Place::document(&path.into(), 0);
        let mut findings = [
            found(&NO_ROUTE, "west"),
            found(&NO_ROUTE, "north"),
            found(&UNPROVED_CLUSTER, "west"),
            found(&NO_ROUTE, "north").at(at(path), ""),
            found(&NO_ROUTE, "west").at(at("snapshots/west.json"), ""),
        ];
        tree.renew(&mut findings);
        let helps = findings.map(|it| it.help.unwrap());
        let render = "run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`";
        assert_eq!(helps, [render, "another", "another", render, "another"]);
    }
}
