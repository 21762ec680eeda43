//! The program that the CI jobs build: one commit, and nothing if none is named.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_yaml::Value;
use tempfile::TempDir;

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

/// The jobs that build the program, with the service that runs them.
const BUILDING: [(&str, &str); 6] = [
    (CHECK, "check"),
    (CHECK, "controls"),
    (REFRESH, "refresh"),
    (GITLAB, "clustermesh-check"),
    (GITLAB, "clustermesh-controls"),
    (GITLAB, "clustermesh-refresh"),
];
const CHECK: &str = ".github/workflows/clustermesh-check.yml";
const REFRESH: &str = ".github/workflows/clustermesh-refresh.yml";
const GITLAB: &str = ".gitlab-ci.yml";

/// A job, with folders instead of the runner and the caches of its service.
struct Job {
    file: Value,
    /// The job. On GitLab, with what it extends.
    content: Value,
    is_on_github: bool,
    runner: TempDir,
}

/// The branch for which a job runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Branch {
    Default,
    /// One of a pull request.
    Other,
}

impl Job {
    fn new(folder: &Folder, (path, name): (&str, &str)) -> Self {
        let file: Value = serde_yaml::from_str(&folder.read(path)).unwrap();
        let is_on_github = path != GITLAB;
        let content = if is_on_github { file["jobs"][name].clone() } else { extended(&file, name) };
        Self { file, content, is_on_github, runner: tempfile::tempdir().unwrap() }
    }

    /// Runs the steps that fetch, build and keep the program, on a new runner.
    fn run(&mut self, branch: Branch, caches: &Path) -> Output {
        self.runner = tempfile::tempdir().unwrap();
        self.put("bin/cargo", COUNTING);
        if self.is_on_github {
            self.run_on_github(branch, caches)
        } else {
            self.run_on_gitlab(branch, caches)
        }
    }

    fn run_on_github(&self, branch: Branch, caches: &Path) -> Output {
        let steps = self.content["steps"].as_sequence().unwrap();
        let end = steps.iter().rposition(is_about_program).unwrap();
        let (mut key, mut is_hit) = (String::new(), false);
        for step in steps[..=end].iter().filter(|it| is_about_program(it)) {
            let is_default = branch == Branch::Default;
            let is_wanted = match step["if"].as_str() {
                None => true,
                Some("steps.cache.outputs.cache-hit != 'true'") => !is_hit,
                Some(
                    "steps.cache.outputs.cache-hit != 'true' && github.ref_name == github.event.repository.default_branch",
                ) => !is_hit && is_default,
                Some(other) => panic!("{other}"),
            };
            if !is_wanted {
                continue;
            }
            let with = &step["with"];
            let action = step["uses"].as_str().map(|it| it.split_once('@').unwrap().0);
            if action.is_some() {
                assert_eq!(step["with"]["key"], "${{ steps.program.outputs.key }}");
            }
            let kept = caches.join(&key);
            let path = || self.runner.path().join(with["path"].as_str().unwrap().replace('~', "."));
            match action {
                Some("actions/cache/restore") => {
                    assert_eq!(step["id"], "cache");
                    is_hit = copied(&kept, &path());
                }
                Some("actions/cache/save") => assert!(copied(&path(), &kept)),
                Some(other) => panic!("{other}"),
                None => {
                    let output = self.script(step["run"].as_str().unwrap());
                    if step["id"] == "program" {
                        let named = fs::read_to_string(self.runner.path().join("output")).unwrap();
                        named.strip_prefix("key=").unwrap().trim().clone_into(&mut key);
                    }
                    if !output.status.success() {
                        return output;
                    }
                }
            }
        }
        self.script("")
    }

    fn run_on_gitlab(&self, branch: Branch, caches: &Path) -> Output {
        let found = self.caches(branch);
        let folder = self.runner.path().join(".clustermesh");
        for (key, _) in found.iter().filter(|it| it.1.contains("pull")) {
            copied(&caches.join(key), &folder);
        }
        let output = self.script(&self.installing());
        for (key, _) in found.iter().filter(|it| output.status.success() && it.1.contains("push")) {
            copied(&folder, &caches.join(key));
        }
        output
    }

