//! Groups in expectations, and undeclared paths that must not work.

use std::fmt::Write as _;

use super::*;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";

/// `examples/hub-and-spokes`, of which the tenants are a group.
fn tenants() -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples/hub-and-spokes"), folder.0.path());
    folder
}

fn expect(folder: &Folder, spec: &str) {
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
}

/// The results of all expectations.
fn results(folder: &Folder) -> Vec<Value> {
    let json = folder.run(&["verify", "--output", "json"]).json();
    json["expectations"].as_array().unwrap().clone()
}

fn sum(results: &[Value], field: &str) -> u64 {
    results.iter().map(|it| it[field].as_u64().unwrap()).sum()
}

#[test]
fn one_expectation_about_a_group_is_all_single_ones() {
    let folder = tenants();
    let names = ["ada", "bell", "curie", "dijkstra"].map(|it| format!("tenant-{it}"));
    for (class, expected) in [("Pod", "Deny"), ("Pod", "Reach"), ("Node", "Deny")] {
        let group = |from: &str, to: &str| {
            expect(
                &folder,
                &format!("- {{ from: {from}, to: {to}, class: {class}, expect: {expected} }}\n"),
            );
            let [result] = results(&folder).try_into().unwrap();
            result
        };
        let mut single = String::new();
        for one in &names {
            for other in names.iter().filter(|it| *it != one) {
                writeln!(
                    single,
                    "- {{ from: {{ cluster: {one} }}, to: {{ cluster: {other} }}, class: {class}, expect: {expected} }}"
                )
                .unwrap();
            }
        }
        expect(&folder, &single);
        let single = results(&folder);
        let list = format!("{{ clusters: [{}] }}", names.join(", "));
        let whole = [
            group("{ group: tenants }", "{ other: true }"),
            group("{ other: true }", "{ group: tenants }"),
            group("{ group: tenants }", "{ group: tenants }"),
            group(&list, "{ other: true }"),
        ];
        for whole in whole {
            assert_eq!(whole["pairs"], sum(&single, "pairs"), "{class} {expected}");
            assert_eq!(whole["broken"], sum(&single, "broken"), "{class} {expected}");
            assert_eq!(whole["holds"], single.iter().all(|it| it["holds"] == true));
        }
        assert!(0 < sum(&single, "pairs"));
    }
}

#[test]
fn a_group_can_be_in_the_config_and_only_once() {
    let folder = tenants();
    folder.edit("mesh.yaml", "groups:", "other:");
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1);
    folder.edit("mesh.yaml", "  other:\n", "  groups:\n");
    let config = |groups: &str| {
        let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
        folder.write("clustermesh.yaml", format!("{head}groups: {groups}\n"));
    };
    config("{ hubs: [management], tenants: [tenant-ada] }");
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_contains(&run.stdout, "[duplicate-name] duplicate group name `tenants`");
    config("{ hubs: [management, tenant-eve] }");
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_contains(&run.stdout, "[unknown-cluster] no mesh has a cluster `tenant-eve`");
    config("{ hubs: [management] }");
    expect(&folder, "- { from: { group: hubs }, to: { group: tenants }, expect: Reach }\n");
    assert!(0 < sum(&results(&folder), "pairs"));
}

/// What `help:` of a finding has between backticks, the last one.
fn proposed(text: &str) -> &str {
    let help = text.lines().find(|it| it.starts_with("help: list the paths")).unwrap();
    help.rsplit('`').nth(1).unwrap().strip_prefix("- ").unwrap()
}

