//! The scripts of the CI jobs, run with a `gh` that only writes down what it is asked for.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use serde_json::json;
use serde_yaml::Value;
use tempfile::TempDir;

use crate::cli::{Folder, node};
use crate::support::{assert_contains, project};

const CHECK: &str = ".github/workflows/clustermesh-check.yml";
const REFRESH: &str = ".github/workflows/clustermesh-refresh.yml";

/// A fake `gh`, which answers with the content of files.
const GH: &str = "#!/bin/sh
printf 'gh %s\\n' \"$*\" >> \"$LOG\"
case \"$*\" in
    'pr list'*'autoMergeRequest != null'*) cat \"$ANSWERS/waiting\" ;;
    'pr list'*) cat \"$ANSWERS/opened\" ;;
    'api --paginate'*) cat \"$ANSWERS/comment\" ;;
esac
";

/// A `git` that pushes nothing.
const GIT: &str = "#!/bin/sh
if [ \"$1\" = push ]; then printf 'git %s\\n' \"$*\" >> \"$LOG\"; exit; fi
PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"
";

/// A committed repository with the jobs of a service.
struct Jobs {
    folder: Folder,
    /// Fake programs, their answers, and what they were asked for.
    fakes: TempDir,
}

impl Jobs {
    fn of(service: &str) -> Self {
        let folder = Folder::mesh();
        for arguments in [["init", "--ci", service].as_slice(), &["render"]] {
            let run = folder.run(arguments);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        let jobs = Self { folder, fakes: tempfile::tempdir().unwrap() };
        jobs.install("gh", GH);
        jobs.install("git", GIT);
        symlink(env!("CARGO_BIN_EXE_clustermesh"), jobs.fakes.path().join("clustermesh")).unwrap();
        for name in ["log", "waiting", "opened", "comment"] {
            jobs.answer(name, "");
        }
        jobs.script("git init --quiet --initial-branch=main", &[]);
        jobs.commit(30);
        jobs
    }

    /// Installs a fake program.
    fn install(&self, name: &str, text: &str) {
        let fakes = self.fakes.path();
        let text_file = fakes.join(format!("{name}.txt"));
        fs::write(&text_file, text).unwrap();
        // Another process writes it, as a program that is open for writing cannot be run.
        let install = Command::new("install")
            .args(["-m", "0755"])
            .args([text_file, fakes.join(name)])
            .status();
        assert!(install.unwrap().success());
    }

    /// Commits everything, this many hours ago.
    fn commit(&self, hours: u64) {
        let script = "export GIT_COMMITTER_DATE=\"@$(($(date +%s) - HOURS * 3600)) +0000\"; git add --all && \
                      git -c user.name=a -c user.email=a@b commit --quiet --message=a";
        self.script(script, &[("HOURS", &hours.to_string())]);
    }

    fn answer(&self, name: &str, text: &str) {
        fs::write(self.fakes.path().join(name), text).unwrap();
    }

    /// Runs a script as a step does, which must succeed, and returns what was asked of `gh` and of a remote
    /// repository.
    fn script(&self, script: &str, variables: &[(&str, &str)]) -> String {
        let (output, asked) = self.attempt(script, variables);
        assert!(
            output.status.success(),
            "{script}\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        asked
    }

    /// Runs a script as a step does.
    fn attempt(&self, script: &str, variables: &[(&str, &str)]) -> (Output, String) {
        let fakes = self.fakes.path();
        let log = fakes.join("log");
        fs::write(&log, "").unwrap();
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(self.folder.path("."))
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", fakes.display()))
            .env("HOME", fakes)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LOG", &log)
            .env("ANSWERS", fakes)
            .env("GITHUB_OUTPUT", fakes.join("output"))
            .env("GITHUB_STEP_SUMMARY", fakes.join("summary"))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("RUNNER_TEMP", fakes)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        (output, fs::read_to_string(log).unwrap())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.fakes.path().join(name)).unwrap()
    }

    fn yaml(&self, path: &str) -> Value {
        serde_yaml::from_str(&self.folder.read(path)).unwrap()
    }

    /// Adds a node to `west`, which only adds paths.
    fn add_node(&self) {
        let nodes = [node(3, 1), node(3, 2), node(3, 3)];
        self.folder.keep("west", &nodes);
        assert_eq!(self.folder.run(&["render"]).code, 0);
    }

    /// Takes a node out of `west`.
    fn remove_node(&self) {
        self.keep_nodes(1);
    }

    /// Gives `west` this many nodes.
    fn keep_nodes(&self, nodes: u8) {
        let nodes: Vec<serde_json::Value> = (1..=nodes).map(|it| node(3, it)).collect();
        self.folder.keep("west", &nodes);
        assert_eq!(self.folder.run(&["render"]).code, 0);
    }

    /// Takes the annotation from a node of `east`, where the next change then pauses traffic.
    fn silence_node(&self) {
        let mut silent = node(1, 2);
        silent["annotations"]["kilo.squat.ai/persistent-keepalive"] = json!("0");
        self.folder.keep("east", &[node(1, 1), silent]);
        assert_eq!(self.folder.run(&["render"]).code, 0);
    }

    /// Gives a node of `west` another endpoint.
    fn move_node(&self) {
        let mut moved = node(3, 2);
        moved["addresses"][1]["address"] = json!("198.18.113.99");
        self.folder.keep("west", &[node(3, 1), moved]);
        assert_eq!(self.folder.run(&["render"]).code, 0);
    }

    /// Makes a change of a grade.
    fn change(&self, change: Change) {
        match change {
            Change::Additive => self.add_node(),
            Change::Cleanup => self.remove_node(),
            Change::Pause => {
                self.silence_node();
                self.commit(25);
                self.add_node();
            }
            Change::Brief => self.move_node(),
            Change::Disruptive => {
                let mut hidden = node(3, 2);
                hidden["annotations"]["kilo.squat.ai/key"] = json!("");
                self.folder.keep("west", &[node(3, 1), hidden]);
                assert_eq!(self.folder.run(&["render"]).code, 0);
            }
        }
    }

    /// Runs the step that grades a change, and returns whether it is to merge itself.
    fn merges(&self, setting: &str) -> bool {
        let workflow = self.yaml(REFRESH);
        self.answer("output", "");
        let script = step(&workflow, "refresh", "clustermesh diff");
        self.script(script, &[("MERGE", setting)]);
        let output = self.read("output");
        assert!(["", "merges=true\n"].contains(&&*output), "{output}");
        !output.is_empty()
    }
}

/// The script of a step that contains a text.
fn step<'y>(workflow: &'y Value, job: &str, text: &str) -> &'y str {
    let steps = workflow["jobs"][job]["steps"].as_sequence().unwrap();
    let mut scripts = steps.iter().filter_map(|it| it["run"].as_str());
    scripts.find(|it| it.contains(text)).unwrap()
}

