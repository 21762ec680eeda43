//! The Peers of a cluster as its Kilo holds them: which it accepts, and what each of them keeps
//! (`kilo.md` §2.1 to §2.4).

use std::net::IpAddr;

use super::applied::{Applied, File};
use crate::kilo::peer::Translation;
use crate::kilo::peer::translation::{AllowedIp, Fault};
use crate::net::{Family, Interface};
use crate::place::Place;

/// All Peers of a cluster.
#[derive(Clone, Debug)]
pub struct Peers<'a> {
    /// By name, bytewise; of one name in the order of the manifests.
    pub all: Vec<Peer<'a>>,
    /// What more than one of them wants to be.
    pub contests: Vec<Contest>,
}

/// A Peer of the manifests.
#[derive(Clone, Debug)]
pub struct Peer<'a> {
    /// Where it is written.
    pub file: &'a File,
    /// What is written.
    pub applied: &'a Applied,
    /// What becomes of it.
    pub standing: Standing<'a>,
}

/// What becomes of a Peer.
#[derive(Clone, Debug)]
pub enum Standing<'a> {
    /// It never gets to WireGuard, and why.
    Faulty(&'a Fault),
    /// `Peer.Ready` is false: no allowed IP, or the zero key.
    NotReady,
    /// Configured.
    Certain(Share<'a>),
    /// Configured unless another one is in its stead: the number of the contest.
    Contested(Share<'a>, usize),
}

/// What a Peer keeps after `deduplicatePeerIPs`.
#[derive(Clone, Debug)]
pub struct Share<'a> {
    /// What it is.
    pub translation: &'a Translation,
    /// What it keeps of its allowed IPs, in their order.
    pub kept: Vec<Kept>,
    /// What went to a Peer whose name is earlier.
    pub lost: Vec<Lost>,
}

/// An allowed IP that a Peer keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kept {
    /// Its index in the spec.
    pub index: usize,
    /// The range.
    pub allowed: AllowedIp,
    /// Whether it keeps it whatever the contests before it come to.
    pub is_certain: bool,
}

/// An allowed IP that another Peer has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    /// Its index in the spec.
    pub index: usize,
    /// The Peer that has it.
    pub to: usize,
}

/// More than one Peer where there is room for one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contest {
    /// What they have in common.
    pub over: Prize,
    /// The Peers.
    pub peers: Vec<usize>,
}

/// What only one Peer can have.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Prize {
    /// The name: the last that is applied is the object.
    Name,
    /// The key: `Mesh.peers` has one entry for it, that of the last event (`kilo.md` §2.2).
    Key,
}

impl<'a> Peers<'a> {
    /// Reads the Peers of a cluster's manifests.
    pub fn of(files: &'a [File]) -> Self {
        let mut all = translated(files);
        let contests = contests(&mut all);
        deduplicate(&mut all);
        Self { all, contests }
    }
}

impl<'a> Peer<'a> {
    /// Returns what it keeps, if it is one to Kilo.
    pub fn share(&self) -> Option<&Share<'a>> {
        match &self.standing {
            Standing::Certain(share) | Standing::Contested(share, _) => Some(share),
            Standing::Faulty(_) | Standing::NotReady => None,
        }
    }

    fn share_mut(&mut self) -> Option<(&mut Share<'a>, bool)> {
        match &mut self.standing {
            Standing::Certain(share) => Some((share, true)),
            Standing::Contested(share, _) => Some((share, false)),
            Standing::Faulty(_) | Standing::NotReady => None,
        }
    }

    /// Returns the place of the object.
    pub fn place(&self) -> Place {
        self.file.place(&self.applied.spot)
    }
}

/// Takes every Peer through admission and `Peer.Ready` (`kilo.md` §2.1), and sorts by name.
fn translated(files: &[File]) -> Vec<Peer<'_>> {
    let all = files
        .iter()
        .flat_map(|file| file.content.peers.iter().map(move |it| (file, it)));
    let mut peers: Vec<Peer> = all
        .map(|(file, applied)| Peer {
            file,
            applied,
            standing: match &applied.spec {
                Err(fault) => Standing::Faulty(fault),
                Ok(translation) if !translation.is_ready() => Standing::NotReady,
                Ok(translation) => Standing::Certain(Share {
                    translation,
                    kept: Vec::new(),
                    lost: Vec::new(),
                }),
            },
        })
        .collect();
    peers.sort_by_key(|it| &*it.applied.name);
    peers
}

