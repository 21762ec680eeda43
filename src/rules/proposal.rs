//! Could the clusters be joined for which a mesh is to be proposed?

use super::ranges::{NO_POD_CIDR, POD_CIDR_OUT_OF_RANGE, WIREGUARD_IP_OUT_OF_RANGE};
use super::snapshots::twin;
use super::{Finding, Rule};
use crate::diagnostic::{Severity, mistake};
use crate::guard::SameCluster;
use crate::proposal::{Obstacle, RangeProblem};

/// Returns the findings about obstacles. Of two names of one cluster all ranges overlap, and only the
/// second name is to be changed.
pub fn obstacles(obstacles: &[Obstacle], twins: &[SameCluster]) -> Vec<Finding> {
    let follows = |obstacle: &Obstacle, twin: &SameCluster| match obstacle {
        Obstacle::Overlap { moves, stays, .. } => {
            let mut clusters = [&moves.cluster, &stays.cluster];
            clusters.sort();
            let mut twins = [&twin.cluster, &twin.other];
            twins.sort();
            clusters == twins
        }
        Obstacle::Range { .. } | Obstacle::Refused(_) => false,
    };
    let causes = twins.iter().filter(|twin| obstacles.iter().any(|it| follows(it, twin)));
    let rest = obstacles.iter().filter(|it| !twins.iter().any(|twin| follows(it, twin)));
    causes.map(refused_twin).chain(rest.map(obstacle)).collect()
}

/// Returns the findings about names that would be second names of one cluster.
pub fn twins(twins: &[SameCluster]) -> Vec<Finding> {
    twins.iter().map(refused_twin).collect()
}

fn refused_twin(same: &SameCluster) -> Finding {
    Finding { severity: Severity::Error, is_final: true, ..twin(same) }
}

/// Returns the finding about an obstacle. Nothing can be proposed, so it is an error.
fn obstacle(obstacle: &Obstacle) -> Finding {
    let message = obstacle.to_string();
    let finding = match obstacle.cluster() {
        Some(cluster) => Finding::on_cluster(rule(obstacle), cluster, message),
        None => Finding::new(rule(obstacle), message),
    };
    let finding = Finding {
        // Each has its own remedy.
        group: finding.message.to_string(),
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
            RangeProblem::Wireguard => &WIREGUARD_IP_OUT_OF_RANGE,
        },
        Obstacle::Overlap { .. } => &mistake::OVERLAPPING_RANGES,
        Obstacle::Refused(_) => &mistake::INVALID_RANGE,
    }
}
