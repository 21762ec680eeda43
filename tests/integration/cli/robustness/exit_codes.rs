//! What a command shows as an error is exit code 1.

use serde_json::json;

use crate::cli::{Folder, node};

/// The commands that judge a mesh or compute from one, the ones that write last.
pub(in crate::cli) const COMMANDS: [&[&str]; 22] = [
    &["validate"],
    &["render", "--check"],
    &["verify"],
    &["outage"],
    &["capacity"],
    &["trace", "east/n1", "west/n1"],
    &["graph"],
    &["diff", "--against", "rendered"],
    &["firewall"],
    &["dns", "east"],
    &["guard", "east", "--writers", "ada"],
    &["argocd", "generate", "east"],
    &["config"],
    &["template", "t.yaml.j2"],
    &["rbac", "east"],
    &["wireguard", "laptop"],
    &["annotate", "east"],
    &["status", "--kubeconfig", "kubeconfig"],
    &["report", "--out", "page.html"],
    &["snapshot", "--kubeconfig", "kubeconfig", "--keep-going"],
    &["snapshot", "east", "--from", "east.json"],
    &["init", "--from", "south=east.json"],
];

/// A laptop that reaches a cluster.
const LAPTOP: &str = "  externalPeers:
    - name: laptop
      publicKey: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=
      ranges: [10.200.0.5/32]
      endpoint: 198.18.9.9:51820
      clusters: [east]
";

/// A kubeconfig without the clusters of the mesh.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: other
contexts: [{ name: other, context: { cluster: other, user: other } }]
clusters: [{ name: other, cluster: { server: 'http://127.0.0.1:1' } }]
users: [{ name: other, user: { token: t } }]
";

/// Nodes of a cluster that is in no mesh, as `kubectl get nodes -o json` lists them.
fn listed_nodes() -> String {
    let listed = [1, 2].map(|number| {
        let mut node = node(4, number);
        let (addresses, ranges) = (node["addresses"].take(), node["podCIDRs"].take());
        json!({ "metadata": node, "spec": { "podCIDRs": ranges }, "status": { "addresses": addresses } })
    });
    json!({ "kind": "List", "items": listed }).to_string()
}

#[test]
fn no_command_shows_an_error_and_exits_with_0() {
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    let crowded =
        format!("{config}limits: {{ capacity: {{ peers: {{ warning: 1, error: 2 }} }} }}\n");
    let closed = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n\
                  - { name: e, from: { cluster: east }, to: { cluster: west }, expect: Deny }\n";
    for (path, text) in [
        ("clustermesh.yaml", crowded.as_str()),
        ("clustermesh.yaml", "kind: Config\n"),
        ("expectations.yaml", closed),
        ("expectations.yml", closed),
        ("snapshots/east.json", "{"),
        ("policies/east.yaml", "{"),
        ("guards/east.yaml", "{}"),
        ("east.json", "{"),
        ("unknown.yaml", crowded.as_str()),
        ("t.yaml.j2", "{{ nothing.of.this }}"),
        ("policy/east.yaml", "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\n"),
        ("kubeconfig", "kind: ["),
        ("mesh.yaml", ""),
    ] {
        let folder = Folder::rendered();
        folder.write("mesh.yaml", format!("{}{LAPTOP}", folder.read("mesh.yaml")));
        folder.write("t.yaml.j2", "a: {{ target.name }}\n");
        folder.write("east.json", listed_nodes());
        folder.write("kubeconfig", KUBECONFIG);
        let overlapping = folder.read("mesh.yaml").replace("10.103.0.0", "10.101.0.0");
        folder.write(path, if text.is_empty() { &overlapping } else { text });
        for command in COMMANDS {
            let run = folder.run(command);
            let mut lines = run.stdout.lines().chain(run.stderr.lines());
            let is_error = lines
                .any(|it| it.starts_with("error") || it.split_whitespace().nth(1) == Some("error"));
            assert!(!is_error || run.code != 0, "{path} {command:?}\n{}{}", run.stdout, run.stderr);
            if command[0] == "report" && run.code != 2 {
                let page = folder.read("page.html");
                let shows_errors = page.contains("<h3 class=\"error\">");
                assert_eq!(run.code, i32::from(shows_errors), "{path}");
            }
        }
    }
}
