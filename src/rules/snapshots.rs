//! Is a new snapshot plausible, and which of its values are not from the API?

use std::collections::BTreeSet;

use super::membership::words;
use super::{Finding, bare};
use crate::diagnostic::{Mistakes, Quoted, Severity};
use crate::document::nearest;
use crate::fleet::Fleet;
use crate::guard::{GuardRefusal, SameCluster, ShareLimit, Shrinkage};
use crate::kilo::lost_lead::LostLead;
use crate::membership::{ExcludedReason, Unready};
use crate::name::ClusterName;
use crate::place::Place;
use crate::snapshot::listing::Stale;
use crate::text::{first, listed, shell_word};

/// The age from which a dump is old, in seconds: nodes may have come since.
const OLD_DUMP: i64 = 3_600;

/// The most lost nodes that are named: a person confirms them with `--accept`.
const CONFIRMED: usize = 20;

rules! {
    "Checks of new snapshots" in "snapshots" about Snapshots;
    EMPTY_SNAPSHOT = "empty-snapshot" Error;
    TOO_MANY_NODES = "too-many-nodes" Error;
    TWIN_CLUSTER = "twin-cluster" Warning;
    SHRUNK_SNAPSHOT = "shrunk-snapshot" Error;
    UNREADABLE_SNAPSHOT = "unreadable-snapshot" Error;
    UNNAMED_CLUSTER = "unnamed-cluster" Warning;
    LOST_NODES = "lost-nodes" Notice;
    CARRIED_OVER = "carried-over" Warning;
    STALE_NODE = "stale-node" Notice;
}

/// Returns whether a finding is that a node is stale.
pub fn is_stale_node(finding: &Finding) -> bool {
    finding.rule == &STALE_NODE
}

/// Returns why a snapshot of `cluster` is not written; `kept` is the file that stays, if there is
/// one.
pub fn refusals(
    cluster: &ClusterName,
    refusals: &[GuardRefusal],
    kept: Option<&str>,
) -> Vec<Finding> {
    let kept = match kept {
        Some(file) => format!("{file} was kept"),
        None => "nothing was written".to_owned(),
    };
    let findings = refusals.iter().map(|refusal| {
        let (rule, message) = match refusal {
            GuardRefusal::Empty => (&EMPTY_SNAPSHOT, "the node list is empty".to_owned()),
            GuardRefusal::TooMany { nodes, limit } => (
                &TOO_MANY_NODES,
                format!("{nodes} nodes exceed the limit of {limit}"),
            ),
            GuardRefusal::Shrunk(loss) => {
                let message = format!("{} would lose {}", whose(loss), lost(loss));
                (&SHRUNK_SNAPSHOT, message)
            }
            GuardRefusal::Twin(twin) => (
                &TWIN_CLUSTER,
                format!("the list has the nodes of `{}`, such as {}", twin.other, Quoted(&twin.node)),
            ),
        };
        let finding = Finding::on_cluster(rule, cluster, format!("{message}; {kept}"));
        // Without a message, the old snapshot would stay for no visible reason.
        let is_final = matches!(refusal, GuardRefusal::Twin(_));
        let finding = Finding { severity: Severity::Error, is_final, ..finding };
        finding.help(match refusal {
            GuardRefusal::TooMany { .. } => format!(
                "if the cluster is that large, add `--accept {cluster}`, or raise `limits.nodes` \
                 in the config"
            ),
            GuardRefusal::Empty => format!(
                "the list is probably incomplete: run the command again with a new list; if the cluster has no node any more, add \
                 `--accept {cluster}`"
            ),
            GuardRefusal::Shrunk(loss) => shrunk_help(cluster, loss),
            GuardRefusal::Twin(SameCluster { other, .. }) => format!(
                "check the context or file, and run the command again with a list of `{cluster}`; if the snapshot of \
                 `{other}` is the wrong one, remove that file first"
            ),
        })
    });
    findings.collect()
}

