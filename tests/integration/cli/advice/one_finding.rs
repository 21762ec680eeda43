//! Edits of which the only finding is the cause, with the line that ends it.

use super::*;
use crate::support::{copy, project};

/// An edit of an example, and the only finding of `validate` that is not there without it: its rule and severity, and
/// parts of its message and its help.
struct Slip {
    example: &'static str,
    edit: [&'static str; 3],
    found: [&'static str; 4],
}

/// The clusters of [`MESH`], each with its ranges in one list.
const FLAT: &str = "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: prod
spec:
  groups:
    edge: [north, west]
  clusters:
    - name: east
      allowedNetworks: [10.1.0.0/16, 10.101.0.0/24]
    - name: north
      allowedNetworks: [10.2.0.0/16, 10.102.0.0/24, 10.202.0.0/16]
    - name: west
      allowedNetworks: [10.3.0.0/16, 10.103.0.0/24]
      acceptedNetworks:
        - 10.1.0.0/16
        - 10.101.0.0/24
        - 10.2.0.0/16
        - 10.102.0.0/24
        - 10.202.0.0/16
";

const EXPECTATIONS: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - name: east reaches the edge
    from: { cluster: east }
    to: { group: edge }
    expect: Reach
";

fn folder(example: &str) -> Folder {
    let folder = Folder::mesh();
    if example == "flat" {
        folder.write("mesh.yaml", FLAT);
        folder.write("expectations.yaml", EXPECTATIONS);
    } else {
        fs::remove_dir_all(folder.path("snapshots")).unwrap();
        copy(&project().join("examples").join(example), folder.0.path());
    }
    assert_eq!(folder.run(&["render"]).code, 0);
    folder
}

const SLIPS: [Slip; 22] = [
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "        - 10.2.0.0/16\n", ""],
        found: [
            "unaccepted-range",
            "warning",
            "10.2.1.0/24, 10.2.2.0/24 left out: not in `acceptedNetworks` (target west)",
            "to accept them, add 10.2.0.0/16 to `acceptedNetworks` of `west` in `mesh.yaml`",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "        - 10.1.0.0/16\n", ""],
        found: [
            "unaccepted-range",
            "warning",
            "not in `acceptedNetworks`, so no path works between the linked clusters (target west)",
            "to accept them, add 10.1.0.0/16 to `acceptedNetworks` of `west` in `mesh.yaml`",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "        - 10.1.0.0/16\n", "        - 10.1.1.0/24\n"],
        found: [
            "unaccepted-range",
            "warning",
            "10.1.2.0/24 left out",
            "to accept it, add 10.1.2.0/24 to `acceptedNetworks` of `west`",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "[10.1.0.0/16, 10.101", "[10.7.0.0/16, 10.101"],
        found: [
            "contradicted-declaration",
            "error",
            "outside the declared",
            "if 10.7.0.0/16, in which no node has an address, is a typo, write 10.1.0.0/16 instead; otherwise add 10.1.0.0/16 ",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "[10.2.0.0/16, 10.102", "[10.7.0.0/16, 10.102"],
        found: [
            "contradicted-declaration",
            "error",
            "outside the declared",
            "if one of 10.7.0.0/16, 10.202.0.0/16, in which no node has an address, is a typo, write 10.2.0.0/16 instead; ",
        ],
    },
    Slip {
        example: "flat",
        edit: [
            "mesh.yaml",
            "- name: west\n",
            "- name: west\n      anchors: [{ ranges: [10.3.0.0/16], nodes: [n1] }]\n",
        ],
        found: [
            "invalid-anchor",
            "warning",
            "10.3.0.0/16 has no effect in `anchors`, because each node carries its own pod CIDR",
            "write `advertise: { podCIDRs: Declared }` if one location should carry the whole range, else remove",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "edge: [north, west]", "edge: west"],
        found: ["invalid-type", "error", "`edge` must be a list", "write a list with one item"],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "  groups:", "  group:"],
        found: ["unknown-field", "error", "unknown field `group`", "did you mean `groups`?"],
    },
    Slip {
        example: "flat",
        edit: ["expectations.yaml", "group: edge", "group: west"],
        found: [
            "unknown-cluster",
            "error",
            "`west` is a cluster, not a group",
            "write `cluster: west`",
        ],
    },
    Slip {
        example: "flat",
        edit: ["expectations.yaml", "group: edge", "group: shore"],
        found: [
            "unknown-cluster",
            "error",
            "unknown group `shore`",
            "write the group that is meant (`edge`), or declare it under `spec.groups` of a mesh",
        ],
    },
    Slip {
        example: "flat",
        edit: ["expectations.yaml", "to: { group: edge }", "to: { other: false }\n    class: Any"],
        found: ["invalid-value", "error", "`other` can only be `true`", "remove `other`"],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "- name: east", "- nam: east"],
        found: ["unknown-field", "error", "unknown field `nam`", "did you mean `name`?"],
    },
    Slip {
        example: "flat",
        edit: [
            "mesh.yaml",
            "- name: east\n",
            "- name: east\n      nodeSelector: { matchExpressions: [{ key: a, operator: exists }] }\n",
        ],
        found: [
            "invalid-value",
            "error",
            "`operator` cannot be `exists`",
            "did you mean `Exists`?",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "- name: east\n", "- name: east\n      dns: { services: 10.1.0.10 }\n"],
        found: ["unknown-field", "error", "unknown field `services`", "did you mean `service`?"],
    },
    Slip {
        example: "external-peers",
        edit: ["mesh.yaml", "publicKey: avk", "publickey: avk"],
        found: ["unknown-field", "error", "unknown field `publickey`", "did you mean `publicKey`?"],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "acceptedNetworks:\n", "acceptedNetworks: [10.1.0.0/16]\n"],
        found: [
            "syntax-error",
            "error",
            "`acceptedNetworks` has a value in line 15, so no list items can follow",
            "remove the value in line 15 or the list items below it",
        ],
    },
    Slip {
        example: "hub-and-spokes",
        edit: ["mesh.yaml", "- 172.20.1.0/24", "- 172.20.1.0/27"],
        found: [
            "unused-address",
            "notice",
            "172.20.1.0/27 contains the internal IPs of 1 of 3 nodes on the LAN 172.20.1.0/24, but not those of ",
            "write 172.20.1.0/24 instead if other clusters should reach these nodes",
        ],
    },
    Slip {
        example: "flat",
        edit: ["mesh.yaml", "- name: west\n", "- name: west\n      mtu: { pods: 1500 }\n"],
        found: [
            "exceeded-mtu",
            "notice",
            "`pods: 1500` in `mtu` is compared with no tunnel",
            "add `underlay` to `mtu`",
        ],
    },
    Slip {
        example: "services",
        edit: [
            "mesh.yaml",
            "      namespace: shop\n      cluster: west\n",
            "      namespace: shop\n      cluster: east\n",
        ],
        found: [
            "invalid-value",
            "error",
            "the cluster IP is in `serviceCIDR` of `west`, not of `east`",
            "write `cluster: west`",
        ],
    },
    Slip {
        example: "services",
        edit: ["mesh.yaml", "port: 5432", "port: 5423"],
        found: [
            "changed-service",
            "error",
            "`shop/db` has no port 5423/TCP",
            "write a port that the Service has (5432/TCP)",
        ],
    },
    Slip {
        example: "services",
        edit: ["mesh.yaml", "name: db", "name: database"],
        found: [
            "missing-services",
            "error",
            "its snapshot of Services lacks `shop/database`",
            "correct the name if another Service is meant (`shop/db`); otherwise run `clustermesh snapshot --services`",
        ],
    },
    Slip {
        example: "gitops",
        edit: [
            "clustermesh.yaml",
            "kind: Config\n",
            "kind: Config\nlimits: { ceilings: { nodes: 2 } }\n",
        ],
        found: [
            "beyond-ceiling",
            "error",
            "6 nodes exceed the ceiling of 2",
            "raise or remove this ceiling where it was lowered: `nodes` of `limits.ceilings` in the config",
        ],
    },
];

