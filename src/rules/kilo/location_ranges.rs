//! Location ranges: what a node offers beside its own, by `allowed-location-ips`.

use std::collections::BTreeMap;

use super::inspected_cluster::InspectedCluster;
use super::{
    CONTESTED_LOCATION_RANGE, IGNORED_LOCATION_RANGE, MASQUERADED_LOCATION_RANGE,
    UNDECLARED_LOCATION_RANGE,
};
use crate::agent::location_ranges::Outranked;
use crate::diagnostic::Quoted;
use crate::fleet::Fleet;
use crate::granularity::Granularity;
use crate::kilo::id::SegmentId;
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::plan::Plan;
use crate::rules::command::annotate;
use crate::rules::{Finding, Rule};
use crate::text::{and_more, listed, quoted};
use contestants::{Contestants, Offer, OfferChange, offers};

mod contestants;

/// Returns findings about location ranges, in order of node. Without a plan the Peers of the cluster are not known.
pub(super) fn findings(
    fleet: &Fleet,
    plan: Option<&Plan>,
    inspected: &InspectedCluster,
) -> Vec<Finding> {
    let offers = offers(inspected);
    if offers.is_empty() {
        return Vec::new();
    }
    let cluster = &inspected.member.entry.name;
    let declared = fleet.memberships(cluster);
    let declared = declared.flat_map(|it| it.entry.networks.all());
    let outranked = inspected.cluster().topology.outranked_location_ranges();
    let report = OfferReport {
        inspected,
        contestants: Contestants::new(fleet, plan, inspected, &offers),
        offers: &offers,
        declared: declared.map(|it| it.cidr).collect(),
        outranked: outranked.into_iter().map(|it| ((it.segment, it.range), it)).collect(),
    };
    let all = offers.iter().flat_map(|offer| {
        [
            report.ignored(offer),
            report.outranked(offer),
            report.owned_elsewhere(offer),
            report.foreign(offer),
            report.undeclared(offer),
            report.masqueraded(offer),
        ]
    });
    all.flatten().collect()
}

/// The location ranges that nodes of a cluster offer, and everything that can be wrong with them.
struct OfferReport<'r, 'f> {
    inspected: &'r InspectedCluster<'f>,
    contestants: Contestants<'f, 'r>,
    offers: &'r [Offer<'f>],
    /// The ranges that entries of the cluster declare.
    declared: Vec<Cidr>,
    /// The ranges that Kilo drops in favour of another segment's.
    outranked: BTreeMap<(SegmentId, Cidr), Outranked>,
}

impl OfferReport<'_, '_> {
    fn finding(&self, rule: &'static Rule, offer: &Offer, message: String) -> Finding {
        let place = self.place(offer);
        Finding::on_node(rule, self.cluster(), &offer.node.name, message).at(place, "")
    }

    fn cluster(&self) -> &ClusterName {
        &self.inspected.member.entry.name
    }

    /// Returns the command after which nothing contests what a node offers.
    fn without_contest(&self, offer: &Offer) -> String {
        uncontested(&[self.contestants.change(offer)], self.cluster())
    }

    fn place(&self, offer: &Offer) -> Place {
        let key = annotation::ALLOWED_LOCATION_IPS;
        self.inspected.annotation(offer.node, key)
    }

    /// Reports entries that are not ranges.
    fn ignored(&self, offer: &Offer) -> Option<Finding> {
        let is_range = |entry: &&str| entry.trim().parse::<Cidr>().is_ok();
        let message = format!(
            "Kilo ignores entries of {} that are not ranges: {}",
            annotation::ALLOWED_LOCATION_IPS,
            listed(offer.ignored.iter().map(|it| Quoted(it)))
        );
        let help = if offer.ignored.iter().any(is_range) {
            "separate the ranges with commas, without spaces"
        } else {
            "write ranges such as `172.31.5.0/24`, and single addresses such as `172.31.6.1/32`"
        };
        let finding = || self.finding(&IGNORED_LOCATION_RANGE, offer, message);
        (!offer.ignored.is_empty()).then(|| finding().help(help))
    }

    /// Reports ranges that Kilo drops because nodes of a later segment offer overlapping ones.
    fn outranked(&self, offer: &Offer) -> Option<Finding> {
        let topology = &self.inspected.cluster().topology;
        let segment = offer.counted?;
        let ranges = offer.ranges.iter();
        let dropped = ranges.filter_map(|range| self.outranked.get(&(segment, *range)));
        let dropped: Vec<&Outranked> = dropped.collect();
        let first = *dropped.first()?;
        let mut offers = self.offers.iter();
        let holder = offers
            .find(|it| it.counted == Some(first.by) && it.ranges.contains(&first.stronger))?;
        let key = |segment: SegmentId| Quoted(&topology.segments[segment].key);
        let message = format!(
            "Kilo drops location range {}: it overlaps {} of {}, and segment {} sorts after {}{}",
            first.range,
            first.stronger,
            Quoted(&holder.node.name),
            key(first.by),
            key(first.segment),
            and_more(dropped.len() - 1, "")
        );
        let dropped: Vec<Cidr> = dropped.iter().map(|it| it.range).collect();
        let changes = self.contestants.concessions(offer, &dropped);
        let finding = self.finding(&CONTESTED_LOCATION_RANGE, offer, message);
        let finding = finding.at(self.place(holder), "Kilo keeps this range");
        Some(finding.help(uncontested(&changes, self.cluster())))
    }

