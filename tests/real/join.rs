//! A node that joins: what a stream loses if its range becomes a part of a wider one.
//!
//! With `Merged`, a new node's 10.1.1.0/24 turns 10.1.0.0/24 into 10.1.0.0/23. Kilo writes WireGuard's configuration, and
//! then deletes old routes before it adds new ones. With `PerNode`, the old route stays.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::device::Device;
use crate::namespace::Namespace;
use crate::probe::Stations;
use crate::random::Random;
use crate::socket;

/// The Peers of the node that sends.
const PEERS: u8 = 50;
/// The runs of each change.
const RUNS: usize = 5;
/// The packets of a stream, one each millisecond; the change comes after the first third.
const PACKETS: u64 = 3000;

/// The sender and the receiver.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 1, 0, 1)];

/// What is changed at the sender.
const CHANGES: [Change; 3] = [
    Change {
        name: "PerNode",
        ranges: "10.1.0.0/24, 10.1.1.0/24",
        routes: "route add 10.1.1.0/24 dev kilo0\n",
        rewrites: true,
    },
    Change {
        name: "Merged",
        ranges: "10.1.0.0/23",
        routes: "route del 10.1.0.0/24 dev kilo0\nroute add 10.1.0.0/23 dev kilo0\n",
        rewrites: true,
    },
    Change {
        name: "Merged, routes alone",
        ranges: "10.1.0.0/24",
        routes: "route del 10.1.0.0/24 dev kilo0\nroute add 10.1.0.0/23 dev kilo0\n",
        rewrites: false,
    },
];

struct Change {
    name: &'static str,
    /// The allowed IPs of the receiver afterwards.
    ranges: &'static str,
    /// The changes of routes, in Kilo's order.
    routes: &'static str,
    /// Whether WireGuard gets its configuration again.
    rewrites: bool,
}

/// The packets that each run of each change lost, and whether the last third was complete.
pub(crate) struct Losses(Vec<(&'static str, Vec<(usize, bool)>)>);

impl Losses {
    /// Returns whether every stream went on afterwards.
    pub(crate) fn all_resumed(&self) -> bool {
        self.0.iter().flat_map(|it| &it.1).all(|it| it.1)
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a node joins, {PEERS} Peers, lost of {PACKETS} packets:")?;
        for (name, runs) in &self.0 {
            let lost: Vec<String> = runs.iter().map(|it| it.0.to_string()).collect();
            write!(f, "\n  {name}: {}", lost.join(", "))?;
        }
        Ok(())
    }
}

/// Measures all changes, one after another.
pub(crate) fn measure() -> io::Result<Losses> {
    let mut losses = Vec::new();
    for change in &CHANGES {
        let runs = (0..RUNS).map(|_| run(change)).collect::<io::Result<_>>()?;
        losses.push((change.name, runs));
    }
    Ok(Losses(losses))
}

fn run(change: &Change) -> io::Result<(usize, bool)> {
    let mut random = Random(7);
    let private = [random.key(), random.key()];
    let mut sender = Namespace::new("sender")?;
    let mut receiver = Namespace::new("receiver")?;
    let there = receiver.network();
    sender.run(&format!("ip link add eth0 type veth peer name eth0 netns {there}"))?;
    let mut public = Vec::new();
    for (number, side) in [&mut sender, &mut receiver].into_iter().enumerate() {
        Device::start(side)?;
        let address = ENDS[number];
        let own = format!("192.0.2.{}", number + 1);
        public.push(side.run(&format!(
            "ip address add {own}/24 dev eth0\nip link set eth0 up\nip address add {address}/32 dev lo\n\
             echo {} | wg pubkey",
            private[number]
        ))?);
    }
    let public: Vec<&str> = public.iter().map(|it| it.trim()).collect();
    let peer = |key: &str, ranges: &str, endpoint: &str| {
        format!("[Peer]\nPublicKey = {key}\nAllowedIPs = {ranges}\nEndpoint = {endpoint}:51820\n")
    };
    let interface = |number: usize| {
        format!("[Interface]\nPrivateKey = {}\nListenPort = 51820\n", private[number])
    };
    let others: String = (1..PEERS)
        .map(|it| peer(&STANDARD.encode([it; 32]), &format!("10.2.{it}.0/24"), "192.0.2.99"))
        .collect();
    let near = |ranges: &str| interface(0) + &peer(public[1], ranges, "192.0.2.2") + &others;
    let write = |text: &str| format!("wg setconf kilo0 /dev/stdin <<'END'\n{text}END\n");
    let far = interface(1) + &peer(public[0], "10.9.0.1/32", "192.0.2.1");
    receiver.run(&(write(&far) + "ip route add 10.9.0.1/32 dev kilo0"))?;
    let route = |it| format!("ip route add 10.2.{it}.0/24 dev kilo0");
    let routes = (1..PEERS).map(route).collect::<Vec<_>>().join("\n") + "\n";
    sender.run(&(write(&near("10.1.0.0/24")) + &routes + "ip route add 10.1.0.0/24 dev kilo0"))?;
    let mut script = format!("ip -batch - <<'END'\n{}END", change.routes);
    if change.rewrites {
        script.insert_str(0, &write(&near(change.ranges)));
    } else {
        // WireGuard has the wider range already.
        sender.run(&write(&near("10.1.0.0/23")))?;
    }
    stream(&mut sender, &receiver, &script)
}

/// Sends a stream, changes something meanwhile, and returns how much was lost.
fn stream(sender: &mut Namespace, receiver: &Namespace, script: &str) -> io::Result<(usize, bool)> {
    let mut stations = Stations::new();
    stations.add(sender, ENDS[0])?;
    stations.add(receiver, ENDS[1])?;
    let to = (ENDS[1], socket::PORT).into();
    // The tunnel opens.
    let first = stations.send(ENDS[0], to);
    if !stations.wait(first, Duration::from_secs(20)).answered {
        return Err(io::Error::other("the tunnel does not open"));
    }
    let mut sent = Vec::new();
    for number in 0..PACKETS {
        if number == PACKETS / 3 {
            sender.send(script)?;
        }
        sent.push(stations.send(ENDS[0], to));
        thread::sleep(Duration::from_millis(1));
    }
    sender.receive()?;
    thread::sleep(Duration::from_millis(300));
    let is_lost = |it: &&u64| !stations.wait(**it, Duration::ZERO).answered;
    let lost = sent.iter().filter(is_lost).count();
    let end = &sent[sent.len() * 2 / 3..];
    Ok((lost, !end.iter().any(|it| is_lost(&it))))
}
