//! Words for ranges that take away what a target's nodes reach by themselves.

use super::{add_declaration, count, listed_ranges};
use crate::name::ClusterName;
use crate::plan::{Captured, Own};
use crate::rules::ranges::CAPTURED_NETWORK;
use crate::rules::{Finding, bare};

pub(super) fn finding(source: &ClusterName, target: &ClusterName, captured: &Captured) -> Finding {
    let Captured {
        ranges,
        own,
        node,
        place,
        nodes,
        kept,
    } = captured;
    let node = bare(node);
    let more = match nodes {
        0 | 1 => String::new(),
        nodes => format!(" (and {})", count(nodes - 1, "more node")),
    };
    let takes = if ranges.cidrs.len() == 1 {
        "takes"
    } else {
        "take"
    };
    let own = match own {
        Own::Lan(lan) => format!("{takes} addresses of {lan}, the network of {target}/{node}"),
        Own::Address(address) => format!("{takes} {address}, the address of {target}/{node}"),
        Own::Pods(pods) => format!("{takes} {pods}, the pods of {target}/{node}"),
        Own::Wireguard(address) => {
            format!("{takes} {address}, the WireGuard address of {target}/{node}")
        }
    };
    let cidrs = listed_ranges(ranges);
    let message = if *kept {
        format!("{cidrs} {own}{more}, into a tunnel; stays, as {source} ranks first")
    } else {
        let it = if ranges.cidrs.len() == 1 {
            "it"
        } else {
            "they"
        };
        format!("{cidrs} left out: {it} {own}{more}, into a tunnel")
    };
    let mut finding = Finding::on_cluster(&CAPTURED_NETWORK, source, message);
    add_declaration(&mut finding, ranges);
    finding
        .at(place.clone(), format!("of {target}/{node}"))
        .help(format!(
            "leave what `{target}` has of its own out of the ranges of `{source}`, or give one of \
             the two networks another range"
        ))
}
