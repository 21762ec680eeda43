//! `render --check`: whether the tree is up to date.

use std::fs;

use crate::cli::{Folder, HEADER, NORTH, TREE};

#[test]
fn says_nothing_of_a_clean_tree() {
    let folder = Folder::rendered();
    let before = folder.touches(".");
    let run = folder.run(&["render", "--check"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    assert_eq!(folder.touches("."), before);
}

/// A job that lets warnings fail still shows which files are outdated.
#[test]
fn warnings_that_fail_hide_no_difference() {
    let folder = Folder::rendered();
    folder.edit("snapshots/east.json", "\"10.1.1.0/24\"", "\"10.9.1.0/24\"");
    for arguments in [&["render", "--check"][..], &["render", "--check", "--fail-on", "warning"]] {
        let run = folder.run(arguments);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stdout.contains("changed: rendered/west/prod--east.yaml\n"), "{}", run.stdout);
    }
}

#[test]
fn lists_whatever_differs() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("rendered/east/prod--west.yaml")).unwrap();
    folder.edit("rendered/north/prod--east.yaml", "51820", "51821");
    folder.write("rendered/west/prod--south.yaml", HEADER);
    folder.write("rendered/west/patch.yaml", "kind: Peer\n");
    folder.write("rendered/notes/README.md", "");
    let before = folder.touches(".");
    let run = folder.run(&["render", "--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    missing: rendered/east/prod--west.yaml
    changed: rendered/north/prod--east.yaml
    foreign (a file): rendered/notes/README.md
    foreign (a file): rendered/west/patch.yaml
    stale: rendered/west/prod--south.yaml
    ");
    assert_eq!(folder.touches("."), before);
}

#[test]
fn lists_what_is_in_the_way() {
    let folder = Folder::rendered();
    let path = folder.path("rendered/west/prod--east.yaml");
    fs::remove_file(&path).unwrap();
    fs::create_dir(path).unwrap();
    folder.write("rendered/east/prod--west.yaml", "kind: Peer\n");
    let run = folder.run(&["render", "--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    foreign (a file): rendered/east/prod--west.yaml
    foreign (a folder): rendered/west/prod--east.yaml
    ");
}

#[test]
fn misses_everything_where_nothing_was_rendered() {
    let folder = Folder::mesh();
    let run = folder.run(&["render", "--check"]);
    let expected = TREE.map(|path| format!("missing: rendered/{path}\n"));
    assert_eq!((run.code, run.stdout), (1, expected.concat()));
    assert!(!folder.path("rendered").exists());
}

#[test]
fn calls_files_of_a_cluster_that_left_stale() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    let run = folder.run(&["render", "--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    changed: rendered/east/kustomization.yaml
    stale: rendered/east/prod--north.yaml
    stale: rendered/north/kustomization.yaml
    stale: rendered/north/prod--east.yaml
    stale: rendered/north/prod--west.yaml
    changed: rendered/west/kustomization.yaml
    stale: rendered/west/prod--north.yaml
    ");
}

#[test]
fn fails_on_a_foreign_file_alone() {
    let folder = Folder::rendered();
    folder.write("rendered/west/.gitkeep", "");
    let run = folder.run(&["render", "--check"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.stdout, "foreign (a file): rendered/west/.gitkeep\n");
    insta::assert_snapshot!(run.stderr, @"
    notice[foreign-file]: west: `rendered/west/.gitkeep` (a file) was not written by clustermesh
    help: move it to a folder outside the rendered tree
    ");
}

#[test]
fn warns_but_is_clean() {
    let folder = Folder::mesh();
    folder.edit("snapshots/east.json", "10.101.0.2/24", "10.101.0.1/24");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["render", "--check"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.starts_with("warning[duplicate-address]: east/n2"), "{}", run.stderr);
    assert_eq!(folder.run(&["render", "--check", "--fail-on", "warning"]).code, 1);
}

#[test]
fn still_cannot_read_what_is_unreadable() {
    let folder = Folder::rendered();
    folder.write("mesh.yaml", "{");
    assert_eq!(folder.run(&["render", "--check"]).code, 2);
}

/// Nothing shows which Peers such a file had, so the new ones are not counted as added.
#[test]
fn counts_no_peers_where_a_file_cannot_be_read() {
    let (east, west) = ("rendered/east/prod--west.yaml", "rendered/west/prod--east.yaml");
    let folder = Folder::rendered();
    let (ours, edited) = (folder.read(east), folder.read(west).replace("51820", "51821"));
    for broken in [[ours.as_bytes(), &[0xff]].concat(), [ours.as_bytes(), b"---\na: ["].concat()] {
        for flags in [&["render", "--check"][..], &["render"]] {
            fs::write(folder.path(east), &broken).unwrap();
            folder.write(west, &edited);
            let run = folder.run(flags);
            let counts = run.stderr.lines().filter(|it| it.contains(" files, "));
            assert_eq!(
                counts.collect::<Vec<_>>(),
                [
                    "east: +0 ~1 -0 files, 4 Peers of 2 clusters",
                    "west: +0 ~1 -0 files, 4 Peers of 2 clusters (+0 ~2 -0)",
                ],
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn names_files_from_where_it_stands() {
    let folder = Folder::rendered();
    fs::create_dir(folder.path("deep")).unwrap();
    fs::remove_file(folder.path("rendered/east/prod--west.yaml")).unwrap();
    let run = folder.run(&[
        "-C",
        "deep",
        "render",
        "--check",
        "--mesh",
        "../mesh.yaml",
        "--snapshots",
        "../snapshots",
        "--rendered",
        "../rendered",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "missing: ../rendered/east/prod--west.yaml\n"));
}
