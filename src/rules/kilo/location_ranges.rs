//! Location ranges: what a node offers beside its own, by `allowed-location-ips`.

use super::{CONTESTED_LOCATION_RANGE, IGNORED_LOCATION_RANGE, UNDECLARED_LOCATION_RANGE};
use crate::analysis::inspected_cluster::InspectedCluster;
use crate::analysis::location_range::{
    OfferProblem, OfferProblemKind, OutrankedOffer, OwnRange, OwnRangeUse, problems,
};
use crate::diagnostic::Quoted;
use crate::fleet::Fleet;
use crate::kilo::node::annotation;
use crate::net::Cidr;
use crate::rules::Finding;
use crate::rules::command::{annotate, run};
use crate::text::{and_more, listed};

/// Returns findings about location ranges.
pub(super) fn findings(fleet: &Fleet, inspected: &InspectedCluster) -> Vec<Finding> {
    let problems = problems(fleet, inspected);
    problems.iter().map(|it| finding(inspected, it)).collect()
}

fn finding(inspected: &InspectedCluster, problem: &OfferProblem) -> Finding {
    let (rule, message) = match &problem.kind {
        OfferProblemKind::Ignored { entries, .. } => (
            &IGNORED_LOCATION_RANGE,
            format!(
                "Kilo ignores entries of {} that are not ranges: {}",
                annotation::ALLOWED_LOCATION_IPS,
                listed(entries.iter().map(|it| Quoted(it)))
            ),
        ),
        OfferProblemKind::Outranked(OutrankedOffer {
            range,
            stronger,
            holder,
            segment,
            by,
            more,
            ..
        }) => (
            &CONTESTED_LOCATION_RANGE,
            format!(
                "Kilo drops location range {range}: it overlaps {stronger} of {}, and segment {} \
                 sorts after {}{}",
                Quoted(&holder.name),
                Quoted(by),
                Quoted(segment),
                and_more(*more, "")
            ),
        ),
        OfferProblemKind::OwnedElsewhere {
            range,
            claim: OwnRange {
                cidr, usage, node, ..
            },
            more,
        } => (
            &CONTESTED_LOCATION_RANGE,
            format!(
                "location range {range} overlaps {} {cidr} of {}, which is in another location{}",
                called(*usage),
                Quoted(node),
                and_more(*more, "")
            ),
        ),
        OfferProblemKind::Foreign {
            range,
            owner,
            declared,
            more,
        } => (
            &CONTESTED_LOCATION_RANGE,
            format!(
                "location range {range} overlaps {} of {}: Kilo drops it in favour of the Peer{}",
                declared.cidr,
                owner.entry.name,
                and_more(*more, "")
            ),
        ),
        OfferProblemKind::Undeclared(ranges) => (
            &UNDECLARED_LOCATION_RANGE,
            format!(
                "location range {} is not declared, so only its own cluster reaches it",
                listed(ranges)
            ),
        ),
    };
    let place = inspected.annotation(problem.node, annotation::ALLOWED_LOCATION_IPS);
    let cluster = &inspected.member.entry.name;
    let finding = Finding::on_node(rule, cluster, &problem.node.name, message).at(place, "");
    match &problem.kind {
        OfferProblemKind::Ignored { is_spaced, .. } => finding.help(if *is_spaced {
            "separate the ranges with commas, without spaces"
        } else {
            "write ranges such as `172.31.5.0/24`, and single addresses such as `172.31.6.1/32`"
        }),
        OfferProblemKind::Outranked(outranked) => {
            let place = inspected.annotation(outranked.holder, annotation::ALLOWED_LOCATION_IPS);
            finding
                .at(place, "Kilo keeps this range")
                .help(disjoint(outranked))
        }
        OfferProblemKind::Foreign { declared, .. } => {
            finding.at(declared.place.clone(), "declared here")
        }
        OfferProblemKind::OwnedElsewhere { .. } | OfferProblemKind::Undeclared(_) => finding,
    }
}

/// Returns the command that removes the ranges of other segments from a node's annotation.
fn disjoint(outranked: &OutrankedOffer) -> String {
    let key = annotation::ALLOWED_LOCATION_IPS;
    let change = match outranked.left.as_deref() {
        None => {
            let name = Quoted(&outranked.changed.name);
            return format!("remove the ranges of other segments from the annotation of {name}");
        }
        Some([]) => format!("{key}-"),
        Some(left) => {
            let left: Vec<String> = left.iter().map(Cidr::to_string).collect();
            format!("{key}={}", left.join(","))
        }
    };
    run(&annotate(outranked.changed, &change))
}

fn called(usage: OwnRangeUse) -> &'static str {
    match usage {
        OwnRangeUse::Pods => "pod CIDR",
        OwnRangeUse::InternalAddress => "internal address",
        OwnRangeUse::WireguardAddress => "WireGuard address",
    }
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