    /// Returns the caches of a job on GitLab by their whole keys, each with its policy. Protected branches have their own,
    /// unless they share one.
    fn caches(&self, branch: Branch) -> Vec<(String, String)> {
        let cache = &self.content["cache"];
        let caches = cache.as_sequence().cloned().unwrap_or_else(|| vec![cache.clone()]);
        let rules = self.content["rules"].as_sequence().unwrap().iter();
        let mut rules = rules.filter(|it| {
            it["if"].as_str().unwrap().contains("merge_request_event") == (branch == Branch::Other)
        });
        let Some(rule) = rules.next() else {
            return Vec::new();
        };
        let value = |text: &str| match text.strip_prefix('$') {
            None => text.to_owned(),
            Some(name) => {
                let own = rule["variables"].get(name);
                own.unwrap_or(&self.content["variables"][name]).as_str().unwrap().to_owned()
            }
        };
        let revision = self.file["variables"]["CLUSTERMESH_REVISION"].as_str().unwrap();
        let caches = caches.iter().map(|it| {
            assert_eq!(it["paths"], serde_yaml::from_str::<Value>("[.clustermesh/]").unwrap());
            let key = it["key"].as_str().unwrap().replace("$CLUSTERMESH_REVISION", revision);
            let is_protected = branch == Branch::Default && it["unprotect"] != true;
            let suffix = if is_protected { "protected" } else { "non_protected" };
            (format!("{key}-{suffix}"), it["policy"].as_str().map_or("pull-push".into(), value))
        });
        caches.collect()
    }

    /// Returns the script that builds the program.
    fn installing(&self) -> String {
        let scripts: Vec<&str> = if self.is_on_github {
            let steps = self.content["steps"].as_sequence().unwrap().iter();
            steps.filter_map(|it| it["run"].as_str()).collect()
        } else {
            let lists = ["before_script", "script"].map(|it| self.content[it].as_sequence());
            lists.into_iter().flatten().flatten().filter_map(Value::as_str).collect()
        };
        scripts.into_iter().find(|it| it.contains("cargo install")).unwrap().to_owned()
    }

