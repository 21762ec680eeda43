//! Mistakes that are in no single entry: in the settings of a mesh, or between clusters.

use super::*;

#[test]
fn a_topology_that_does_not_link_two_clusters_is_the_cause() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [east] }\n");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["trace", "north", "west"]);
    assert_eq!(run.code, 1);
    let finding = run.stdout.split_once("error[").unwrap().1;
    insta::assert_snapshot!(finding, @"
    no-route]: no Peer of north contains 10.3.1.2
     --> mesh.yaml:6:32
      |
    6 |   topology: { mode: Hub, hubs: [east] }
      |                                ^^^^^^ does not link the two clusters
    ");
}

#[test]
fn a_default_port_on_which_no_cluster_listens() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  defaults: { wireguardPort: 51821 }\n");
    let help = &findings(&folder)[0][2];
    insta::assert_snapshot!(help, @"set `wireguardPort: 51820` in `defaults` of the mesh or in the entries of these clusters, or forward UDP 51821 to 51820");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["verify"]);
    let why = "Kilo on north/n1 listens on 51820, not at 198.18.113.21:51821 as in the Peer prod--north--n1";
    assert_contains(&run.stdout, why);
}

#[test]
fn nodes_that_do_not_agree_on_a_granularity() {
    let folder = Folder::mesh();
    let mut cross = node(3, 1);
    cross["annotations"]["kilo.squat.ai/granularity"] = json!("cross");
    folder.keep("west", &[cross, node(3, 2)]);
    let [_, _, help, message] = &findings(&folder)[0];
    insta::assert_snapshot!(message, @"has granularity Cross, but most nodes of the cluster do not have the same one, so the cluster is rendered with Location");
    insta::assert_snapshot!(help, @"start Kilo on all nodes of `west` with the same `--mesh-granularity`, and set it as `granularity` in its entry");
}

#[test]
fn a_cluster_that_loses_all_its_links_loses_them_to_all_clusters_that_leave() {
    let folder = Folder::rendered();
    for cluster in ["north", "west"] {
        let name = format!("- name: {cluster}\n");
        folder.edit("mesh.yaml", &name, &format!("{name}      state: Leaving\n"));
    }
    let found: Vec<String> = findings(&folder).into_iter().map(|it| it.concat()).collect();
    insta::assert_snapshot!(found.join("\n"), @"
    leaving-clusternoticeunless Flux applies the folder, run `kubectl --context east delete peers -l kilo-clustermesh.io/mesh=prod`is linked only to `north`, `west`, which leave, and gets no Peers any more; `kubectl apply -k` and automated sync of Argo CD refuse the empty folder `east` and keep the old Peers
    leaving-clusternoticeunless Flux applies the folder, run `kubectl --context north delete peers -l kilo-clustermesh.io/mesh=prod`; `clustermesh render` lists the next steps for northleaves and gets no Peers any more; `kubectl apply -k` and automated sync of Argo CD refuse the empty folder `north` and keep the old Peers
    leaving-clusternoticeunless Flux applies the folder, run `kubectl --context west delete peers -l kilo-clustermesh.io/mesh=prod`; `clustermesh render` lists the next steps for westleaves and gets no Peers any more; `kubectl apply -k` and automated sync of Argo CD refuse the empty folder `west` and keep the old Peers
    ");
}

#[test]
fn node_addresses_of_a_cluster_with_one_list_are_added_to_that_list() {
    let folder = Folder::mesh();
    let typed = "podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24";
    folder.edit("mesh.yaml", typed, "allowedNetworks: [10.2.0.0/16, 10.102.0.0/24]");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["trace", "east", "north", "--class", "node"]);
    let help = run.stdout.split_once("help: ").unwrap().1;
    insta::assert_snapshot!(help, @"to make the internal addresses of nodes reachable, declare them in `allowedNetworks` of north");
}

#[test]
fn a_rendered_folder_with_what_is_rendered_from() {
    let folder = Folder::rendered();
    for rendered in [".", "snapshots", "rendered/../snapshots"] {
        for command in ["validate", "render"] {
            let refusal = folder.refusal(2, |it| it.run(&[command, "--rendered", rendered]));
            assert_contains(
                &refusal,
                &format!("error: the rendered folder `{rendered}` contains the "),
            );
        }
    }
    let refusal = folder.refusal(2, |it| it.run(&["validate", "--rendered", "."]));
    insta::assert_snapshot!(refusal, @"error: the rendered folder `.` contains the mesh `mesh.yaml`; set `rendered` to a folder of its own");
}

/// The ranges overlap only because one of them is wrong.
#[test]
#[cfg(feature = "snapshot")]
fn a_status_reports_the_cause_of_overlapping_ranges() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "10.102.0.0/24", "10.101.0.0/24");
    let run = folder.run(&["status", "north"]);
    assert_contains(&run.stderr, "error[contradicted-declaration]: north: ");
    let help = "help: write `wireguardCIDR: 10.102.0.0/24` in the entry of `north`";
    assert_contains(&run.stderr, help);
    assert!(!run.stderr.contains("error[overlapping-ranges]"), "{}", run.stderr);
}
