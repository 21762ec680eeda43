//! The Services that clusters get, and their flaws: a whole mesh each, as text.

use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::plan::plan;
use crate::testing;

const MESH: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
  - { name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, acceptedServices: [shop, data] }
  - { name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24, serviceCIDR: 10.102.0.0/16 }
  - { name: c, podCIDRs: ['fd00:3::/48'], wireguardCIDR: 10.203.0.0/24, acceptedServices: [shop] }
  services:
  - { name: api, namespace: shop, cluster: b, clusterIPs: [10.102.0.9], ports: [{ port: 80 }], in: [a, c], as: { namespace: shop } }
";

const NODES: [(&str, &str); 3] = [
    ("a", "a pod=10.1.1.0/24 wg=10.201.0.1/16 key=A external=198.18.113.1"),
    ("b", "b pod=10.2.1.0/24 wg=10.202.0.1/16 key=B external=198.18.113.2"),
    ("c", "c pod=fd00:3:1::/64 wg=10.203.0.1/16 key=C external=198.18.113.3"),
];

/// The Service as its cluster has it.
fn api() -> serde_json::Value {
    json!({
        "metadata": { "namespace": "shop", "name": "api" },
        "spec": {
            "clusterIP": "10.102.0.9",
            "ports": [{ "port": 80, "targetPort": 8080 }],
            "selector": { "app": "api" },
            "type": "ClusterIP",
        },
    })
}

/// Returns what each cluster gets, and the flaws, where b has one Service and a another.
fn report(mesh: &str, of_b: Option<serde_json::Value>, of_a: Option<serde_json::Value>) -> String {
    let meshes = testing::meshes(mesh);
    let snapshots = testing::snapshots(NODES);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let observed = |cluster: &str, service: Option<serde_json::Value>| {
        let cluster: ClusterName = cluster.parse().unwrap();
        let list = json!({ "kind": "List", "items": service.into_iter().collect::<Vec<_>>() });
        let found = crate::snapshot::services::found(&list.to_string()).unwrap();
        let names = meshes.iter().flat_map(|it| it.services_of(&cluster));
        let snapshot = ServiceSnapshot::new(&cluster, names, found);
        (cluster, snapshot)
    };
    let services = [observed("a", of_a), observed("b", of_b), observed("c", None)];
    let mirrors = Mirrors::new(&meshes, &fleet, &plan, &services.into());
    let mut text = String::new();
    for (target, services) in &mirrors.targets {
        let names = services.iter().map(|it| format!(" {} {}", it.service.local, it.address));
        let _ = writeln!(text, "{target}:{}", names.collect::<String>());
    }
    for Flawed { target, flaw, .. } in &mirrors.flaws {
        let target = target.map_or("all", |it| it.as_str());
        let _ = writeln!(text, "{target}: {flaw:?}");
    }
    text
}

#[test]
fn a_target_gets_the_address_of_the_family_that_it_routes() {
    insta::assert_snapshot!(report(MESH, Some(api()), None), @"
    a: shop/api 10.102.0.9
    c:
    c: OtherFamily(V6)
    ");
}

#[test]
fn what_cannot_be_mirrored_is_left_out_everywhere() {
    let edited = |pointer: &str, value: serde_json::Value| {
        let mut service = api();
        service["spec"][pointer] = value;
        report(MESH, Some(service), None)
    };
    insta::assert_snapshot!(edited("clusterIP", json!("None")), @"
    a:
    c:
    all: Headless
    c: OtherFamily(V6)
    ");
    insta::assert_snapshot!(edited("type", json!("ExternalName")), @"
    a:
    c:
    all: ExternalName
    c: OtherFamily(V6)
    ");
    insta::assert_snapshot!(edited("internalTrafficPolicy", json!("Local")), @"
    a:
    c:
    all: LocalEndpoints
    c: OtherFamily(V6)
    ");
    let mut mirror = api();
    mirror["metadata"]["labels"] = json!({ "kilo-clustermesh.io/source-cluster": "m" });
    // The label of a Service that selects pods means nothing.
    assert_eq!(report(MESH, Some(mirror.clone()), None), report(MESH, Some(api()), None));
    assert!(report(MESH, Some(api()), Some(mirror.clone())).contains("a: Taken"));
    mirror["spec"]["selector"] = json!(null);
    insta::assert_snapshot!(report(MESH, Some(mirror.clone()), None), @"
    a:
    c:
    all: IsMirror
    c: OtherFamily(V6)
    ");
    insta::assert_snapshot!(report(MESH, Some(api()), Some(api())), @"
    a:
    c:
    a: Taken
    c: OtherFamily(V6)
    ");
    // A mirror may be there.
    assert_eq!(report(MESH, Some(api()), Some(mirror)), report(MESH, Some(api()), None));
}

/// A cluster must not be able to take away what others have.
#[test]
fn what_changes_in_its_cluster_stays_with_the_others() {
    insta::assert_snapshot!(report(MESH, None, None), @"
    a: shop/api 10.102.0.9
    c:
    all: Vanished
    c: OtherFamily(V6)
    ");
    let mut moved = api();
    moved["spec"]["clusterIP"] = json!("10.102.0.10");
    moved["spec"]["ports"] = json!([{ "port": 81 }]);
    insta::assert_snapshot!(report(MESH, Some(moved), None), @r#"
    a: shop/api 10.102.0.9
    c:
    all: Moved([10.102.0.10])
    all: NoPort(ServicePort { app_protocol: None, name: "", port: 80, protocol: Tcp }, [ServicePort { app_protocol: None, name: "", port: 81, protocol: Tcp }])
    c: OtherFamily(V6)
    "#);
}

#[test]
fn a_service_without_a_carrier_stays_and_is_reported() {
    let mesh = MESH.replace(
        "acceptedServices: [shop, data]",
        "acceptedServices: [shop], acceptedNetworks: [10.2.0.0/16]",
    );
    insta::assert_snapshot!(report(&mesh, Some(api()), None), @"
    a: shop/api 10.102.0.9
    c:
    a: Uncarried(10.102.0.9)
    c: OtherFamily(V6)
    ");
}

#[test]
fn a_cluster_that_has_not_joined_gets_nothing() {
    let mesh = MESH.replace("{ name: a,", "{ name: a, state: Joining,");
    insta::assert_snapshot!(report(&mesh, Some(api()), None), @"
    a:
    c:
    c: OtherFamily(V6)
    ");
}

#[test]
fn a_missing_file_is_unknown_and_no_absence() {
    let meshes = testing::meshes(MESH);
    let snapshots = testing::snapshots(NODES);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let mirrors = Mirrors::new(&meshes, &fleet, &plan, &ServiceSnapshots::new());
    let unknown: Vec<&str> = mirrors.unknown.keys().map(|it| it.as_str()).collect();
    assert_eq!(unknown, ["a", "b", "c"]);
}

/// A rendered Service is not taken for one of the cluster itself.
#[test]
fn a_rendered_service_is_recognised() {
    let meshes = testing::meshes(MESH);
    let snapshots = testing::snapshots(NODES);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let mirrors = Mirrors::new(&meshes, &fleet, &plan, &ServiceSnapshots::new());
    let tree = tree(&mirrors, "x").unwrap();
    let (service, _) = tree["x/a/m--b.yaml"].split_once("---").unwrap();
    let found = crate::snapshot::services::found(service).unwrap();
    assert!(found.into_values().map(|it| is_rendered(&it)).eq([true]));
}
