//! Ranges that belong to a cluster as a whole.

use super::*;
use crate::support::assert_contains;

/// The entry of `west` in the other form, and another endpoint, so that its paths are proved.
#[test]
fn a_range_in_another_field_loses_no_path() {
    let folder = Folder::mesh();
    folder.write("mesh.yaml", with_services("10.96.0.0/16"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.3.0.0/16]\n      wireguardCIDR: 10.103.0.0/24\n      serviceCIDR: 10.96.0.0/16",
        "allowedNetworks: [10.3.0.0/16, 10.103.0.0/24, 10.96.0.0/16]",
    );
    let mut node = node(3, 1);
    node["addresses"][1]["address"] = json!("198.18.113.99");
    folder.keep("west", &[node, super::node(3, 2)]);
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "1 Peer with another endpoint\n");
    assert!(!shown.contains("lost"), "{shown}");
    assert_eq!(repository.grade(&[]), "brief");
}

/// A node that joins has an address in the range of the nodes, between those of two others.
#[test]
fn an_address_that_becomes_that_of_a_node_is_not_lost() {
    let folder = Folder::mesh();
    let wireguard = "      wireguardCIDR: 10.103.0.0/24\n";
    let additional = format!("{wireguard}      additionalCIDRs: [192.168.3.0/24]\n");
    folder.write("mesh.yaml", MESH.replace(wireguard, &additional));
    folder.keep("west", &[node(3, 1), node(3, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    let nodes = [1, 2, 3].map(|number| node(3, number));
    repository.folder.keep("west", &nodes);
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "node west/n2 was added\n");
    assert!(!shown.contains("lost"), "{shown}");
}

/// The mesh in which `west` declares a range of services.
fn with_services(range: &str) -> String {
    let wireguard = "      wireguardCIDR: 10.103.0.0/24\n";
    MESH.replace(wireguard, &format!("{wireguard}      serviceCIDR: {range}\n"))
}

#[test]
fn a_range_that_gets_smaller_loses_paths() {
    let folder = Folder::mesh();
    folder.write("mesh.yaml", with_services("10.96.0.0/16"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.write("mesh.yaml", with_services("10.96.0.0/17"));
    assert_eq!(repository.grade(&[]), "disruptive");
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "east → west: 2 declared paths lost\n");
    // The rest of it stays.
    assert!(!shown.contains("gained"), "{shown}");
    repository.commit();
    // All of it is in the new one.
    repository.folder.write("mesh.yaml", with_services("10.96.0.0/15"));
    let shown = repository.diff(&[]).stdout;
    assert!(!shown.contains("lost"), "{shown}");
}
