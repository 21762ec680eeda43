//! `diff`: what a change does, compared with commits, folders and Peers of clusters.

use std::process::{Command, Stdio};

use super::*;

mod alike;
mod assumed;
mod causes;
mod controls;
mod costs;
mod cut_off;
mod engines;
mod example;
mod granularity;
mod kept;
mod left;
mod new_paths;
mod outputs;
mod ports;
mod ranges;
mod revisions;
mod states;
mod takeover;
mod unread;

/// A git repository with a rendered mesh of three clusters.
pub(super) struct Repository {
    pub(super) folder: Folder,
    pub(super) home: TempDir,
}

impl Repository {
    /// Everything is committed.
    pub(super) fn committed() -> Self {
        let repository = Self::of(Folder::rendered());
        repository.commit();
        repository
    }

    pub(super) fn of(folder: Folder) -> Self {
        let home = tempfile::tempdir().unwrap();
        let repository = Self { folder, home };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    pub(super) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=a"]);
    }

    /// Runs git, which has to succeed.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(".", arguments)
    }

    fn git_in(&self, folder: &str, arguments: &[&str]) -> String {
        self.git_with(&[], folder, arguments)
    }

    /// Commits everything at a time.
    pub(super) fn commit_at(&self, time: &str) {
        self.git(&["add", "--all"]);
        let variables = [("GIT_COMMITTER_DATE", time)];
        self.git_with(&variables, ".", &["commit", "--quiet", "--allow-empty", "--message=a"]);
    }

    fn git_with(&self, variables: &[(&str, &str)], folder: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .envs(variables.iter().copied())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .current_dir(self.folder.path(folder))
            .env("HOME", self.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("GIT_DIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `diff` with a home of its own.
    pub(super) fn diff(&self, arguments: &[&str]) -> Run {
        self.diff_in(".", arguments)
    }

    fn diff_in(&self, folder: &str, arguments: &[&str]) -> Run {
        self.diff_with(&[], &[&["-C", folder], arguments].concat())
    }

    pub(super) fn diff_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        let home = self.home.path().to_str().unwrap();
        let fixed = [("HOME", home), ("GIT_CONFIG_NOSYSTEM", "1")];
        let run = self
            .folder
            .run_with(&[&fixed[..], variables].concat(), &[&["diff"], arguments].concat());
        assert_harmless(&run);
        run
    }

    /// Runs `diff`, which has to fail, and returns why.
    pub(super) fn refusal(&self, arguments: &[&str]) -> String {
        let run = self.diff(arguments);
        assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
        assert_eq!(run.stdout, "");
        run.stderr
    }

    /// Returns the grade of all changes.
    pub(super) fn grade(&self, arguments: &[&str]) -> String {
        let run = self.diff(&[&["--output", "json"], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let changes = run.json();
        changes["grade"].as_str().unwrap().to_owned()
    }

    /// Takes a node out of a snapshot, and renders.
    pub(super) fn remove_node(&self) {
        self.folder.keep("west", &[node(3, 1)]);
        let run = self.folder.run(&["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
}

/// A node with keys and addresses that no other one has among some thousand.
fn wide(cluster: u8, number: u8, version: u8) -> Value {
    let mut node = node(1, 1);
    let external = format!("198.18.{cluster}.{}", 10 * number + version);
    let mut key = [cluster; 32];
    key[1] = number;
    node["addresses"] = json!([{ "address": external, "type": "ExternalIP" }]);
    node["annotations"]["kilo.squat.ai/endpoint"] = json!(format!("{external}:51820"));
    node["annotations"]["kilo.squat.ai/internal-ip"] =
        json!(format!("192.168.{cluster}.{number}/24"));
    node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode(key));
    node["annotations"]["kilo.squat.ai/wireguard-ip"] =
        json!(format!("10.{}.0.{number}/24", 100 + cluster));
    node["name"] = json!(format!("n{number}"));
    node["podCIDRs"] = json!([format!("10.{cluster}.{number}.0/24")]);
    node["uid"] = json!(format!("{cluster}-{number}"));
    node
}
