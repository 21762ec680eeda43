//! What a comparison of two versions promises, for any two of them.

use std::cell::Cell;
use std::sync::Arc;

use clustermesh::agent::applied::{Applied, AppliedFile, Content};
use clustermesh::agent::fabric::{Fabric, NodeRef, Site};
use clustermesh::changes::{self, Changes, Delivery, Grade, Version, WatchedPaths};
use clustermesh::config::Capacity;
use clustermesh::engine::Engines;
use clustermesh::mesh::{Entry, Mesh};
use clustermesh::net::Family;
use clustermesh::net::prefixes::Span;
use clustermesh::packet::{Packet, Session};
use clustermesh::proof::reach::address_blocks;
use clustermesh::proof::verify::Asked;
use clustermesh::snapshot::{Node, Snapshot};
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::*;
use crate::support::applied::{AppliedFiles, applied, site};
use crate::support::shape::{Layout, Shape};

mod ends;
mod pauses;
mod sound;

/// The number of cases: more with `PROPTEST_CASES`.
fn cases() -> u32 {
    let more = std::env::var("PROPTEST_CASES").ok();
    more.and_then(|it| it.parse().ok()).unwrap_or(60)
}

/// Checks a rule with random values until enough of them matter to it: how many do is chance, and a fixed number
/// of cases would sometimes have too few.
fn holds_for<S: Strategy>(
    values: &S,
    cases: u32,
    is_enough: impl Fn() -> bool,
    rule: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    // Each round draws its own values, and the same ones for the same seed. A runner itself runs no second round.
    let mut rounds = TestRunner::new(config.clone());
    for _ in 0..20 {
        let mut runner = TestRunner::new_with_rng(config.clone(), rounds.new_rng());
        runner.run(values, &rule).unwrap();
        if is_enough() {
            return;
        }
    }
    panic!("the values of 20 rounds say too little about this rule");
}

/// A world, and what is written about it beside its ranges.
#[derive(Clone, Debug)]
struct Edition {
    world: World,
    topologies: Topologies,
    settings: Vec<Written>,
    /// Peers of no mesh that clusters have.
    foreign: Vec<ForeignPeer>,
    /// A seed for nodes without keepalives; without one, all nodes send them.
    silent: Option<u8>,
    /// Nodes that send keepalives in any case, with their clusters.
    annotated: BTreeSet<(String, String)>,
}

