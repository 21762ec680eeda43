//! `explain`: the documentation of rules in the terminal.

use clustermesh::rules;

use crate::cli::Folder;

fn explained(arguments: &[&str]) -> String {
    let run = Folder::empty().run(&[&["explain"], arguments].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

#[test]
fn lists_every_rule_with_a_sentence() {
    let list = explained(&[]);
    for rule in rules::all() {
        let line = list
            .lines()
            .find(|line| line.trim_start().starts_with(rule.name));
        let line = line.unwrap_or_else(|| panic!("no {}", rule.name));
        assert!(line.ends_with('.'), "{line}");
    }
}

#[test]
fn shows_a_page() {
    let page = explained(&["stale-node"]);
    assert!(
        page.starts_with("# stale-node\n\n*notice*\n\n## What it finds\n"),
        "{page}"
    );
    for title in rules::SECTIONS {
        assert!(page.contains(&format!("\n## {title}\n")), "{page}");
    }
}

#[test]
fn knows_the_operator_s_codes() {
    let pages = explained(&["NodeNoPodCIDR"]);
    for name in ["missing-pod-cidr", "invalid-pod-cidr"] {
        assert!(pages.contains(&format!("# {name}\n")), "{pages}");
    }
}

#[test]
fn knows_how_a_trace_ends() {
    assert!(explained(&["stolen-by"]).starts_with("# stolen-by\n\n*error*\n"));
    let page = explained(&["delivered"]);
    assert!(
        page.starts_with("# delivered\n\n## What it means\n"),
        "{page}"
    );
    assert!(explained(&[]).contains("\n  delivered "));
}

#[test]
fn names_the_nearest_of_a_slip() {
    let refused = |name: &str| {
        let run = Folder::empty().run(&["explain", name]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        run.stderr
    };
    insta::assert_snapshot!(refused("missing-endpont"), @"error: unknown rule `missing-endpont`; did you mean `missing-endpoint`?");
    insta::assert_snapshot!(refused("nodenoendpoint"), @"error: unknown rule `nodenoendpoint`; did you mean `NodeNoEndpoint`?");
    insta::assert_snapshot!(refused("\u{1b}[2J"), @r"error: unknown rule `\u{1b}[2J`; `clustermesh explain` lists all rules");
}

#[test]
fn needs_nothing_but_itself() {
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", "broken: [");
    assert_eq!(folder.run(&["explain", "--all"]).code, 0);
}

#[test]
fn knows_earlier_names() {
    let page = explained(&["complex-key"]);
    assert!(
        page.starts_with("# syntax-error\n\n*error; earlier names: `complex-key`, "),
        "{page}"
    );
    assert_eq!(page, explained(&["syntax-error"]));
}
