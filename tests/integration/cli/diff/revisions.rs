//! Commits: which are compared with, and how they are read.

use std::fs;

use super::*;
use crate::support::assert_contains;

#[test]
fn compares_with_the_last_commit() {
    let repository = Repository::committed();
    assert_eq!(repository.grade(&[]), "none");
    repository.remove_node();
    assert_ne!(repository.grade(&[]), "none");
    repository.commit();
    assert_eq!(repository.grade(&[]), "none");
    assert_ne!(repository.grade(&["--against", "HEAD~1"]), "none");
}

#[test]
fn compares_with_the_merge_base() {
    let repository = Repository::committed();
    repository.git(&["switch", "--quiet", "--create", "topic"]);
    repository.remove_node();
    repository.commit();
    assert_ne!(repository.grade(&["--against", "main..."]), "none");
    // What happens on the branch does not count.
    repository.git(&["switch", "--quiet", "main"]);
    repository.folder.keep("east", &[node(1, 1)]);
    assert_eq!(repository.folder.run(&["render"]).code, 0);
    repository.commit();
    repository.git(&["switch", "--quiet", "--detach", "topic~1"]);
    assert_eq!(repository.grade(&["--against", "main..."]), "none");
    assert_ne!(repository.grade(&["--against", "main"]), "none");
}

