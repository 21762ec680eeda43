use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::document::Source;
use crate::fleet::{Fleet, SnapshotFile};
use crate::manifest;
use crate::mesh::{self, Mesh};
use crate::name::ClusterName;
use crate::plan::plan;
use crate::proof::applied::File;
use crate::proof::fabric::{Fabric, Site};
use crate::proof::trace::Class;
use crate::proof::words;
use crate::snapshot::{Node, Snapshot};
use crate::testing::{mesh_of, node};

/// Clusters with what is rendered for them, for somebody to spoil.
pub(in crate::proof) struct Lab {
    meshes: Vec<Mesh>,
    snapshots: BTreeMap<ClusterName, SnapshotFile>,
    files: BTreeMap<String, String>,
}

impl Lab {
    /// Renders clusters, each given with the fields of its entry and its nodes a line each.
    pub(in crate::proof) fn of(clusters: &[(&str, &str, &str)]) -> Self {
        Self::linked("{ mode: FullMesh }", clusters)
    }

    /// The same, with a topology.
    pub(in crate::proof) fn linked(topology: &str, clusters: &[(&str, &str, &str)]) -> Self {
        let fields: Vec<String> = clusters
            .iter()
            .map(|(name, fields, _)| format!("name: {name}, {fields}"))
            .collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let mesh = format!("{}  topology: {topology}\n", mesh_of("m", &fields));
        let reading = mesh::read(&[Source::parse("mesh.yaml", mesh).unwrap()]);
        assert!(reading.is_usable(), "{:#?}", reading.diagnostics);
        let snapshots = clusters.iter().map(|(name, _, nodes)| {
            let cluster: ClusterName = name.parse().unwrap();
            let snapshot = snapshot(&cluster, nodes);
            let source = Arc::from(format!("{name}.json"));
            (cluster, SnapshotFile { snapshot, source })
        });
        let snapshots = snapshots.collect();
        let fleet = Fleet::new(&reading.meshes, &snapshots).unwrap();
        let tree = manifest::tree(&plan(&fleet).unwrap()).unwrap();
        let files = tree.into_iter();
        let files = files.filter(|(path, _)| !path.ends_with("kustomization.yaml"));
        Self {
            files: files.map(|(path, text)| (path, text.to_string())).collect(),
            meshes: reading.meshes,
            snapshots,
        }
    }

    /// Writes something else into a file.
    pub(in crate::proof) fn edit(mut self, path: &str, from: &str, to: &str) -> Self {
        let text = self.files.get_mut(path).unwrap();
        assert!(text.contains(from), "no {from} in {text}");
        *text = text.replace(from, to);
        self
    }

    /// Writes a Peer of somebody's into the folder of a cluster.
    pub(in crate::proof) fn add(mut self, target: &str, name: &str, spec: &str) -> Self {
        let text = format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: {name} }}\nspec: {{ {spec} }}\n"
        );
        self.files.insert(format!("{target}/{name}.yaml"), text);
        self
    }

    /// Takes another snapshot than the one that was rendered from.
    pub(in crate::proof) fn later(mut self, cluster: &str, nodes: &str) -> Self {
        let name: ClusterName = cluster.parse().unwrap();
        let file = self.snapshots.get_mut(&name).unwrap();
        file.snapshot = snapshot(&name, nodes);
        self
    }

    /// Shows what every cluster's Kilo makes of it.
    pub(in crate::proof) fn show<T>(&self, look: impl FnOnce(&Fabric, &[Mesh]) -> T) -> T {
        let mut read: BTreeMap<&str, Vec<File>> = BTreeMap::new();
        for (path, text) in &self.files {
            let (cluster, _) = path.split_once('/').unwrap();
            let file = File::read(&path.as_str().into(), &text.as_str().into());
            assert_eq!(file.content.others, [], "{text}");
            read.entry(cluster).or_default().push(file);
        }
        let entries = self.meshes.iter().flat_map(|it| &it.entries);
        let sites = entries.map(|entry| {
            let files = read.get(entry.name.as_str()).map_or(&[][..], Vec::as_slice);
            Site::new(entry, &self.snapshots[&entry.name].snapshot, files)
        });
        look(&Fabric::new(sites.collect()), &self.meshes)
    }

    /// Tells the way from one end to another, and back.
    fn trace(&self, from: &str, to: &str) -> String {
        self.trace_of(from, to, None)
    }

    fn trace_of(&self, from: &str, to: &str, class: Option<Class>) -> String {
        self.show(|fabric, _| traced(fabric, (from, to), class))
    }
}

