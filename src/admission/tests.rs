use serde_json::json;

use super::*;
use crate::kilo::peer::loose::LoosePeer;
use crate::mesh::Mesh;
use crate::testing::meshes;

const MESH: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: prod }
spec:
  clusters:
    - { name: east, podCIDRs: [10.40.0.0/16, 10.41.0.0/16], wireguardCIDR: 10.100.0.0/16, endpointDomains: [example.com] }
    - { name: north, podCIDRs: [10.43.0.0/16], wireguardCIDR: 10.103.0.0/16, state: Joining }
    - { name: south, podCIDRs: [10.44.0.0/16], wireguardCIDR: 10.104.0.0/16, state: Leaving }
    - name: west
      podCIDRs: [10.42.0.0/16]
      wireguardCIDR: 10.102.0.0/16
      localNetworks: [10.41.9.0/24]
      acceptedNetworks: [10.40.0.0/14, 10.44.0.0/16]
";

/// Returns a guard that needs no snapshot.
fn guard_of(meshes: &[Mesh], access: GuardAccess) -> Guard {
    Guard::new(meshes, &"west".parse().unwrap(), access)
}

fn guard(mesh: &str) -> Guard {
    guard_of(&meshes(mesh), GuardAccess::default())
}

fn sources(guard: &Guard) -> String {
    let sources = guard.declared.sources.iter();
    let lines = sources.map(|(source, ranges)| {
        let ranges: Vec<String> = ranges.iter().map(Cidr::to_string).collect();
        format!("{source}: {}\n", ranges.join(", "))
    });
    lines.collect()
}

