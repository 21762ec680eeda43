//! Which changes of limits are weaker, under which names.

use super::*;

const CONFIG: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";

/// A repository with this config.
fn with_config(config: &str) -> Repository {
    let repository = Repository::of(Folder::rendered());
    repository.folder.write("clustermesh.yaml", format!("{CONFIG}{config}\n"));
    repository.commit();
    repository
}

fn policy(spec: &str) -> String {
    format!("apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: {{ {spec} }}\n")
}

fn guard(folder: &Folder, cluster: &str, options: &[&str]) {
    let run = folder.run(&[&["guard", cluster, "--writers", "ada"], options].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder.write(&format!("guards/{cluster}.yaml"), run.stdout);
}

/// Gives north another name, with the same keys.
fn rename(folder: &Folder) {
    folder.edit("mesh.yaml", "name: north\n", "name: polar\n");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    folder.keep("polar", &[node(2, 1), node(2, 2)]);
}

#[test]
fn an_unchanged_hidden_finding_is_not_weaker() {
    let hidden = "ignore: [{ rule: missing-endpoint, cluster: east, reason: x }]";
    let repository = with_config(hidden);
    assert_kept(&repository);
    let also = format!("{CONFIG}{hidden}\nlimits: {{ lostPercent: 5 }}\n");
    repository.folder.write("clustermesh.yaml", also);
    assert_kept(&repository);
    let more = hidden.replace("east", "west");
    repository.folder.write("clustermesh.yaml", format!("{CONFIG}{more}\n"));
    assert_contains(&weaker(&repository), "weaker: ignored findings of `missing-endpoint` of west");
}

/// The operator's code and the name mean the same rule.
#[test]
fn a_rule_has_one_level_under_all_of_its_names() {
    let hidden = |rule: &str| format!("ignore: [{{ rule: {rule}, reason: x }}]");
    let level = |rule: &str| format!("rules: {{ {rule}: {{ level: notice }} }}");
    for form in [&hidden as &dyn Fn(&str) -> String, &level] {
        let repository = with_config(&form("NodeNoEndpoint"));
        let folder = &repository.folder;
        folder.write("clustermesh.yaml", format!("{CONFIG}{}\n", form("missing-endpoint")));
        assert_kept(&repository);
        folder.write("clustermesh.yaml", CONFIG);
        assert_kept(&repository);
        repository.commit();
        folder.write("clustermesh.yaml", format!("{CONFIG}{}\n", form("NodeNoEndpoint")));
        weaker(&repository);
    }
}

#[test]
fn a_stricter_level_that_gets_an_end_is_weaker() {
    let level = |more: &str| format!("rules: {{ shrunk-source: {{ level: error{more} }} }}");
    let repository = with_config(&level(""));
    let folder = &repository.folder;
    folder.write("clustermesh.yaml", format!("{CONFIG}{}\n", level(", until: 2027-01-31")));
    let text = weaker(&repository);
    assert_contains(&text, "weaker: level of `shrunk-source`: error");
    repository.commit();
    folder.write("clustermesh.yaml", format!("{CONFIG}{}\n", level("")));
    assert_kept(&repository);
}

#[test]
fn another_spelling_of_a_path_leads_to_the_same_file() {
    let repository = with_config("expectations: expectations.yaml");
    let folder = &repository.folder;
    folder.write(
        "expectations.yaml",
        EXPECTATIONS
            .replace("{ group: tenants }", "{ cluster: east }")
            .replace("{ other: true }", "{ cluster: west, addresses: [10.3.9.0/24] }"),
    );
    repository.commit();
    folder.write("clustermesh.yaml", format!("{CONFIG}expectations: ./expectations.yaml\n"));
    assert_kept(&repository);
    folder.write("clustermesh.yaml", CONFIG);
    assert_kept(&repository);
}

#[test]
fn a_limit_that_moves_between_mesh_and_policy_still_holds() {
    for (field, ranges) in [
        ("acceptedNetworks", "[10.1.0.0/16, 10.3.0.0/16, 10.101.0.0/24, 10.103.0.0/24]"),
        ("localNetworks", "[192.168.2.0/24]"),
    ] {
        let repository = Repository::of(Folder::mesh());
        let folder = &repository.folder;
        let unlimited = folder.read("mesh.yaml");
        let limit = format!("{field}: {ranges}");
        declare(folder, "north", &limit);
        render(folder);
        repository.commit();
        folder.write("mesh.yaml", &unlimited);
        folder.write("policies/north.yaml", policy(&limit));
        assert_kept(&repository);
        let run = repository.diff(&[]);
        assert_contains(
            &run.stdout,
            &format!("changed: `{field}` of north in the mesh prod removed"),
        );
        repository.commit();
        declare(folder, "north", &limit);
        fs::remove_dir_all(folder.path("policies")).unwrap();
        assert_kept(&repository);
        folder.write("mesh.yaml", &unlimited);
        assert_contains(
            &weaker(&repository),
            &format!("weaker: `{field}` in the policy of north removed"),
        );
    }
}

#[test]
fn a_new_name_of_a_cluster_frees_it_of_no_limit() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    declare(folder, "north", "localNetworks: [192.168.2.0/24]");
    folder.write("policies/north.yaml", policy("acceptedClusters: [east, west]"));
    render(folder);
    guard(folder, "north", &[]);
    repository.commit();
    rename(folder);
    fs::rename(folder.path("policies/north.yaml"), folder.path("policies/polar.yaml")).unwrap();
    fs::remove_file(folder.path("guards/north.yaml")).unwrap();
    let text = weaker(&repository);
    assert_contains(&text, "weaker: guard of polar removed");
    assert!(!text.contains("weaker: `"), "{text}");
    guard(folder, "polar", &[]);
    let text = repository.diff(&[]).stdout;
    assert!(!text.contains("weaker: `"), "{text}");
    folder.edit("mesh.yaml", "      localNetworks: [192.168.2.0/24]\n", "");
    fs::remove_dir_all(folder.path("policies")).unwrap();
    let text = weaker(&repository);
    assert_contains(&text, "weaker: `localNetworks` of polar in the mesh prod removed");
    assert_contains(&text, "weaker: `acceptedClusters` in the policy of polar removed");
}

