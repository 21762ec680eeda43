//! What can't be asked for.

use crate::cli::Folder;

fn refusal(arguments: &[&str]) -> String {
    Folder::mesh().refusal(2, |it| it.run(arguments))
}

#[test]
fn wants_a_command() {
    assert!(refusal(&[]).contains("Usage: clustermesh <COMMAND>"));
}

#[test]
fn knows_its_commands() {
    insta::assert_snapshot!(refusal(&["rendr"]), @"
    error: unrecognized subcommand 'rendr'

      tip: some similar subcommands exist: 'report', 'render'

    Usage: clustermesh <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn knows_its_flags() {
    insta::assert_snapshot!(refusal(&["render", "--chekc"]), @"
    error: unexpected argument '--chekc' found

      tip: a similar option exists: `--check`

    Usage: clustermesh render --check

    For more information, try '--help'.
    ");
}

#[cfg(feature = "snapshot")]
#[test]
fn names_the_flags_for_a_cluster_of_init() {
    insta::assert_snapshot!(refusal(&["init", "north"]), @"
    error: unexpected argument 'north' found

      tip: `--context north` reads a cluster, and `--from north=FILE` a dump of its nodes

    Usage: clustermesh init [OPTIONS]

    For more information, try '--help'.
    ");
}

#[test]
fn does_not_compare_and_print_at_once() {
    insta::assert_snapshot!(refusal(&["render", "--check", "--target", "east"]), @"
    error: the argument '--check' cannot be used with '--target <CLUSTER>'

    Usage: clustermesh render --check

    For more information, try '--help'.
    ");
}

#[test]
fn wants_one_cluster_for_each_dump() {
    let reports = [
        refusal(&["snapshot", "--from", "-"]),
        refusal(&["snapshot", "--from", "dumps/east.json"]),
        refusal(&["snapshot", "--from", "Ea=-"]),
        refusal(&["snapshot", "east", "west", "--from", "-"]),
        refusal(&["snapshot", "--from", "east=a", "--from", "east=b"]),
    ];
    insta::assert_snapshot!(reports.join(""), @"
    error: --from `-`: expected CLUSTER=FILE
    error: --from `dumps/east.json`: expected CLUSTER=FILE, such as `east=dumps/east.json`
    error: --from `Ea=-`: `Ea` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
    error: --from: write `CLUSTER=FILE` for each cluster, and no other clusters
    error: --from names two files for `east`
    ");
}

#[test]
fn wants_flags_for_clusters_that_it_looks_at() {
    insta::assert_snapshot!(refusal(&["snapshot", "east", "--from", "-", "--accept", "west"]), @"error: --accept names `west`, but this run is for `east`");
    insta::assert_snapshot!(refusal(&["snapshot", "east", "--from", "-", "--no-carry-over", "west"]), @"error: --no-carry-over names `west`, but this run is for `east`");
}

#[test]
fn wants_a_cluster_that_a_file_can_be_named_after() {
    insta::assert_snapshot!(refusal(&["snapshot", "../east", "--from", "-"]), @"
    error: invalid value '../east' for '[CLUSTER]...': `../east` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)

    For more information, try '--help'.
    ");
}

#[test]
fn wants_a_target_that_a_mesh_names() {
    insta::assert_snapshot!(refusal(&["render", "--target", "south"]), @"error: no mesh contains a cluster `south`; known clusters: `east`, `north`, `west`");
    assert!(refusal(&["render", "--target", ""]).contains("a value is required"));
}

#[test]
fn wants_to_know_when_to_use_colour() {
    insta::assert_snapshot!(refusal(&["render", "--color", "sometimes"]), @"
    error: invalid value 'sometimes' for '--color <WHEN>'
      [possible values: auto, always, never]

    For more information, try '--help'.
    ");
}

/// Words of similar tools, and options of other commands.
#[test]
fn knows_what_was_meant() {
    let tips = [
        &["version"][..],
        &["plan"],
        &["render", "east"],
        &["render", "--dry-run"],
        &["diff", "HEAD~1"],
        &["capacity", "--target", "east"],
        &["verify", "--allow-pause"],
        &["snapshot", "--form", "x"],
        &["render", "-o", "yaml"],
        &["render", "-f", "mesh.yaml"],
        &["trace", "east", "n1", "west"],
    ]
    .map(|words| {
        let refusal = refusal(words);
        let tip = refusal.lines().find(|it| it.starts_with("  tip: "));
        format!("{}: {}", words.join(" "), tip.unwrap_or_default().trim_start())
            .trim_end()
            .to_owned()
    });
    insta::assert_snapshot!(tips.join("\n"), @"
    version: tip: `clustermesh --version` prints the version
    plan: tip: `clustermesh diff` shows what a change does
    render east: tip: `clustermesh render --target east` prints one cluster
    render --dry-run: tip: `clustermesh render --check` writes nothing and lists what differs
    diff HEAD~1: tip: `clustermesh diff --against HEAD~1` compares with a commit
    capacity --target east: tip: `clustermesh capacity CLUSTER` takes the name without an option
    verify --allow-pause: tip: `--allow-pause` is an option of `diff`
    snapshot --form x: tip: a similar option exists: `--from`
    render -o yaml:
    render -f mesh.yaml: tip: `--mesh FILE` reads a mesh
    trace east n1 west:
    ");
    let hostile = refusal(&["render", "a\u{1b}[31m"]);
    assert!(!hostile.contains('\u{1b}'), "{hostile}");
}