/// A change of each grade that matters to a job.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Change {
    Additive,
    Cleanup,
    Pause,
    Brief,
    Disruptive,
}

impl Change {
    const ALL: [Self; 5] =
        [Self::Additive, Self::Cleanup, Self::Pause, Self::Brief, Self::Disruptive];

    /// Returns the settings with which it merges itself.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Additive => &["additive", "cleanup", "pause"],
            Self::Cleanup => &["cleanup", "pause"],
            Self::Pause => &["pause"],
            Self::Brief | Self::Disruptive => &[],
        }
    }
}

const SETTINGS: [&str; 5] = ["additive", "cleanup", "pause", "", "true"];

#[test]
fn only_what_is_wanted_merges_itself() {
    for change in Change::ALL {
        let jobs = Jobs::of("github");
        jobs.change(change);
        let merging = SETTINGS.into_iter().filter(|it| jobs.merges(it));
        assert_eq!(merging.collect::<Vec<_>>(), change.settings(), "{change:?}");
    }
}

#[test]
fn an_earlier_merge_is_withdrawn_before_the_next_push() {
    for merges in ["true", ""] {
        let jobs = Jobs::of("github");
        let workflow = jobs.yaml(REFRESH);
        jobs.add_node();
        jobs.answer("waiting", "7\n");
        jobs.answer("opened", "7\n");
        let variables = [("MERGES", merges), ("BASE", "main")];
        let asked = jobs.script(step(&workflow, "refresh", "git push"), &variables);
        let head = jobs.script("git rev-parse HEAD > \"$LOG\"", &[]);
        let first = asked.find("gh pr merge --disable-auto 7").unwrap();
        assert!(first < asked.find("git push").unwrap(), "{asked}");
        let merge = format!("gh pr merge --auto --squash --match-head-commit {} 7", head.trim());
        assert_eq!(asked.contains(&merge), !merges.is_empty(), "{asked}");
        assert!(!asked.contains("pr create"), "{asked}");
    }
}

