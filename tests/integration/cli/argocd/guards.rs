//! Lost nodes deliver nothing, and neither does a repository with hidden overrides.

use super::*;
use crate::support::assert_contains;

/// Leaves `east` without a node that another cluster can dial.
fn silence_east(application: &Application) {
    let mut node = node(1, 1);
    node["addresses"] = json!([]);
    node["annotations"]["kilo.squat.ai/endpoint"] = json!("");
    application.keep("east", &[node]);
}

fn allowing(application: Application, losses: &[&str]) -> Application {
    application.with(&json!([
        { "name": "target", "string": "west" },
        { "name": "allow-empty", "array": losses },
    ]))
}

#[test]
fn lost_nodes_deliver_nothing() {
    let application = Application::new("west");
    silence_east(&application);
    insta::assert_snapshot!(application.refusal(1), @"
    snapshots/east.json:1:401: error[missing-endpoint] east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address (2 other findings follow from it: error[lost-source])
      help: annotate each node with an address that other clusters can dial: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `east` instead; if a cluster should have no Peers, add `{name: allow-empty, array: [west/east]}` to the parameters of the plugin
    1 error
    ");
    let application = allowing(application, &["north/east"]);
    application.refusal(1);
    let manifests = allowing(application, &["west/east"]).manifests();
    assert!(manifests.contains("prod--north--n1") && !manifests.contains("prod--east"));
}

#[test]
fn lost_nodes_deliver_nothing_without_a_tree() {
    let application = Application::unrendered("west");
    silence_east(&application);
    insta::assert_snapshot!(application.refusal(1), @"
    snapshots/east.json:1:401: error[missing-endpoint] east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address (2 other findings follow from it: error[lost-source])
      help: annotate each node with an address that other clusters can dial: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`; if the nodes are behind NAT, set `persistentKeepalive: 25` for `east` instead; if a cluster should have no Peers, add `{name: allow-empty, array: [west/east]}` to the parameters of the plugin
    1 error
    ");
    application.keep("east", &[]);
    application.refusal(1);
    let application = allowing(application, &["*/east"]);
    assert!(application.manifests().contains("prod--north--n1"));
}

#[test]
fn all_peers_can_be_given_up() {
    let application = Application::new("west");
    silence_east(&application);
    application.keep("north", &[]);
    application.refusal(1);
    let manifests = allowing(application, &["west"]).manifests();
    assert_eq!(manifests, HEADER);
}

#[test]
fn a_repository_that_lost_its_mesh_delivers_nothing() {
    let application = Application::new("west");
    application.write("mesh.yaml", "");
    insta::assert_snapshot!(application.refusal(1), @"
    error[no-mesh] no ClusterMesh in `mesh.yaml`, so every Peer would be deleted
      help: write the mesh again, or, if every Peer is to be deleted, run `clustermesh render --allow-empty '*'`
    1 error
    ");
    fs::remove_file(application.path("mesh.yaml")).unwrap();
    insta::assert_snapshot!(application.refusal(2), @"error: no clustermesh.yaml, mesh.yaml or meshes/ found in the folder of the Application or above it, up to the root of the repository");
}

#[test]
fn hidden_overrides_deliver_nothing() {
    for (path, file, report) in [
        (
            "rendered/west",
            "rendered/west/.argocd-source.yaml",
            "overrides the source of every Argo CD Application",
        ),
        (
            "rendered/west",
            "rendered/north/.argocd-source-mesh.yaml",
            "overrides the source of the Argo CD Application `mesh`",
        ),
        ("rendered/west", "rendered/west/.sourceignore", "makes Flux ignore"),
        ("rendered/west", ".sourceignore", "makes Flux ignore"),
        (
            "apps/west",
            "apps/west/.argocd-source.yaml",
            "overrides the source of every Argo CD Application",
        ),
        (
            "apps/west",
            "apps/west/.argocd-source-mesh.yaml",
            "overrides the source of the Argo CD Application `mesh`",
        ),
        ("apps/west", "apps/west/.sourceignore", "makes Flux ignore"),
        (".", ".sourceignore", "makes Flux ignore"),
        (".", ".argocd-source.yaml", "overrides the source of every Argo CD Application"),
    ] {
        let mut application = Application::new("west");
        application.path = path.to_owned();
        fs::create_dir_all(application.path(path)).unwrap();
        let application = application.with(&json!([{ "name": "target", "string": "west" }]));
        assert_eq!(application.manifests(), rendered("west"));
        application.write(file, "plugin: { parameters: [{ name: target, string: east }] }\n");
        let refusal = application.refusal(1);
        assert_eq!(refusal.matches("error[override-file]").count(), 1, "{refusal}");
        assert_contains(&refusal, report);
        // A link may lead to another file tomorrow.
        fs::remove_file(application.path(file)).unwrap();
        symlink("nowhere", application.path(file)).unwrap();
        assert!(application.refusal(1).contains("(a symbolic link)"));
    }
}

#[test]
fn a_cluster_that_leaves_is_delivered_without_peers() {
    for application in [Application::new("west"), Application::unrendered("west")] {
        let name = "    - name: west\n";
        application.folder.edit(
            "repository/mesh.yaml",
            name,
            &format!("{name}      state: Leaving\n"),
        );
        assert_eq!(application.manifests(), HEADER);
    }
    let application = Application::new("west");
    let name = "    - name: east\n";
    application.folder.edit("repository/mesh.yaml", name, &format!("{name}      state: Leaving\n"));
    let manifests = application.manifests();
    assert!(manifests.contains("prod--north--n1") && !manifests.contains("prod--east"));
}
