//! `snapshot --services`: what the mesh names, from a dump.

use serde_json::{Value, json};

use crate::cli::Folder;
use crate::support::assert_contains;

/// A mesh in which `east` gets two Services of `west`.
pub(super) fn mirroring() -> Folder {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24\n",
        "wireguardCIDR: 10.101.0.0/24\n      acceptedServices: [shop]\n",
    );
    let service = |name: &str, address: &str| {
        format!(
            "    - {{ name: {name}, namespace: shop, cluster: west, clusterIPs: [{address}], \
             ports: [{{ port: 80 }}], in: [east] }}\n"
        )
    };
    let services = format!(
        "wireguardCIDR: 10.103.0.0/24\n      serviceCIDR: 10.45.0.0/16\n  services:\n{}{}",
        service("api", "10.45.0.20"),
        service("search", "10.45.0.21"),
    );
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103.0.0/24\n", &services);
    folder
}

/// A Service as the API has it.
pub(super) fn service(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{ "port": 80, "protocol": "TCP" }],
            "selector": { "app": name },
            "type": "ClusterIP",
        },
    })
}

/// All Services of a cluster, as `kubectl get services -A` prints them.
fn all(services: &[Value]) -> Value {
    let mut items = vec![json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": "default", "name": "kubernetes" },
        "spec": { "clusterIP": "10.45.0.1", "ports": [{ "port": 443 }] },
    })];
    items.extend_from_slice(services);
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

const FROM_INPUT: [&str; 5] = ["snapshot", "west", "--services", "--from", "-"];

#[test]
fn keeps_the_named_ones() {
    let folder = mirroring();
    let before = folder.touches("snapshots");
    let list = all(&[service("api", "10.45.0.20"), service("other", "10.45.0.30")]);
    let run = folder.run_with_input(&FROM_INPUT, list.to_string());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(run.stderr, @"snapshots/west.services.json: 2 Services, 1 missing, written");
    let mut after = folder.touches("snapshots");
    insta::assert_snapshot!(after.remove("west.services.json").unwrap().2, @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "cluster": "west",
      "kind": "ServiceSnapshot",
      "services": [
        {
          "found": {
            "clusterIPs": [
              "10.45.0.20"
            ],
            "hasSelector": true,
            "isMirror": false,
            "ports": [
              {
                "port": 80,
                "protocol": "TCP"
              }
            ],
            "type": "ClusterIP",
            "usesLocalEndpoints": false
          },
          "name": "api",
          "namespace": "shop"
        },
        {
          "found": null,
          "name": "search",
          "namespace": "shop"
        }
      ]
    }
    "#);
    assert_eq!(after, before);
    let run = folder.run_with_input(&FROM_INPUT, list.to_string());
    insta::assert_snapshot!(run.stderr, @"snapshots/west.services.json: 2 Services, 1 missing, unchanged");

    let other = all(&[service("api", "10.45.0.22"), service("search", "10.45.0.21")]);
    let yaml = serde_yaml::to_string(&other).unwrap();
    let check = [&FROM_INPUT[..], &["--check"]].concat();
    let run = folder.run_with_input(&check, &yaml);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @"snapshots/west.services.json: 2 Services, differs");
    insta::assert_snapshot!(run.stdout, @r#"
    snapshots/west.services.json: `shop/api`: clusterIPs was `["10.45.0.20"]`, is `["10.45.0.22"]`
    snapshots/west.services.json: `shop/search`: added
    "#);
    assert_eq!(folder.run_with_input(&FROM_INPUT, &yaml).code, 0);
    let run = folder.run_with_input(&check, &yaml);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
}

