//! Losses and moves: the changes of a render to the tree on disk.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::nodes::SILENT_CLUSTER;
use super::plan::within;
use super::{Finding, bare};
use crate::agent::applied::AppliedFile;
use crate::diagnostic::mistake::NO_MESH;
use crate::diagnostic::{Severity, escaped, gravest_first};
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::manifest::{OldPeer, Reading};
use crate::name::{ClusterName, peer_name};
use crate::place::Place;
use crate::plan::Plan;
use crate::text::{count, listed};
use crate::tree_diff::{self, Case, ChangedFile, Loss, Moved, Rekeyed, Renamed, Shrunk, TreeDiff};

rules! {
    "rendered" about Tree;
    EMPTY_TARGET = "empty-target" Error;
    LOST_TARGET = "lost-target" Error;
    LOST_SOURCE = "lost-source" Error;
    SHRUNK_SOURCE = "shrunk-source" Warning;
    RENAMED_PEER = "renamed-peer" Warning;
    MOVED_ANCHOR = "moved-anchor" Warning;
    CHANGED_KEY = "changed-key" Notice;
}

/// The longest part of a flag that is shown, in characters.
const MAX_LENGTH: usize = 400;

/// The remedy for a cluster without Peers, whose causes have findings of their own.
const REPAIR: &str = "correct what the other findings report";

/// The way in which a user allows losses.
#[derive(Clone, Copy, Debug)]
pub enum Allowing<'a> {
    /// With a flag of the command that writes the tree.
    Write,
    /// With a flag of the command that prints this target.
    Print(&'a str),
    /// With a parameter of the Argo CD plugin.
    Parameter,
}

impl Allowing<'_> {
    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write | Self::Print(_) => "--allow-empty",
            Self::Parameter => "the parameter `allow-empty`",
        }
    }

    /// Returns how to allow losses, given as `TARGET` or `TARGET/SOURCE`.
    fn instruction(self, losses: &[String]) -> String {
        let losses = losses
            .iter()
            .map(|it| quoted(&escaped(it, MAX_LENGTH)).into_owned());
        let flags = |losses: Vec<String>| {
            let flags = losses.iter().map(|it| format!(" --allow-empty {it}"));
            flags.collect::<String>()
        };
        let losses: Vec<String> = losses.collect();
        match self {
            Self::Write => format!("run `clustermesh render{}`", flags(losses)),
            Self::Print(target) => {
                let (target, flags) = (quoted(target), flags(losses));
                format!("run `clustermesh render --target {target}{flags}`")
            }
            Self::Parameter => {
                let losses = losses.join(", ");
                format!(
                    "add `{{name: allow-empty, array: [{losses}]}}` to the parameters of the plugin"
                )
            }
        }
    }
}

/// Adds what a render would not do unless a flag allows it, the most severe first. The help names the
/// cause first, and then the command that allows everything that is listed.
pub fn add_losses(findings: &mut Vec<Finding>, losses: &[Loss], fleet: &Fleet, allowing: Allowing) {
    // Without a mesh every target is lost, and that one finding is enough.
    if losses.is_empty() || findings.iter().any(|it| it.rule == &NO_MESH) {
        return;
    }
    let instruction = allowing.instruction(&allowed_by(losses));
    let intention = intention(losses);
    let losses: Vec<Finding> = losses
        .iter()
        .map(|it| {
            let finding = lost(it, fleet);
            let help = match (it, &finding.help) {
                (Loss::SilentSource { .. }, Some(repair)) => {
                    format!("{repair}; if it should have no Peers, {instruction}")
                }
                (Loss::SilentSource { .. } | Loss::EmptyTarget { .. }, None) => {
                    format!("{REPAIR}; if it should have no Peers, {instruction}")
                }
                _ => format!("{intention}, {instruction}"),
            };
            finding.help(help)
        })
        .collect();
    // A silent cluster is an error then, instead of the warning that it was.
    let is_graver = |it: &Finding| {
        let mut silent = losses.iter().filter(|loss| loss.rule == &SILENT_CLUSTER);
        it.rule == &SILENT_CLUSTER && silent.any(|loss| loss.cluster == it.cluster)
    };
    findings.retain(|it| !is_graver(it));
    findings.extend(losses);
    gravest_first(findings);
}

