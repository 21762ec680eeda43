//! `schema`: what editors and other programs are given.

use clustermesh::kilo::peer::crd;

use super::*;
use crate::support::json_schema::violations;
use crate::support::{assert_contains, clustermesh, project};

/// The kinds, and the titles of their schemas.
const KINDS: &[(&str, &str)] = &[
    ("mesh", "ClusterMesh"),
    ("config", "Config"),
    ("expectations", "Expectations"),
    ("snapshot", "NodeSnapshot"),
    ("report", "Report"),
    ("trace", "Trace"),
    ("trace-mistake", "TraceMistake"),
    ("verification", "Verification"),
    ("outage", "Outage"),
    ("diff", "Diff"),
    ("capacity", "Capacity"),
    #[cfg(feature = "snapshot")]
    ("status", "Status"),
    ("dns", "DnsConfiguration"),
    ("wireguard", "WireGuardConfiguration"),
    ("firewall", "Firewall"),
    ("graph", "Graph"),
    ("annotate", "NodeChanges"),
    ("explanation", "NodeExplanation"),
    ("peer", "Peer"),
];

fn schema(arguments: &[&str]) -> Value {
    let folder = Folder::empty();
    let run = folder.run(&[&["schema"], arguments].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(folder.touches(".").len(), 0);
    assert!(run.stdout.ends_with("}\n"));
    run.json()
}

/// The schema with no room for a field that it does not know.
fn closed(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        if fields.contains_key("properties") && fields.contains_key("description") {
            fields.insert("additionalProperties".to_owned(), json!(false));
        }
        for (_, field) in fields.iter_mut() {
            *field = closed(field.take());
        }
    }
    schema
}

#[test]
fn prints_a_schema_of_every_kind() {
    for (kind, title) in KINDS {
        assert_eq!(schema(&[kind])["title"], *title, "{kind}");
    }
    assert_ne!(schema(&["peer"]), schema(&["peer", "--strict"]));
}

