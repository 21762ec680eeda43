//! Words for files and Peers of a plan that are too large.

use std::collections::BTreeMap;

use super::{LARGE_FILE, LARGE_PEER};
use crate::capacity::units;
use crate::config::Limits;
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::kilo::peer::Peer;
use crate::manifest::{PeerSetTexts, last_applied_bytes};
use crate::plan::{PeerSet, PeerSetId, Plan};
use crate::rules::Finding;
use crate::rules::plan::within;
use crate::text::count;

/// From how many bytes on etcd takes no object.
const ETCD_LIMIT: usize = 3 << 19;

/// The largest addition of an API server and the delivering tools to an object, in bytes: identity,
/// times, managed fields, labels and annotations.
const ADDED_BYTES: usize = 2 << 10;

/// The largest size of a range as JSON: an IPv6 address, its length, quotes and a comma.
const RANGE_BYTES: usize = 46;

/// The largest size of the rest of a Peer as JSON.
const PEER_BYTES: usize = 2_000;

/// Returns findings about a plan. The texts of its sets of Peers are given.
pub(in crate::rules) fn planned(
    plan: &Plan,
    texts: &PeerSetTexts,
    limits: &Limits,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut targets_of: BTreeMap<PeerSetId, Vec<String>> = BTreeMap::new();
    for target in &plan.targets {
        for &peer_set in &target.peer_sets {
            let name = target.cluster.to_string();
            targets_of.entry(peer_set).or_default().push(name);
        }
    }
    for (peer_set, targets) in targets_of {
        let (peer_set, bytes) = (&plan.peer_sets[peer_set], texts[peer_set].len());
        findings.extend(large_file(peer_set, bytes, limits, &targets));
        findings.extend(peer_set.peers.iter().filter_map(|it| large_peer(it, limits, &targets)));
    }
    findings
}

fn large_file(
    peer_set: &PeerSet,
    bytes: usize,
    limits: &Limits,
    targets: &[String],
) -> Option<Finding> {
    let steps = limits.capacity.steps(Quantity::FileBytes);
    let (severity, step) = steps.passed(units::float(bytes))?;
    if severity < Severity::Warning {
        return None;
    }
    let message = format!(
        "{}.yaml would have {bytes} bytes, more than {step} {}",
        peer_set.name,
        within(targets)
    );
    let mut finding = Finding::on_cluster(&LARGE_FILE, &peer_set.source, message);
    finding.severity = severity;
    Some(finding.help("declare fewer, larger ranges, or select fewer nodes"))
}

fn large_peer(peer: &Peer, limits: &Limits, targets: &[String]) -> Option<Finding> {
    let ranges = peer.allowed_ips.len();
    if ranges * RANGE_BYTES + PEER_BYTES <= limits.peer_bytes && PEER_BYTES < limits.peer_bytes {
        return None;
    }
    let bytes = last_applied_bytes(peer);
    if bytes <= limits.peer_bytes {
        return None;
    }
    let message = format!(
        "{} would have {bytes} bytes in the annotation of `kubectl apply`, more than {}, with {} {}",
        peer.name,
        limits.peer_bytes,
        count(ranges, "range"),
        within(targets)
    );
    let mut finding = Finding::on_cluster(&LARGE_PEER, &peer.cluster, message);
    if ETCD_LIMIT < bytes + ADDED_BYTES {
        finding.severity = Severity::Error;
    }
    Some(finding.help("declare fewer, larger ranges"))
}
