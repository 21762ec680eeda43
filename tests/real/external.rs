//! External peers: a laptop behind NAT, and a router with two networks. Their hosts are configured by `wg-quick` from
//! what `clustermesh wireguard` prints, and by nothing else.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::namespace::Namespace;
use crate::network::{GATEWAY, ROUTER};
use crate::probe::Stations;
use crate::random::Random;
use crate::world::{World, public_key};

/// An external peer.
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub(crate) name: &'static str,
    ranges: &'static [&'static str],
    /// What it sends from: its own address, or that of a host behind it.
    pub(crate) address: Ipv4Addr,
    /// A host in its second network.
    pub(crate) other: Option<Ipv4Addr>,
    /// Its address in the underlay.
    outer: Ipv4Addr,
    /// The port at which clusters dial it, if they do.
    port: Option<u16>,
    /// The names of the clusters that it reaches.
    pub(crate) clusters: Vec<String>,
    private_key: String,
    pub(crate) public_key: String,
}

impl External {
    /// Makes up a laptop, which reaches some clusters, and a router, which reaches others.
    pub(crate) fn both(
        random: &mut Random,
        [laptop, router]: [Vec<String>; 2],
    ) -> io::Result<Vec<Self>> {
        let mut external = |name, clusters| {
            let private_key = STANDARD.encode(random.bytes());
            Ok::<_, io::Error>(Self {
                name,
                ranges: &["10.250.0.5/32"],
                address: Ipv4Addr::new(10, 250, 0, 5),
                other: None,
                outer: Ipv4Addr::new(198, 19, 200, 5),
                port: None,
                clusters,
                public_key: public_key(&private_key)?,
                private_key,
            })
        };
        let router = Self {
            ranges: &["192.168.77.0/24", "192.168.78.0/24"],
            address: Ipv4Addr::new(192, 168, 77, 7),
            other: Some(Ipv4Addr::new(192, 168, 78, 7)),
            outer: Ipv4Addr::new(198, 18, 200, 9),
            port: Some(51999),
            ..external("router", router)?
        };
        Ok(vec![external("laptop", laptop)?, router])
    }

    /// Returns whether no cluster can dial it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.port.is_none()
    }

    /// Returns its name among clusters.
    pub(crate) fn member(&self) -> String {
        format!("external.{}", self.name)
    }

    /// Returns it as an item of `externalPeers`.
    pub(crate) fn written(&self) -> String {
        let Self { name, ranges, .. } = self;
        let endpoint = self.port.map(|it| format!(", endpoint: {}:{it}", self.outer));
        format!(
            "  - {{ name: {name}, publicKey: {}, ranges: {ranges:?}, clusters: {:?}{} }}\n",
            self.public_key,
            self.clusters,
            endpoint.unwrap_or_default()
        )
    }

    /// Returns what `clustermesh wireguard` prints for it, with its private key.
    fn printed(&self, world: &World) -> io::Result<String> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("snapshots"))?;
        fs::write(folder.path().join("mesh.yaml"), world.mesh())?;
        for (cluster, file) in world.snapshots() {
            if !cluster.is_external() {
                let text = file.snapshot.to_json()?;
                fs::write(folder.path().join(format!("snapshots/{cluster}.json")), text)?;
            }
        }
        let output = Command::new(env!("CARGO_BIN_EXE_clustermesh"))
            .args(["wireguard", self.name])
            .current_dir(folder.path())
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(errors));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.replace("REPLACE-WITH-THE-PRIVATE-KEY", &self.private_key))
    }
}

/// The host of an external peer.
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    /// A host in its networks.
    behind: Option<Namespace>,
    external: External,
}

impl Host {
    /// Lays its cables, and starts its WireGuard.
    pub(crate) fn new(
        underlay: &mut Namespace,
        external: &External,
        world: &World,
    ) -> io::Result<Self> {
        let External { name, outer, .. } = external;
        let mut namespace = Namespace::new(name)?;
        underlay.run(&format!(
            "ip link add {name} type veth peer name eth0 netns {}\nip link set {name} up\n\
             ip route add {outer}/32 dev {name}",
            namespace.network()
        ))?;
        namespace.run(&format!(
            "{ROUTER}\nip address add {outer}/32 dev eth0\nip link set eth0 up\n\
             ip route add default via {GATEWAY} dev eth0 onlink src {outer}"
        ))?;
        let behind = match external.other {
            Some(other) => Some(networks(&mut namespace, [external.address, other])?),
            None => None,
        };
        let printed = external.printed(world)?;
        namespace.run(&format!(
            "umask 077\ncat >/run/wg0.conf <<'END'\n{printed}END\n\
             wg-quick strip /run/wg0.conf >/run/all.conf\n\
             sed '/^$/,$d' /run/all.conf | sed '/^\\[Peer\\]/,$d' >/run/none.conf"
        ))?;
        let mut host = Self { namespace, behind, external: external.clone() };
        host.start()?;
        Ok(host)
    }

    /// Adds the stations of it and of the host behind it.
    pub(crate) fn add_to(&self, stations: &mut Stations) -> io::Result<()> {
        let place = self.behind.as_ref().unwrap_or(&self.namespace);
        let addresses = [Some(self.external.address), self.external.other];
        let mut addresses = addresses.into_iter().flatten();
        addresses.try_for_each(|it| stations.add(place, it))
    }

    /// Starts WireGuard as its owner does.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        self.namespace.run("wg-quick up /run/wg0.conf").map(drop)
    }

    /// Stops WireGuard.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.namespace.run("wg-quick down /run/wg0.conf").map(drop)
    }

    /// Forgets all peers with their sessions, if it runs.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.configure("none")
    }

    /// Gives the peers to it again.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        self.configure("all")
    }

    fn configure(&mut self, file: &str) -> io::Result<()> {
        let script =
            format!("ip link show wg0 >/dev/null 2>&1 || exit 0\nwg setconf wg0 /run/{file}.conf");
        self.namespace.run(&script).map(drop)
    }
}

/// Makes a host with an address in each of two networks of a router.
fn networks(router: &mut Namespace, addresses: [Ipv4Addr; 2]) -> io::Result<Namespace> {
    let mut behind = Namespace::new("behind the router")?;
    router.run(&format!(
        "ip link add net0 type veth peer name eth0 netns {}\nip link set net0 up",
        behind.network()
    ))?;
    let mut gateway = None;
    for address in addresses {
        let [a, b, c, _] = address.octets();
        let own = Ipv4Addr::new(a, b, c, 1);
        gateway.get_or_insert(own);
        router.run(&format!("ip address add {own}/24 dev net0"))?;
        behind.run(&format!("ip address add {address}/24 dev eth0"))?;
    }
    let gateway = gateway.ok_or(io::ErrorKind::NotFound)?;
    behind.run(&format!("{ROUTER}\nip link set eth0 up\nip route add default via {gateway}"))?;
    Ok(behind)
}
