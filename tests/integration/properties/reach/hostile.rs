//! What a hostile cluster could do, against looking at every address by itself.

use super::*;
use clustermesh::agent::model::{RangeHolder, TunnelClaim};
use clustermesh::kilo::id::SegmentId;
use clustermesh::kilo::topology::Leader;
use clustermesh::packet::{Doubt, Ending, Step};
use clustermesh::proof::bounded_list::BoundedList;
use clustermesh::proof::hostile::{Exposure, Hold, Hostile, Whose, assume_hostile};

type Keys = BTreeSet<[u8; 32]>;

fn keys(site: &Site) -> Keys {
    let nodes = site.model.topology.nodes.iter();
    nodes.filter_map(|it| it.kilo.key).collect()
}

fn has(site: &Site, keys: &Keys, claim: &TunnelClaim) -> bool {
    let key = site.model.key(claim.tunnel);
    key.is_some_and(|key| keys.contains(&key))
}

/// Whether the leader of a segment gives an address to one of some keys, and whether for certain.
fn held(site: &Site, segment: SegmentId, keys: &Keys, address: IpAddr) -> Option<bool> {
    let mut is_certain = true;
    for slot in site.model.tunnels.holding(address) {
        match site.model.holder(segment, slot) {
            None => {}
            Some(RangeHolder::Certain(claim)) => {
                return has(site, keys, &claim).then_some(is_certain);
            }
            Some(RangeHolder::Ambiguous(claims)) => {
                if claims.iter().any(|it| has(site, keys, it)) {
                    return Some(false);
                }
                is_certain = false;
            }
        }
    }
    None
}

/// The better of two answers.
fn either(found: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    found.flatten().max()
}

fn believed(site: &Site, keys: &Keys, address: IpAddr) -> Option<bool> {
    let segments = site.model.topology.segments.ids();
    either(segments.map(|segment| held(site, segment, keys, address)))
}

/// The destination of a node's packet, computed from its path; none if the path does not contain
/// it.
#[expect(clippy::option_option, reason = "an answer, and whether there is one")]
fn sent(fabric: &Fabric, from: NodeRef, hostile: SiteId, address: IpAddr) -> Option<Option<bool>> {
    let site = &fabric.sites[from.site];
    let keys = keys(&fabric.sites[hostile]);
    let way = fabric.way(&Packet {
        from,
        source: "10.99.99.99".parse().unwrap(),
        to: Goal::Network(hostile),
        destination: address,
        session: Session::Open,
    });
    let leader = site.leader(site.segment(from.node)?);
    let is_led = matches!(leader, Leader::Certain(_));
    let is_selected = way
        .steps
        .iter()
        .any(|step| matches!(step, Step::Selected { receiver, .. } if receiver.site == hostile));
    if is_selected {
        return Some(Some(is_led));
    }
    match way.ending {
        Ending::Ambiguous { doubt: Doubt::Key { key }, .. } => {
            Some(fabric.holders(&key).iter().any(|it| it.site == hostile).then_some(is_led))
        }
        Ending::Ambiguous { at, doubt: Doubt::Range { claims, .. } } => {
            let segment = site.segment(at.node)?;
            let mut claims = claims.iter();
            let is_sent = |it: &TunnelClaim| {
                has(site, &keys, it) && site.model.is_configured(segment, it.tunnel)
            };
            claims.any(is_sent).then_some(Some(false))
        }
        // A node of its own cluster, as far as the path shows: the key may belong to another one.
        Ending::LocalShadow { at, range: None } if site.owner(address) != Some(Owner::Services) => {
            let held = held(site, site.segment(at.node)?, &keys, address);
            Some(held.map(|it| it && is_led))
        }
        _ => Some(None),
    }
}

fn found(holds: &BoundedList<Hold>, address: IpAddr) -> Option<&Hold> {
    let span = Span::host(address);
    let mut found = holds.listed().iter().filter(|it| it.span.holds(span));
    let first = found.next();
    assert!(found.next().is_none(), "twice: {address}");
    first
}

/// Addresses between any two of which something may change.
fn addresses(fabric: &Fabric) -> Vec<IpAddr> {
    let all =
        |range: &str| AddressBlock { owner: Owner::Pool, span: Span::new(range.parse().unwrap()) };
    let both = [all("0.0.0.0/0"), all("::/0")];
    both.iter().flat_map(|it| samples(fabric, *it)).collect()
}

fn whose(fabric: &Fabric, hostile: SiteId, address: IpAddr) -> Whose {
    let declared = fabric.sites[hostile].entry.networks.all();
    if declared.iter().any(|it| it.cidr.holds(address)) {
        return Whose::Declared;
    }
    let mut others = fabric.owners(address);
    others.retain(|it| it.0 != hostile);
    if others.is_empty() { Whose::Nobody } else { Whose::Others(others) }
}

/// Compares the results about a cluster with every address.
fn hold(fabric: &Fabric, hostile: SiteId, exposure: &Exposure) -> Result<(), TestCaseError> {
    let site = &fabric.sites[exposure.site];
    let keys = keys(&fabric.sites[hostile]);
    for address in addresses(fabric) {
        let hold = found(&exposure.believed, address);
        let brute = believed(site, &keys, address);
        prop_assert_eq!(
            hold.map(|it| it.is_certain),
            brute,
            "{} believes {}",
            site.cluster,
            address
        );
        if let Some(hold) = hold {
            prop_assert_eq!(&hold.whose, &whose(fabric, hostile, address));
            prop_assert!(has(site, &keys, &hold.claim));
        }
        let attracted = found(&exposure.attracted, address);
        prop_assert!(attracted.is_none() || hold.is_some(), "sent and not believed: {}", address);
        if site.has_refused_routes() {
            prop_assert!(attracted.is_none_or(|it| !it.is_certain));
            continue;
        }
        let nodes = site.model.topology.nodes.ids();
        let ready = nodes.filter(|it| site.segment(*it).is_some());
        let ways: Vec<Option<Option<bool>>> = ready
            .map(|node| sent(fabric, NodeRef { site: exposure.site, node }, hostile, address))
            .collect();
        let brute = either(ways.iter().copied().flatten());
        let report = attracted.map(|it| it.is_certain);
        let is_open = report == Some(false) && ways.contains(&None);
        prop_assert!(
            report == brute || is_open,
            "{} sends {}: {:?}, {:?}",
            site.cluster,
            address,
            report,
            brute
        );
    }
    Ok(())
}

