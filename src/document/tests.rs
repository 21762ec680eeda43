use std::fmt::Write as _;

use proptest::prelude::*;

use super::position::position;
use super::*;

/// Returns diagnostics as text, each label with its position and the text there.
pub(crate) fn report(source: &Source, diagnostics: &[Finding]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let spans: Vec<_> =
            diagnostic.labels.iter().map(|label| source.locate(&label.place).unwrap()).collect();
        tell(&mut text, &source.text, diagnostic, &spans);
    }
    text
}

fn tell(out: &mut String, text: &str, diagnostic: &Finding, spans: &[Range<usize>]) {
    let Finding { rule, severity, message, labels, help, .. } = diagnostic;
    writeln!(out, "{severity}[{}]: {message}", rule.name()).unwrap();
    assert_eq!(labels.len(), spans.len());
    for (label, span) in labels.iter().zip(spans) {
        let Position { line, column } = position(text, span.start);
        let excerpt = &text[span.clone()];
        let line = format!("  {line}:{column} | {excerpt} | {}", label.text);
        writeln!(out, "{}", line.trim_end_matches([' ', '|'])).unwrap();
    }
    if let Some(help) = help {
        writeln!(out, "  help: {help}").unwrap();
    }
}

fn errors(text: &str) -> String {
    let Broken { source, problems } = *Source::parse("f.yaml", text).unwrap_err();
    report(&source, &problems)
}

fn located(text: &str, pointer: &[&str], part: Part) -> String {
    let source = Source::parse("f.yaml", text).unwrap();
    let mut place = Place::document(&source.name, 0);
    for step in pointer {
        place = place.key(step);
    }
    place.part = part;
    let span = source.locate(&place).unwrap();
    let Position { line, column } = source.position(span.start);
    format!("{line}:{column} {}", &text[span])
}

#[test]
fn locates_keys_and_values() {
    let text = "a:\n  - x: 'q'\n    \"y z\":  # why\n      - 1\n      - 2\n  -\nb: {c: d}\n";
    let at = |pointer: &[&str]| located(text, pointer, Part::Value);
    assert_eq!(at(&["a", "0", "x"]), "2:8 'q'");
    assert_eq!(at(&["a", "0", "y z"]), "4:7 - 1");
    assert_eq!(at(&["a", "0", "y z", "1"]), "5:9 2");
    assert_eq!(at(&["a", "0"]), "2:5 x: 'q'");
    assert_eq!(at(&["b"]), "7:4 {c: d}");
    assert_eq!(at(&[]), "1:1 a:");
    let key = |pointer: &[&str]| located(text, pointer, Part::Key);
    assert_eq!(key(&["a", "0", "y z"]), "3:5 \"y z\"");
    assert_eq!(key(&["b", "c"]), "7:5 c");
}

#[test]
fn locates_what_is_around_a_missing_value() {
    let text = "metadata:\n  namespace: x\nspec:\n";
    let at = |pointer: &[&str]| located(text, pointer, Part::Value);
    assert_eq!(at(&["metadata", "name"]), "1:1 metadata");
    assert_eq!(at(&["spec"]), "3:1 spec");
    assert_eq!(at(&["nowhere", "at", "all"]), "1:1 metadata:");
}

#[test]
fn locates_in_a_text_that_is_read_later() {
    let text = "a: 1\n---\nb: [2, 3]\n";
    let place = Place::document(&"f.yaml".into(), 1).key("b").index(1);
    for (source, found) in [
        (Source::later("f.yaml", text), Some("3")),
        (Source::later("f.yaml", "a: 1\n---\nb: ["), Some("")),
    ] {
        assert!(source.documents.is_empty());
        let span = source.locate(&place);
        assert_eq!(span.and_then(|it| source.text.get(it)), found);
    }
}

#[test]
fn locates_the_alias_and_not_what_it_stands_for() {
    let text = "a: &list [x, y]\nb: *list\n";
    let at = |pointer: &[&str]| located(text, pointer, Part::Value);
    assert_eq!(at(&["a", "1"]), "1:14 y");
    assert_eq!(at(&["b", "1"]), "2:4 *list");
}