/// Returns that `cluster` has lost more since an older version than a new snapshot may lose.
pub fn lost_since(cluster: &ClusterName, refusals: &[GuardRefusal], version: &str) -> Vec<Finding> {
    let findings = refusals.iter().filter_map(|refusal| {
        let (rule, message) = match refusal {
            GuardRefusal::Empty => (&EMPTY_SNAPSHOT, "the node list is empty".to_owned()),
            GuardRefusal::Shrunk(loss) => {
                let message = format!("{} has lost {}", whose(loss), lost(loss));
                (&SHRUNK_SNAPSHOT, message)
            }
            GuardRefusal::TooMany { .. } | GuardRefusal::Twin(_) => return None,
        };
        let message = format!("compared with {version}, {message}");
        let finding = Finding::on_cluster(rule, cluster, message);
        Some(finding.help("check the nodes of this cluster before you merge the change"))
    });
    findings.collect()
}

/// Returns why the snapshot of `cluster` is not replaced: it is unknown what would be lost.
pub fn unreadable(cluster: &ClusterName, file: &str, problem: &str) -> Finding {
    let message =
        format!("{file} is not a snapshot, so losses cannot be determined: {problem}; it was kept");
    Finding::on_cluster(&UNREADABLE_SNAPSHOT, cluster, message)
        .help(format!("restore the committed file, or add `--accept {cluster}` to replace it"))
}

/// Returns that no mesh names `cluster`, so that nothing can be judged; `nearest` is one that a mesh
/// names.
pub fn unknown(cluster: &ClusterName, nearest: Option<&str>) -> Finding {
    let message = "is in no mesh, so its nodes cannot be checked".to_owned();
    meaning(nearest, Finding::on_cluster(&UNNAMED_CLUSTER, cluster, message))
}

/// Returns that the config has a cluster that no mesh names: a typo, or a leftover.
pub fn unnamed(cluster: &str, nearest: Option<&str>, place: Place) -> Finding {
    let message = format!("no mesh contains a cluster {}", Quoted(cluster));
    meaning(nearest, Finding::new(&UNNAMED_CLUSTER, message).at(place, "").of_name(cluster))
}

/// Reports a cluster of the config that is not among those that meshes name.
pub fn find_unnamed(
    cluster: &ClusterName,
    named: &BTreeSet<&ClusterName>,
    place: Place,
    findings: &mut Mistakes,
) {
    findings.push_with(&UNNAMED_CLUSTER, || {
        let meant = nearest(cluster.as_str(), named.iter().map(|it| it.as_str()));
        unnamed(cluster.as_str(), meant, place)
    });
}

/// Adds the name that is probably meant, if there is one.
fn meaning(nearest: Option<&str>, finding: Finding) -> Finding {
    match nearest {
        Some(name) => finding.meant(name),
        None => finding,
    }
}

/// Returns that a cluster seems to be another cluster under a second name.
pub fn twin(twin: &SameCluster) -> Finding {
    let SameCluster { cluster, other, node } = twin;
    let message = format!("node {} is also a node of `{other}`", Quoted(node));
    Finding::on_cluster(&TWIN_CLUSTER, cluster, message).help(format!(
        "check the contexts or files of `{cluster}` and `{other}`: both probably show the nodes of the same cluster"
    ))
}

/// Returns that `cluster` seems to be another cluster whose nodes have the same names; `file` is its snapshot.
pub fn replaced(cluster: &ClusterName, nodes: usize, file: &str) -> Finding {
    let message = format!(
        "all {nodes} nodes have other UIDs and keys than before, so this may be another cluster with the same names"
    );
    Finding::on_cluster(&TWIN_CLUSTER, cluster, message).help(format!(
        "check the context or file of `{cluster}`, and restore its snapshot with `git checkout HEAD -- {}`; if the nodes were \
         replaced on purpose, keep the new snapshot",
        shell_word(file)
    ))
}

/// Returns what was brought back in a snapshot of `cluster`: annotations of these nodes.
pub fn carried_over(cluster: &ClusterName, nodes: &[String]) -> Vec<Finding> {
    let findings = nodes.iter().map(|node| {
        let message = "has no key at the moment (its Kilo agent may be restarting); the \
            annotations of the last snapshot were kept"
            .to_owned();
        let of_all = "no key at the moment (the Kilo agent may be restarting); the annotations of \
            the last snapshot were kept";
        let finding = Finding::on_node(&CARRIED_OVER, cluster, node, message);
        finding.with_alike(of_all, None).help(format!(
            "if Kilo was removed from {} permanently, add `--no-carry-over {cluster}`",
            if nodes.len() == 1 { "it" } else { "them" }
        ))
    });
    findings.collect()
}

