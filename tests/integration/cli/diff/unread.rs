//! Old manifests that cannot be read. Clusters keep the Peers of a file that no engine can apply, so these are not new.

use std::fs;

use super::*;
use crate::support::assert_contains;

const MANIFEST: &str = "west/prod--east.yaml";
const REMEDY: &str = "compare with another commit (--against REV), or with the clusters (--live)\n";

#[test]
fn a_manifest_with_conflicts_is_refused() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let path = format!("rendered/{MANIFEST}");
    let text = folder.read(&path);
    folder.write(&path, format!("<<<<<<< HEAD\n{text}=======\n>>>>>>> topic\n"));
    repository.commit();
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    folder.write(&path, text);
    folder.keep("east", &[node(1, 1)]);
    for (arguments, name) in [(&[][..], "HEAD"), (&["--against", "old"], "old")] {
        let stderr = repository.refusal(arguments);
        assert_contains(&stderr, &format!("{MANIFEST}` cannot be read: "));
        let unknown = format!("; the old Peers in `{name}` are therefore unknown; {REMEDY}");
        assert_contains(&stderr, &unknown);
    }
    assert_eq!(repository.grade(&["--against", "HEAD~1"]), "cleanup");
}

/// The text may be anything, so its details are hidden.
#[test]
fn the_file_is_named() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.write(&format!("rendered/{MANIFEST}"), "a: [\n");
    let peers = ["--peers", "east=east.yaml"];
    folder.write("east.yaml", folder.read("rendered/east/prod--west.yaml"));
    let stderr = repository.refusal(&peers);
    assert_contains(&stderr, MANIFEST);
    let unknown = format!("; the old Peers in the rendered tree are therefore unknown; {REMEDY}");
    assert_contains(&stderr, &unknown);
    // Without a mesh in the commit, too.
    fs::rename(folder.path("mesh.yaml"), folder.path("mesh")).unwrap();
    repository.commit();
    fs::rename(folder.path("mesh"), folder.path("mesh.yaml")).unwrap();
    assert_contains(&repository.refusal(&[]), MANIFEST);
}

#[test]
fn a_folder_of_a_cluster_that_left_is_refused() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    for file in fs::read_dir(folder.path("old/north")).unwrap() {
        fs::write(file.unwrap().path(), "a: [\n").unwrap();
    }
    folder.edit("mesh.yaml", NORTH, "");
    let stderr = repository.refusal(&["--against", "old"]);
    assert_contains(&stderr, "old/north/prod--");
}

/// A pointer is a YAML text without Peers.
#[test]
fn a_pointer_of_git_lfs_is_refused() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    folder.write(&format!("rendered/{MANIFEST}"), pointer);
    repository.commit();
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let problem = "cannot be read: it is a pointer of Git LFS, so its content is not here; `git lfs pull` fetches that of \
                   the checkout; the old Peers";
    assert_contains(&repository.refusal(&[]), problem);
    assert_contains(&repository.refusal(&["--against", "old"]), problem);
}