/// The clusters of a mesh show which one it is, under any name.
#[test]
fn new_names_of_meshes_free_no_cluster_of_a_limit() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    declare(folder, "north", "acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24]");
    let first = folder.read("mesh.yaml");
    let head = first.split("    - name").next().unwrap().replace("name: prod", "name: test");
    let second = format!(
        "{head}    - {{ name: north, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24, acceptedNetworks: [10.4.0.0/16] }}\n    \
         - {{ name: south, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.104.0.0/24 }}\n"
    );
    folder.keep("south", &[node(4, 1)]);
    folder.write("mesh.yaml", format!("{first}---\n{second}"));
    render(folder);
    repository.commit();
    let renamed = folder.read("mesh.yaml");
    let renamed = renamed.replace("name: prod", "name: alpha").replace("name: test", "name: beta");
    folder.write("mesh.yaml", &renamed);
    assert_kept(&repository);
    for (mesh, ranges) in [("alpha", "[10.1.0.0/16, 10.101.0.0/24]"), ("beta", "[10.4.0.0/16]")] {
        let field = format!("acceptedNetworks: {ranges}");
        folder.write("mesh.yaml", renamed.replace(&field, "acceptedNetworks: [10.0.0.0/8]"));
        let text = weaker(&repository);
        assert_contains(&text, &format!("weaker: `acceptedNetworks` of north in the mesh {mesh}"));
    }
}

#[test]
fn a_guard_that_allows_more_or_is_gone_is_weaker() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    guard(folder, "north", &[]);
    repository.commit();
    assert_kept(&repository);
    guard(folder, "north", &["--allow-peer", "laptop=10.9.0.7/32", "--allow-peer-writers", "bob"]);
    assert_contains(&weaker(&repository), "guard of north now ");
    assert_contains(&weaker(&repository), "allows the Peer laptop");
    repository.commit();
    guard(folder, "north", &[]);
    assert_kept(&repository);
    let stricter = "changed: guard of north allows nothing more than before (guards/north.yaml:";
    assert_contains(&repository.diff(&[]).stdout, stricter);
    fs::remove_dir_all(folder.path("guards")).unwrap();
    assert_contains(&weaker(&repository), "weaker: guard of north removed (guards/north.yaml:");
    repository.commit();
    guard(folder, "north", &[]);
    assert_contains(&repository.diff(&[]).stdout, "guard of north added (guards/north.yaml:");
}

/// A guard is about what others send, under any of their names.
#[test]
fn new_names_of_other_clusters_and_of_meshes_make_no_guard_weaker() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    declare(folder, "north", "endpointDomains: [example.com]");
    render(folder);
    let guards = || ["east", "west"].map(|it| guard(folder, it, &[]));
    guards();
    repository.commit();
    rename(folder);
    assert_kept(&repository);
    guards();
    assert_kept(&repository);
    folder.edit("mesh.yaml", "name: prod", "name: test");
    guards();
    assert_kept(&repository);
    assert!(!repository.diff(&[]).stdout.contains("guard of"));
    let renamed = folder.read("mesh.yaml");
    for (old, new, more) in [
        ("[10.2.0.0/16]", "[10.2.0.0/16, 10.9.0.0/16]", "accepts 10.9.0.0/16 of test/polar"),
        (
            "[example.com]",
            "[example.com, example.org]",
            "accepts names under example.org of test/polar",
        ),
    ] {
        folder.write("mesh.yaml", renamed.replace(old, new));
        guards();
        let text = weaker(&repository);
        assert_contains(&text, "weaker: guard of east now ");
        assert_contains(&text, &format!("now {more} ("));
    }
}

#[test]
fn a_guard_that_cannot_be_read_is_weaker_and_its_repair_can_land() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    for broken in ["kind: Later\n", "{", "\0"] {
        folder.write("guards/north.yaml", broken);
        repository.commit();
        guard(folder, "north", &[]);
        assert_contains(&weaker(&repository), "cannot be read: it is not the guard of north");
    }
}