#[test]
fn accepted_is_what_both_sides_declare() {
    // Without its own network 10.41.9.0/24, of clusters that are joining too, and of none that leaves.
    insta::assert_snapshot!(sources(&guard(MESH)), @"
    prod/east: 10.40.0.0/16, 10.41.0.0/21, 10.41.8.0/24, 10.41.10.0/23, 10.41.12.0/22, 10.41.16.0/20, 10.41.32.0/19, 10.41.64.0/18, 10.41.128.0/17
    prod/north: 10.43.0.0/16
    ");
}

#[test]
fn a_guard_is_read_as_it_is_printed() {
    let access = GuardAccess {
        writers: Some(["flux", "group:it's"].iter().map(|it| it.parse().unwrap()).collect()),
        peers: [("laptop".to_owned(), vec!["10.9.0.0/24".parse().unwrap()])].into(),
        peer_writers: ["ada"].iter().map(|it| it.parse().unwrap()).collect(),
        enforcement: Enforcement::Warn,
    };
    let wanted = guard_of(&meshes(MESH), access.clone());
    let options = wanted.options(&meshes(MESH)).unwrap().text;
    insta::assert_snapshot!(options, @r#" --warn --writers flux --writers 'group:it'\''s' --allow-peer 'laptop=10.9.0.0/24' --allow-peer-writers ada"#);
    let guard = guard_of(&meshes(MESH), access);
    let text = guard.manifests().unwrap();
    let read = Recorded::read(&Recorded::objects(&text).unwrap()).unwrap();
    assert_eq!(read.guard, guard);
    assert!(read.is_whole());
    let edited = text.replace("0 < variables.texts.size()", "true");
    let read = Recorded::read(&Recorded::objects(&edited).unwrap()).unwrap();
    assert_eq!((&read.guard, read.is_whole()), (&guard, false));
    // The policy refuses an allowed IP that two ranges contain.
    let nested = text.replace("[\"10.9.0.0/24\"]", "[\"10.9.0.0/24\", \"10.9.0.7/32\"]");
    let read = Recorded::read(&Recorded::objects(&nested).unwrap()).unwrap();
    assert_eq!((&read.guard, read.is_whole()), (&guard, false));
    let (policy, _) = text.split_once("---").unwrap();
    assert_eq!(Recorded::read(&Recorded::objects(policy).unwrap()), None);
}

#[test]
fn what_only_one_guard_accepts_is_found() {
    let old = guard(MESH);
    let beyond = |mesh: &str| -> Vec<String> {
        let excess = old.beyond(&guard(mesh)).into_iter();
        excess.map(|it| it.to_string()).collect()
    };
    assert_eq!(beyond(MESH), [""; 0]);
    assert_eq!(beyond(&MESH.replace("10.40.0.0/14", "10.40.0.0/13")), [""; 0]);
    let narrower = MESH
        .replace("10.41.0.0/16]", "10.41.0.0/17]")
        .replace("endpointDomains: [example.com]", "endpointDomains: [example.org]")
        .replace("localNetworks: [10.41.9.0/24]", "localNetworks: [10.41.9.0/24, 172.16.0.0/16]")
        .replace("state: Joining", "state: Leaving");
    insta::assert_snapshot!(beyond(&narrower).join("\n"), @"
    Peers of prod/north
    10.41.128.0/17 of prod/east
    names under example.com of prod/east
    172.16.0.0/16 of the cluster itself
    ");
}

#[test]
fn an_owner_allows_only_ranges_that_no_mesh_declares() {
    let mesh = meshes(MESH);
    let guard = guard_of(&mesh, GuardAccess::default());
    let check = |range: &str| {
        let checked = guard.check_allowed(range.parse().unwrap(), &mesh);
        checked.map_err(|error| error.to_string())
    };
    for range in ["10.9.0.7/32", "10.105.0.0/16", "11.0.0.0/8"] {
        assert_eq!(check(range), Ok(()), "{range}");
    }
    // Also of clusters that join or leave, and networks that the cluster keeps for itself.
    for range in [
        "10.41.9.7/32",
        "10.102.0.0/24",
        "10.43.1.0/24",
        "10.44.1.0/24",
        "10.104.0.9/32",
        "10.0.0.0/8",
        "10.0.0.0/7",
        "fd00::/64",
        "fd00::/15",
    ] {
        assert!(check(range).is_err(), "{range}");
    }
}

#[test]
fn large_maps_have_several_variables() {
    let east = |count: usize| {
        let ranges = (0..count).map(|it| format!("'fd00:{:x}:0:1:2:3::/96'", 2 * it));
        let ranges: Vec<String> = ranges.collect();
        format!("podCIDRs: [{}]", ranges.join(", "))
    };
    let cluster = |number: usize| {
        let ranges = east(30).replace("fd00:", &format!("fd{number:02x}:"));
        format!("    - {{ name: c{number}, {ranges}, wireguardCIDR: 10.{number}.0.0/16 }}\n")
    };
    let clusters: String = (1..200).map(cluster).collect();
    let head = "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: { name: prod }\nspec:\n  clusters:\n";
    let west = "    - { name: west, podCIDRs: [10.200.0.0/16, 'fe00::/64'], wireguardCIDR: 10.201.0.0/16 }\n";
    let guard = guard(&format!("{head}{clusters}{west}"));
    let text = guard.manifests().unwrap();
    let objects = Recorded::objects(&text).unwrap();
    let variables = objects[0]["spec"]["variables"].as_array().unwrap();
    let chunks = variables.iter().filter(|it| {
        let name = it["name"].as_str().unwrap();
        name.starts_with("sources")
    });
    assert!(1 < chunks.count());
    let sizes = variables.iter().map(|it| it["expression"].as_str().unwrap().chars().count());
    assert!(sizes.max().unwrap() <= 90_000);
    let read = Recorded::read(&objects).unwrap();
    assert_eq!(read.guard, guard);
}

#[test]
fn a_peer_is_judged_by_its_labels_and_its_name() {
    let guard = guard(MESH);
    let judge = |name: &str, source: &str, range: &str| {
        let peer = json!({
            "metadata": {"labels": {
                "kilo-clustermesh.io/mesh": "prod",
                "kilo-clustermesh.io/source-cluster": source,
            }},
            "spec": {
                "allowedIPs": [range],
                "endpoint": {"dnsOrIP": {"ip": "198.51.100.7"}, "port": 51820},
                "publicKey": "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
            },
        });
        guard.refusals(&PeerForm::read(name, LoosePeer::new(&peer)))
    };
    assert_eq!(
        judge("prod--east--n", "east", "10.40.0.0/15"),
        [Refusal::OwnRange, Refusal::Outside]
    );
    assert_eq!(judge("prod--east--n", "east", "10.40.0.0/16"), []);
    assert_eq!(judge("prod--north--n", "east", "10.40.0.0/16"), [Refusal::Name]);
    assert_eq!(judge("prod--north--n", "north", "10.40.0.0/16"), [Refusal::Outside]);
    assert_eq!(
        judge("prod--south--n", "south", "10.44.0.0/16"),
        [Refusal::Source, Refusal::Outside]
    );
    assert_eq!(judge("prod--east--n", "east", "fd00::/64"), [Refusal::Family, Refusal::Outside]);
}
