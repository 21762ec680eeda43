//! Words for endpoints in ranges.

use super::{DECLARED, listed_ranges};
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::{LoopingPeer, LoopingRanges};
use crate::rules::command::blank;
use crate::rules::endpoints::LOOPING_ENDPOINT;
use crate::rules::{Finding, bare};
use crate::text::and_more;

/// The reason why no packet arrives.
const WHY: &str = "WireGuard's own packets would loop into the tunnel";

/// Returns the remedy for an endpoint of a cluster, which may be in one of its own ranges.
fn help(cluster: &ClusterName, place: &Place, is_own: bool) -> String {
    let is_address = is_own && place.pointer.steps().any(|it| it == "addresses");
    let change = if cluster.is_external() {
        format!("write another `endpoint` of `{cluster}`")
    } else if is_address {
        format!(
            "take endpoints from elsewhere with `endpointFrom` of `{cluster}`, annotate the node with \
             `kilo.squat.ai/clustermesh-endpoint` and another address"
        )
    } else {
        "annotate the node with `kilo.squat.ai/clustermesh-endpoint` and another address".to_owned()
    };
    format!("{change}, or declare ranges in the mesh that do not contain this one")
}

/// Reports a Peer whose endpoint is in a range.
pub(super) fn peer(source: &ClusterName, peer: &LoopingPeer) -> Finding {
    let LoopingPeer { node, endpoint, range, owner, range_place, .. } = peer;
    let address = endpoint.address;
    let message = format!("left out: endpoint {address} is inside {range} of {owner}, so {WHY}");
    let mut finding = Finding::on_node(&LOOPING_ENDPOINT, source, node.as_str(), message)
        .at(endpoint.place.clone(), "");
    if let Some(place) = range_place {
        let text = if place.source == endpoint.place.source { "claimed here" } else { DECLARED };
        finding = finding.at(place.clone(), text);
    }
    let change = blank(annotation::CLUSTERMESH_ENDPOINT);
    let finding = finding.resolved_by(&change, source, [node.as_str()]);
    finding.help(help(source, &endpoint.place, owner == source))
}

/// Reports ranges that contain endpoints.
pub(super) fn ranges(source: &ClusterName, looping: &LoopingRanges) -> Finding {
    let LoopingRanges { ranges, cluster, node, endpoint, endpoints, guessed } = looping;
    let node = bare(node);
    let more = and_more(endpoints.saturating_sub(1), "endpoint");
    let address = endpoint.address;
    let cidrs = listed_ranges(ranges);
    let what = format!("endpoint {address} of {cluster}/{node}{more}");
    let message = if ranges.cidrs.len() == 1 {
        format!("{cidrs} left out: it contains {what}, so {WHY}")
    } else {
        format!("{cidrs} left out: they contain {what}, so {WHY}")
    };
    let guess = guessed.as_ref();
    let is_declared = ranges.cidrs.iter().all(|it| !it.is_host());
    Finding::on_cluster(&LOOPING_ENDPOINT, source, message)
        .at(guess.map(|it| it.1.clone()), "names the endpoints")
        .at(ranges.declared.clone(), DECLARED)
        .at(endpoint.place.clone(), format!("of {cluster}/{node}"))
        .help(match guess {
            _ if cluster.is_external() && cluster == source => {
                format!("write an `endpoint` outside of {cidrs}, or remove {cidrs} from `{source}`")
            }
            Some((guessed, place)) => {
                let is_default = place.pointer.steps().any(|it| it == "defaults");
                let of = if is_default { "the `defaults`".to_owned() } else { format!("`{cluster}`") };
                format!(
                    "remove `{guessed:?}` from `endpointFrom` of {of}, or declare ranges in the entry of `{cluster}` that do \
                     not contain these addresses"
                )
            }
            None if is_declared => format!(
                "remove {cidrs} from the entry of `{source}`, or write ranges that do not contain the endpoints of `{cluster}`"
            ),
            None => format!(
                "declare ranges in the entry of `{source}` that do not contain the endpoints of `{cluster}`"
            ),
        })
}
