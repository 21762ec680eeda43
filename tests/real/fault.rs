//! Faults: differences between the rendered Peers and those that a cluster gets.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::manifest::Manifest;
use crate::random::Random;
use crate::world::{Manifests, Node, World};

/// Kinds of faults.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Fault {
    /// A Peer has a range of another, or a part of it.
    StolenPrefix,
    /// A Peer lacks one of its ranges.
    MissingRange,
    /// A Peer has a key that no node has.
    WrongKey,
    /// Two Peers have one key.
    DuplicateKey,
    /// The endpoint of a Peer is in a range of one.
    EndpointInTunnel,
    /// Peers have no endpoint: one of them, all of a cluster, or those of both sides.
    NoEndpoint,
    /// A Peer is not there.
    PeerMissing,
    /// A Peer has the endpoint of another node.
    OtherEndpoint,
    /// A Peer that no agent accepts.
    NotAccepted,
    /// A Peer has the range of a node of the cluster that it is in.
    SegmentPrefix,
    /// A Peer has a part of the range of a node of the cluster that it is in.
    InSegmentPrefix,
    /// A Peer has the network of the nodes of the cluster that it is in.
    OwnLan,
    /// A Peer has the key of a node of the cluster that it is in.
    OwnKey,
    /// A range has host bits.
    HostBits,
    /// Two Peers have one name.
    DuplicateName,
    /// The Peers were rendered before a node joined.
    LateNode,
    /// The Peers were rendered before a node was lost.
    LostNode,
}

impl Fault {
    /// All that change a part of what was rendered.
    pub(crate) const ALL: [Self; 15] = [
        Self::StolenPrefix,
        Self::MissingRange,
        Self::WrongKey,
        Self::DuplicateKey,
        Self::EndpointInTunnel,
        Self::NoEndpoint,
        Self::PeerMissing,
        Self::OtherEndpoint,
        Self::NotAccepted,
        Self::SegmentPrefix,
        Self::InSegmentPrefix,
        Self::OwnLan,
        Self::OwnKey,
        Self::HostBits,
        Self::DuplicateName,
    ];

    /// Makes it happen somewhere, and returns what was done; none where there is no room for it.
    pub(crate) fn inject(
        self,
        random: &mut Random,
        world: &World,
        manifests: &mut Manifests,
    ) -> Option<String> {
        let target = random.below(world.clusters.len());
        let mut scene = Scene { random, world, manifests, target };
        let what = scene.change(self)?;
        Some(format!("{self} in {}: {what}", world.clusters[target].name))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::StolenPrefix => "stolen prefix",
            Self::MissingRange => "missing range",
            Self::WrongKey => "wrong key",
            Self::DuplicateKey => "duplicate key",
            Self::EndpointInTunnel => "endpoint in tunnel",
            Self::NoEndpoint => "no endpoint",
            Self::PeerMissing => "Peer missing",
            Self::OtherEndpoint => "endpoint of another node",
            Self::NotAccepted => "Peer not accepted",
            Self::SegmentPrefix => "prefix of a segment",
            Self::InSegmentPrefix => "prefix in that of a segment",
            Self::OwnLan => "own LAN",
            Self::OwnKey => "key of an own node",
            Self::HostBits => "host bits",
            Self::DuplicateName => "duplicate name",
            Self::LateNode => "late node",
            Self::LostNode => "lost node",
        })
    }
}

/// Where a fault happens.
struct Scene<'a> {
    random: &'a mut Random,
    world: &'a World,
    manifests: &'a mut Manifests,
    /// The cluster whose manifests change.
    target: usize,
}