    /// Reports ranges that nodes of another location have for themselves.
    fn owned_elsewhere(&self, offer: &Offer) -> Option<Finding> {
        let mut contested = offer.ranges.iter().filter_map(|range| {
            let (_, claim) = self.contestants.own_of_others(offer, *range).next()?;
            Some((range, claim))
        });
        let (range, claim) = contested.next()?;
        let message = format!(
            "location range {range} overlaps {} {} of {}, which is in another location{}",
            claim.usage,
            claim.cidr,
            Quoted(claim.node),
            and_more(contested.count(), "")
        );
        let finding = self.finding(&CONTESTED_LOCATION_RANGE, offer, message);
        Some(finding.help(self.without_contest(offer)))
    }

    /// Reports ranges that Kilo drops because Peers have overlapping ones.
    fn foreign(&self, offer: &Offer) -> Option<Finding> {
        let mut contested = offer.ranges.iter().filter_map(|range| {
            let (given, owner) = self.contestants.of_peers(*range)?;
            Some((range, given, owner))
        });
        let (range, given, owner) = contested.next()?;
        let message = format!(
            "location range {range} overlaps {given} of {}: Kilo drops it in favour of the Peer{}",
            owner.entry.name,
            and_more(contested.count(), "")
        );
        let mut finding = self.finding(&CONTESTED_LOCATION_RANGE, offer, message);
        if let Some(declared) = owner.declaration(given) {
            finding = finding.at(declared.place.clone(), "declared here");
        }
        Some(finding.help(self.without_contest(offer)))
    }

    /// Reports ranges that no entry declares. Those that a Peer has are reported elsewhere.
    fn undeclared(&self, offer: &Offer) -> Option<Finding> {
        let is_undeclared = |range: &&Cidr| {
            let is_declared = self.declared.iter().any(|it| it.contains(**range));
            !is_declared && !self.contestants.are_of_peer(**range)
        };
        let ranges: Vec<&Cidr> = offer.ranges.iter().filter(is_undeclared).collect();
        let message = format!(
            "location range {} is not declared, so only its own cluster reaches it",
            listed(&ranges)
        );
        let cluster = self.cluster();
        let help = format!(
            "if other clusters should reach it, add it to `additionalCIDRs` of `{cluster}`"
        );
        let finding = || self.finding(&UNDECLARED_LOCATION_RANGE, offer, message);
        (!ranges.is_empty()).then(|| finding().help(help))
    }

    /// Reports ranges to which the node masquerades packets of its own location: in `Cross`, only one node of a location
    /// has a route to them, and it hides who sends (`Rules` in `pkg/mesh/routes.go`).
    fn masqueraded(&self, offer: &Offer) -> Option<Finding> {
        if self.inspected.granularity() != Granularity::Cross || offer.ranges.is_empty() {
            return None;
        }
        let message = format!(
            "masquerades packets to location range {}, also those from its own location",
            listed(&offer.ranges)
        );
        let command = annotate(offer.node, format!("{}-", annotation::ALLOWED_LOCATION_IPS));
        let help = format!(
            "if other clusters should reach the addresses, add them to `additionalCIDRs` of `{0}`; then run `{command}` \
             and `clustermesh snapshot {0}`",
            self.cluster()
        );
        Some(self.finding(&MASQUERADED_LOCATION_RANGE, offer, message).help(help))
    }
}

