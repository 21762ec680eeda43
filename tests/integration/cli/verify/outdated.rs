//! A rendered tree that is not what `render` would write.

use super::*;

const EXPECTED: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - name: open
    from: { cluster: east }
    to: { cluster: west }
    expect: Reach
";

const KEEPALIVE: &str = "- name: east\n      persistentKeepalive: 25";

#[test]
fn a_missing_render_is_the_first_finding() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: east", KEEPALIVE);
    // And a failure.
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", "\"10.1.3.0/24\"");
    let run = folder.run(&["verify", "--output", "concise"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let first = "error[outdated-tree] the rendered tree is not what `render` would write: 2 files differ \
                 (rendered/north/prod--east.yaml, rendered/west/prod--east.yaml) (2 other findings follow from it: \
                 errors[no-route, source-rejected])";
    assert_eq!(lines, [first]);
    assert_eq!(run.code, 1);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(verified(&folder, &["--fail-on", "warning"]).0, 0);
}

#[test]
fn a_missing_render_alone_is_a_warning() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: east", KEEPALIVE);
    assert_eq!(verified(&folder, &[]).0, 0);
    let (code, text) = verified(&folder, &["--fail-on", "warning", "--output", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["holds"], false, "it is true only with exit code 0");
    assert_eq!(code, 1);
}

#[test]
fn a_render_that_would_be_refused_is_an_error() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    let (code, text) = verified(&folder, &[]);
    assert_contains(&text, "and `render` would refuse (lost-source, lost-target)");
    assert_contains(&text, "error[outdated-tree]");
    assert_eq!(code, 1);
    // The help leads to the errors.
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "error[lost-target]");
}

/// What git has now is not what is proved.
#[test]
fn the_summary_names_the_outdated_peers() {
    let folder = Folder::rendered();
    folder.write("expectations.yaml", EXPECTED);
    let proved = "With the outdated Peers in rendered: All 24 declared paths work in both directions. The \
                  expectation is met.";
    let (code, text) = verified(&folder, &[]);
    assert_contains(&text, "The expectation is met.");
    assert!(!text.contains("Proved"), "{text}");
    assert_eq!(code, 0);
    folder.edit("mesh.yaml", "- name: east", KEEPALIVE);
    for format in ["human", "markdown"] {
        let text = verified(&folder, &["--output", format]).1;
        assert_contains(&text, proved);
    }
}

/// The Peers of a cluster are what they are.
#[test]
fn peers_that_are_not_of_the_tree_are_not_compared() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "- name: east", KEEPALIVE);
    folder.write("dump.yaml", folder.read(WEST_OF_EAST));
    let (code, text) = verified(&folder, &["--peers", "west=dump.yaml"]);
    assert!(!text.contains("outdated-tree"), "{text}");
    assert_eq!(code, 1, "it lacks the Peers of north");
}

/// Without the header, `render` does not overwrite a file.
#[test]
fn a_file_that_blocks_the_render_is_an_error() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, HEADER, "");
    let (code, text) = verified(&folder, &[]);
    let finding = "error[outdated-tree]: the rendered tree is not what `render` would write: 1 file differs \
                   (rendered/west/prod--east.yaml), and `render` would refuse (";
    assert_contains(&text, finding);
    assert_eq!(code, 1);
    assert_ne!(folder.run(&["render"]).code, 0);
}

/// One edit of one file is one entry, and what also fails with the Peers that `render` would write stays apart.
#[test]
fn what_a_render_corrects_follows_from_the_tree() {
    let folder = Folder::rendered();
    let wrong =
        "  - { name: wrong, from: { cluster: east }, to: { cluster: north }, expect: Deny }\n";
    folder.write("expectations.yaml", format!("{EXPECTED}{wrong}"));
    fs::remove_dir_all(folder.path("rendered/west")).unwrap();
    let lines = |folder: &Folder| -> Vec<String> {
        let run = folder.run(&["verify", "--output", "concise"]);
        run.stdout.lines().map(str::to_owned).collect()
    };
    let found = lines(&folder);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_contains(
        &found[0],
        "follow from it: errors[failed-expectation, no-route, not-accepted])",
    );
    assert_contains(&found[1], "error[failed-expectation] expectation `wrong`");
    folder.edit("expectations.yaml", wrong, "");
    assert_eq!(folder.run(&["render"]).code, 0);
    // The cause of all is that the file cannot be read.
    let text = folder.read(WEST_OF_EAST);
    for (broken, help) in [
        (
            format!("<<<<<<< HEAD\n{text}"),
            "help: delete `rendered/west/prod--east.yaml`, then run `clustermesh render`",
        ),
        (
            format!("{HEADER}- a\nb: c\n"),
            "help: run `clustermesh diff --against rendered` to see what changes, ",
        ),
    ] {
        folder.write(WEST_OF_EAST, broken);
        let found = lines(&folder);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_contains(&found[0], "error[unreadable-manifest] west: ");
        let findings = folder.run(&["verify", "--output", "json"]).json()["findings"].clone();
        let findings = findings.as_array().unwrap().iter();
        let outdated = findings.clone().find(|it| it["rule"] == "outdated-tree").unwrap();
        assert_eq!(outdated["cause"]["rule"], "unreadable-manifest");
        assert_contains(&folder.run(&["verify"]).stdout, help);
    }
}
