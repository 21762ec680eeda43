//! Commits of a stranger: `diff` reads nothing outside of them, and shows nothing of foreign files.

use super::*;
use crate::cli::diff::Repository;

/// Inputs that a commit holds.
const INPUTS: [&str; 4] =
    ["mesh.yaml", "clustermesh.yaml", "snapshots/east.json", "rendered/east/prod--west.yaml"];

/// Commits another file instead of an input, and restores the input.
fn commit(repository: &Repository, input: &str, replace: impl FnOnce(&Path)) {
    let path = repository.folder.path(input);
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    replace(&path);
    repository.commit();
    fs::remove_file(&path).unwrap();
    fs::write(&path, text).unwrap();
}

fn committed() -> Repository {
    let repository = Repository::committed();
    repository
        .folder
        .write("clustermesh.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n");
    repository.git(&["config", "remote.origin.url", &format!("https://x:{SECRET}@b.example")]);
    repository
}

#[test]
fn nothing_of_a_foreign_file_is_shown() {
    let repository = committed();
    for (number, text) in foreign().iter().enumerate() {
        let input = INPUTS[number % INPUTS.len()];
        commit(&repository, input, |path| fs::write(path, text).unwrap());
        let format = ["human", "markdown", "json"][number % 3];
        assert_silent(&repository.diff(&["--output", format]));
    }
}

#[test]
fn links_lead_nowhere_else() {
    let repository = committed();
    let outside = repository.home.path().join("credentials");
    fs::write(&outside, SECRET).unwrap();
    let large = "x/".repeat(2000);
    let outside = outside.to_str().unwrap();
    let targets = [outside, "../.git/config", "/proc/self/environ", &large];
    for (target, input) in targets.iter().zip(INPUTS) {
        commit(&repository, input, |path| symlink(target, path).unwrap());
        assert_silent(&repository.diff(&[]));
    }
    for target in [outside, ".git/config", "/proc/kmsg", &large] {
        commit(&repository, "mesh.yaml", |path| {
            symlink(target, path).unwrap();
        });
        let stderr = repository.refusal(&[]);
        assert!(!stderr.contains(SECRET), "{stderr}");
    }
}

#[test]
fn paths_of_its_config_lead_nowhere_else() {
    let repository = committed();
    for fields in [
        "meshes: [../mesh.yaml]",
        "meshes: [/etc]",
        "meshes: [.git/config]",
        "meshes: ['docs/../../x']",
        "snapshots: /proc/self",
        "snapshots: .git",
        "rendered: /tmp",
        "rendered: .git",
        "expectations: /proc/kmsg",
    ] {
        let text = format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\n{fields}\n");
        commit(&repository, "clustermesh.yaml", |path| {
            fs::write(path, text).unwrap();
        });
        let run = repository.diff(&[]);
        assert_silent(&run);
        if fields.starts_with("meshes") {
            assert_eq!(run.code, 2, "{fields}: {}", run.stdout);
        }
    }
}

/// Names that git's own commands never write, and what they accept only in a file.
#[test]
fn a_tree_with_names_of_a_stranger_is_refused() {
    let repository = committed();
    let blob = repository.git(&["rev-parse", "HEAD:mesh.yaml"]);
    let bytes: Vec<u8> =
        (0..40).step_by(2).map(|it| u8::from_str_radix(&blob[it..it + 2], 16).unwrap()).collect();
    for name in ["..", ".git", ".GIT", "a/b", ""] {
        let tree = [format!("100644 {name}\0").as_bytes(), &bytes].concat();
        repository.folder.write("tree", tree);
        let tree = ["hash-object", "-t", "tree", "-w", "--literally", "tree"];
        let tree = repository.git(&tree);
        let commit = repository.git(&["commit-tree", "-m", "a", tree.trim()]);
        let stderr = repository.refusal(&["--against", commit.trim()]);
        assert!(stderr.contains("wrong name"), "{name}: {stderr}");
    }
}

/// Submodules, folders and large files where files are expected.
#[test]
fn something_else_than_a_file_is_not_read() {
    let repository = committed();
    let head = repository.git(&["rev-parse", "HEAD"]);
    let mesh = repository.folder.read("mesh.yaml");
    let submodule = format!("160000,{},mesh.yaml", head.trim());
    repository.git(&["rm", "--quiet", "--cached", "mesh.yaml"]);
    repository.git(&["update-index", "--add", "--cacheinfo", &submodule]);
    repository.git(&["commit", "--quiet", "--message=a"]);
    repository.refusal(&[]);
    repository.git(&["rm", "--quiet", "--cached", "mesh.yaml"]);
    fs::remove_file(repository.folder.path("mesh.yaml")).unwrap();
    repository.folder.write("mesh.yaml/a/b", SECRET);
    repository.commit();
    fs::remove_dir_all(repository.folder.path("mesh.yaml")).unwrap();
    repository.folder.write("mesh.yaml", mesh);
    assert_silent(&repository.diff(&[]));
    // A link that is too long is not followed.
    let long = repository.folder.path("long");
    fs::write(&long, "x".repeat(9 << 20)).unwrap();
    let blob = repository.git(&["hash-object", "-w", "long"]);
    fs::remove_file(long).unwrap();
    repository.commit();
    let link = format!("120000,{},mesh.yaml", blob.trim());
    repository.git(&["update-index", "--add", "--cacheinfo", &link]);
    repository.git(&["commit", "--quiet", "--message=a"]);
    let stderr = repository.refusal(&[]);
    assert!(stderr.len() < 1000, "{stderr}");
}

/// Both are files below `.git`, which change what a commit means.
#[test]
fn grafts_and_alternates_change_no_commit() {
    let repository = Repository::committed();
    repository.git(&["switch", "--quiet", "--create", "topic"]);
    repository.remove_node();
    repository.commit();
    let grade = repository.grade(&["--against", "main..."]);
    assert_ne!(grade, "none");
    let head = repository.git(&["rev-parse", "HEAD"]);
    let main = repository.git(&["rev-parse", "main"]);
    // As if `main` came after the branch.
    let graft = format!("{} {}\n{}\n", main.trim(), head.trim(), head.trim());
    repository.folder.write(".git/info/grafts", graft);
    assert_eq!(repository.grade(&["--against", "main..."]), grade);
    let alternates = "/proc/self/fd\n../../../nowhere\n\"\\u{1b}\n";
    repository.folder.write(".git/objects/info/alternates", alternates);
    assert_eq!(repository.grade(&["--against", "main"]), grade);
}
