//! The commands by purpose, as the help lists them.

/// The commands about clusters as they are.
const CLUSTERS: &[&str] = if cfg!(feature = "snapshot") {
    &[
        "status",
        "guard",
        "rbac",
        "dns",
        "wireguard",
        "firewall",
        "annotate",
    ]
} else {
    &["guard", "rbac", "dns", "wireguard", "firewall", "annotate"]
};

/// The commands under the headings of the help.
pub(crate) const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Build",
        &["init", "snapshot", "render", "template", "argocd"],
    ),
    (
        "Check",
        &[
            "validate", "verify", "outage", "diff", "trace", "graph", "capacity", "report",
        ],
    ),
    ("Clusters", CLUSTERS),
    ("Learn", &["explain", "schema", "config"]),
    ("Shell", &["completions", "man"]),
];

/// Returns the names of the commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}
