//! The controls of the old version judge the new Peers.

use super::*;
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

mod disguises;
mod drawn;
mod escapes;
mod weaker;

const HUB: &str = "spec:\n  topology: { mode: Hub, hubs: [east] }\n";

const EXPECTATIONS: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
- name: tenants never reach each other
  from: { group: tenants }
  to: { other: true }
  expect: Deny
";

const TENANTS: &str =
    "apiVersion: kilo-clustermesh.io/v1\nkind: Config\ngroups: { tenants: [west, north] }\n";

/// A hub with two tenants, which never reach each other.
fn tenants() -> Repository {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:\n", HUB);
    folder.write("expectations.yaml", EXPECTATIONS);
    folder.write("clustermesh.yaml", TENANTS);
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    assert_kept(&repository);
    repository
}

fn render(folder: &Folder) {
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Adds fields to the entry of a cluster.
fn declare(folder: &Folder, cluster: &str, fields: &str) {
    let name = format!("    - name: {cluster}\n");
    folder.edit("mesh.yaml", &name, &format!("{name}      {fields}\n"));
}

fn assert_kept(repository: &Repository) {
    let run = repository.diff(&["--fail-on-weaker"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
}

/// Returns the result, which has to be weaker.
fn weaker(repository: &Repository) -> String {
    let run = repository.diff(&["--fail-on-weaker"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert_eq!(repository.diff(&[]).code, 0);
    run.stdout
}

#[test]
fn a_deleted_expectation_still_judges_the_change_that_deletes_it() {
    let repository = tenants();
    fs::remove_file(repository.folder.path("expectations.yaml")).unwrap();
    repository.folder.edit("mesh.yaml", HUB, "spec:\n");
    let text = weaker(&repository);
    assert_contains(
        &text,
        "no longer kept: expectation `tenants never reach each other` (expectations.yaml:4, removed): north reaches west, west",
    );
    assert_contains(
        &text,
        "weaker: expectation `tenants never reach each other` removed: Deny tenants (north, west)",
    );
    assert_contains(&text, "1 control of the old version is no longer kept");
}

#[test]
fn the_headline_is_never_alone_where_a_control_changed() {
    let repository = tenants();
    fs::remove_file(repository.folder.path("expectations.yaml")).unwrap();
    let text = weaker(&repository);
    assert_contains(&text, "No Peer changes compared with HEAD (3 clusters). 1 control is weaker.");
    let run = repository.diff(&["--output", "markdown"]);
    assert_contains(&run.stdout, "1 control is weaker.");
    assert_contains(&run.stdout, "| **weaker** | expectation");
}

/// A page with "Nothing to do" must have looked at the old controls.
#[test]
fn the_page_shows_weaker_controls_or_that_it_did_not_look() {
    let repository = tenants();
    let folder = &repository.folder;
    let page = |against: &str| {
        let home = repository.home.path().to_str().unwrap();
        let run = folder.run_with(&[("HOME", home)], &["report", "--against", against]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    assert!(!page("HEAD").contains("change-controls"));
    assert_contains(&page("rendered"), "and other controls were not compared");
    fs::remove_file(folder.path("expectations.yaml")).unwrap();
    let text = page("HEAD");
    assert_contains(&text, "<p id=\"change-controls\">1 control is weaker.</p>");
    assert_contains(&text, "controls of this change: 1 control is weaker");
    assert!(!text.contains("Nothing to do."), "{text}");
}

#[test]
fn weaker_controls_are_errors_of_a_job_that_fails_for_them() {
    let repository = tenants();
    fs::remove_file(repository.folder.path("expectations.yaml")).unwrap();
    let run = repository.diff(&["--output", "github"]);
    assert!(!run.stdout.contains("::error"), "{}", run.stdout);
    let run = repository.diff(&["--output", "github", "--fail-on-weaker"]);
    assert_eq!(run.code, 1);
    assert_contains(
        &run.stdout,
        "::error title=weaker::expectation `tenants never reach each other` removed",
    );
}

#[test]
fn a_new_name_new_keys_or_a_split_escape_no_control() {
    let repository = tenants();
    let folder = &repository.folder;
    // North is two clusters with other names and keys now, and one of them is a hub.
    folder.edit("mesh.yaml", "hubs: [east]", "hubs: [east, first]");
    folder.edit("mesh.yaml", "    - name: north\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n", "    - { name: first, podCIDRs: [10.2.1.0/24], wireguardCIDR: 10.102.0.0/25 }\n    - { name: second, podCIDRs: [10.2.2.0/24], wireguardCIDR: 10.102.0.128/25 }\n");
    folder.edit("clustermesh.yaml", "[west, north]", "[west, second]");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let mut nodes = [node(2, 1), node(2, 2)];
    for (number, node) in (200..).zip(&mut nodes) {
        node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([number; 32]));
    }
    nodes[1]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.102.0.130/25");
    folder.keep("first", &nodes[..1]);
    folder.keep("second", &nodes[1..]);
    let text = weaker(&repository);
    assert_contains(&text, "first (counts as north) reaches west");
    assert!(!text.contains("first (counts as north) reaches second"), "{text}");
}

#[test]
fn a_policy_that_is_deleted_still_judges_the_new_link() {
    let repository = tenants();
    let folder = &repository.folder;
    folder.write(
        "policies/north.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec:\n  acceptedClusters: [east]\n  acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24]\n  localNetworks: [192.168.2.0/24]\n",
    );
    fs::remove_file(folder.path("expectations.yaml")).unwrap();
    repository.commit();
    fs::remove_dir_all(folder.path("policies")).unwrap();
    folder.edit("mesh.yaml", "hubs: [east]", "hubs: [east, north]");
    let text = weaker(&repository);
    for control in [
        "`acceptedClusters` in the policy of north (policies/north.yaml:4, removed)",
        "`acceptedNetworks` of north (policies/north.yaml:5, removed)",
    ] {
        assert_contains(&text, &format!("no longer kept: {control}"));
    }
    assert_contains(
        &text,
        "weaker: `localNetworks` in the policy of north removed: 192.168.2.0/24",
    );
}

/// A network plugin may send packets of pods on with the address of their node, which the other side accepts.
#[test]
fn pods_that_arrive_with_the_address_of_their_node_are_not_kept_out() {
    for (pods, is_kept) in [("", false), ("      podSource: Kept\n", true)] {
        let repository = tenants();
        let folder = &repository.folder;
        let name = "    - name: north\n";
        folder.edit("mesh.yaml", name, &format!("{name}{pods}"));
        folder.write(
            "expectations.yaml",
            EXPECTATIONS
                .replace("{ group: tenants }", "{ cluster: north }")
                .replace("{ other: true }", "{ cluster: west }")
                .replace("expect:", "class: Pod\n  expect:"),
        );
        repository.commit();
        folder.edit("mesh.yaml", "hubs: [east]", "hubs: [east, north]");
        let accepted = "acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24, 10.102.0.0/24]";
        let name = "    - name: west\n";
        folder.edit("mesh.yaml", name, &format!("{name}      {accepted}\n"));
        if is_kept {
            assert_kept(&repository);
        } else {
            let text = weaker(&repository);
            assert_contains(&text, "no longer kept: expectation `tenants never reach each other`");
            assert_contains(&text, "north reaches west");
        }
        render(folder);
        let run = folder.run(&["verify"]);
        let is_broken =
            run.stdout.contains("expected Deny") || run.stderr.contains("expected Deny");
        assert_eq!(is_broken, !is_kept, "{}{}", run.stdout, run.stderr);
    }
}

/// A hub with six spokes, and its expectations. Then all are linked.
fn linked(expectations: &str) -> Repository {
    let folder = Folder::empty();
    let entries = (1..8).map(|it| {
        folder.keep(&format!("c{it}"), &[node(it, 1)]);
        format!(
            "    - {{ name: c{it}, podCIDRs: [10.{it}.0.0/16], wireguardCIDR: 10.10{it}.0.0/24 }}\n"
        )
    });
    let entries: String = entries.collect();
    let mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: m }\n";
    let hub = HUB.replace("east", "c1");
    folder.write("mesh.yaml", format!("{mesh}{hub}  clusters:\n{entries}"));
    folder.write("expectations.yaml", expectations);
    render(&folder);
    let repository = Repository::of(folder);
    repository.commit();
    repository.folder.edit("mesh.yaml", &hub, "spec:\n");
    repository
}

/// The time of the comparison is bounded like that of `verify`, which refuses the same expectations.
#[test]
fn what_takes_more_steps_than_the_ceiling_is_not_known() {
    let (head, denial) = EXPECTATIONS.split_once("- name: tenants never reach each other").unwrap();
    let denial = denial
        .replace("group: tenants", "addresses: [10.0.0.0/8]")
        .replace("other: true", "addresses: [10.0.0.0/8]");
    let denials = (0..2000).map(|it| format!("- name: d{it}{denial}"));
    let repository = linked(&format!("{head}{}", denials.collect::<String>()));
    // 2000 expectations about 49 pairs of clusters, of which four take a step, and about the blocks of 30 pairs.
    let run = repository.diff(&["--fail-on-weaker", "--ceiling", "steps=500000"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "no longer kept: expectation `d0`");
    let few = ["--fail-on-weaker", "--ceiling", "steps=24499"];
    let run = repository.diff(&few);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "not known: which paths the old controls refuse");
    assert!(!run.stdout.contains("no longer kept"), "{}", run.stdout);
    let run = repository.folder.run(&["verify", "--ceiling", "steps=24499"]);
    assert_contains(&run.stderr, "24500 steps of the proof exceed the ceiling of 24499");
}

#[test]
fn json_lists_some_refused_pairs_and_counts_the_others() {
    let repository = linked(
        &EXPECTATIONS
            .replace("group: tenants", "addresses: [10.0.0.0/8]")
            .replace("other: true", "addresses: [10.0.0.0/8]"),
    );
    let run = repository.diff(&["--fail-on-weaker", "--output", "json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let controls = &run.json()["controls"];
    assert_eq!(controls["refused"].as_array().unwrap().len(), 20);
    assert_eq!(controls["refusedOmitted"], json!(10));
    let text = weaker(&repository);
    assert_contains(&text, "c2 reaches c3, ");
    assert_contains(&text, " and 24 more (");
}

/// What a few nodes report makes neither `verify` fail nor this.
#[test]
fn a_path_that_only_a_few_nodes_fail_is_excused() {
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let nodes = || (1..7).map(|it| node(2, it)).collect::<Vec<_>>();
    folder.keep("north", &nodes());
    folder.write(
        "expectations.yaml",
        EXPECTATIONS
            .replace("{ group: tenants }", "{ cluster: east }")
            .replace("{ other: true }", "{ cluster: north }")
            .replace("Deny", "Reach"),
    );
    render(folder);
    repository.commit();
    let mut without_key = nodes();
    without_key[5]["annotations"]["kilo.squat.ai/key"] = json!("nonsense");
    folder.keep("north", &without_key);
    assert_kept(&repository);
    render(folder);
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    // All of them are the cluster.
    repository.git(&["checkout", "--quiet", "."]);
    folder.edit("mesh.yaml", "spec:\n", &HUB.replace("east", "west"));
    assert_contains(&weaker(&repository), "east does not reach north");
}

#[test]
fn an_undeclared_denial_takes_what_the_new_meshes_declare_as_declared() {
    let repository = tenants();
    let folder = &repository.folder;
    folder.write(
        "expectations.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec: { undeclared: Deny }\n",
    );
    repository.commit();
    folder.edit("mesh.yaml", "hubs: [east]", "hubs: [east, north]");
    let run = repository.diff(&["--fail-on-weaker"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_contains(&run.stdout, "changed: links between the clusters");
    assert_contains(&run.stdout, "north with west");
}

#[test]
fn a_control_that_never_held_fails_no_later_change() {
    let repository = tenants();
    let folder = &repository.folder;
    folder.edit("mesh.yaml", HUB, "spec:\n");
    render(folder);
    repository.commit();
    folder.keep("north", &[node(2, 1), node(2, 2), node(2, 3)]);
    assert_kept(&repository);
    let run = repository.diff(&["--fail-on-weaker", "--output", "json"]);
    let json = run.json();
    assert_eq!(json["controls"]["refused"], json!([]));
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &json), Vec::<String>::new());
}

#[test]
fn an_expectation_about_a_cluster_that_left_is_no_longer_judged() {
    let repository = tenants();
    let folder = &repository.folder;
    folder.write(
        "expectations.yaml",
        EXPECTATIONS
            .replace("{ group: tenants }", "{ cluster: north }")
            .replace("{ other: true }", "{ cluster: west }"),
    );
    repository.commit();
    folder.edit(
        "mesh.yaml",
        "    - name: north\n      podCIDRs: [10.2.0.0/16]\n      wireguardCIDR: 10.102.0.0/24\n",
        "",
    );
    folder.edit("clustermesh.yaml", "[west, north]", "[west]");
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let run = repository.diff(&["--output", "json"]);
    let json = run.json();
    assert_eq!(json["controls"]["refused"], json!([]));
    assert_eq!(
        json["controls"]["unjudged"][0]["control"],
        "expectation `tenants never reach each other`"
    );
    let schema = schema("kilo-clustermesh.io/diff_v1.json");
    assert_eq!(violations(&schema, &json), Vec::<String>::new());
    let text = repository.diff(&[]).stdout;
    assert_contains(&text, "no longer judged: expectation `tenants never reach each other`");
}

/// What is in the controls of the commit, and what of it is weaker afterwards.
#[test]
fn loosened_controls_are_weaker_and_others_only_changed() {
    let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    let level = |level: &str| format!("{head}rules: {{ shrunk-source: {{ level: {level} }} }}\n");
    let plain = |text: &str| format!("{head}{text}\n");
    for (old, new, is_weaker) in [
        (level("error"), level("warning"), true),
        (level("warning"), plain(""), false),
        (level("error"), plain(""), true),
        (plain(""), level("notice"), true),
        (plain("limits: { lostPercent: 25 }"), plain("limits: { lostPercent: 26 }"), true),
        (plain("limits: { lostPercent: 25 }"), plain("limits: { lostPercent: 5 }"), false),
        (plain("limits: { gonePercent: 50 }"), plain("limits: { gonePercent: 40 }"), true),
        (plain("limits: { ceilings: { clusters: 5 } }"), plain(""), true),
        (
            plain("limits: { capacity: { peers: { error: 100 } } }"),
            plain("limits: { capacity: { peers: { error: 200 } } }"),
            true,
        ),
        (plain(""), plain("limits: { capacity: { costs: { storedBytesPerPeer: 0 } } }"), true),
        (plain(""), plain("ignore: [{ rule: missing-endpoint, reason: x }]"), true),
        (
            plain("ignore: [{ rule: missing-endpoint, reason: x }]"),
            plain("ignore: [{ rule: missing-endpoint, cluster: east, reason: x }]"),
            false,
        ),
        (
            plain("ignore: [{ rule: missing-endpoint, until: 2027-01-31, reason: x }]"),
            plain("ignore: [{ rule: missing-endpoint, until: 2027-02-01, reason: x }]"),
            true,
        ),
        (plain("policies: policies"), plain("policies: other"), true),
        (plain("outputs: []"), plain("outputs: []"), false),
    ] {
        let repository = Repository::of(Folder::rendered());
        let folder = &repository.folder;
        for path in ["policies", "other"] {
            folder.write(&format!("{path}/east.yaml"), "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: { acceptedNetworks: [10.0.0.0/8] }\n");
        }
        folder.write("clustermesh.yaml", &old);
        repository.commit();
        folder.write("clustermesh.yaml", &new);
        let run = repository.diff(&["--fail-on-weaker"]);
        assert_eq!(run.code == 1, is_weaker, "{old}{new}{}{}", run.stdout, run.stderr);
        if old != new {
            assert_contains(&run.stdout, "No Peer changes compared with HEAD (3 clusters). ");
        }
    }
}

#[test]
fn an_unreadable_old_control_is_weaker_and_its_repair_can_land() {
    for path in ["policies/north.yaml", "expectations.yaml", "clustermesh.yaml"] {
        let repository = tenants();
        let folder = &repository.folder;
        let good = folder.path(path).exists().then(|| folder.read(path));
        folder.write(path, "apiVersion: kilo-clustermesh.io/v2\nkind: Later\nspec: {}\n");
        repository.commit();
        match good {
            Some(good) => folder.write(path, good),
            None => fs::remove_file(folder.path(path)).unwrap(),
        }
        let run = repository.diff(&["--fail-on-weaker"]);
        assert_eq!(run.code, 1, "{path} {}{}", run.stdout, run.stderr);
        assert_contains(&(run.stdout + &run.stderr), &format!("{path}:1"));
    }
}

/// Without a tree in git, nothing is known of the old Peers, either.
#[test]
fn an_unreadable_old_control_is_weaker_without_a_tree() {
    for text in ["apiVersion: [\n", "apiVersion: kilo-clustermesh.io/v2\nkind: Later\nspec: {}\n"] {
        let repository = tenants();
        let folder = &repository.folder;
        folder.write(".gitignore", "rendered/\n");
        fs::remove_dir_all(folder.path("rendered")).unwrap();
        folder.write("policies/north.yaml", text);
        repository.commit();
        fs::remove_file(folder.path("policies/north.yaml")).unwrap();
        render(folder);
        let run = repository.diff(&["--fail-on-weaker"]);
        assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
        assert_contains(&(run.stdout + &run.stderr), "policies/north.yaml:");
        assert_eq!(repository.diff(&[]).code, 2);
    }
}

#[test]
fn without_a_commit_no_control_is_known() {
    let repository = tenants();
    let run = repository.diff(&["--fail-on-weaker", "--against", "rendered"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "controls cannot be compared without those of the old version");
}

/// Only the refused ranges make this red; every other check is green.
#[test]
fn a_cluster_that_joins_where_ranges_are_accepted_is_weaker() {
    let repository = tenants();
    let folder = &repository.folder;
    folder.edit(
        "mesh.yaml",
        "    - name: west\n",
        "    - name: west\n      acceptedNetworks: [10.1.0.0/16, 10.101.0.0/24]\n",
    );
    repository.commit();
    folder.edit("mesh.yaml", "10.101.0.0/24]", "10.101.0.0/24, 10.4.0.0/16, 10.104.0.0/24]");
    folder.edit("mesh.yaml", "hubs: [east]", "hubs: [east, south]");
    let mesh = folder.read("mesh.yaml")
        + "    - { name: south, podCIDRs: [10.4.0.0/16], wireguardCIDR: 10.104.0.0/24 }\n";
    folder.write("mesh.yaml", mesh);
    folder.keep("south", &[node(4, 1)]);
    render(folder);
    for check in
        [&["validate"][..], &["render", "--check"], &["verify"], &["diff", "--fail-on", "cleanup"]]
    {
        let run = if check[0] == "diff" { repository.diff(&check[1..]) } else { folder.run(check) };
        assert_eq!(run.code, 0, "{check:?} {}{}", run.stdout, run.stderr);
    }
    assert_contains(&weaker(&repository), "weaker: `acceptedNetworks` of west in the mesh prod");
}
