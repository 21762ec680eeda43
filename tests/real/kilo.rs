//! How the Kilo of a cluster configures the kernel and WireGuard of each of its nodes. Written only
//! from `kilo.md` §§2 to 4, so that mistakes of the model are found.
//!
//! Its NAT rules are left out: they change what is sent to ranges of no Peer and no segment, and
//! that is routed into no tunnel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::Value;

use crate::segment::{Segment, segments};
use crate::world::{Cluster, Node, PORT};

/// The order in which what has none comes: events of Peers, the peers and the routes that are
/// written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// That of the manifests, and of Kilo's lists.
    Forward,
    /// The other way round, and of the routes first those that no kernel takes: Kilo's order of them
    /// is another one with every pass.
    Backward,
}

/// The configuration of a node.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    /// None for a node that does not lead its segment: its WireGuard is down.
    pub(crate) tunnels: Option<Tunnels>,
    /// Lines for `ip -batch`, which like Kilo ends with the first that fails.
    pub(crate) routes: String,
}

/// A configuration of WireGuard.
#[derive(Clone, Debug)]
pub(crate) struct Tunnels {
    /// The node's address in the Kilo subnet, with the length of that.
    pub(crate) address: String,
    /// As `wg setconf` reads it, without keepalives.
    pub(crate) configuration: String,
    /// The keys of all peers.
    pub(crate) keys: Vec<[u8; 32]>,
    /// Seconds between keepalive packets to all of them, which is the node's own affair
    /// (`kilo.md` §2.9); zero for none.
    pub(crate) keepalive: u16,
}

/// A range as the agent holds it: not masked.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Allowed {
    address: Ipv4Addr,
    length: u8,
}

/// A Peer that an agent accepts.
#[derive(Clone, Debug)]
struct Peer {
    name: String,
    key: [u8; 32],
    allowed: Vec<Allowed>,
    endpoint: Option<(Ipv4Addr, u16)>,
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Allowed {
    fn has_host_bits(self) -> bool {
        let behind = u32::from(self.address).checked_shl(self.length.into());
        behind.is_some_and(|bits| bits != 0)
    }
}

impl Order {
    fn apply<T>(self, mut items: Vec<T>) -> Vec<T> {
        if self == Self::Backward {
            items.reverse();
        }
        items
    }
}

/// Returns the configuration of each node of a cluster, given the texts of its manifests.
pub(crate) fn orders(cluster: &Cluster, files: &[&str], order: Order) -> Vec<Orders> {
    let peers = peers(files, order);
    let segments = segments(cluster);
    let nodes = 0..cluster.nodes.len();
    let orders = nodes.map(|node| {
        let view = View {
            cluster,
            segments: &segments,
            peers: &peers,
            node,
            own: segments.iter().position(|it| it.members.contains(&node)).unwrap(),
        };
        Orders { tunnels: view.leads().then(|| view.tunnels(order)), routes: view.routes(order) }
    });
    orders.collect()
}

/// Reads manifests as the API server and the agents do: of one name the last object, of those that
/// `Validate` lets through and of one key the last event, of those the ready ones, by name, each
/// range with the first that has it.
fn peers(files: &[&str], order: Order) -> Vec<Peer> {
    let documents = files.iter().flat_map(|text| serde_yaml::Deserializer::from_str(text));
    let objects: Vec<Value> = documents
        .map(|it| Value::deserialize(it).unwrap())
        .filter(|it| it["kind"] == "Peer")
        .collect();
    let mut stored: BTreeMap<String, Value> = BTreeMap::new();
    for object in order.apply(objects) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        stored.insert(name, object);
    }
    let mut known: BTreeMap<[u8; 32], Peer> = BTreeMap::new();
    for (name, object) in order.apply(Vec::from_iter(stored)) {
        if let Some(peer) = peer(name, &object["spec"]) {
            known.insert(peer.key, peer);
        }
    }
    let ready = |it: &Peer| !it.allowed.is_empty() && it.key != [0; 32];
    let mut peers: Vec<Peer> = known.into_values().filter(ready).collect();
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    let mut given = BTreeSet::new();
    for peer in &mut peers {
        peer.allowed.retain(|it| given.insert(*it));
    }
    peers
}

/// Reads a Peer; none if `Validate` refuses it.
fn peer(name: String, spec: &Value) -> Option<Peer> {
    let ranges = spec["allowedIPs"].as_array()?.iter();
    let allowed: Option<Vec<Allowed>> = ranges.map(|it| allowed(it.as_str()?)).collect();
    let key = STANDARD.decode(spec["publicKey"].as_str()?).ok()?;
    Some(Peer {
        name,
        key: key.try_into().ok()?,
        allowed: allowed?,
        endpoint: match &spec["endpoint"] {
            Value::Null => None,
            endpoint => Some(self::endpoint(endpoint)?),
        },
    })
}

