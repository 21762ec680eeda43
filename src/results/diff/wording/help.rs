//! Remedies for what a change costs, with their commands.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::{ForgottenAddresses, TargetChange};
use crate::name::ClusterName;
use crate::rules::{annotate_keepalive, annotate_nat};
use crate::text::first;

use super::{LISTED, name};
use crate::results::diff::Compared;

/// Returns the remedies for a target, without those for keys.
pub(in crate::results::diff) fn helps(target: &TargetChange, compared: &Compared) -> Vec<String> {
    let pause = (!target.pausing.is_empty()).then(|| pause(target, compared));
    let forgotten = target.forgotten.iter();
    let forgotten = forgotten.flat_map(|it| behind_nat(it, compared));
    pause.into_iter().chain(forgotten).collect()
}

/// Returns how to avoid that traffic pauses.
fn pause(target: &TargetChange, compared: &Compared) -> String {
    let cluster = &target.cluster;
    let nodes = target.pausing.iter().map(String::as_str);
    let command = annotate_keepalive(&compared.config.kubectl(cluster), nodes);
    let then = if target.is_pause_only() {
        let grade = target.grade_without_pause().name();
        format!("; then the change of {cluster} is {grade}")
    } else {
        String::new()
    };
    format!(
        "before you apply the change, run `{command}` and `clustermesh snapshot {cluster}`{then}"
    )
}

/// Returns how to keep the addresses of nodes behind NAT.
fn behind_nat(forgotten: &ForgottenAddresses, compared: &Compared) -> Vec<String> {
    let mut clusters: BTreeMap<&ClusterName, Vec<&str>> = BTreeMap::new();
    // The owner of an external peer can only write an `endpoint` for it into the mesh.
    let nodes = forgotten.nodes.iter().filter(|it| !it.cluster.is_external());
    for it in nodes {
        clusters.entry(&it.cluster).or_default().push(&it.node);
    }
    let mut helps: Vec<String> = Vec::new();
    for (cluster, nodes) in &clusters {
        let Some((first_node, others)) = nodes.split_first() else {
            continue;
        };
        let others = match others {
            [] => String::new(),
            others => {
                let others = others.iter().map(|it| name(it));
                format!(" (the same for {})", first(LISTED, others))
            }
        };
        let command = annotate_nat(&compared.config.kubectl(cluster), first_node);
        helps.push(format!(
            "if the NAT of {cluster} has a fixed address and port, run `{command}` with its address and port{others}, and \
             `clustermesh snapshot {cluster}`"
        ));
    }
    if clusters.is_empty() {
        return helps;
    }
    let changed = compared.changes.targets.iter().map(|it| &it.cluster);
    let changed: BTreeSet<&ClusterName> = changed.collect();
    let last: Vec<&&ClusterName> = clusters.keys().filter(|it| changed.contains(*it)).collect();
    let last = match &*last {
        [] => String::new(),
        last => format!(", and change {} last", first(LISTED, last)),
    };
    helps.push(format!("apply the change in one cluster after another{last}"));
    helps
}
