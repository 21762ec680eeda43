//! Parameters of every kind.

use super::*;
use crate::support::assert_contains;

/// The messages about parameters, a line each.
fn refusals(all: &[Value]) -> String {
    let refusals = all.iter().map(|parameters| {
        let application = Application::new("west").with(parameters);
        application.refusal(2)
    });
    refusals.collect()
}

#[test]
fn wrong_ones_are_errors() {
    insta::assert_snapshot!(refusals(&[
        json!([{ "name": "traget", "string": "west" }]),
        json!([{ "name": "ALLOW_EMPTY", "array": [] }]),
        json!([{ "name": "values", "string": "x" }]),
        json!([{ "name": "", "string": "x" }]),
        json!([{ "name": "target", "string": "" }]),
        json!([{ "name": "target" }]),
        json!([{ "name": "target", "array": ["west"] }]),
        json!([{ "name": "target", "string": "west", "map": { "a": "b" } }]),
        json!([{ "name": "target", "string": "west" }, { "name": "target", "string": "east" }]),
        json!([{ "name": "allow-empty", "string": "west" }]),
        json!([{ "name": "allow-empty", "array": ["west/"] }]),
        json!([{ "name": "allow-empty", "array": ["WEST"] }]),
        json!([{ "name": "allow-empty", "array": ["south"] }]),
    ]), @"
    error: unknown parameter `traget`; did you mean `target`?
    error: unknown parameter `ALLOW_EMPTY`; did you mean `allow-empty`?
    error: unknown parameter `values`; known parameters: `target`, `allow-empty`
    error: unknown parameter ``; known parameters: `target`, `allow-empty`
    error: the parameter `target` is empty; name a cluster, or remove the parameter
    error: the parameter `target` must be a `string`
    error: the parameter `target` must be a `string`
    error: the parameter `target` must be a `string`
    error: the parameter `target` is set twice
    error: the parameter `allow-empty` must be an `array`
    error: the parameter `allow-empty` contains `west/`: expected TARGET or TARGET/SOURCE
    error: the parameter `allow-empty` contains `WEST`: `WEST` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
    error: the parameter `allow-empty` names unknown cluster `south`; known clusters: `east`, `north`, `west`
    ");
}

#[test]
fn what_argo_cd_cannot_send_is_an_error() {
    for text in ["{}", "[", "x", "[1]", "[null]", r#"[{"string":"west"}]"#] {
        let mut application = Application::new("west");
        application.parameters = Some(text.to_owned());
        let refusal = application.refusal(2);
        let report = "error: ARGOCD_APP_PARAMETERS is not a JSON list of parameters: ";
        assert!(refusal.starts_with(report), "{refusal}");
    }
    for parameters in [json!([{ "name": "target", "string": true }]), json!([{ "name": 1 }])] {
        let refusal = Application::new("west").with(&parameters).refusal(2);
        assert_contains(&refusal, "invalid type");
    }
}

#[test]
fn none_at_all_are_fine() {
    for text in ["", "null", "[]"] {
        let mut application = Application::new("west");
        application.parameters = Some(text.to_owned());
        assert_eq!(application.manifests(), rendered("west"));
    }
    let parameters = json!([
        { "name": "allow-empty", "array": [] },
    ]);
    assert_eq!(Application::new("west").with(&parameters).manifests(), rendered("west"));
}

#[test]
fn flattened_parameters_are_not_read() {
    let mut application = Application::new("west");
    application.variables = vec![
        ("PARAM_TARGET", "east".to_owned()),
        ("PARAM_ALLOW_EMPTY", "nonsense".to_owned()),
        ("ARGOCD_ENV_TARGET", "east".to_owned()),
    ];
    assert_eq!(application.manifests(), rendered("west"));
}

#[test]
fn hostile_targets_stay_data() {
    let folder = Folder::empty();
    let mark = folder.path("mark");
    let touch = format!("touch {}", mark.display());
    for target in [
        "nope".to_owned(),
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("west;{touch}"),
        format!("west\n{touch}"),
        "--help".to_owned(),
        "-C/".to_owned(),
        "../east".to_owned(),
        "rendered/west".to_owned(),
        "WEST".to_owned(),
        "west ".to_owned(),
        "\u{1b}[2J\u{202e}west".to_owned(),
        "x".repeat(100_000),
    ] {
        let parameters = json!([{ "name": "target", "string": target }]);
        let refusal = Application::new("west").with(&parameters).refusal(2);
        assert!(refusal.starts_with("error: no mesh contains a cluster `"), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
        assert!(!mark.exists());
    }
}
