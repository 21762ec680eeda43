//! Generated templates: loops, captures, macros, recursion and accumulation in any order and depth.

use proptest::prelude::*;

use super::run;
use crate::cli::Folder;

/// Names that hold something: from the context, and from the beginning of each template.
const NAMES: [&str; 10] =
    ["a", "b", "n.x", "n.y", "targets", "clusters", "loop", "caller()", "1", "'x'"];

const FILTERS: [&str; 14] = [
    "upper",
    "list",
    "string",
    "join(a)",
    "length",
    "replace('a', b)",
    "indent(999)",
    "sort",
    "batch(2)",
    "map('upper')",
    "items",
    "unique",
    "default(a)",
    "pprint",
];

/// What stands before each template.
const BEGIN: &str = "{% set a = 'aaaaaaaa' %}{% set b = [a, a] %}{% set n = namespace(x=a, y=b) %}\
                     {% macro m(a, b=1) %}{{ a }}{% endmacro %}";

fn expression() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(&NAMES[..]).prop_map(str::to_owned);
    leaf.prop_recursive(4, 16, 3, |inner| {
        let operator = proptest::sample::select(vec!["~", "+", "*", "==", "in", "and"]);
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("({a} {o} {b})")),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'k': {a}, {b}: 1}}")),
            3 => (inner.clone(), proptest::sample::select(&FILTERS[..]))
                .prop_map(|(a, filter)| format!("({a} | {filter})")),
            1 => inner.clone().prop_map(|a| format!("m({a})")),
            1 => inner.clone().prop_map(|a| format!("loop([{a}])")),
            1 => Just("range(99)".to_owned()),
            1 => inner.clone().prop_map(|a| format!("{a}[0]")),
            1 => inner.prop_map(|a| format!("({a} if a else b)")),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let target = || proptest::sample::select(vec!["a", "b", "n.x", "n.y"]);
    let leaf = prop_oneof![
        1 => Just("- text\n".to_owned()),
        2 => expression().prop_map(|it| format!("{{{{ {it} }}}}\n")),
        5 => (target(), expression()).prop_map(|(to, it)| format!("{{% set {to} = {it} %}}")),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let body = || prop::collection::vec(inner.clone(), 1..4).prop_map(|it| it.concat());
        prop_oneof![
            3 => (expression(), body()).prop_map(|(it, body)| {
                format!("{{% for i in {it} %}}{body}{{% endfor %}}")
            }),
            2 => body().prop_map(|it| format!("{{% for i in range(99) %}}{it}{{% endfor %}}")),
            2 => (body(), expression()).prop_map(|(body, it)| {
                format!("{{% for i in [1] recursive %}}{body}{{{{ loop([{it}]) }}}}{{% endfor %}}")
            }),
            3 => (target(), body()).prop_map(|(to, it)| format!("{{% set {to} %}}{it}{{% endset %}}")),
            2 => (body(), expression()).prop_map(|(body, it)| {
                format!("{{% macro m(a) %}}{body}{{{{ m({it}) }}}}{{% endmacro %}}{{{{ m(a) }}}}")
            }),
            1 => body().prop_map(|it| format!("{{% call m(a) %}}{it}{{% endcall %}}")),
            1 => body().prop_map(|it| format!("{{% filter upper %}}{it}{{% endfilter %}}")),
            1 => (expression(), body()).prop_map(|(it, body)| {
                format!("{{% if {it} %}}{body}{{% elif a %}}{body}{{% endif %}}")
            }),
            1 => (expression(), body()).prop_map(|(it, body)| {
                format!("{{% with a = {it} %}}{body}{{% endwith %}}")
            }),
            // Accumulation without a loop.
            2 => (body(), 1..40_usize).prop_map(|(it, times)| it.repeat(times)),
        ]
    })
}

fn template() -> impl Strategy<Value = String> {
    prop::collection::vec(statement(), 1..6).prop_map(|it| format!("{BEGIN}{}", it.concat()))
}

fn cases(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |it| it.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(40))]

    /// The limits of the run are those of `run`; beyond them it would be killed.
    #[test]
    fn any_template_ends_with_a_result_or_a_reason(template in template()) {
        let folder = Folder::rendered();
        folder.write("any.yaml", &template);
        let run = run(&folder, &["template", "any.yaml"]);
        match run.code {
            0 => prop_assert_eq!(run.stderr, ""),
            code => {
                prop_assert_eq!((code, run.stdout.as_str()), (2, ""));
                prop_assert!(run.stderr.starts_with("error: any.yaml: "), "{}", run.stderr);
            }
        }
    }
}
