//! Limited resources: no threads, and a closed output.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{SNAPSHOT, Site, expected, nodes};
use crate::api_server::{Login, Setup, credential};
use crate::cli::Folder;
use crate::support::{has_other_users, program_at};

/// How many threads there may be, that of the program included.
const THREADS: [u32; 5] = [1, 2, 3, 5, 8];

/// Gives a folder to a user who has no processes and may have only this many threads, and returns
/// how the program is run.
fn limited(folder: &Folder, user: u32, threads: u32) -> Command {
    fn give(path: &Path, user: u32) {
        chown(path, Some(user), Some(user)).unwrap();
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                give(&entry.unwrap().path(), user);
            }
        }
    }
    let program = folder.path("clustermesh");
    if !program.exists() {
        program_at(&program);
    }
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={threads}:{threads}"));
    // Limits are for users, and not for root.
    if has_other_users() {
        give(&folder.path(""), user);
        command.args(["setpriv", "--clear-groups"]);
        command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    }
    command
        .arg(program)
        .args(SNAPSHOT)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder.path(""));
    command
}

fn said(output: &Output) -> String {
    assert!(output.status.code().is_some_and(|it| it < 3), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn one_thread_is_enough() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    for threads in THREADS {
        let output = limited(&site.folder, 61_231, threads).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(0), "{threads}: {said}");
    }
    assert_eq!(site.kept("east"), expected(1));
}

/// A name is looked up on a thread, usually.
#[test]
fn names_are_looked_up_on_one_thread() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    let port = site.east.address().port();
    for threads in THREADS {
        let east = || limited(&site.folder, 61_232, threads).arg("east").output().unwrap();
        site.reach(|context| context.cluster("server", format!("http://localhost:{port}/")));
        let output = east();
        let said_first = said(&output);
        assert_eq!(output.status.code(), Some(0), "{threads}: {said_first}");
        let request = site.east.requests().last().unwrap().clone();
        let host = format!("localhost:{port}");
        assert_eq!(request.header("host"), Some(host.as_str()));
        site.reach(|context| context.cluster("server", "https://api.east.invalid:6443"));
        let said = said(&east());
        assert!(said.contains("unknown-host"), "{threads}: {said}");
    }
}

#[test]
fn a_plugin_without_threads_is_a_failed_login() {
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site =
        Site::with(setup.start(), |context| context.plugin("/bin/cat", &["credential.json"]));
    site.folder.write("credential.json", credential("sesame-sesame"));
    for threads in THREADS {
        let mut command = limited(&site.folder, 61_233, threads);
        let output = command.arg("east").output().unwrap();
        let said = said(&output);
        let is_read = output.status.success();
        assert_eq!(is_read, !said.contains("error[failed-login]"), "{said}");
    }
}

/// A reader may close it early.
#[test]
fn closed_outputs_are_no_reason_to_panic() {
    let site = Site::new(Setup::nodes(&nodes(1)));
    for arguments in [&[][..], &["--check"], &["--help"], &["-h"], &["--from", "x"]] {
        for closed in ["stdout", "stderr", "both"] {
            for kind in ["closed", "pipe", "full"] {
                let mut command = Command::new("/bin/sh");
                command
                    .args([
                        "-c",
                        r#"case $1 in
                        stdout-closed) shift; exec "$@" >&- ;;
                        stderr-closed) shift; exec "$@" 2>&- ;;
                        both-closed) shift; exec "$@" >&- 2>&- ;;
                        *) shift; exec "$@" ;;
                    esac"#,
                        "sh",
                    ])
                    .arg(format!("{closed}-{kind}"))
                    .arg(env!("CARGO_BIN_EXE_clustermesh"))
                    .args(SNAPSHOT)
                    .args(arguments)
                    .env_clear()
                    .stdin(Stdio::null())
                    .current_dir(site.folder.path(""));
                let target = || -> Stdio {
                    match kind {
                        "pipe" => {
                            let (reader, writer) = std::io::pipe().unwrap();
                            drop(reader);
                            writer.into()
                        }
                        "full" => File::options().write(true).open("/dev/full").unwrap().into(),
                        _ => Stdio::piped(),
                    }
                };
                if closed != "stderr" {
                    command.stdout(target());
                }
                if closed != "stdout" {
                    command.stderr(target());
                }
                let output = command.output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let code = output.status.code();
                assert!(code.is_some_and(|it| it < 3), "{arguments:?} {closed} {kind}: {output:?}");
                assert!(!said.contains("panicked"), "{said}");
            }
        }
        if arguments.is_empty() {
            assert_eq!(site.kept("east"), expected(1));
        }
    }
}
