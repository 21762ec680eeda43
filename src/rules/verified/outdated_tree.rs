//! Words for a rendered tree that is not what a render would write.

use std::collections::BTreeSet;

use crate::diagnostic::{Severity, bare};
use crate::proof::rule::OUTDATED_TREE;
use crate::rules::{Finding, Rule};
use crate::text::{count, list, listed};

/// Returns the finding about a tree in which files differ from those that `render` would write, given the
/// rules for which it would refuse to write them.
pub fn outdated_tree(files: &BTreeSet<String>, refused: &BTreeSet<&'static Rule>) -> Finding {
    let differ = if files.len() == 1 {
        "differs"
    } else {
        "differ"
    };
    let what = format!(
        "the rendered tree is not what `render` would write: {} {differ} ({})",
        count(files.len(), "file"),
        listed(files.iter().map(|it| bare(it)))
    );
    if refused.is_empty() {
        return Finding::new(&OUTDATED_TREE, what).help("run `clustermesh render`");
    }
    let names = list(refused.iter().map(|it| it.name));
    let finding = Finding::new(
        &OUTDATED_TREE,
        format!("{what}, and `render` would refuse ({names})"),
    );
    Finding {
        severity: Severity::Error,
        ..finding
            .help("correct the errors of `clustermesh validate`, then run `clustermesh render`")
    }
}
