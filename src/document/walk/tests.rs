use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::tests::report;
use crate::document::{Form, Source};
use crate::place::Place;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its debug form is looked at")]
struct Zoo {
    name: String,
    keeper: Option<Zookeeper>,
    #[schemars(length(min = 1, max = 2))]
    animals: Vec<Animal>,
    #[schemars(range(min = 1))]
    cages: Option<u16>,
    open: Option<bool>,
    #[schemars(extend("format" = "date"))]
    since: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[schemars(with = "Option<serde_json::Value>")]
    status: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its debug form is looked at")]
struct Zookeeper {
    #[schemars(length(min = 1))]
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Animal {
    /// Roars.
    Lion,
    /// Doesn't.
    Zebra,
}

fn read(text: &str) -> String {
    let source = Source::parse("zoo.yaml", text).unwrap();
    let place = Place::document(&source.name, 0);
    match Form::<Zoo>::new().read(&source.documents[0], &place) {
        Ok(zoo) => format!("{zoo:?}"),
        Err(mistakes) => report(&source, mistakes.listed()),
    }
}

#[test]
fn reads_what_fits() {
    insta::assert_snapshot!(read("
name: '007'
keeper: { name: \"no\" }
animals: [Lion, Zebra]
cages: 12
open: true
labels: { a: b, 'on': '' }
status: [{ what: !!str ever }]
"), @r#"Zoo { name: "007", keeper: Some(Zookeeper { name: "no" }), animals: [Lion, Zebra], cages: Some(12), open: Some(true), since: None, labels: {"a": "b", "on": ""}, status: None }"#);
}

#[test]
fn a_field_without_its_value_is_a_mistake_unless_its_own_fields_are_all_that_can_be_absent() {
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\nkeeper:\nstatus: null\n"), @r#"Zoo { name: "x", keeper: None, animals: [Lion], cages: None, open: None, since: None, labels: {}, status: None }"#);
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: ~\nlabels: null\n"), @"
        error[missing-field]: `cages` is empty
          3:1 | cages
          help: write a value, or remove the line
        error[missing-field]: `labels` is empty
          4:1 | labels
          help: write a value, or remove the line
        ");
    insta::assert_snapshot!(read("name:\nanimals: [~]\n"), @"
        error[missing-field]: `name` is empty
          1:1 | name
          help: write a value for `name`, or its fields below it
        error[invalid-value]: an item of `animals` cannot be `~`
          2:11 | ~
          help: allowed here: `Lion`, `Zebra`
        ");
}

#[test]
fn a_date_needs_no_quotes() {
    for text in ["2026-11-20", "'2026-11-20'", "\"2026-11-20\""] {
        let report = read(&format!("name: x\nanimals: [Lion]\nsince: {text}\n"));
        assert!(report.contains("since: Some(\"2026-11-20\")"), "{report}");
    }
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\nsince: [2026-11-20]\n"), @"
        error[invalid-type]: `since` must be a date, not a list
          3:8 | [2026-11-20]
        ");
}

#[test]
fn tells_all_problems_at_once() {
    insta::assert_snapshot!(read("
nmae: x
Animals: [Lion]
animals: [Loin, cow, [Lion], Zebra]
keeper: { name: '' }
cages: 0
open: yes
labels: { on: x, k: 1.20, 2026-11-20: y }
opening: 10
"), @r#"
error[unknown-field]: unknown field `nmae`
  2:1 | nmae
  help: did you mean `name`?
error[unknown-field]: unknown field `Animals`
  3:1 | Animals
  help: did you mean `animals`?
error[invalid-value]: `animals` needs at most 2 items, not 4
  4:10 | [Loin, cow, [Lion], Zebra]
error[invalid-value]: an item of `animals` cannot be `Loin`
  4:11 | Loin
  help: did you mean `Lion`?
error[invalid-value]: an item of `animals` cannot be `cow`
  4:17 | cow
  help: allowed here: `Lion`, `Zebra`
error[invalid-type]: an item of `animals` must be a string, not a list
  4:22 | [Lion]
  help: write `Lion` without brackets
error[invalid-value]: `name` must not be empty
  5:17 | ''
error[invalid-value]: `cages` must be from 1 to 65535, not `0`
  6:8 | 0
  help: write a number from 1 to 65535
error[invalid-type]: `open` must be `true` or `false`, not `yes`
  7:7 | yes
error[invalid-type]: a key must be a string, but YAML reads `on` as a boolean
  8:11 | on
  help: add quotes: `"on"`
error[invalid-type]: `k` must be a string, but YAML reads `1.20` as a number
  8:21 | 1.20
  help: add quotes: `"1.20"`
error[invalid-type]: a key must be a string, but YAML reads `2026-11-20` as a date
  8:27 | 2026-11-20
  help: add quotes: `"2026-11-20"`
error[unknown-field]: unknown field `opening`
  9:1 | opening
  help: allowed here: `animals`, `cages`, `keeper`, `labels`, `name`, `open`, `since`
"#);
}

#[test]
fn numbers_are_plain_decimals() {
    for text in ["0x10", "1_000", "+5", "010", "1e3", "5.0", "1:30"] {
        let report = read(&format!("name: x\nanimals: [Lion]\ncages: {text}\n"));
        assert!(report.contains("`cages` must be an integer in decimal digits"), "{report}");
    }
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: '5'\n"), @"
        error[invalid-type]: `cages` must be an integer, not the string `5`
          3:8 | '5'
          help: remove the quotes
        ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: -1\n"), @"
        error[invalid-value]: `cages` must be from 1 to 65535, not `-1`
          3:8 | -1
          help: write a number from 1 to 65535
        ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: 99999999999999999999\n"), @"
        error[invalid-value]: `cages` must be from 1 to 65535, not `99999999999999999999`
          3:8 | 99999999999999999999
          help: write a number from 1 to 65535
        ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: many\n"), @"
        error[invalid-type]: `cages` must be an integer, not the string `many`
          3:8 | many
        ");
}

#[test]
fn a_list_for_one_value_is_unwrapped_or_belongs_to_the_plural() {
    insta::assert_snapshot!(read("name: x\nanimals: []\nkeeper: { name: [bob] }\n"), @"
        error[invalid-value]: `animals` needs at least 1 item, not 0
          2:10 | []
        error[invalid-type]: `name` must be a string, not a list
          3:17 | [bob]
          help: write `bob` without brackets
        ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\nkeeper: { name: [bob, eve] }\n"), @"
        error[invalid-type]: `name` must be a string, not a list
          3:17 | [bob, eve]
        ");
}

#[test]
fn items_need_a_space_after_the_dash() {
    insta::assert_snapshot!(read("name: x\nanimals:\n  -Lion\n  -Zebra\n"), @"
        error[invalid-type]: `animals` must be a list, not the string `-Lion -Zebra`
          3:3 | -Lion
          -Zebra
          help: write each item in a line of its own after a dash and a space, as in `- Lion`
        ");
}

#[test]
fn the_wrong_kind_of_value_is_reported_as_such() {
    insta::assert_snapshot!(read("name: [x]\nanimals: Lion\nkeeper: bob\nopen: {}\n"), @"
        error[invalid-type]: `name` must be a string, not a list
          1:7 | [x]
          help: write `x` without brackets
        error[invalid-type]: `animals` must be a list, not the string `Lion`
          2:10 | Lion
          help: write a list with one item as `[Lion]`
        error[invalid-type]: `keeper` must be a mapping, not the string `bob`
          3:9 | bob
          help: write a mapping; its only field is `name`
        error[invalid-type]: `open` must be `true` or `false`, not a mapping
          4:7 | {}
        ");
    insta::assert_snapshot!(read("- x\n"), @r"
        error[invalid-type]: the document must be a mapping, not a list
          1:1 | - x
          help: write a mapping; its fields are `animals`, `cages`, `keeper`, `labels`, `name`, `open`, `since`
        ");
}

#[test]
fn foreign_text_is_quoted() {
    insta::assert_snapshot!(read("name: x\nanimals: [\"\\e[31m\"]\n\"k\\u202e\": 1\n"), @r#"
        error[invalid-value]: an item of `animals` cannot be `\u{1b}[31m`
          2:11 | "\e[31m"
          help: allowed here: `Lion`, `Zebra`
        error[unknown-field]: unknown field `k\u{202e}`
          3:1 | "k\u202e"
          help: allowed here: `animals`, `cages`, `keeper`, `labels`, `name`, `open`, `since`
        "#);
}

/// A correction is written as it is, so it must be one.
#[test]
fn only_what_is_exact_is_proposed() {
    let proposed = |text: &str| read(text).matches("help: ").count();
    assert_eq!(proposed("name: x\nanimals: Lion\n"), 1);
    assert_eq!(proposed("name: x\nanimals: 'Lion, Zebra'\n"), 0);
    assert_eq!(proposed("name: x\nanimals: 'Lion]'\n"), 0);
    assert_eq!(proposed("name: x\nanimals: 'Lion:'\n"), 0);
    assert_eq!(proposed("name: x\nanimals: [Lion]\ncages: '5'\n"), 1);
    assert_eq!(proposed("name: x\nanimals: [Lion]\ncages: 'a: b'\n"), 0);
    assert_eq!(proposed("name: x\nanimals: [Lion]\ncages: ''\n"), 0);
}

#[test]
fn a_comment_needs_a_space_before_it() {
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\ncages: 12# of them\n"), @"
    error[invalid-value]: `12# of them` has no space before `#`
      3:8 | 12# of them
      help: write a space before `#`, and no quotes around the comment
    ");
    insta::assert_snapshot!(read("name: x\nanimals:\n  - Lion# king: true\n"), @"
    error[invalid-value]: an item of `animals` has no space before `#`
      3:5 | Lion# king: true
      help: write a space before `#`, and no quotes around the comment
    ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lion]\nopen: true#\n"), @"
    error[invalid-value]: `true#` has no space before `#`
      3:7 | true#
      help: write a space before `#`, and no quotes around the comment
    ");
    insta::assert_snapshot!(read("name: x\nanimals: [Lyon# France]\n"), @"
    error[invalid-value]: an item of `animals` cannot be `Lyon# France`
      2:11 | Lyon# France
      help: allowed here: `Lion`, `Zebra`
    ");
}