#[test]
fn reads_from_folders_below_and_with_paths_of_the_config() {
    let repository = Repository::of(Folder::empty());
    let folder = &repository.folder;
    let mesh = Folder::mesh();
    folder.write("a b/net/mesh.yaml", MESH);
    for cluster in ["east", "north", "west"] {
        let snapshot = mesh.read(&format!("snapshots/{cluster}.json"));
        folder.write(&format!("a b/nodes/{cluster}.json"), snapshot);
    }
    folder.write(
        "a b/clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [net]\nsnapshots: nodes\nrendered: ../out\n",
    );
    folder.write("a b/c/d/keep", "");
    let render = |folder: &str| {
        let run = repository.folder.run(&["-C", folder, "render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    render("a b");
    repository.commit();
    let grade = |folder: &str| {
        let run = repository.diff_in(folder, &["--output", "json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let changes = run.json();
        changes["grade"].as_str().unwrap().to_owned()
    };
    assert_eq!(grade("a b"), "none");
    // The commit has its own config.
    folder.edit("a b/clustermesh.yaml", "nodes", "snapshots");
    fs::rename(folder.path("a b/nodes"), folder.path("a b/snapshots")).unwrap();
    assert_eq!(grade("a b/c/d"), "none");
    folder.write("a b/snapshots/west.json", {
        let snapshot = folder.read("a b/snapshots/west.json");
        snapshot.replace("198.18.113.31", "198.18.113.99")
    });
    assert_ne!(grade("a b/c/d"), "none");
}

#[test]
fn follows_links_inside_of_the_commit_only() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    fs::rename(folder.path("snapshots"), folder.path("real")).unwrap();
    std::os::unix::fs::symlink("./real", folder.path("snapshots")).unwrap();
    fs::rename(folder.path("mesh.yaml"), folder.path("real/mesh")).unwrap();
    std::os::unix::fs::symlink("snapshots/../real/mesh", folder.path("mesh.yaml")).unwrap();
    repository.commit();
    assert_eq!(repository.grade(&[]), "none");
    for (target, reason) in [
        ("../x", "it is outside of the repository"),
        ("/etc/passwd", "leads out of the repository"),
        ("mesh.yaml", "too many links"),
    ] {
        fs::remove_file(folder.path("mesh.yaml")).unwrap();
        std::os::unix::fs::symlink(target, folder.path("mesh.yaml")).unwrap();
        repository.commit();
        fs::remove_file(folder.path("mesh.yaml")).unwrap();
        std::os::unix::fs::symlink("real/mesh", folder.path("mesh.yaml")).unwrap();
        let stderr = repository.refusal(&["--against", "HEAD", "--mesh", "mesh.yaml"]);
        assert!(stderr.contains(reason), "{target}: {stderr}");
    }
}

#[test]
fn a_submodule_is_not_read() {
    let repository = Repository::committed();
    let other = Repository::committed();
    let url = other.folder.path(".");
    let folder = &repository.folder;
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    let url = url.to_str().unwrap();
    repository.git(&["rm", "--quiet", "-r", "--cached", "rendered"]);
    repository.git(&["submodule", "--quiet", "add", url, "rendered"]);
    repository.commit();
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    assert_eq!(folder.run(&["render"]).code, 0);
    // What it has is in another repository.
    assert_contains(&repository.refusal(&[]), "`HEAD` has no rendered tree");
}

#[test]
fn a_commit_that_renders_nothing_is_rendered() {
    // As with the plugin of Argo CD.
    let repository = Repository::of(Folder::mesh());
    repository.commit();
    assert_eq!(repository.grade(&[]), "none");
    repository.folder.keep("west", &[node(3, 1)]);
    assert_ne!(repository.grade(&[]), "none");
}

#[test]
fn the_first_mesh_is_compared_with_nothing() {
    let repository = Repository::of(Folder::empty());
    repository.commit();
    // The manifests of Kilo, the Peer of a laptop, and a page about meshes.
    let folder = &repository.folder;
    let laptop = "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: laptop }\nspec: { allowedIPs: \
                  [192.0.2.1/32], publicKey: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4= }\n";
    folder.write("kilo/laptop.yaml", laptop);
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: \
                      peers.kilo.squat.ai }\nspec: { group: kilo.squat.ai, names: { kind: Peer } }\n";
    folder.write("kilo/definition.yaml", definition);
    folder.write("docs/mesh.md", format!("```yaml\n{MESH}```\n"));
    repository.commit();
    let mesh = Folder::rendered();
    crate::support::copy(mesh.0.path(), folder.0.path());
    for arguments in [&[][..], &["--against", "main...", "--fail-on", "disruptive"]] {
        let run = repository.diff(arguments);
        let note = format!(
            "note: `{}` has no mesh, snapshot or rendered Peer, so this is the beginning and all Peers are new\n",
            arguments.get(1).unwrap_or(&"HEAD")
        );
        assert_eq!((run.code, run.stderr), (0, note));
        assert_contains(&run.stdout, ": +12 ~0 -0 Peers.\n");
    }
    // Not even an operator's mesh, or a snapshot, may be anywhere.
    for (path, text) in [
        ("operator/mesh.yml", MESH.to_owned()),
        ("old/x.json", folder.read("snapshots/west.json")),
        ("old/x.yaml", folder.read("rendered/west/prod--east.yaml")),
    ] {
        folder.write(path, text);
        repository.git(&["add", path]);
        repository.git(&["commit", "--quiet", "--message=a"]);
        assert_contains(&repository.refusal(&[]), "(--against none)\n");
        repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    }
    for (path, message) in
        [("old/prod--west.yaml", "it was there"), ("old/prod--west.yaml", "it went")]
    {
        if message == "it went" {
            repository.git(&["rm", "--quiet", path]);
        } else {
            folder.write(path, "a: b\n");
            repository.git(&["add", path]);
        }
        repository.git(&["commit", "--quiet", "--message", message]);
        assert_contains(&repository.refusal(&[]), "(--against none)\n");
    }
    repository.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
    let url = format!("file://{}", folder.0.path().display());
    repository.git(&["clone", "--quiet", "--depth=1", &url, "clone"]);
    crate::support::copy(mesh.0.path(), &folder.path("clone"));
    let run = repository.diff_in("clone", &[]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "(--against none); this is a shallow clone: ");
}

/// A branch or a folder of that name is not meant by accident.
#[test]
fn nothing_has_one_name() {
    let repository = Repository::committed();
    let run = repository.diff(&["--against", "none", "--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json()["against"], "nothing");
    assert_contains(&repository.diff(&["--against", "none"]).stdout, ": +12 ~0 -0 Peers.\n");
    repository.git(&["branch", "none"]);
    insta::assert_snapshot!(repository.refusal(&["--against", "none"]), @"error: --against none compares with nothing, but this is also a folder or a commit; write `./none` for the folder, or `refs/heads/none` for a branch");
    assert_eq!(repository.grade(&["--against", "refs/heads/none"]), "none");
    repository.git(&["branch", "--delete", "none"]);
    fs::create_dir(repository.folder.path("none")).unwrap();
    assert_contains(&repository.refusal(&["--against", "none"]), "write `./none`");
    // Without git.
    let run = Folder::rendered().run(&["diff", "--against", "none"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Clusters may have anything of it.
#[test]
fn a_broken_mesh_without_a_tree_is_refused() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let mesh = folder.read("mesh.yaml");
    for text in ["spec: [", "# later\n", &mesh.replace("10.1.0.0/16", "10.1.0.0/99")] {
        folder.write("mesh.yaml", text);
        repository.git(&["rm", "--quiet", "-r", "--cached", "rendered"]);
        repository.git(&["add", "mesh.yaml"]);
        repository.git(&["commit", "--quiet", "--message=a"]);
        folder.write("mesh.yaml", &mesh);
        assert_contains(
            &repository.refusal(&[]),
            "`HEAD` cannot be rendered, so its Peers are unknown; ",
        );
        repository.git(&["reset", "--quiet", "HEAD~1"]);
    }
    // A tree without a folder of a cluster shows nothing.
    folder.write("mesh.yaml", "spec: [");
    repository.git(&["rm", "--quiet", "-r", "--cached", "rendered"]);
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    folder.write("rendered/README", "later");
    repository.commit();
    folder.write("mesh.yaml", &mesh);
    assert_contains(&repository.refusal(&[]), "`HEAD` cannot be rendered");
}

#[test]
fn a_commit_without_a_mesh_has_the_peers_of_its_tree() {
    let repository = Repository::of(Folder::rendered());
    let mesh = repository.folder.read("mesh.yaml");
    repository.folder.write("mesh.yaml", "# later\n");
    repository.commit();
    repository.folder.write("mesh.yaml", &mesh);
    assert_eq!(repository.grade(&[]), "none");
    fs::remove_file(repository.folder.path("mesh.yaml")).unwrap();
    repository.commit();
    repository.folder.write("mesh.yaml", mesh);
    assert_eq!(repository.grade(&[]), "none");
}

/// Otherwise a cluster that has lost its snapshot would be a new one, which only gains.
#[test]
fn a_commit_without_a_snapshot_has_the_peers_of_its_tree() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let snapshot = folder.read("snapshots/north.json");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    repository.commit();
    folder.write("snapshots/north.json", snapshot);
    assert_eq!(repository.grade(&[]), "none");
    repository.remove_node();
    let run = repository.diff(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let note = "note: the meshes or snapshots of `HEAD` are missing, so no causes are listed\n";
    assert_eq!(run.stderr, note);
    let line = "2 of 3 targets changed compared with HEAD: +0 ~0 -2 Peers.\n";
    assert!(run.stdout.ends_with(line), "{}", run.stdout);
    assert_eq!(repository.grade(&[]), "disruptive");
}

/// As with the plugin of Argo CD: clusters keep what they got before, and that is unknown.
#[test]
fn a_commit_without_a_tree_that_cannot_be_rendered_is_refused() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let (mesh, snapshot) = (folder.read("mesh.yaml"), folder.read("snapshots/north.json"));
    for is_broken in [true, false] {
        if is_broken {
            folder.write("mesh.yaml", "spec: [");
        } else {
            fs::remove_file(folder.path("snapshots/north.json")).unwrap();
        }
        repository.commit();
        folder.write("mesh.yaml", &mesh);
        folder.write("snapshots/north.json", &snapshot);
        insta::allow_duplicates! {
            insta::assert_snapshot!(repository.refusal(&[]), @"error: `HEAD` cannot be rendered, so its Peers are unknown; compare with another commit (--against REV), with a rendered folder (--against DIR) or with the clusters (--live), or with nothing if nothing was applied yet (--against none)");
        }
    }
}

/// A folder shows no node, so nothing proves what its Peers reached.
#[test]
fn peers_that_go_count_as_lost_paths_also_without_snapshots() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    repository.remove_node();
    assert_eq!(repository.grade(&["--against", "old"]), "disruptive");
}

/// The labels of Peers and the names of folders show which cluster left.
#[test]
fn a_cluster_that_left_is_known_without_its_mesh() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let mesh = folder.read("mesh.yaml");
    folder.edit("mesh.yaml", NORTH, "");
    let with_mesh = repository.diff(&["--output", "json"]).stdout;
    let reasons = |text: &str| -> Vec<Value> {
        let changes: Value = serde_json::from_str(text).unwrap();
        let targets = changes["targets"].as_array().unwrap().iter();
        targets.map(|it| json!([it["cluster"], it["grade"], it["reasons"][0]])).collect()
    };
    let expected = reasons(&with_mesh);
    assert_eq!(expected.len(), 3, "{with_mesh}");
    let against = |name: &str| {
        let run = repository.diff(&["--against", name, "--output", "json"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    assert_eq!(reasons(&against("old")), expected);
    // A commit whose mesh is wrong, or that has none.
    folder.write("mesh.yaml", "spec: [");
    repository.commit();
    fs::remove_file(folder.path("mesh.yaml")).unwrap();
    repository.commit();
    folder.write("mesh.yaml", mesh);
    folder.edit("mesh.yaml", NORTH, "");
    assert_eq!(reasons(&against("HEAD~1")), expected);
    assert_eq!(reasons(&against("HEAD")), expected);
    // Of one cluster, its Peers are known.
    let peers = ["east", "north"].map(|it| folder.read(&format!("old/west/prod--{it}.yaml")));
    let peers = peers.join("---\n");
    let dump = |text: &str| {
        folder.write("west.yaml", text);
        let arguments = ["diff", "--peers", "west=west.yaml", "--output", "json"];
        let run = folder.run(&arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let of_west = reasons(&run.stdout).into_iter().find(|it| it[0] == "west");
        of_west.unwrap()
    };
    let of_west = expected.iter().find(|it| it[0] == "west");
    assert_eq!(Some(&dump(&peers)), of_west);
    // A label is a claim: without one, or with the name of a cluster that gives Peers, nothing shows it.
    let label = "    kilo-clustermesh.io/source-cluster: north\n";
    assert_eq!(peers.matches(label).count(), 2);
    for other in ["", &label.replace("north", "east"), &label.replace("north", "'-'")] {
        assert_eq!(dump(&peers.replace(label, other))[1], "disruptive", "{other}");
    }
}

/// Without a label of a source, Peers in other folders are those of something else.
#[test]
fn a_folder_that_is_of_no_cluster_is_not_one_that_left() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    let peers = folder.read("old/east/prod--west.yaml");
    let lines = peers.lines().filter(|it| !it.contains("source-cluster"));
    folder.write("old/laptops/peers.yaml", lines.collect::<Vec<_>>().join("\n"));
    folder.write("old/Notes/peers.yaml", &peers);
    folder.write("old/more/broken.yaml", "a: [");
    assert_eq!(repository.grade(&["--against", "old"]), "none");
    folder.write("old/laptops/peers.yaml", peers);
    let text = repository.diff(&["--against", "old"]).stdout;
    assert_contains(&text, "laptops");
    assert_eq!(repository.grade(&["--against", "old"]), "destructive");
}

#[test]
fn a_folder_that_is_not_rendered_is_refused() {
    let repository = Repository::committed();
    for folder in ["snapshots", ".", ".git"] {
        let stderr = repository.refusal(&["--against", folder]);
        let reason = format!("`{folder}` is not a rendered folder");
        assert_contains(&stderr, &reason);
    }
    // So is an empty one, also if clusters have Peers.
    fs::create_dir(repository.folder.path("empty")).unwrap();
    insta::assert_snapshot!(repository.refusal(&["--against", "empty"]), @"error: `empty` is not a rendered folder: it has no folder of a cluster; compare with another commit (--against REV), with a rendered folder (--against DIR) or with the clusters (--live), or with nothing if nothing was applied yet (--against none)");
}

#[test]
fn names_what_is_not_a_commit() {
    let repository = Repository::committed();
    for path in ["nodir/", "mesh.yaml"] {
        let refusal = repository.refusal(&["--against", path]);
        assert!(refusal.trim_end().ends_with("is neither a commit nor a folder"), "{refusal}");
    }
    insta::assert_snapshot!(repository.refusal(&["--against", "mian"]), @"error: `mian` is not a commit of this repository; branches here: main");
    for range in ["HEAD...main", "main..HEAD"] {
        let stderr = repository.refusal(&["--against", range]);
        let remedy = "is not one commit; write `main...` for the commit at which the current branch left `main`\n";
        assert_eq!(stderr, format!("error: `{range}` {remedy}"));
    }
    // Without a log, as in a new clone, git ends at these.
    repository.git(&["reflog", "expire", "--expire=all", "--all"]);
    for name in ["HEAD@{1}", "HEAD@{yesterday}", "@{upstream}"] {
        let stderr = repository.refusal(&["--against", name]);
        let start = format!("error: `{name}` is not a commit of this repository: ");
        assert!(stderr.starts_with(&start), "{stderr}");
        assert!(!stderr.contains("git fsck"), "{stderr}");
    }
    for name in [
        "--output=x",
        "-x",
        "--",
        "--end-of-options",
        "HEAD:mesh.yaml",
        "HEAD^{blob}",
        "HEAD^{tree}",
        "HEAD\nHEAD",
        "HEAD missing",
        "0123456789012345678901234567890123456789",
        "...",
        "a\u{1b}[31mb\u{202e}",
        "::error::x",
        "../../../etc/passwd",
        "$(touch x)",
        "",
    ] {
        let stderr = repository.refusal(&[&format!("--against={name}")]);
        assert!(stderr.contains("error"), "{name}: {stderr}");
    }
    assert!(!repository.folder.path("x").exists());
}

#[test]
fn a_name_of_a_commit_and_a_folder_is_ambiguous() {
    let repository = Repository::committed();
    repository.git(&["branch", "rendered"]);
    insta::assert_snapshot!(repository.refusal(&["--against", "rendered"]), @"error: `rendered` is a commit and a folder; write `./rendered` for the folder, or `refs/heads/rendered` for a branch");
    assert_eq!(repository.grade(&["--against", "./rendered"]), "none");
    assert_eq!(repository.grade(&["--against", "refs/heads/rendered"]), "none");
}

#[test]
fn a_shallow_clone_without_the_commit_names_the_cure() {
    let repository = Repository::committed();
    repository.git(&["switch", "--quiet", "--create", "topic"]);
    repository.commit();
    repository.commit();
    let url = format!("file://{}", repository.folder.0.path().display());
    repository.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        "--branch=topic",
        "--no-single-branch",
        &url,
        "clone",
    ]);
    let refusal = |name| {
        let run = repository.diff_in("clone", &["--against", name]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        run.stderr
    };
    insta::assert_snapshot!(refusal("origin/main..."), @"error: `origin/main` and HEAD have no common commit; this is a shallow clone: fetch all history first (`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout)");
    insta::assert_snapshot!(refusal("HEAD~1"), @"error: `HEAD~1` is not a commit of this repository; this is a shallow clone: fetch all history first (`git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout)");
    repository.git_in("clone", &["fetch", "--quiet", "--unshallow"]);
    let run = repository.diff_in("clone", &["--against", "origin/main..."]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn needs_git_and_a_repository() {
    let repository = Repository::of(Folder::rendered());
    insta::assert_snapshot!(repository.refusal(&[]), @"error: the repository has no commit yet; compare with a rendered folder (--against DIR), or with nothing if nothing was applied yet (--against none)");
    let empty = tempfile::tempdir().unwrap();
    let path = [("PATH", empty.path().to_str().unwrap())];
    let run = repository.diff_with(&path, &[]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: `git` was not found in PATH; install git; compare with a rendered folder (--against DIR), or with nothing if nothing was applied yet (--against none)");
    // Where no commit is asked for, no git is needed.
    let run = repository.diff_with(&path, &["--against", "rendered"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = Folder::rendered().run(&["diff"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"error: this folder is not in a git repository; compare with a rendered folder (--against DIR), or with nothing if nothing was applied yet (--against none)");
}

#[test]
fn a_repository_of_another_user_is_refused_as_by_git() {
    let repository = Repository::committed();
    let run = repository.diff_with(&[("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")], &[]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "safe.directory");
}

#[test]
fn a_bare_repository_has_worktrees() {
    let repository = Repository::committed();
    repository.git(&["clone", "--quiet", "--bare", ".", "bare"]);
    repository.git_in("bare", &["worktree", "add", "--quiet", "../tree", "main"]);
    let run = repository.diff_in("tree", &["--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    repository.git_in("tree", &["rm", "--quiet", "-r", "."]);
    // A bare repository inside of a checkout has no working tree.
    crate::support::copy(Folder::rendered().0.path(), &repository.folder.path("bare"));
    let run = repository.diff_in("bare", &[]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    insta::assert_snapshot!(run.stderr, @"error: this is a bare repository, which has no working tree; compare with a rendered folder (--against DIR), or with nothing if nothing was applied yet (--against none)");
}

/// Names of objects have 64 digits there.
#[test]
fn a_repository_with_sha_256_is_read() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::rendered();
    let repository = Repository { folder, home };
    repository.git(&["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
    repository.commit();
    assert_eq!(repository.git(&["rev-parse", "HEAD"]).trim().len(), 64);
    assert_eq!(repository.grade(&[]), "none");
    assert_eq!(repository.grade(&["--against", "main..."]), "none");
    repository.remove_node();
    assert_eq!(repository.grade(&[]), "cleanup");
}

#[test]
fn replaced_objects_are_not_read() {
    let repository = Repository::committed();
    let old = repository.git(&["rev-parse", "HEAD:snapshots/west.json"]);
    repository.folder.keep("west", &[node(3, 1)]);
    let new = repository.git(&["hash-object", "-w", "snapshots/west.json"]);
    repository.git(&["replace", old.trim(), new.trim()]);
    assert_ne!(repository.grade(&[]), "none");
}

/// All files under a folder.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walk(folder).into_iter();
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// What a repository's config starts where git looks at a working tree, fetches or prints.
#[test]
fn nothing_in_the_repository_is_run_and_nothing_is_written() {
    let repository = Repository::committed();
    let trap = repository.home.path().join("trap");
    let program = repository.home.path().join("program");
    fs::write(&program, format!("#!/bin/sh\necho x >> {}\n", trap.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let program = program.to_str().unwrap();
    for name in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "diff.external",
        "diff.x.textconv",
        "filter.x.smudge",
        "filter.x.clean",
        "credential.helper",
        "alias.cat-file",
        "pager.cat-file",
    ] {
        repository.git(&["config", name, program]);
    }
    repository.git(&["config", "extensions.partialClone", "origin"]);
    repository.git(&["config", "core.repositoryFormatVersion", "1"]);
    repository.git(&["config", "remote.origin.promisor", "true"]);
    repository.git(&["config", "remote.origin.url", &format!("ext::{program}")]);
    repository.git(&["config", "protocol.ext.allow", "always"]);
    repository.folder.write(".gitattributes", "* filter=x diff=x\n");
    let hooks = repository.folder.path(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        fs::copy(program, hooks.join(hook)).unwrap();
    }
    let before = content(&repository.folder.path(".git"));
    assert_eq!(repository.grade(&[]), "none");
    assert_eq!(repository.grade(&["--against", "HEAD..."]), "none");
    let stderr = repository.refusal(&["--against", "0123456789012345678901234567890123456789"]);
    assert_contains(&stderr, "is not a commit");
    // An object that a partial clone lacks.
    let id = repository.git(&["rev-parse", "HEAD:snapshots/west.json"]);
    let (folder, file) = id.trim().split_at(2);
    let object = repository.folder.path(&format!(".git/objects/{folder}/{file}"));
    let text = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let stderr = repository.refusal(&[]);
    assert_contains(&stderr, "snapshots/west.json");
    fs::write(&object, text).unwrap();
    let after = content(&repository.folder.path(".git"));
    assert!(before == after, "git has written something");
    assert!(!trap.exists(), "{}", fs::read_to_string(trap).unwrap());
}

#[test]
fn a_damaged_repository_is_an_error() {
    let repository = Repository::committed();
    for path in ["HEAD:snapshots/west.json", "HEAD:rendered/west", "HEAD:rendered"] {
        let id = repository.git(&["rev-parse", path]);
        let (folder, file) = id.trim().split_at(2);
        let object = repository.folder.path(&format!(".git/objects/{folder}/{file}"));
        let content = fs::read(&object).unwrap();
        fs::remove_file(&object).unwrap();
        fs::write(&object, "x").unwrap();
        let stderr = repository.refusal(&[]);
        assert!(stderr.contains("cannot"), "{path}: {stderr}");
        fs::write(&object, content).unwrap();
    }
    assert_eq!(repository.grade(&[]), "none");
}

#[test]
fn a_file_of_a_commit_has_the_limits_of_one_on_disk() {
    let repository = Repository::committed();
    let mesh = repository.folder.read("mesh.yaml");
    let large = format!("{mesh}#{}\n", "x".repeat(8 << 20));
    repository.folder.write("mesh.yaml", large);
    repository.commit();
    repository.folder.write("mesh.yaml", mesh);
    let stderr = repository.refusal(&[]);
    assert_contains(&stderr, "it is larger than the limit of 8388608 bytes");
}

#[test]
fn files_outside_of_the_repository_are_in_no_commit() {
    let repository = Repository::committed();
    let other = Folder::mesh();
    let path = other.path("mesh.yaml");
    let stderr = repository.refusal(&["--mesh", path.to_str().unwrap()]);
    assert_contains(&stderr, "so no commit has it");
}

/// The files of the working folder have the same names.
#[test]
fn mistakes_in_a_commit_are_not_those_of_the_folder() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    folder.write("clustermesh.yaml", format!("{config}foo: 1\n"));
    repository.commit();
    let stderr = repository.refusal(&[]);
    assert!(!stderr.contains("note: this"), "{stderr}");
    folder.write("clustermesh.yaml", config);
    let stderr = repository.refusal(&[]);
    assert_contains(&stderr, "unknown field `foo`");
    assert_contains(
        &stderr,
        "note: this is about the files of HEAD; compare with another commit\n",
    );
}

/// With the plugin of Argo CD, clusters may have Peers of a commit without a tree.
#[test]
fn a_commit_without_the_tree_that_is_there_now_is_refused() {
    let repository = Repository::of(Folder::mesh());
    repository.commit();
    assert_eq!(repository.folder.run(&["render"]).code, 0);
    insta::assert_snapshot!(repository.refusal(&[]), @"error: `HEAD` has no rendered tree, and the plugin of Argo CD may have rendered it, so its Peers are unknown; compare with another commit (--against REV), with a rendered folder (--against DIR) or with the clusters (--live), or with nothing if nothing was applied yet (--against none)");
    assert_ne!(repository.grade(&["--against", "none"]), "none");
}
