//! `snapshot --services` of live clusters: exactly what meshes name is requested.

use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Context, Login, Reply, Setup, kubeconfig};
use crate::cli::Folder;
use crate::cli::snapshot::services::{mirroring, service};
use crate::support::{Run, assert_contains};

/// A mesh in which `east` gets Services of `west`. Nothing is known of `north`.
struct Mirrors {
    folder: Folder,
    east: ApiServer,
    west: ApiServer,
}

const TOKEN: &str = "sesame-opens-the-door";

impl Mirrors {
    fn new(west: Setup) -> Self {
        let mirrors =
            Self { folder: mirroring(), east: Setup::default().start(), west: west.start() };
        mirrors.reach();
        mirrors
    }

    /// Writes the kubeconfig.
    fn reach(&self) {
        let text = kubeconfig(&[
            Context::new("east", &self.east.url()),
            Context::new("west", &self.west.url()).user("token", TOKEN),
        ]);
        self.folder.write("kubeconfig", text);
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let command = ["snapshot", "--services", "--kubeconfig", "kubeconfig"];
        self.folder.run_with(&[], &[&command, arguments].concat())
    }

    /// Fails unless `west` keeps its old file and `east` gets one, and returns what is reported.
    fn failure(reply: impl Fn() -> Reply + Send + Sync + 'static) -> String {
        let setup = Setup::default().fault(move |_, _| Some(reply()));
        let mirrors = Self::new(setup);
        let old = format!("{OLD}\n");
        mirrors.folder.write("snapshots/west.services.json", &old);
        let run = mirrors.run(&[]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert_eq!(mirrors.folder.read("snapshots/west.services.json"), old);
        assert!(mirrors.folder.path("snapshots/east.services.json").exists());
        let report = run.stderr;
        assert!(!report.contains(TOKEN) && !report.contains('\u{1b}'), "{report}");

        let run = mirrors.run(&["--keep-going"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_contains(&run.stderr, "warning[");
        assert_eq!(mirrors.run(&["--keep-going", "--fail-on", "warning"]).code, 1);
        let lines = report.lines().filter(|it| !it.contains("east.services"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

const OLD: &str = r#"{"apiVersion": "kilo-clustermesh.io/v1", "cluster": "west", "kind": "ServiceSnapshot", "services": []}"#;

fn spec() -> Value {
    service("api", "10.45.0.20")["spec"].clone()
}

/// An answer for every Service, changed.
fn changed(change: impl Fn(&mut Value)) -> Reply {
    let mut answer = service("api", "10.45.0.20");
    change(&mut answer);
    Answer::json(&answer).into()
}

#[test]
fn asks_for_nothing_else() {
    let west = Setup::default()
        .login(Login::token(TOKEN))
        .service(["shop", "api"], &spec())
        .service(["shop", "other"], &spec());
    let mut mirrors = Mirrors::new(west);
    let before = mirrors.folder.touches("snapshots");
    let run = mirrors.run(&[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.services.json: 2 Services, 2 missing, written
    snapshots/west.services.json: 2 Services, 1 missing, written
    ");
    for server in [&mirrors.east, &mirrors.west] {
        let requests = server.requests();
        let paths: Vec<_> = requests.iter().map(|it| it.path.as_str()).collect();
        let of = |name| format!("/api/v1/namespaces/shop/services/{name}");
        assert_eq!(paths, [of("api"), of("search")]);
        assert!(requests.iter().all(|it| it.query.is_empty()));
    }
    let mut after = mirrors.folder.touches("snapshots");
    let written = [after.remove("east.services.json"), after.remove("west.services.json")];
    let [east, west] = written.map(|it| serde_json::from_str::<Value>(&it.unwrap().2).unwrap());
    assert_eq!(after, before);
    assert_eq!(east["services"][0]["found"], Value::Null);
    assert_eq!(west["services"][0]["found"]["clusterIPs"], json!(["10.45.0.20"]));
    let before = mirrors.folder.touches("snapshots");
    insta::assert_snapshot!(mirrors.run(&["west"]).stderr, @"snapshots/west.services.json: 2 Services, 1 missing, unchanged");
    assert_eq!(mirrors.folder.touches("snapshots"), before);

    let mut spec = spec();
    spec["selector"] = json!({});
    mirrors.west =
        Setup::default().service(["shop", "api"], &spec).service(["shop", "search"], &spec).start();
    mirrors.reach();
    let run = mirrors.run(&["--check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @"
    snapshots/west.services.json: `shop/api`: hasSelector was `true`, is `false`
    snapshots/west.services.json: `shop/search`: added
    ");
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.services.json: 2 Services, 2 missing, up to date
    snapshots/west.services.json: 2 Services, differs
    ");
    assert_eq!(mirrors.folder.touches("snapshots"), before);
}

#[test]
fn a_missing_right_is_named() {
    let message = r#"services "api" is forbidden: User "ada" cannot get resource "services" in API group "" in the namespace "shop""#;
    let report = Mirrors::failure(|| Answer::failure(403, "Forbidden", message).into());
    insta::assert_snapshot!(report, @r#"
    error[forbidden]: west: could not be read: the right to `get` the Service `shop/api` is missing (403: services "api" is forbidden: User "ada" cannot get resource "services" in API group "" in the namespace "shop"); snapshots/west.services.json was kept
    help: `clustermesh rbac --services west` prints the manifests that grant this right
    "#);
}

#[test]
fn other_answers_are_not_believed() {
    for (pointer, value) in [
        ("/kind", json!("Secret")),
        ("/metadata/name", json!("\u{1b}[2J")),
        ("/metadata/namespace", json!("kube-system")),
        ("/spec/type", json!("\u{1b}[2J")),
    ] {
        let report = Mirrors::failure(move || {
            changed(|it| *it.pointer_mut(pointer).unwrap() = value.clone())
        });
        assert_contains(&report, "cannot be used: expected the Service `shop/api`; snapshots/west");
    }
    let report = Mirrors::failure(|| Answer::new(200, "text/html", "<p>\u{1b}[2J</p>").into());
    insta::assert_snapshot!(report, @"
    error[unreadable-answer]: west: could not be read: the response cannot be used: the response is not JSON; snapshots/west.services.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let report = Mirrors::failure(|| Reply::Flood(5 << 20));
    insta::assert_snapshot!(report, @"
    error[oversized-answer]: west: could not be read: the response cannot be used: it is larger than 4 MiB; snapshots/west.services.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
    let report = Mirrors::failure(|| Answer::failure(410, "Gone", "gone").into());
    insta::assert_snapshot!(report, @"
    error[refused-request]: west: could not be read: the server responded with 410; snapshots/west.services.json was kept
    help: try again later; check the API server and the load balancer in front of it
    ");
    let report = Mirrors::failure(|| {
        changed(|it| it["metadata"]["annotations"] = json!({ "x": format!("Bearer {TOKEN}") }))
    });
    insta::assert_snapshot!(report, @"
    error[unreadable-answer]: west: could not be read: the response cannot be used: it contains the request's credentials; snapshots/west.services.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}

#[test]
fn a_cluster_without_services_is_not_asked() {
    let mirrors = Mirrors::new(Setup::default());
    insta::assert_snapshot!(mirrors.run(&["north"]).stderr, @"error: `spec.services` names no Service that `north` has or gets, only Services of `east`, `west`");
    insta::assert_snapshot!(mirrors.run(&["wets"]).stderr, @"error: no mesh contains a cluster `wets`; did you mean `west`?");
    assert_contains(&mirrors.run(&["--wait", "1m"]).stderr, "cannot be used with");
    let mesh = mirrors.folder.read("mesh.yaml");
    let leaving = mesh.replace("- name: east\n", "- name: east\n      state: Leaving\n");
    mirrors.folder.write("mesh.yaml", leaving);
    insta::assert_snapshot!(mirrors.run(&[]).stderr, @"snapshots/west.services.json: 2 Services, 2 missing, written");
    let (without, _) = mesh.split_once("  services:\n").unwrap();
    mirrors.folder.write("mesh.yaml", without);
    insta::assert_snapshot!(mirrors.run(&[]).stderr, @"error: no mesh names a Service in `spec.services`");
    // A job does not know whether there are any.
    let run = mirrors.run(&["--keep-going", "--fail-on", "warning"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"note: no mesh names a Service in `spec.services`, so there is nothing to save");
    assert!(mirrors.east.requests().is_empty());
}