#[test]
fn is_listed_with_what_it_can_print() {
    let run = Folder::empty().run(&["schema", "--help"]);
    for (kind, _) in KINDS {
        assert_contains(&run.stdout, &format!("- {kind}:"));
    }
    let run = Folder::empty().run(&["schema", "peers"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    #[cfg(feature = "snapshot")]
    insta::assert_snapshot!(run.stderr, @"
    error: invalid value 'peers' for '<KIND>'
      [possible values: mesh, config, expectations, policy, snapshot, services-snapshot, report, trace, trace-mistake, verification, outage, diff, graph, capacity, status, dns, wireguard, firewall, annotate, explanation, peer, template-context]

      tip: a similar value exists: 'peer'

    For more information, try '--help'.
    ");
}

#[test]
fn only_a_peer_has_a_strict_one() {
    let run = Folder::empty().run(&["schema", "mesh", "--strict"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: `--strict` works only with `peer`");
}

/// As an API server with Kilo's CRD takes a Peer: the bounds of the port are those of its `int32`.
#[test]
fn a_peer_s_numbers_are_those_that_an_api_server_stores() {
    let [loose, strict] = [&["peer"][..], &["peer", "--strict"]].map(schema);
    let port = [i64::from(i32::MIN) - 1, i64::from(i32::MIN), -1, 0, 65_536];
    let port = [&port[..], &[i64::from(i32::MAX), i64::from(i32::MAX) + 1]].concat();
    let ports = port.iter().map(|&port| (port, 25, false));
    let keepalives = [-1, 65_536, 1 << 55, i64::MAX].map(|it| (51_820, it, false));
    let sound = [(1, 0, true), (65_535, 65_535, true)];
    for (port, keepalive, is_usable) in ports.chain(keepalives).chain(sound) {
        let endpoint = json!({ "dnsOrIP": { "ip": "192.0.2.1" }, "port": port });
        let spec = json!({
            "allowedIPs": ["10.1.0.0/24"],
            "endpoint": endpoint,
            "persistentKeepalive": keepalive,
            "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
        });
        let is_stored = crd::stored(&spec).is_ok();
        assert_eq!(is_stored, i32::try_from(port).is_ok(), "{spec}");
        let peer = json!({
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "kind": "Peer",
            "metadata": { "name": "a" },
            "spec": spec,
        });
        let takes = |schema: &Value| violations(schema, &peer).is_empty();
        assert_eq!((takes(&loose), takes(&strict)), (is_stored, is_usable), "{peer}");
    }
}

#[test]
fn needs_no_config_that_is_right() {
    let folder = Folder::empty();
    folder.write("clustermesh.yaml", "a: [");
    assert_eq!(folder.run(&["schema", "config"]).code, 0);
}

#[test]
fn does_not_mind_a_reader_who_has_gone() {
    let folder = Folder::empty();
    let mut command = super::render::target::command(&folder, &["schema", "mesh"]);
    let output = command.stdout(super::render::target::broken()).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// With and without nodes, clusters, aliases, help, labels and lines, and with a file that cannot be
/// read.
#[test]
fn describes_every_field_of_a_report() {
    let schema = closed(schema(&["report"]));
    let clean = Folder::mesh();
    let wrong = Folder::mesh();
    wrong.edit("mesh.yaml", "name: north", "name: east");
    wrong.edit("mesh.yaml", "10.102.0.0/24", "10.102.0.9/33");
    wrong.edit("mesh.yaml", "wireguardCIDR: 10.103", "wireguardCidr: 10.103");
    let nodes = Folder::mesh();
    let mut bare = node(1, 1);
    bare["annotations"] = json!({});
    nodes.keep("east", &[bare, node(1, 2)]);
    nodes.keep("west", &[]);
    nodes.write("snapshots/other.json", "{}");
    let missing = Folder::mesh();
    fs::remove_file(missing.path("snapshots/west.json")).unwrap();
    let broken = Folder::mesh();
    broken.write("mesh.yaml", "a: [");
    let contradicted = Folder::mesh();
    contradicted.edit("mesh.yaml", "10.101.0.0/24", "10.111.0.0/24");
    let mut fields = BTreeSet::new();
    for folder in [clean, wrong, nodes, missing, broken, contradicted] {
        let run = folder.run(&["validate", "--output", "json"]);
        let report = run.json();
        assert_eq!(violations(&schema, &report), [""; 0], "{report:#}");
        for finding in report["findings"].as_array().unwrap() {
            fields.extend(finding.as_object().unwrap().keys().cloned());
            for place in finding["places"].as_array().unwrap() {
                fields.extend(place.as_object().unwrap().keys().cloned());
            }
        }
    }
    let mut known = BTreeSet::new();
    for part in ["Finding", "Place"] {
        let properties = schema["$defs"][part]["properties"].as_object().unwrap();
        known.extend(properties.keys().cloned());
    }
    assert_eq!(fields, known);
}

/// Delivered, not delivered on each side, and with every assumption of a step.
#[test]
fn describes_every_field_of_a_trace() {
    let schema = closed(schema(&["trace"]));
    let sound = Folder::rendered();
    let balanced = Folder::rendered();
    balanced.edit("rendered/west/prod--east.yaml", "198.18.113.11", "198.18.9.9");
    let cut = Folder::rendered();
    cut.edit("rendered/west/prod--east.yaml", "10.1.1.0/24", "10.1.9.0/24");
    let lines = "west 10.1.1.2:443\nwest 10.99.9.9\n";
    let batch = sound.run_with_input(&["trace", "--batch"], lines).stdout;
    let mut traces: Vec<Value> =
        batch.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    for folder in [sound, balanced, cut] {
        let run = folder.run(&["trace", "west/n1", "east/n1", "--output", "json"]);
        traces.push(run.json());
    }
    let mut fields: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for trace in traces {
        assert_eq!(violations(&schema, &trace), [""; 0], "{trace:#}");
        let mut see = |part, value: &Value| {
            let keys = value.as_object().unwrap().keys().cloned();
            fields.entry(part).or_default().extend(keys);
        };
        see("", &trace);
        for end in ["from", "to"] {
            if !trace[end].is_null() {
                see("End", &trace[end]);
            }
        }
        for way in [&trace["there"], &trace["back"]] {
            if !way.is_null() {
                see("Way", way);
                for step in way["steps"].as_array().unwrap() {
                    see("Step", step);
                }
            }
        }
    }
    for (part, fields) in fields {
        let part = if part.is_empty() { &schema } else { &schema["$defs"][part] };
        let known: BTreeSet<String> =
            part["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, known);
    }
}

/// Lets west get a Service of east.
fn mirror_a_service(folder: &Folder) {
    let services = "  services:\n    - { name: api, namespace: shop, cluster: east, clusterIPs: [10.96.0.9], \
                    ports: [{ port: 80 }], in: [west] }\n";
    folder.write("mesh.yaml", folder.read("mesh.yaml") + services);
    for cluster in ["east", "west"] {
        let observed = json!({ "found": null, "name": "api", "namespace": "shop" });
        let snapshot = json!({
            "apiVersion": "kilo-clustermesh.io/v1",
            "cluster": cluster,
            "kind": "ServiceSnapshot",
            "services": [observed],
        });
        let path = format!("snapshots/{cluster}.services.json");
        folder.write(&path, snapshot.to_string());
    }
}

/// Kept and broken, with expectations, hostile clusters, and what one node alone carries.
#[test]
fn describes_every_field_of_a_verification() {
    let schema = closed(schema(&["verification"]));
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      serviceCIDR: 10.96.0.0/16",
    );
    let mut unready = node(2, 3);
    unready["annotations"] = json!({});
    folder.keep("north", &[node(2, 1), node(2, 2), unready]);
    let joins = |name: &str, number: u8| {
        format!(
            "    - name: {name}\n      state: Joining\n      podCIDRs: [10.{number}.0.0/16]\n      \
             wireguardCIDR: 10.{}.0.0/24\n",
            number + 100
        )
    };
    let joining = format!("{NORTH}{}{}", joins("later", 4), joins("unknown", 5));
    folder.edit("mesh.yaml", NORTH, &joining);
    folder.keep("later", &[node(4, 1)]);
    let subnet = "wireguardCIDR: 10.103.0.0/24";
    let fields = "granularity: Location\n      anchors: [{ nodes: [n1] }]\n      \
                  acceptedServices: [shop]\n      \
                  advertise: { podCIDRs: Declared, nodeAddresses: false, wireguardAddresses: None }";
    folder.edit("mesh.yaml", subnet, &format!("{subnet}\n      {fields}"));
    mirror_a_service(&folder);
    folder.keep("west", &location(vec![node(3, 1), node(3, 2)]));
    assert_eq!(folder.run(&["render"]).code, 0);
    folder.edit("rendered/west/prod--east.yaml", "10.1.1.0/24", "10.1.9.0/24");
    // What was rendered before still leads to these nodes.
    let wireguard = "wireguardCIDR: 10.102.0.0/24";
    let selector = "nodeSelector: { matchLabels: { mesh: 'yes' } }";
    folder.edit("mesh.yaml", wireguard, &format!("{wireguard}\n      {selector}"));
    let expectations = "\
apiVersion: kilo-clustermesh.io/v1
kind: Expectations
spec:
  undeclared: Deny
  expectations:
    - { name: talk, from: { cluster: west }, to: { cluster: east }, class: Pod, expect: Reach, survives: { nodes: 1 } }
    - { from: { cluster: west }, to: { cluster: north }, class: Pod, expect: Deny }
";
    folder.write("expectations.yaml", expectations);
    let run =
        folder.run(&["verify", "--assume-hostile", "east", "--undeclared", "--output", "json"]);
    let verification = run.json();
    assert_eq!(violations(&schema, &verification), [""; 0]);
    let first = |pointer: &str| {
        let found = verification.pointer(pointer);
        found.unwrap_or_else(|| panic!("no {pointer} in {verification:#}"))
    };
    let parts = [
        ("", ""),
        ("Tally", "/total"),
        ("Pairing", "/pairings/0"),
        ("Classes", "/pairings/0/classes/0"),
        ("Failure", "/failures/0"),
        ("SinglePoint", "/singlePoints/0"),
        ("Node", "/apart/0"),
        ("Undeclared", "/undeclared/0"),
        ("Unallowed", "/unallowed/0"),
        ("Unowned", "/unowned/0"),
        ("Expectation", "/expectations/0"),
        ("ServicePaths", "/services/0"),
        ("Hostile", "/hostile/0"),
        ("Exposure", "/hostile/0/exposures/0"),
        ("Joining", "/joining"),
        ("Joiner", "/waiting/0"),
    ];
    for (part, pointer) in parts {
        let described = if part.is_empty() { &schema } else { &schema["$defs"][part] };
        // So few findings are all listed.
        let known = described["properties"].as_object().unwrap().keys();
        let known = known.filter(|it| *it != "omitted");
        let written = first(pointer).as_object().unwrap().keys();
        assert!(known.eq(written), "{part}: {:#}", first(pointer));
    }
}

#[test]
fn describes_every_field_of_an_outage() {
    let schema = closed(schema(&["outage"]));
    let example = project().join("examples/quickstart");
    let known = |part: &str, written: &Value| {
        let described = &schema["$defs"][part]["properties"];
        let known = described.as_object().unwrap().keys();
        assert!(known.eq(written.as_object().unwrap().keys()), "{part}");
    };
    let single = clustermesh(&example, &["outage", "-o", "json"]).json();
    assert_eq!(violations(&schema, &single), [""; 0]);
    known("Survey", &single["single"]);
    known("Harm", &single["single"]["harmful"][0]);
    let arguments = ["outage", "east/east-agent-1", "-o", "json"];
    let together = clustermesh(&example, &arguments).json();
    assert_eq!(violations(&schema, &together), [""; 0]);
    known("Ended", &together["together"]["ended"][0]);
    known("NextRender", &together["together"]["nextRender"]);
}
