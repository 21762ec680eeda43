//! Kubeconfigs: where they are looked for, and what is wrong with them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use serde_json::json;

use super::{Site, nodes};
use crate::api_server::{Context, Login, Setup, credential, kubeconfig};
use crate::cli::{Folder, SOON};
use crate::support::{Run, assert_contains};

fn site() -> Site {
    Site::new(Setup::nodes(&nodes(1)))
}

/// The messages about a kubeconfig that cannot be used.
fn said(text: &str) -> String {
    let folder = Folder::mesh();
    folder.write("kubeconfig", text);
    let stderr = folder.refusal(2, |it| it.run(&["snapshot", "--kubeconfig", "kubeconfig"]));
    assert!(!stderr.contains("sesame"), "{stderr}");
    stderr
}

fn run(site: &Site, variables: &[(&str, &str)]) -> Run {
    site.folder.run_with(variables, &["snapshot"])
}

#[test]
fn is_looked_for_where_kubectl_does() {
    let site = site();
    let none = run(&site, &[]);
    assert_eq!(none.code, 2);
    assert_eq!(run(&site, &[("KUBECONFIG", "kubeconfig")]).code, 0);
    let text = site.folder.read("kubeconfig");
    site.folder.write("home/.kube/config", text);
    let home = site.folder.path("home");
    assert_eq!(run(&site, &[("HOME", home.to_str().unwrap())]).code, 0);
}