fn traced(fabric: &Fabric, (from, to): (&str, &str), class: Option<Class>) -> String {
    let (from, to) = (
        fabric.end(from, class).unwrap(),
        fabric.end(to, class).unwrap(),
    );
    let trace = fabric.trace(from, to).unwrap();
    let mut text = String::new();
    let back = trace.back.as_ref().map(|(packet, way)| (packet, way));
    for (packet, way) in [(&trace.packet, &trace.there)].into_iter().chain(back) {
        writeln!(text, "{} -> {}", packet.source, packet.destination).unwrap();
        for step in &way.steps {
            let told = words::step(fabric, packet, step);
            writeln!(text, "  {}", told.message).unwrap();
            for premise in words::premises(fabric, packet, step) {
                writeln!(text, "    if {premise}").unwrap();
            }
        }
    }
    let told = words::verdict(fabric, &trace);
    writeln!(text, "{}: {}", trace.verdict(), told.message).unwrap();
    for label in &told.labels {
        let place = &label.place;
        writeln!(text, "  {}#{} {}", place.source, place.pointer, label.text).unwrap();
    }
    text
}

fn snapshot(cluster: &ClusterName, nodes: &str) -> Snapshot {
    let lines = nodes.lines().filter(|line| !line.trim().is_empty());
    let mut nodes: Vec<Node> = lines.map(node).collect();
    for (position, node) in nodes.iter_mut().enumerate() {
        node.position = position;
    }
    Snapshot::new(cluster.clone(), nodes).unwrap()
}

pub(in crate::proof) const EAST: &str = "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, \
                    serviceCIDR: 10.11.0.0/16, additionalCIDRs: [192.168.1.0/24]";

pub(in crate::proof) const WEST: &str =
    "podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.102.0.0/24, granularity: Location";

pub(in crate::proof) const EAST_NODES: &str = "
n1 pod=10.1.1.0/24 external=198.18.0.11 endpoint=198.18.0.11:51820 internal-ip=192.168.1.1/24 key=A wg=10.101.0.1/24 granularity=full
n2 pod=10.1.2.0/24 external=198.18.0.12 endpoint=198.18.0.12:51820 internal-ip=192.168.1.2/24 key=B wg=10.101.0.2/24 granularity=full
";

pub(in crate::proof) const WEST_NODES: &str = "
m1 pod=10.2.1.0/24 external=198.18.0.21 endpoint=198.18.0.21:51820 internal-ip=192.168.2.1/24 key=C wg=10.102.0.1/24 location=here granularity=location
m2 pod=10.2.2.0/24 internal-ip=192.168.2.2/24 endpoint=192.168.2.2:51820 key=JCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQ= location=here granularity=location
";

/// `east`, in which every node has its own tunnels, and `west`, whose `m1` has those of `m2`.
pub(in crate::proof) fn lab() -> Lab {
    Lab::of(&[("east", EAST, EAST_NODES), ("west", WEST, WEST_NODES)])
}

pub(in crate::proof) const WEST_OF_EAST: &str = "west/m--east.yaml";
pub(in crate::proof) const EAST_OF_WEST: &str = "east/m--west.yaml";

