//! Trust in Secrets: their authors learn nothing about this machine, and can do nothing on it.

use super::{Site, nodes};
use crate::api_server::{Answer, Context, Setup, kubeconfig};

/// The author of a Secret must not be able to run programs or read files here.
#[test]
fn ask_for_nothing_of_this_machine() {
    let plugin = Site::new("config", |context| {
        context.plugin("/bin/sh", &["-c", "echo run >>../../runs; echo run >>runs"])
    });
    insta::assert_snapshot!(plugin.failure(), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `exec`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
    assert!(!plugin.folder.path("runs").exists());
    let provider = serde_json::json!({ "name": "oidc", "config": { "id-token": "sesame-sesame" } });
    let said = |field: &str| {
        let (field, provider) = (field.to_owned(), provider.clone());
        let site = Site::new("config", move |context| match field.as_str() {
            "auth-provider" => context.user("auth-provider", provider.clone()),
            "certificate-authority" => context.cluster("certificate-authority", "/etc/hostname"),
            field => context.user(field, "/etc/hostname"),
        });
        site.failure()
    };
    insta::assert_snapshot!(said("auth-provider"), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `auth-provider`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
    insta::assert_snapshot!(said("tokenFile"), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `tokenFile`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
    insta::assert_snapshot!(said("client-certificate"), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `client-certificate`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
    insta::assert_snapshot!(said("client-key"), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `client-key`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
    insta::assert_snapshot!(said("certificate-authority"), @"
    error[unsafe-kubeconfig]: east: could not be read: the kubeconfig in Secret kilo/east, key config contains `certificate-authority`, which runs a program or reads a file on this machine; snapshots/east.json was kept
    help: put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in the config
    ");
}

/// They may lead to any server that we can reach, and its answers must not be shown.
#[test]
fn tell_nothing_of_who_is_no_cluster() {
    let said = |reply: fn() -> Answer, path: &str| {
        let mut site = Site::new("config", |context| context);
        site.east = Setup::default().fault(move |_, _| Some(reply().into())).start();
        let url = format!("{}{path}", site.east.url());
        let text = kubeconfig(&[Context::new("admin", &url)]);
        site.hub = Setup::nodes(&nodes(2)).secret(["kilo", "east", "config"], &text).start();
        let context = Context::new("hub", &site.hub.url());
        site.folder.write("kubeconfig", kubeconfig(&[context]));
        let run = site.snapshot();
        assert_eq!(run.code, 2);
        assert!(!run.stderr.contains("sesame"), "{}", run.stderr);
        let mut lines: Vec<&str> = run.stderr.lines().collect();
        lines.retain(|line| !line.contains("north"));
        let server = site.east.address().to_string();
        lines.join("\n").replace(&server, "SERVER")
    };
    let text = || Answer::new(400, "text/plain", "sesame is the password\n");
    insta::assert_snapshot!(said(text, ""), @"
    error[refused-request]: east: could not be read: the server responded with 400; snapshots/east.json was kept
    help: check that `kubectl get nodes` works with this context
    ");
    let json = || Answer::new(403, "application/json", r#"{"message":"sesame"}"#);
    insta::assert_snapshot!(said(json, ""), @"
    error[forbidden]: east: could not be read: the right to `list` `nodes` is missing (403); snapshots/east.json was kept
    help: `clustermesh rbac` prints the manifests that grant this right
    ");
    let page = || Answer::new(401, "text/html", "<title>sesame</title>");
    insta::assert_snapshot!(said(page, ""), @"
    error[unauthorized]: east: could not be read: SERVER requires credentials, and user `admin` of Secret kilo/east, key config has none (401); snapshots/east.json was kept
    help: add a token, a client certificate or a login plugin (`exec`) to user `admin` of Secret kilo/east, key config
    ");
    let kind = || Answer::new(200, "application/json", r#"{"kind":"sesame, the password"}"#);
    insta::assert_snapshot!(said(kind, ""), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a NodeList; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let value = || Answer::new(200, "application/json", r#"{"kind":"NodeList","items":"sesame"}"#);
    insta::assert_snapshot!(said(value, ""), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected a list of at most 50000 items at line 1 column 35; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let value = || Answer::new(200, "application/json", r#""sesame, expected it""#);
    insta::assert_snapshot!(said(value, ""), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: expected an object at line 1 column 21; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let item = || {
        Answer::new(
            200,
            "application/json",
            r#"{"kind":"NodeList","items":[{"kind":"sesame, x"}]}"#,
        )
    };
    insta::assert_snapshot!(said(item, ""), @"
    error[unreadable-answer]: east: could not be read: the response cannot be used: item 0 of the list is not a Node; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    insta::assert_snapshot!(said(text, "/secrets?all="), @"
    error[invalid-kubeconfig]: east: could not be read: `server` has a query or fragment (Secret kilo/east, key config); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
    insta::assert_snapshot!(said(text, "/secrets#"), @"
    error[invalid-kubeconfig]: east: could not be read: `server` has a query or fragment (Secret kilo/east, key config); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}
