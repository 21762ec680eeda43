//! A wrong line in the defaults of a mesh, and all that follows from it.

use super::*;

/// Most clusters contradict the default, so the line is wrong, and what follows from it has no advice of its own.
#[test]
fn a_wrong_default_is_one_entry_at_its_line() {
    for (default, said, help) in [
        (
            "granularity: Location",
            "5 of 5 clusters contradict the default `granularity` (management, ",
            "write `granularity: Full` in `spec.defaults` of the mesh",
        ),
        (
            "wireguardPort: 51821",
            "3 of 5 clusters contradict the default `wireguardPort` (management, ",
            "set `wireguardPort: 51820` in `defaults` of the mesh or in the entries of these clusters, or forward",
        ),
        (
            "nodeSelector: { matchLabels: { role: worker } }",
            "4 of 4 clusters contradict the default `nodeSelector` (tenant-ada, ",
            "correct `nodeSelector` in `spec.defaults` of the mesh",
        ),
        (
            "endpointFrom: [Annotation]",
            "3 of 5 clusters contradict the default `endpointFrom` (management, ",
            "correct `endpointFrom` in `spec.defaults` of the mesh",
        ),
    ] {
        let folder = rendered("hub-and-spokes");
        let mesh = folder.read("mesh.yaml");
        let kept = mesh.lines().filter(|it| !it.contains("granularity: Full"));
        folder.write("mesh.yaml", kept.collect::<Vec<_>>().join("\n") + "\n");
        let before = lines(&folder);
        folder.edit(
            "mesh.yaml",
            "spec:\n  topology",
            &format!("spec:\n  defaults:\n    {default}\n  topology"),
        );
        let run = folder.run(&["validate"]);
        let mut found = lines(&folder);
        // With locations, a node that is not ready counts.
        found.retain(|it| !before.contains(it) && it != "warning node-not-ready");
        assert_eq!(found.len(), 1, "{found:#?} {}", run.stdout);
        assert_contains(&run.stdout, &format!("[contradicted-declaration]: the nodes of {said}"));
        assert_contains(&run.stdout, &format!("help: {help}"));
        assert!(!run.stdout.contains("allow-empty"), "{}", run.stdout);
    }
}

/// Two clusters of many may be wrong themselves.
#[test]
fn a_default_that_most_clusters_confirm_is_right() {
    let folder = rendered("hub-and-spokes");
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  defaults: { granularity: Full }\n");
    for tenant in ["tenant-ada", "tenant-bell"] {
        let path = format!("snapshots/{tenant}.json");
        let text = folder.read(&path).replace("granularity\": \"full", "granularity\": \"cross");
        folder.write(&path, text);
    }
    let run = folder.run(&["validate"]);
    assert!(!run.stdout.contains("the default `granularity`"), "{}", run.stdout);
    assert_contains(&run.stdout, "contradicted-declaration]: tenant-ada: ");
}

/// Nodes that the entry does not select do not hide why the others are left out.
#[test]
fn a_range_that_a_hub_lacks_is_one_entry() {
    for range in ["10.100.0.0/16 # pods", "10.120.0.0/24 # WireGuard"] {
        let folder = rendered("hub-and-spokes");
        folder.edit("mesh.yaml", &format!("        - {range}\n"), "");
        let mut found = lines(&folder);
        found.retain(|it| it.starts_with("error"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_contains(&found[0], "error contradicted-declaration ");
        let run = folder.run(&["validate"]);
        assert!(!run.stdout.contains("allow-empty"), "{}", run.stdout);
    }
}