/// Returns the first part of a remedy: the reviewed way to remove clusters, and when a flag is right.
fn intention(losses: &[Loss]) -> String {
    let removed = losses.iter().filter_map(|it| match it {
        Loss::Target { target, .. } => Some(target.as_str()),
        _ => None,
    });
    let removed: Vec<&str> = removed.collect();
    // A source that only one target loses has probably lost a link.
    let targets_of = targets_of(losses);
    let lost = targets_of.iter().filter(|(_, targets)| 1 < **targets);
    let lost: Vec<&str> = lost.map(|(source, _)| *source).collect();
    match (removed.as_slice(), lost.as_slice()) {
        ([], []) => "if intended".to_owned(),
        ([], [source]) => format!(
            "if `{}` should leave the mesh, set `state: Leaving` in its entry; if only these Peers \
             should be removed",
            bare(source)
        ),
        ([], _) => "if these clusters should leave the mesh, set `state: Leaving` in their \
                    entries; if only these Peers should be removed"
            .to_owned(),
        ([target], _) => format!(
            "if `{}` should leave the mesh, restore its entry with `state: Leaving`; to remove its \
             folder now",
            bare(target)
        ),
        _ => "if these clusters should leave the mesh, restore their entries with `state: \
              Leaving`; to remove their folders now"
            .to_owned(),
    }
}

/// Counts the targets that lose a source, for each source.
fn targets_of(losses: &[Loss]) -> BTreeMap<&str, usize> {
    let mut targets_of = BTreeMap::new();
    for loss in losses {
        if let Loss::Source { source, .. } = loss {
            *targets_of.entry(source.as_str()).or_default() += 1;
        }
    }
    targets_of
}

