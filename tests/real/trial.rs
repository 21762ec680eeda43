//! A trial: one mesh in real WireGuard, with packets for every pair.

use std::fmt::{self, Write as _};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::kilo::{Order, Orders, orders};
use crate::loss::Loss;
use crate::network::Network;
use crate::pair::{Class, Pair, pairs};
use crate::probe::{Fate, Stations};
use crate::random::Random;
use crate::socket;
use crate::verdict::{Expected, Verdict, Verdicts, Whole, verdicts};
use crate::world::{Manifests, World};
use crate::{EXTERNAL, LATE, LOST, MESHES};

/// How long an answer is waited for that should not come.
const DOUBT: Duration = Duration::from_millis(250);

/// How long one is waited for that should: two nodes that call each other at the same moment miss
/// each other, and try again five seconds later.
const PATIENCE: Duration = Duration::from_secs(7);

/// How often a packet that should come is given a fresh start.
const ATTEMPTS: usize = 3;

/// How often all packets are sent when all tunnels are open, and how long each time is waited.
const ROUNDS: [Duration; 2] = [Duration::from_millis(900), Duration::from_millis(400)];

/// A mesh that was tried.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) world: World,
    pub(crate) faults: Vec<(Fault, String)>,
    pub(crate) manifests: Manifests,
    /// The result of `verify`.
    pub(crate) whole: Whole,
    pub(crate) outcomes: Vec<Outcome>,
    /// The node that is lost.
    loss: Option<Loss>,
    /// Why it is not complete.
    pub(crate) trouble: Option<io::Error>,
    /// The final configuration of the nodes, if something differs.
    state: String,
    took: Duration,
}

/// A pair that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) pair: Pair,
    pub(crate) verdict: Verdict,
    /// Whether the verdict would be another one without the faults.
    pub(crate) is_spoilt: bool,
    /// One for each order, each with all tunnels closed.
    pub(crate) fates: Vec<Fate>,
    /// Those with all tunnels open.
    pub(crate) later: Vec<Fate>,
    /// Whether it survives a loss according to the library; none without a loss, or if it did not work before.
    pub(crate) survives: Option<bool>,
}

impl Outcome {
    /// Returns whether the library was right.
    pub(crate) fn agrees(&self) -> bool {
        self.verdict.agrees(&self.fates, &self.later)
    }

    /// Returns whether every packet was answered that was sent with all tunnels closed.
    fn gets_through(&self) -> bool {
        !self.fates.is_empty() && self.fates.iter().all(|it| it.answered)
    }

    /// Returns whether a link declares the path, for any declared ranges.
    fn is_promised(&self) -> bool {
        self.pair.is_linked && matches!(self.pair.class, Class::Pod | Class::Service)
    }
}

impl Trial {
    /// Makes a mesh up and tries it.
    pub(crate) fn run(seed: u64) -> Self {
        let start = Instant::now();
        let mut random = Random(seed.wrapping_mul(0x51_7cc1_b727_220a));
        let mut world = World::random(&mut random).expect("`wg pubkey`");
        let mut loss = None;
        while (LOST..EXTERNAL).contains(&seed) && loss.is_none() {
            loss = Loss::random(&mut random, world);
            world = World::random(&mut random).expect("`wg pubkey`");
        }
        if let Some(loss) = &loss {
            world = loss.world();
        }
        if (EXTERNAL..MESHES).contains(&seed) {
            world = World::with_externals(&mut random).expect("`wg pubkey`");
        }
        let rendered = world.manifests();
        let mut manifests = rendered.clone();
        let faults = if let Some(loss) = &loss {
            manifests = loss.manifests();
            vec![(Fault::LostNode, format!("without {}", loss.name()))]
        } else {
            faults(seed, &mut random, (&world, &mut manifests))
        };
        let mut trial = Self {
            seed,
            world,
            faults,
            manifests,
            whole: Whole::default(),
            outcomes: Vec::new(),
            loss,
            trouble: None,
            state: String::new(),
            took: Duration::ZERO,
        };
        trial.trouble = trial.attempt(&rendered).err();
        trial.took = start.elapsed();
        trial
    }

    /// Returns the pairs whose result differs from that of the library.
    pub(crate) fn differences(&self) -> Vec<&Outcome> {
        let outcomes = self.outcomes.iter();
        outcomes.filter(|it| !it.agrees()).collect()
    }

