//! What does any change of Peers cost?

use std::collections::{BTreeMap, BTreeSet};

mod learned_endpoint;
mod silent_leaders;

use super::command::{annotate_nat, blank};
use super::{Finding, Rule, bare};
use crate::config::Config;
use crate::diagnostic::MetadataChange;
use crate::fleet::Fleet;
use crate::kilo::node::annotation;
use crate::mesh::Mesh;
use crate::name::ClusterName;
use crate::plan::Plan;
use crate::text::{NAMED, count, joined, listed, noun};
use learned_endpoint::LearnedEndpoints;
use silent_leaders::SilentLeaders;

/// The number of tunnels of an external peer above which there is a finding.
const MANY: usize = 100;

rules! {
    "Costs of changes" in "costs" about Plan;
    PAUSE_AFTER_CHANGE = "pause-after-change" Notice;
    LEARNED_ENDPOINT = "learned-endpoint" Notice;
    MANY_TUNNELS = "many-tunnels" Warning;
}

/// Returns a finding about all clusters of which traffic pauses when Peers change, and one about all nodes behind NAT that
/// others may forget.
pub(super) fn findings(fleet: &Fleet, config: &Config) -> Vec<Finding> {
    let pause = pause(&SilentLeaders::all(fleet), config);
    let learned = learned(&LearnedEndpoints::all(fleet), config);
    pause.into_iter().chain(learned).collect()
}

/// Returns the external peers with more tunnels than small devices are made for.
pub(super) fn many_tunnels(meshes: &[Mesh], plan: &Plan) -> Vec<Finding> {
    let tunnels = plan
        .externals
        .iter()
        .map(|it| (&it.cluster, plan.sets_of(it).map(|it| it.peers.len()).sum::<usize>()));
    let many = tunnels.filter(|it| MANY < it.1);
    let found = many.map(|(name, tunnels)| {
        let message = format!(
            "has {tunnels} tunnels, one to each segment of its clusters, each with a keepalive"
        );
        let mut entries = meshes.iter().filter_map(|it| it.entry(name));
        let finding = Finding::on_named(&MANY_TUNNELS, name.as_str(), message).help(
            "list fewer `clusters`, or use `granularity: Location` in Kilo and the mesh for clusters with many nodes",
        );
        match entries.next() {
            Some(entry) => finding.at(entry.place.key("clusters"), ""),
            None => finding,
        }
    });
    found.collect()
}

/// Returns whether a rule is about these costs.
pub fn is_about(rule: &Rule) -> bool {
    QUESTION.rules.contains(&rule)
}

/// Returns what to do about one cluster before any Peer is applied, given how its next snapshot is taken.
pub fn first_steps(
    fleet: &Fleet,
    config: &Config,
    cluster: &ClusterName,
    snapshot: &str,
) -> Vec<String> {
    let silent = SilentLeaders::all(fleet).into_iter().find(|it| it.cluster == cluster);
    let pause = silent.map(|it| format!("run {}, and then {snapshot}", it.command(config)));
    let mut forgotten = LearnedEndpoints::all(fleet);
    forgotten.retain(|it| it.cluster == cluster);
    let learned = learned(&forgotten, config).and_then(|it| it.help);
    pause.into_iter().chain(learned).collect()
}

fn pause(silent: &[SilentLeaders], config: &Config) -> Option<Finding> {
    let nodes: usize = silent.iter().map(|it| it.nodes.len()).sum();
    let clusters = silent.iter().map(|it| {
        let nodes = it.nodes.iter().map(|it| bare(it));
        format!("{} ({})", it.cluster, listed(nodes))
    });
    let (have, them) = match nodes {
        0 => return None,
        1 => ("has", "it"),
        _ => ("have", "them"),
    };
    let message = format!(
        "{} {have} no annotation `{}`, so requests through {them} may get no answer for 15 s whenever Peers change: {}",
        count(nodes, "node"),
        annotation::PERSISTENT_KEEPALIVE,
        listed(clusters)
    );
    let commands = silent.iter().take(NAMED).map(|it| it.command(config));
    let commands: Vec<String> = commands.collect();
    let names = || {
        format!(" {}", silent.iter().map(|it| it.cluster.as_str()).collect::<Vec<_>>().join(" "))
    };
    let (more, clusters) = match silent.len().saturating_sub(NAMED) {
        0 => (String::new(), names()),
        more => (format!(", the same for {}", count(more, "more cluster")), String::new()),
    };
    let help =
        format!("run {}{more}, and then `clustermesh snapshot{clusters}`", commands.join(", "));
    let change = MetadataChange::annotation(annotation::PERSISTENT_KEEPALIVE, "25");
    let mut finding = Finding::new(&PAUSE_AFTER_CHANGE, message).help(help);
    if let [only] = silent {
        finding = finding.of_name(only.cluster.as_str());
    }
    Some(silent.iter().fold(finding, |finding, it| {
        finding.resolved_by(&change, it.cluster, it.silent.iter().copied())
    }))
}

fn learned(learned: &[LearnedEndpoints], config: &Config) -> Option<Finding> {
    let nodes: usize = learned.iter().map(|it| it.nodes.len()).sum();
    let mut forgetting: BTreeMap<&BTreeSet<&ClusterName>, Vec<String>> = BTreeMap::new();
    for it in learned {
        let nodes = it.nodes.iter().map(|node| format!("{}/{}", it.cluster, bare(node)));
        forgetting.entry(&it.targets).or_default().extend(nodes);
    }
    let forgetting = forgetting.iter().map(|(targets, nodes)| {
        let addresses = if nodes.len() == 1 { "address" } else { "addresses" };
        let (targets, nodes) = (joined(*targets, "and"), joined(nodes, "and"));
        format!("{targets} may forget the {addresses} of {nodes}")
    });
    let forgetting: Vec<String> = forgetting.collect();
    let first = learned.first()?;
    let node = first.nodes.first()?;
    let are = if nodes == 1 { "is" } else { "are" };
    let message = format!(
        "{}, which {are} behind NAT, when several Peers change together: unreachable for 15 to 205 s",
        forgetting.join(", ")
    );
    let more = match nodes - 1 {
        0 => String::new(),
        more => format!(" (the same for {more} more {})", noun(more, "node")),
    };
    let command = annotate_nat(&config.kubectl(first.cluster), node);
    let help = format!(
        "if the NAT has a fixed address and port, run `{command}` with its address and port{more}; otherwise {}",
        without_fixed_address(learned)
    );
    let change = blank(annotation::FORCE_ENDPOINT);
    let finding = Finding::new(&LEARNED_ENDPOINT, message).help(help);
    Some(learned.iter().fold(finding, |finding, it| {
        finding.resolved_by(&change, it.cluster, it.nodes.iter().copied())
    }))
}

/// Returns what helps if the address of a NAT is unknown.
fn without_fixed_address(learned: &[LearnedEndpoints]) -> String {
    if learned.iter().any(|it| !it.small_targets.is_empty()) {
        let clusters = learned.iter().map(|it| it.cluster);
        return format!(
            "run `clustermesh diff` before each change, which shows when to change one cluster after another, and {} last",
            joined(clusters, "and")
        );
    }
    let targets: BTreeSet<&ClusterName> =
        learned.iter().flat_map(|it| &it.targets).copied().collect();
    format!(
        "annotate at least two public nodes of {} with `{}=25`",
        joined(targets, "and"),
        annotation::PERSISTENT_KEEPALIVE
    )
}

#[cfg(test)]
mod tests;
