//! Location ranges: what a node offers beside its own, by `allowed-location-ips`.

use super::{CONTESTED_LOCATION_RANGE, IGNORED_LOCATION_RANGE, UNDECLARED_LOCATION_RANGE};
use crate::analysis::inspected_cluster::InspectedCluster;
use crate::analysis::location_range::{
    OfferChange, OfferProblem, OfferProblemKind, OutrankedOffer, OwnRangeUse, problems,
};
use crate::diagnostic::Quoted;
use crate::fleet::Fleet;
use crate::kilo::node::annotation;
use crate::net::Cidr;
use crate::plan::Plan;
use crate::rules::command::annotate;
use crate::rules::{Finding, Rule};
use crate::text::{and_more, listed, quoted};

/// Returns findings about location ranges.
pub(super) fn findings(
    fleet: &Fleet,
    plan: Option<&Plan>,
    inspected: &InspectedCluster,
) -> Vec<Finding> {
    let problems = problems(fleet, plan, inspected);
    problems.iter().map(|it| finding(inspected, it)).collect()
}

fn rule(kind: &OfferProblemKind) -> &'static Rule {
    match kind {
        OfferProblemKind::Ignored { .. } => &IGNORED_LOCATION_RANGE,
        OfferProblemKind::Outranked(_)
        | OfferProblemKind::OwnedElsewhere { .. }
        | OfferProblemKind::Foreign { .. } => &CONTESTED_LOCATION_RANGE,
        OfferProblemKind::Undeclared(_) => &UNDECLARED_LOCATION_RANGE,
    }
}

fn message(kind: &OfferProblemKind) -> String {
    match kind {
        OfferProblemKind::Ignored { entries, .. } => format!(
            "Kilo ignores entries of {} that are not ranges: {}",
            annotation::ALLOWED_LOCATION_IPS,
            listed(entries.iter().map(|it| Quoted(it)))
        ),
        OfferProblemKind::Outranked(it) => format!(
            "Kilo drops location range {}: it overlaps {} of {}, and segment {} sorts after {}{}",
            it.range,
            it.stronger,
            Quoted(&it.holder.name),
            Quoted(it.by),
            Quoted(it.segment),
            and_more(it.more, "")
        ),
        OfferProblemKind::OwnedElsewhere { range, claim, more } => format!(
            "location range {range} overlaps {} {} of {}, which is in another location{}",
            called(claim.usage),
            claim.cidr,
            Quoted(claim.node),
            and_more(*more, "")
        ),
        OfferProblemKind::Foreign {
            range,
            owner,
            given,
            more,
        } => format!(
            "location range {range} overlaps {given} of {}: Kilo drops it in favour of the Peer{}",
            owner.entry.name,
            and_more(*more, "")
        ),
        OfferProblemKind::Undeclared(ranges) => format!(
            "location range {} is not declared, so only its own cluster reaches it",
            listed(ranges)
        ),
    }
}

fn finding(inspected: &InspectedCluster, problem: &OfferProblem) -> Finding {
    let place = inspected.annotation(problem.node, annotation::ALLOWED_LOCATION_IPS);
    let cluster = &inspected.member.entry.name;
    let finding = Finding::on_node(
        rule(&problem.kind),
        cluster,
        &problem.node.name,
        message(&problem.kind),
    )
    .at(place, "");
    let finding = match &problem.kind {
        OfferProblemKind::Ignored { is_spaced, .. } => finding.help(if *is_spaced {
            "separate the ranges with commas, without spaces"
        } else {
            "write ranges such as `172.31.5.0/24`, and single addresses such as `172.31.6.1/32`"
        }),
        OfferProblemKind::Outranked(OutrankedOffer { holder, .. }) => {
            let place = inspected.annotation(holder, annotation::ALLOWED_LOCATION_IPS);
            finding.at(place, "Kilo keeps this range")
        }
        OfferProblemKind::Foreign { owner, given, .. } => match owner.declaration(*given) {
            Some(declared) => finding.at(declared.place.clone(), "declared here"),
            None => finding,
        },
        OfferProblemKind::OwnedElsewhere { .. } => finding,
        OfferProblemKind::Undeclared(_) => finding.help(format!(
            "if other clusters should reach it, add it to `additionalCIDRs` of `{cluster}`"
        )),
    };
    match problem.changes.as_slice() {
        [] => finding,
        changes => finding.help(uncontested(changes)),
    }
}

/// Returns the commands that remove from annotations what others have.
fn uncontested(changes: &[OfferChange]) -> String {
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
        return format!("run {}", quoted(commands));
    }
    let names = changes.iter().map(|it| Quoted(&it.node.name));
    format!(
        "remove the ranges of other segments and clusters from {key} of {}",
        listed(names)
    )
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
        let nodes = format!(
            "{} allowed-location-ips={ranges}\n{}",
            node("a", 1, "A"),
            node("b", 2, "B")
        );
        report(
            findings,
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
            findings,
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
          help: run `kubectl annotate node a --overwrite kilo.squat.ai/allowed-location-ips=10.2.0.0/24`
        notice[undeclared-location-range] east/a: location range 10.2.0.0/23 is not declared, so only its own cluster reaches it
          east.json#/nodes/0/annotations/kilo.squat.ai~1allowed-location-ips 
          help: if other clusters should reach it, add it to `additionalCIDRs` of `east`
        ");
        let inside = of_east("10.2.1.128/25", "");
        assert!(inside.contains("allowed-location-ips-`"), "{inside}");
        assert!(!inside.contains("undeclared"), "{inside}");
        // West declares them, but East gets no Peer with any of their addresses.
        for (ranges, fields) in [
            ("10.2.9.0/24", ""),
            ("10.2.0.0/16", "acceptedNetworks: [10.102.0.0/16]"),
        ] {
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
        let report = report(
            findings,
            &[("east", FIELDS, &nodes), ("west", "granularity: Full", "")],
        );
        let help = report.lines().find(|it| it.contains("help")).unwrap();
        insta::assert_snapshot!(help.trim(), @"help: run `kubectl annotate node b --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23`, `kubectl annotate node c --overwrite kilo.squat.ai/allowed-location-ips=172.31.0.0/24,172.31.2.0/23,172.31.9.0/24`");
    }
}
