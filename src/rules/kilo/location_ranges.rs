//! Location ranges: what a node offers beside its own, by `allowed-location-ips`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{
    CONTESTED_LOCATION_RANGE, IGNORED_LOCATION_RANGE, KiloSite, UNDECLARED_LOCATION_RANGE,
    annotate, annotated, run,
};
use crate::agent::location_ranges::Outranked;
use crate::diagnostic::{Label, Quoted};
use crate::fleet::{Fleet, Member};
use crate::kilo::id::SegmentId;
use crate::kilo::node::annotation;
use crate::mesh::Range;
use crate::net::{Cidr, Cover, Nest};
use crate::rules::membership::on_node;
use crate::rules::{Finding, Rule};
use crate::snapshot::Node;
use crate::text::{and_more, listed};

/// The value of a node's annotation.
struct Offer<'a> {
    node: &'a Node,
    /// The index of its segment.
    segment: usize,
    /// Its segment among those that Kilo counts.
    own: Option<SegmentId>,
    /// The ranges that Kilo reads, in order, each once.
    ranges: BTreeSet<Cidr>,
    /// The texts that Kilo ignores.
    ignored: Vec<&'a str>,
}

/// The number of ranges that a command names.
const NAMED_RANGES: usize = 16;

/// The number of ranges that are cut out of one for a command.
const CUT_OUT: usize = 256;

/// Something of a node's own.
#[derive(Clone, Copy)]
struct OfferClaim<'a> {
    cidr: Cidr,
    what: &'static str,
    node: &'a str,
    segment: usize,
}

/// Ranges of other clusters that this one sees, each with its owner.
type ForeignRanges<'f> = Cover<(&'f Member<'f>, &'f Range)>;

/// The ranges that nodes offer, each with the segment that does; none where several do.
type Offered = Nest<Option<SegmentId>>;

/// Returns findings about location ranges.
pub(super) fn findings(fleet: &Fleet, site: &KiloSite) -> Vec<Finding> {
    let offers = offers(site);
    if offers.is_empty() {
        return Vec::new();
    }
    let claims = Claims::collect(site);
    let cluster = &site.member.entry.name;
    let sources = fleet.sources(cluster).flat_map(|(_, source, _)| {
        let ranges = source.entry.networks.all().into_iter();
        ranges.map(move |range| (range.cidr, (source, range)))
    });
    let foreign: ForeignRanges = sources.collect();
    let declared: Vec<Cidr> = fleet
        .memberships(cluster)
        .flat_map(|it| it.entry.networks.all())
        .map(|range| range.cidr)
        .collect();
    let mut findings = Vec::new();
    let outranked = site
        .cluster()
        .topology
        .outranked_location_ranges()
        .into_iter()
        .map(|it| ((it.segment, it.range), it))
        .collect();
    let offered = offered(&offers);
    for offer in &offers {
        findings.extend(ignored(site, offer));
        findings.extend(self::outranked(site, &offers, offer, &outranked, &offered));
        findings.extend(contested_within(site, offer, &claims));
        findings.extend(contested_across(site, offer, &foreign));
        findings.extend(undeclared(site, offer, &declared, &foreign));
    }
    findings
}

fn offers<'f>(site: &KiloSite<'f>) -> Vec<Offer<'f>> {
    let segments = segment_of(site);
    let offers = site
        .nodes()
        .enumerate()
        .filter_map(|(index, (node, kilo))| {
            let is_lively = !kilo.stale && !site.excluded.contains(node.name.as_str());
            let text = annotated(node, annotation::ALLOWED_LOCATION_IPS).filter(|_| is_lively)?;
            let (mut ranges, mut ignored) = (BTreeSet::new(), Vec::new());
            for entry in text.split(',').filter(|entry| !entry.is_empty()) {
                match entry.parse() {
                    Ok(range) => drop(ranges.insert(range)),
                    Err(_) => ignored.push(entry),
                }
            }
            Some(Offer {
                node,
                segment: *segments.get(&index)?,
                own: site.cluster().topology.nodes.get(index)?.segment,
                ranges,
                ignored,
            })
        });
    offers.collect()
}

fn offered(offers: &[Offer]) -> Offered {
    let mut offered: BTreeMap<Cidr, Option<SegmentId>> = BTreeMap::new();
    for offer in offers {
        for range in &offer.ranges {
            let known = offered.entry(*range).or_insert(offer.own);
            *known = known.filter(|it| Some(*it) == offer.own);
        }
    }
    offered.into_iter().collect()
}

