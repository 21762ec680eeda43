//! `explain`: the documentation of rules in the terminal.

use clustermesh::rules;

use crate::cli::Folder;
use crate::support::assert_contains;

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
            .find(|line| line.split_whitespace().next() == Some(rule.name()))
            .unwrap_or_else(|| panic!("no {}", rule.name()));
        assert!(line.ends_with('.'), "{line}");
        assert_contains(line, &format!(" {} ", rule.severity));
    }
}

#[test]
fn shows_a_page() {
    let page = explained(&["stale-node"]);
    assert!(page.starts_with("# stale-node\n\n*notice*\n\n## What it finds\n"), "{page}");
    for title in ["What it finds", "Why it matters", "Example", "Remedy"] {
        assert_contains(&page, &format!("\n## {title}\n"));
    }
}

#[test]
fn knows_the_operator_s_codes() {
    let pages = explained(&["NodeNoPodCIDR"]);
    for name in ["missing-pod-cidr", "invalid-pod-cidr"] {
        assert_contains(&pages, &format!("# {name}\n"));
    }
}

#[test]
fn knows_how_a_trace_ends() {
    assert!(explained(&["stolen-by"]).starts_with("# stolen-by\n\n*error*\n"));
    let page = explained(&["delivered"]);
    assert!(page.starts_with("# delivered\n\n## What it means\n"), "{page}");
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
    insta::assert_snapshot!(refused("\u{1b}[2J"), @r"error: unknown rule `\u{1b}[2J`; `clustermesh explain` lists all rules");
}

#[test]
fn needs_nothing_but_itself() {
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", "broken: [");
    assert_eq!(folder.run(&["explain", "--all"]).code, 0);
}

#[test]
fn searches_where_no_rule_has_the_name() {
    let found = explained(&["nat"]);
    let names: Vec<&str> =
        found.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"missing-endpoint"), "{found}");
    // In a name first.
    let found = explained(&["ENDPOINT"]);
    let first = found.lines().next().unwrap();
    assert!(first.contains("endpoint"), "{found}");
    assert!(explained(&["nodenoendpoint"]).starts_with("  missing-endpoint "));
    let run = Folder::empty().run(&["explain", "no such text"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn is_formatted_at_a_terminal() {
    let program = assert_cmd::cargo::cargo_bin("clustermesh");
    let run = |line: &str| {
        let line = format!("stty cols 60 rows 24; {} {line}", program.display());
        let mut command = std::process::Command::new("script");
        let output =
            command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        output.stdin(std::process::Stdio::null()).output()
    };
    let Ok(output) = run("explain missing-endpoint") else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("\u{1b}[1mmissing-endpoint\u{1b}[0m"), "{text}");
    assert!(!text.contains("##") && !text.contains("```"), "{text}");
    let output = run("explain --color never missing-endpoint").unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("missing-endpoint\r\n") && !text.contains('\u{1b}'), "{text}");
    let is_prose = |line: &&str| !line.starts_with("    ");
    assert!(text.lines().filter(is_prose).all(|line| line.chars().count() <= 60), "{text}");
    assert!(explained(&["missing-endpoint"]).starts_with("# missing-endpoint\n"));
}

#[test]
fn takes_what_is_copied_from_a_message() {
    let page = explained(&["missing-endpoint"]);
    for copied in [
        "warning[missing-endpoint]",
        "error[missing-endpoint]:",
        "[missing-endpoint]",
        " missing-endpoint: ",
    ] {
        assert_eq!(explained(&[copied]), page, "{copied}");
    }
}