/// Nodes of one cluster that hold it back.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    /// Their agents run with another granularity than the declared one.
    Granularity,
    /// Two of three have no key.
    Keys,
    /// Their internal addresses are of a family in which no other cluster has ranges.
    Family,
    /// They have the keys of the nodes of `west`, which ranks behind them.
    KeysOfOthers,
}

const HOSTILE: [Hostile; 4] =
    [Hostile::Granularity, Hostile::Keys, Hostile::Family, Hostile::KeysOfOthers];

impl Hostile {
    /// Takes another snapshot of `north`, in which the nodes are hostile, and adds a node to `west`.
    fn attack(self, jobs: &Jobs) {
        let mut nodes = [node(2, 1), node(2, 2), node(2, 3)];
        let of_all = |nodes: &mut [serde_json::Value], key: &str, value: &str| {
            for it in nodes {
                it["annotations"][format!("kilo.squat.ai/{key}")] = json!(value);
            }
        };
        match self {
            Self::Granularity => of_all(&mut nodes, "granularity", "location"),
            Self::Keys => of_all(&mut nodes[1..], "key", ""),
            Self::Family => of_all(&mut nodes, "internal-ip", "fd00:2::5/64"),
            Self::KeysOfOthers => {
                for (it, number) in nodes.iter_mut().zip(1..) {
                    let other = node(3, number);
                    it["annotations"]["kilo.squat.ai/key"] =
                        other["annotations"]["kilo.squat.ai/key"].clone();
                }
            }
        }
        jobs.folder.keep("north", &nodes);
        jobs.folder.keep("west", &[node(3, 1), node(3, 2), node(3, 3)]);
    }
}

/// A committed repository in which `north` has three nodes and declares what hostile nodes contradict.
fn besieged(service: &str) -> Jobs {
    let jobs = Jobs::of(service);
    jobs.folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.2.0.0/16]\n",
        "podCIDRs: [10.2.0.0/16, 'fd00:2::/48']\n      granularity: Full\n",
    );
    jobs.folder.keep("north", &[node(2, 1), node(2, 2), node(2, 3)]);
    assert_eq!(jobs.folder.run(&["render"]).code, 0);
    jobs.commit(29);
    jobs
}

/// Only `west` has changed in the last commit, and everything in the folder is committed.
fn is_all_but_north(jobs: &Jobs) {
    let changed = jobs
        .script("git status --porcelain > \"$LOG\"; git diff --name-only HEAD^ >> \"$LOG\"", &[]);
    let changed: Vec<&str> = changed.lines().collect();
    let expected =
        ["rendered/east/prod--west.yaml", "rendered/north/prod--west.yaml", "snapshots/west.json"];
    assert_eq!(changed, expected);
}

