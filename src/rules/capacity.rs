//! Does it stay within what Kilo and GitOps can carry? By the plan alone: Peers are counted, and no
//! file is read for it.

pub mod target_load;

use super::endpoints::DNS_ENDPOINT;
use super::gitops::{CROWDED_TARGET, LARGE_FILE};
use super::{Finding, Rule};
use crate::capacity::{Estimate, Load, estimates, units};
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::plan::{Plan, Target};
use crate::text::count;

rules! {
    "Capacity of Kilo and GitOps" in "capacity" about Tree;
    SLOW_APPLY = "slow-apply" Warning;
    CROWDED_NODE = "crowded-node" Warning;
    CROWDED_FOLDER = "crowded-folder" Warning;
}

/// Findings about targets are reported together.
const GROUP: &str = "other clusters";

/// Returns whether a rule is about what `clustermesh capacity` counts.
pub fn is_about(rule: &Rule) -> bool {
    let others = [&CROWDED_TARGET, &LARGE_FILE, &DNS_ENDPOINT];
    QUESTION.rules.iter().chain(&others).any(|it| *it == rule)
}

/// Returns what is too much for a target, given the load of each.
pub(super) fn planned(plan: &Plan, loads: &[Load], capacity: &Capacity) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (target, load) in plan.targets.iter().zip(loads) {
        let estimates = grave(load, capacity);
        findings.extend(slow_apply(target, &estimates));
        findings.extend(crowded_node(target, &estimates));
        findings.extend(crowded_folder(target, &estimates));
        findings.extend(crowded_target(target, load, &estimates));
    }
    findings
}

/// Returns what is worth a warning.
fn grave(load: &Load, capacity: &Capacity) -> Vec<Estimate> {
    let mut estimates = estimates(load, capacity);
    estimates.retain(is_grave);
    estimates
}

/// Returns whether an estimate is worth a warning. Notices would appear in every larger mesh;
/// `clustermesh capacity` lists them.
fn is_grave(estimate: &Estimate) -> bool {
    Some(Severity::Warning) <= estimate.grade
}

fn slow_apply(target: &Target, estimates: &[Estimate]) -> Option<Finding> {
    let estimate = estimates.iter().find(|it| it.quantity == Quantity::ApplySeconds)?;
    let message = format!(
        "Kilo would need {} for each change ({} rules), more than the limit of {}",
        units::seconds(estimate.value),
        estimate.worked,
        passed(estimate)
    );
    let finding = Finding::on_cluster(&SLOW_APPLY, &target.cluster, message);
    Some(grouped(finding).help(capacity_help(target)))
}

fn crowded_node(target: &Target, estimates: &[Estimate]) -> Option<Finding> {
    let words = |quantity| {
        Some(match quantity {
            Quantity::Ranges => "allowed IPs",
            Quantity::Rules => "iptables rules",
            Quantity::RestartSeconds => "for a Kilo restart",
            Quantity::Routes => "routes",
            Quantity::ConfigurationBytes => "bytes of WireGuard configuration",
            Quantity::AnnotationBytes => "bytes of discovered endpoints",
            Quantity::TunnelsPerNode => "WireGuard peers",
            Quantity::Tunnels => "tunnels in total",
            _ => return None,
        })
    };
    let listed_values = listed_values(estimates, words)?;
    let message = format!("the nodes would have {listed_values}");
    let finding = Finding::on_cluster(&CROWDED_NODE, &target.cluster, message);
    Some(grouped(finding).help(capacity_help(target)))
}

fn crowded_folder(target: &Target, estimates: &[Estimate]) -> Option<Finding> {
    let is_meant = |quantity| (quantity == Quantity::DirectoryEntries).then_some("entries");
    let listed_values = listed_values(estimates, is_meant)?;
    let message = format!("the folder would have {listed_values}");
    let finding = Finding::on_cluster(&CROWDED_FOLDER, &target.cluster, message);
    Some(grouped(finding).help(
        "link the cluster to fewer clusters, or render the meshes into \
        separate trees",
    ))
}

fn crowded_target(target: &Target, load: &Load, estimates: &[Estimate]) -> Option<Finding> {
    let words = |quantity| {
        Some(match quantity {
            Quantity::Peers => "Peers",
            Quantity::StoredBytes => "bytes in etcd",
            Quantity::KustomizeSeconds => "for each `kustomize build`",
            Quantity::FluxSeconds => "for each reconcile of Flux",
            Quantity::ApplicationBytes => "bytes in an Argo CD Application",
            Quantity::InventoryBytes => "bytes in a Flux inventory",
            _ => return None,
        })
    };
    let listed_values = listed_values(estimates, words)?;
    let message = if estimates.iter().any(|it| it.quantity == Quantity::Peers) {
        format!("would have {listed_values}")
    } else {
        let peers = count(load.objects(), "Peer");
        format!("would have {peers}: {listed_values}")
    };
    let finding = Finding::on_cluster(&CROWDED_TARGET, &target.cluster, message);
    let help = "reduce the number of Peers with granularity `Location`, a `nodeSelector` or \
        another `topology` than `FullMesh`";
    Some(grouped(finding).help(help))
}

/// Reports the estimates that have a message.
fn listed_values(
    estimates: &[Estimate],
    words: impl Fn(Quantity) -> Option<&'static str>,
) -> Option<String> {
    let listed_values: Vec<String> = estimates
        .iter()
        .filter_map(|it| {
            let words = words(it.quantity)?;
            let value = units::value(it.quantity, it.value);
            Some(format!("{value} {words}, more than the limit of {}", passed(it)))
        })
        .collect();
    (!listed_values.is_empty()).then(|| listed_values.join("; "))
}

fn passed(estimate: &Estimate) -> String {
    let passed = estimate.steps.passed(estimate.value);
    passed.map_or_else(String::new, |(_, step)| units::step(estimate.quantity, step))
}

fn capacity_help(target: &Target) -> String {
    format!("run `clustermesh capacity {}` to see ways to reduce it", target.cluster)
}

/// Reports findings together although they are about several clusters.
fn grouped(mut finding: Finding) -> Finding {
    GROUP.clone_into(&mut finding.group);
    finding
}

#[cfg(test)]
mod tests;