#[test]
fn a_flag_names_the_contexts() {
    let site = site();
    let [north, west] = &site.others;
    let contexts = kubeconfig(&[
        Context::new("kind-east", &site.east.url()),
        Context::new("admin=north", &north.url()),
        Context::new("west", &west.url()),
    ]);
    site.folder.write("kubeconfig", contexts);
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters:\n  east: { context: nowhere }\n  north: { inCluster: true }\n";
    site.folder.write("clustermesh.yaml", config);
    let named = ["--context", "east=kind-east", "--context", "north=admin=north"];
    site.success(&named);
    let run = site.snapshot(&["north", "--context", "admin=north", "--check"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let refused = |arguments: &[&str]| {
        let run = site.snapshot(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        run.stderr
    };
    insta::assert_snapshot!(refused(&["--context", "kind-east"]), @"error: --context `kind-east` is for one cluster, but 3 are read: name one, or write CLUSTER=CONTEXT");
    insta::assert_snapshot!(refused(&["--context", "eats=kind-east"]), @"error: --context names `eats`; did you mean `east`?");
    insta::assert_snapshot!(refused(&["--context", "hub=kind-east"]), @"error: --context names `hub`, but the clusters are `east`, `north`, `west`");
    insta::assert_snapshot!(refused(&["--context", "east="]), @"error: --context `east=` has no context");
    insta::assert_snapshot!(refused(&["east", "--context", "a", "--context", "b"]), @"error: --context names two contexts for `east`");
}

#[test]
fn may_be_several_files() {
    let site = site();
    let [north, west] = &site.others;
    let file = |contexts: &[Context]| kubeconfig(contexts);
    site.folder.write("a", file(&[Context::new("east", &site.east.url())]));
    site.folder.write(
        "b",
        file(&[
            Context::new("east", "http://198.18.2.1"),
            Context::new("north", &north.url()),
            Context::new("west", &west.url()),
        ]),
    );
    let variables = [("KUBECONFIG", "a:missing::b")];
    let run = run(&site, &variables);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = site.folder.run_with(&variables, &["snapshot", "--kubeconfig", "a"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"
    error[unknown-context]: north: could not be read: a has no context `north`; snapshots/north.json was kept
    help: known contexts: `east`; set `clusters: { north: { context: CONTEXT } }` in the config, or run `clustermesh snapshot north --context CONTEXT`

    error[unknown-context]: west: could not be read: a has no context `west`; snapshots/west.json was kept
    help: known contexts: `east`; set `clusters: { west: { context: CONTEXT } }` in the config, or run `clustermesh snapshot west --context CONTEXT`

    snapshots/east.json: 2 nodes, 2 usable, unchanged
    ");
}

#[test]
fn is_named_in_the_config() {
    let site = site();
    site.folder
        .write("folder/east.yaml", kubeconfig(&[Context::new("admin@east", &site.east.url())]));
    site.folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters:
  east: { kubeconfig: folder/east.yaml }
  north: { context: west }
",
    );
    let run = site.snapshot(&["east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let [north, west] = &site.others;
    fs::remove_file(site.folder.path("snapshots/west.json")).unwrap();
    assert_eq!(site.snapshot(&["north", "--accept", "north"]).code, 0);
    assert_eq!((north.connections(), west.connections()), (0, 1));
}

#[test]
fn has_no_such_context() {
    let context = |name| Context::new(name, "http://198.18.2.1").user("token", "sesame");
    insta::assert_snapshot!(said(&kubeconfig(&[context("est"), context("nort"), context("other")])), @"
    error[unknown-context]: east: could not be read: kubeconfig has no context `east`; snapshots/east.json was kept
    help: did you mean `est`? set `clusters: { east: { context: est } }` in the config, or run `clustermesh snapshot east --context est`

    error[unknown-context]: north: could not be read: kubeconfig has no context `north`; snapshots/north.json was kept
    help: did you mean `nort`? set `clusters: { north: { context: nort } }` in the config, or run `clustermesh snapshot north --context nort`

    error[unknown-context]: west: could not be read: kubeconfig has no context `west`; snapshots/west.json was kept
    help: did you mean `est`? set `clusters: { west: { context: est } }` in the config, or run `clustermesh snapshot west --context est`
    ");
    insta::assert_snapshot!(said(&kubeconfig(&[])), @"
    error[unknown-context]: east: could not be read: kubeconfig has no context `east`; snapshots/east.json was kept
    error[unknown-context]: north: could not be read: kubeconfig has no context `north`; snapshots/north.json was kept
    error[unknown-context]: west: could not be read: kubeconfig has no context `west`; snapshots/west.json was kept
    help: the kubeconfig has no contexts: choose another one with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn is_none() {
    insta::assert_snapshot!(said(""), @"
    error[unknown-context]: east: could not be read: kubeconfig has no context `east`; snapshots/east.json was kept
    error[unknown-context]: north: could not be read: kubeconfig has no context `north`; snapshots/north.json was kept
    error[unknown-context]: west: could not be read: kubeconfig has no context `west`; snapshots/west.json was kept
    help: the kubeconfig has no contexts: choose another one with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("users: [{ name: a, user: { token: sesame } }\n"), @"
    error[invalid-kubeconfig]: east: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/east.json was kept
    error[invalid-kubeconfig]: north: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/north.json was kept
    error[invalid-kubeconfig]: west: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/west.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("token: sesame"), @"
    error[unknown-context]: east: could not be read: kubeconfig has no context `east`; snapshots/east.json was kept
    error[unknown-context]: north: could not be read: kubeconfig has no context `north`; snapshots/north.json was kept
    error[unknown-context]: west: could not be read: kubeconfig has no context `west`; snapshots/west.json was kept
    help: the kubeconfig has no contexts: choose another one with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("users: { name: a, user: { token: sesame } }\n"), @"
    error[invalid-kubeconfig]: east: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/east.json was kept
    error[invalid-kubeconfig]: north: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/north.json was kept
    error[invalid-kubeconfig]: west: could not be read: not a valid kubeconfig: error at line 1, column 8 (kubeconfig); snapshots/west.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("users: [{ name: a, user: { token: [sesame] } }]\n"), @"
    error[invalid-kubeconfig]: east: could not be read: not a valid kubeconfig: error at line 1, column 35 (kubeconfig); snapshots/east.json was kept
    error[invalid-kubeconfig]: north: could not be read: not a valid kubeconfig: error at line 1, column 35 (kubeconfig); snapshots/north.json was kept
    error[invalid-kubeconfig]: west: could not be read: not a valid kubeconfig: error at line 1, column 35 (kubeconfig); snapshots/west.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("sesame"), @"
    error[invalid-kubeconfig]: east: could not be read: not a valid kubeconfig: error at line 1, column 1 (kubeconfig); snapshots/east.json was kept
    error[invalid-kubeconfig]: north: could not be read: not a valid kubeconfig: error at line 1, column 1 (kubeconfig); snapshots/north.json was kept
    error[invalid-kubeconfig]: west: could not be read: not a valid kubeconfig: error at line 1, column 1 (kubeconfig); snapshots/west.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    let folder = Folder::mesh();
    let run = folder.run(&["snapshot", "--kubeconfig", "nowhere"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"
    error[invalid-kubeconfig]: east: could not be read: the kubeconfig does not exist (nowhere); snapshots/east.json was kept
    error[invalid-kubeconfig]: north: could not be read: the kubeconfig does not exist (nowhere); snapshots/north.json was kept
    error[invalid-kubeconfig]: west: could not be read: the kubeconfig does not exist (nowhere); snapshots/west.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn lacks_something() {
    let east = "contexts: [{ name: east, context: { cluster: c, user: u } }]\n";
    let said = |rest: &str| {
        let folder = Folder::mesh();
        folder.write("kubeconfig", format!("{east}{rest}"));
        let run = folder.run(&["snapshot", "east", "--kubeconfig", "kubeconfig"]);
        assert_eq!(run.code, 2);
        assert!(!run.stderr.contains("sesame"), "{}", run.stderr);
        run.stderr
    };
    insta::assert_snapshot!(said("users: [{ name: u, user: {} }]\n"), @"
    error[invalid-kubeconfig]: east: could not be read: the cluster of context `east` is missing (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("clusters: [{ name: c, cluster: { server: 'http://198.18.2.1' } }]\n"), @"
    error[invalid-kubeconfig]: east: could not be read: the user of context `east` is missing (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    let with = |server: &str, user: &str| {
        said(&format!(
            "clusters: [{{ name: c, cluster: {{ server: '{server}' }} }}]\nusers: [{{ name: u, user: {user} }}]\n"
        ))
    };
    insta::assert_snapshot!(with("", "{}"), @"
    error[invalid-kubeconfig]: east: could not be read: `server` is not a valid URL: empty string (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("ftp://198.18.2.1", "{}"), @"
    error[invalid-kubeconfig]: east: could not be read: `server` is not a URL such as `https://203.0.113.1:6443` (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("http://sesame sesame", "{}"), @"
    error[invalid-kubeconfig]: east: could not be read: `server` is not a valid URL: invalid uri character (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("https://198.18.2.1", "{ client-key-data: c2VzYW1lIHNlc2FtZQ== }"), @"
    error[invalid-kubeconfig]: east: could not be read: `client-key-data` needs a client certificate (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("https://198.18.2.1", "{ client-key-data: sesame, client-certificate-data: sesame }"), @"
    error[invalid-kubeconfig]: east: could not be read: `client-certificate-data` is not valid base64 (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("https://198.18.2.1", "{ token: \"sesame\\nsesame\" }"), @"
    error[invalid-kubeconfig]: east: could not be read: `token` contains characters that are not allowed in tokens (the credentials for 198.18.2.1:443); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(with("https://198.18.2.1", "{ auth-provider: { name: gcp, config: { access-token: sesame } } }"), @"
    error[invalid-kubeconfig]: east: could not be read: `auth-provider` was removed in kubectl 1.26; use an `exec` plugin (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

/// hyper would ask another port, with the same credentials.
#[test]
fn has_a_server_with_a_port() {
    for server in ["http://127.0.0.1:99999", "https://[::1]:x", "http://127.0.0.1:"] {
        let site = Site::with(Setup::nodes(&nodes(1)).start(), |context| {
            context.cluster("server", server).user("token", "sesame-sesame")
        });
        let said = site.failure(&[]);
        assert!(said.contains("error[invalid-kubeconfig]"), "{server}: {said}");
    }
}

/// kube would panic.
#[test]
fn has_a_token_that_can_be_sent() {
    let provider = |token: &str| json!({ "name": "oidc", "config": { "id-token": token } });
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup.start(), |context| {
        context.user("auth-provider", provider("sesame\nsesame"))
    });
    insta::assert_snapshot!(site.failure(&[]), @"
    error[invalid-kubeconfig]: east: could not be read: `id-token` contains characters that are not allowed in tokens (the credentials for 127.0.0.1:PORT); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    site.reach(|context| context.user("auth-provider", provider("sesame-sesame")));
    assert_eq!(site.snapshot(&["east"]).code, 0);
}

/// Paths in a kubeconfig are UTF-8; that of its folder need not be.
#[cfg(target_os = "linux")]
#[test]
fn may_be_in_a_folder_of_any_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let run = |user: fn(Context) -> Context| {
        let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
        let site = Site::with(setup.start(), user);
        let folder = site.folder.path("").join(OsStr::from_bytes(b"f\xff"));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("kubeconfig");
        fs::rename(site.folder.path("kubeconfig"), &file).unwrap();
        // As seen from the working folder, which is not meant.
        site.folder.write("token", "sesame-sesame");
        let output = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
            .env_clear()
            .current_dir(site.folder.path(""))
            .args(["snapshot", "east", "--kubeconfig"])
            .arg(Path::new(OsStr::from_bytes(b"f\xff")).join("kubeconfig"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = run(|it| it.user("token", "sesame-sesame"));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(|it| it.user("tokenFile", "token"));
    assert_eq!(code, Some(2), "{said}");
    assert_contains(&said, "the name of its folder is not UTF-8");
}

/// The run always ends, with a message.
#[test]
fn is_hostile() {
    let deep = |open: &str| open.repeat(200_000);
    let laughs: Vec<String> = (1..12)
        .map(|level| {
            let before = vec![format!("*a{}", level - 1); 10].join(", ");
            format!("a{level}: &a{level} [{before}]")
        })
        .collect();
    let laughs = laughs.join("\n");
    let nested = format!(
        "clusters: [{{ name: c, cluster: {{ extensions: {}{} }} }}]\n",
        deep("["),
        deep("]")
    );
    for text in [
        deep("["),
        deep("- "),
        deep("a: {"),
        format!("a0: &a0 [x]\n{laughs}"),
        nested,
        "\0".repeat(1000),
        "users: [{ name: *sesame, user: {} }]".to_owned(),
        "current-context: !!binary sesame\nclusters: !!set {}".to_owned(),
    ] {
        let start = Instant::now();
        let report = said(&text);
        assert!(start.elapsed() < SOON, "{report}");
        assert!(!report.contains("panicked") && report.contains("error["), "{report}");
    }
}

#[test]
fn is_not_there_in_a_pod_that_is_none() {
    let site = site();
    site.folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nclusters: { east: { inCluster: true } }\n",
    );
    let variables = [("KUBECONFIG", "kubeconfig")];
    let run = site.folder.run_with(&variables, &["snapshot"]);
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(site.about_east(&run), @"
    error[invalid-kubeconfig]: east: could not be read: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` are not set; this is not a pod (the pod's service account); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    // A named kubeconfig takes precedence over the pod's own account.
    assert_eq!(site.snapshot(&[]).code, 0);
}

fn make_pipe(folder: &Folder, name: &str) {
    let made = Command::new("mkfifo").arg(folder.path(name)).status();
    assert!(made.unwrap().success());
}

#[test]
fn may_be_a_pipe() {
    let site = site();
    make_pipe(&site.folder, "pipe");
    let (text, pipe) = (site.folder.read("kubeconfig"), site.folder.path("pipe"));
    let writer = thread::spawn(move || fs::write(pipe, text));
    let run = site.folder.run(&["snapshot", "--kubeconfig", "pipe"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    writer.join().unwrap().unwrap();
}

#[test]
fn has_an_end() {
    let folder = Folder::mesh();
    make_pipe(&folder, "pipe");
    let said = |file: &str| {
        let arguments = ["snapshot", "east", "--timeout", "1", "--kubeconfig", file];
        let start = Instant::now();
        let run = folder.run_with(&[], &arguments);
        assert!(start.elapsed() < SOON);
        assert_eq!(run.code, 2);
        run.stderr
    };
    insta::assert_snapshot!(said("pipe"), @"
    error[invalid-kubeconfig]: east: could not be read: pipe was not read within 1 s (pipe); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("/dev/zero"), @"
    error[invalid-kubeconfig]: east: could not be read: cannot read /dev/zero: it is too large (/dev/zero); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("snapshots"), @"
    error[invalid-kubeconfig]: east: could not be read: cannot read snapshots: Is a directory (os error 21) (snapshots); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn is_read_as_kube_reads_it() {
    let site = site();
    let text = site.folder.read("kubeconfig");
    let wide = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(unit).collect()
    };
    let marked = format!("\u{feff}{text}").into_bytes();
    for bytes in [marked, wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
        fs::write(site.folder.path("kubeconfig"), bytes).unwrap();
        let run = site.snapshot(&[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    fs::write(site.folder.path("kubeconfig"), b"\xff").unwrap();
    insta::assert_snapshot!(site.snapshot(&["east"]).stderr, @"
    error[invalid-kubeconfig]: east: could not be read: cannot read kubeconfig: the file is not UTF-8 (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn names_files_that_are_files() {
    let said = |field: &str, file: &str| {
        let site = Site::with(Setup::nodes(&nodes(1)).start(), |context| match field {
            "certificate-authority" => context.cluster(field, file),
            field => context.user(field, file),
        });
        make_pipe(&site.folder, "pipe");
        site.failure(&["--timeout", "5"])
    };
    insta::assert_snapshot!(said("tokenFile", "pipe"), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `tokenFile` cannot be read: it is not a regular file (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("certificate-authority", "/dev/zero"), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `certificate-authority` cannot be read: it is not a regular file (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("client-certificate", "/dev/zero"), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `client-certificate` cannot be read: it is not a regular file (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said("client-key", "pipe"), @"
    error[invalid-kubeconfig]: east: could not be read: the file of `client-key` cannot be read: it is not a regular file (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

/// Tools write out what they have not; kubectl takes it for absent.
#[test]
fn may_have_empty_fields() {
    let setup = Setup::nodes(&nodes(1)).login(Login::token("sesame-sesame"));
    let site = Site::with(setup.start(), |context| {
        let context = context.plugin("/bin/cat", &["credential.json"]);
        let context =
            ["certificate-authority", "certificate-authority-data", "proxy-url", "tls-server-name"]
                .into_iter()
                .fold(context, |context, field| context.cluster(field, ""));
        [
            "token",
            "tokenFile",
            "username",
            "password",
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
            "as",
            "as-uid",
        ]
        .into_iter()
        .fold(context, |context, field| context.user(field, ""))
    });
    site.folder.write("credential.json", credential("sesame-sesame"));
    insta::assert_snapshot!(site.success(&[]), @"snapshots/east.json: 2 nodes, 2 usable, written");
}