    /// Returns the results of `verify` for the whole mesh that packets do not confirm.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.trouble.is_some() {
            return found;
        }
        if self.faults.is_empty() && self.whole.keeps != self.world.can_open_all() {
            let keeps = self.whole.keeps;
            found.push(format!("of what was rendered, `verify` keeps all: {keeps}"));
        }
        for outcome in &self.outcomes {
            let Outcome { pair, fates, .. } = outcome;
            if self.whole.keeps && outcome.is_promised() && !outcome.gets_through() {
                found.push(format!("`verify` finds that all is kept, but {pair}: {fates:?}"));
            }
            if let Some(survives) = outcome.survives.filter(|it| *it != outcome.gets_through()) {
                let end = if survives { "survives" } else { "ends" };
                found.push(format!("{pair} {end} according to the library, but {fates:?}"));
            }
            let mut all = fates.iter().chain(&outcome.later);
            if !self.whole.leaks && !pair.is_linked && all.any(|it| it.arrived) {
                found.push(format!("`verify` finds no leak, but {pair}: {fates:?}"));
            }
        }
        found
    }

    /// Returns whether there is nothing to look into.
    pub(crate) fn is_good(&self) -> bool {
        self.trouble.is_none() && self.differences().is_empty() && self.contradictions().is_empty()
    }

    /// Asks the library, and then WireGuard.
    fn attempt(&mut self, rendered: &Manifests) -> io::Result<()> {
        let pairs = pairs(&self.world);
        let ask = |manifests| verdicts(&self.world, manifests, &pairs).map_err(io::Error::other);
        let unspoilt = ask(rendered)?;
        let Verdicts { pairs: said, whole } = ask(&self.manifests)?;
        self.whole = whole;
        let survival = self.loss.as_ref().map(|it| it.survival(&pairs));
        let survival = survival.unwrap_or_else(|| vec![None; pairs.len()]);
        let said = said.into_iter().zip(unspoilt.pairs).zip(survival);
        let outcomes = pairs.into_iter().zip(said);
        self.outcomes = outcomes
            .map(|(pair, ((verdict, unspoilt), survives))| Outcome {
                pair,
                is_spoilt: verdict.name != unspoilt.name,
                verdict,
                fates: Vec::new(),
                later: Vec::new(),
                survives,
            })
            .collect();
        self.send()
    }

    /// Sends packets for every pair in both orders of application: results that are reported as
    /// certain must not depend on the order.
    fn send(&mut self) -> io::Result<()> {
        let mut network = Network::new(&self.world)?;
        let mut stations = stations(&self.world, &mut network)?;
        for order in [Order::Forward, Order::Backward] {
            let orders = self.orders(order);
            network.apply(&orders)?;
            let mut attempts = ATTEMPTS;
            for outcome in &mut self.outcomes {
                let mut fate = Fate::default();
                for _ in 0..attempts {
                    // A tunnel that an earlier packet has opened would hide that no node opens it.
                    network.reset(&orders)?;
                    fate = ask(&mut stations, &outcome.pair, &outcome.verdict);
                    if outcome.verdict.is_seen(fate) {
                        break;
                    }
                }
                if !outcome.verdict.is_seen(fate) {
                    // This mesh is to be looked into anyway.
                    attempts = 1;
                }
                outcome.fates.push(fate);
            }
            network.reset(&orders)?;
            self.send_all(&mut stations);
            if !self.differences().is_empty() {
                let state = network.state();
                let _ = writeln!(self.state, "{order:?}\n{state}");
            }
        }
        Ok(())
    }

    /// Sends a packet for every pair without closing a tunnel between: what should not get through
    /// does not either when it is given every chance.
    fn send_all(&mut self, stations: &mut Stations) {
        for patience in ROUNDS {
            let send =
                |outcome: &Outcome| stations.send(outcome.pair.from.1, target(&outcome.pair));
            let numbers: Vec<u64> = self.outcomes.iter().map(send).collect();
            thread::sleep(patience);
            for (outcome, number) in self.outcomes.iter_mut().zip(numbers) {
                outcome.later.push(stations.wait(number, Duration::ZERO));
            }
        }
    }

    fn orders(&self, order: Order) -> Vec<Vec<Orders>> {
        let clusters = self.world.clusters.iter().map(|cluster| {
            let files = self.manifests.get(&cluster.name).into_iter().flatten();
            let texts: Vec<&str> = files.map(|(_, text)| text.as_str()).collect();
            orders(cluster, &texts, order)
        });
        clusters.collect()
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let pairs = self.outcomes.len();
        let differences = self.differences();
        let agreed = pairs - differences.len();
        let shape: Vec<String> = self
            .world
            .clusters
            .iter()
            .map(|cluster| {
                let cut = if cluster.by_location { "location" } else { "full" };
                format!("{} {cut}", cluster.nodes.len())
            })
            .collect();
        let took = self.took.as_secs_f64();
        write!(
            f,
            "mesh {} ({}): {agreed} of {pairs} pairs agree, {took:.1} s",
            self.seed,
            shape.join(", ")
        )?;
        for (_, what) in &self.faults {
            write!(f, "\n    {what}")?;
        }
        if let Some(trouble) = &self.trouble {
            write!(f, "\n!!! {trouble}")?;
        }
        for contradiction in self.contradictions() {
            write!(f, "\n!!! {contradiction}")?;
        }
        if self.is_good() {
            return Ok(());
        }
        for outcome in differences {
            let Outcome { pair, verdict, .. } = outcome;
            let (fates, later) = (&outcome.fates, &outcome.later);
            write!(f, "\n!!! {pair}: {} but {fates:?}, and later {later:?}", verdict.name)?;
            write!(f, "\n{}", verdict.ending)?;
        }
        write!(f, "\n{}", self.world.mesh())?;
        for (cluster, files) in &self.manifests {
            for (file, text) in files {
                write!(f, "\n# {cluster}/{file}\n{text}")?;
            }
        }
        write!(f, "\n{}\nagain: REAL_SEED={}", self.state, self.seed)
    }
}