#[test]
fn a_hostile_cluster_of_three_keeps_its_old_snapshot_on_github() {
    for hostile in HOSTILE {
        let jobs = besieged("github");
        hostile.attack(&jobs);
        let workflow = jobs.yaml(REFRESH);
        jobs.answer("output", "");
        jobs.script(step(&workflow, "refresh", "clustermesh render"), &[]);
        assert_eq!(jobs.read("output"), "held=north\n", "{hostile:?}");
        jobs.answer("output", "");
        jobs.script(step(&workflow, "refresh", "clustermesh diff"), &[("MERGE", "additive")]);
        assert_eq!(jobs.read("output"), "merges=true\n", "{hostile:?}");
        jobs.answer("opened", "7\n");
        let variables = [("MERGES", "true"), ("BASE", "main")];
        let asked = jobs.script(step(&workflow, "refresh", "git push"), &variables);
        assert_contains(&asked, "gh pr merge --auto");
        is_all_but_north(&jobs);
        let report = step(&workflow, "refresh", "::error::Held back");
        let (output, _) = jobs.attempt(report, &[("HELD", "north")]);
        assert!(!output.status.success());
        assert_contains(&String::from_utf8(output.stdout).unwrap(), "north");
    }
    let jobs = besieged("github");
    jobs.add_node();
    jobs.answer("output", "");
    let workflow = jobs.yaml(REFRESH);
    jobs.script(step(&workflow, "refresh", "clustermesh render"), &[]);
    assert_eq!(jobs.read("output"), "held=\n", "no cluster is hostile");
}

/// A `clustermesh` that ends with a code.
const SNAPSHOT: &str = "#!/bin/sh
case \"$*\" in *--services*) exit \"$SERVICES\" ;; esac
exit \"$CODE\"
";

#[test]
fn a_job_that_could_not_read_a_cluster_goes_on_and_fails() {
    let jobs = Jobs::of("github");
    let workflow = jobs.yaml(REFRESH);
    fs::remove_file(jobs.fakes.path().join("clustermesh")).unwrap();
    jobs.install("clustermesh", SNAPSHOT);
    for (code, services, ends, problems) in [
        ("0", "0", true, "problems=0\n"),
        ("1", "0", true, "problems=1\n"),
        ("2", "0", false, ""),
        // The nodes are kept, although Services are not.
        ("0", "1", true, "problems=1\n"),
        ("0", "2", true, "problems=1\n"),
        ("1", "2", true, "problems=1\n"),
    ] {
        jobs.answer("output", "");
        let script = step(&workflow, "refresh", "clustermesh snapshot");
        let variables = [("CODE", code), ("SERVICES", services), ("KUBECONFIG_TEXT", "secret")];
        let (output, _) = jobs.attempt(script, &variables);
        assert_eq!(output.status.success(), ends, "{code}");
        assert_eq!(jobs.read("output"), problems);
        assert!(!jobs.fakes.path().join("kubeconfig").exists(), "the kubeconfig stays");
    }
    let report = step(&workflow, "refresh", "::error::Held back");
    let (output, _) = jobs.attempt(report, &[("HELD", "")]);
    assert!(!output.status.success());
    assert_contains(&String::from_utf8(output.stdout).unwrap(), "A snapshot is old");
    let steps = workflow["jobs"]["refresh"]["steps"].as_sequence().unwrap();
    let last = steps.last().unwrap()["if"].as_str().unwrap();
    assert_contains(last, "steps.snapshot.outputs.problems == '1'");
}

#[test]
fn a_job_on_gitlab_that_could_not_read_a_cluster_fails_at_its_end() {
    for (problems, ends) in [("0", true), ("1", false)] {
        let jobs = Jobs::of("gitlab");
        jobs.add_node();
        let variables = [GITLAB.as_slice(), &[("PROBLEMS", problems)]].concat();
        let (output, asked) = jobs.attempt(&gitlab_refresh(&jobs), &variables);
        assert_eq!(output.status.success(), ends);
        assert_contains(&asked, "git push");
    }
}

