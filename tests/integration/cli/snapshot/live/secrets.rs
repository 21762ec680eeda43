//! `--secrets-from`: kubeconfigs that the operator's mesh refers to.

use super::{expected, nodes};
use crate::api_server::{Answer, ApiServer, Authority, Context, Login, Proxy, Setup, kubeconfig};
use crate::cli::Folder;
use crate::support::Run;

mod references;
mod tenants;
mod trust;

const MESH: &str = "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: prod, namespace: kilo }
spec:
  clusters:
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.101.0.0/24
      kubeconfigSecretRef: { name: east, key: config }
    - name: north
      local: true
      podCIDRs: [10.2.0.0/16]
      wireguardCIDR: 10.102.0.0/24
";

const SNAPSHOT: [&str; 5] = ["snapshot", "--kubeconfig", "kubeconfig", "--secrets-from", "hub"];

/// A management cluster, `north`, with a Secret for `east`.
struct Site {
    folder: Folder,
    hub: ApiServer,
    east: ApiServer,
}

impl Site {
    /// Keeps the kubeconfig of `east` under a key.
    fn new(key: &str, east: impl Fn(Context) -> Context) -> Self {
        let (folder, mesh) = (Folder::mesh(), MESH);
        folder.write("mesh.yaml", mesh);
        let login = || Login::token("sesame-sesame");
        let server = Setup::nodes(&nodes(1)).login(login()).start();
        let context = Context::new("admin", &server.url());
        let text = kubeconfig(&[east(context)]);
        let hub = Setup::nodes(&nodes(2))
            .secret(["kilo", "east", key], &text)
            .login(Login::token("swordfish"))
            .start();
        let context = Context::new("hub", &hub.url()).user("token", "swordfish");
        folder.write("kubeconfig", kubeconfig(&[context]));
        Self { folder, hub, east: server }
    }

    fn snapshot(&self) -> Run {
        self.folder.run_with(&[], &SNAPSHOT)
    }

    /// The messages if `east` cannot be read; `north` is.
    fn failure(&self) -> String {
        let old = self.folder.read("snapshots/east.json");
        let run = self.snapshot();
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert_eq!(self.folder.read("snapshots/east.json"), old);
        assert_eq!(self.kept("north"), expected(2));
        assert_eq!(self.east.connections(), 0);
        let mut lines: Vec<&str> = run.stderr.lines().collect();
        lines.retain(|line| !line.starts_with("snapshots/north.json: 2 nodes, 2 usable, "));
        lines.join("\n")
    }

    fn kept(&self, cluster: &str) -> serde_json::Value {
        let text = self.folder.read(&format!("snapshots/{cluster}.json"));
        let snapshot: serde_json::Value = serde_json::from_str(&text).unwrap();
        snapshot["nodes"].clone()
    }
}

fn logged_in(context: Context) -> Context {
    context.user("token", "sesame-sesame")
}

#[test]
fn are_used() {
    let site = Site::new("config", logged_in);
    let run = site.snapshot();
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 2 nodes, 2 usable, written
    snapshots/north.json: 2 nodes, 2 usable, written
    ");
    assert_eq!(site.kept("east"), expected(1));
    assert_eq!(site.kept("north"), expected(2));
    let mut paths: Vec<String> = site.hub.requests().into_iter().map(|it| it.path).collect();
    paths.sort();
    assert_eq!(paths, ["/api/v1/namespaces/kilo/secrets/east", "/api/v1/nodes"]);
}

