//! Jobs and alerts of the gallery, which people copy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde::Deserialize as _;
use serde_yaml::Value;

use crate::cli::Folder;
use crate::support::project;

fn read(name: &str) -> String {
    fs::read_to_string(project().join("templates/gallery").join(name)).unwrap()
}

/// Returns the script of a step.
fn step(workflow: &str, job: &str, name: &str) -> String {
    let workflow: Value = serde_yaml::from_str(&read(workflow)).unwrap();
    let steps = workflow["jobs"][job]["steps"].as_sequence().unwrap();
    let step = steps.iter().find(|it| it["name"] == name).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

/// Runs a step with a clustermesh that prints `text` and exits with `code`; returns its code and what it passes on.
fn run(script: &str, text: &str, code: i32) -> (i32, String, String) {
    let folder = Folder::empty();
    let program = format!("#!/bin/sh\necho \"$*\" >> calls\nprintf '%s' '{text}'\nexit {code}\n");
    folder.write("bin/clustermesh", program);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path("bin/clustermesh"), executable).unwrap();
    let bin = folder.path("bin").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let status = Command::new("bash")
        .args(["-e", "-c", script])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .env("KUBECONFIG_TEXT", "secret")
        .env("RUNNER_TEMP", folder.path("."))
        .env("GITHUB_OUTPUT", folder.path("output"))
        .env("GITHUB_STEP_SUMMARY", folder.path("output"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(!folder.path("kubeconfig").exists(), "the kubeconfig stays");
    let output = fs::read_to_string(folder.path("output")).unwrap_or_default();
    (status.code().unwrap(), output, folder.read("calls"))
}

#[test]
fn a_change_starts_the_refresh() {
    let script = step("github-watch.yml", "watch", "Wait until nodes have changed");
    let changed = "changed=true\n";
    for (text, code, expected) in [
        ("`n1` added", 1, (0, changed)),
        ("", 0, (0, "")),
        ("", 2, (2, "")),
        // One cluster has changed, another could not be read.
        ("`n1` added", 2, (2, changed)),
    ] {
        let (ended, output, calls) = run(&script, text, code);
        assert_eq!((ended, output.as_str()), expected);
        assert!(calls.starts_with("snapshot --check --keep-going --wait 50m "), "{calls}");
    }
}

#[test]
fn peers_that_differ_fail_the_job() {
    let script = step("github-status.yml", "status", "Compare");
    for code in [0, 1, 2] {
        let (ended, output, calls) = run(&script, "page", code);
        assert_eq!((ended, output.as_str()), (code, "page"));
        assert!(calls.starts_with("status --wait 20m --output markdown "), "{calls}");
    }
}

/// The jobs for GitLab extend those of `init`.
#[test]
fn jobs_and_alerts_fit_together() {
    let jobs: Value = serde_yaml::from_str(&read("gitlab-watch.yml")).unwrap();
    let folder = Folder::empty();
    assert_eq!(folder.run(&["init", "--ci", "gitlab"]).code, 0);
    let own: Value = serde_yaml::from_str(&folder.read(".gitlab-ci.yml")).unwrap();
    for (name, job) in jobs.as_mapping().unwrap() {
        let base = job["extends"].as_str().unwrap();
        assert!(own.get(base).is_some() || jobs.get(base).is_some(), "{base}");
        assert!(own.get(name.as_str().unwrap()).is_none());
        let lines = job["script"].as_sequence().into_iter().flatten();
        let script: Vec<&str> = lines.map(|it| it.as_str().unwrap()).collect();
        let checked = Command::new("sh").args(["-n", "-c", &script.join("\n")]).status();
        assert!(checked.unwrap().success(), "{name:?}");
    }
    let source: Value = serde_yaml::from_str(
        &fs::read_to_string(project().join("flux/gitrepository.yaml")).unwrap(),
    )
    .unwrap();
    let alerts = read("flux-alert.yaml");
    let alerts: Vec<Value> = serde_yaml::Deserializer::from_str(&alerts)
        .map(|it| Value::deserialize(it).unwrap())
        .collect();
    assert_eq!(alerts[1]["spec"]["providerRef"]["name"], alerts[0]["metadata"]["name"]);
    assert_eq!(alerts[1]["spec"]["eventSources"][0]["name"], source["metadata"]["name"]);
    let notifications: Value = serde_yaml::from_str(&read("argocd-notifications.yaml")).unwrap();
    for (_, text) in notifications["data"].as_mapping().unwrap() {
        let _: Value = serde_yaml::from_str(text.as_str().unwrap()).unwrap();
    }
}

/// The metrics of differences and of unreadable clusters are published, and those of nothing are not.
#[test]
fn a_timer_writes_metrics_in_one_step() {
    let script = project().join("templates/gallery/prometheus-textfile.sh");
    let script = format!("sh {} textfiles --tunnels", script.display());
    for (text, code, expected) in
        [("metrics", 0, 0), ("metrics", 1, 0), ("metrics", 2, 0), ("", 2, 2)]
    {
        let folder = Folder::empty();
        folder.write("textfiles/clustermesh.prom", "old");
        let program =
            format!("#!/bin/sh\necho \"$*\" >> calls\nprintf '%s' '{text}'\nexit {code}\n");
        folder.write("bin/clustermesh", program);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path("bin/clustermesh"), executable).unwrap();
        let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path(".")).env("PATH", path);
        let ended = command.status().unwrap().code();
        assert_eq!(ended, Some(expected), "{code}");
        let written = if text.is_empty() { "old" } else { text };
        assert_eq!(folder.read("textfiles/clustermesh.prom"), written);
        assert_eq!(fs::read_dir(folder.path("textfiles")).unwrap().count(), 1);
        assert_eq!(folder.read("calls"), "status --output prometheus --tunnels\n");
    }
}