fn allowed(text: &str) -> Option<Allowed> {
    let (address, length) = text.split_once('/')?;
    Some(Allowed {
        address: address.parse().ok()?,
        length: length.parse().ok().filter(|it| *it <= 32)?,
    })
}

fn endpoint(value: &Value) -> Option<(Ipv4Addr, u16)> {
    let address = value["dnsOrIP"]["ip"].as_str()?.parse().ok()?;
    let port = u16::try_from(value["port"].as_u64()?).ok()?;
    (port != 0).then_some((address, port))
}

/// A node's view of its cluster.
struct View<'a> {
    cluster: &'a Cluster,
    segments: &'a [Segment],
    peers: &'a [Peer],
    node: usize,
    /// Its segment.
    own: usize,
}

impl View<'_> {
    fn node(&self) -> &Node {
        &self.cluster.nodes[self.node]
    }

    fn leads(&self) -> bool {
        self.segments[self.own].leader == self.node
    }

    /// All segments but its own, with their addresses.
    fn others(&self) -> impl Iterator<Item = (&Segment, Ipv4Addr)> {
        let segments = self.segments.iter().enumerate();
        segments
            .filter(|(number, _)| *number != self.own)
            .map(|(number, it)| (it, self.cluster.wireguard_address(number)))
    }

    fn members(&self, segment: &Segment) -> impl Iterator<Item = &Node> {
        segment.members.iter().map(|it| &self.cluster.nodes[*it])
    }

    /// What `Topology.Conf` writes (`kilo.md` §4.5): the other segments, then the Peers.
    fn tunnels(&self, order: Order) -> Tunnels {
        let mut sections = Vec::new();
        let mut keys = Vec::new();
        for (segment, address) in self.others() {
            let leader = &self.cluster.nodes[segment.leader];
            let mut allowed = Vec::new();
            for member in self.members(segment) {
                allowed.extend([member.pods(), format!("{}/32", member.internal())]);
            }
            allowed.push(format!("{address}/32"));
            let endpoint = Some((leader.kilo_endpoint(), PORT));
            sections.push(section(&leader.public_key, &allowed, endpoint));
            let key = STANDARD.decode(&leader.public_key).unwrap();
            keys.push(key.try_into().unwrap());
        }
        for peer in self.peers {
            let allowed: Vec<String> = peer.allowed.iter().map(ToString::to_string).collect();
            let key = STANDARD.encode(peer.key);
            sections.push(section(&key, &allowed, peer.endpoint));
            keys.push(peer.key);
        }
        let node = self.node();
        let sections = order.apply(sections).concat();
        Tunnels {
            address: format!("{}/16", self.cluster.wireguard_address(self.own)),
            configuration: format!(
                "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n{sections}",
                node.private_key
            ),
            keys,
            keepalive: node.keepalive,
        }
    }

    /// What `Topology.Routes` returns (`kilo.md` §2.5 and §2.11), without encapsulation in a
    /// location: its nodes share a network here.
    fn routes(&self, order: Order) -> String {
        let source = self.node().internal();
        let replace = |range: &str, way: &str| {
            format!("route replace {range} {way} proto static src {source}\n")
        };
        let mut routes = Vec::new();
        for member in self.members(&self.segments[self.own]) {
            if member.internal() != source {
                let way = format!("via {} dev lan0 onlink", member.internal());
                routes.push(replace(&member.pods(), &way));
            }
        }
        let leader = &self.cluster.nodes[self.segments[self.own].leader];
        let by_leader = format!("via {} dev lan0 onlink", leader.internal());
        for (segment, address) in self.others() {
            let way = if self.leads() {
                format!("via {address} dev kilo0 onlink")
            } else {
                routes.push(replace(&format!("{address}/32"), &by_leader));
                by_leader.clone()
            };
            let dialled = self.cluster.nodes[segment.leader].kilo_endpoint();
            for member in self.members(segment) {
                routes.push(replace(&member.pods(), &way));
                // The agent guards its own segments (`kilo.md` §2.6).
                if member.internal() != dialled {
                    routes.push(replace(&format!("{}/32", member.internal()), &way));
                }
            }
        }
        let way = if self.leads() { "dev kilo0" } else { &by_leader };
        let ranges = || self.peers.iter().flat_map(|it| &it.allowed);
        routes.extend(ranges().map(|it| replace(&it.to_string(), way)));
        let mut routes = order.apply(routes);
        if order == Order::Backward {
            let refused =
                ranges().filter(|it| it.has_host_bits()).map(|it| replace(&it.to_string(), way));
            routes.splice(0..0, refused);
        }
        routes.concat()
    }
}

fn section(key: &str, allowed: &[String], endpoint: Option<(Ipv4Addr, u16)>) -> String {
    let mut section = format!("[Peer]\nPublicKey = {key}\n");
    if !allowed.is_empty() {
        let _ = writeln!(section, "AllowedIPs = {}", allowed.join(", "));
    }
    if let Some((address, port)) = endpoint {
        let _ = writeln!(section, "Endpoint = {address}:{port}");
    }
    section
}
