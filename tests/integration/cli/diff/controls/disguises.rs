//! Addresses that come back as something else: of another class, node or cluster.

use super::*;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";

/// A hub whose tenant north is denied something of west, and the full mesh that would open it.
fn denied(declared: &str, spec: &str) -> Repository {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", HUB);
    if !declared.is_empty() {
        declare(&folder, "west", declared);
    }
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    folder.keep("west", &[node(3, 1), database("db")]);
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

/// A node with a label, which the mesh need not select.
fn database(pool: &str) -> Value {
    let mut node = node(3, 2);
    node["labels"] = json!({ "pool": pool });
    node
}

fn with_key(mut node: Value, number: u8) -> Value {
    node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([number; 32]));
    node
}

fn set_address(node: &mut Value, address: &str) {
    node["annotations"]["kilo.squat.ai/internal-ip"] = json!(format!("{address}/24"));
    node["addresses"][0]["address"] = json!(address);
}

fn denial(of: &str) -> String {
    format!(
        "  - {{ name: closed, from: {{ cluster: north }}, to: {{ {of} }}, class: {{}}, expect: Deny }}\n"
    )
}

fn denial_of(class: &str) -> String {
    denial("cluster: west").replace("{}", class)
}

fn opened(repository: &Repository) {
    repository.folder.edit("mesh.yaml", HUB, "spec:\n");
}

const CLOSED: &str = "no longer kept: expectation `closed`";

#[test]
fn a_network_that_becomes_a_service_range_is_still_denied() {
    for cluster in ["west", "east"] {
        let repository = denied("additionalCIDRs: [10.152.0.0/16]", &denial_of("Network"));
        let folder = &repository.folder;
        folder.edit(
            "mesh.yaml",
            "additionalCIDRs: [10.152.0.0/16]",
            "additionalCIDRs: [10.152.0.0/17]",
        );
        declare(folder, cluster, "serviceCIDR: 10.152.128.0/17");
        if cluster == "west" {
            opened(&repository);
        }
        assert_contains(&weaker(&repository), CLOSED);
    }
}

/// Addresses of nodes were in the network, too, with classes and in a list without.
#[test]
fn a_network_of_nodes_that_becomes_a_service_range_is_still_denied() {
    let typed = "podCIDRs: [10.3.0.0/16]\n      wireguardCIDR: 10.103.0.0/24";
    let lan = "additionalCIDRs: [192.168.3.0/24]";
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", HUB);
    folder.write("expectations.yaml", format!("{HEAD}{}", denial_of("Network")));
    let flat = "allowedNetworks: [10.3.0.0/16, 10.103.0.0/24, 192.168.3.0/24]";
    folder.edit("mesh.yaml", typed, flat);
    render(&folder);
    let listed = Repository::of(folder);
    listed.commit();
    for (repository, old) in [(denied(lan, &denial_of("Network")), lan), (listed, flat)] {
        let folder = &repository.folder;
        let services = "serviceCIDR: 192.168.3.0/24";
        let new =
            if old == lan { services.to_owned() } else { format!("{typed}\n      {services}") };
        folder.edit("mesh.yaml", old, &new);
        opened(&repository);
        let mut moved = node(3, 1);
        set_address(&mut moved, "172.16.3.1");
        folder.keep("west", &[moved]);
        assert_contains(&weaker(&repository), CLOSED);
    }
}

#[test]
fn old_addresses_of_nodes_are_still_denied_as_a_network() {
    let lan = "additionalCIDRs: [192.168.3.0/24]";
    let repository = denied(lan, &denial_of("Node"));
    let folder = &repository.folder;
    folder.edit("mesh.yaml", &format!("      {lan}\n"), "");
    declare(folder, "east", lan);
    let mut moved = node(3, 1);
    set_address(&mut moved, "172.16.3.1");
    folder.keep("west", &[moved]);
    assert_contains(&weaker(&repository), CLOSED);
}

#[test]
fn an_exception_is_for_the_class_that_the_addresses_had() {
    let spec = "  undeclared: Deny\n  exceptions:\n    - { name: lan, from: { cluster: east, class: Node }, to: { cluster: west }, class: Network, reason: backup }\n";
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "spec:\n",
        "spec:\n  topology: { mode: Links, links: [[east, north], [north, west]] }\n",
    );
    declare(&folder, "west", "serviceCIDR: 10.153.0.0/16");
    declare(&folder, "east", "additionalCIDRs: [192.168.1.0/24]");
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", "[north, west]]", "[north, west], [east, west]]");
    folder.edit("mesh.yaml", "serviceCIDR: 10.153.0.0/16", "additionalCIDRs: [10.153.0.0/16]");
    assert_contains(&weaker(&repository), "no longer kept: `undeclared: Deny`");
}

