use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Returns a mesh of flat entries, each given as `name: range`.
pub(crate) fn mesh(name: &str, clusters: &[&str]) -> String {
    let mut text = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: {name} }}\nspec:\n  clusters:\n"
    );
    for cluster in clusters {
        let (name, range) = cluster.split_once(": ").unwrap();
        writeln!(text, "    - {{ name: {name}, allowedNetworks: [{range}] }}").unwrap();
    }
    text
}

/// Returns the findings about a mesh file.
pub(crate) fn report(text: &str) -> String {
    let source = Source::parse("mesh.yaml", text).unwrap();
    let reading = read(std::slice::from_ref(&source));
    crate::document::tests::report(&source, &reading.diagnostics)
}

fn meshes(text: &str) -> Vec<Mesh> {
    let reading = read(&[Source::parse("mesh.yaml", text).unwrap()]);
    assert!(reading.is_usable(), "{:?}", reading.diagnostics);
    reading.meshes
}

#[test]
fn reads_both_forms_with_their_defaults() {
    let found = meshes(
        "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: prod, namespace: kilo }
spec:
  clusters:
    - name: east
      local: true
      podCIDRs: [10.4.0.0/16, 'fd00:4::/48']
      wireguardCIDR: 10.5.0.0/24
      serviceCIDR: ''
      persistentKeepalive: 0
    - name: west
      allowedNetworks: [10.8.0.0/14]
      wireguardPort: 1
      persistentKeepalive: 25
      kubeconfigSecretRef: { name: west, key: kubeconfig }
      endpointDomains: [.example.org]
",
    );
    let [east, west] = found[0].entries.as_slice() else { panic!() };
    assert_eq!((east.port, west.port.get()), (DEFAULT_PORT, 1));
    assert_eq!((east.keepalive.is_some(), west.keepalive.map(|it| it.0.get())), (false, Some(25)));
    assert_eq!(east.endpoint_from, DEFAULT_ENDPOINT_FROM);
    assert_eq!(east.topology_label, DEFAULT_TOPOLOGY_LABEL);
    assert_eq!(west.endpoint_domains, ["example.org"]);
    assert!(east.local && east.selector.is_everything());
    assert_eq!(east.networks.all().len(), 3);
    assert_eq!(found[0].namespace.as_deref(), Some("kilo"));
    let place = &west.networks.all()[0].place;
    assert_eq!(place.pointer.to_string(), "/spec/clusters/1/allowedNetworks/0");
}

#[test]
fn reads_json() {
    let found = meshes(
        r#"{"apiVersion":"kilo.squat.ai/v1alpha1","kind":"ClusterMesh",
            "metadata":{"name":"m"},"spec":{"clusters":[
            {"name":"a","allowedNetworks":["10.0.0.0/16"]},
            {"name":"b","allowedNetworks":["10.1.0.0/16"]}]}}"#,
    );
    assert_eq!(found[0].entries.len(), 2);
}

#[test]
fn two_hundred_clusters_are_read_in_one_mesh_or_in_as_many() {
    let names: Vec<String> = (0..201).map(|i| format!("c{i}: 10.{i}.0.0/16")).collect();
    let big = mesh("big", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let pairs: Vec<String> = (1..201)
        .map(|i| mesh(&format!("m{i}"), &["hub: 10.0.0.0/16", &format!("c{i}: 10.{i}.0.0/16")]))
        .collect();
    for text in [big, pairs.join("---\n")] {
        let source = [Source::parse("mesh.yaml", text).unwrap()];
        assert!(read(&source).is_usable());
    }
}

const WHOLE: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: prod, labels: {} }
spec:
  topology: { mode: Links, links: [[a, b], [b, c], [c, d]] }
  clusters:
    - name: a
      podCIDRs: [10.4.0.0/16, fd00:4::/48]
      wireguardCIDR: 10.5.0.0/24
      nodeSelector: { matchLabels: { a: b }, matchExpressions: [{ key: c, operator: In, values: [d] }] }
    - { name: b, allowedNetworks: [10.8.0.0/14], endpointFrom: [Kilo], granularity: Full }
    - { name: c, allowedNetworks: [10.12.0.0/16], wireguardPort: 5, endpointDomains: [x.org] }
    - { name: d, allowedNetworks: [10.13.0.0/16], acceptedNetworks: [10.0.0.0/8], localNetworks: [192.168.1.0/24], anchors: [{ ranges: [10.13.0.0/16], nodes: [n], count: 2 }] }
status: {}
";

proptest! {
    #[test]
    fn no_slip_of_the_keyboard_makes_it_panic(
        slips in proptest::collection::vec((0..WHOLE.len(), 0usize..6, "[ -~\n]{0,6}"), 1..4)
    ) {
        let mut text = WHOLE.to_owned();
        for (at, length, new) in slips {
            let start = at.min(text.len());
            text.replace_range(start..(start + length).min(text.len()), &new);
        }
        if let Ok(source) = Source::parse("mesh.yaml", text) {
            let reading = read(std::slice::from_ref(&source));
            prop_assert_eq!(reading.is_usable(), reading.diagnostics.iter().all(|report| report.severity < Severity::Error));
            crate::document::tests::report(&source, &reading.diagnostics);
        }
    }
}
