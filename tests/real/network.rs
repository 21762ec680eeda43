//! The mesh as namespaces: an underlay that routes between the nodes' outer addresses, a switch for
//! each cluster's inner ones, and for each node a namespace with WireGuard and one for its pod.

use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use crate::device::Device;
use crate::external::Host;
use crate::kilo::Orders;
use crate::namespace::Namespace;
use crate::world::{Cluster, Node, World};

/// Where all nodes' packets go first.
pub(crate) const GATEWAY: &str = "169.254.1.1";

/// How long a node needs to open its tunnels; the next one waits, so that they do not miss each
/// other.
const CALL: Duration = Duration::from_millis(10);

/// Makes `wireguard-go` behave like the kernel's WireGuard: it answers through the interface from
/// which it was called, independent of routes, whereas the kernel looks up the route and refuses to
/// send through the device itself. Here an answer through `eth0` is refused if the route leads into
/// the device.
const NO_LOOPS: &str = "ip route flush table 51 2>/dev/null || true
ip route show table main dev kilo0 | while read range rest; do
    ip route add blackhole $range table 51
done
ip rule show | grep -q 'lookup 51' ||
    ip rule add pref 51 oif eth0 ipproto udp sport 51820 lookup 51";

/// A mesh that packets can be sent through.
pub(crate) struct Network {
    /// What carries it; only held.
    _underlay: Namespace,
    /// By cluster and node.
    nodes: Vec<Vec<Place>>,
    /// The hosts of external peers.
    pub(crate) hosts: Vec<Host>,
}

/// A node and its pod.
struct Place {
    node: Namespace,
    pod: Namespace,
    /// Brings back what the kernel itself routes, which Kilo's routes may have taken the place of.
    connections: String,
    device: Option<Device>,
}

/// The configuration of every namespace of a router.
///
/// A kernel that checks return paths by itself would hide what WireGuard lets through.
pub(crate) const ROUTER: &str = "cd /proc/sys/net/ipv4; echo 1 > ip_forward
for scope in all default; do
    echo 0 > conf/$scope/rp_filter
    echo 0 > conf/$scope/send_redirects
done";

impl Network {
    /// Lays all cables, and gives every node its addresses.
    pub(crate) fn new(world: &World) -> io::Result<Self> {
        let mut underlay = Namespace::new("underlay")?;
        underlay.run(&format!("{ROUTER}\nip address add {GATEWAY}/32 dev lo"))?;
        let mut nodes = Vec::new();
        for (number, cluster) in world.clusters.iter().enumerate() {
            let switch = format!("lan{number}");
            underlay.run(&format!("ip link add {switch} type bridge\nip link set {switch} up"))?;
            let mut places = Vec::new();
            for (position, node) in cluster.nodes.iter().enumerate() {
                let cables = Cables {
                    switch: &switch,
                    outer: &format!("o{number}-{position}"),
                    inner: &format!("i{number}-{position}"),
                };
                places.push(Place::new(&mut underlay, cluster, node, &cables)?);
            }
            nodes.push(places);
        }
        let hosts = world.externals.iter();
        let hosts = hosts.map(|it| Host::new(&mut underlay, it, world));
        Ok(Self { hosts: hosts.collect::<io::Result<_>>()?, _underlay: underlay, nodes })
    }

    /// Returns a node, by the numbers of its cluster and its own.
    pub(crate) fn node(&self, (cluster, node): (usize, usize)) -> &Namespace {
        &self.nodes[cluster][node].node
    }

    /// Returns a node, to configure it.
    pub(crate) fn node_mut(&mut self, (cluster, node): (usize, usize)) -> &mut Namespace {
        &mut self.nodes[cluster][node].node
    }

    /// Returns the pod of a node.
    pub(crate) fn pod(&self, (cluster, node): (usize, usize)) -> &Namespace {
        &self.nodes[cluster][node].pod
    }

    /// Gives an address to a node, as the one that answers for its cluster's services.
    ///
    /// In a cluster, the proxy answers: on this node, it replaces the service's address with that
    /// of a pod before the packet is routed, and reverses this for the answer. For this test, an
    /// address of the node itself is sufficient.
    pub(crate) fn serve(
        &mut self,
        (cluster, node): (usize, usize),
        address: Ipv4Addr,
    ) -> io::Result<()> {
        let node = &mut self.nodes[cluster][node].node;
        node.run(&format!("ip address add {address}/32 dev lo"))?;
        Ok(())
    }

    /// Configures the addresses and routes of every node of every cluster.
    pub(crate) fn apply(&mut self, orders: &[Vec<Orders>]) -> io::Result<()> {
        self.each(orders, |place, orders| {
            // What an earlier order left must not help this one.
            let connections = &place.connections;
            let mut script = format!("ip route flush proto static\n{connections}\n");
            if let Some(tunnels) = &orders.tunnels {
                if place.device.is_none() {
                    place.device = Some(Device::start(&mut place.node)?);
                }
                let address = &tunnels.address;
                let _ = writeln!(script, "ip address replace {address} dev kilo0");
            }
            let routes = &orders.routes;
            let _ = writeln!(
                script,
                "ip -batch - <<'END' || echo a route is refused\n{routes}END\n{NO_LOOPS}"
            );
            Ok(Some(script))
        })
    }

