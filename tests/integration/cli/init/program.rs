//! The program that the CI jobs build: one commit, and nothing if none is named.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_yaml::Value;

use crate::cli::Folder;
use crate::support::{assert_contains, project};

/// Runs git in a repository.
fn git(folder: &Folder, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder.path("."))
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository of a small program named as ours, and its commit.
fn program() -> (Folder, String) {
    let folder = Folder::empty();
    let manifest = "[package]\nname = \"clustermesh\"\nversion = \"9.9.9\"\nedition = \"2021\"\n[features]\ndefault = []\n";
    folder.write("Cargo.toml", manifest);
    let lock = "version = 4\n[[package]]\nname = \"clustermesh\"\nversion = \"9.9.9\"\n";
    folder.write("Cargo.lock", lock);
    folder.write("src/main.rs", "fn main() { println!(\"built\") }\n");
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["add", "--all"]);
    git(&folder, &["commit", "--quiet", "--message=a"]);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    (folder, commit)
}

/// The steps that install the program, each with the values at the top of its file.
fn steps(folder: &Folder) -> Vec<(String, Value)> {
    let github = ["check", "refresh"].map(|it| {
        let text = folder.read(&format!(".github/workflows/clustermesh-{it}.yml"));
        let workflow: Value = serde_yaml::from_str(&text).unwrap();
        let steps = workflow["jobs"][it]["steps"].as_sequence().unwrap();
        let scripts = steps.iter().filter_map(|it| it["run"].as_str());
        (installs(scripts), workflow["env"].clone())
    });
    let gitlab: Value = serde_yaml::from_str(&folder.read(".gitlab-ci.yml")).unwrap();
    let gitlab = ["check", "refresh"].map(|it| {
        let script = gitlab[format!("clustermesh-{it}")]["script"].as_sequence().unwrap();
        let lines = script.iter().filter_map(|it| it.as_str());
        (installs(lines), gitlab["variables"].clone())
    });
    github.into_iter().chain(gitlab).collect()
}

fn installs<'a>(mut scripts: impl Iterator<Item = &'a str>) -> String {
    scripts.find(|it| it.contains("cargo install")).unwrap().to_owned()
}

/// Runs a step with the values of its file.
fn run(step: &str, values: &Value, target: &Path) -> Output {
    let values = values.as_mapping().unwrap().iter();
    Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", step])
        .envs(values.map(|(key, value)| (key.as_str().unwrap(), value.as_str().unwrap())))
        .env("CARGO_HOME", target)
        .env("CARGO_TARGET_DIR", target.join("build"))
        .output()
        .unwrap()
}

#[test]
fn jobs_build_the_commit_that_is_named() {
    let (program, commit) = program();
    // What is committed later is not built.
    program.write("src/main.rs", "compile_error!(\"later\");\n");
    git(&program, &["commit", "--quiet", "--all", "--message=b"]);
    let repository = program.path(".").canonicalize().unwrap();
    let source = format!("--program-source=file://{}@{commit}", repository.display());
    let folder = Folder::empty();
    for service in ["github", "gitlab"] {
        let run = folder.run(&["init", "--ci", service, &source]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stdout.contains("--program-source"), "{}", run.stdout);
    }
    for (step, values) in steps(&folder) {
        let target = tempfile::tempdir().unwrap();
        let output = run(&step, &values, target.path());
        assert!(output.status.success(), "{output:?}");
        let built = Command::new(target.path().join("bin/clustermesh")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&built.stdout), "built\n");
    }
}

#[test]
fn without_a_commit_jobs_fetch_nothing() {
    let folder = Folder::empty();
    for service in ["github", "gitlab"] {
        let run = folder.run(&["init", "--ci", service]);
        assert_contains(&run.stdout, "--program-source");
    }
    for (step, values) in steps(&folder) {
        let target = tempfile::tempdir().unwrap();
        let output = run(&step, &values, target.path());
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stdout);
        assert_contains(&said, "CLUSTERMESH_REVISION at the top of this file");
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0, "it called cargo");
    }
}

#[test]
fn a_second_run_proposes_only_what_is_missing() {
    let folder = Folder::empty();
    let source = format!("--program-source=https://git.example.com/a@{}", "a1".repeat(20));
    let arguments = ["init", "--gitops=flux", "--ci=github"];
    assert_eq!(folder.run(&arguments).code, 0);
    for (arguments, asks) in
        [(arguments.to_vec(), false), ([arguments.as_slice(), &[&source]].concat(), true)]
    {
        let run = folder.run(&arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout.contains("at the top of the CI jobs"), asks, "{}", run.stdout);
        for done in ["Add to `outputs`", "Put your clusters", "Take snapshots"] {
            assert!(!run.stdout.contains(done), "{}", run.stdout);
        }
    }
    let run = folder.run(&["init", &source]);
    assert_eq!(run.code, 2, "without jobs it has no effect");
}

#[test]
fn a_tag_is_no_source() {
    let folder = Folder::empty();
    let run = folder.run(&["init", "--ci=github", "--program-source=https://git.example.com/a@v1"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "`v1` is not the full hash of a commit");
}

/// A job that installs a name from a registry runs the program of the person who has registered it.
#[test]
fn nothing_is_installed_by_a_name_of_ours_in_a_registry() {
    let folders = ["templates/init", "templates/gallery", "docs/how-to", "docs/reference"];
    let listed = folders.iter().flat_map(|it| fs::read_dir(project().join(it)).unwrap());
    let files = listed.map(|it| it.unwrap().path()).filter(|it| it.is_file());
    let more = ["README.md", "action.yml", "docs/tutorial.md"].map(|it| project().join(it));
    for path in files.chain(more) {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|it| it.contains("cargo install")) {
            assert!(
                line.contains("--git \"$CLUSTERMESH_REPOSITORY\" --rev")
                    || line.contains("--path ."),
                "{}: {line}",
                path.display()
            );
        }
    }
}

#[test]
fn the_job_with_the_kubeconfig_runs_a_pinned_image_and_asks_for_few_rights() {
    let folder = Folder::empty();
    for service in ["github", "gitlab"] {
        assert_eq!(folder.run(&["init", "--ci", service]).code, 0);
    }
    let gitlab: Value = serde_yaml::from_str(&folder.read(".gitlab-ci.yml")).unwrap();
    let image = gitlab[".clustermesh"]["image"].as_str().unwrap();
    let (_, digest) = image.split_once("@sha256:").unwrap();
    assert_eq!(digest.len(), 64, "{image}");
    for (name, job) in gitlab.as_mapping().unwrap() {
        assert!(job["image"].is_null() || name == ".clustermesh", "{name:?}");
    }
    let refresh = folder.read(".github/workflows/clustermesh-refresh.yml");
    let refresh: Value = serde_yaml::from_str(&refresh).unwrap();
    let steps = refresh["jobs"]["refresh"]["steps"].as_sequence().unwrap();
    let app = steps.iter().find(|it| it["id"] == "app").unwrap();
    let keys = app["with"].as_mapping().unwrap().keys();
    let mut rights: Vec<&str> = keys.filter_map(Value::as_str).collect();
    rights.retain(|it| it.starts_with("permission-"));
    assert_eq!(rights, ["permission-contents", "permission-pull-requests"]);
}
