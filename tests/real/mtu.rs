//! MTUs: whether the largest packet of a pod arrives, and whether `validate` reports it.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::snapshot::Snapshot;

use crate::namespace::Namespace;
use crate::network::ROUTER;
use crate::node::node;
use crate::socket::{self, PORT};
use crate::world::public_key;

/// The headers of IPv4 and UDP, in bytes.
const HEADERS: usize = 28;

/// The smallest difference between an underlay and its tunnels with Kilo's `--mtu=auto`.
const WIREGUARD: usize = 80;

/// The MTUs of the underlays of both clusters, and that of all pods.
const CASES: [([usize; 2], usize); 5] = [
    ([1500, 1500], 1420),
    ([1500, 1500], 1421),
    ([1500, 1460], 1380),
    ([1500, 1460], 1420),
    ([9001, 1500], 1500),
];

/// A cluster with one node and one pod.
struct Side {
    name: &'static str,
    number: u8,
    node: Namespace,
    pod: Namespace,
    private_key: String,
    public_key: String,
}

impl Side {
    fn new(name: &'static str, number: u8, pods: usize) -> io::Result<Self> {
        let private_key = STANDARD.encode([number; 32]);
        let mut side = Self {
            name,
            number,
            node: Namespace::new(name)?,
            pod: Namespace::new("pod")?,
            public_key: public_key(&private_key)?,
            private_key,
        };
        let network = side.pod.network();
        side.node.run(&format!(
            "{ROUTER}\nip link add pod0 mtu {pods} type veth peer name eth0 mtu {pods} netns {network}\n\
             ip link set pod0 up\nip address add 10.{number}.0.1/24 dev pod0"
        ))?;
        side.pod.run(&format!(
            "ip address add 10.{number}.0.2/24 dev eth0\nip link set eth0 up\n\
             ip route add default via 10.{number}.0.1"
        ))?;
        Ok(side)
    }

    fn pod_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.number, 0, 2)
    }

    /// Starts WireGuard with the other cluster as its only peer.
    fn start(&mut self, other: (u8, &str), underlay: usize) -> io::Result<()> {
        let (number, key) = other;
        let (own, private) = (self.number, &self.private_key);
        self.node.run(&format!(
            "ip address add 198.18.0.{own}/24 dev eth0\nip link set eth0 mtu {underlay} up\n\
             wireguard-go -f kilo0 >/dev/null 2>&1 &\n\
             timeout 30 sh -c 'until [ -S /run/wireguard/kilo0.sock ]; do sleep 0.01; done'\n\
             wg setconf kilo0 /dev/stdin <<'END'\n[Interface]\nPrivateKey = {private}\nListenPort = 51820\n\
             [Peer]\nPublicKey = {key}\nEndpoint = 198.18.0.{number}:51820\nAllowedIPs = 10.{number}.0.0/24\nEND\n\
             ip link set kilo0 mtu {} up\nip route add 10.{number}.0.0/24 dev kilo0",
            underlay - WIREGUARD
        ))?;
        Ok(())
    }

    /// Returns the snapshot of its node.
    fn snapshot(&self) -> String {
        let (name, number) = (self.name, self.number);
        let annotations = [
            ("key", self.public_key.clone()),
            ("endpoint", format!("198.18.0.{number}:51820")),
            ("force-endpoint", format!("198.18.0.{number}:51820")),
            ("wireguard-ip", format!("100.64.{number}.1/24")),
            ("granularity", "full".to_owned()),
            ("persistent-keepalive", "25".to_owned()),
        ];
        let node = node(name, vec![format!("10.{number}.0.0/24")], None, annotations);
        let snapshot = Snapshot::new(name.parse().unwrap(), vec![node]).unwrap();
        snapshot.to_json().unwrap()
    }
}

/// Compares all cases, and describes them.
pub(crate) fn compare() -> io::Result<String> {
    let mut lines = vec!["MTUs:".to_owned()];
    for (underlays, pods) in CASES {
        let (arrives, reported) = case(underlays, pods)?;
        if arrives == reported {
            let message = format!(
                "{underlays:?} with pods of {pods}: arrives {arrives}, reported {reported}"
            );
            return Err(io::Error::other(message));
        }
        let verdict = if arrives { "arrives" } else { "is lost, as reported" };
        lines.push(format!("  {underlays:?}: a packet of {pods} {verdict}"));
    }
    Ok(lines.join("\n"))
}

/// Returns whether the first large packet arrives, and whether `validate` has a finding.
fn case(underlays: [usize; 2], pods: usize) -> io::Result<(bool, bool)> {
    let (mut east, mut west) = (Side::new("east", 1, pods)?, Side::new("west", 2, pods)?);
    let network = west.node.network();
    east.node.run(&format!("ip link add eth0 type veth peer name eth0 netns {network}"))?;
    east.start((2, &west.public_key), underlays[0])?;
    west.start((1, &east.public_key), underlays[1])?;
    let reported = is_reported([&east, &west], underlays, pods)?;
    Ok((arrives(&east, &west, pods)?, reported))
}

fn arrives(from: &Side, to: &Side, pods: usize) -> io::Result<bool> {
    let sender = socket::open(&from.pod, from.pod_address())?;
    let receiver = socket::open(&to.pod, to.pod_address())?;
    receiver.set_read_timeout(Some(Duration::from_millis(500)))?;
    let target = (to.pod_address(), PORT);
    let mut buffer = vec![0; 2 * pods];
    // The handshake takes the first small packets.
    let is_open = (0..40).any(|_| {
        let _ = sender.send_to(b"small", target);
        receiver.recv(&mut buffer).is_ok()
    });
    if !is_open {
        return Err(io::Error::other("the tunnel does not open"));
    }
    while receiver.recv(&mut buffer).is_ok() {}
    sender.send_to(&vec![7; pods - HEADERS], target)?;
    Ok(receiver.recv(&mut buffer).is_ok_and(|it| it == pods - HEADERS))
}

fn is_reported(sides: [&Side; 2], underlays: [usize; 2], pods: usize) -> io::Result<bool> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("snapshots"))?;
    let entries = sides.iter().zip(underlays).map(|(side, underlay)| {
        let (name, number) = (side.name, side.number);
        format!(
            "  - {{ name: {name}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 100.64.{number}.0/24, \
             mtu: {{ underlay: {underlay}, pods: {pods} }} }}\n"
        )
    });
    let entries: String = entries.collect();
    let mesh = format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec:\n  clusters:\n{entries}"
    );
    fs::write(folder.path().join("mesh.yaml"), mesh)?;
    for side in sides {
        let path = format!("snapshots/{}.json", side.name);
        fs::write(folder.path().join(path), side.snapshot())?;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
        .args(["validate", "--output", "concise"])
        .current_dir(folder.path())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(text.contains("exceeded-mtu"));
    }
    Err(io::Error::other(text.into_owned()))
}