/// Returns the commands that remove from annotations what others have.
fn uncontested(changes: &[OfferChange], cluster: &ClusterName) -> String {
    let key = annotation::ALLOWED_LOCATION_IPS;
    let commands: Option<Vec<String>> = changes
        .iter()
        .map(|OfferChange { node, left }| {
            let left: Vec<String> = left.as_ref()?.iter().map(Cidr::to_string).collect();
            Some(annotate(
                node,
                &match left.as_slice() {
                    [] => format!("{key}-"),
                    left => format!("{key}={}", left.join(",")),
                },
            ))
        })
        .collect();
    if let Some(commands) = commands {
        return format!("run {}, then `clustermesh snapshot {cluster}`", quoted(commands));
    }
    let names = changes.iter().map(|it| Quoted(&it.node.name));
    format!("remove the ranges of other segments and clusters from {key} of {}", listed(names))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
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
        let nodes =
            format!("{} allowed-location-ips={ranges}\n{}", node("a", 1, "A"), node("b", 2, "B"));
        report(findings, &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")])
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

    #[test]
    fn a_node_in_cross_masquerades_what_goes_to_them() {
        let report_on = |granularity: &str, ranges: &str| {
            let node = format!(
                "a pod=10.1.1.0/24 key=A wg=10.101.0.1/24 endpoint=198.18.0.1:51820 external=198.18.0.1 granularity={granularity} internal-ip=192.168.1.1/24 allowed-location-ips={ranges}"
            );
            report(findings, &[("east", FIELDS, &node), ("west", "granularity: Full", "")])
        };
        insta::assert_snapshot!(report_on("cross", "172.31.5.0/24,172.31.6.0/24"), @"
        warning[masqueraded-location-range] east/a: masquerades packets to location range 172.31.5.0/24, 172.31.6.0/24, also those from its own location
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          help: if other clusters should reach the addresses, add them to `additionalCIDRs` of `east`; then run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips-` and `clustermesh snapshot east`
        ");
        assert_eq!(report_on("cross", ""), "");
        assert_eq!(report_on("full", "172.31.5.0/24"), "");
    }

    /// Returns what is found where both of two nodes, each a location of its own, offer ranges.
    fn of_both(a: &str, b: &str) -> String {
        let node = |name: &str, number: u8, key: &str, ranges: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity=location internal-ip=192.168.{number}.1/24 location={name} allowed-location-ips={ranges}\n"
            )
        };
        let nodes = node("a", 1, "A", a) + &node("b", 2, "B", b);
        report(findings, &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")])
    }

    #[test]
    fn of_overlapping_ranges_the_later_segment_keeps_its_own() {
        insta::assert_snapshot!(of_both("172.31.0.0/22", "172.31.1.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.0.0/22: it overlaps 172.31.1.0/24 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(of_both("172.31.1.0/24", "172.31.0.0/22,172.31.9.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.1.0/24: it overlaps 172.31.0.0/22 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node b --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23,172.31.9.0/24`, then `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(of_both("172.31.1.0/24", "172.31.1.0/24"), @"
        warning[contested-location-range] east/a: Kilo drops location range 172.31.1.0/24: it overlaps 172.31.1.0/24 of `b`, and segment `location:b` sorts after `location:a`
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          east.json#/nodes/1/annotations/kilo.squat.ai~1allowed-location-ips Kilo keeps this range
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips-`, then `clustermesh snapshot east`
        ");
        assert!(
            of_both("172.31.0.0/16", "172.31.255.255/32").contains("help: run `kubectl annotate")
        );
        let many = of_both("172.0.0.0/8", "172.31.255.255/32");
        assert!(many.contains("help: remove the ranges of other segments"), "{many}");
        assert_eq!(of_both("172.31.0.0/24", "172.31.1.0/24"), "");
    }

    #[test]
    fn ranges_of_peers_are_reported() {
        let west = "w pod=10.2.1.0/24 key=C wg=10.102.0.1/24 external=198.18.2.1 granularity=full";
        let of_east = |ranges: &str, fields: &str| {
            let a = format!(
                "a pod=10.1.1.0/24 key=A wg=10.101.0.1/24 endpoint=198.18.0.1:51820 external=198.18.0.1 granularity=full allowed-location-ips={ranges}"
            );
            report(findings, &[("east", fields, &a), ("west", "", west)])
        };
        insta::assert_snapshot!(of_east("10.2.0.0/23", ""), @"
        warning[contested-location-range] east/a: location range 10.2.0.0/23 overlaps 10.2.1.0/24 of west: Kilo drops it in favour of the Peer
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          mesh.yaml#/spec/clusters/1/podCIDRs/0 declared here
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips=10.2.0.0/24`, then `clustermesh snapshot east`
        notice[undeclared-location-range] east/a: location range 10.2.0.0/23 is not declared, so only its own cluster reaches it
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          help: if other clusters should reach it, add it to `additionalCIDRs` of `east`
        ");
        let inside = of_east("10.2.1.128/25", "");
        assert!(inside.contains("allowed-location-ips-`"), "{inside}");
        assert!(!inside.contains("undeclared"), "{inside}");
        // West declares them, but East gets no Peer with any of their addresses.
        for (ranges, fields) in
            [("10.2.9.0/24", ""), ("10.2.0.0/16", "acceptedNetworks: [10.102.0.0/16]")]
        {
            let report = of_east(ranges, fields);
            assert!(!report.contains("contested"), "{report}");
        }
    }

    #[test]
    fn all_nodes_of_the_segment_with_the_wider_range_change() {
        let node = |name: &str, number: u8, key: &str, rest: &str| {
            format!(
                "{name} pod=10.1.{number}.0/24 key={key} wg=10.101.0.{number}/24 endpoint=198.18.0.{number}:51820 external=198.18.0.{number} granularity=location internal-ip=192.168.{number}.1/24 {rest}\n"
            )
        };
        let nodes = node("a", 1, "A", "location=a allowed-location-ips=172.31.1.0/24")
            + &node("b", 2, "B", "location=b allowed-location-ips=172.31.0.0/22")
            + &node(
                "c",
                3,
                "C",
                "location=b allowed-location-ips=172.31.0.0/22,172.31.9.0/24 wireguard-ip=",
            );
        let report =
            report(findings, &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")]);
        let help = report.lines().find(|it| it.contains("help")).unwrap();
        insta::assert_snapshot!(help.trim(), @"help: run `kubectl annotate node b --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23`, `kubectl annotate node c --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23,172.31.9.0/24`, then `clustermesh snapshot east`");
    }
}
