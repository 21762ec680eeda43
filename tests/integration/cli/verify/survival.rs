//! Expectations whose paths must survive the loss of any node.

use super::*;

const SURVIVES: &str = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  - name: pods
    from: { cluster: west }
    to: { cluster: east }
    expect: Reach
    survives: { nodes: 1 }
  - name: services
    from: { cluster: west }
    to: { cluster: east }
    class: Service
    expect: Reach
    survives: { nodes: 1 }
";

#[test]
fn an_expectation_requires_survival() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      serviceCIDR: 10.96.0.0/16",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.write("expectations.yaml", SURVIVES);
    let (code, text) = verified(&folder, &[]);
    let (_, findings) = text.split_once("error[").unwrap();
    insta::assert_snapshot!(findings, @"
    failed-expectation]: expectation `services`: expected to survive the loss of any node, but without east/n1, 2 paths end until the next render, such as west/n1 → east/10.96.0.0/16
      --> expectations.yaml:14:15
       |
    14 |     survives: { nodes: 1 }
       |               ^^^^^^^^^^^^ expected to survive
    help: limit the expectation to `class: Pod`, or remove `survives`: one node carries a range of a whole cluster until the next render

    Problems were found. All 28 declared paths work in both directions. 1 of 2 expectations are met.
    ");
    assert_eq!(code, 1);
    let json = folder.run(&["verify", "-o", "json"]).json();
    assert_eq!(json["holds"], false);
    let results = json["expectations"].as_array().unwrap();
    let held: Vec<bool> = results.iter().map(|it| it["holds"].as_bool().unwrap()).collect();
    assert_eq!(held, [true, false]);
    assert_eq!(results[1]["survival"]["nodes"][0]["node"], "n1");
}

#[test]
fn survival_is_about_paths_that_work() {
    let folder = Folder::rendered();
    let denied = SURVIVES.replacen("expect: Reach", "expect: Deny", 1);
    folder.write("expectations.yaml", denied);
    let run = folder.run(&["verify"]);
    let (_, findings) = run.stdout.split_once("error[").unwrap();
    insta::assert_snapshot!(findings, @"
    contradicting-fields]: `survives` cannot be combined with `expect: Deny`: a loss opens no path
     --> expectations.yaml:8:5
      |
    7 |     expect: Deny
      |             ----
    8 |     survives: { nodes: 1 }
      |     ^^^^^^^^
    help: remove `survives`

    Problems were found. All 24 declared paths work in both directions. No expectations were checked, because their file has a mistake.
    ");
    folder.write("expectations.yaml", SURVIVES.replace("nodes: 1", "nodes: 2"));
    let run = folder.run(&["verify"]);
    let (_, findings) = run.stdout.split_once("error[").unwrap();
    insta::assert_snapshot!(findings, @"
    invalid-value]: `nodes` must be 1, not `2`
      --> expectations.yaml:8:24
       |
     8 |     survives: { nodes: 2 }
       |                        ^
    ...
    14 |     survives: { nodes: 2 }
       |                        -
    help: write 1

    Problems were found. All 24 declared paths work in both directions. No expectations were checked, because their file has a mistake.
    ");
}
