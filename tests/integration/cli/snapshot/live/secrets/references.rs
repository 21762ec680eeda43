//! References to Secrets: those in meshes, and contradictions between them.

use super::{MESH, SNAPSHOT, Site, logged_in};

/// Another mesh, of `east` and `south`.
const OTHER: &str = "\
---
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: test, namespace: kilo }
spec:
  clusters:
    - name: east
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.101.0.0/24
      kubeconfigSecretRef: { name: east, key: config }
    - name: south
      podCIDRs: [10.3.0.0/16]
      wireguardCIDR: 10.103.0.0/24
";

/// Only one of two operators can run in the cluster that is read.
#[test]
fn are_not_in_every_local_cluster() {
    let site = Site::new("config", logged_in);
    let other = OTHER.replace("name: south", "name: south\n      local: true");
    site.folder.write("mesh.yaml", format!("{MESH}{other}"));
    let run = site.snapshot();
    assert_eq!(run.code, 2);
    insta::assert_snapshot!(run.stderr, @"
    error[ambiguous-access]: north: could not be read: several clusters are `local` in a mesh (north, south), but --secrets-from can read only one; snapshots/north.json was kept
    help: set `clusters: { north: { context: CONTEXT } }` in the config, or run `clustermesh snapshot north --context CONTEXT`

    error[ambiguous-access]: south: could not be read: several clusters are `local` in a mesh (north, south), but --secrets-from can read only one; it has no snapshot yet
    help: set `clusters: { south: { context: CONTEXT } }` in the config, or run `clustermesh snapshot south --context CONTEXT`

    snapshots/east.json: 2 nodes, 2 usable, written
    ");
    site.folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters: { south: { context: hub }, north: { context: hub } }
",
    );
    std::fs::remove_file(site.folder.path("snapshots/north.json")).unwrap();
    assert_eq!(site.snapshot().code, 0);
}

#[test]
fn are_not_where_meshes_say_different_things() {
    let said = |from: &str, to: &str| {
        let site = Site::new("config", logged_in);
        let mesh = format!("{MESH}{}", OTHER.replace(from, to));
        site.folder.write("mesh.yaml", mesh);
        let run = site.folder.run(&[SNAPSHOT.as_slice(), &["east"]].concat());
        assert_eq!(site.hub.connections(), usize::from(run.code == 0));
        run.stderr
    };
    insta::assert_snapshot!(said("none", "none"), @"snapshots/east.json: 2 nodes, 2 usable, written");
    for (from, to) in [
        ("name: east, key", "name: other, key"),
        ("namespace: kilo", "namespace: other"),
        ("key: config", "key: other"),
        (", namespace: kilo", ""),
    ] {
        insta::allow_duplicates!(insta::assert_snapshot!(said(from, to), @"
        error[ambiguous-access]: east: could not be read: meshes prod and test name different Secrets for its kubeconfig; snapshots/east.json was kept
        help: set `clusters: { east: { context: CONTEXT } }` in the config, or run `clustermesh snapshot east --context CONTEXT`
        "));
    }
}

#[test]
fn have_names_that_lead_nowhere_else() {
    let said = |from: &str, to: &str| {
        let site = Site::new("config", logged_in);
        site.folder.edit("mesh.yaml", from, to);
        let run = site.folder.run(&[SNAPSHOT.as_slice(), &["east"]].concat());
        assert_eq!((run.code, site.hub.connections()), (2, 0));
        run.stderr
    };
    for name in ["..", "'../../../nodes'", "East", "a..b", "-a", "'a%2Fb'"] {
        let said = said("name: east, key", &format!("name: {name}, key"))
            .replace(&format!("kilo/{}:", name.trim_matches('\'')), "kilo/NAME:");
        insta::allow_duplicates!(insta::assert_snapshot!(said, @"
        error[missing-secret]: east: could not be read: Secret kilo/NAME: the name is not a DNS-1123 subdomain; snapshots/east.json was kept
        help: check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config
        "));
    }
    for namespace in ["..", "a.b", "'kilo/secrets'", "kilo-"] {
        let said = said("namespace: kilo", &format!("namespace: {namespace}"))
            .replace(&format!("Secret {}/", namespace.trim_matches('\'')), "Secret NAMESPACE/");
        insta::allow_duplicates!(insta::assert_snapshot!(said, @"
        error[missing-secret]: east: could not be read: Secret NAMESPACE/east: the namespace is not a DNS-1123 label; snapshots/east.json was kept
        help: check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config
        "));
    }
}
