//! Advice about files that are deleted, unreadable or half merged.

use std::process::Command;

use super::{conflicted, findings, with_outputs};
use crate::cli::diff::Repository;
use crate::cli::*;
use crate::support::assert_contains;

/// git has the file, and gives it back also if a merge stopped at it.
#[test]
fn a_snapshot_that_git_has() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let path = "snapshots/west.json";
    let text = folder.read(path);
    fs::remove_file(folder.path(path)).unwrap();
    assert!(!findings(folder)[0][2].contains("git "));
    folder.write(path, &text);
    repository.commit();
    fs::remove_file(folder.path(path)).unwrap();
    insta::assert_snapshot!(findings(folder)[0][2], @"run `git checkout HEAD -- snapshots/west.json` if the file was deleted by mistake; otherwise run `clustermesh snapshot west`");
    let restore = ["checkout", "-q", "HEAD", "--", path];
    repository.git(&restore);
    assert_eq!(findings(folder), [[""; 4]; 0]);

    repository.git(&["checkout", "-qb", "topic"]);
    folder.write(path, text.replace("10.3.1.0", "10.3.7.0"));
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    folder.write(path, text.replace("10.3.1.0", "10.3.8.0"));
    repository.commit();
    let merge = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "topic"])
        .current_dir(folder.path("."))
        .output();
    assert!(!merge.unwrap().status.success());
    assert_contains(&findings(folder)[0][2], "`git checkout HEAD -- snapshots/west.json`");
    repository.git(&restore);
    assert_eq!(findings(folder), [[""; 4]; 0]);
}

/// `git restore` knows only files of the index.
#[test]
fn files_that_only_the_last_commit_has() {
    let repository = Repository::of(with_outputs());
    let folder = &repository.folder;
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    let back = |path: &str| {
        let run = folder.run(&["validate"]);
        assert_contains(&(run.stdout + &run.stderr), &format!("run `git checkout HEAD -- {path}`"));
        repository.git(&["checkout", "-q", "HEAD", "--", path]);
        assert_eq!(findings(folder), [[""; 4]; 0]);
    };
    for path in ["mesh.yaml", "clustermesh.yaml", "templates/app.yaml"] {
        repository.git(&["rm", "-q", path]);
        back(path);
    }
    repository.git(&["mv", "mesh.yaml", "other.yaml"]);
    back("mesh.yaml");
    // Other edits of the file would be lost.
    folder.edit("mesh.yaml", "kind: ClusterMesh", "kind: Peers");
    folder.edit("mesh.yaml", "  clusters:", "  cluster:");
    assert!(!folder.run(&["validate"]).stdout.contains("git checkout"));
}

