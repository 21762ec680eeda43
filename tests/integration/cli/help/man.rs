//! `man`: a manual page for the program and for each of its commands.

use std::process::{Command, Stdio};

use crate::cli::Folder;
use crate::support::assert_contains;

fn page(arguments: &[&str]) -> String {
    let run = Folder::empty().run(&[&["man"], arguments].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    run.stdout
}

/// The commands as the program lists them.
fn commands() -> Vec<String> {
    let help = Folder::empty().run(&["-h"]).stdout;
    let (listed, _) = help.split_once("Options:\n").unwrap();
    let lines = listed.lines().filter(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// A page as a terminal shows it, if there is what it takes.
fn rendered(page: &str) -> Option<String> {
    let folder = Folder::empty();
    folder.write("page.1", page);
    let mut command = Command::new("groff");
    let command = command.args(["-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u"]);
    let output = command.arg(folder.path("page.1")).stdin(Stdio::null()).output().ok()?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn has_a_page_for_every_command() {
    assert!(2 < commands().len());
    for command in commands() {
        let page = page(&[&command]);
        assert_contains(&page, &format!(".TH clustermesh-{command} 1 "));
        for part in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLES"] {
            assert!(page.contains(part), "no {part} in {page}");
        }
        if let Some(text) = rendered(&page) {
            assert_contains(&text, &format!("clustermesh {command}"));
        }
    }
}

#[test]
fn names_all_pages_on_the_first() {
    let page = page(&[]);
    assert_contains(&page, ".TH clustermesh 1 ");
    for command in commands() {
        assert_contains(&page, &format!("clustermesh\\-{command}(1)"));
    }
    assert!(!page.contains("clustermesh\\-help"), "{page}");
}

#[test]
fn keeps_examples_as_they_are() {
    let Some(text) = rendered(&page(&["render"])) else {
        return;
    };
    let help = Folder::empty().run(&["render", "-h"]).stdout;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    for line in examples.lines() {
        assert!(text.contains(line), "no {line} in {text}");
    }
}

#[test]
fn says_the_same_everywhere() {
    let folder = Folder::empty();
    let variables = [("CLUSTERMESH_MESHES", "\u{1b}x"), ("COLUMNS", "40")];
    let run = folder.run_with(&variables, &["man", "render"]);
    assert_eq!(run.stdout, page(&["render"]));
}

#[test]
fn wants_a_command_that_is_there() {
    let run = Folder::empty().run(&["man", "redner"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    #[cfg(feature = "snapshot")]
    insta::assert_snapshot!(run.stderr, @"
    error: invalid value 'redner' for '[COMMAND]'
      [possible values: init, snapshot, render, template, argocd, validate, verify, outage, diff, trace, graph, capacity, report, status, guard, rbac, dns, wireguard, firewall, annotate, explain, schema, config, completions, man]

      tip: a similar value exists: 'render'

    For more information, try '--help'.
    ");
}