#[test]
fn a_labelled_node_is_known_by_its_name_its_pods_and_its_address() {
    let spec = denial("cluster: west, nodeSelector: { pool: db }").replace("{}", "Any");
    let moved = |repository: &Repository| {
        let folder = &repository.folder;
        folder.keep("west", &[node(3, 1)]);
        declare(folder, "east", "additionalCIDRs: [10.3.2.0/24]");
        folder.edit("mesh.yaml", "podCIDRs: [10.3.0.0/16]", "podCIDRs: [10.3.0.0/23]");
    };
    let renamed = |repository: &Repository| {
        opened(repository);
        let mut node = with_key(database("web"), 240);
        node["name"] = json!("other");
        repository.folder.keep("west", &[self::node(3, 1), node]);
    };
    let in_other_cluster = |repository: &Repository| {
        let folder = &repository.folder;
        opened(repository);
        folder.edit("mesh.yaml", "    - name: west\n", "    - name: shop\n");
        folder.keep("shop", &[with_key(self::node(3, 1), 242), with_key(database("web"), 241)]);
    };
    let edits: [&dyn Fn(&Repository); 3] = [&moved, &renamed, &in_other_cluster];
    for edit in edits {
        let repository = denied("", &spec);
        edit(&repository);
        assert_contains(&weaker(&repository), CLOSED);
    }
    // Another machine with the pods of one that is gone.
    let repository = denied("", &spec);
    opened(&repository);
    let mut other = with_key(database("web"), 243);
    other["name"] = json!("other");
    set_address(&mut other, "192.168.3.9");
    repository.folder.keep("west", &[node(3, 1), other]);
    assert_kept(&repository);
}

#[test]
fn nodes_of_a_split_are_known_by_an_internal_address_that_was_declared() {
    let repository = denied("additionalCIDRs: [192.168.3.0/24]", &denial_of("Pod"));
    let folder = &repository.folder;
    folder.edit(
        "mesh.yaml",
        "additionalCIDRs: [192.168.3.0/24]",
        "additionalCIDRs: [192.168.3.1/32]",
    );
    let shop = "    - { name: shop, podCIDRs: [10.9.0.0/16], wireguardCIDR: 10.109.0.0/24, additionalCIDRs: [192.168.3.2/32] }\n";
    folder.edit("mesh.yaml", "    - name: west\n", &format!("{shop}    - name: west\n"));
    opened(&repository);
    folder.edit("mesh.yaml", "    - name: north\n", "    - name: north\n      acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24, 10.9.0.0/16, 10.109.0.0/24]\n");
    let mut stranger = with_key(node(9, 2), 244);
    set_address(&mut stranger, "192.168.3.2");
    folder.keep("west", &[node(3, 1)]);
    folder.keep("shop", &[stranger]);
    assert_contains(&weaker(&repository), CLOSED);
}

/// A cluster with another name is still there if its nodes have the same keys.
#[test]
fn a_stranger_in_the_range_of_a_renamed_cluster_is_not_accepted() {
    let folder = Folder::mesh();
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedClusters: [east, north] }\n";
    folder.write("policies/west.yaml", policy);
    declare(&folder, "north", "additionalCIDRs: [10.152.0.0/16]");
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    let nodes = folder.read("snapshots/north.json");
    folder.write("snapshots/south.json", nodes.replace("\"north\"", "\"south\""));
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    folder.edit(
        "mesh.yaml",
        "    - name: north\n      additionalCIDRs: [10.152.0.0/16]\n",
        "    - name: south\n",
    );
    let evil = "    - { name: evil, podCIDRs: [10.9.0.0/16], wireguardCIDR: 10.109.0.0/24, additionalCIDRs: [10.152.0.0/16] }\n";
    folder.edit("mesh.yaml", "    - name: west\n", &format!("{evil}    - name: west\n"));
    folder.keep("evil", &[node(9, 1)]);
    folder.edit("policies/west.yaml", "[east, north]", "[east, south, evil]");
    let text = weaker(&repository);
    assert_contains(&text, "weaker: `acceptedClusters` in the policy of west");
    folder.edit("policies/west.yaml", "[east, south, evil]", "[east, south]");
    folder.edit("mesh.yaml", evil, "");
    assert_kept(&repository);
}

/// The Services of one mesh are accepted in this one.
#[test]
fn services_of_another_mesh_are_not_accepted() {
    let links = |links: &str| format!("spec:\n  topology: {{ mode: Links, links: [{links}] }}\n");
    let folder = Folder::mesh();
    declare(&folder, "west", "acceptedServices: [shop]");
    let mesh = folder.read("mesh.yaml");
    fs::remove_file(folder.path("mesh.yaml")).unwrap();
    let old = mesh.replace("spec:\n", &links("[east, north], [north, west]"));
    folder.write("meshes/prod.yaml", old);
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let other = mesh.replace("name: prod", "name: other").replace(NORTH, "");
    repository.folder.write("meshes/other.yaml", other);
    let text = weaker(&repository);
    assert_contains(&text, "weaker: `acceptedServices` of west in the mesh other");
}

/// What only grows is under the same controls as before.
#[test]
fn nodes_that_come_and_go_change_no_class() {
    let spec = ["Pod", "Service", "Network", "Node", "Any"].map(denial_of).concat();
    let spec = spec.replace("name: closed, ", "");
    let repository = denied("additionalCIDRs: [192.168.3.0/24]", &spec);
    let folder = &repository.folder;
    folder.keep("west", &[node(3, 1), node(3, 3), node(3, 4)]);
    folder.keep("east", &[node(1, 1), node(1, 3)]);
    assert_kept(&repository);
}