#[test]
fn a_cluster_with_another_name_in_the_mesh_and_its_file() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    repository.commit();
    folder.edit("mesh.yaml", "name: west", "name: wien");
    repository.git(&["mv", "snapshots/west.json", "snapshots/wien.json"]);
    insta::assert_snapshot!(findings(folder)[0][2], @r#"if `west` was renamed to `wien`, write `"cluster": "wien"` in this file; otherwise take a new one with `clustermesh snapshot wien --accept wien`"#);
    folder.edit("snapshots/wien.json", r#""cluster":"west""#, r#""cluster":"wien""#);
    assert_eq!(findings(folder), [[""; 4]; 0]);
}

#[test]
fn a_snapshot_folder_with_another_name() {
    let folder = Folder::mesh();
    fs::rename(folder.path("snapshots"), folder.path("nodes")).unwrap();
    let run = folder.run(&["validate", "--snapshots", "node"]);
    assert_contains(
        &run.stdout,
        "the snapshot folder `node` does not exist, so 3 clusters have no snapshot",
    );
    assert_contains(&run.stdout, "help: if the snapshots are in another folder, name it");
    assert_eq!(folder.run(&["validate", "--snapshots", "nodes"]).code, 0);
}

/// A folder that was renamed or emptied is one finding, which gives back only what is gone.
#[test]
fn all_snapshots_that_git_has() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    fs::rename(folder.path("snapshots"), folder.path("nodes")).unwrap();
    let found = findings(folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_contains(
        &found[0][2],
        "run `git checkout HEAD -- snapshots` if the files were deleted by mistake; if the snapshots are",
    );
    repository.git(&["checkout", "-q", "HEAD", "--", "snapshots"]);
    assert_eq!(findings(folder), [[""; 4]; 0]);
    for cluster in ["east", "west"] {
        fs::remove_file(folder.path(&format!("snapshots/{cluster}.json"))).unwrap();
    }
    let found = findings(folder);
    assert_eq!(found.len(), 1, "{found:#?}");
    let restore = "run `git checkout HEAD -- snapshots/east.json snapshots/west.json` if the files were deleted";
    assert_contains(&found[0][2], restore);
}

/// A tree or an output that is gone is not up to date, unless no commit has the tree.
#[test]
fn a_tree_or_an_output_that_is_gone() {
    const NOTE: &str = "note: the rendered tree is not up to date: run `clustermesh render`";
    let note = |folder: &Folder| folder.run(&["validate"]).stderr.contains(NOTE);
    assert!(!note(&Folder::mesh()));
    let repository = Repository::of(with_outputs());
    let folder = &repository.folder;
    assert!(!note(folder));
    fs::remove_file(folder.path("apps/west.yaml")).unwrap();
    assert!(note(folder));
    assert_eq!(folder.run(&["render"]).code, 0);
    repository.commit();
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    assert!(note(folder));
}

#[test]
fn a_mesh_with_another_ending() {
    let folder = Folder::rendered();
    fs::rename(folder.path("mesh.yaml"), folder.path("mesh.yml")).unwrap();
    let run = folder.run(&["validate"]);
    assert_contains(&run.stderr, "help: rename `mesh.yml` to `mesh.yaml`");
    fs::rename(folder.path("mesh.yml"), folder.path("mesh.yaml")).unwrap();
    assert_eq!(folder.run(&["validate"]).code, 0);
}

#[test]
fn a_file_that_the_config_misspells() {
    let folder = Folder::rendered();
    folder.write("expectations.yml", "");
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    folder.write("clustermesh.yaml", format!("{config}expectations: expectation.yml\n"));
    insta::assert_snapshot!(folder.run(&["validate"]).stderr, @"error: cannot read `expectation.yml`: No such file or directory (os error 2); did you mean `expectations.yml`?");
    fs::create_dir(folder.path("policies")).unwrap();
    folder.write("clustermesh.yaml", format!("{config}policies: policies.d\n"));
    insta::assert_snapshot!(folder.run(&["validate"]).stderr, @"error: cannot read the folder `policies.d`: No such file or directory (os error 2); did you mean `policies`?");
}

/// Its groups are those of a mesh that cannot be read.
#[test]
fn expectations_beside_a_broken_mesh() {
    let folder = Folder::mesh();
    let groups = format!("{}  groups: {{ edge: [north, west] }}\n", folder.read("mesh.yaml"));
    folder.write(
        "expectations.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n  - from: { cluster: east }\n    to: { group: \
         edge }\n    expect: Reach\n",
    );
    folder.write("mesh.yaml", &groups);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
    folder.write("mesh.yaml", groups.replace("  name:", "   name:").replace("kind:", " kind:"));
    assert_eq!(findings(&folder).len(), 1, "{:?}", findings(&folder));
}

#[test]
fn a_variable_of_the_environment_that_is_misspelled() {
    let folder = Folder::rendered();
    let run = folder.run_with(&[("CLUSTERMESH_MESH", "x.yaml")], &["validate"]);
    assert_contains(
        &run.stderr,
        "note: CLUSTERMESH_MESH is not read; did you mean CLUSTERMESH_MESHES?",
    );
    let run = folder.run_with(&[("CLUSTERMESH_VERSION", "1")], &["validate"]);
    assert!(!run.stderr.contains("CLUSTERMESH_VERSION"), "{}", run.stderr);
}

#[test]
fn a_template_that_is_half_merged() {
    let folder = with_outputs();
    let path = "templates/app.yaml";
    let text = folder.read(path);
    folder.write(path, conflicted(&text));
    let [_, _, help, message] = &findings(&folder)[0];
    insta::assert_snapshot!(format!("{message}: {help}"), @"the template `templates/app.yaml` has git's conflict markers: two versions of the file were not merged: resolve the conflict by hand, and remove all markers");
    folder.write(path, text);
    assert_eq!(findings(&folder), [[""; 4]; 0]);
}

/// The Peers are not missing: the file with them cannot be read.
#[test]
fn a_rendered_file_that_cannot_be_read() {
    let path = "rendered/east/prod--west.yaml";
    for bytes in [&b"\xff"[..], b"junk: [\n"] {
        let folder = Folder::rendered();
        folder.write(path, bytes);
        let run = folder.run(&["trace", "east", "west"]);
        let about =
            "no Peer of east contains 10.3.1.2: `rendered/east/prod--west.yaml` cannot be read";
        assert_contains(&run.stdout, about);
        let help = "help: delete `rendered/east/prod--west.yaml`, then run `clustermesh render`";
        assert_contains(&run.stdout, help);
        let back = folder.run(&["trace", "west", "east"]).stdout;
        assert_contains(
            &back,
            "east/n1 rejects west/n1: `rendered/east/prod--west.yaml` cannot be read",
        );
        let run = folder.run(&["verify"]);
        assert_contains(&run.stdout, "error[unreadable-manifest]: east: ");
        assert_contains(&run.stdout, help);
        // The load of the cluster is unknown, so no limit is that of it.
        let capacity = folder.run(&["capacity"]).stdout;
        let growth = capacity.split_once("How many more").unwrap().1;
        assert!(!growth.contains("east"), "{capacity}");
        fs::remove_file(folder.path(path)).unwrap();
        assert_eq!(folder.run(&["render"]).code, 0);
        assert_eq!(folder.run(&["trace", "east", "west"]).code, 0);
    }
}

/// Two findings of one rule, each with a command for its own file.
#[test]
fn each_finding_of_a_group_has_its_help() {
    let folder = Folder::mesh();
    for cluster in ["east", "west"] {
        folder.write(&format!("snapshots/{cluster}.json"), "{}");
    }
    let run = folder.run(&["validate"]);
    for cluster in ["east", "west"] {
        assert_contains(&run.stdout, &format!("--accept {cluster}`"));
    }
    assert_eq!(run.stdout.matches("help: ").count(), 2, "{}", run.stdout);
}

/// What the last commit has is as broken, so to restore it ends nothing.
#[test]
fn a_broken_file_that_is_committed() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let guard = folder.run(&["guard", "east", "--writers", "ada@example.com"]).stdout;
    folder.write("guards/west.yaml", guard);
    let path = "snapshots/west.json";
    folder.write(path, &folder.read(path)[..300]);
    for is_committed in [false, true] {
        if is_committed {
            repository.commit();
        }
        let found = findings(folder);
        assert_eq!(found[0][0], "invalid-snapshot");
        let restores = |it: &[String; 4]| it[2].contains("git checkout HEAD");
        assert_eq!(found.iter().any(restores), !is_committed && found[0][2].contains("git "));
    }
    assert_contains(&findings(folder)[0][2], "take a new one with `clustermesh snapshot west");
}