/// Returns which nodes of `cluster` Kilo no longer counts.
pub fn stale(cluster: &ClusterName, nodes: &[Stale]) -> Vec<Finding> {
    let findings = nodes.iter().map(|Stale { node, seconds }| {
        let message = format!(
            "marked stale: its Kilo agent was last seen {} before the others",
            duration(*seconds)
        );
        let of_all = "marked stale: the Kilo agent was last seen before the others";
        let seen = duration(*seconds);
        Finding::on_node(&STALE_NODE, cluster, node, message)
            .with_alike(of_all, Some(seen))
            .help("check that Kilo runs on it and that its clock is right")
    });
    findings.collect()
}

/// Returns which nodes of `cluster` another node has replaced as leaders of their locations.
pub fn lost_leads(cluster: &ClusterName, nodes: &[LostLead]) -> Vec<Finding> {
    let findings = nodes.iter().map(|LostLead { node, seconds, leader }| {
        let why = match seconds {
            Some(seconds) => format!("was last seen {} ago", duration(*seconds)),
            None => "stopped".to_owned(),
        };
        let leader = Quoted(leader);
        let message =
            format!("marked lostLead: its Kilo agent {why}, and {leader} leads its location now");
        Finding::on_node(&STALE_NODE, cluster, node, message)
            .help("check that Kilo runs on it and that its clock is right")
    });
    findings.collect()
}

/// Returns which nodes have ranges in Peers although their agents are away, because they may be back at any time:
/// segments of their own, and former leaders.
pub(super) fn silent_nodes(fleet: &Fleet) -> Vec<Finding> {
    let found = fleet.first_memberships().flat_map(|member| {
        let candidates = member.membership.candidates.iter();
        let stale = candidates.filter(|it| it.unready == Some(Unready::Stale));
        let stale: BTreeSet<&str> = stale.map(|it| it.leader.as_str()).collect();
        let nodes = member.cluster.nodes.iter().map(|it| it.node);
        let silent = nodes.filter(move |it| it.lost_lead || stale.contains(it.name.as_str()));
        silent.map(move |node| {
            let mark = if node.lost_lead { "lostLead" } else { "stale" };
            let message =
                format!("marked {mark}: no path of it works until its Kilo agent checks in");
            let of_all =
                format!("marked {mark}: no path of them works until their Kilo agents check in");
            Finding::on_node(&STALE_NODE, &member.entry.name, &node.name, message)
                .at(member.place(node).key(mark), "")
                .with_alike(of_all, None)
                .help("check that Kilo runs on it and that its clock is right")
        })
    });
    found.collect()
}

/// Returns what meshes lose with a snapshot of `cluster` that is believed.
pub fn losses(cluster: &ClusterName, losses: &[Shrinkage]) -> Vec<Finding> {
    let findings = losses.iter().map(|loss| {
        let message = format!("{} loses {}", whose(loss), lost(loss));
        Finding::on_cluster(&LOST_NODES, cluster, message)
    });
    findings.collect()
}

/// Adds to findings about lost nodes that the dump is one node, or that it is old, given how long ago most of its nodes were
/// last seen.
pub fn doubt_losses(findings: &mut [Finding], is_single: bool, age: i64) {
    let is_loss = |it: &&mut Finding| it.rule == &LOST_NODES || it.rule == &SHRUNK_SNAPSHOT;
    for finding in findings.iter_mut().filter(is_loss) {
        if is_single {
            let whole = "if the cluster has more nodes, write the file with `kubectl get nodes -o json`: it is one Node";
            finding.help.get_or_insert_with(|| whole.to_owned());
        }
        if age <= OLD_DUMP {
            continue;
        }
        let age = duration(age);
        finding.message = format!(
            "{}; the list is old: most of its nodes were last seen {age} ago",
            finding.message
        )
        .into();
        let again =
            "if the nodes still exist, list them again and run the command with the new list";
        finding.help.get_or_insert_with(|| again.to_owned());
    }
}

