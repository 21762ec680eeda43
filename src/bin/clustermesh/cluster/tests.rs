use clustermesh::name::ClusterName;
use clustermesh::rules;
use clustermesh::rules::clusters::{self, AMBIGUOUS, OVERSIZED};
use http::StatusCode;
use kube::config::ExecConfig;
use rustls::CertificateError;
use serde_json::json;

use super::failure::{self, RequestFailure};
use super::kubeconfig::Loaded;
use super::proxy::Proxy;
use super::request::{LIST_NODES, forbidden, redirected, refused, unauthorized};
use super::*;

const SERVER: &str = "198.18.113.1:6443";

const MINUTE: Duration = Duration::from_secs(60);

/// A kubeconfig with this user and this current context.
fn kubeconfig(user: &serde_json::Value, current: &str, origin: &str) -> Loaded {
    let context =
        |name: &str| json!({ "name": name, "context": { "cluster": "east", "user": "snapshot" } });
    let text = json!({
        "clusters": [{ "name": "east", "cluster": { "server": format!("https://{SERVER}") } }],
        "users": [{ "name": "snapshot", "user": user }],
        "contexts": [context("admin@east-1"), context("admin@west-1")],
        "current-context": current,
    });
    Loaded::from_text(&text.to_string(), origin.to_owned()).unwrap()
}

fn connection() -> Connection {
    let user = json!({ "token": "sesame" });
    let selected = kubeconfig(&user, "admin@east-1", "ci/kubeconfig.yaml").current();
    let mut runtime = runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let open = Connection::open(selected.unwrap(), MINUTE);
    runtime.block_on(open).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(failure: RequestFailure) -> Fault {
    match failure {
        RequestFailure::Final(fault) | RequestFailure::Passing(fault, _) => fault,
    }
}

/// Faults of kubeconfigs, Secrets and login plugins.
fn of_access() -> Vec<Fault> {
    let file = ["ci/kubeconfig".into()];
    let nobody = json!({});
    let plugin =
        json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "aws" } });
    let secret = "Secret kilo-clustermesh/east-kubeconfig, key kubeconfig";
    let unsafe_kubeconfig = kubeconfig(&plugin, "admin@east-1", secret).current();
    vec![
        Kubeconfigs::new(MINUTE).context(&file, "east").unwrap_err(),
        kubeconfig(&nobody, "east", "ci/kubeconfig.yaml").current().unwrap_err(),
        meshes::harmless(unsafe_kubeconfig.unwrap()).unwrap_err(),
        wrong_secret(
            "kilo-clustermesh/east-kubeconfig",
            "the Secret has no key `kubeconfig`; it has value",
        ),
        Fault::new(&AMBIGUOUS, "meshes prod and staging name different Secrets for its kubeconfig"),
    ]
}

/// Faults of servers, and of the way to them.
fn of_servers() -> Vec<Fault> {
    let connection = connection();
    let refused_connection = "Connection refused (os error 111)";
    let proxy =
        Proxy { url: "http://proxy.example.com:3128".parse().unwrap(), origin: "HTTPS_PROXY" };
    let issuer = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    let no_right = "nodes is forbidden: User \"system:serviceaccount:clustermesh:snapshot\" cannot \
                    list resource \"nodes\" in API group \"\" at the cluster scope";
    vec![
        connection::unknown_host("api.east.example.com"),
        failure::unreachable(&connection, refused_connection).tried(9),
        proxy.unusable(SERVER, refused_connection),
        failure::slow(&connection, MINUTE),
        failure::certificate(&issuer, SERVER).unwrap(),
        unauthorized(&connection, &LIST_NODES, "Unauthorized"),
        forbidden(&connection, &LIST_NODES, no_right),
        refused(StatusCode::INTERNAL_SERVER_ERROR, "etcdserver: leader changed").tried(5),
        redirected(&connection, "https://login.example.com/?token=sesame"),
        fault(failure::cut("end of file before message length reached")).tried(5),
        fault(pages::unreadable("it is a web page")),
        useless(&OVERSIZED, "it is larger than 32 MiB"),
    ]
}

fn login_fault() -> Fault {
    let script = "echo 'Token has expired and refresh failed' >&2; exit 255";
    let plugin: ExecConfig = serde_json::from_value(json!({
        "command": "sh", "args": ["-c", script],
    }))
    .unwrap();
    let login = login::login(&plugin, &Redactions::default(), MINUTE);
    login.err().unwrap()
}

/// The pages of the rules show messages that only a server, or a plugin, can cause.
#[test]
fn pages_show_what_is_reported() {
    let east: ClusterName = "east".parse().unwrap();
    let faults = [of_access(), of_servers(), vec![login_fault()]].concat();
    let faults =
        faults.iter().map(|fault| clusters::fault(&east, fault, Some("snapshots/east.json")));
    let weaknesses = [Weakness::UncheckedCertificate, Weakness::Unencrypted]
        .map(|it| clusters::weakness(&east, it, Wanted::Nodes.answers()));
    let findings: Vec<_> = faults.chain(weaknesses).chain([clusters::missing_crd(&east)]).collect();
    let mut shown = 0;
    for rule in rules::all() {
        let page = rule.page();
        let example = page.sections.iter().find(|it| it.title == "Example");
        let Some((_, text)) = example.unwrap().text.split_once("```text\n") else {
            continue;
        };
        // More nodes than a page has room for cause it.
        if rule.name() == "many-tunnels" {
            continue;
        }
        shown += 1;
        let found = findings.iter().filter(|it| it.rule == rule);
        let messages: Vec<String> =
            found.map(|it| format!("east: {}", it.message).replace("`sh`", "`aws`")).collect();
        let text = text.split("```").next().unwrap().trim().replace('\n', " ");
        assert!(messages.contains(&text), "{}: {messages:#?}", rule.name());
    }
    assert!(18 < shown, "{shown}");
}

#[test]
fn a_fault_tells_cause_consequence_and_remedy() {
    let east: ClusterName = "east".parse().unwrap();
    let says = "nodes is forbidden: User \"\u{1b}[2Jx\" cannot";
    let fault = forbidden(&connection(), &LIST_NODES, says);
    let found = clusters::fault(&east, &fault, None);
    insta::assert_snapshot!(found.message, @r#"could not be read: the right to `list` `nodes` is missing (403: nodes is forbidden: User "\u{1b}[2Jx" cannot); it has no snapshot yet"#);
    insta::assert_snapshot!(found.help.unwrap(), @"`clustermesh rbac` prints the manifests that grant this right");
}