/// Injects faults: each kind has its turn, and others join it.
fn faults(
    seed: u64,
    random: &mut Random,
    (world, manifests): (&World, &mut Manifests),
) -> Vec<(Fault, String)> {
    if (LATE..EXTERNAL).contains(&seed) {
        let mut attempts = (0..20).map(|_| Fault::LateNode.inject(random, world, manifests));
        let what = attempts.find_map(|it| it);
        return what.into_iter().map(|it| (Fault::LateNode, it)).collect();
    }
    let turn = usize::try_from(seed).unwrap() % (Fault::ALL.len() + 1);
    let mut wanted: Vec<Fault> = Fault::ALL.get(turn).copied().into_iter().collect();
    while !wanted.is_empty() && random.chance(35) {
        wanted.push(*random.pick(&Fault::ALL));
    }
    let mut injected = Vec::new();
    for fault in wanted {
        let mut attempts = (0..20).map(|_| fault.inject(random, world, manifests));
        injected.extend(attempts.find_map(|it| it).map(|what| (fault, what)));
    }
    injected
}

/// Opens the sockets of all nodes, pods and external peers.
pub(crate) fn stations(world: &World, network: &mut Network) -> io::Result<Stations> {
    let mut stations = Stations::new();
    for (number, cluster) in world.clusters.iter().enumerate() {
        for (position, node) in cluster.nodes.iter().enumerate() {
            let at = (number, position);
            // The proxy is on every node.
            network.serve(at, cluster.service())?;
            stations.add(network.pod(at), node.pod())?;
            stations.add(network.node(at), node.internal())?;
            stations.add(network.node(at), cluster.service())?;
        }
    }
    for host in &network.hosts {
        host.add_to(&mut stations)?;
    }
    Ok(stations)
}

/// Sends a packet for a pair, and waits as long as there is something to come.
pub(crate) fn ask(stations: &mut Stations, pair: &Pair, verdict: &Verdict) -> Fate {
    let number = stations.send(pair.from.1, target(pair));
    if verdict.is_answered == Expected::Always {
        return stations.wait(number, PATIENCE);
    }
    let fate = stations.wait(number, DOUBT);
    if verdict.is_seen(fate) {
        return fate;
    }
    stations.wait(number, PATIENCE)
}

fn target(pair: &Pair) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(pair.to.1), socket::PORT)
}