/// Returns the remedies for the usual reasons of a loss.
fn shrunk_help(cluster: &ClusterName, loss: &Shrinkage) -> String {
    let gone = "if these nodes were removed from the cluster";
    if loss.gone.len() == loss.before {
        return format!(
            "if the list is incomplete or of another cluster, run the command again with a list of `{cluster}`; if all of \
             these nodes were removed or replaced, add `--accept {cluster}`"
        );
    }
    let incomplete = "if the list was incomplete, run the command again with a new list";
    let unusable = "correct what makes nodes unusable and run the command again with a new list";
    match (loss.gone.is_empty(), loss.unusable.is_empty()) {
        (false, true) => format!("{gone}, add `--accept {cluster}`; {incomplete}"),
        (true, _) => format!("{unusable}; if the loss is intended, add `--accept {cluster}`"),
        (false, false) => {
            format!("{unusable}; {incomplete}; if the loss is intended, add `--accept {cluster}`")
        }
    }
}

fn whose(loss: &Shrinkage) -> String {
    match &loss.mesh {
        Some(mesh) => format!("mesh {mesh}"),
        None => "the cluster".to_owned(),
    }
}

fn lost(loss: &Shrinkage) -> String {
    let before = loss.before;
    let share = match loss.nodes() {
        1 if before == 1 => "its only usable node".to_owned(),
        all if all == before => format!("all {before} usable nodes"),
        some => format!("{some} of {before} usable nodes{}", exceeded(loss)),
    };
    let mut parts = Vec::new();
    let is_replaced = |node: &String| loss.replaced.iter().any(|it| it.0 == *node);
    let names: Vec<String> =
        loss.gone.iter().filter(|it| !is_replaced(it)).map(|it| bare(it)).collect();
    if !names.is_empty() {
        parts.push(format!("gone: {}", first(CONFIRMED, names)));
    }
    let unusable = |nodes: &[(String, Option<ExcludedReason>)]| {
        listed(nodes.iter().map(|(node, reason)| match reason {
            Some(reason) => format!("{} ({})", bare(node), words(reason)),
            None => bare(node),
        }))
    };
    if !loss.replaced.is_empty() {
        parts.push(format!(
            "installed again (another UID) and unusable: {}",
            unusable(&loss.replaced)
        ));
    }
    if !loss.unusable.is_empty() {
        parts.push(format!("unusable: {}", unusable(&loss.unusable)));
    }
    format!("{share}; {}", parts.join("; "))
}

/// Returns the limit that a loss exceeds, if it does.
fn exceeded(loss: &Shrinkage) -> String {
    let Some(ShareLimit { percent, gone_percent }) = loss.limit else {
        return String::new();
    };
    let weight = if loss.gone.is_empty() || gone_percent == 100 {
        String::new()
    } else {
        format!(", where a node that is gone counts {gone_percent}%")
    };
    format!(" (the limit is {percent}%{weight})")
}

fn duration(seconds: i64) -> String {
    const DAY: i64 = 86_400;
    match seconds {
        ..120 => format!("{seconds} seconds"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        // Kilo reads an invalid time as zero.
        seconds if 3_650 * DAY < seconds => "many years".to_owned(),
        seconds => format!("{} days", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::ExcludedReason;

    #[test]
    fn a_loss_names_nodes_and_reasons() {
        let names = |range: std::ops::Range<u8>| range.map(|it| format!("n{it}"));
        let loss = Shrinkage {
            mesh: Some("prod".parse().unwrap()),
            before: 9,
            gone: names(1..6).collect(),
            replaced: Vec::new(),
            unusable: vec![("n7\u{1b}".to_owned(), Some(ExcludedReason::NoPublicKey))],
            limit: Some(ShareLimit { percent: 25, gone_percent: 50 }),
        };
        let found = refusals(
            &"east".parse().unwrap(),
            &[GuardRefusal::Shrunk(loss)],
            Some("snapshots/east.json"),
        );
        insta::assert_snapshot!(found[0].message, @r"mesh prod would lose 6 of 9 usable nodes (the limit is 25%, where a node that is gone counts 50%); gone: n1, n2, n3, n4, n5; unusable: n7\u{1b} (annotation kilo.squat.ai/key is missing or empty); snapshots/east.json was kept");
        insta::assert_snapshot!(found[0].help.as_deref().unwrap(), @"correct what makes nodes unusable and run the command again with a new list; if the list was incomplete, run the command again with a new list; if the loss is intended, add `--accept east`");
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        let durations = [301, 7_199, 7_200, 172_800, 1_763_600_000].map(duration);
        insta::assert_snapshot!(durations.join(", "), @"5 minutes, 119 minutes, 2 hours, 2 days, many years");
    }
}