/// Returns which segment each node is in.
fn segment_of(site: &KiloSite) -> BTreeMap<usize, usize> {
    let formed = site.cluster().segments.formed.iter().enumerate();
    formed
        .flat_map(|(segment, formed)| formed.members.iter().map(move |it| (it.index(), segment)))
        .collect()
}

/// The ranges and addresses of nodes, for look-ups by address.
struct Claims<'a> {
    /// By first address.
    sorted: Vec<OfferClaim<'a>>,
    widest: Cover<OfferClaim<'a>>,
}

impl<'f> Claims<'f> {
    fn collect(site: &KiloSite<'f>) -> Self {
        let segments = segment_of(site);
        let nodes = site
            .nodes()
            .enumerate()
            .filter_map(|(index, it)| Some((*segments.get(&index)?, it)));
        let mut sorted: Vec<OfferClaim> = Vec::new();
        for (segment, (node, kilo)) in nodes {
            let wireguard = kilo.wireguard_ip();
            let host = |address: IpAddr| Cidr::host(address);
            let own = [
                (kilo.pod_cidr, "pod CIDR"),
                (kilo.internal_address().map(host), "internal address"),
                (wireguard.map(|it| host(it.address)), "WireGuard address"),
            ];
            sorted.extend(own.into_iter().filter_map(|(cidr, what)| {
                Some(OfferClaim {
                    cidr: cidr?,
                    what,
                    node: &node.name,
                    segment,
                })
            }));
        }
        sorted.sort_by_key(|claim| (claim.cidr.first(), claim.cidr.prefix_length()));
        let widest = sorted.iter().map(|claim| (claim.cidr, *claim)).collect();
        Self { sorted, widest }
    }

    /// Returns something of another segment that shares an address with `range`.
    ///
    /// An address is in at most as many distinct ranges as it has bits, so skipping a segment's own
    /// ranges is cheap for any annotation.
    fn of_others(&self, range: Cidr, segment: usize) -> Option<&OfferClaim<'f>> {
        let is_foreign = |claim: &&OfferClaim| claim.segment != segment;
        let around = || self.widest.holder(range.first()).map(|(_, claim)| claim);
        let start = self
            .sorted
            .partition_point(|it| it.cidr.first() < range.first());
        let inside = self.sorted.get(start..).unwrap_or_default().iter();
        inside
            .take_while(|claim| claim.cidr.first() <= range.last())
            .find(is_foreign)
            .or_else(|| around().filter(is_foreign))
    }
}

fn on_offer(rule: &'static Rule, site: &KiloSite, offer: &Offer, message: String) -> Finding {
    let place = site.annotation(offer.node, annotation::ALLOWED_LOCATION_IPS);
    on_node(rule, site.member, &offer.node.name, message, &place)
}

fn ignored(site: &KiloSite, offer: &Offer) -> Option<Finding> {
    let spaced = offer
        .ignored
        .iter()
        .any(|entry| entry.trim().parse::<Cidr>().is_ok());
    let entries = offer.ignored.iter().map(|entry| Quoted(entry).to_string());
    if offer.ignored.is_empty() {
        return None;
    }
    let message = format!(
        "Kilo ignores entries of {} that are not ranges: {}",
        annotation::ALLOWED_LOCATION_IPS,
        listed(entries)
    );
    let mut finding = on_offer(&IGNORED_LOCATION_RANGE, site, offer, message);
    finding.help = Some(if spaced {
        "separate the ranges with commas, without spaces".to_owned()
    } else {
        "write ranges such as `172.31.5.0/24`, and single addresses such as `172.31.6.1/32`"
            .to_owned()
    });
    Some(finding)
}

fn contested_within(site: &KiloSite, offer: &Offer, claims: &Claims) -> Option<Finding> {
    let mut contested = offer.ranges.iter().filter_map(|range| {
        let claim = claims.of_others(*range, offer.segment)?;
        Some((*range, *claim))
    });
    let (
        range,
        OfferClaim {
            cidr, what, node, ..
        },
    ) = contested.next()?;
    let message = format!(
        "location range {range} overlaps {what} {cidr} of {}, which is in another location{}",
        Quoted(node),
        and_more(contested.count(), "")
    );
    Some(on_offer(&CONTESTED_LOCATION_RANGE, site, offer, message))
}