/// Holds what gets through a cluster to a third against every address.
fn hold_relays(fabric: &Fabric, hostile: SiteId, exposure: &Exposure) -> Result<(), TestCaseError> {
    let second = &fabric.sites[exposure.site];
    let root = keys(&fabric.sites[hostile]);
    for third in fabric.sites.ids().filter(|it| ![hostile, exposure.site].contains(it)) {
        let relay = exposure.relays.listed().iter().find(|it| it.site == third);
        let third = &fabric.sites[third];
        let there = keys(third);
        let is_routed = addresses(fabric).iter().any(|it| believed(second, &there, *it).is_some());
        let is_heard = !exposure.believed.is_empty();
        prop_assert_eq!(relay.is_some(), is_routed && is_heard);
        let Some(relay) = relay else { continue };
        for address in addresses(fabric) {
            let by = |at: NodeRef, is_enough: &dyn Fn(Option<bool>) -> bool| {
                let segment = second.segment(at.node);
                let led = segment.filter(|it| second.leader(*it).node() == at.node);
                let key = fabric.node(at).kilo.key;
                let own = Keys::from_iter(key);
                let segments = third.model.topology.segments.ids();
                led.is_some_and(|it| held(second, it, &root, address).is_some())
                    && segments.clone().all(|it| is_enough(held(third, it, &own, address)))
                    && 0 < segments.len()
            };
            let nodes =
                second.model.topology.nodes.ids().map(|node| NodeRef { site: exposure.site, node });
            let surely = nodes.clone().any(|at| by(at, &|it| it == Some(true)));
            let passage =
                relay.passages.listed().iter().find(|it| it.span.holds(Span::host(address)));
            prop_assert!(passage.is_some() || !surely, "no way with {}", address);
            if let Some(passage) = passage {
                prop_assert_eq!(passage.by.site, exposure.site);
                let key = fabric.node(passage.by).kilo.key;
                let taken = believed(third, &Keys::from_iter(key), address);
                prop_assert!(taken.is_some(), "no way with {}", address);
            }
        }
    }
    Ok(())
}

/// A range without an owner.
const STOLEN: &str = "10.77.0.0/16";

/// Gives every node a key of its own.
fn apart(mut world: World) -> World {
    for (i, cluster) in world.clusters.iter_mut().enumerate() {
        // What is rendered was declared so.
        cluster.services = None;
        for (position, node) in cluster.nodes.iter_mut().enumerate() {
            node.key = u8::try_from(16 * i + position).unwrap();
        }
    }
    world
}

fn hostilities(fabric: &Fabric, input: &Input) -> Vec<Hostile> {
    let sites: Vec<SiteId> = fabric.sites.ids().collect();
    assume_hostile(fabric, &input.meshes, &sites, usize::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_address_is_somebody_s_as_the_intervals_say(world in world()) {
        let input = input(&world);
        let fabric = fabric(&input);
        for hostile in hostilities(&fabric, &input) {
            prop_assert_eq!(hostile.exposures.len() + 1, fabric.sites.len());
            for exposure in &hostile.exposures {
                hold(&fabric, hostile.site, exposure)?;
                hold_relays(&fabric, hostile.site, exposure)?;
            }
        }
    }

    #[test]
    fn what_is_rendered_contains_everybody(world in world()) {
        let mut world = apart(world);
        world.faults.clear();
        let input = input(&world);
        let fabric = fabric(&input);
        for hostile in hostilities(&fabric, &input) {
            prop_assert!(hostile.breaches().is_empty(), "{:#?}", hostile.breaches());
        }
    }

    #[test]
    fn a_range_too_many_is_a_breach(world in world(), index in any::<Index>()) {
        let mut world = apart(world);
        world.faults = vec![(index, index, Fault::Add(STOLEN.to_owned()))];
        let input = input(&world);
        let fabric = fabric(&input);
        let stolen = Span::new(STOLEN.parse().unwrap());
        let mut thieves = Vec::new();
        for (target, site) in fabric.sites.numbered() {
            let mut tunnels = site.model.tunnels.iter();
            if let Some((_, claims)) = tunnels.find(|(range, _)| Span::new(*range) == stolen)
                && !site.model.topology.segments.is_empty()
            {
                let key = site.model.key(claims[0].tunnel).unwrap();
                thieves.push((fabric.holders(&key)[0].site, target));
            }
        }
        for hostile in hostilities(&fabric, &input) {
            for exposure in &hostile.exposures {
                let mut believed = exposure.believed.listed().iter();
                let is_reported = believed.any(|it| it.span == stolen && it.whose == Whose::Nobody);
                let is_thief = thieves.contains(&(hostile.site, exposure.site));
                prop_assert_eq!(is_reported, is_thief);
            }
            let is_thief = thieves.iter().any(|it| it.0 == hostile.site);
            prop_assert_eq!(hostile.breaches().is_empty(), !is_thief);
        }
    }
}
