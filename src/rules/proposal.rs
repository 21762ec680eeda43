//! Could the clusters be joined for which a mesh is to be proposed?

use super::ranges::{NO_POD_CIDR, POD_CIDR_OUT_OF_RANGE, WIREGUARD_IP_OUT_OF_RANGE};
use super::{Finding, Rule};
use crate::diagnostic::{Severity, mistake};
use crate::proposal::{Obstacle, RangeProblem};

/// Returns the finding about an obstacle. Nothing can be proposed, so it is an error.
pub fn obstacle(obstacle: &Obstacle) -> Finding {
    let message = obstacle.to_string();
    let finding = match obstacle.cluster() {
        Some(cluster) => Finding::on_cluster(rule(obstacle), cluster, message),
        None => Finding::new(rule(obstacle), message),
    };
    let finding = Finding {
        // Each has its own remedy.
        group: finding.message.clone(),
        severity: Severity::Error,
        is_final: true,
        ..finding
    };
    finding.help(obstacle.help())
}

fn rule(obstacle: &Obstacle) -> &'static Rule {
    match obstacle {
        Obstacle::Range { problem, .. } => match problem {
            RangeProblem::NoPods => &NO_POD_CIDR,
            RangeProblem::Pods { .. } => &POD_CIDR_OUT_OF_RANGE,
            RangeProblem::Wireguard { .. } => &WIREGUARD_IP_OUT_OF_RANGE,
        },
        Obstacle::Overlap { .. } => &mistake::OVERLAPPING_RANGES,
        Obstacle::Refused(_) => &mistake::INVALID_RANGE,
    }
}
