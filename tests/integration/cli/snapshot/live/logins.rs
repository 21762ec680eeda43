//! Logins: tokens, passwords, and plugins, which run once and are not waited for.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Site, nodes};
use crate::api_server::{Authority, Login, Setup, credential};
use crate::cli::SOON;
use crate::support::assert_contains;

/// A cluster that wants the token `sesame-sesame`, and a plugin that is a shell script.
fn plugin(script: &str) -> Site {
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup.start(), |context| {
        context.plugin("/bin/sh", &["plugin.sh", "--password", "swordfish"])
    });
    let script = format!("echo run >>runs\n{script}\n");
    site.folder.write("plugin.sh", script);
    site
}

fn says(text: &str) -> String {
    format!("cat <<'END'\n{text}\nEND")
}

fn runs(site: &Site) -> usize {
    site.folder.read("runs").lines().count()
}

/// The messages about a plugin that fails; no request is sent.
fn failure(script: &str) -> String {
    failure_within("60", script)
}

fn failure_within(seconds: &str, script: &str) -> String {
    let site = plugin(script);
    let said = site.failure(&["--timeout", seconds]);
    assert_eq!(site.east.requests().len(), 0);
    assert_eq!(runs(&site), 1);
    said
}

#[test]
fn shows_a_token() {
    let setup = || Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup().start(), |it| it.user("token", "sesame-sesame"));
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    let site = Site::with(setup().start(), |it| it.user("tokenFile", "secrets/token"));
    insta::assert_snapshot!(site.failure(&[]), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `tokenFile` cannot be read: No such file or directory (os error 2) (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    site.folder.write("secrets/token", "sesame-sesame\n");
    let run = site.snapshot(&["east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// As client-go: the file is the newer one, if it can be read.
#[test]
fn shows_the_token_of_a_file_rather_than_another() {
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup.start(), |context| {
        context.user("token", "outdated").user("tokenFile", "token")
    });
    site.folder.write("token", "sesame-sesame\n");
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    site.reach(|context| context.user("token", "sesame-sesame").user("tokenFile", "missing"));
    assert_eq!(site.snapshot(&[]).code, 0);
    site.reach(|context| context.user("tokenFile", "empty"));
    site.folder.write("empty", "\n");
    insta::assert_snapshot!(site.snapshot(&["east"]).stderr, @"
    error[invalid-kubeconfig]: east: could not be read: the file of `tokenFile` is empty (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn is_somebody_else_only_by_name() {
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup.start(), |context| {
        context
            .user("token", "sesame-sesame")
            .user("as", "ada")
            .user("as-groups", json!(["admins"]))
    });
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    let requests = site.east.requests();
    assert_eq!(requests[0].header("impersonate-user"), Some("ada"));
    assert_eq!(requests[0].header("impersonate-group"), Some("admins"));
    for (field, value) in [
        ("as-groups", json!(["admins"])),
        ("as-uid", json!("7")),
        ("as-user-extra", json!({ "scopes": ["a"] })),
    ] {
        site.reach(|context| context.user(field, value.clone()));
        insta::allow_duplicates!(insta::assert_snapshot!(site.snapshot(&["east"]).stderr, @"
            error[invalid-kubeconfig]: east: could not be read: `as-uid`, `as-groups` and `as-user-extra` require `as` (kubeconfig); snapshots/east.json was kept
            help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
            "));
    }
    assert_eq!(site.east.requests().len(), 1);
}

#[test]
fn shows_a_password() {
    let setup = Setup::nodes(&nodes(1)).login(Login::password("ada", "sesame"));
    let site = Site::with(setup.start(), |context| {
        context.user("username", "ada").user("password", "sesame")
    });
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
}

#[test]
fn runs_a_plugin_once() {
    let script = format!(
        "test \"$KUBERNETES_EXEC_INFO\" || exit 3\ntest -t 0 && exit 4\ncat >input\necho shy >&2\n{}",
        says(&credential("sesame-sesame"))
    );
    let site = plugin(&script);
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    assert_eq!(runs(&site), 1);
    assert_eq!(site.folder.read("input"), "");
    let requests = site.east.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sesame-sesame"));
}

#[test]
fn runs_a_plugin_once_for_many_pages() {
    let many: Vec<_> = (0..700_u16)
        .map(|number| json!({ "metadata": { "name": format!("n{number}") } }))
        .collect();
    let site = plugin(&says(&credential("sesame-sesame")));
    site.east.change(&many);
    let run = site.snapshot(&["east", "--accept", "east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(site.east.requests().len(), 3);
    assert_eq!(runs(&site), 1);
}

#[test]
fn shows_a_certificate_that_a_plugin_prints() {
    let authority = Authority::new("ours");
    let user = authority.user("ada");
    let setup = Setup::nodes(&nodes(1)).login(Login::Certificate);
    let server = setup.tls_for(&authority.server(&["127.0.0.1"]), &authority);
    let site = Site::with(server.start(), |context| {
        context.trusting(&authority).plugin("/bin/cat", &["credential.json"])
    });
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": user.certificate,
            "clientKeyData": user.key,
        },
    });
    site.folder.write("credential.json", credential.to_string());
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
}

#[test]
fn does_not_send_a_token_that_cannot_be_sent() {
    let script = says(&credential("sesame\nsesame"));
    insta::assert_snapshot!(plugin(&script).failure(&[]), @"
    error[invalid-kubeconfig]: east: could not be read: `token` contains characters that are not allowed in tokens (the credentials for 127.0.0.1:PORT); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn does_not_take_a_token_that_the_server_does_not() {
    let site = plugin(&says(&credential("other-sesame")));
    let said = site.failure(&[]);
    insta::assert_snapshot!(said, @"
    error[unauthorized]: east: could not be read: 127.0.0.1:PORT refused the credentials of user `east` of kubeconfig (401: Unauthorized); snapshots/east.json was kept
    help: renew the credentials of user `east` of kubeconfig
    ");
    assert_eq!(runs(&site), 1);
}

#[test]
fn tells_why_a_plugin_failed() {
    insta::assert_snapshot!(failure("echo 'token expired,\nrun: vendor login' >&2\nexit 7"), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 7) with output: token expired, | run: vendor login; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure("echo 'swordfish is wrong' >&2\nexit 1"), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 1) with output: [hidden] is wrong; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure("exit 1"), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 1) without output; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure("kill -9 $$"), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (signal: 9 (SIGKILL)) without output; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    let loud = failure("yes 'very loud' | head -c 3000000 >&2\nexit 1");
    assert!(loud.len() < 1500, "{} bytes", loud.len());
}

#[test]
fn does_not_show_what_a_plugin_prints() {
    insta::assert_snapshot!(failure("echo sesame-sesame"), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: the output is not an ExecCredential; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure(""), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: it printed nothing; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure(&says(r#"{"kind":"ExecCredential","status":{"token":["sesame-sesame"]}}"#)), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: the output is not an ExecCredential; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure(&says(r#"{"kind":"ExecCredential"}"#)), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: the ExecCredential has no `status`; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    let empty = r#"{"kind":"ExecCredential","status":{"token":"","clientKeyData":" "}}"#;
    insta::assert_snapshot!(failure(&says(empty)), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: the ExecCredential has no token and no certificate with a key; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    insta::assert_snapshot!(failure(&says(r#"{"kind":"ExecCredential","status":{}}"#)), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` printed no credentials: the ExecCredential has no token and no certificate with a key; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
}

#[test]
fn does_not_show_what_a_plugin_knows() {
    let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.";
    insta::assert_snapshot!(failure(&format!("echo 'curl -H \"Authorization: Bearer sesame-1\" -d token={token}' >&2; exit 1")), @r#"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 1) with output: curl -H "Authorization: Bearer [hidden]" -d token=[hidden]; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    "#);
    let pem = Authority::new("ours").user("ada").key;
    insta::assert_snapshot!(failure(&format!("cat >&2 <<'END'\nno use for\n{pem}\nhere\nEND\nexit 1")), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 1) with output: no use for | [hidden] | here; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/sh",
        "args": ["plugin.sh", "-H", "Authorization: Bearer swordfish"],
        "env": [{ "name": "X", "value": "sesame-2" }, { "name": "REGION", "value": "/here" }],
        "interactiveMode": "IfAvailable",
    });
    let site =
        Site::with(Setup::nodes(&nodes(1)).start(), |context| context.user("exec", exec.clone()));
    let script = "echo \"$2, $X, $REGION\" >&2\nexit 1\n";
    site.folder.write("plugin.sh", script);
    insta::assert_snapshot!(site.failure(&[]), @"
    error[failed-login]: east: could not be read: the login plugin `/bin/sh` failed (exit status: 1) with output: Authorization: [hidden], [hidden], /here; snapshots/east.json was kept
    help: log in first, so that `kubectl get nodes` works with this context without prompting
    ");
}

#[test]
fn does_not_wait_for_a_plugin_that_hangs() {
    // The second one prints all the time.
    for script in ["sleep 300", "yes"] {
        let start = Instant::now();
        let said = failure_within("2", script);
        assert!(start.elapsed() < SOON);
        insta::allow_duplicates!(insta::assert_snapshot!(said, @"
        error[failed-login]: east: could not be read: the login plugin `/bin/sh` did not finish within 2 s; snapshots/east.json was kept
        help: log in first, or increase `--timeout`
        "));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn leaves_nothing_of_a_plugin_that_hangs() {
    let site = plugin("sleep 300 &\necho $! >child\nwait");
    site.failure(&["--timeout", "2"]);
    let status = format!("/proc/{}/stat", site.folder.read("child").trim());
    let start = Instant::now();
    // A zombie is one that its new parent has not yet looked at.
    while std::fs::read_to_string(&status).is_ok_and(|it| !it.contains(") Z ")) {
        assert!(start.elapsed() < SOON, "it lives");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn does_not_wait_for_what_a_plugin_leaves_behind() {
    let script = format!("sleep 300 &\n{}", says(&credential("sesame-sesame")));
    let site = plugin(&script);
    let start = Instant::now();
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
    assert!(start.elapsed() < SOON);
}

/// A command line is not a command, and may hold a secret.
#[test]
fn does_not_show_a_command_line() {
    let site = Site::with(Setup::nodes(&nodes(1)).start(), |context| {
        context.plugin("vendor-login --token sesame-sesame", &[])
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[failed-login]: east: could not be read: the login plugin `vendor-login --token [hidden]` cannot be started: No such file or directory (os error 2); snapshots/east.json was kept
    help: install it, or add its folder to PATH
    ");
}

/// A megabyte of brackets would take a reader's stack.
#[test]
fn is_not_overthrown_by_what_a_plugin_prints() {
    for bracket in ["[", "- ", "{a: "] {
        let script = format!("yes -- '{bracket}' | tr -d '\\n' | head -c 1000000");
        let said = failure(&script);
        assert_contains(&said, "the output is not an ExecCredential");
    }
}

#[test]
fn tells_which_plugin_is_missing() {
    let site = Site::with(Setup::nodes(&nodes(1)).start(), |context| {
        context.plugin("vendor-login-that-is-not-here", &["--token", "sesame-sesame"])
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[failed-login]: east: could not be read: the login plugin `vendor-login-that-is-not-here` cannot be started: No such file or directory (os error 2); snapshots/east.json was kept
    help: install it, or add its folder to PATH
    ");
    assert_eq!(site.east.connections(), 0);
}
