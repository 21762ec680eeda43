//! Clusters that are alike share a row in every form for people; JSON has each.

use std::fmt::Write as _;

use super::diff::Repository;
use super::*;
use crate::support::assert_contains;

/// A mesh of 30 clusters with one node each, rendered. The numbers of the clusters have three digits.
fn thirty() -> Folder {
    let folder = Folder::empty();
    let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n  clusters:\n"
        .to_owned();
    for number in 100..130 {
        let _ = writeln!(
            mesh,
            "    - {{ name: c{number}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 172.20.{number}.0/24 }}"
        );
        folder.keep(&format!("c{number}"), &[numbered(number)]);
    }
    folder.write("mesh.yaml", mesh);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

fn numbered(number: u8) -> Value {
    let mut node = node(1, 1);
    let external = format!("198.18.113.{number}");
    node["addresses"] = json!([
        { "address": format!("192.168.{number}.1"), "type": "InternalIP" },
        { "address": external, "type": "ExternalIP" },
    ]);
    let annotations = &mut node["annotations"];
    annotations["kilo.squat.ai/endpoint"] = json!(format!("{external}:51820"));
    annotations["kilo.squat.ai/internal-ip"] = json!(format!("192.168.{number}.1/24"));
    annotations["kilo.squat.ai/key"] = json!(STANDARD.encode([number; 32]));
    annotations["kilo.squat.ai/wireguard-ip"] = json!(format!("172.20.{number}.1/24"));
    node["podCIDRs"] = json!([format!("10.{number}.1.0/24")]);
    node["uid"] = json!(format!("{number}-1"));
    node
}

/// The lines of a text that contain another one.
fn lines<'t>(text: &'t str, wanted: &str) -> Vec<&'t str> {
    text.lines().filter(|it| it.contains(wanted)).collect()
}

#[test]
fn capacity_and_verify_have_a_row_for_alike_clusters() {
    let folder = thirty();
    let run = folder.run(&["capacity"]);
    assert_eq!(lines(&run.stdout, "c100, c101, c102 and 27 more  ok").len(), 1, "{}", run.stdout);
    assert_eq!(
        folder.run(&["capacity", "-o", "json"]).json()["targets"].as_array().unwrap().len(),
        30
    );
    let run = folder.run(&["capacity", "-o", "markdown"]);
    assert_eq!(lines(&run.stdout, "| c100, c101, c102 and 27 more | ok |").len(), 1);
    let run = folder.run(&["verify"]);
    assert_eq!(
        lines(&run.stdout, "c100, c101, c102 and 27 more  each other").len(),
        1,
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("All declared paths work between"), "{}", run.stdout);
    let page = folder.run(&["report"]).stdout;
    assert_contains(&page, "<th scope=\"row\">c100, c101, c102 and 27 more</th>");
    let load = page.split_once("id=\"load\"").unwrap().1;
    assert_eq!(load.matches("<tr data-clusters=").count(), 1);
    // One cluster that is not like the others has its own row. The matrix of the page has two of each.
    fs::remove_file(folder.path("rendered/c129/prod--c100.yaml")).unwrap();
    folder.edit("rendered/c129/kustomization.yaml", "- prod--c100.yaml\n", "");
    let run = folder.run(&["verify"]);
    let failing = lines(&run.stdout, "0/1");
    assert_eq!(failing.len(), 2, "{}", run.stdout);
    assert_contains(&run.stdout, "c101, c102, c103 and 25 more");
    let page = folder.run(&["report"]).stdout;
    assert_contains(&page, "<tr data-members=\"c100\">");
    assert_contains(&page, "Clusters with the same cells share a row and a column.");
}

#[test]
fn pairs_that_fail_and_are_not_shown_are_counted_as_failing() {
    let folder = thirty();
    let all = (100..130).flat_map(|to| (100..to).map(move |from| (from, to)));
    for (from, to) in all.filter(|(from, to)| (from * from + 3 * to + from * to) % 5 == 0) {
        let file = format!("prod--c{from}.yaml");
        fs::remove_file(folder.path(&format!("rendered/c{to}/{file}"))).unwrap();
        folder.edit(&format!("rendered/c{to}/kustomization.yaml"), &format!("- {file}\n"), "");
    }
    let run = folder.run(&["verify"]);
    assert_contains(&run.stdout, "Declared paths also fail between");
}

#[test]
fn diff_has_a_row_and_a_block_for_alike_targets() {
    let repository = Repository::of(thirty());
    repository.commit();
    let mut node = numbered(129);
    node["podCIDRs"] = json!(["10.129.2.0/24"]);
    repository.folder.keep("c129", &[node]);
    let run = repository.diff(&[]);
    assert_eq!(
        lines(&run.stdout, "c100, c101, c102 and 26 more  cleanup").len(),
        1,
        "{}",
        run.stdout
    );
    assert_contains(&run.stdout, "\nc100, c101, c102 and 26 more: cleanup\n");
    assert_contains(&run.stdout, "\nc100, c101, c102 and 26 more → c129: each ");
    let json = repository.diff(&["-o", "json"]).json();
    assert_eq!(json["targets"].as_array().unwrap().len(), 29);
}