#[test]
fn are_not_where_the_mesh_says() {
    let site = Site::new("kubeconfig", logged_in);
    insta::assert_snapshot!(site.failure(), @"
    error[missing-secret]: east: could not be read: Secret kilo/east: the Secret has no key `config`; it has kubeconfig; snapshots/east.json was kept
    help: check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config
    ");
    site.folder.edit("mesh.yaml", "name: east, key", "name: other, key");
    insta::assert_snapshot!(site.failure(), @"
    error[missing-secret]: east: could not be read: Secret kilo/other: the Secret does not exist; snapshots/east.json was kept
    help: check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config
    ");
    site.folder.edit("mesh.yaml", ", namespace: kilo", "");
    insta::assert_snapshot!(site.failure(), @"
    error[missing-secret]: east: could not be read: Secret other: mesh prod has no `metadata.namespace`, so its namespace is unknown; snapshots/east.json was kept
    help: check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config
    ");
}

#[test]
fn name_the_cluster_that_refuses() {
    let site = Site::new("config", logged_in);
    let context = Context::new("hub", &site.hub.url()).user("token", "other-sesame");
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    let run = site.snapshot();
    assert_eq!(run.code, 2);
    let said = run.stderr.replace(&site.hub.address().to_string(), "SERVER");
    insta::assert_snapshot!(said, @"
    error[unauthorized]: east: could not be read: the operator's cluster SERVER refused the credentials of user `hub` of kubeconfig (401: Unauthorized); snapshots/east.json was kept
    help: renew the credentials of user `hub` of kubeconfig

    error[unauthorized]: north: could not be read: SERVER refused the credentials of user `hub` of kubeconfig (401: Unauthorized); snapshots/north.json was kept
    help: renew the credentials of user `hub` of kubeconfig
    ");
}

#[test]
fn may_not_be_read() {
    let site = Site::new("config", logged_in);
    let forbidding = Setup::nodes(&nodes(2)).fault(|request, _| {
        let message = r#"secrets "east" is forbidden: User "ada" cannot get resource "secrets""#;
        let is_secret = request.path.contains("/secrets/");
        is_secret.then(|| Answer::failure(403, "Forbidden", message).into())
    });
    let hub = forbidding.start();
    let context = Context::new("hub", &hub.url());
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    insta::assert_snapshot!(site.failure(), @r#"
    error[forbidden]: east: could not be read: the right to `get` the Secret `kilo/east` is missing (403: secrets "east" is forbidden: User "ada" cannot get resource "secrets"); snapshots/east.json was kept
    help: `clustermesh rbac --secret kilo/east` prints the manifests that grant this right in the operator's cluster
    "#);
}

#[test]
fn need_a_context_that_is_there() {
    let site = Site::new("config", logged_in);
    let context = Context::new("hob", &site.hub.url());
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    let run = site.snapshot();
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"
    error[invalid-kubeconfig]: east: could not be read: `--secrets-from` names the unknown context `hub`; did you mean `hob`? (kubeconfig); snapshots/east.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config

    error[invalid-kubeconfig]: north: could not be read: `--secrets-from` names the unknown context `hub`; did you mean `hob`? (kubeconfig); snapshots/north.json was kept
    help: check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or the config
    ");
}

#[test]
fn may_have_empty_fields() {
    let site = Site::new("config", |context| {
        ["tokenFile", "client-certificate", "client-key"]
            .into_iter()
            .fold(logged_in(context), |context, field| context.user(field, ""))
            .cluster("certificate-authority", "")
    });
    assert_eq!(site.snapshot().code, 0);
}

#[test]
fn are_secret_even_if_they_are_wrong() {
    for text in ["token: sesame-sesame", "users: [{ name: a, user: { token: sesame-sesame }"] {
        let mut site = Site::new("config", logged_in);
        site.hub = Setup::nodes(&nodes(2)).secret(["kilo", "east", "config"], text).start();
        let context = Context::new("hub", &site.hub.url());
        site.folder.write("kubeconfig", kubeconfig(&[context]));
        let said = site.failure();
        assert!(!said.contains("sesame"), "{said}");
    }
}

/// An attacker between us and the Secrets chooses which clusters are read.
#[test]
fn come_over_a_way_that_is_reported() {
    let mut site = Site::new("config", logged_in);
    let text = kubeconfig(&[logged_in(Context::new("admin", &site.east.url()))]);
    let identity = Authority::new("unknown").server(&["127.0.0.1"]);
    site.hub =
        Setup::nodes(&nodes(2)).secret(["kilo", "east", "config"], &text).tls(&identity).start();
    let context = Context::new("hub", &site.hub.url()).cluster("insecure-skip-tls-verify", true);
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    let run = site.snapshot();
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 2 nodes, 2 usable, written
    warning[unchecked-certificate]: east: the certificate of the cluster with its kubeconfig is not checked (`insecure-skip-tls-verify`): an attacker on the path could forge the kubeconfig

    snapshots/north.json: 2 nodes, 2 usable, written
    warning[unchecked-certificate]: north: its certificate is not checked (`insecure-skip-tls-verify`): an attacker on the path could forge the node list
    ");

    let hub = Setup::nodes(&nodes(2)).secret(["kilo", "east", "config"], &text).start();
    let proxy = Proxy::to(hub.address());
    let context = Context::new("hub", "http://hub.invalid")
        .cluster("proxy-url", format!("http://{}", proxy.address()));
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    let run = site.snapshot();
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stderr, @"
    snapshots/east.json: 2 nodes, 2 usable, unchanged
    warning[unencrypted-connection]: east: the cluster with its kubeconfig is read over plain HTTP: an attacker on the path could forge the kubeconfig

    snapshots/north.json: 2 nodes, 2 usable, unchanged
    warning[unencrypted-connection]: north: is read over plain HTTP: an attacker on the path could forge the node list
    ");
}

#[test]
fn have_an_end() {
    let mut site = Site::new("config", logged_in);
    let large = "#".repeat(4 << 20);
    site.hub = Setup::nodes(&nodes(2)).secret(["kilo", "east", "config"], &large).start();
    let context = Context::new("hub", &site.hub.url());
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    insta::assert_snapshot!(site.failure(), @"
    error[oversized-answer]: east: could not be read: the response cannot be used: it is larger than 4 MiB; snapshots/east.json was kept
    help: check that `server` in the kubeconfig is a Kubernetes API server
    ");
}