#[test]
fn a_job_on_gitlab_keeps_nodes_without_services() {
    let jobs = Jobs::of("gitlab");
    let whole = jobs.yaml(".gitlab-ci.yml");
    let script = whole["clustermesh-refresh"]["script"].as_sequence().unwrap();
    let lines = script.iter().map(|it| it.as_str().unwrap());
    let line = lines.filter(|it| it.contains("snapshot --services")).collect::<String>();
    jobs.install("snapshot", SNAPSHOT);
    let line = line.replace("clustermesh snapshot", "snapshot");
    for (services, problems) in [("0", "0"), ("1", "1"), ("2", "1")] {
        let script = format!("problems=0\n{line}\nprintf %s \"$problems\" > \"$LOG\"");
        let variables = [GITLAB.as_slice(), &[("SERVICES", services)]].concat();
        assert_eq!(jobs.script(&script, &variables), problems);
    }
}

#[test]
fn a_hostile_cluster_of_three_keeps_its_old_snapshot_on_gitlab() {
    for hostile in HOSTILE {
        let jobs = besieged("gitlab");
        hostile.attack(&jobs);
        let variables = [GITLAB.as_slice(), &[("CLUSTERMESH_MERGE", "additive")]].concat();
        let (output, asked) = jobs.attempt(&gitlab_refresh(&jobs), &variables);
        assert!(!output.status.success(), "{hostile:?}");
        assert_contains(&asked, "-o merge_request.auto_merge https");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_contains(&text, "Held back, because their new snapshots cause errors: north\n");
        is_all_but_north(&jobs);
    }
}