#[test]
fn counts_characters_and_all_kinds_of_lines() {
    let text = "\u{feff}ä: 'ö'\r\nb: 'ü' # é\rc: [ß, d]\n";
    let at = |pointer: &[&str]| located(text, pointer, Part::Value);
    assert_eq!(at(&["ä"]), "1:4 'ö'");
    assert_eq!(at(&["b"]), "2:4 'ü'");
    assert_eq!(at(&["c", "1"]), "3:8 d");
}

#[test]
fn knows_its_own_documents_only() {
    let source = Source::parse("f.yaml", "a: 1\n---\n---\nb: 2\n").unwrap();
    assert_eq!(source.documents.len(), 3);
    let b = Place::document(&source.name, 2).key("b");
    assert_eq!(source.locate(&b), Some(16..17));
    assert_eq!(source.locate(&Place::document(&source.name, 3)), None);
    assert_eq!(source.locate(&Place::document(&"g.yaml".into(), 0)), None);
}

#[test]
fn a_text_of_nothing_has_no_documents() {
    for text in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        assert_eq!(Source::parse("f.yaml", text).unwrap().documents, []);
    }
}

#[test]
fn reads_json() {
    let text = "{\"a\": [\"x\\u00e9\\/\", true],\n\t\"b\":null}";
    let source = Source::parse("f.json", text).unwrap();
    let root = &source.documents[0];
    let item = root.get("a").and_then(|list| list.child("0")).unwrap().0;
    assert_eq!(item.text(), Some("xé/"));
    assert!(root.get("b").unwrap().is_null());
}