/// The advice is followed until nothing is left, with the reason and the day that a person adds.
#[test]
fn undeclared_paths_are_denied_until_exceptions_allow_them() {
    let folder = tenants();
    let mut exceptions = String::new();
    for round in 0.. {
        assert!(round < 10, "{exceptions}");
        expect(&folder, &format!("  undeclared: Deny\n  exceptions:{exceptions}\n"));
        if exceptions.is_empty() {
            expect(&folder, "  undeclared: Deny\n");
        }
        let run = folder.run(&["verify"]);
        assert_harmless(&run);
        if run.code == 0 {
            assert!(0 < round, "{}", run.stdout);
            assert!(!run.stdout.contains("[unused-exception]"), "{}", run.stdout);
            break;
        }
        assert_contains(&run.stdout, "error[undeclared-path]");
        let exception = proposed(&run.stdout).replace("WHY", "monitoring");
        writeln!(exceptions).unwrap();
        write!(exceptions, "    - {exception}").unwrap();
    }
    let expired = exceptions.replace("monitoring }", "monitoring, until: 2020-01-31 }");
    expect(&folder, &format!("  undeclared: Deny\n  exceptions:{expired}\n"));
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "error[undeclared-path]");
    assert_contains(&run.stdout, "expired after 2020-01-31");
    expect(&folder, &format!("  undeclared: Allow\n  exceptions:{exceptions}\n"));
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_contains(&run.stdout, "`exceptions` have no effect without `undeclared: Deny`");
}

/// `WireGuard` works on without an agent.
#[test]
fn an_undeclared_path_of_a_silent_node_is_open() {
    let folder = Folder::mesh();
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [east] }\n");
    folder.write("expectations.yaml", format!("{HEAD}  undeclared: Deny\n"));
    let undeclared = |folder: &Folder| {
        let run = folder.run(&["verify", "--output", "json"]).json();
        run["unallowed"].as_array().unwrap().len()
    };
    let open = undeclared(&folder);
    assert!(0 < open);
    let silent =
        folder.read("snapshots/west.json").replace("\"name\": ", "\"stale\": true, \"name\": ");
    folder.write("snapshots/west.json", silent);
    assert_eq!(undeclared(&folder), open);
}

/// Nodes reach services, which no link declares.
#[test]
fn any_class_is_every_class() {
    let folder = tenants();
    let broken = |from: &str, to: &str| {
        let paths =
            format!("from: {{ cluster: management{from} }}, to: {{ cluster: tenant-ada }}{to}");
        expect(&folder, &format!("- {{ {paths}, expect: Deny }}\n"));
        sum(&results(&folder), "broken")
    };
    let each = |from: &str| {
        let classes = ["Pod", "Node", "Network"].iter();
        let paths =
            classes.map(|to| broken(&format!(", class: {from}"), &format!(", class: {to}")));
        paths.sum::<u64>()
    };
    let all = broken(", class: Any", ", class: Any");
    assert_eq!(all, each("Pod") + each("Node"));
    assert!(broken("", "") < all);
}

#[test]
fn a_member_without_a_snapshot_is_not_reached() {
    let folder = Folder::empty();
    copy(&project().join("examples/joining"), folder.0.path());
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  groups: { far: [east, south] }\n");
    let spec = |expected: &str| {
        format!("- {{ from: {{ group: far }}, to: {{ cluster: west }}, expect: {expected} }}\n")
    };
    expect(&folder, &spec("Reach"));
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(&run.stdout, "`south` was not checked: it has no snapshot");
}

