//! An external peer that is off while its clusters get other changes.
//!
//! Kilo compares the wanted peers with those of the device before it writes anything, and `kilo.md` §2.10 describes
//! where that ends too early. So what each node is given here depends on what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::device::Device;
use crate::kilo::{Order, Orders, orders};
use crate::manifest::Manifest;
use crate::network::Network;
use crate::pair::pairs;
use crate::random::Random;
use crate::socket;
use crate::trial::{ask, stations};
use crate::verdict::{Verdicts, verdicts};
use crate::world::{Manifests, World};

/// How long those wait for a new session that call a node whose peers were written again (`kilo.md` §2.10).
const PAUSE: Duration = Duration::from_secs(17);

/// The peers of a device by key: whether it has an endpoint, and its ranges.
type Peers = BTreeMap<Vec<u8>, (bool, BTreeSet<String>)>;

/// Reads a configuration as `wg` prints it.
fn peers(text: &str) -> Peers {
    let mut peers = Peers::new();
    for section in text.split("[Peer]\n").skip(1) {
        let value = |key: &str| {
            let mut lines = section.lines();
            lines.find_map(|it| it.strip_prefix(key)?.trim().strip_prefix("= "))
        };
        let ranges = value("AllowedIPs").unwrap_or_default().split(", ");
        let key = STANDARD.decode(value("PublicKey").unwrap()).unwrap();
        let ranges = ranges.map(str::to_owned).collect();
        peers.insert(key, (value("Endpoint").is_some(), ranges));
    }
    peers
}

/// Returns whether Kilo takes the wanted peers for those that a device has.
fn are_equal(wanted: &Peers, actual: &Peers) -> bool {
    if wanted.len() != actual.len() {
        return false;
    }
    for (one, other) in wanted.iter().zip(actual) {
        if one.0 != other.0 || one.1.1 != other.1.1 {
            return false;
        }
        if !one.1.0 || !other.1.0 {
            return !one.1.0 && !other.1.0;
        }
    }
    true
}

fn all_orders(world: &World, manifests: &Manifests) -> Vec<Vec<Orders>> {
    let clusters = world.clusters.iter().map(|cluster| {
        let files = manifests[&cluster.name].values();
        let texts: Vec<&str> = files.map(String::as_str).collect();
        orders(cluster, &texts, Order::Forward)
    });
    clusters.collect()
}

/// Changes each Peer of each file that is meant.
fn edited(manifests: &Manifests, edit: impl Fn(&str, &mut Manifest)) -> Manifests {
    let mut manifests = manifests.clone();
    for (file, text) in manifests.values_mut().flatten() {
        let mut peers = Manifest::all(text);
        for peer in &mut peers {
            edit(file, peer);
        }
        *text = Manifest::join(&peers);
    }
    manifests
}

/// How many nodes have other peers after a change, and how many of them Kilo leaves as they are.
struct Applied {
    changed: usize,
    left: usize,
}

/// Lets the agent of each node apply a change.
fn apply(
    network: &mut Network,
    before: &[Vec<Orders>],
    after: &[Vec<Orders>],
) -> io::Result<Applied> {
    let mut applied = Applied { changed: 0, left: 0 };
    for (cluster, (before, after)) in before.iter().zip(after).enumerate() {
        for (node, (before, after)) in before.iter().zip(after).enumerate() {
            let (Some(before), Some(after)) = (&before.tunnels, &after.tunnels) else {
                continue;
            };
            if peers(&before.configuration) == peers(&after.configuration) {
                continue;
            }
            applied.changed += 1;
            let namespace = network.node_mut((cluster, node));
            let actual = peers(&namespace.run("wg showconf kilo0")?);
            if are_equal(&peers(&after.configuration), &actual) {
                applied.left += 1;
            } else {
                namespace.run(&Device::configuration(after))?;
            }
        }
    }
    Ok(applied)
}

/// Tries it: the laptop is off, a range of each Peer of one cluster is added, and the laptop comes back.
pub(crate) fn report() -> io::Result<String> {
    let mut random = Random(11);
    let world = loop {
        let world = World::with_externals(&mut random)?;
        // Agents compare peers in the order of their keys, so the laptop comes before most.
        let key = STANDARD.decode(&world.externals[0].public_key).unwrap();
        if key[0] < 16 {
            break world;
        }
    };
    let after = world.manifests();
    let source = format!("real--{}.yaml", world.clusters[0].name);
    let before = edited(&after, |file, peer| {
        let ranges = peer.ranges();
        if file == source && 1 < ranges.len() {
            peer.remove_range(&ranges[0]);
        }
    });
    let mut network = Network::new(&world)?;
    let mut stations = stations(&world, &mut network)?;
    network.hosts[0].stop()?;
    // Without the placeholder, agents would not apply the change.
    let bare = |manifests: &Manifests| {
        let manifests = edited(manifests, |file, peer| {
            if file == "real--external.laptop.yaml" {
                peer.remove_endpoint();
            }
        });
        all_orders(&world, &manifests)
    };
    let (old, new) = (bare(&before), bare(&after));
    network.apply(&old)?;
    network.reset(&old)?;
    let control = apply(&mut network, &old, &new)?;
    let (old, new) = (all_orders(&world, &before), all_orders(&world, &after));
    network.reset(&old)?;
    let applied = apply(&mut network, &old, &new)?;
    network.apply(&new)?;
    let pairs = pairs(&world);
    for pair in &pairs {
        stations.send(pair.from.1, (pair.to.1, socket::PORT).into());
    }
    thread::sleep(PAUSE);
    let Verdicts { pairs: said, .. } =
        verdicts(&world, &after, &pairs).map_err(io::Error::other)?;
    let is_its = |cluster: &str| cluster == "external.laptop";
    let mut counts = [0, 0];
    for is_back in [false, true] {
        if is_back {
            network.hosts[0].start()?;
        }
        for (pair, verdict) in pairs.iter().zip(&said) {
            if is_back != (is_its(&pair.from.0) || is_its(&pair.to.0)) {
                continue;
            }
            let fate = ask(&mut stations, pair, verdict);
            counts[usize::from(is_back)] += 1;
            if !verdict.agrees(&[fate], &[]) {
                return Err(io::Error::other(format!(
                    "{pair}: {} but {fate:?}\n{}",
                    verdict.name,
                    network.state()
                )));
            }
        }
    }
    if applied.left != 0 || applied.changed == 0 || control.left == 0 {
        return Err(io::Error::other(format!(
            "{} of {} changes are not applied, and {} without the placeholder",
            applied.left, applied.changed, control.left
        )));
    }
    let [others, own] = counts;
    Ok(format!(
        "an external peer is off: {} nodes apply the change of another cluster ({} of them would not without the \
         placeholder), {others} pairs of others agree, and {own} of its own when it is back",
        applied.changed, control.left
    ))
}