/// Half of a list would look like a cluster that has lost its Services.
#[test]
fn believes_no_part_of_a_list() {
    let refusal = |dump: &Value| {
        mirroring().refusal(2, |it| it.run_with_input(&FROM_INPUT, dump.to_string()))
    };
    insta::assert_snapshot!(refusal(&service("api", "10.45.0.20")), @"error: the standard input has no Service `shop/search`, but may not list all namespaces; use the output of `kubectl get services -A -o json`");
    let one = json!({ "kind": "ServiceList", "items": [service("api", "10.45.0.20")] });
    assert_contains(&refusal(&one), "`kubectl get services -A -o json`");
    insta::assert_snapshot!(refusal(&json!({ "kind": "NodeList", "items": [] })), @"error: the standard input is not a usable list of Services: expected a ServiceList, a List of Services or a Service, as printed by `kubectl get services -A -o json`, found the kind `NodeList`");
    insta::assert_snapshot!(refusal(&json!({ "kind": "List", "items": 1 })), @"error: the standard input is not a usable list of Services: not the JSON that `kubectl get -o json` prints: error at line 1, column 10");

    // Everything that is named is there.
    let both = [service("api", "10.45.0.20"), service("search", "10.45.0.21")];
    let both = json!({ "kind": "ServiceList", "items": both }).to_string();
    let folder = mirroring();
    let run = folder.run_with_input(&FROM_INPUT, both);
    insta::assert_snapshot!(run.stderr, @"snapshots/west.services.json: 2 Services, written");
}

#[test]
fn a_broken_file_is_replaced() {
    let folder = mirroring();
    let list = all(&[service("api", "10.45.0.20")]).to_string();
    let file = "snapshots/west.services.json";
    folder.write(file, "<<<<<<< \u{1b}[2J\n");
    let check = [&FROM_INPUT[..], &["--check"]].concat();
    insta::assert_snapshot!(folder.run_with_input(&check, &list).stdout, @"snapshots/west.services.json: not a snapshot: `apiVersion` is missing or unknown, so the text of the file is not shown");
    let run = folder.run_with_input(&FROM_INPUT, &list);
    insta::assert_snapshot!(run.stderr, @"snapshots/west.services.json: 2 Services, 1 missing, written");
    let kept = folder.read(file);
    folder.write(file, kept.replace('\n', ""));
    insta::assert_snapshot!(folder.run_with_input(&check, &list).stdout, @"snapshots/west.services.json: formatted differently than `clustermesh snapshot` writes it");
}

#[test]
fn refuses_what_makes_no_sense() {
    let refused = |arguments: &[&str]| {
        let arguments = [&["snapshot", "--services"], arguments].concat();
        mirroring().refusal(2, |it| it.run(&arguments))
    };
    for flags in [["--accept", "west"], ["--no-carry-over", "west"]] {
        assert_contains(&refused(&flags), "cannot be used with");
    }
    let dump = ["north", "--from", "-"];
    insta::assert_snapshot!(refused(&dump), @"error: `spec.services` names no Service that `north` has or gets, only Services of `east`, `west`");
    // The Services of a mesh with mistakes are unknown.
    let folder = mirroring();
    folder.edit("mesh.yaml", "10.102.0.0/24", "10.102.0.0/33");
    let error = folder.refusal(1, |it| it.run_with_input(&FROM_INPUT, "{}"));
    assert_contains(&error, "error[invalid-range]");
}

#[test]
fn a_file_that_no_mesh_uses_is_reported() {
    let folder = mirroring();
    let list = all(&[service("api", "10.45.0.20")]).to_string();
    assert_eq!(folder.run_with_input(&FROM_INPUT, list).code, 0);
    let snapshot = folder.read("snapshots/west.services.json");
    let about = |folder: &Folder, files: &str| {
        let run = folder.run(&["validate"]);
        let said = run.stdout + &run.stderr;
        let lines: Vec<&str> = said.lines().filter(|it| it.contains(files)).collect();
        lines.join("\n")
    };
    assert_eq!(about(&folder, "snapshot]"), "");
    folder.write("snapshots/old.services.json", &snapshot);
    insta::assert_snapshot!(about(&folder, "Services of"), @"warning[duplicate-snapshot]: second file with Services of `west`, which is not read");
    // Nothing is known of a mesh with mistakes.
    let mesh = folder.read("mesh.yaml");
    folder.edit("mesh.yaml", "10.102.0.0/24", "10.102.0.0/33");
    assert_eq!(about(&folder, "Services of"), "");

    let (without, _) = mesh.split_once("  services:\n").unwrap();
    folder.write("mesh.yaml", without);
    insta::assert_snapshot!(about(&folder, "Services of"), @"
    notice[unused-snapshot]: Services of `west`, although no mesh names a Service that it has or gets
    notice[unused-snapshot]: Services of `west`, although no mesh names a Service that it has or gets
    ");
}