/// Finds the Peers of one name and, among those that an agent keeps in its memory, of one key. It keeps
/// them by key whether they are ready or not, so that one without a range can be in the way of one with
/// some.
///
/// A Peer in two contests stands in that for the name: it comes first.
fn contests(peers: &mut [Peer]) -> Vec<Contest> {
    let names: Vec<usize> = (0..peers.len()).collect();
    let runs = runs(&names, |peer| Some(&*peers.get(peer)?.applied.name));
    let mut contests = Vec::new();
    enter(&mut contests, peers, Prize::Name, runs);
    let key = |peer: usize| Some(peers.get(peer)?.applied.spec.as_ref().ok()?.key);
    let mut keys = names;
    keys.retain(|&peer| key(peer).is_some());
    keys.sort_by_key(|&peer| key(peer));
    let runs = self::runs(&keys, key);
    enter(&mut contests, peers, Prize::Key, runs);
    contests
}

/// Returns the runs of `order` in which more than one have the same.
fn runs<T: PartialEq>(order: &[usize], of: impl Fn(usize) -> T) -> Vec<Vec<usize>> {
    let runs = order.chunk_by(|a, b| of(*a) == of(*b));
    let runs = runs.filter(|run| 1 < run.len());
    runs.map(<[usize]>::to_vec).collect()
}

/// Adds a contest for each run in which there is a Peer that Kilo would configure.
fn enter(contests: &mut Vec<Contest>, peers: &mut [Peer], over: Prize, runs: Vec<Vec<usize>>) {
    let is_ready = |peers: &[Peer], peer: &usize| {
        let peer = peers.get(*peer);
        peer.is_some_and(|it| it.share().is_some())
    };
    for run in runs {
        if run.iter().any(|peer| is_ready(peers, peer)) {
            for &peer in &run {
                contest(peers, peer, contests.len());
            }
            contests.push(Contest { over, peers: run });
        }
    }
}

fn contest(peers: &mut [Peer], peer: usize, number: usize) {
    let Some(peer) = peers.get_mut(peer) else {
        return;
    };
    peer.standing = match std::mem::replace(&mut peer.standing, Standing::NotReady) {
        Standing::Certain(share) => Standing::Contested(share, number),
        other => other,
    };
}

/// Gives each range to the first Peer by name that has it (`deduplicatePeerIPs`, `kilo.md` §2.4).
///
/// What is compared is what is printed: host bits count, and of one Peer's equal ranges the first is
/// kept. Of a contested Peer nobody knows whether it is there, so that the next one may have it too.
fn deduplicate(peers: &mut [Peer]) {
    // An interface, small enough to be sorted quickly, then the Peer and the index.
    let mut wanted: Vec<(Printed, usize, usize)> = Vec::new();
    for (number, peer) in peers.iter().enumerate() {
        let ranges = peer.share().map(|it| &it.translation.allowed_ips);
        let ranges = ranges.into_iter().flatten().enumerate();
        wanted.extend(ranges.map(|(index, range)| (printed(range), number, index)));
    }
    wanted.sort_unstable();
    for run in wanted.chunk_by(|a, b| a.0 == b.0) {
        let mut owner: Option<(usize, bool)> = None;
        for &(_, number, index) in run {
            let Some((share, is_certain)) = peers.get_mut(number).and_then(Peer::share_mut) else {
                continue;
            };
            let Some(&allowed) = share.translation.allowed_ips.get(index) else {
                continue;
            };
            match owner {
                Some((to, is_owned)) if is_owned || to == number => {
                    share.lost.push(Lost { index, to });
                }
                _ => {
                    share.kept.push(Kept {
                        index,
                        allowed,
                        is_certain: is_certain && owner.is_none(),
                    });
                    owner = Some((number, is_certain));
                }
            }
        }
    }
    for (share, _) in peers.iter_mut().filter_map(Peer::share_mut) {
        share.kept.sort_unstable_by_key(|it| it.index);
        share.lost.sort_unstable_by_key(|it| it.index);
    }
}

/// A range as it is printed: family, address and length.
type Printed = (Family, u128, u8);

fn printed(range: &AllowedIp) -> Printed {
    let Interface { address, network } = range.interface;
    let number = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    (network.family(), number, network.prefix_length())
}
