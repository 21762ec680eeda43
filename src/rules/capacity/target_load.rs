//! The load of targets: by the plan alone, without a proof.

use crate::capacity::{Bundle, FileLoad, Load, NodeLoad};
use crate::fleet::Fleet;
use crate::kilo::peer::translation::AllowedIp;
use crate::manifest::PeerSetTexts;
use crate::plan::{PeerSet, Plan, Target};

/// Returns the load of every target of a plan, in order. The texts of its sets of Peers are given.
///
/// Ranges with several claims, which Kilo drops, are not considered: a plan has none.
pub fn loads(fleet: &Fleet, plan: &Plan, texts: &PeerSetTexts) -> Vec<Load> {
    let bundles = plan.peer_sets.map(bundle);
    let load = |target: &Target| {
        let sets = || target.peer_sets.iter().copied();
        Load {
            nodes: nodes(fleet, target),
            bundles: sets().map(|it| bundles[it].clone()).collect(),
            files: Some(FileLoad {
                entries: target.peer_sets.len() + 1,
                largest: sets().map(|it| texts[it].len()).max().unwrap_or_default(),
            }),
        }
    };
    plan.targets.iter().map(load).collect()
}

fn bundle(peer_set: &PeerSet) -> Bundle {
    let mut bundle = Bundle { name: peer_set.name.to_string(), ..Bundle::default() };
    for peer in &peer_set.peers {
        let ranges = peer.allowed_ips.iter().copied().map(AllowedIp::new);
        bundle.add(ranges, peer.endpoint.as_ref());
    }
    bundle
}

fn nodes(fleet: &Fleet, target: &Target) -> NodeLoad {
    let member = fleet.memberships(&target.cluster).next();
    let own = member.map(|member| NodeLoad::count(&member.cluster.topology));
    own.unwrap_or_default()
}
