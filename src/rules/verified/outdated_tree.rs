//! Words for a rendered tree that is not what a render would write.

use std::collections::BTreeSet;

use crate::diagnostic::{Quoted, Severity, bare};
use crate::proof::rule::OUTDATED_TREE;
use crate::rules::gitops::{BLOCKED_FILE, UNREADABLE_MANIFEST};
use crate::rules::{Finding, Rule};
use crate::text::{NAMED, count, list, listed, shell_word};

/// A rendered tree in which files differ from those that `render` would write.
#[derive(Clone, Debug)]
pub struct OutdatedTree {
    /// Its finding.
    pub finding: Finding,
    files: BTreeSet<String>,
    /// The files of others in it, which `render` does not touch.
    foreign: BTreeSet<String>,
}

/// The rules for which a render should wait.
#[derive(Clone, Debug, Default)]
pub struct RenderDoubts {
    /// Those for which `render` would refuse.
    pub refused: BTreeSet<&'static Rule>,
    /// Those of which it would only warn.
    pub doubts: BTreeSet<&'static Rule>,
}

impl OutdatedTree {
    /// Looks at the files of a tree that differ, those of them that `render` does not overwrite, and the rules for which a
    /// render should wait.
    pub fn new(
        tree: &str,
        files: BTreeSet<String>,
        blocked: &BTreeSet<String>,
        reasons: &RenderDoubts,
    ) -> Self {
        let foreign = BTreeSet::new();
        Self { finding: finding(tree, &files, blocked, reasons), files, foreign }
    }

    /// Sets the files of others in it.
    #[must_use]
    pub fn beside(self, foreign: BTreeSet<String>) -> Self {
        Self { foreign, ..self }
    }

    /// Makes findings about the Peers of the tree its consequences, except for those that there also are with the Peers that
    /// `render` would write. A change by hand would be overwritten, so all get its remedy.
    pub fn explain(&mut self, findings: &mut [Finding], lasting: &[Finding]) {
        let kind = |it: &Finding| {
            let place = it.labels.first().map(|it| &it.place);
            let place = place.filter(|it| !self.files.contains(&*it.source));
            (it.as_cause(), it.named.clone(), place.cloned())
        };
        let lasting: BTreeSet<_> = lasting.iter().map(kind).collect();
        let is_foreign = |it: &Finding| {
            let mut labels = it.labels.iter();
            labels.any(|label| self.foreign.contains(&*label.place.source))
        };
        let mut of_tree: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|it| !lasting.contains(&kind(it)) && !is_foreign(it))
            .collect();
        let unread = of_tree.iter().filter(|it| it.rule == &UNREADABLE_MANIFEST);
        let unread = unread.filter_map(|it| Some(it.labels.first()?.place.source.to_string()));
        // Of a tree that differs only because its files cannot be read, that is the cause.
        let are_unread = unread.collect::<BTreeSet<_>>() == self.files;
        for finding in &mut of_tree {
            finding.help.clone_from(&self.finding.help);
            if are_unread && finding.rule == &UNREADABLE_MANIFEST {
                self.finding.cause = Some(finding.as_cause());
            } else {
                // It may follow from another one, which follows from the tree.
                finding.cause.get_or_insert_with(|| self.finding.as_cause());
            }
        }
    }
}

fn finding(
    tree: &str,
    files: &BTreeSet<String>,
    blocked: &BTreeSet<String>,
    RenderDoubts { refused, doubts }: &RenderDoubts,
) -> Finding {
    let differ = if files.len() == 1 { "differs" } else { "differ" };
    let what = format!(
        "the rendered tree is not what `render` would write: {} {differ} ({})",
        count(files.len(), "file"),
        listed(files.iter().map(|it| bare(it)))
    );
    if refused.is_empty() && !doubts.is_empty() {
        return Finding::new(&OUTDATED_TREE, what).help(format!(
            "look first at what `clustermesh validate` reports ({}); then run `clustermesh diff --against {}` to see what \
             changes, and `clustermesh render`",
            listed(doubts.iter().map(|it| it.name())),
            shell_word(tree)
        ));
    }
    if refused.is_empty() {
        return Finding::new(&OUTDATED_TREE, what).help(format!(
            "run `clustermesh diff --against {}` to see what changes, then `clustermesh render`",
            shell_word(tree)
        ));
    }
    let names = list(refused.iter().map(|it| it.name()));
    let finding =
        Finding::new(&OUTDATED_TREE, format!("{what}, and `render` would refuse ({names})"));
    let is_only_blocked = refused.iter().all(|it| **it == BLOCKED_FILE);
    let correct = if is_only_blocked && blocked.len() <= NAMED {
        format!("delete {}", list(blocked.iter().map(|it| Quoted(it).to_string())))
    } else {
        "correct the errors of `clustermesh validate`".to_owned()
    };
    let help = format!("{correct}, then run `clustermesh render`");
    Finding { severity: Severity::Error, ..finding.help(help) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::rule::NO_ROUTE;
    use crate::place::Place;

    #[test]
    fn only_what_a_render_mends_follows_from_the_tree() {
        let path = "rendered/west/prod--east.yaml";
        let set = |it: &str| BTreeSet::from([it.to_owned()]);
        let nothing = BTreeSet::new();
        let mut tree = OutdatedTree::new("rendered", set(path), &nothing, &RenderDoubts::default());
        let at = |cluster: &str, path: &str| {
            let finding = Finding::on_named(&NO_ROUTE, cluster, String::new()).help("another");
            finding.at(Place::document(&path.into(), 0), "")
        };
        let lasting = [at("north", path), at("west", "snapshots/west.json")];
        let mut findings = [at("north", path), at("west", path), at("west", "snapshots/west.json")];
        tree.explain(&mut findings, &lasting);
        let render = "run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`";
        let found = findings.map(|it| (it.help.unwrap(), it.cause.is_some()));
        let expected = [("another", false), (render, true), ("another", false)];
        assert_eq!(found, expected.map(|(help, is_caused)| (help.to_owned(), is_caused)));
    }
}
