//! Words for ranges that hold what a target's nodes reach by themselves.

use super::{DECLARED, listed_ranges};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Span;
use crate::plan::{Captured, CapturedOutcome, LocalAddress, LocalNetwork};
use crate::rules::endpoints::LOOPING_ENDPOINT;
use crate::rules::ranges::{CAPTURED_NETWORK, LOST_LAN};
use crate::rules::{Finding, bare};
use crate::text::{and_more, listed};

pub(super) fn finding(source: &ClusterName, target: &ClusterName, captured: &Captured) -> Finding {
    let rule = match captured.own {
        LocalAddress::Lan(_) if captured.outcome == CapturedOutcome::Kept => &LOST_LAN,
        LocalAddress::Endpoint(_) => &LOOPING_ENDPOINT,
        LocalAddress::Lan(_) | LocalAddress::Address(_) => &CAPTURED_NETWORK,
    };
    let help = match (captured.own, &captured.outcome) {
        (LocalAddress::Lan(lan), CapturedOutcome::Kept) => format!(
            "if `{target}` uses this LAN, add `localNetworks: ['{lan}']` to its entry in the mesh; \
             otherwise correct the node's annotation"
        ),
        (_, CapturedOutcome::Kept) => format!(
            "add the network of these addresses to `localNetworks` of `{target}` in the mesh"
        ),
        _ => format!(
            "remove the addresses of `{target}` from the ranges of `{source}`, or renumber one of \
             the two networks"
        ),
    };
    let node = bare(&captured.node);
    Finding::on_cluster(rule, source, message(target, captured))
        .at(captured.ranges.declared.clone(), DECLARED)
        .at(captured.place.clone(), format!("of {target}/{node}"))
        .help(help)
}

/// Returns which ranges hold which addresses of a target, and what becomes of them.
fn message(target: &ClusterName, captured: &Captured) -> String {
    let cidrs = listed_ranges(&captured.ranges);
    let is_one = captured.ranges.cidrs.len() == 1;
    let more = and_more(captured.nodes.saturating_sub(1), "node");
    let holder = format!("{target}/{}{more}", bare(&captured.node));
    let own = match captured.own {
        LocalAddress::Lan(lan) => format!("{lan}, the LAN of {holder}"),
        LocalAddress::Address(address) => format!("{address}, the address of {holder}"),
        LocalAddress::Endpoint(address) => format!("{address}, the endpoint of {holder}"),
    };
    let is_inside = |it: &Cidr| captured.own.cidr().contains(*it);
    let is_on_lan = captured.own.address().is_none() && captured.ranges.cidrs.iter().all(is_inside);
    let (lies, it) = match (is_on_lan, is_one) {
        (true, true) => ("is inside", "it"),
        (true, false) => ("are inside", "they"),
        (false, true) => ("contains", "it"),
        (false, false) => ("contain", "they"),
    };
    let stays = if is_one { "range stays" } else { "ranges stay" };
    match &captured.outcome {
        CapturedOutcome::Withheld => format!("{cidrs} left out: {it} {lies} {own}"),
        CapturedOutcome::Without(holes) => {
            let holes = listed(holes.iter().map(|it| Span::new(*it)));
            format!("{holes} removed from {cidrs}: {it} {lies} {own}")
        }
        CapturedOutcome::Kept if matches!(captured.own, LocalAddress::Lan(_)) => format!(
            "{cidrs} {lies} {own}: Kilo in {target} will route this LAN into a tunnel (the {stays} \
             because only few nodes of {target} are on this LAN)"
        ),
        CapturedOutcome::Kept => format!(
            "{cidrs} {lies} {own}: packets to this address will go into a tunnel (the \
             {stays} because too few nodes of {target} have an address there)"
        ),
    }
}

/// Returns a finding about ranges on a network that people call the target's own.
pub(super) fn local(source: &ClusterName, target: &ClusterName, local: &LocalNetwork) -> Finding {
    let (ranges, network) = (listed_ranges(&local.ranges), local.network);
    let is_inside = local.ranges.cidrs.iter().all(|it| network.contains(*it));
    let message = if is_inside {
        format!("{ranges} left out: inside {network}, a local network of {target}")
    } else {
        format!("{network} removed from {ranges}: a local network of {target}")
    };
    let field = local.ranges.declared.as_ref().and_then(|it| it.pointer.steps().last());
    let is_of_services = field.as_deref() == Some("serviceCIDR");
    let otherwise = if is_of_services {
        format!(
            "if `{target}` has Services there too, it cannot reach those of `{source}`: add `captured-network` of `{source}` to \
             `ignore` in the config"
        )
    } else {
        format!(
            "otherwise remove these addresses from the ranges of `{source}`, or renumber one of the two networks"
        )
    };
    Finding::on_cluster(&CAPTURED_NETWORK, source, message)
        .at(local.ranges.declared.clone(), DECLARED)
        .at(local.place.clone(), "the local network")
        .help(format!("narrow `localNetworks` of `{target}` if {network} is too wide; {otherwise}"))
}