/// Reports ranges that Kilo drops because nodes of a later segment offer overlapping ones.
fn outranked(
    site: &KiloSite,
    offers: &[Offer],
    offer: &Offer,
    outranked: &BTreeMap<(SegmentId, Cidr), Outranked>,
    offered: &Offered,
) -> Option<Finding> {
    let own = &site.cluster().topology;
    let segment = offer.own?;
    let ranges = offer.ranges.iter();
    let mut mine = ranges.filter_map(|range| outranked.get(&(segment, *range)));
    let first = mine.next()?;
    let mut others = offers.iter();
    let other =
        others.find(|it| it.own == Some(first.by) && it.ranges.contains(&first.stronger))?;
    let key = |segment: SegmentId| own.segments[segment].key.as_str();
    let message = format!(
        "Kilo drops location range {}: it overlaps {} of {}, and segment {} sorts after {}{}",
        first.range,
        first.stronger,
        Quoted(&other.node.name),
        Quoted(key(first.by)),
        Quoted(key(first.segment)),
        and_more(mine.count(), "")
    );
    let mut finding = on_offer(&CONTESTED_LOCATION_RANGE, site, offer, message);
    finding.labels.push(Label {
        place: site.annotation(other.node, annotation::ALLOWED_LOCATION_IPS),
        text: "Kilo keeps this range".to_owned(),
    });
    let is_wider = first.stronger.contains(first.range) && first.stronger != first.range;
    let changed = if is_wider { other } else { offer };
    finding.help = Some(disjoint(offered, changed));
    Some(finding)
}

/// Returns the command that takes the ranges of other segments out of what a node offers.
fn disjoint(offered: &Offered, changed: &Offer) -> String {
    let is_others = |known: &Option<SegmentId>| known.is_none() || *known != changed.own;
    let mut left: Vec<Cidr> = Vec::new();
    for range in &changed.ranges {
        if offered.around(*range).any(|(_, known)| is_others(known)) {
            continue;
        }
        let inside = offered.inside(*range).filter(|(_, known)| is_others(known));
        // Every one that is cut out costs as much as all that were before it.
        let inside: Vec<Cidr> = inside.map(|it| it.0).take(CUT_OUT + 1).collect();
        if inside.len() <= CUT_OUT {
            left.extend(range.without(&inside));
        }
        if CUT_OUT < inside.len() || NAMED_RANGES < left.len() {
            let name = Quoted(&changed.node.name);
            return format!("remove the ranges of other segments from the annotation of {name}");
        }
    }
    let key = annotation::ALLOWED_LOCATION_IPS;
    if left.is_empty() {
        return run(&annotate(changed.node, &format!("{key}-")));
    }
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    run(&annotate(
        changed.node,
        &format!("{key}={}", left.join(",")),
    ))
}

fn contested_across(site: &KiloSite, offer: &Offer, foreign: &ForeignRanges) -> Option<Finding> {
    let mut contested = offer.ranges.iter().filter_map(|range| {
        let (cidr, &(owner, declared)) = foreign.meeting(*range)?;
        Some((*range, cidr, owner, declared))
    });
    let (range, cidr, owner, declared) = contested.next()?;
    let message = format!(
        "location range {range} overlaps {cidr} of {}: Kilo drops it in favour of the Peer{}",
        owner.entry.name,
        and_more(contested.count(), "")
    );
    let mut finding = on_offer(&CONTESTED_LOCATION_RANGE, site, offer, message);
    finding.labels.push(Label {
        place: declared.place.clone(),
        text: "declared here".to_owned(),
    });
    Some(finding)
}