#[test]
fn a_slip_is_one_finding() {
    for Slip { example, edit: [file, from, to], found } in SLIPS {
        let folder = folder(example);
        let run = |folder: &Folder| -> Vec<[String; 4]> {
            let report = folder.run(&["validate", "--output", "json"]).json();
            let found = report["findings"].as_array().unwrap().iter();
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            let causes = found.filter(|it| it["cause"].is_null());
            let fields = ["rule", "severity", "message", "help"];
            causes.map(|it| fields.map(|key| text(&it[key]))).collect()
        };
        let before = run(&folder);
        folder.edit(file, from, to);
        let mut after = run(&folder);
        after.retain(|it| !before.contains(it));
        let is_it = |it: &[String; 4]| it.iter().zip(found).all(|(it, part)| it.contains(part));
        assert!(after.len() == 1 && after.iter().all(is_it), "{from} → {to}: {after:#?}");
    }
}

/// A file with another name is not a second one while the first is missing.
#[test]
fn a_misnamed_file_is_moved_back() {
    for (example, from, to) in [
        ("flat", "snapshots/west.json", "snapshots/wst.json"),
        ("services", "snapshots/west.services.json", "snapshots/west.service.json"),
    ] {
        let folder = folder(example);
        fs::rename(folder.path(from), folder.path(to)).unwrap();
        let run = folder.run(&["validate"]);
        assert_eq!((run.code, run.stderr.as_str()), (1, "1 error\n"), "{}", run.stdout);
        assert_contains(&run.stdout, &format!("help: run `mv {to} {from}`"));
        fs::rename(folder.path(to), folder.path(from)).unwrap();
        assert_eq!(folder.run(&["validate"]).code, 0);
    }
}

