//! What `render` and `verify` must decide alike, as `verify` proves nothing else.

use crate::cli::*;
use crate::support::{assert_contains, copy, project};

/// What `verify` counts: how many of the declared paths work, and out of how many.
fn counted(folder: &Folder) -> (i32, u64, u64) {
    let run = folder.run(&["verify", "--output", "json"]);
    let value = run.json();
    let total = |key: &str| value["total"][key].as_u64().unwrap();
    (run.code, total("working"), total("declared"))
}

/// A cluster `east` whose nodes report these granularities.
fn voting(says: &[Option<&str>]) -> Folder {
    let folder = Folder::mesh();
    let locating = says.iter().filter(|it| **it == Some("location")).count();
    let have_locations = says.len() < 2 * locating;
    let nodes = (1..).zip(says).map(|(number, says)| {
        let mut node = node(1, number);
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations.remove("kilo.squat.ai/granularity");
        if let Some(says) = says {
            annotations.insert("kilo.squat.ai/granularity".to_owned(), json!(says));
        }
        if have_locations && 1 < number {
            annotations["kilo.squat.ai/wireguard-ip"] = json!("");
        }
        node
    });
    folder.keep("east", &nodes.collect::<Vec<_>>());
    folder
}

#[test]
fn more_than_half_of_the_nodes_decide_the_granularity_for_render_and_verify() {
    let (full, location) = (Some("full"), Some("location"));
    let votes: [(&[Option<&str>], usize); 6] = [
        (&[full, full, location, location], 1),
        (&[full, full, full, location], 4),
        (&[full, location, location, location], 1),
        (&[full, None, None], 1),
        (&[full, full, None], 3),
        (&[full, full, None, None], 1),
    ];
    for (says, peers) in votes {
        let folder = voting(says);
        assert_eq!(folder.run(&["render"]).code, 0, "{says:?}");
        let rendered = folder.read("rendered/west/prod--east.yaml");
        assert_eq!(rendered.matches("kind: Peer").count(), peers, "{says:?}");
        let (code, kept, promised) = counted(&folder);
        assert_eq!((code, kept), (0, promised), "{says:?}");
        assert!(0 < promised, "{says:?}");
        // Who disagrees with what was decided is reported.
        let report = folder.run(&["validate", "--output", "concise"]).stdout;
        let decided = if peers == 1 { "location" } else { "full" };
        let disagree = says.iter().flatten().any(|it| *it != decided);
        assert_eq!(report.contains("mixed-granularity"), disagree, "{report}");
    }
}

/// Only leaders have a WireGuard address, so that most nodes have none in the declared range.
#[test]
fn flat_ranges_are_split_by_segments_for_render_and_verify() {
    let folder = Folder::mesh();
    let typed = "podCIDRs: [10.1.0.0/16]\n      wireguardCIDR: 10.101.0.0/24";
    let flat = "allowedNetworks: [10.1.0.0/16, 10.101.0.0/24, 10.200.0.0/16]";
    folder.edit("mesh.yaml", typed, flat);
    let nodes = (1..=3).map(|number| {
        let mut node = node(1, number);
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations["kilo.squat.ai/granularity"] = json!("location");
        if 1 < number {
            annotations["kilo.squat.ai/wireguard-ip"] = json!("");
        }
        node
    });
    folder.keep("east", &nodes.collect::<Vec<_>>());
    let run = folder.run(&["validate", "--fail-on", "warning"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(folder.run(&["render"]).code, 0);
    let rendered = folder.read("rendered/west/prod--east.yaml");
    assert!(rendered.contains("10.101.0.1/32") && !rendered.contains("10.101.0.0/24"));
    assert_contains(&rendered, "10.200.0.0/16");
    let (code, kept, promised) = counted(&folder);
    assert_eq!((code, kept), (0, promised));
    assert!(0 < promised);
}

#[test]
fn an_example_holds_in_the_flat_form_too() {
    let folder = Folder::empty();
    let example = project().join("examples/multi-cloud-location");
    copy(&example.join("snapshots"), &folder.path("snapshots"));
    let typed = fs::read_to_string(example.join("mesh.yaml")).unwrap();
    let flat: Vec<String> = typed
        .lines()
        .filter_map(|line| {
            let text = line.trim_start();
            match text.split_once(": ") {
                Some(("wireguardCIDR" | "serviceCIDR", cidr)) => Some(format!("        - {cidr}")),
                _ if text == "podCIDRs:" => Some("      allowedNetworks:".to_owned()),
                _ if text == "additionalCIDRs:" => None,
                _ => Some(line.to_owned()),
            }
        })
        .collect();
    folder.write("mesh.yaml", flat.join("\n"));
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (code, kept, promised) = counted(&folder);
    assert_eq!((code, kept), (0, promised));
    assert!(0 < promised);
}

/// A WireGuard address on a node that Kilo would not elect: `render` writes a Peer for it.
#[test]
fn a_leader_that_kilo_would_not_elect_is_reported_and_proves_nothing() {
    let folder = Folder::mesh();
    for (number, cluster) in (1..).zip(["east", "north", "west"]) {
        let nodes = [1, 2].map(|it| {
            let mut node = node(number, it);
            let annotations = node["annotations"].as_object_mut().unwrap();
            annotations["kilo.squat.ai/granularity"] = json!("location");
            if it == 1 {
                annotations["kilo.squat.ai/wireguard-ip"] = json!("");
            }
            node
        });
        folder.keep(cluster, &nodes);
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["validate", "--output", "concise", "--fail-on", "warning"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "warning[uncertain-leader]");
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_contains(&run.stdout, "error[nothing-proved]");
}