/// Returns what allows losses, as `TARGET` or `TARGET/SOURCE`.
fn allowed_by(losses: &[Loss]) -> Vec<String> {
    let targets_of = targets_of(losses);
    let mut flags: Vec<String> = Vec::new();
    for loss in losses {
        let flag = match loss {
            Loss::EmptyTarget { target } | Loss::Target { target, .. } => target.clone(),
            Loss::Source { target, source, .. } if targets_of.get(source.as_str()) == Some(&1) => {
                format!("{target}/{source}")
            }
            Loss::Unrecorded { target, source } => format!("{target}/{source}"),
            Loss::Source { source, .. } | Loss::SilentSource { source } => format!("*/{source}"),
        };
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    flags
}

fn lost(loss: &Loss, fleet: &Fleet) -> Finding {
    match loss {
        Loss::SilentSource { source } => {
            let mut finding = match members(fleet, source).next() {
                Some(member) => {
                    super::membership::silent(member, false).at(member.entry.place.key("name"), "")
                }
                None => Finding::on_named(&SILENT_CLUSTER, source, "has no Peer".to_owned()),
            };
            finding.severity = Severity::Error;
            finding
        }
        Loss::EmptyTarget { target } => {
            let message = no_peers(fleet, target);
            alike(
                Finding::on_named(&EMPTY_TARGET, target, message),
                "clusters",
            )
        }
        Loss::Target {
            target,
            peers,
            place,
        } => {
            let peers = count(*peers, "Peer");
            let message = format!("is no longer in any mesh, but its folder has {peers}");
            let finding = Finding::on_named(&LOST_TARGET, target, message);
            alike(finding, "clusters").at(place.clone(), "")
        }
        Loss::Source {
            target,
            source,
            peers,
            place,
        } => {
            let peers = match peers {
                1 => "its only Peer".to_owned(),
                peers => format!("all {peers} Peers"),
            };
            let message = format!("{peers} would be removed from {}", bare(target));
            Finding::on_named(&LOST_SOURCE, source, message).at(place.clone(), "")
        }
        Loss::Unrecorded { target, source } => {
            let target = bare(target);
            let message = format!(
                "would have no Peers in {target}, and {target} has no rendered folder to compare \
                 with"
            );
            let finding = Finding::on_named(&LOST_SOURCE, source, message);
            match members(fleet, source).next() {
                Some(member) => finding.at(member.entry.place.key("name"), ""),
                None => finding,
            }
        }
    }
}

/// Describes that a target would have no Peers, with the clusters that have none for it.
fn no_peers(fleet: &Fleet, target: &str) -> String {
    let target: Option<ClusterName> = target.parse().ok();
    let sources = target.iter().flat_map(|it| fleet.sources(it));
    let sources: BTreeSet<String> = sources
        .map(|(_, source, _)| source.entry.name.to_string())
        .collect();
    if sources.is_empty() {
        return "would have no Peers: the mesh links it to no cluster".to_owned();
    }
    format!("would have no Peers from {}", listed(sources))
}

/// Reports findings together although they are about several clusters.
fn alike(mut finding: Finding, group: &str) -> Finding {
    group.clone_into(&mut finding.group);
    finding
}

/// Returns a word as a shell takes it, for names of folders and labels may hold anything.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/');
    if word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns which cluster-wide ranges move where a cluster that has these Peers, perhaps the operator's,
/// applies the plan.
pub fn take_over(plan: &Plan, target: &ClusterName, files: &[AppliedFile]) -> Vec<Finding> {
    let files: Vec<ChangedFile> = files.iter().map(|it| old_file(target, it)).collect();
    let moves = tree_diff::moves(plan, target.as_str(), &files);
    moves.iter().map(|it| moved(it, None)).collect()
}

/// Returns a file as if it were in the folder of a target.
fn old_file(target: &ClusterName, file: &AppliedFile) -> ChangedFile {
    let peers = file.content.peers.iter().filter_map(|peer| {
        let spec = peer.spec.as_ref().ok()?;
        let ranges = spec.allowed_ips.iter();
        Some(OldPeer {
            name: peer.name.clone(),
            source: None,
            key: Some(spec.key),
            ranges: ranges.map(|it| it.interface.network).collect(),
            has_endpoint: spec.endpoint.is_some(),
            bytes: 0..0,
        })
    });
    let reading = Reading {
        peers: peers.collect(),
        oddities: Vec::new(),
    };
    ChangedFile {
        path: format!("{target}/{}", file.source),
        source: Arc::clone(&file.source),
        is_stale: false,
        content: tree_diff::ChangedContent::Peers(Arc::new(reading)),
    }
}

/// Returns the changes of a render that should be reviewed.
pub(super) fn findings(changes: &TreeDiff, fleet: &Fleet) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(changes.shrunk.iter().map(|it| shrunk(it, fleet)));
    findings.extend(changes.renamed.iter().map(renamed));
    let moves = changes.moved.iter();
    findings.extend(moves.map(|it| moved(it, named(&it.what, fleet))));
    findings.extend(changes.rekeyed.iter().map(|it| rekeyed(it, fleet)));
    findings
}

fn shrunk(case: &Case<Shrunk>, fleet: &Fleet) -> Finding {
    let Shrunk {
        source,
        before,
        gone,
    } = &case.what;
    let message = format!(
        "{} of {before} Peers would be removed: {} {}",
        gone.len(),
        listed(gone.iter().map(|it| bare(it))),
        within(&case.targets)
    );
    let finding = Finding::on_named(&SHRUNK_SOURCE, source, message).at(case.place.clone(), "would be removed").help(
        "check why these nodes are left out and whether the snapshot is correct, unless the nodes \
         were removed",
    );
    match excluded(fleet, source, gone) {
        Some(place) => finding.at(place, "left out"),
        None => finding,
    }
}

/// Returns where the first node is that is left out and had one of these Peers.
fn excluded(fleet: &Fleet, source: &str, gone: &[String]) -> Option<Place> {
    members(fleet, source).find_map(|member| {
        let (mesh, cluster) = (&member.mesh.name, &member.entry.name);
        let mut excluded = member.membership.excluded.iter();
        let is_meant = excluded.find(|it| {
            let name = peer_name(mesh.as_str(), cluster.as_str(), &it.node);
            gone.contains(&name)
        });
        is_meant.map(|it| it.place.key("name"))
    })
}