#[test]
fn a_pod_gets_to_a_pod_through_the_leaders() {
    insta::assert_snapshot!(lab().trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.2.2 from that key: it is in 10.2.2.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 passes it on to west/m2, which delivers it to the pod 10.2.2.2
    delivered: delivered, there and back
    ");
}

#[test]
fn a_node_gets_to_a_node_where_its_address_is_declared() {
    let trace = lab().trace_of("east/n2", "west/m1", Some(Class::Node));
    insta::assert_snapshot!(trace, @"
    192.168.1.2 -> 192.168.2.1
    no-route: no Peer of east takes 192.168.2.1: the Peer m--west--m1 of west/m1 does not have it
      east/m--west.yaml#/spec/allowedIPs does not have it
    ");
    let trace = lab().trace("west/m2", "192.168.1.2");
    insta::assert_snapshot!(trace, @"
    10.2.2.2 -> 192.168.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 192.168.1.2 by 192.168.1.2/32 to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820
      east/n2 takes 10.2.2.2 from that key: it is in 10.2.2.0/24
      east/n2 delivers it to 192.168.1.2
    192.168.1.2 -> 10.2.2.2
      east/n2 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 192.168.1.2 from that key: it is in 192.168.1.2/32
      west/m1 passes it on to west/m2, which delivers it to the pod 10.2.2.2
    delivered: delivered, there and back
    ");
}

#[test]
fn a_service_is_behind_its_anchor() {
    insta::assert_snapshot!(lab().trace("west/m1", "10.11.0.10"), @"
    10.2.1.2 -> 10.11.0.10
      west/m1 routes 10.11.0.10 by 10.11.0.0/16 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 puts a backend in the place of the service 10.11.0.10
        if east/n1 is the only way in to the services of its cluster, and its proxy must masquerade callers from outside, or answers of backends on other nodes do not come back through it
    10.11.0.10 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.11.0.10 from that key: it is in 10.11.0.0/16
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
}

#[test]
fn a_network_is_behind_its_anchor() {
    insta::assert_snapshot!(lab().trace("west/m1", "192.168.1.77"), @"
    10.2.1.2 -> 192.168.1.77
      west/m1 routes 192.168.1.77 by 192.168.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 sends it on to 192.168.1.77, out of its cluster
        if east/n1 must have a route to 192.168.1.77, which no file tells
    192.168.1.77 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 192.168.1.77 from that key: it is in 192.168.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
}

#[test]
fn nothing_takes_it() {
    let cut = lab().edit(WEST_OF_EAST, "  - \"10.1.1.0/24\"\n", "");
    insta::assert_snapshot!(cut.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    no-route: no Peer of west takes 10.1.1.2: the Peer m--east--n1 of east/n1 does not have it
      west/m--east.yaml#/spec/allowedIPs does not have it
    ");
    let mut none = lab();
    none.files.remove(WEST_OF_EAST);
    insta::assert_snapshot!(none.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    no-route: west has no Peers at all
    ");
}

#[test]
fn the_cluster_has_the_address_itself() {
    let twin = WEST_NODES.replace("10.2.1.0/24", "10.1.1.0/24");
    let twin = lab().later("west", &twin);
    insta::assert_snapshot!(twin.trace("west/m1", "east/10.1.1.2"), @"
    10.1.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
    source-rejected: east/n1 drops it: the Peer m--west--m1 of west/m1 does not have the source 10.1.1.2
      east/m--west.yaml#/spec/allowedIPs does not have it
    ");
    insta::assert_snapshot!(twin.trace("west/m2", "east/10.1.1.2"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.2.2 from that key: it is in 10.2.2.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 passes it on to west/m2, which delivers it to the pod 10.2.2.2
    delivered: delivered, there and back
    ");
}

#[test]
fn what_a_mate_has_is_not_sent_to_another_cluster() {
    let narrow = WEST_NODES.replace("10.2.2.0/24", "10.1.1.0/25");
    let narrow = lab().later("west", &narrow);
    insta::assert_snapshot!(narrow.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
    local-shadow: west/m1 has 10.1.1.2 beside itself, in 10.1.1.0/25, and sends it nowhere
      mesh.yaml#/spec/clusters/1 has the address itself
    ");
    let same = WEST_NODES.replace("10.2.2.0/24", "10.1.1.0/24");
    let same = lab().later("west", &same);
    insta::assert_snapshot!(same.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: 10.1.1.0/24 on west/m1 has one of the location that west/m1 leads and the Peer m--east--n1: it depends on what was applied last
      west/m--east.yaml#/spec/allowedIPs/0 claims it
    ");
    let wide = WEST_NODES.replace("10.2.2.0/24", "10.1.0.0/16");
    let wide = lab().later("west", &wide);
    insta::assert_snapshot!(wide.trace("west/m1", "east/10.1.1.2"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
}

#[test]
fn services_of_its_own_are_not_sent_to_another_cluster() {
    let west = WEST.replace("granularity", "serviceCIDR: 10.11.0.0/16, granularity");
    let east = EAST.replace("serviceCIDR: 10.11.0.0/16, ", "");
    let mut other = Lab::of(&[("west", &west, WEST_NODES), ("east", &east, EAST_NODES)]);
    let mut twin = lab();
    twin.meshes[0].entries[1] = other.meshes[0].entries.remove(0);
    insta::assert_snapshot!(twin.trace("west/m1", "east/10.11.0.10"), @"
    10.2.1.2 -> 10.11.0.10
    local-shadow: 10.11.0.10 is among the services of west itself, and does not leave west/m1
      mesh.yaml#/spec/clusters/0/serviceCIDR has the address itself
    ");
}

#[test]
fn an_address_of_the_node_itself_is_never_routed() {
    let twin = WEST_NODES.replace("192.168.2.1/24", "192.168.1.1/24");
    let twin = lab().later("west", &twin);
    insta::assert_snapshot!(twin.trace("west/m1", "east/192.168.1.1"), @"
    10.2.1.2 -> 192.168.1.1
    local-shadow: west/m1 has 192.168.1.1 beside itself, in 192.168.1.1/32, and sends it nowhere
      mesh.yaml#/spec/clusters/1 has the address itself
    ");
}

#[test]
fn somebody_else_takes_it() {
    let stolen = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"10.1.1.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    stolen-by: west/m1 sends 10.1.1.2 by 10.1.1.0/25 to the Peer m--east--n2, the key of east/n2, and not to east/n1
      west/m--east.yaml#/spec/allowedIPs/1 takes it
    ");
}

#[test]
fn nobody_has_the_key() {
    let rekeyed = EAST_NODES.replace("key=A", "key=RUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUVFRUU=");
    insta::assert_snapshot!(lab().later("east", &rekeyed).trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    unknown-key: west/m1 sends 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, whose key no node has
      west/m--east.yaml#/spec/publicKey nobody's key
    ");
}

#[test]
fn the_other_side_does_not_know_the_sender() {
    let mut one_sided = lab();
    one_sided.files.remove(EAST_OF_WEST);
    insta::assert_snapshot!(one_sided.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    not-accepted: east/n1 does not know west/m1: no Peer of east has its key
    ");
}

#[test]
fn the_key_is_of_one_who_does_not_lead() {
    let nodes = WEST_NODES.replace("wg=10.102.0.1/24", "").replace(
        "endpoint=192.168.2.2:51820",
        "endpoint=198.18.0.22:51820 leader= wg=10.102.0.1/24",
    );
    insta::assert_snapshot!(lab().later("west", &nodes).trace("east/n1", "west/m2"), @"
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
    not-accepted: west/m1 does not listen: it does not lead its location; west/m2 is
    ");
}

#[test]
fn the_two_have_different_secrets() {
    let secret = format!("  presharedKey: {}\n  publicKey", crate::testing::key("B"));
    let secret = lab().edit(EAST_OF_WEST, "  publicKey", &secret);
    insta::assert_snapshot!(secret.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    not-accepted: east/n1 and west/m1 have different pre-shared keys for each other
      east/m--west.yaml#/spec/presharedKey not that of the other side
    ");
}

/// Takes the endpoint out of Peers.
fn without_endpoint(lab: Lab, path: &str, address: &str) -> Lab {
    let endpoint = format!("  endpoint:\n    dnsOrIP:\n      ip: \"{address}\"\n    port: 51820\n");
    lab.edit(path, &endpoint, "")
}

#[test]
fn nobody_can_dial_the_other() {
    let west = || without_endpoint(lab(), WEST_OF_EAST, "198.18.0.11");
    let mute = without_endpoint(west(), EAST_OF_WEST, "198.18.0.21");
    insta::assert_snapshot!(mute.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    no-initiator: neither of west/m1 and east/n1 can dial the other: the Peer m--east--n1 has no endpoint, and the Peer m--west--m1 has no endpoint
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
    let quiet = west().trace("west/m1", "east/n1");
    insta::assert_snapshot!(quiet, @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    no-initiator: west/m1 cannot dial east/n1 (the Peer m--east--n1 has no endpoint), which can, but sends nothing unasked: it has no annotation `kilo.squat.ai/persistent-keepalive`
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
    insta::assert_snapshot!(west().trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820
        if Kilo opens the tunnel anew with every pass, of which there are two a minute: one side is not found where its Peer says, and that Peer has no `persistentKeepalive`
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      through the tunnel that is open
        if Kilo opens the tunnel anew with every pass, of which there are two a minute: one side is not found where its Peer says, and that Peer has no `persistentKeepalive`
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 delivers it to the pod 10.1.1.2
    delivered: delivered, there and back
    ");
    let nodes = EAST_NODES.replace("key=A", "key=A persistent-keepalive=25");
    let loud = west().later("east", &nodes).trace("west/m1", "east/n1");
    insta::assert_snapshot!(loud, @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      east/n1 dials 198.18.0.21:51820
        if Kilo opens the tunnel anew with every pass, of which there are two a minute: one side is not found where its Peer says, and that Peer has no `persistentKeepalive`
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
        if Kilo opens the tunnel anew with every pass, of which there are two a minute: one side is not found where its Peer says, and that Peer has no `persistentKeepalive`
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
}

#[test]
fn an_endpoint_of_somebody_else_is_no_door() {
    let wrong = lab().edit(WEST_OF_EAST, "198.18.0.11", "198.18.0.12");
    insta::assert_snapshot!(wrong.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    no-initiator: west/m1 cannot dial east/n1 (198.18.0.12:51820 of the Peer m--east--n1 is not east/n1), which can, but sends nothing unasked: it has no annotation `kilo.squat.ai/persistent-keepalive`
      west/m--east.yaml#/spec/endpoint one side
      east/m--west.yaml#/spec/endpoint the other side
    ");
}

#[test]
fn what_is_not_known_is_assumed_and_told() {
    let balancer = lab().edit(WEST_OF_EAST, "ip: \"198.18.0.11\"", "ip: \"198.18.9.9\"");
    insta::assert_snapshot!(balancer.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.9.9:51820
        if 198.18.9.9 is no address of any node: it must be something in front of the other side, such as a load balancer or NAT
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
    let name = lab().edit(WEST_OF_EAST, "ip: \"198.18.0.11\"", "dns: wg.example.com");
    insta::assert_snapshot!(name.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials wg.example.com:51820
        if `wg.example.com` must resolve on every node of west: while it does not, Kilo does nothing there
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
}

#[test]
fn the_carrier_goes_into_the_tunnel_again() {
    let looped = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"198.18.0.11/32\"\n",
    );
    insta::assert_snapshot!(looped.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    loops: west/m1 would carry it to 198.18.0.11:51820, the endpoint of the Peer m--east--n1, which is in 198.18.0.11/32 of the Peer m--east--n2: into the tunnel again
      west/m--east.yaml#/spec/allowedIPs/1 holds the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}

#[test]
fn an_answer_to_a_caller_goes_into_the_tunnel_again() {
    let held = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"198.18.0.0/24\"\n",
    );
    let held = without_endpoint(held, WEST_OF_EAST, "198.18.0.11");
    let nodes = EAST_NODES.replace("key=A", "key=A persistent-keepalive=25");
    let loud = held.later("east", &nodes);
    insta::assert_snapshot!(loud.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    loops: west/m1 would answer east/n1 at 198.18.0.11:51820, since the Peer m--east--n1 does not tell where to find it, and that is in 198.18.0.0/24 of the Peer m--east--n2: into the tunnel again
      west/m--east.yaml#/spec/allowedIPs/1 holds the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
    insta::assert_snapshot!(loud.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
    loops: west/m1 would answer east/n1 at 198.18.0.11:51820, since the Peer m--east--n1 does not tell where to find it, and that is in 198.18.0.0/24 of the Peer m--east--n2: into the tunnel again
      west/m--east.yaml#/spec/allowedIPs/1 holds the endpoint
      west/m--east.yaml#/spec/endpoint the endpoint
    ");
}

#[test]
fn the_receiver_does_not_believe_the_source() {
    let narrow = lab().edit(EAST_OF_WEST, "  - \"10.2.2.0/24\"\n", "");
    insta::assert_snapshot!(narrow.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
    source-rejected: east/n1 drops it: the Peer m--west--m1 of west/m1 does not have the source 10.2.2.2
      east/m--west.yaml#/spec/allowedIPs does not have it
    ");
    let other = lab().add(
        "east",
        "thief",
        "allowedIPs: [10.2.2.0/25], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(other.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
    source-rejected: east/n1 drops it: there, the source 10.2.2.2 belongs by 10.2.2.0/25 to the Peer thief, and not to west/m1
      east/thief.yaml#/spec/allowedIPs/0 has the source
      east/m--west.yaml#/spec/allowedIPs the Peer of the sender
    ");
    // Without `additionalCIDRs`, nothing has the address of a node.
    let node = lab().trace_of("west/m1", "192.168.1.2", Some(Class::Node));
    insta::assert_snapshot!(node, @"
    192.168.2.1 -> 192.168.1.2
      west/m1 routes 192.168.1.2 by 192.168.1.2/32 to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820
    source-rejected: east/n2 drops it: the Peer m--west--m1 of west/m1 does not have the source 192.168.2.1
      east/m--west.yaml#/spec/allowedIPs does not have it
    ");
}

#[test]
fn one_range_is_that_of_a_node_and_of_a_peer() {
    let shared = lab().add(
        "east",
        "other",
        "allowedIPs: [10.1.2.0/24], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(shared.trace("west/m1", "east/n2"), @"
    10.2.1.2 -> 10.1.2.2
      west/m1 routes 10.1.2.2 by 10.1.2.0/24 to the Peer m--east--n2, the key of east/n2
      west/m1 dials 198.18.0.12:51820
      east/n2 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
    ambiguous: 10.1.2.0/24 on east/n2 has one of its own node east/n2 and the Peer other: it depends on what was applied last
      east/other.yaml#/spec/allowedIPs/0 claims it
    ");
}

#[test]
fn two_peers_of_one_key_are_one_or_the_other() {
    let twice = |path| {
        let key = if path == "west" { "A" } else { "C" };
        let spec = format!(
            "allowedIPs: [10.9.9.0/24], publicKey: {}",
            crate::testing::key(key)
        );
        lab().add(path, "again", &spec)
    };
    insta::assert_snapshot!(twice("west").trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: 10.1.1.0/24 on west/m1 has the Peer m--east--n1 or nobody: it depends on what was applied last
      west/m--east.yaml#/spec/allowedIPs/0 claims it
    ");
    insta::assert_snapshot!(twice("east").trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
    ambiguous: the Peers again and m--west--m1 of east have one key: the last that was applied is there, the others are not
      east/again.yaml# one of them
      east/m--west.yaml# one of them
    ");
}

#[test]
fn a_key_of_two_nodes_is_found_at_either() {
    let cloned = EAST_NODES.replace("key=B", "key=A");
    insta::assert_snapshot!(lab().later("east", &cloned).trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: west/m1 sends it to a key that east/n1 and east/n2 have: it gets to whoever called last
    ");
}

#[test]
fn a_route_that_is_refused_leaves_the_others_to_chance() {
    let bits = lab().edit(WEST_OF_EAST, "10.1.2.0/24", "10.1.2.1/24");
    insta::assert_snapshot!(bits.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    ambiguous: no kernel takes the route 10.1.2.1/24 of the Peer m--east--n2: Kilo's pass ends there, and which other routes west/m1 has by then is chance
      west/m--east.yaml#/spec/allowedIPs/0 no kernel takes it
    ");
    insta::assert_snapshot!(bits.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    10.2.1.2 -> 10.1.1.2
    return-fails: it arrives, but its answer does not (ambiguous): no kernel takes the route 10.1.2.1/24 of the Peer m--east--n2: Kilo's pass ends there, and which other routes west/m1 has by then is chance
      west/m--east.yaml#/spec/allowedIPs/0 no kernel takes it
    ");
}

#[test]
fn what_a_missing_route_would_spoil_is_chance_too() {
    let bits = || lab().edit(WEST_OF_EAST, "10.1.2.0/24", "10.1.2.1/24");
    insta::assert_snapshot!(bits().trace("east/n1", "west/m2"), @"
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
    ambiguous: no kernel takes the route 10.1.2.1/24 of the Peer m--east--n2: Kilo's pass ends there, and which other routes west/m1 has by then is chance
      west/m--east.yaml#/spec/allowedIPs/0 no kernel takes it
    ");
    let stolen = bits().edit(
        WEST_OF_EAST,
        "  - \"10.1.1.0/24\"\n",
        "  - \"10.1.1.0/24\"\n  - \"10.2.1.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      east/n1 dials 198.18.0.21:51820
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
    ambiguous: no kernel takes the route 10.1.2.1/24 of the Peer m--east--n2: Kilo's pass ends there, and which other routes west/m1 has by then is chance
      west/m--east.yaml#/spec/allowedIPs/0 no kernel takes it
    ");
    let looped = bits().edit(
        WEST_OF_EAST,
        "  - \"10.1.1.0/24\"\n",
        "  - \"10.1.1.0/24\"\n  - \"198.18.0.11/32\"\n",
    );
    insta::assert_snapshot!(looped.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
    ambiguous: no kernel takes the route 10.1.2.1/24 of the Peer m--east--n2: Kilo's pass ends there, and which other routes west/m1 has by then is chance
      west/m--east.yaml#/spec/allowedIPs/0 no kernel takes it
    ");
}

#[test]
fn a_node_that_kilo_does_not_count_has_no_tunnel() {
    let stale = EAST_NODES.replace("n1 ", "n1 stale ");
    let stale = lab().later("east", &stale);
    insta::assert_snapshot!(stale.trace("west/m1", "east/n1"), @"
    10.2.1.2 -> 10.1.1.2
    not-ready: Kilo does not count east/n1: its agent stopped checking in
    ");
    insta::assert_snapshot!(stale.trace("east/n1", "west/m1"), @"
    10.1.1.2 -> 10.2.1.2
    not-ready: Kilo does not count east/n1: its agent stopped checking in
    ");
}

#[test]
fn an_answer_may_not_get_back() {
    let stolen = lab().edit(
        WEST_OF_EAST,
        "  - \"10.1.2.0/24\"\n",
        "  - \"10.1.2.0/24\"\n  - \"10.2.2.0/25\"\n",
    );
    insta::assert_snapshot!(stolen.trace("west/m2", "east/n1"), @"
    10.2.2.2 -> 10.1.1.2
      west/m2 hands it to west/m1, the leader of its location
      west/m1 routes 10.1.1.2 by 10.1.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.2.2 from that key: it is in 10.2.2.0/24
      east/n1 delivers it to the pod 10.1.1.2
    10.1.1.2 -> 10.2.2.2
      east/n1 routes 10.2.2.2 by 10.2.2.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 10.1.1.2 from that key: it is in 10.1.1.0/24
    return-fails: it arrives, but its answer does not (stolen-by): west/m1 sends 10.2.2.2 by 10.2.2.0/25 to the Peer m--east--n2, the key of east/n2, and not to west/m2
      west/m--east.yaml#/spec/allowedIPs/1 takes it
    ");
}

#[test]
fn what_the_receiver_is_connected_to_is_not_sent_on() {
    let wide = lab().add(
        "east",
        "wide",
        "allowedIPs: [192.168.0.0/16], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(wide.trace("west/m1", "192.168.1.77"), @"
    10.2.1.2 -> 192.168.1.77
      west/m1 routes 192.168.1.77 by 192.168.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
      east/n1 sends it on to 192.168.1.77, out of its cluster
        if east/n1 must have a route to 192.168.1.77, which no file tells
    192.168.1.77 -> 10.2.1.2
      east/n1 routes 10.2.1.2 by 10.2.1.0/24 to the Peer m--west--m1, the key of west/m1
      through the tunnel that is open
      west/m1 takes 192.168.1.77 from that key: it is in 192.168.1.0/24
      west/m1 delivers it to the pod 10.2.1.2
    delivered: delivered, there and back
    ");
    let narrow = lab().add(
        "east",
        "narrow",
        "allowedIPs: [192.168.1.64/26], publicKey: SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk=",
    );
    insta::assert_snapshot!(narrow.trace("west/m1", "192.168.1.77"), @"
    10.2.1.2 -> 192.168.1.77
      west/m1 routes 192.168.1.77 by 192.168.1.0/24 to the Peer m--east--n1, the key of east/n1
      west/m1 dials 198.18.0.11:51820
      east/n1 takes 10.2.1.2 from that key: it is in 10.2.1.0/24
    stolen-by: east/n1 sends 192.168.1.77 by 192.168.1.64/26 to the Peer narrow, and not to east
      east/narrow.yaml#/spec/allowedIPs/0 takes it
    ");
}

#[test]
fn ends_without_a_way_are_none() {
    let lab = lab();
    let site = Site::new(
        &lab.meshes[0].entries[0],
        &lab.snapshots[&lab.meshes[0].entries[0].name].snapshot,
        &[],
    );
    let fabric = Fabric::new(vec![site]);
    let mut text = String::new();
    for (end, class) in [
        ("n1", None),
        ("west/n1", None),
        ("east/n9", None),
        ("east/n1", Some(Class::Service)),
        ("10.9.9.9", None),
        ("east/10.9.9.9", None),
    ] {
        writeln!(text, "{}", fabric.end(end, class).unwrap_err()).unwrap();
    }
    let node = fabric.end("east/n1", None).unwrap();
    let service = fabric.end("10.11.0.1", None).unwrap();
    writeln!(text, "{}", fabric.trace(service, node).unwrap_err()).unwrap();
    writeln!(text, "{}", fabric.trace(node, service).unwrap_err()).unwrap();
    insta::assert_snapshot!(text, @"
    `n1` is neither `CLUSTER/NODE` nor an address
    there is no cluster `west`
    east has no node `n9`
    `east/n1` has no address for traffic of the class `service`
    10.9.9.9 belongs to no node and to no range of any cluster
    10.9.9.9 belongs to no node and to no range of east
    nothing is sent from 10.11.0.1: it is no address of a pod or a node
    both ends are in east; what happens within a cluster is its own Kilo's affair
    ");
}