    /// Configures WireGuard again: all sessions end, and all learned endpoints are forgotten. No
    /// device sends packets before all are configured.
    pub(crate) fn reset(&mut self, orders: &[Vec<Orders>]) -> io::Result<()> {
        let devices = self.nodes.iter().flatten().map(|it| it.device.as_ref());
        for device in devices.flatten() {
            device.clear()?;
        }
        self.hosts.iter_mut().try_for_each(Host::clear)?;
        self.each(orders, |_, orders| Ok(orders.tunnels.as_ref().map(Device::configuration)))?;
        self.hosts.iter_mut().try_for_each(Host::reset)?;
        thread::sleep(CALL);
        let places = self.nodes.iter().flatten();
        for (place, orders) in places.zip(orders.iter().flatten()) {
            if let (Some(device), Some(tunnels)) = (&place.device, &orders.tunnels)
                && tunnels.keepalive != 0
            {
                device.keep_alive(tunnels)?;
                thread::sleep(CALL);
            }
        }
        Ok(())
    }

    /// Returns the state of WireGuard and the kernel of every node, for people.
    pub(crate) fn state(&mut self) -> String {
        let mut state = String::new();
        for place in self.nodes.iter_mut().flatten() {
            let said =
                place.node.run("wg show; ip route; true").unwrap_or_else(|it| it.to_string());
            let _ = writeln!(state, "== {}\n{said}", place.node.name());
        }
        for host in &mut self.hosts {
            let said = host.namespace.run("wg show; ip route; true");
            let said = said.unwrap_or_else(|it| it.to_string());
            let _ = writeln!(state, "== {}\n{said}", host.namespace.name());
        }
        state
    }

    /// Runs a script on all nodes in parallel.
    fn each(
        &mut self,
        orders: &[Vec<Orders>],
        script: impl Fn(&mut Place, &Orders) -> io::Result<Option<String>>,
    ) -> io::Result<()> {
        let places = self.nodes.iter_mut().flatten();
        let mut busy = Vec::new();
        for (place, orders) in places.zip(orders.iter().flatten()) {
            if let Some(script) = script(place, orders)? {
                place.node.send(&script)?;
                busy.push(place);
            }
        }
        // Every answer must be received, or the next script gets it.
        let said: Vec<io::Result<String>> = busy.into_iter().map(|it| it.node.receive()).collect();
        said.into_iter().try_for_each(|it| it.map(drop))
    }
}

/// The ends of a node's cables in the underlay.
struct Cables<'a> {
    /// What joins its cluster's nodes.
    switch: &'a str,
    outer: &'a str,
    inner: &'a str,
}

impl Place {
    fn new(
        underlay: &mut Namespace,
        cluster: &Cluster,
        node: &Node,
        cables: &Cables,
    ) -> io::Result<Self> {
        let name = format!("{}/{}", cluster.name, node.name);
        let mut place = Self {
            node: Namespace::new(&name)?,
            pod: Namespace::new(&format!("{name}/pod"))?,
            connections: format!(
                "ip route replace {} dev pods0 proto kernel scope link src {}\n\
                 ip route replace {} dev lan0 proto kernel scope link src {}",
                node.pods(),
                node.bridge(),
                cluster.hosts(),
                node.internal()
            ),
            device: None,
        };
        let Cables { switch, outer, inner } = cables;
        let (here, pod) = (place.node.network(), place.pod.network());
        let endpoint = node.endpoint();
        underlay.run(&format!(
            "ip link add {outer} type veth peer name eth0 netns {here}\n\
             ip link add {inner} type veth peer name lan0 netns {here}\n\
             ip link set {inner} master {switch} up\nip link set {outer} up\n\
             ip route add {endpoint}/32 dev {outer}"
        ))?;
        let (internal, bridge) = (node.internal(), node.bridge());
        place.node.run(&format!(
            "{ROUTER}\nip link add pods0 type veth peer name eth0 netns {pod}\n\
             ip address add {endpoint}/32 dev eth0\nip address add {internal}/24 dev lan0\n\
             ip address add {bridge}/24 dev pods0\n\
             ip link set eth0 up\nip link set lan0 up\nip link set pods0 up\n\
             ip route add default via {GATEWAY} dev eth0 onlink src {endpoint}"
        ))?;
        let address = node.pod();
        place.pod.run(&format!(
            "ip address add {address}/24 dev eth0\nip link set eth0 up\n\
             ip route add default via {bridge}"
        ))?;
        Ok(place)
    }
}
