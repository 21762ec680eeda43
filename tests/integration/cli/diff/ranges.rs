//! Ranges that belong to a cluster as a whole.

use super::*;
use crate::support::assert_contains;

/// The mesh in which `west` declares a range of services.
fn with_services(range: &str) -> String {
    let wireguard = "      wireguardCIDR: 10.103.0.0/24\n";
    MESH.replace(
        wireguard,
        &format!("{wireguard}      serviceCIDR: {range}\n"),
    )
}

#[test]
fn a_range_that_gets_smaller_loses_paths() {
    let folder = Folder::mesh();
    folder.write("mesh.yaml", with_services("10.96.0.0/16"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let repository = Repository::of(folder);
    repository.commit();
    repository
        .folder
        .write("mesh.yaml", with_services("10.96.0.0/17"));
    assert_eq!(repository.grade(&[]), "disruptive");
    let shown = repository.diff(&[]).stdout;
    assert_contains(&shown, "east → west: 2 declared paths lost\n");
    // The rest of it stays.
    assert!(!shown.contains("gained"), "{shown}");
    repository.commit();
    // All of it is in the new one.
    repository
        .folder
        .write("mesh.yaml", with_services("10.96.0.0/15"));
    let shown = repository.diff(&[]).stdout;
    assert!(!shown.contains("lost"), "{shown}");
}