#[test]
fn tells_everything_that_keeps_a_tree_from_growing() {
    insta::assert_snapshot!(errors("a: 1\nb: !secret x\n<<: {c: d}\n? [k]\n: v\na: 2\ne: !!str 5\n---\nx: {y: 1, y: 2}\n"), @"
        error[syntax-error]: the tag `!secret` is not supported
          2:4 | !secret
          help: remove the tag, and put the value in quotes if it is a string
        error[syntax-error]: merge keys (`<<`) are not supported
          3:1 | <<
          help: write the fields out, or use an alias for each value
        error[syntax-error]: a key must be a plain string
          4:3 | [k]
        error[duplicate-item]: duplicate key `a`
          6:1 | a | second here
          1:1 | a | first here
        error[duplicate-item]: duplicate key `y`
          9:11 | y | second here
          9:5 | y | first here
        ");
}

#[test]
fn tells_where_the_syntax_breaks() {
    insta::assert_snapshot!(errors("a: b\n c: d\n"), @"
        error[syntax-error]: not valid YAML: the indentation of `c` (1 space) matches no key above it
          2:2 | c
          help: indent it by 0 spaces, like `a` in line 1; or restore the line that was deleted above it
        ");
    insta::assert_snapshot!(errors("a: [b\n"), @"
        error[syntax-error]: not valid YAML: `[` is never closed
          1:4 | [
        ");
    insta::assert_snapshot!(errors("a: *nowhere\n"), @"
        error[syntax-error]: not valid YAML: this alias (`*name`) has no anchor (`&name`) before it
          1:4 | *
        ");
    insta::assert_snapshot!(errors("a:\n\t- b\n"), @"
        error[syntax-error]: a tab is used for indentation, but YAML allows only spaces
          2:1 | 	
          help: replace the tab with spaces
        ");
}

#[test]
fn a_slip_is_marked_where_it_is() {
    insta::assert_snapshot!(errors("a: x\nb:10.6.0.0/16\nc: d\n"), @"
        error[syntax-error]: not valid YAML: a space is missing after `:`
          2:3 | 1
          help: write a space here
        ");
    insta::assert_snapshot!(errors("a: x\nb:\u{a0}10.6.0.0/16\nc: d\n"), @"
        error[syntax-error]: not valid YAML: after `:` comes U+00A0 instead of a space
          2:3 |  
          help: replace this character by a space
        ");
    insta::assert_snapshot!(errors("a:\n  b: \"west # d\n  c: e\n"), @r#"
        error[syntax-error]: not valid YAML: a quote is not closed in its line
          2:6 | "
          help: close the quote, or remove it
        "#);
    insta::assert_snapshot!(errors("a: {{ target.name }}.yaml\nb: c\n"), @"
        error[syntax-error]: a value that begins with `{{` needs quotes
          1:4 | {{
          help: put the whole value in single quotes
        ");
    insta::assert_snapshot!(errors("l:\n  - name: a\n    b: c\n  name: d\n    b: e\n"), @"
        error[syntax-error]: not valid YAML: the indentation of `name` (2 spaces) matches no key above it
          4:3 | name
          help: write `- ` before `name` to begin an item, as in line 2
        ");
    insta::assert_snapshot!(errors("l:\n    - name: a\n      b: c\n  - name: d\n    b: e\n"), @"
    error[syntax-error]: not valid YAML: the indentation of this list item (2 spaces) matches no list above it
      4:3 | -
      help: indent it by 4 spaces, like the list item in line 2
    ");
    insta::assert_snapshot!(errors("l:\n  - name: a\n    b: c\n  west:\n    b: e\n"), @"
        error[syntax-error]: not valid YAML: the indentation of `west` (2 spaces) matches no key above it
          4:3 | west
          help: indent it by 4 spaces, like `b` in line 3, or by 0 spaces, like `l` in line 1; or write `- ` before it to begin an item, as in line 2
        ");
    insta::assert_snapshot!(errors("kind: x\n  name: y\nspec: z\n"), @"
        error[syntax-error]: not valid YAML: the indentation of `name` (2 spaces) matches no key above it
          2:3 | name
          help: indent it by 0 spaces, like `kind` in line 1; or restore the line that was deleted above it
        ");
}

#[test]
fn a_tab_is_reported_in_its_own_line() {
    for (text, line) in [
        ("a:\n  b: 1\n\tc: 2\n", 3),
        ("a:\n\tb: 1\n", 2),
        ("a:\n  - x\n\n\t- y\n", 4),
        ("a:\n  - name: x\n  \tpod: [a]\n", 3),
        ("a: \"x\n\ty\"\n", 2),
        ("a:\n  b: |\n\tx\n", 3),
    ] {
        let report = errors(text);
        let start = "error[syntax-error]: a tab is used for indentation";
        assert!(report.starts_with(start), "{report}");
        assert!(report.contains(&format!("\n  {line}:")), "{report}");
    }
}

/// Words of the YAML specification, which users need not know.
const JARGON: [&str; 8] =
    ["scalar", "flow", "block", "token", "indicator", "node", "context", "EOF"];

#[test]
fn a_tab_behind_a_carriage_return_is_found() {
    check_text("b: |\n&x b: \r\t\u{fc}");
}

#[test]
fn syntax_errors_are_plain_sentences() {
    for text in [
        "a: b\n c: d\n",
        "a: [b\n",
        "a: [b}\n",
        "a: *x\n",
        "a: 'b\n",
        "a: 'b' c\n",
        "a: \"\\q\"\n",
        "a: @b\n",
        "a: `b\n",
        "- a\nb: c\n",
        "a: 1\nb\n",
        "a: {b: c\n",
        "a: {b c: d, e\n",
        "a: &\n",
        "%X\n",
        "a: |x\n  b\n",
        "a: - b\n",
        "]\n",
        "a:\n - b\n  - c\n d: e\n",
        "a: b: c\n",
        "? a\n: b: c\n d\n",
    ] {
        let report = errors(text);
        assert!(report.contains("[syntax-error]: not valid YAML: "), "{text:?}: {report}");
        let (message, _) = report.split_once('\n').unwrap();
        assert!(!JARGON.iter().any(|word| message.contains(word)), "{text:?}: {report}");
    }
}

#[test]
fn characters_like_dashes_and_spaces_are_named() {
    insta::assert_snapshot!(errors("a:\n  - b: 1\n    c: 2\n  \u{2013} b: 3\n    c: 4\n"), @"
    error[syntax-error]: not valid YAML: the line begins with U+2013
      4:3 | –
      help: replace this character by `-`
    ");
    insta::assert_snapshot!(errors("a:\n  \u{2022} b: 1\n    c: 2\n"), @"
    error[syntax-error]: not valid YAML: the line begins with U+2022
      2:3 | •
      help: replace this character by `-`
    ");
    insta::assert_snapshot!(errors("a:\n  b: 1\n \u{a0}c: 2\n"), @"
    error[syntax-error]: not valid YAML: the line begins with U+00A0
      3:2 |  
      help: replace this character by a space
    ");
    insta::assert_snapshot!(errors("a: 1\nb\u{ff1a}2\nc: 3\n"), @"
    error[syntax-error]: not valid YAML: after the key comes U+FF1A instead of `:`
      2:2 | ：
      help: replace this character by `:` and a space
    ");
    insta::assert_snapshot!(errors("a: 10.43.0.0/16# k3s: x\n"), @"
    error[syntax-error]: not valid YAML: a space is missing before `#`
      1:16 | #
      help: write a space here
    ");
    insta::assert_snapshot!(errors("a: 'x'# k3s: x\n"), @"
    error[syntax-error]: not valid YAML: a comment needs a space before `#`
      1:7 | #
      help: write a space here
    ");
}

#[test]
fn stays_within_bounds() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    let wide = "- x\n".repeat(250_001);
    let many = "---\na\n".repeat(1025);
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..9 {
        let alias = format!("*a{}, ", i - 1).repeat(10);
        writeln!(laughs, "a{i}: &a{i} [{alias}]").unwrap();
    }
    for text in [&deep, &wide, &many, &laughs, "a: &a [*a]"] {
        let found = Source::parse("f.yaml", text).unwrap_err().problems;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule.name(), "too-large");
    }
    assert!(Source::parse("f.yaml", "[".repeat(64) + &"]".repeat(64)).is_ok());
    assert!(Source::parse("f.yaml", " ".repeat((8 << 20) + 1)).is_err());
}

/// Checks that every span of a tree is a piece of the text.
fn check(text: &str, node: &TreeNode) {
    assert!(text.get(node.span.clone()).is_some(), "{:?}", node.span);
    match &node.value {
        TreeValue::Scalar(_) => {}
        TreeValue::Sequence(items) => items.iter().for_each(|item| check(text, item)),
        TreeValue::Mapping(entries) => {
            for entry in entries.iter() {
                assert!(text.get(entry.key.span.clone()).is_some());
                check(text, &entry.value);
            }
        }
    }
}

fn check_text(text: &str) {
    match Source::parse("f.yaml", text) {
        Ok(source) => {
            for (index, node) in source.documents.iter().enumerate() {
                check(text, node);
                let span = source.locate(&Place::document(&source.name, index)).unwrap();
                assert!(text.get(span).is_some());
            }
        }
        Err(broken) => {
            let Broken { source, problems } = *broken;
            for label in problems.iter().flat_map(|it| &it.labels) {
                let span = source.locate(&label.place).unwrap();
                assert!(text.get(span.clone()).is_some(), "{span:?}");
                position(text, span.start);
            }
        }
    }
}

const PIECES: &[&str] = &[
    "a",
    "b: ",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\r\n",
    "\r",
    "\t",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "&x ",
    "*x",
    "!!str ",
    "!t ",
    "? ",
    "<<",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "\\",
    "#",
    " # c",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "~",
    "null",
    "ü",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "\u{0}",
    "😀",
    " ",
];

proptest! {
    #[test]
    fn no_text_makes_it_panic(text: String) {
        check_text(&text);
    }

    #[test]
    fn no_mixture_of_yaml_makes_it_panic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)
    ) {
        check_text(&pieces.concat());
    }
}