#[test]
fn an_exception_allows_no_path_beside_it() {
    let folder = tenants();
    let all = "{ name: all, from: { class: Node }, to: {}, class: Network, reason: a }";
    let one = "{ name: one, from: { class: Node, cluster: management }, to: {}, class: Network, reason: a }";
    let none =
        "{ name: none, from: { class: Node }, to: { cluster: management }, class: Pod, reason: a }";
    let unallowed = |exceptions: &str| {
        expect(&folder, &format!("  undeclared: Deny\n  exceptions: [{exceptions}]\n"));
        let json = folder.run(&["verify", "--output", "json"]).json();
        let found = json["unallowed"].as_array().cloned().unwrap_or_default();
        let paths = found.iter().filter(|it| it["sender"] == "node" && it["receiver"] == "network");
        let rules = json["findings"].as_array().unwrap().iter();
        let unused = rules.filter(|it| it["rule"] == "unused-exception").count();
        (paths.map(|it| it["pairs"].as_u64().unwrap()).sum::<u64>(), unused)
    };
    let (before, _) = unallowed("");
    let (some, unused) = unallowed(one);
    assert!(0 < some && some < before, "{some} {before}");
    assert_eq!((unallowed(all), unused), ((0, 0), 0));
    assert_eq!(unallowed(none), (before, 1));
    // An expectation that needs the paths allows them too.
    let needed = "  undeclared: Deny\n  expectations:\n    - { from: { class: Node }, to: {}, class: Network, expect: Reach }\n";
    expect(&folder, needed);
    let json = folder.run(&["verify", "--output", "json"]).json();
    let found = json["unallowed"].as_array().cloned().unwrap_or_default();
    assert!(found.iter().all(|it| it["receiver"] != "network"), "{found:?}");
}

#[test]
fn an_exception_of_everything_is_an_error() {
    let folder = tenants();
    let found = |exception: &str| {
        let exception = format!("{{ name: e, {exception}, reason: x }}");
        expect(&folder, &format!("  undeclared: Deny\n  exceptions: [{exception}]\n"));
        let found = ["validate", "verify"].map(|command| {
            let run = folder.run(&[command, "--output", "concise"]);
            let is_found = run.stdout.contains("exception `e` allows every path");
            assert!(!is_found || run.code == 1, "{}", run.stdout);
            is_found
        });
        assert_eq!(found[0], found[1], "{exception}");
        found[0]
    };
    let all = "clusters: [management, tenant-ada, tenant-bell, tenant-curie, tenant-dijkstra]";
    let anywhere = "addresses: [0.0.0.0/0, '::/0']";
    for exception in [
        "from: { class: Any }, to: {}, class: Any".to_owned(),
        "from: { class: Any }, to: { addresses: [0.0.0.0/0] }, class: Any".to_owned(),
        "from: { class: Any, addresses: [0.0.0.0/1, 128.0.0.0/1] }, to: {}, class: Any".to_owned(),
        format!("from: {{ {anywhere} }}, to: {{ {anywhere} }}"),
        format!("from: {{ {all}, class: Any }}, to: {{ other: true }}, class: Any"),
    ] {
        assert!(found(&exception), "{exception}");
    }
    for exception in [
        "from: { class: Any }, to: {}, class: Network".to_owned(),
        "from: { class: Node }, to: {}, class: Any".to_owned(),
        "from: { class: Any }, to: { addresses: [10.0.0.0/8] }, class: Any".to_owned(),
        "from: { addresses: [0.0.0.0/0] }, to: { addresses: ['::/0'] }".to_owned(),
        "from: { class: Any }, to: { cluster: management }, class: Any".to_owned(),
        format!(
            "from: {{ {all}, class: Any }}, to: {{ other: true }}, class: Any, until: 2020-01-31"
        ),
    ] {
        assert!(!found(&exception), "{exception}");
    }
    expect(
        &folder,
        "  undeclared: Deny\n  exceptions: [{ name: e, from: { class: Any }, to: {}, class: Any, reason: x }]\n",
    );
    let run = folder.run(&["validate"]);
    let first: Vec<&str> = run.stdout.lines().take(8).collect();
    insta::assert_snapshot!(first.join("\n"), @"
    error[contradicting-fields]: exception `e` allows every path, so `undeclared: Deny` forbids nothing
     --> expectations.yaml:5:16
      |
    4 |   undeclared: Deny
      |               ---- forbids nothing
    5 |   exceptions: [{ name: e, from: { class: Any }, to: {}, class: Any, reason: x }]
      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    help: name clusters in `from` and `to`, or write `undeclared: Allow` and remove `exceptions`
    ");
}