/// Each step of an hour loses less than a snapshot may lose.
#[test]
fn small_losses_do_not_add_up_to_a_large_one() {
    let jobs = Jobs::of("github");
    jobs.keep_nodes(6);
    jobs.commit(28);
    for (nodes, hours) in [(5, 4), (4, 3), (3, 2)] {
        jobs.keep_nodes(nodes);
        assert!(jobs.merges("cleanup"), "{nodes}");
        jobs.commit(hours);
    }
    jobs.keep_nodes(2);
    assert_eq!(jobs.folder.run(&["diff", "--fail-on", "brief"]).code, 0);
    assert!(!jobs.merges("cleanup") && !jobs.merges("pause"));
    let day = jobs.script("git rev-list -1 --before='24 hours ago' HEAD > \"$LOG\"", &[]);
    let run = jobs.folder.run(&["diff", "--against", day.trim(), "--check-losses"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let found = format!(
        "error[shrunk-snapshot]: west: compared with {}, mesh prod has lost 4 of 6 usable nodes (the limit is 25%, where a node that is gone counts 50%); gone: n3",
        day.trim()
    );
    assert_contains(&run.stderr, &found);
}

/// The commit of the day before does not have it.
#[test]
fn a_cluster_that_joined_today_is_not_emptied_in_small_steps() {
    let jobs = Jobs::of("github");
    jobs.folder.edit(
        "mesh.yaml",
        "  clusters:\n",
        "  clusters:\n    - { name: south, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.104.0.0/24 }\n",
    );
    let keep = |nodes: u8| {
        let nodes: Vec<serde_json::Value> = (1..=nodes).map(|it| node(4, it)).collect();
        jobs.folder.keep("south", &nodes);
        assert_eq!(jobs.folder.run(&["render"]).code, 0);
    };
    keep(5);
    assert!(!jobs.merges("cleanup"), "a person adds it to the mesh");
    jobs.commit(5);
    keep(6);
    assert!(jobs.merges("cleanup"), "it grows");
    jobs.commit(4);
    keep(5);
    assert_eq!(jobs.folder.run(&["diff", "--fail-on", "brief"]).code, 0);
    assert!(!jobs.merges("cleanup"));
    let run = jobs.folder.run(&["diff", "--against", "HEAD~2", "--check-losses"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(
        &run.stderr,
        "error[shrunk-snapshot]: south: compared with HEAD, mesh prod has lost 1 of 6 usable nodes; gone: n6",
    );
}

/// Nothing shows what was lost since the day before.
#[test]
fn a_young_repository_merges_nothing() {
    let jobs = Jobs::of("github");
    jobs.script("rm -r .git && git init --quiet --initial-branch=main", &[]);
    jobs.commit(23);
    jobs.add_node();
    assert_eq!(jobs.folder.run(&["diff", "--fail-on", "cleanup"]).code, 0);
    assert!(!jobs.merges("pause"));
}

#[test]
fn the_first_change_opens_a_pull_request() {
    let jobs = Jobs::of("github");
    jobs.add_node();
    let workflow = jobs.yaml(REFRESH);
    let variables = [("MERGES", ""), ("BASE", "main")];
    let asked = jobs.script(step(&workflow, "refresh", "git push"), &variables);
    assert_contains(&asked, "gh pr create --base main");
    assert!(!asked.contains("pr merge"), "{asked}");
    let asked = jobs.script(step(&workflow, "refresh", "git push"), &variables);
    assert_eq!(asked, "", "nothing has changed since");
}

/// The variables of a job on GitLab.
const GITLAB: [(&str, &str); 5] = [
    ("CLUSTERMESH_KUBECONFIG", "kubeconfig"),
    ("CI_SERVER_HOST", "gitlab.example"),
    ("CI_PROJECT_PATH", "o/r"),
    ("CI_DEFAULT_BRANCH", "main"),
    ("CLUSTERMESH_TOKEN", "t"),
];

/// The script of the job that refreshes snapshots, after these are taken.
fn gitlab_refresh(jobs: &Jobs) -> String {
    let workflow = jobs.yaml(".gitlab-ci.yml");
    let script = workflow["clustermesh-refresh"]["script"].as_sequence().unwrap();
    let lines = script.iter().map(|it| it.as_str().unwrap());
    let taken = lines.skip_while(|it| !it.starts_with("clustermesh snapshot --services"));
    let rest: Vec<&str> = taken.skip(1).collect();
    format!("problems=${{PROBLEMS:-0}}\n{}", rest.join("\n"))
}

#[test]
fn gitlab_merges_only_what_is_wanted() {
    for change in Change::ALL {
        let jobs = Jobs::of("gitlab");
        jobs.change(change);
        let merging = SETTINGS.into_iter().filter(|it| gitlab_merges(&jobs, it));
        assert_eq!(merging.collect::<Vec<_>>(), change.settings(), "{change:?}");
    }
    let jobs = Jobs::of("gitlab");
    jobs.keep_nodes(6);
    jobs.commit(28);
    jobs.keep_nodes(3);
    jobs.commit(2);
    jobs.keep_nodes(2);
    assert!(!gitlab_merges(&jobs, "cleanup"));
}

/// Runs the job without its first steps, and returns whether the merge request is to merge itself.
fn gitlab_merges(jobs: &Jobs, setting: &str) -> bool {
    let script = gitlab_refresh(jobs) + "\ngit reset --quiet --soft HEAD^";
    let variables = [GITLAB.as_slice(), &[("CLUSTERMESH_MERGE", setting)]].concat();
    let asked = jobs.script(&script, &variables);
    assert_contains(&asked, "git push --force -o merge_request.create");
    asked.contains("-o merge_request.auto_merge https")
}

#[test]
fn the_page_is_data_for_the_comment() {
    let jobs = Jobs::of("github");
    let comment = jobs.yaml(CHECK);
    let script = step(&comment, "comment", "gh api");
    let page = "### a\n$(touch hostile) `touch hostile` %s @all ${{ github.token }}\n\"'";
    for (known, expected) in [
        ("", "--method POST repos/o/r/issues/7/comments"),
        ("12\n13\n", "--method PATCH repos/o/r/issues/comments/12"),
    ] {
        jobs.answer("comment", known);
        let asked = jobs.script(script, &[("PAGE", page), ("NUMBER", "7")]);
        assert_contains(&asked, expected);
        let body = jobs.folder.read("page.md");
        assert_eq!(body, format!("<!-- clustermesh diff -->\n{page}\n"));
        assert!(!jobs.folder.path("hostile").exists());
    }
}

#[test]
fn nothing_in_the_page_ends_the_output() {
    let jobs = Jobs::of("github");
    jobs.add_node();
    // `diff` compares with the branch that `actions/checkout` has fetched.
    jobs.script("git update-ref refs/remotes/origin/main HEAD", &[]);
    let check = jobs.yaml(CHECK);
    let variables = [("GITHUB_BASE_REF", "main")];
    let ends: Vec<String> = (0..2)
        .map(|_| {
            jobs.answer("output", "");
            jobs.script(step(&check, "check", "page<<"), &variables);
            let output = jobs.read("output");
            let page = jobs.read("diff.md");
            let end = output.lines().last().unwrap().to_owned();
            assert_eq!(output, format!("page<<{end}\n{page}{end}\n"));
            assert_eq!(end.len(), 32);
            end
        })
        .collect();
    assert_ne!(ends[0], ends[1]);
    assert!(jobs.read("summary").starts_with("### clustermesh diff: additive\n"));
}

/// A tag of this name takes precedence over the branch, and everyone who can push can write one.
#[test]
fn no_tag_takes_the_place_of_the_base_branch() {
    let jobs = Jobs::of("github");
    jobs.folder.write(
        "expectations.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec: { undeclared: Deny }\n",
    );
    jobs.commit(20);
    jobs.script("git update-ref refs/remotes/origin/main HEAD", &[]);
    fs::remove_file(jobs.folder.path("expectations.yaml")).unwrap();
    jobs.commit(10);
    jobs.script("git tag origin/main HEAD", &[]);
    let check = jobs.yaml(CHECK);
    let script = step(&check, "controls", "fail-on-weaker");
    let fails = format!("if {script} > weaker; then exit 1; fi");
    jobs.script(&fails, &[("GITHUB_BASE_REF", "main")]);
    assert_contains(&jobs.folder.read("weaker"), "weaker: `undeclared`");
}

#[test]
fn jobs_keep_a_page_of_each_pull_request() {
    let jobs = Jobs::of("github");
    jobs.add_node();
    jobs.script("git update-ref refs/remotes/origin/main HEAD", &[]);
    let check = jobs.yaml(CHECK);
    let script = step(&check, "check", "clustermesh report");
    jobs.script(script, &[("GITHUB_BASE_REF", "main")]);
    let page = jobs.read("clustermesh-report.html");
    assert_contains(&page, "class=\"grade additive\"");

    let jobs = Jobs::of("gitlab");
    let workflow = jobs.yaml(".gitlab-ci.yml");
    let check = &workflow["clustermesh-check"];
    let lines = check["script"].as_sequence().unwrap().iter();
    let mut lines = lines.map(|it| it.as_str().unwrap());
    jobs.add_node();
    jobs.script(lines.find(|it| it.contains("report")).unwrap(), &[]);
    let page = jobs.folder.read("clustermesh-report.html");
    assert_contains(&page, "class=\"grade additive\"");
    let paths = check["artifacts"]["paths"].as_sequence().unwrap();
    assert!(paths.iter().any(|it| it == "clustermesh-report.html"));
}

#[test]
fn the_action_shows_what_a_pull_request_does() {
    let jobs = Jobs::of("github");
    jobs.add_node();
    jobs.script("git update-ref refs/remotes/origin/main HEAD", &[]);
    symlink(project().join(".ci"), jobs.fakes.path().join("ci")).unwrap();
    for (variables, is_shown) in [(vec![], false), (vec![("GITHUB_BASE_REF", "main")], true)] {
        jobs.answer("output", "");
        jobs.script("\"$HOME/ci/checks\" validate render-check verify diff", &variables);
        let output = jobs.read("output");
        assert_eq!(output.contains("### clustermesh diff: additive\n"), is_shown, "{output}");
    }
    // Without the history there is nothing to compare with.
    let script = "if \"$HOME/ci/checks\" diff; then exit 1; fi";
    jobs.script(script, &[("GITHUB_BASE_REF", "other")]);
}

/// Only a person can know that nothing was applied yet.
#[test]
fn no_job_compares_with_nothing() {
    let templates = fs::read_dir(project().join("templates/init")).unwrap();
    let templates = templates.map(|it| it.unwrap().path());
    let of_action = ["action.yml", ".ci/checks"].map(|it| project().join(it));
    for path in templates.chain(of_action) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("--against none"), "{}", path.display());
    }
}

/// Inputs and results of other jobs reach scripts as variables: in a script they would be code.
#[test]
fn scripts_contain_no_expressions_and_jobs_have_few_rights() {
    let jobs = Jobs::of("github");
    let mut rights = Vec::new();
    let mut scripts = 0;
    for path in [CHECK, REFRESH] {
        let workflow = jobs.yaml(path);
        assert!(!jobs.folder.read(path).contains("\n  pull_request_target"));
        for (name, job) in workflow["jobs"].as_mapping().unwrap() {
            let permissions = serde_json::to_value(&job["permissions"]).unwrap();
            rights.push(format!("{}: {permissions}", name.as_str().unwrap()));
            let steps = job["steps"].as_sequence().unwrap();
            for script in steps.iter().filter_map(|it| it["run"].as_str()) {
                assert!(!script.contains("${{"), "{script}");
                scripts += 1;
            }
        }
    }
    let expected = [
        r#"check: {"contents":"read"}"#,
        r#"controls: {"contents":"read"}"#,
        r#"comment: {"pull-requests":"write"}"#,
        r#"refresh: {"contents":"read"}"#,
    ];
    assert_eq!(rights, expected);
    assert!(8 < scripts, "{scripts}");
    // The job that may write runs nothing of the pull request.
    let comment = &jobs.yaml(CHECK)["jobs"]["comment"];
    let steps = comment["steps"].as_sequence().unwrap();
    assert!(steps.iter().all(|it| it["uses"].is_null()));
    let condition = comment["if"].as_str().unwrap();
    let own = "github.event.pull_request.head.repo.full_name == github.repository";
    assert_contains(condition, own);
}

/// Only snapshots and rendered files merge themselves, and none where a control is weaker.
#[test]
fn no_control_merges_itself() {
    for service in ["github", "gitlab"] {
        let edits: [fn(&Jobs); 3] = [
            |jobs| {
                jobs.folder.write(
                    "clustermesh.yaml",
                    "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: { nodes: 400 }\n",
                );
            },
            |jobs| fs::remove_file(jobs.folder.path("expectations.yaml")).unwrap(),
            |_| {},
        ];
        for (place, edit) in edits.into_iter().enumerate() {
            let jobs = Jobs::of(service);
            jobs.folder.write(
                "expectations.yaml",
                "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n- { from: { cluster: east }, to: { cluster: west }, expect: Reach }\n",
            );
            jobs.commit(26);
            jobs.change(Change::Additive);
            edit(&jobs);
            let merges = match service {
                "github" => jobs.merges("additive"),
                _ => gitlab_merges(&jobs, "additive"),
            };
            assert_eq!(merges, place == 2, "{service} {place}");
        }
    }
}

#[test]
fn the_files_that_the_config_names_have_owners() {
    let folder = Folder::empty();
    let hub = project().join("examples/hub-and-spokes");
    fs::create_dir_all(folder.path("net")).unwrap();
    fs::create_dir_all(folder.path("pol icies")).unwrap();
    fs::copy(hub.join("mesh.yaml"), folder.path("net/m.yaml")).unwrap();
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [net]\nexpectations: ./ctl/exp.yaml\npolicies: pol icies\n",
    );
    let run = folder.run(&["init", "--ci", "github"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let owned = run.stdout.lines().filter_map(|it| it.trim().strip_suffix(" @OWNERS"));
    assert_eq!(
        owned.collect::<Vec<_>>(),
        [
            "/net/",
            "/clustermesh.yaml",
            "/ctl/exp.yaml",
            "/pol\\ icies/",
            "/guards/",
            "/snapshots/",
            "/.github/",
            "/CODEOWNERS"
        ]
    );
    assert!(
        !folder.path("mesh.yaml").exists() && !run.stdout.contains("/mesh.yaml"),
        "{}",
        run.stdout
    );
}
