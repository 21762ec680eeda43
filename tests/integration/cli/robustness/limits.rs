//! Limits of the system: no threads, no memory, no output, and a kill at any time.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;

use crate::cli::*;

/// A user of whom no process runs.
const NOBODY: u32 = 42_424;

/// Runs a command of the shell, in which `$0` is our program.
fn shell(folder: &Folder, script: &str) -> Command {
    let mut command = Command::new("bash");
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder.0.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_clustermesh")])
        .stdin(Stdio::null());
    command
}

/// The tree without what a killed run leaves and the next one removes.
fn tree(folder: &Folder) -> BTreeMap<String, String> {
    folder
        .touches("rendered")
        .into_iter()
        .filter(|(path, _)| !path.contains(".clustermesh-"))
        .map(|(path, (_, _, text))| (path, text))
        .collect()
}

/// A tree of many files, its next state, and a folder in which a render leads from one to the other:
/// files are made, replaced and removed.
fn change() -> (Folder, [BTreeMap<String, String>; 2]) {
    let folder = Folder::rendered();
    let old = tree(&folder);
    folder.edit("mesh.yaml", NORTH, "");
    let mesh = folder.read("mesh.yaml");
    let south =
        "    - name: south\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n";
    folder.write("mesh.yaml", mesh + south);
    folder.keep("south", &[node(2, 1), node(2, 2)]);
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    folder.edit("snapshots/west.json", "198.18.113.31:", "198.18.113.99:");
    let arguments = ["render", "--allow-empty", "*", "--allow-empty", "*/north"];
    let run = folder.run(&arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let new = tree(&folder);
    assert_ne!(old, new);
    (folder, [old, new])
}

const RENDER: &str = "exec \"$0\" render --allow-empty '*' --allow-empty '*/north' >/dev/null";

/// Puts the old tree back.
fn restore(folder: &Folder, old: &BTreeMap<String, String>) {
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    for (path, text) in old {
        folder.write(&format!("rendered/{path}"), text);
    }
}

#[test]
fn one_thread_is_enough() {
    if !crate::support::has_other_users() {
        return;
    }
    let folder = Folder::mesh();
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    for arguments in
        ["render", "render --check", "validate", "verify", "capacity", "trace east/n1 west/n1"]
    {
        let script = format!("ulimit -u 1; exec \"$0\" {arguments}");
        let output = shell(&folder, &script).uid(NOBODY).output().unwrap();
        let report = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {report}");
    }
    assert_eq!(folder.tree(), TREE);
}

#[test]
fn without_a_process_no_template_is_filled_in() {
    if !crate::support::has_other_users() {
        return;
    }
    let folder = Folder::mesh();
    folder.write("app.yaml", "a: 1\n");
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\noutputs:\n\
         - { template: app.yaml, path: 'apps/{{ target.name }}.yaml' }\n",
    );
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let script = "ulimit -u 1; exec \"$0\" render --config clustermesh.yaml";
    let output = shell(&folder, script).uid(NOBODY).output().unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let expected = "error[invalid-output]: template `app.yaml`: cannot start the process that fills in templates: \
                    Resource temporarily unavailable (os error 11)";
    assert!(report.contains(expected), "{report}");
    assert!(!folder.path("rendered").exists());
}

#[test]
fn a_lack_of_memory_leaves_the_tree_whole() {
    let (folder, [old, new]) = change();
    let run = |room: u64| {
        restore(&folder, &old);
        let script = format!("ulimit -v {room}; {RENDER}");
        let output = shell(&folder, &script).output().unwrap();
        let tree = tree(&folder);
        assert!(tree == old || tree == new, "{room} KiB: a mixed tree");
        if output.status.success() {
            assert_eq!(tree, new);
        }
        tree == new
    };
    // Between the least that is enough and the most that is not, something happens halfway.
    let (mut less, mut enough) = (1_000, 4_000_000);
    assert!(!run(less) && run(enough));
    while 500 < enough - less {
        let middle = u64::midpoint(less, enough);
        if run(middle) {
            enough = middle;
        } else {
            less = middle;
        }
    }
    for step in 0..12 {
        run(enough.saturating_sub(50 * step));
    }
}

/// Every file is the old or the new one, and the next run makes the tree whole.
#[test]
fn a_kill_leaves_no_half_file() {
    let (folder, [old, new]) = change();
    for step in 0..25 {
        restore(&folder, &old);
        let mut child = shell(&folder, RENDER).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(2 * step));
        child.kill().unwrap();
        child.wait().unwrap();
        for (path, text) in tree(&folder) {
            let is_whole = old.get(&path) == Some(&text) || new.get(&path) == Some(&text);
            assert!(is_whole, "{path} after {step}");
        }
        let status = shell(&folder, RENDER).stderr(Stdio::null()).status();
        assert!(status.unwrap().success());
        assert_eq!(tree(&folder), new);
        let left = fs::read_dir(folder.path("rendered")).unwrap();
        let is_ours = |name: std::ffi::OsString| name.to_string_lossy().starts_with('.');
        assert!(!left.into_iter().any(|it| is_ours(it.unwrap().file_name())));
    }
}

#[test]
fn nothing_panics_where_nobody_listens() {
    let folder = Folder::rendered();
    for arguments in [
        "validate",
        "validate --output json",
        "render --check",
        "render --target east",
        "verify",
        "trace east/n1 west/n1",
        "capacity",
        "config",
        "explain",
        "schema mesh",
        "completions bash",
        "man",
        "--help",
        "--version",
        "render --no-such-flag",
    ] {
        let is_silent = {
            let script = format!("\"$0\" {arguments}");
            shell(&folder, &script).output().unwrap().stdout.is_empty()
        };
        let code = |redirections: &str| {
            let script = format!("\"$0\" {arguments} {redirections}; exit $?");
            let output = shell(&folder, &script).output().unwrap();
            let report = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!report.contains("panicked"), "{arguments} {redirections}: {report}");
            output.status.code().expect("killed")
        };
        let plain = code("");
        for redirections in
            [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", "> >(exec true)", "2> >(exec true)"]
        {
            assert_eq!(code(redirections), plain, "{arguments} {redirections}");
        }
        // What was asked for cannot be printed.
        let expected = if is_silent { plain } else { 2 };
        assert_eq!(code(">/dev/full"), expected, "{arguments}");
    }
}

#[test]
fn more_threads_than_processors_are_not_started() {
    let folder = Folder::rendered();
    let run = folder.run_with(&[("RAYON_NUM_THREADS", "100000")], &["verify"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}
