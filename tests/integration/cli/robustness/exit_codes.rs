//! What a command shows as an error is exit code 1.

use crate::cli::Folder;

/// The commands that judge a mesh, without `report`, which writes a page.
pub(in crate::cli) const COMMANDS: [&[&str]; 13] = [
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
];

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
        ("mesh.yaml", ""),
    ] {
        let folder = Folder::rendered();
        let overlapping = folder.read("mesh.yaml").replace("10.103.0.0", "10.101.0.0");
        folder.write(path, if text.is_empty() { &overlapping } else { text });
        for command in COMMANDS {
            let run = folder.run(command);
            let mut lines = run.stdout.lines().chain(run.stderr.lines());
            let is_error = lines
                .any(|it| it.starts_with("error") || it.split_whitespace().nth(1) == Some("error"));
            assert!(!is_error || run.code != 0, "{path} {command:?}\n{}{}", run.stdout, run.stderr);
        }
    }
}
