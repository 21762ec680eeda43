//! Secrets that the config names: one namespace for each tenant, as in Cozystack.

use super::{SNAPSHOT, Site, expected, logged_in};
use crate::api_server::{Context, Login, Setup, kubeconfig};
use crate::cli::snapshot::live::nodes;
use crate::support::assert_contains;

const CONFIG: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters:
  east:
    kubeconfigSecret: { namespace: tenant-east, name: kubernetes-east, key: super-admin.conf }
";

/// The mesh names other Secrets in one namespace; the config takes precedence.
fn site() -> Site {
    let mut site = Site::new("config", logged_in);
    let context = logged_in(Context::new("admin", &site.east.url()));
    site.hub = Setup::nodes(&nodes(2))
        .secret(["tenant-east", "kubernetes-east", "super-admin.conf"], &kubeconfig(&[context]))
        .login(Login::token("swordfish"))
        .start();
    let context = Context::new("hub", &site.hub.url()).user("token", "swordfish");
    site.folder.write("kubeconfig", kubeconfig(&[context]));
    site.folder.write("clustermesh.yaml", CONFIG);
    site
}

#[test]
fn only_the_named_secret_is_read() {
    let site = site();
    let run = site.snapshot();
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert_eq!(site.kept("east"), expected(1));
    let mut paths: Vec<String> = site.hub.requests().into_iter().map(|it| it.path).collect();
    paths.sort();
    let secret = "/api/v1/namespaces/tenant-east/secrets/kubernetes-east";
    assert_eq!(paths, [secret, "/api/v1/nodes"]);
    let shown = site.folder.run(&["config"]).stdout;
    assert_contains(&shown, "tenant-east/kubernetes-east (super-admin.conf)");
}

#[test]
fn the_cluster_of_the_secrets_must_be_named() {
    let site = site();
    let run = site.folder.run_with(&[], &[&SNAPSHOT[..3], &["east"]].concat());
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "Secret tenant-east/kubernetes-east");
    assert_contains(&run.stderr, "`--secrets-from` is missing");
    assert_contains(&run.stderr, "help: add `--secrets-from CONTEXT`");
    assert_eq!(site.hub.connections() + site.east.connections(), 0);
}

#[test]
fn a_secret_is_no_path() {
    let site = site();
    for (right, wrong) in
        [("namespace: tenant-east", "namespace: ../nodes"), ("name: kubernetes-east", "name: a/b")]
    {
        site.folder.write("clustermesh.yaml", CONFIG.replace(right, wrong));
        let run = site.snapshot();
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert_contains(&run.stderr, "is not a DNS-1123");
    }
    let key = CONFIG.replace("key: super-admin.conf", "key: ..");
    site.folder.write("clustermesh.yaml", key);
    assert_contains(&site.snapshot().stderr, "a key may contain only letters");
    let secrets = site.hub.requests().into_iter().filter(|it| it.path.contains("secrets"));
    assert_eq!(secrets.count(), 0);
    let both = CONFIG.replace("  east:\n", "  east:\n    context: other\n");
    site.folder.write("clustermesh.yaml", both);
    assert_contains(
        &site.snapshot().stderr,
        "error[contradicting-fields]: `kubeconfigSecret` cannot",
    );
}
