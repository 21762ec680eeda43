//! The commands by purpose, as the help lists them.

/// The commands under the headings of the help.
pub(crate) const GROUPS: [(&str, &[&str]); 5] = [
    ("Build", &["init", "snapshot", "render", "template", "argocd"]),
    ("Check", &["validate", "verify", "outage", "diff", "trace", "graph", "capacity", "report"]),
    ("Clusters", &["status", "guard", "rbac", "dns", "wireguard", "firewall", "annotate"]),
    ("Learn", &["explain", "schema", "config"]),
    ("Shell", &["completions", "man"]),
];

/// Returns the names of the commands that this build has.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
    names.filter(|it| cfg!(feature = "snapshot") || *it != "status")
}
