//! Edits that are meant to escape an old control.

use super::*;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";

/// A mesh with these expectations, of which west has an additional range.
fn with_network(range: &str, expectations: &str) -> Repository {
    let folder = Folder::mesh();
    declare(&folder, "west", &format!("additionalCIDRs: [{range}]"));
    folder.write("expectations.yaml", format!("{HEAD}{expectations}"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    repository
}

/// A path that a control never kept closed does not hide those that open beside it.
#[test]
fn a_wider_range_is_not_hidden_by_an_address_that_was_open() {
    let denial = "  - { name: no lan, from: { cluster: east, class: Any }, to: { cluster: west, addresses: [10.152.0.0/16] }, class: Any, expect: Deny }\n";
    for wider in ["10.152.0.0/16", "10.152.0.7/32, 10.152.9.0/24"] {
        let repository = with_network("10.152.0.7/32", denial);
        repository.folder.edit("mesh.yaml", "10.152.0.7/32", wider);
        assert_contains(&weaker(&repository), "no longer kept: expectation `no lan`");
    }
    // A node more is not another path of this kind.
    let repository = with_network("10.152.0.7/32", denial);
    repository.folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_kept(&repository);
}

/// Snapshots change without a review, and labels are in them.
#[test]
fn a_node_that_loses_its_label_is_still_denied() {
    let folder = Folder::mesh();
    let selector =
        "nodeSelector: { matchExpressions: [{ key: pool, operator: NotIn, values: [db] }] }";
    declare(&folder, "west", selector);
    let pool = |name: &str| {
        let mut second = node(3, 2);
        second["labels"] = json!({ "pool": name });
        [node(3, 1), second]
    };
    folder.keep("west", &pool("db"));
    let denial = "  - { name: no database, from: { cluster: east, class: Any }, to: { cluster: west, nodeSelector: { pool: db } }, class: Any, expect: Deny }\n";
    folder.write("expectations.yaml", format!("{HEAD}{denial}"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.keep("west", &pool("web"));
    assert_contains(&weaker(&repository), "no longer kept: expectation `no database`");
    // Nor does it matter that the node was installed again.
    let mut installed = pool("web");
    installed[1]["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([231; 32]));
    repository.folder.keep("west", &installed);
    assert_contains(&weaker(&repository), "no longer kept: expectation `no database`");
}

/// Addresses have the classes for which the old entry declared them, too.
#[test]
fn a_range_of_another_class_is_still_denied() {
    let spec = "  - { name: no services, from: { cluster: north }, to: { cluster: west }, class: Service, expect: Deny }\n  \
                - { name: no pods, from: { cluster: north }, to: { cluster: west }, expect: Deny }\n";
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", HUB);
    declare(&folder, "west", "serviceCIDR: 10.153.0.0/16");
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", HUB, "spec:\n");
    let other = "serviceCIDR: 10.154.0.0/16\n      additionalCIDRs: [10.153.0.0/16, 10.3.0.0/16]";
    folder.edit("mesh.yaml", "serviceCIDR: 10.153.0.0/16", other);
    folder.edit("mesh.yaml", "podCIDRs: [10.3.0.0/16]", "podCIDRs: [10.155.0.0/16]");
    let mut moved = node(3, 1);
    moved["podCIDRs"] = json!(["10.155.1.0/24"]);
    folder.keep("west", &[moved]);
    let text = weaker(&repository);
    assert_contains(&text, "no longer kept: expectation `no services`");
    assert_contains(&text, "no longer kept: expectation `no pods`");
}

/// In a flat list, nodes decide which addresses are those of pods.
#[test]
fn pods_of_a_flat_list_that_become_a_network_are_still_denied() {
    let denial =
        "  - { name: no pods, from: { cluster: north }, to: { cluster: west }, expect: Deny }\n";
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", HUB);
    let typed = "podCIDRs: [10.3.0.0/16]\n      wireguardCIDR: 10.103.0.0/24";
    folder.edit("mesh.yaml", typed, "allowedNetworks: [10.3.0.0/16, 10.103.0.0/24]");
    folder.write("expectations.yaml", format!("{HEAD}{denial}"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", HUB, "spec:\n");
    let network = "podCIDRs: [10.155.0.0/16]\n      wireguardCIDR: 10.103.0.0/24\n      additionalCIDRs: [10.3.0.0/16]";
    folder.edit("mesh.yaml", "allowedNetworks: [10.3.0.0/16, 10.103.0.0/24]", network);
    folder.edit("mesh.yaml", "    - name: north\n", "    - name: north\n      acceptedNetworks: [10.3.0.0/16, 10.103.0.0/24, 10.1.0.0/16, 10.101.0.0/24]\n");
    let mut moved = node(3, 1);
    moved["podCIDRs"] = json!(["10.155.1.0/24"]);
    folder.keep("west", &[moved]);
    assert_contains(&weaker(&repository), "no longer kept: expectation `no pods`");
}

/// A node whose pods the old cluster declared is a node of it, under any name and with any key.
#[test]
fn the_nodes_of_a_split_cluster_are_still_denied() {
    let denial = "  - { name: no nodes, from: { cluster: east }, to: { cluster: west }, class: Node, expect: Deny }\n";
    let repository = with_network("10.152.0.0/24", denial);
    let folder = &repository.folder;
    let lan = "additionalCIDRs: [192.168.3.0/24]";
    folder.edit(
        "mesh.yaml",
        "    - name: west\n      additionalCIDRs: [10.152.0.0/24]\n",
        &format!("    - name: shop\n      {lan}\n"),
    );
    folder.edit("mesh.yaml", "10.103.0.0/24", "10.104.0.0/24");
    let mut stranger = node(3, 1);
    stranger["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([232; 32]));
    stranger["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.104.0.1/24");
    folder.keep("shop", &[stranger]);
    let text = weaker(&repository);
    assert_contains(&text, "no longer kept: expectation `no nodes`");
    assert_contains(&text, "192.168.3.1");
}

/// The mesh that linked both decides, and not another one that merely has both.
#[test]
fn a_link_that_moves_to_a_mesh_without_limits() {
    let folder = Folder::mesh();
    let links = |links: &str| {
        let topology = format!("spec:\n  topology: {{ mode: Links, links: [{links}] }}\n");
        MESH.replace("name: prod", "name: other").replace("spec:\n", &topology)
    };
    let config =
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmeshes: [mesh.yaml, other.yaml]\n";
    folder.write("clustermesh.yaml", config);
    folder.edit("mesh.yaml", NORTH, "");
    declare(&folder, "east", "acceptedNetworks: [10.3.1.0/24, 10.103.0.0/24]");
    folder.write("other.yaml", links("[east, north], [north, west]"));
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    folder.write("clustermesh.yaml", config.replace("mesh.yaml, ", ""));
    folder.write("other.yaml", links("[east, north], [north, west], [east, west]"));
    assert_contains(&weaker(&repository), "no longer kept: `acceptedNetworks` of east");
}

/// `verify` judges survival as long as the line is there.
#[test]
fn paths_that_need_no_longer_survive_are_weaker() {
    let reach = "  - { name: ha, from: { cluster: east }, to: { cluster: west }, expect: Reach, survives: { nodes: 1 } }\n";
    let repository = with_network("10.152.0.0/24", reach);
    let folder = &repository.folder;
    for kept in [
        reach.replace("name: ha, ", ""),
        reach.replace("{ cluster: east }", "{ clusters: [east, north] }"),
    ] {
        folder.write("expectations.yaml", format!("{HEAD}{kept}"));
        assert_kept(&repository);
    }
    let only = reach.replace(", survives: { nodes: 1 }", "");
    folder.write("expectations.yaml", format!("{HEAD}{only}"));
    assert_contains(&weaker(&repository), "weaker: expectation `ha`");
}

/// A cluster in the range of an accepted one is a part of it or a stranger.
#[test]
fn a_stranger_in_the_range_of_an_accepted_cluster_is_not_accepted() {
    let folder = Folder::mesh();
    folder.write(
        "policies/west.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedClusters: [east, north] }\n",
    );
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    let folder = &repository.folder;
    let entry =
        "    - name: north\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n";
    let two = "    - { name: north, podCIDRs: [10.2.0.0/17], wireguardCIDR: 10.102.0.0/25 }\n    - { name: evil, podCIDRs: [10.2.128.0/17], wireguardCIDR: 10.102.0.128/25 }\n";
    folder.edit("mesh.yaml", entry, two);
    folder.edit("policies/west.yaml", "[east, north]", "[east, north, evil]");
    let mut stranger = node(2, 130);
    stranger["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([230; 32]));
    stranger["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.102.0.130/25");
    folder.keep("evil", &[stranger]);
    let text = weaker(&repository);
    assert_contains(&text, "weaker: `acceptedClusters` in the policy of west");
    assert_contains(&text, "no longer kept: `acceptedClusters` in the policy of west");
}

/// With `undeclared: Deny`, a path that must work is allowed without an end.
#[test]
fn a_reach_does_not_prolong_an_exception() {
    let exception = "  undeclared: Deny\n  exceptions:\n    - { name: move, from: { class: Node }, to: { cluster: west }, class: Network, reason: move, until: 2026-12-31 }\n";
    let repository = with_network("10.152.0.0/24", exception);
    let reach = "  expectations:\n    - { name: scrape, from: { cluster: east, class: Node }, to: { cluster: west }, class: Network, expect: Reach }\n";
    let elsewhere = reach.replace("cluster: west }, class: Network", "cluster: west }, class: Pod");
    let text = format!("{HEAD}{exception}{elsewhere}");
    repository.folder.write("expectations.yaml", text);
    assert_kept(&repository);
    repository.folder.write("expectations.yaml", format!("{HEAD}{exception}{reach}"));
    assert_contains(&weaker(&repository), "weaker: expectation `scrape` added");
}

/// The values are shown as far as there is room, and compared as a whole.
#[test]
fn the_last_of_many_addresses_is_compared() {
    let addresses: Vec<String> = (1..10).map(|it| format!("10.{it}.0.0/16")).collect();
    let exception = |last: &str| {
        format!(
            "  undeclared: Deny\n  exceptions:\n    - {{ name: many, from: {{ addresses: [{}, {last}] }}, to: {{ cluster: west }}, class: Network, reason: move }}\n",
            addresses.join(", ")
        )
    };
    let repository = with_network("10.152.0.0/24", &exception("10.111.0.0/16"));
    let wider = format!("{HEAD}{}", exception("10.0.0.0/8"));
    repository.folder.write("expectations.yaml", wider);
    assert_contains(&weaker(&repository), "weaker: exception `many`");
}

/// The declarations of a guard stay, and its rules accept everything.
#[test]
fn a_guard_with_rules_of_its_own_is_weaker() {
    for (rule, other) in [
        ("failurePolicy: Fail", "failurePolicy: Ignore"),
        ("validationActions: [\"Deny\"]", "validationActions: [\"Audit\"]"),
    ] {
        let repository = Repository::of(Folder::rendered());
        let folder = &repository.folder;
        let run = folder.run(&["guard", "north", "--writers", "ada"]);
        folder.write("guards/north.yaml", &run.stdout);
        repository.commit();
        folder.write("guards/north.yaml", run.stdout.replace(rule, other));
        assert_ne!(folder.read("guards/north.yaml"), run.stdout, "{}", run.stdout);
        assert_contains(&weaker(&repository), "weaker: guard of north");
        repository.commit();
        // Of rules that clustermesh does not print, no change is known to allow less.
        let gutted = run.stdout.replace(rule, other).replace("\"UPDATE\"", "\"DELETE\"");
        folder.write("guards/north.yaml", gutted);
        assert_contains(&weaker(&repository), "weaker: guard of north");
        folder.write("guards/north.yaml", &run.stdout);
        assert_kept(&repository);
    }
}

#[test]
fn controls_in_the_snapshot_folder_and_guards_in_submodules_are_not_unseen() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\npolicies: snapshots/policies\n";
    folder.write("clustermesh.yaml", config);
    let policy = "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { future: 1 }\n";
    folder.write("snapshots/policies/north.yaml", policy);
    folder.write(
        "snapshots/policies/west.yaml",
        policy.replace("future: 1", "acceptedClusters: [east, north]"),
    );
    repository.commit();
    fs::remove_file(folder.path("snapshots/policies/north.yaml")).unwrap();
    let unread = || {
        let run = repository.diff(&["--fail-on-weaker"]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        run.stdout + &run.stderr
    };
    assert_contains(&unread(), "cannot be read: unknown field `future`");
    let head = repository.git(&["rev-parse", "HEAD"]);
    let submodule = format!("160000,{},guards", head.trim());
    repository.git(&["add", "--all"]);
    repository.git(&["update-index", "--add", "--cacheinfo", &submodule]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    assert_contains(&unread(), "cannot read the folder `guards` of `HEAD`: it is a submodule");
}
