//! The pull request in `examples/`: before, after, and the comment that it gets.

use super::*;
use crate::support::{copy, project};

#[test]
fn the_pull_request_gets_its_comment() {
    let example = project().join("examples/pull-request");
    let repository = Repository::of(Folder::empty());
    let folder = repository.folder.path("");
    copy(&example.join("before"), &folder);
    repository.commit();
    for path in ["snapshots", "rendered"] {
        fs::remove_dir_all(folder.join(path)).unwrap();
    }
    copy(&example.join("after"), &folder);
    let run = repository.diff(&["--output", "markdown", "--fail-on", "disruptive"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let expected = fs::read_to_string(example.join("diff.md")).unwrap();
    assert_eq!(run.stdout, expected);
    // The book shows the beginning of the page.
    let page = fs::read_to_string(project().join("docs/how-to/review-changes.md")).unwrap();
    let quoted = page.lines().filter_map(|it| it.strip_prefix('>'));
    let quoted: Vec<&str> = quoted.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect();
    let first: Vec<&str> = expected.lines().take(quoted.len()).collect();
    assert_eq!(quoted.first(), Some(&"**clustermesh diff: brief**"));
    assert_eq!(quoted.get(1..), first.get(1..));
    // Both versions are as `render` writes them.
    for version in ["before", "after"] {
        let folder = Folder::empty();
        copy(&example.join(version), &folder.path(""));
        let run = folder.run(&["render", "--check"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{version}");
    }
}