fn renamed(case: &Case<Renamed>) -> Finding {
    let Renamed {
        source,
        node,
        from,
        to,
    } = &case.what;
    let message = format!(
        "Peer {} would be renamed to {to} {}",
        bare(from),
        within(&case.targets)
    );
    let finding = Finding::on_named(&RENAMED_PEER, source, message);
    on_node(finding, node).at(case.place.clone(), "").help(
        "delete the old Peer before applying the new one, or touch the new one after the deletion: \
         `kubectl annotate peers --overwrite NAME touched=1`",
    )
}

/// Reports a range that gets another Peer, given where the mesh names the node that gets it.
///
/// Where it does, people have asked for the move. What else moves a range may be a node that comes,
/// goes, or claims another address. The tree does not record why a Peer carries a range, so an edit
/// that only removes the old node's name looks the same.
fn moved(case: &Case<Moved>, named: Option<Place>) -> Finding {
    let Moved {
        source,
        range,
        from,
        to,
    } = &case.what;
    let is_asked = named.is_some();
    let message = format!(
        "{range} would move from {} to {to} {}{}",
        bare(from),
        within(&case.targets),
        if is_asked {
            ", as set in `anchors`"
        } else {
            ", which the mesh does not request"
        }
    );
    let mut finding = Finding::on_named(&MOVED_ANCHOR, source, message)
        .at(case.place.clone(), "carries the range now")
        .at(named, "set here");
    if is_asked {
        finding.severity = Severity::Notice;
        return finding
            .help("apply it in a maintenance window: connections to this range will break once");
    }
    finding.help(
        "pin the range to nodes with `anchors`; otherwise connections to it will break \
        once",
    )
}

/// Returns where the mesh names the node that a range moves to, as one of those that are to carry it;
/// nothing if it names the node that carried it before that one.
fn named(moved: &Moved, fleet: &Fleet) -> Option<Place> {
    members(fleet, &moved.source).find_map(|member| {
        let (mesh, cluster) = (&member.mesh.name, &member.entry.name);
        let is = |name: &str, peer: &str| peer_name(mesh.as_str(), cluster.as_str(), name) == peer;
        let anchors = member.entry.anchors.iter();
        let mut meant = anchors.filter(|anchor| {
            let ranges = anchor.ranges.as_ref();
            // One that is spread moves in parts.
            ranges.is_none_or(|it| it.iter().any(|range| range.contains(moved.range)))
        });
        meant.find_map(|anchor| {
            let mut nodes = anchor.nodes.iter();
            let first = nodes.find(|it| is(&it.name, &moved.to) || is(&it.name, &moved.from))?;
            is(&first.name, &moved.to).then(|| first.place.clone())
        })
    })
}

fn rekeyed(case: &Case<Rekeyed>, fleet: &Fleet) -> Finding {
    let Rekeyed { source, node, peer } = &case.what;
    let message = format!(
        "Peer {} would get another key {}",
        bare(peer),
        within(&case.targets)
    );
    let finding = on_node(Finding::on_named(&CHANGED_KEY, source, message), node)
        .at(case.place.clone(), "")
        .help(
            "expected after a node or Kilo was reinstalled; otherwise find out who changed the key",
        );
    let mut candidates = members(fleet, source).flat_map(|it| &it.membership.candidates);
    match candidates.find(|it| it.leader.as_str() == node) {
        Some(candidate) => {
            let place = candidate.place.key("annotations").key(annotation::KEY);
            finding.at(place, "the new key")
        }
        None => finding,
    }
}

fn members<'f>(fleet: &'f Fleet, source: &str) -> impl Iterator<Item = &'f Member<'f>> {
    let source: Option<crate::name::ClusterName> = source.parse().ok();
    let members = fleet.members().iter();
    members.filter(move |it| source.as_ref() == Some(&it.entry.name))
}

fn on_node(mut finding: Finding, node: &str) -> Finding {
    finding.node = Some(node.to_owned());
    finding
}
