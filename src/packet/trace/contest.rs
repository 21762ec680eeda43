//! Contests: how an exchange depends on which of several Peers with one key is configured.

use super::Trace;
use crate::agent::fabric::{Fabric, Site};
use crate::agent::model::TunnelClaim;
use crate::agent::peers::{ContestId, PeerId, PeerStanding, Won};
use crate::packet::{Doubt, Ending};

/// The largest number of contests of a cluster, and of Peers in each, that are tried: with more, the result
/// stays ambiguous.
const FEW: usize = 4;

/// The number of contests that are tried together.
const DEPTH: usize = 2;

impl Fabric<'_> {
    /// Returns the result of an ambiguous exchange if it arrives with every winner of the contest
    /// on which it depends.
    pub(super) fn whatever_wins(&self, trace: &Trace) -> Option<Trace> {
        let Ending::Ambiguous { at, doubt } = trace.ending() else {
            return None;
        };
        let site = self.site(at.site);
        let number = contest(site, doubt)?;
        let contest = &site.model.contests[number];
        let settled: usize = self.sites.iter().map(|it| it.won.len()).sum();
        let is_few =
            site.model.contests.len() <= FEW && contest.peers.len() <= FEW && settled < DEPTH;
        if !is_few || !contest.is_open(number, &site.model.peers) {
            return None;
        }
        let mut traces = Vec::new();
        for &by in &contest.peers {
            let won = Won { contest: number, by };
            let tried = self.after(at.site, won).exchange(trace.packet);
            if !tried.is_delivered() {
                return None;
            }
            traces.push(tried);
        }
        traces.into_iter().next()
    }
}

/// Returns the contest on which something depends.
fn contest(site: &Site, doubt: &Doubt) -> Option<ContestId> {
    let peers: Vec<PeerId> = match doubt {
        Doubt::Peers { peers } => peers.clone(),
        Doubt::Range { claims, .. } => claims.iter().filter_map(TunnelClaim::peer).collect(),
        Doubt::Nodes { .. } | Doubt::Key { .. } | Doubt::Refused(_) | Doubt::Leader => return None,
    };
    peers.into_iter().find_map(|peer| match site.model.peers[peer].standing {
        PeerStanding::Contested(_, number) => Some(number),
        _ => None,
    })
}