/// Flux prunes what a kustomization no longer lists.
#[test]
fn what_a_kustomization_does_not_list_is_not_proved() {
    let folder = Folder::rendered();
    folder.edit("rendered/east/kustomization.yaml", "- prod--west.yaml\n", "");
    let run = folder.run(&["verify"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "1 error\n"), "{}", run.stdout);
    assert_contains(&run.stdout, "error[outdated-tree]");
    assert_contains(&run.stdout, "16 of 24 declared paths work in both directions.");
    // The same file under another spelling of its path, which hides nothing either.
    for path in ["./prod--west.yaml", ".//prod--west.yaml", "a/../prod--west.yaml"] {
        assert_eq!(folder.run(&["render"]).code, 0);
        let listed = format!("- {path}");
        folder.edit("rendered/east/kustomization.yaml", "- prod--west.yaml", &listed);
        let run = folder.run(&["verify"]);
        assert_contains(&run.stdout, "All 24 declared paths work in both directions.");
    }
}

/// The paths that work are not all that a mesh declares.
#[test]
fn linked_clusters_without_a_path_are_a_finding_of_verify() {
    let folder = folder("flat");
    folder.edit("mesh.yaml", "        - 10.1.0.0/16\n", "");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["verify"]);
    assert_contains(
        &run.stdout,
        "warning[unproved-cluster]: east: a mesh links it to west, but no path between them is declared",
    );
}

#[test]
fn tips_lead_on() {
    let folder = Folder::rendered();
    for (command, tip) in [
        (&["trace", "east", "west", "--port", "443"][..], "follows packets by their addresses"),
        (&["report", "x.html"], "`clustermesh report --out x.html` writes the page"),
        (&["outage", "--node", "n1"], "`clustermesh outage CLUSTER/NODE`"),
        (&["rbac", "--snapshots"], "is an option of `snapshot`, `render`, `template` and 1"),
        (&["render", "-t", "east"], "`--target CLUSTER` selects one cluster"),
        (&["report", "--output", "x.html"], "a similar option exists: `--out`"),
        (
            &["capacity", "--with", "east.nodes=+10"],
            "the numbers of nodes are those of the snapshots",
        ),
        (&["capacity", "--with", "east.advertize=1"], "did you mean `advertise`?"),
    ] {
        let run = folder.run(command);
        assert_eq!(run.code, 2, "{command:?}");
        assert_contains(&run.stderr, tip);
        assert!(!run.stderr.contains("as a value"), "{}", run.stderr);
    }
}

/// The mistake is the reason why no mesh has the cluster that a person names.
#[test]
fn a_cluster_with_a_mistake_in_its_name_has_that_finding() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "name: west", "name: West");
    for command in [["explain", "west/n1"], ["outage", "west"]] {
        let run = folder.run(&command);
        assert_contains(&(run.stdout + &run.stderr), "`West` is not a valid cluster name");
    }
}

/// All commands report the same cause.
#[test]
fn a_range_of_another_cluster_is_a_contradicted_line() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103.0.0/24", "wireguardCIDR: 10.102.0.0/24");
    for command in [&["validate"][..], &["trace", "east", "west"], &["outage", "west"], &["verify"]]
    {
        let run = folder.run(command);
        let all = run.stdout + &run.stderr;
        assert_contains(&all, "error[contradicted-declaration]: west: ");
        assert!(!all.contains("error[overlapping-ranges]"), "{command:?}: {all}");
    }
}