fn undeclared(
    site: &KiloSite,
    offer: &Offer,
    declared: &[Cidr],
    foreign: &ForeignRanges,
) -> Option<Finding> {
    let is_undeclared = |range: &&Cidr| {
        !declared.iter().any(|it| it.contains(**range)) && foreign.meeting(**range).is_none()
    };
    let ranges: Vec<&Cidr> = offer.ranges.iter().filter(is_undeclared).collect();
    if ranges.is_empty() {
        return None;
    }
    let message = format!(
        "location range {} is not declared, so only its own cluster reaches it",
        listed(ranges.iter())
    );
    Some(on_offer(&UNDECLARED_LOCATION_RANGE, site, offer, message))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const FIELDS: &str =
        "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24, additionalCIDRs: [172.31.0.0/16]";

    /// Returns the findings if one of two nodes, each a location of its own, offers this.
    fn report_on(ranges: &str) -> String {
        let node = |name: &str, number: u8, key: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity=location internal-ip=192.168.{number}.1/24 location={name}"
            )
        };
        let nodes = format!(
            "{} allowed-location-ips={ranges}\n{}",
            node("a", 1, "A"),
            node("b", 2, "B")
        );
        report(
            super::super::findings,
            &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn what_kilo_cannot_read_is_reported() {
        insta::assert_snapshot!(report_on("172.31.5.0/24,·172.31.6.0/24,172.31.7.1"), @"
        warning[ignored-location-range] east/a: Kilo ignores entries of kilo.squat.ai/allowed-location-ips that are not ranges: ` 172.31.6.0/24`, `172.31.7.1`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          help: separate the ranges with commas, without spaces
        ");
        insta::assert_snapshot!(report_on("nonsense"), @"
        warning[ignored-location-range] east/a: Kilo ignores entries of kilo.squat.ai/allowed-location-ips that are not ranges: `nonsense`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          help: write ranges such as `172.31.5.0/24`, and single addresses such as `172.31.6.1/32`
        ");
    }

    #[test]
    fn quiet_on_declared_ranges_and_empty_entries() {
        assert_eq!(report_on("172.31.5.0/24,172.31.6.1/32"), "");
        assert_eq!(report_on("172.31.5.9/24,"), "");
        assert_eq!(report_on(""), "");
    }

    #[test]
    fn nodes_of_another_location_are_reported_and_one_s_own_are_not() {
        let contested = |ranges: &str| {
            let report = report_on(ranges);
            let lines = report.lines().filter(|line| line.contains("contested"));
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(contested("192.168.0.0/16"), @"warning[contested-location-range] east/a: location range 192.168.0.0/16 overlaps internal address 192.168.2.1/32 of `b`, which is in another location");
        insta::assert_snapshot!(contested("10.1.2.128/25,10.101.0.2/32"), @"warning[contested-location-range] east/a: location range 10.1.2.128/25 overlaps pod CIDR 10.1.2.0/24 of `b`, which is in another location (and 1 more)");
        assert_eq!(contested("192.168.1.0/24,10.1.1.0/24"), "");
    }

    /// Returns what is found where both of two nodes, each a location of its own, offer ranges.
    fn of_both(a: &str, b: &str) -> String {
        let node = |name: &str, number: u8, key: &str, ranges: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity=location internal-ip=192.168.{number}.1/24 location={name} allowed-location-ips={ranges}\n"
            )
        };
        let nodes = node("a", 1, "A", a) + &node("b", 2, "B", b);
        report(
            super::super::findings,
            &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn of_overlapping_ranges_the_later_segment_keeps_its_own() {
        insta::assert_snapshot!(of_both("172.31.0.0/22", "172.31.1.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.0.0/22: it overlaps 172.31.1.0/24 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23`
        ");
        insta::assert_snapshot!(of_both("172.31.1.0/24", "172.31.0.0/22,172.31.9.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.1.0/24: it overlaps 172.31.0.0/22 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node b --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23,172.31.9.0/24`
        ");
        insta::assert_snapshot!(of_both("172.31.1.0/24", "172.31.1.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.1.0/24: it overlaps 172.31.1.0/24 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips-`
        ");
        assert!(
            of_both("172.31.0.0/16", "172.31.255.255/32").contains("help: run `kubectl annotate")
        );
        let many = of_both("172.0.0.0/8", "172.31.255.255/32");
        assert!(
            many.contains("help: remove the ranges of other segments"),
            "{many}"
        );
        assert_eq!(of_both("172.31.0.0/24", "172.31.1.0/24"), "");
    }

    #[test]
    fn ranges_of_other_clusters_are_reported() {
        insta::assert_snapshot!(report_on("10.2.0.0/24"), @"
        warning[contested-location-range] east/a: location range 10.2.0.0/24 overlaps 10.2.0.0/16 of west: Kilo drops it in favour of the Peer
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          mesh.yaml#/spec/clusters/1/podCIDRs/0 declared here
        ");
    }
}