impl Scene<'_> {
    fn change(&mut self, fault: Fault) -> Option<String> {
        match fault {
            Fault::StolenPrefix => self.steal(),
            Fault::MissingRange => self.peer(|random, peer| {
                let range = random.pick(&peer.ranges()).clone();
                peer.remove_range(&range);
                Some(range)
            }),
            Fault::WrongKey => self.peer(|random, peer| {
                let key = STANDARD.encode(random.bytes());
                peer.set_key(&key);
                Some(key)
            }),
            Fault::DuplicateKey => {
                let other = self.any()?.key().to_owned();
                self.peer(|_, peer| {
                    let differs = peer.key() != other;
                    differs.then(|| peer.set_key(&other)).map(|()| other.clone())
                })
            }
            Fault::EndpointInTunnel => {
                let endpoint = self.any()?.endpoint().to_owned();
                let (network, _) = endpoint.rsplit_once('.')?;
                let ranges = [format!("{endpoint}/32"), format!("{network}.0/24")];
                self.add(&ranges)
            }
            Fault::NoEndpoint => Some(self.remove_endpoints()),
            Fault::PeerMissing => {
                let (file, mut peers) = self.file()?;
                let peer = peers.remove(self.random.below(peers.len()));
                let what = peer.name().to_owned();
                self.write(&file, &peers);
                Some(what)
            }
            Fault::OtherEndpoint => {
                let clusters = self.world.clusters.iter();
                let nodes = clusters.flat_map(|it| &it.nodes);
                // The library does not know where a NAT leads.
                let nodes: Vec<&Node> = nodes.filter(|it| !it.behind_nat).collect();
                let address = self.random.pick(&nodes).endpoint().to_string();
                self.peer(|_, peer| {
                    let differs = peer.endpoint() != address && !peer.endpoint().is_empty();
                    differs.then(|| peer.set_endpoint(&address)).map(|()| address.clone())
                })
            }
            Fault::NotAccepted => self.peer(|_, peer| {
                let there = !peer.endpoint().is_empty();
                there.then(|| peer.spoil_port()).map(|()| "port 0".to_owned())
            }),
            Fault::SegmentPrefix => {
                let range = self.own_node().pods();
                self.add(&[range])
            }
            Fault::InSegmentPrefix => {
                let range = self.own_node().pods().replace("/24", "/25");
                self.add(&[range])
            }
            Fault::OwnLan => {
                let range = self.world.clusters[self.target].hosts();
                self.add(&[range])
            }
            Fault::OwnKey => {
                let key = self.own_node().public_key.clone();
                self.peer(|_, peer| {
                    peer.set_key(&key);
                    Some(key.clone())
                })
            }
            Fault::HostBits => self.peer(|random, peer| {
                let range = random.pick(&peer.ranges()).clone();
                let spoilt = range.replace(".0/", ".9/");
                (spoilt != range).then(|| {
                    peer.remove_range(&range);
                    peer.add_range(&spoilt);
                })?;
                Some(spoilt)
            }),
            Fault::LateNode => self.render_without_last_node(),
            // A mesh loses it as a whole.
            Fault::LostNode => None,
            Fault::DuplicateName => {
                let other = self.any()?.name().to_owned();
                self.peer(|_, peer| {
                    let differs = peer.name() != other;
                    differs.then(|| peer.set_name(&other)).map(|()| other.clone())
                })
            }
        }
    }

    /// Renders as if the last node of the cluster had not joined yet.
    fn render_without_last_node(&mut self) -> Option<String> {
        let mut before = self.world.clone();
        let nodes = &mut before.clusters[self.target].nodes;
        let node = nodes.pop().filter(|_| !nodes.is_empty())?;
        *self.manifests = before.manifests();
        Some(node.name)
    }

    fn own_node(&mut self) -> &Node {
        let world = self.world;
        self.random.pick(&world.clusters[self.target].nodes)
    }

    /// Gives a range of one Peer, or a part of it, to another.
    fn steal(&mut self) -> Option<String> {
        let victim = self.any()?;
        let range = self.random.pick(&victim.ranges()).clone();
        let part = range.replace("/24", "/25").replace("/16", "/17");
        let ranges = [range, part];
        let range = self.random.pick(&ranges).clone();
        self.peer(|_, thief| {
            let is_other = thief.key() != victim.key();
            is_other.then(|| thief.add_range(&range)).map(|()| range.clone())
        })
    }

    /// Gives one of some ranges to a Peer.
    fn add(&mut self, ranges: &[String]) -> Option<String> {
        self.peer(|random, peer| {
            let range = random.pick(ranges).clone();
            peer.add_range(&range);
            Some(range)
        })
    }

    fn remove_endpoints(&mut self) -> String {
        let clusters = &self.world.clusters;
        let other = (self.target + 1 + self.random.below(clusters.len() - 1)) % clusters.len();
        let (target, other) = (&clusters[self.target].name, &clusters[other].name);
        let sides = if self.random.chance(60) {
            vec![(target, other), (other, target)]
        } else {
            vec![(target, other)]
        };
        let is_one = self.random.chance(40);
        for (target, source) in sides.clone() {
            let file = format!("real--{source}.yaml");
            let files = self.manifests.get_mut(target);
            let Some(text) = files.and_then(|it| it.get_mut(&file)) else {
                continue;
            };
            let mut peers = Manifest::all(text);
            let count = if is_one { 1 } else { peers.len() };
            peers.iter_mut().take(count).for_each(Manifest::remove_endpoint);
            *text = Manifest::join(&peers);
        }
        let which = if is_one { "the first" } else { "all" };
        format!("{which} of {other}, and of {} sides", sides.len())
    }

    /// Changes some Peer, and returns its name with what `change` returns.
    fn peer(
        &mut self,
        change: impl FnOnce(&mut Random, &mut Manifest) -> Option<String>,
    ) -> Option<String> {
        let (file, mut peers) = self.file()?;
        let position = self.random.below(peers.len());
        let peer = &mut peers[position];
        let what = change(self.random, peer)?;
        let what = format!("{what} at {}", peer.name());
        self.write(&file, &peers);
        Some(what)
    }

    /// Returns some Peer of the target.
    fn any(&mut self) -> Option<Manifest> {
        let (_, peers) = self.file()?;
        Some(self.random.pick(&peers).clone())
    }

    /// Returns some file of the target, with its Peers.
    fn file(&mut self) -> Option<(String, Vec<Manifest>)> {
        let files: Vec<(&String, &String)> = self
            .manifests
            .get(&self.world.clusters[self.target].name)?
            .iter()
            .filter(|it| !it.1.is_empty())
            .collect();
        if files.is_empty() {
            return None;
        }
        let (name, text) = *self.random.pick(&files);
        Some((name.clone(), Manifest::all(text)))
    }

    fn write(&mut self, file: &str, peers: &[Manifest]) {
        let name = &self.world.clusters[self.target].name;
        let files = self.manifests.entry(name.clone()).or_default();
        files.insert(file.to_owned(), Manifest::join(peers));
    }
}