    /// Runs a script with the values of its file, and then the program, if it is there.
    fn script(&self, script: &str) -> Output {
        let runner = self.runner.path();
        let values = self.file[if self.is_on_github { "env" } else { "variables" }].as_mapping();
        let values = values.unwrap().iter();
        let path =
            format!("{0}/bin:{0}/.cargo/bin:{1}", runner.display(), std::env::var("PATH").unwrap());
        let script = format!("{script}\nif command -v clustermesh; then clustermesh; fi");
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &script])
            .current_dir(runner)
            .envs(values.map(|(key, value)| (key.as_str().unwrap(), value.as_str().unwrap())))
            .env_remove("CARGO_NET_OFFLINE")
            .env("PATH", path)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_HOME", runner.join(".cargo"))
            .env("CARGO_TARGET_DIR", runner.join("build"))
            .env("CI_PROJECT_DIR", runner)
            .env("GITHUB_OUTPUT", runner.join("output"))
            .output()
            .unwrap()
    }

    /// Returns whether the last run called cargo.
    fn has_built(&self) -> bool {
        self.runner.path().join("calls").exists()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.runner.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A cargo that writes down its calls.
const COUNTING: &str = "#!/bin/sh
echo \"$*\" >> \"$CI_PROJECT_DIR/calls\"
exec \"$CARGO\" \"$@\"
";

/// Returns whether a step on GitHub fetches, builds or keeps the program.
fn is_about_program(step: &Value) -> bool {
    let is_cache = step["uses"].as_str().is_some_and(|it| it.starts_with("actions/cache/"));
    is_cache
        || step["id"] == "program"
        || step["run"].as_str().is_some_and(|it| it.contains("cargo install"))
}

/// Returns a job on GitLab with the values of those that it extends.
fn extended(file: &Value, name: &str) -> Value {
    let mut job = file[name].as_mapping().unwrap().clone();
    if let Some(base) = file[name]["extends"].as_str() {
        for (key, value) in extended(file, base).as_mapping().unwrap() {
            job.entry(key.clone()).or_insert(value.clone());
        }
    }
    Value::Mapping(job)
}

/// Copies a file or a folder, if it is there.
fn copied(from: &Path, to: &Path) -> bool {
    if !from.exists() {
        return false;
    }
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let mut copy = Command::new("cp");
    assert!(copy.args(["-RT"]).args([from, to]).status().unwrap().success());
    true
}

/// A repository with the jobs of both services.
fn with_jobs(arguments: &[&str]) -> Folder {
    let folder = Folder::empty();
    for service in ["github", "gitlab"] {
        let run = folder.run(&[&["init", "--ci", service], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout.contains("--program-source"), arguments.is_empty());
    }
    folder
}

/// A repository with the jobs of both services, and the repository of the program that they build.
fn with_program() -> (Folder, Folder) {
    let (program, commit) = program();
    let repository = program.path(".").canonicalize().unwrap();
    let source = format!("--program-source=file://{}@{commit}", repository.display());
    (with_jobs(&[&source]), program)
}

#[test]
fn jobs_build_the_commit_that_is_named() {
    let (folder, program) = with_program();
    // What is committed later is not built.
    program.write("src/main.rs", "compile_error!(\"later\");\n");
    git(&program, &["commit", "--quiet", "--all", "--message=b"]);
    for name in BUILDING {
        let mut job = Job::new(&folder, name);
        // Without a cache.
        let output = job.run(Branch::Other, Path::new("/nonexistent"));
        assert!(output.status.success(), "{output:?}");
        assert!(job.has_built(), "{name:?}");
        assert!(String::from_utf8_lossy(&output.stdout).ends_with("built\n"), "{output:?}");
    }
}

#[test]
fn the_second_run_builds_nothing() {
    let (folder, _program) = with_program();
    for (name, is_full) in BUILDING.into_iter().zip([false, false, true].repeat(2)) {
        let caches = tempfile::tempdir().unwrap();
        let mut job = Job::new(&folder, name);
        let mut builds = |branch| {
            let output = job.run(branch, caches.path());
            assert!(output.status.success(), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stdout).ends_with("built\n"), "{output:?}");
            job.has_built()
        };
        // A pull request keeps nothing.
        assert!(builds(Branch::Other) && builds(Branch::Other), "{name:?}");
        assert_eq!(fs::read_dir(caches.path()).unwrap().count(), 0);
        // The program of the checks comes from the job that also runs for the default branch.
        let mut saving = Job::new(&folder, if is_full { name } else { checking(name) });
        assert!(saving.run(Branch::Default, caches.path()).status.success());
        assert!(saving.has_built());
        assert!(saving.run(Branch::Default, caches.path()).status.success());
        assert!(!saving.has_built(), "{name:?}");
        if !is_full {
            assert!(!builds(Branch::Other), "{name:?}");
        }
    }
}

/// Returns the job of the same file that checks the default branch.
fn checking((path, _): (&'static str, &'static str)) -> (&'static str, &'static str) {
    (path, if path == GITLAB { "clustermesh-check" } else { "check" })
}

/// The job with the kubeconfigs has a cache of its own, and neither it nor the default branch reads what others can write.
#[test]
fn no_pull_request_writes_what_the_default_branch_reads() {
    let (folder, _program) = with_program();
    for (_, name) in BUILDING.into_iter().filter(|it| it.0 == GITLAB) {
        let job = Job::new(&folder, (GITLAB, name));
        let of = |branch, policy: &str| -> Vec<String> {
            let caches = job.caches(branch).into_iter().filter(|it| it.1.contains(policy));
            caches.map(|it| it.0).collect()
        };
        assert!(of(Branch::Default, "pull").iter().all(|it| it.ends_with("-protected")), "{name}");
        let tag = "rust:1.95.0-slim-bookworm@";
        assert!(job.content["image"].as_str().unwrap().starts_with(tag));
        let tag = tag.replace([':', '@'], "-");
        assert!(of(Branch::Default, "p").iter().all(|it| it.contains(&tag)), "{name}");
        if name == "clustermesh-refresh" {
            assert_eq!(job.content["cache"]["unprotect"], Value::Null);
        } else {
            assert!(of(Branch::Other, "push").is_empty(), "{name}");
        }
    }
    // GitHub gives the default branch only what was saved for it.
    let check: Value = serde_yaml::from_str(&folder.read(CHECK)).unwrap();
    let triggers = check["on"].as_mapping().unwrap().keys();
    assert_eq!(triggers.collect::<Vec<_>>(), ["pull_request", "push"]);
}

#[test]
fn without_a_commit_jobs_fetch_nothing() {
    let folder = with_jobs(&[]);
    for name in BUILDING {
        let mut job = Job::new(&folder, name);
        let output = job.run(Branch::Other, Path::new("/nonexistent"));
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stdout);
        assert_contains(&said, "CLUSTERMESH_REVISION at the top of this file");
        assert!(!job.has_built());
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