#[test]
fn accepted_services_and_kept_sources_of_pods_are_weaker() {
    for (field, more) in
        [("acceptedServices", "acceptedServices: [shop]"), ("podSource", "podSource: Kept")]
    {
        let repository = Repository::of(Folder::rendered());
        let folder = &repository.folder;
        repository.commit();
        declare(folder, "north", more);
        let text = weaker(&repository);
        assert_contains(&text, &format!("weaker: `{field}` of north in the mesh prod added"));
        repository.commit();
        assert_kept(&repository);
        folder.edit("mesh.yaml", &format!("      {more}\n"), "");
        assert_kept(&repository);
    }
}

/// A snapshot is what nodes report, and no control.
#[test]
fn a_broken_old_snapshot_is_not_an_unreadable_control() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    let good = folder.read("snapshots/north.json");
    folder.write("snapshots/north.json", "[]");
    repository.commit();
    folder.write("snapshots/north.json", good);
    let run = repository.diff(&["--fail-on-weaker"]);
    assert!(!run.stdout.contains("cannot be read"), "{}", run.stdout);
    assert_eq!(run.code, 0, "{}", run.stdout);
}

#[test]
fn what_is_no_file_in_the_place_of_an_old_control_is_weaker() {
    for path in ["policies/north.yaml/x", "expectations.yaml/x", "guards/north.yaml/x"] {
        let repository = Repository::committed();
        let folder = &repository.folder;
        folder.write(path, "");
        repository.commit();
        fs::remove_dir_all(folder.path(path.trim_end_matches("/x"))).unwrap();
        let run = repository.diff(&["--fail-on-weaker"]);
        assert_eq!(run.code, 1, "{path} {}{}", run.stdout, run.stderr);
        assert_contains(&(run.stdout + &run.stderr), path.trim_end_matches("/x"));
    }
}

/// Without a mesh, nothing is known of what the controls of a commit are about.
#[test]
fn the_controls_of_a_commit_without_a_mesh_are_not_known() {
    let repository = Repository::of(Folder::rendered());
    let folder = &repository.folder;
    let mesh = folder.read("mesh.yaml");
    fs::remove_file(folder.path("mesh.yaml")).unwrap();
    repository.commit();
    folder.write("mesh.yaml", &mesh);
    assert_contains(&weaker(&repository), "not known: which paths the old controls refuse");

    let beginning = Repository::of(Folder::empty());
    beginning.commit();
    beginning.folder.write("mesh.yaml", &mesh);
    for cluster in ["east", "north", "west"] {
        let path = format!("snapshots/{cluster}.json");
        beginning.folder.write(&path, folder.read(&path));
    }
    render(&beginning.folder);
    assert_kept(&beginning);
}

/// Without sources, its guard accepts no Peer of the mesh that it left.
#[test]
fn the_new_guard_of_a_cluster_that_left_one_of_its_meshes_is_not_weaker() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let first = folder.read("mesh.yaml");
    let head = first.split("    - name").next().unwrap().replace("name: prod", "name: test");
    let entry = |name: &str, number: u8| {
        format!(
            "    - {{ name: {name}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.10{number}.0.0/24 }}\n"
        )
    };
    let without = format!("{head}{}{}", entry("south", 4), entry("lake", 5));
    folder.keep("south", &[node(4, 1)]);
    folder.keep("lake", &[node(5, 1)]);
    folder.write("mesh.yaml", format!("{first}---\n{without}{}", entry("east", 1)));
    render(folder);
    for cluster in ["east", "south"] {
        guard(folder, cluster, &[]);
    }
    repository.commit();
    folder.write("mesh.yaml", format!("{first}---\n{without}"));
    for cluster in ["east", "south"] {
        guard(folder, cluster, &[]);
    }
    assert_kept(&repository);
    // It still protects the ranges of the cluster in the other mesh.
    folder.edit("mesh.yaml", "podCIDRs: [10.1.0.0/16]", "podCIDRs: [10.1.0.0/17]");
    guard(folder, "east", &[]);
    assert_contains(&weaker(&repository), "weaker: guard of east");
}

/// The owner of a cluster may write down what it accepts before it joins, or leave that there after it left.
#[test]
fn a_policy_or_guard_of_a_cluster_that_joins_is_an_old_control() {
    let limits = [
        "acceptedClusters: [east]",
        "acceptedNetworks: [10.1.0.0/16]",
        "localNetworks: [10.9.0.0/16]",
    ];
    for limit in limits.map(Some).into_iter().chain([None]) {
        let folder = Folder::rendered();
        let (file, text) = if let Some(limit) = limit {
            ("policies/north.yaml", policy(limit))
        } else {
            guard(&folder, "north", &[]);
            ("guards/north.yaml", folder.read("guards/north.yaml"))
        };
        let whole = fs::read_to_string(folder.path("mesh.yaml")).unwrap();
        let entry = "    - name: north\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n";
        folder.edit("mesh.yaml", entry, "");
        folder.write(file, text);
        let repository = Repository::of(folder);
        repository.commit();
        repository.folder.write("mesh.yaml", whole);
        assert_kept(&repository);
        fs::remove_file(repository.folder.path(file)).unwrap();
        weaker(&repository);
    }
}