/// The meshes, which never link two clusters twice.
#[derive(Clone, Copy, Debug)]
enum Topologies {
    /// One of all clusters.
    One(&'static str),
    /// The spokes of the first mesh have one of their own.
    Spokes(&'static str),
}

/// Fields of the entry of a cluster.
#[derive(Clone, Debug)]
struct Written {
    state: Option<&'static str>,
    is_behind_nat: bool,
    selects: bool,
}

/// A Peer that no mesh makes.
#[derive(Clone, Debug)]
struct ForeignPeer {
    target: Index,
    range: (Index, u8),
    has_endpoint: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let state = select(vec![None, None, None, None, Some("Joining"), Some("Leaving")]);
    let often = proptest::bool::weighted(0.2);
    (state, often, often).prop_map(|(state, is_behind_nat, selects)| Written {
        state,
        is_behind_nat,
        selects,
    })
}

fn topologies() -> impl Strategy<Value = Topologies> {
    let one = select(vec![
        "{ mode: FullMesh }",
        "{ mode: Hub, hubs: [c1] }",
        "{ mode: Hub, hubs: [m0] }",
        "{ mode: Hub, hubs: [m0, c1] }",
    ]);
    let spokes = select(vec!["{ mode: FullMesh }", "{ mode: Hub, hubs: [c1] }"]);
    prop_oneof![
        2 => one.prop_map(Topologies::One),
        1 => spokes.prop_map(Topologies::Spokes),
    ]
}

fn edition() -> impl Strategy<Value = Edition> {
    let foreign = (any::<Index>(), (any::<Index>(), 0..6u8), any::<bool>());
    let foreign = foreign.prop_map(|(target, range, has_endpoint)| ForeignPeer {
        target,
        range,
        has_endpoint,
    });
    (
        world(),
        topologies(),
        proptest::collection::vec(written(), 4),
        proptest::collection::vec(foreign, 0..2),
        proptest::option::weighted(0.3, any::<u8>()),
    )
        .prop_map(|(world, topologies, settings, foreign, silent)| Edition {
            world,
            topologies,
            settings,
            foreign,
            silent,
            annotated: BTreeSet::new(),
        })
}

impl Edition {
    /// Writes its meshes.
    fn meshes(&self) -> String {
        let all: Vec<usize> = (0..self.world.clusters.len()).collect();
        let meshes = match self.topologies {
            Topologies::Spokes(topology) if 2 < all.len() => vec![
                ("world", "{ mode: Hub, hubs: [m0] }", &all[..]),
                ("other", topology, &all[1..]),
            ],
            Topologies::One(topology) | Topologies::Spokes(topology) => {
                vec![("world", topology, &all[..])]
            }
        };
        let documents = meshes.into_iter().map(|(name, topology, members)| {
            let mut yaml = mesh_of(name, topology, &self.world, members);
            for &it in members {
                let head = format!("  - name: {}\n", self::name(it));
                yaml = yaml.replace(&head, &format!("{head}{}", self.fields(it, topology)));
            }
            self.hidden(&yaml)
        });
        documents.collect::<Vec<_>>().join("---\n")
    }

    /// Takes away what Kilo has found out about nodes of clusters behind NAT, which then have no endpoint for others.
    fn hidden(&self, yaml: &str) -> String {
        let mut is_hidden = false;
        let lines = yaml.lines().map(|line| {
            if let Some(cluster) = line.strip_prefix("  - name: ") {
                let mut settings = self.settings.iter().enumerate();
                let settings = settings.find(|it| name(it.0) == cluster);
                is_hidden = settings.is_some_and(|it| it.1.is_behind_nat);
            }
            let shown = if is_hidden { line.replace(", Kilo]", "]") } else { line.to_owned() };
            shown + "\n"
        });
        lines.collect()
    }

    /// Returns whether a node sends keepalives.
    fn sends(&self, cluster: &str, node: &str) -> bool {
        let Some(seed) = self.silent else {
            return true;
        };
        let is_named = || self.annotated.contains(&(cluster.to_owned(), node.to_owned()));
        let bytes = cluster.bytes().chain(node.bytes());
        let sum = bytes.fold(seed, u8::wrapping_add);
        sum % 3 != 0 || is_named()
    }

    /// Writes fields of an entry.
    fn fields(&self, cluster: usize, topology: &str) -> String {
        let written = &self.settings[cluster];
        let mut fields = String::new();
        if let Some(state) = written.state.filter(|_| !topology.contains(&name(cluster))) {
            fields = format!("    state: {state}\n");
        }
        // One cluster of a world has a keepalive anyway.
        if written.is_behind_nat && !self.world.clusters[cluster].behind_nat {
            fields += "    persistentKeepalive: 25\n";
        }
        if written.selects && !self.world.clusters[cluster].declares_pods() {
            fields += "    nodeSelector: { matchLabels: { gateway: 'yes' } }\n";
        }
        fields
    }

    /// Returns the Peers that a cluster has in any case.
    fn foreign(&self, cluster: usize) -> Option<AppliedFile> {
        use base64::Engine as _;
        let count = self.world.clusters.len();
        let own = self.foreign.iter().enumerate();
        let own = own.filter(|(_, it)| it.target.index(count) == cluster);
        let texts = own.map(|(number, it)| {
            let key = [240 + u8::try_from(number).unwrap(); 32];
            let key = base64::engine::general_purpose::STANDARD.encode(key);
            let range = format!("10.{}.{}.64/26", it.range.0.index(count), it.range.1);
            let endpoint = "  endpoint: { dnsOrIP: { ip: 198.51.77.1 }, port: 51820 }\n";
            format!(
                "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: laptop-{number} }}\n\
                 spec:\n  allowedIPs: [{range}]\n  publicKey: {key}\n{}",
                if it.has_endpoint { endpoint } else { "" }
            )
        });
        let text = texts.collect::<Vec<_>>().join("---\n");
        let file = || AppliedFile::read(&"foreign.yaml".into(), &text.as_str().into());
        (!text.is_empty()).then(file)
    }
}

/// Two editions of a world: the second has other claims of some nodes, some nodes more, or fewer, or another
/// line in its meshes.
fn versions() -> impl Strategy<Value = (Edition, Edition)> {
    let kinds = vec![0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
    let edits = proptest::collection::vec((any::<Index>(), any::<Index>(), select(kinds)), 1..3);
    (edition(), edition(), edits).prop_map(|(before, other, edits)| {
        let mut after = before.clone();
        for (cluster, node, kind) in edits {
            let cluster = cluster.index(after.world.clusters.len());
            match kind {
                8 => after.topologies = other.topologies,
                9 => after.settings[cluster].state = other.settings[cluster].state,
                10 => after.settings[cluster].selects = other.settings[cluster].selects,
                11 => after.settings[cluster].is_behind_nat = other.settings[cluster].is_behind_nat,
                12 => {
                    let others = other.world.clusters.get(cluster);
                    let accepted = others.map(|it| it.accepted.clone());
                    after.world.clusters[cluster].accepted = accepted.unwrap_or_default();
                }
                _ => {
                    let nodes = &mut after.world.clusters[cluster].nodes;
                    let others = other.world.clusters.get(cluster);
                    let others = others.map_or(&[][..], |it| &it.nodes);
                    edit(cluster, nodes, others, (node, kind));
                }
            }
        }
        (before, after)
    })
}

fn edit(cluster: usize, nodes: &mut Vec<Claims>, others: &[Claims], (index, kind): (Index, i32)) {
    if nodes.is_empty() {
        nodes.extend(others.iter().cloned());
        return;
    }
    let count = nodes.len();
    let place = index.index(count);
    let other = index.index(count + 1).min(count - 1);
    match kind {
        0 => drop(nodes.remove(place)),
        1 => {
            // A node more, with values of its own.
            let number = 50 + nodes.len();
            nodes.push(Claims {
                name: format!("zz-{number}"),
                pods: vec![format!("10.{cluster}.{number}.0/24")],
                wireguard: Some(format!("100.64.{cluster}.{number}/16")),
                key: Some(100 + 10 * cluster + nodes.len()),
                endpoint: Some(format!("198.51.{cluster}.{number}:51820")),
                kilo_endpoint: None,
                internal: None,
                addresses: Vec::new(),
                leads: false,
                stale: false,
                ..nodes[place].clone()
            });
        }
        2 => nodes[place].key = Some(120 + place),
        3 => nodes[place].endpoint = Some(format!("198.51.9.{place}:51820")),
        4 => {
            let (one, two) = (nodes[place].key, nodes[other].key);
            (nodes[place].key, nodes[other].key) = (two, one);
        }
        // Each node has the key of the next one.
        5 => {
            let keys: Vec<_> = nodes.iter().map(|it| it.key).collect();
            for (node, key) in nodes.iter_mut().zip(keys.iter().cycle().skip(1)) {
                node.key = *key;
            }
        }
        6 => {
            let (one, two) = (nodes[place].name.clone(), nodes[other].name.clone());
            (nodes[place].name, nodes[other].name) = (two, one);
        }
        7 => {
            nodes[place].location =
                if nodes[place].location == Some("x") { None } else { Some("x") }
        }
        13 => nodes[place].leads = !nodes[place].leads,
        _ => nodes[place].pods = vec![format!("10.{cluster}.{}.0/24", 60 + place)],
    }
}

/// Most nodes of these are gateways, and those send keepalives that are meant.
fn with_keepalives(mut nodes: Vec<Node>, sends: impl Fn(&str) -> bool) -> Vec<Node> {
    for (number, node) in nodes.iter_mut().enumerate() {
        if sends(&node.name) {
            let key = "kilo.squat.ai/persistent-keepalive".to_owned();
            node.annotations.insert(key, "25");
        }
        if number % 3 != 1 {
            node.labels.insert("gateway", "yes");
        }
    }
    nodes
}

/// A version with everything that it is read from.
struct Rendered {
    meshes: Vec<Mesh>,
    snapshots: Snapshots,
    files: AppliedFiles,
}

impl Rendered {
    fn new(edition: &Edition) -> Self {
        let world = &edition.world;
        let names: Vec<String> = (0..world.clusters.len()).map(name).collect();
        let nodes = names.iter().zip(&world.clusters).map(|(name, cluster)| {
            let nodes = cluster.nodes.iter().map(node).collect();
            let nodes = with_keepalives(nodes, |node| edition.sends(name, node));
            (name.as_str(), nodes)
        });
        let mut rendered = Self::of(meshes(&edition.meshes()), snapshots(nodes.collect()));
        for (cluster, name) in names.iter().enumerate() {
            let foreign = edition.foreign(cluster);
            let files = rendered.files.entry(name.parse().unwrap());
            files.or_default().extend(foreign);
        }
        rendered
    }

    /// Renders meshes.
    fn of(meshes: Vec<Mesh>, snapshots: Snapshots) -> Self {
        let fleet = Fleet::new(&meshes, &snapshots).unwrap();
        let tree = manifest::tree(&plan::plan(&fleet).unwrap()).unwrap();
        drop(fleet);
        let files = applied(tree.into_iter().map(|(path, text)| (path, text.to_string())));
        Self { meshes, snapshots, files }
    }

    /// Renders three clusters of two nodes, all of which reach each other.
    fn honest() -> Self {
        let shape = Shape::new(Layout::Full { clusters: 3, nodes: 2 });
        let all = shape.snapshots();
        let nodes = all.iter().map(|(name, snapshot)| {
            let read = Snapshot::read(&name.parse().unwrap(), &snapshot.to_string());
            (name.as_str(), read.unwrap().nodes)
        });
        let snapshots = snapshots(nodes.collect());
        Self::of(meshes(&shape.mesh().to_string()), snapshots)
    }

    /// Returns the entry of each cluster, by name.
    fn entries(&self) -> Vec<&Entry> {
        let mut entries: BTreeMap<&ClusterName, &Entry> = BTreeMap::new();
        for entry in self.meshes.iter().flat_map(|it| &it.entries) {
            entries.entry(&entry.name).or_insert(entry);
        }
        entries.into_values().collect()
    }

    /// Joins its clusters, each with its own Peers or with others.
    fn fabric<'a>(&'a self, others: &'a Self, has_others: impl Fn(usize) -> bool) -> Fabric<'a> {
        let entries = self.entries().into_iter().enumerate();
        let sites = entries.map(|(number, entry)| {
            let version = if has_others(number) { others } else { self };
            site(entry, &self.snapshots, &version.files)
        });
        Fabric::new(sites.collect())
    }
}

fn compared(before: &Rendered, after: &Rendered) -> Changes {
    let old = Fleet::new(&before.meshes, &before.snapshots).unwrap();
    let new = Fleet::new(&after.meshes, &after.snapshots).unwrap();
    let (was, is) = (before.fabric(before, |_| false), after.fabric(after, |_| false));
    let asked = |meshes| Asked { meshes, lists_undeclared: false, allowed: None };
    let clusters = after.meshes.iter().flat_map(|it| &it.entries);
    let clusters: BTreeSet<ClusterName> = clusters.map(|it| it.name.clone()).collect();
    let watched = [WatchedPaths { name: String::new(), from: clusters.clone(), to: clusters }];
    let delivery = Delivery {
        engines: &Engines::default(),
        capacity: &Capacity::default(),
        foreign: &[],
        left: &BTreeMap::new(),
        watched: &watched,
        most_steps: u64::MAX,
    };
    changes::compare(
        &Version { fleet: Some(&old), fabric: &was, asked: asked(&before.meshes) },
        &Version { fleet: Some(&new), fabric: &is, asked: asked(&after.meshes) },
        &delivery,
    )
}

/// Follows packets between every two blocks of different clusters, and returns those that are answered. In
/// a block, the addresses count at which another block or a Peer's range begins or ends.
fn held(fabric: &Fabric) -> BTreeSet<(String, String)> {
    let mut held = BTreeSet::new();
    let blocks = fabric.sites.map(|site| address_blocks(site));
    let mut bounds: BTreeSet<(Family, u128)> = BTreeSet::new();
    let mut bound = |it: Span| bounds.extend([(it.family, it.first), (it.family, it.last)]);
    blocks.iter().flatten().for_each(|it| bound(it.span));
    for site in &fabric.sites {
        for peer in site.files.iter().flat_map(|it| &it.content.peers) {
            let ranges = peer.spec.iter().flat_map(|it| &it.allowed_ips);
            ranges.for_each(|it| bound(Span::new(it.interface.network)));
        }
    }
    let addresses = |span: Span| {
        let ends = (span.family, span.first)..=(span.family, span.last);
        let addresses = bounds.range(ends).map(move |it| Span { first: it.1, ..span });
        addresses.map(Span::first_address).take(6)
    };
    for (from, senders) in blocks.numbered() {
        for (sender, node) in senders.iter().filter_map(|it| Some((it, it.owner.node()?))) {
            for (to, receivers) in blocks.numbered().filter(|it| it.0 != from) {
                let receivers = receivers.iter();
                for receiver in receivers.filter(|it| it.span.family == sender.span.family) {
                    for source in addresses(sender.span) {
                        for destination in addresses(receiver.span) {
                            let trace = fabric.exchange(Packet {
                                from: NodeRef { site: from, node },
                                source,
                                to: receiver.owner.goal(to),
                                destination,
                                session: Session::New,
                            });
                            if trace.ending().is_delivered() {
                                held.insert((
                                    format!("{from:?} {:?} {source}", sender.owner),
                                    format!("{to:?} {:?} {destination}", receiver.owner),
                                ));
                            }
                        }
                    }
                }
            }
        }
    }
    held
}

fn peers_of(files: &[AppliedFile]) -> BTreeMap<&str, &Applied> {
    let peers = files.iter().flat_map(|it| &it.content.peers);
    peers.map(|it| (it.name.as_str(), it)).collect()
}

/// The clusters take their new Peers in any order, and each of them a part after the other. What is graded
/// additive loses no path that holds with the old Peers in any of these states, and what is graded brief
/// loses none with whole versions. What is graded none has equal Peers.
#[test]
fn no_state_is_worse_than_its_grade() {
    let (states, additive) = (Cell::new(0), Cell::new(0));
    let is_enough = || 100 < states.get() && 2 < additive.get();
    holds_for(&versions(), cases(), is_enough, |(before, after)| {
        let (before, after) = (Rendered::new(&before), Rendered::new(&after));
        let grade = compared(&before, &after).grade();
        if grade == Grade::None {
            prop_assert!(have_equal_peers(&before, &after));
        }
        if Grade::Brief < grade {
            return Ok(());
        }
        let now = held(&after.fabric(&before, |_| true));
        let is_kept = |between: &Fabric| {
            states.set(states.get() + 1);
            let between = held(between);
            let lost: Vec<_> = now.difference(&between).collect();
            prop_assert!(lost.is_empty(), "{grade:?}: {lost:?}");
            Ok(())
        };
        let clusters = after.entries().len();
        for state in 0..1usize << clusters {
            let is_old = |number: usize| state >> number & 1 == 1;
            is_kept(&after.fabric(&before, is_old))?;
        }
        if grade == Grade::Additive {
            additive.set(additive.get() + 1);
            for part in 0..4 {
                let partly = partly(&before, &after, part);
                is_kept(&partly.fabric(&partly, |_| false))?;
            }
        }
        Ok(())
    });
}

/// The clusters take their new Peers in any order. Clusters between which any of these states opens a path are found.
#[test]
fn every_path_that_opens_on_the_way_is_found() {
    let (opening, passing) = (Cell::new(0), Cell::new(0));
    let is_enough = || 20 < opening.get() && 5 < passing.get();
    holds_for(&any::<[[u16; 2]; 2]>(), cases().min(20), is_enough, |masks| {
        let without = |[one, other]: [u16; 2]| without_peers(Rendered::honest(), one & other);
        let [before, after] = masks.map(without);
        let changes = compared(&before, &after);
        let pairs = |it: BTreeSet<&(String, String)>| -> BTreeSet<(String, String)> {
            let site = |end: &str| end.split(' ').next().unwrap_or_default().to_owned();
            let pairs = it.into_iter();
            pairs.map(|(from, to)| (site(from), site(to))).collect()
        };
        let now = held(&before.fabric(&before, |_| false));
        let (mut opens, clusters) = (BTreeSet::new(), after.entries().len());
        for state in 0..1usize << clusters {
            let between = held(&after.fabric(&before, |number| state >> number & 1 == 1));
            opens.extend(pairs(between.difference(&now).collect()));
        }
        let fabric = after.fabric(&after, |_| false);
        let named = |name: &ClusterName| {
            let mut sites = fabric.sites.numbered();
            let site = sites.find(|it| it.1.cluster == name).unwrap().0;
            format!("{site:?}")
        };
        let found = changes.paths.iter().filter(|it| !it.opened.is_empty());
        let found: BTreeSet<_> = found.map(|it| (named(&it.from), named(&it.to))).collect();
        let missed: Vec<_> = opens.difference(&found).collect();
        prop_assert!(missed.is_empty(), "{missed:?}");
        prop_assert!(changes.unwatched.is_empty());
        opening.set(opening.get() + opens.len());
        let paths = changes.paths.iter();
        let pass = paths.filter(|it| it.opened.stay.is_empty() && !it.opened.pass.is_empty());
        passing.set(passing.get() + pass.count());
        Ok(())
    });
}

/// Removes the Peers that a bit of the mask means, by their place.
fn without_peers(rendered: Rendered, mask: u16) -> Rendered {
    let files = rendered.files.iter().map(|(cluster, files)| {
        let peers = peers_of(files).into_values().enumerate();
        let shift = cluster.as_str().bytes().map(usize::from).sum::<usize>();
        let peers = peers.filter(|(place, _)| mask >> ((place + shift) % 16) & 1 == 0);
        let content =
            Content { peers: peers.map(|(_, peer)| peer.clone()).collect(), others: Vec::new() };
        let file = AppliedFile { source: "peers.yaml".into(), content: Arc::new(content) };
        (cluster.clone(), vec![file])
    });
    Rendered { files: files.collect(), ..rendered }
}

/// A version that is built beside another one, and shares the tables that are the same, is as if it was
/// built alone. So is a cluster with the Peers of the other version.
#[test]
fn tables_are_shared_only_if_they_are_the_same() {
    let (shared, others) = (Cell::new(0), Cell::new(0));
    let is_enough = || 20 < shared.get() && 20 < others.get();
    holds_for(&versions(), cases(), is_enough, |(before, after)| {
        let (before, after) = (Rendered::new(&before), Rendered::new(&after));
        let was = before.fabric(&before, |_| false);
        let is = after.fabric(&after, |_| false);
        let has_old = after.fabric(&before, |_| true);
        for (old, new) in was.sites.iter().zip(is.sites.iter()) {
            let beside = Site::with_reading(Arc::clone(&new.reading), new.files, Some(old));
            prop_assert_eq!(format!("{beside:?}"), format!("{new:?}"));
            let is_shared = Arc::ptr_eq(&beside.model.tunnels, &old.model.tunnels);
            let count = if is_shared { &shared } else { &others };
            count.set(count.get() + 1);
        }
        for (old, new) in has_old.sites.iter().zip(is.sites.iter()) {
            let with_old = new.with_files(old.files);
            prop_assert_eq!(format!("{with_old:?}"), format!("{old:?}"));
        }
        Ok(())
    });
}

fn have_equal_peers(before: &Rendered, after: &Rendered) -> bool {
    after.snapshots.keys().all(|cluster| {
        let of = |version: &'_ Rendered| {
            let files = version.files.get(cluster);
            files.cloned().unwrap_or_default()
        };
        let (old, new) = (of(before), of(after));
        let (old, new) = (peers_of(&old), peers_of(&new));
        old.keys().eq(new.keys()) && old.iter().all(|(name, it)| new[name].spec == it.spec)
    })
}

/// Returns the new version with every other change of a Peer.
fn partly(before: &Rendered, after: &Rendered, part: usize) -> Rendered {
    let mut files = AppliedFiles::new();
    for cluster in after.snapshots.keys() {
        let of = |version: &Rendered| version.files.get(cluster).cloned().unwrap_or_default();
        let (old, new) = (of(before), of(after));
        let (old, new) = (peers_of(&old), peers_of(&new));
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let peers = names.into_iter().enumerate().filter_map(|(number, name)| {
            let is_new = (number >> (part / 2)) % 2 == part % 2;
            let version = if is_new { &new } else { &old };
            version.get(name).map(|it| (*it).clone())
        });
        let content = Content { peers: peers.collect(), others: Vec::new() };
        let file = AppliedFile { source: "peers.yaml".into(), content: Arc::new(content) };
        files.insert(cluster.clone(), vec![file]);
    }
    let nodes = after.snapshots.iter();
    let nodes = nodes.map(|(name, file)| (name.as_str(), file.snapshot.nodes.clone()));
    Rendered { meshes: after.meshes.clone(), snapshots: snapshots(nodes.collect()), files }
}
