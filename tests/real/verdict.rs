//! Verdicts: the results of the library for pairs, and whether packets confirm them.

use std::net::Ipv4Addr;

use clustermesh::agent::fabric::{Fabric, SitePair};
use clustermesh::net::Cidr;
use clustermesh::net::prefixes::Span;
use clustermesh::packet::Ending;
use clustermesh::packet::trace::{End, EndFinder, Trace};
use clustermesh::proof::reach::{AddressBlock, ClassVerdict, Proven, Reach};
use clustermesh::proof::verify::{Asked, verify};

use crate::applied::{applied, site};
use crate::pair::Pair;
use crate::probe::Fate;
use crate::rendered::meshes;
use crate::world::{Manifests, World};

/// The results of the library for a mesh.
pub(crate) struct Verdicts {
    /// The result of `trace` for each pair.
    pub(crate) pairs: Vec<Verdict>,
    /// The result of `verify`.
    pub(crate) whole: Whole,
}

/// The results of the library for a pair.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// The name of the ending.
    pub(crate) name: &'static str,
    /// All that it knows of that.
    pub(crate) ending: String,
    /// Whether the packet gets there.
    pub(crate) arrives: Expected,
    /// Whether the answer gets back.
    pub(crate) is_answered: Expected,
}

/// Whether something comes true.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    Always,
    Never,
    /// Not in each order.
    Sometimes,
    /// That is not reported.
    Unsaid,
}

/// The results of the library for the whole mesh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    /// Whether every promise of a link holds.
    pub(crate) keeps: bool,
    /// Whether anything reaches what no link promises.
    pub(crate) leaks: bool,
}

impl Verdict {
    fn new(trace: &Trace) -> Self {
        let expected = |ending: &Ending| match ending {
            Ending::Delivered => Expected::Always,
            Ending::Ambiguous { .. } => Expected::Sometimes,
            _ => Expected::Never,
        };
        let to = trace.packet.to.site();
        let arrives = match &trace.there.ending {
            // A node of the same cluster may hand it on over their LAN. It is enough that there is no
            // answer to it.
            Ending::StolenBy { thief: Some(thief), .. } if thief.site == to => Expected::Unsaid,
            ending => match expected(ending) {
                Expected::Sometimes => Expected::Unsaid,
                certain => certain,
            },
        };
        Self {
            name: trace.verdict_name(),
            ending: format!("{:#?}", trace.ending()),
            arrives,
            is_answered: expected(trace.ending()),
        }
    }

    /// Returns whether all that is to come has come, so that nothing more is to be waited for.
    pub(crate) fn is_seen(&self, fate: Fate) -> bool {
        let is_there = |expected, seen| seen || expected != Expected::Always;
        is_there(self.arrives, fate.arrived) && is_there(self.is_answered, fate.answered)
    }

    /// Returns whether this is what became of the packets that were sent, one in each order, and of
    /// those that followed when all tunnels were open.
    pub(crate) fn agrees(&self, fates: &[Fate], later: &[Fate]) -> bool {
        let later = if self.name == "no-initiator" {
            // Once the other side has called, there is a tunnel.
            &[]
        } else {
            later
        };
        let agrees = |expected, seen: fn(&Fate) -> bool| match expected {
            Expected::Always => fates.iter().all(seen),
            Expected::Never => !fates.iter().chain(later).any(seen),
            Expected::Sometimes => 1 < fates.len() && !fates.iter().all(seen),
            Expected::Unsaid => true,
        };
        !fates.is_empty()
            && agrees(self.arrives, |it| it.arrived)
            && agrees(self.is_answered, |it| it.answered)
    }
}

/// Returns manifests whose Peers all have a keepalive.
///
/// Packets are sent within seconds. A tunnel that only one side can open works for that long, and is lost
/// after minutes without a keepalive (`flapping`).
pub(crate) fn kept_alive(text: &str) -> String {
    let peers = text.split_inclusive("---\n").map(|peer| {
        if peer.contains("persistentKeepalive:") {
            peer.to_owned()
        } else {
            peer.replacen("\nspec:\n", "\nspec:\n  persistentKeepalive: 25\n", 1)
        }
    });
    peers.collect()
}

/// Asks the library.
///
/// # Errors
/// The results for one packet and for all packets together differ.
pub(crate) fn verdicts(
    world: &World,
    manifests: &Manifests,
    pairs: &[Pair],
) -> Result<Verdicts, String> {
    let meshes = meshes(&world.mesh());
    let snapshots = world.snapshots();
    let files = manifests.iter().flat_map(|(cluster, files)| {
        let files = files.iter();
        files.map(move |(name, text)| (format!("{cluster}/{name}"), kept_alive(text)))
    });
    let files = applied(files);
    let entries = meshes[0].all_entries();
    let sites = entries.map(|it| site(it, &snapshots, &files));
    let fabric = Fabric::new(sites.collect());
    let reach = Reach::new(&fabric, u64::MAX);
    let asked = Asked { meshes: &meshes, lists_undeclared: false, allowed: None };
    let verification = verify(&reach, asked);
    let pairs = pairs.iter().map(|pair| verdict(&reach, pair));
    Ok(Verdicts {
        pairs: pairs.collect::<Result<_, _>>()?,
        whole: Whole {
            keeps: verification.failures.is_empty(),
            leaks: !verification.leaks.is_empty(),
        },
    })
}

/// Follows one packet, and checks whether the proof for all packets agrees with it.
fn verdict(reach: &Reach, pair: &Pair) -> Result<Verdict, String> {
    let fabric = reach.fabric;
    let mut finder = EndFinder::new(fabric);
    let mut end = |(cluster, address): &(String, Ipv4Addr)| {
        let name = format!("{cluster}/{address}");
        finder.find(&name, None).unwrap().end
    };
    let (from, to) = (end(&pair.from), end(&pair.to));
    let trace = fabric.trace(from, to).unwrap();
    let holds =
        |block: &AddressBlock, end: &End| block.span.holds(Span::new(Cidr::host(end.address)));
    let sites = SitePair { from: from.site, to: to.site };
    let mut classes: Vec<_> = reach
        .between(from.site, to.site, &mut Proven::default())
        .flat_map(|it| reach.follow(sites, &it))
        .collect();
    classes.retain(|it| {
        it.senders.iter().any(|it| holds(it, &from)) && it.receivers.iter().any(|it| holds(it, &to))
    });
    let mut found = classes.iter().flat_map(ClassVerdict::traces);
    // A range without a declared part is not a class.
    if classes.is_empty() || found.any(|it| it.verdict() == trace.verdict()) {
        return Ok(Verdict::new(&trace));
    }
    Err(format!("{pair}: {} alone, but among all packets {classes:#?}", trace.verdict_name()))
}
