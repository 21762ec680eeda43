//! Losses and moves: the changes of a render to the tree on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kilo::unlocated_leader;
use super::nodes::{CUT_OFF, contradicted_label};
use super::plan::within;
use super::ranges::outside;
use super::{Finding, bare, membership};
use crate::agent::applied::AppliedFile;
use crate::changes::{Changes, OpenedPaths, WatchedPaths};
use crate::config::Config;
use crate::diagnostic::{FindingCause, Quoted};
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::kilo::peer::EXTERNAL_LABEL;
use crate::manifest::{MESH_LABEL, OldPeer, Reading, SOURCE_LABEL};
use crate::mesh::Mesh;
use crate::name::{ClusterName, peer_name};
use crate::place::Place;
use crate::plan::Plan;
use crate::text::{count, listed};
use crate::tree_diff::{self, Case, ChangedFile, Moved, Rekeyed, Renamed, TreeDiff};

mod causes;
mod exchanged;
mod losses;
mod moved;
mod shrunk;
mod unaccepted;

pub(super) use causes::CONSEQUENCES;
pub use losses::{Allowing, PlannedFleet, add_losses, rule_of};
use moved::{MoveReason, anchor_item, moved, pin};
pub(super) use unaccepted::raise_lost;

rules! {
    "Changes to the rendered tree" in "rendered" about Tree;
    EMPTY_TARGET = "empty-target" Error;
    LOST_TARGET = "lost-target" Error;
    LOST_SOURCE = "lost-source" Error;
    RENAMED_MESH = "renamed-mesh" Error;
    SHRUNK_SOURCE = "shrunk-source" Warning;
    RENAMED_PEER = "renamed-peer" Warning;
    MOVED_ANCHOR = "moved-anchor" Warning;
    CHANGED_KEY = "changed-key" Notice;
    OPENED_PATH = "opened-path" Error;
}

/// Returns findings for the watched paths that a change opens, or may open. Each is at the line that opens them, and at
/// the entry of the receiver.
pub fn opened(changes: &Changes, watched: &[WatchedPaths], meshes: &[Mesh]) -> Vec<Finding> {
    let new = changes.new_paths(watched);
    let opened = new.iter().map(|it| {
        let path = it.path;
        let OpenedPaths { stay, pass, .. } = &path.opened;
        let example = path.opened.example.as_ref();
        let example = example.map(|(from, to)| format!(", such as from {from} to {to}"));
        let message = format!(
            "{} from `{}` to `{}`{}{}",
            match stay.all() {
                0 => format!("{} may open while the change is applied", count(pass.all(), "path")),
                1 => "1 path opens".to_owned(),
                stay => format!("{stay} paths open"),
            },
            path.from,
            path.to,
            example.unwrap_or_default(),
            match (stay.all(), pass.all()) {
                (0, _) | (_, 0) => String::new(),
                (_, pass) => format!(", and {pass} more while the change is applied"),
            }
        );
        let setting = it.setting(changes);
        let flags = it.watched.iter();
        let flags = flags.map(|it| format!("`--fail-on-new-path {}`", it.name));
        let revert = setting.map(|it| format!("; otherwise revert the change of `{}`", it.field));
        let receiver = meshes.iter().find_map(|it| it.entry(&path.to));
        Finding::on_cluster(&OPENED_PATH, &path.from, message)
            .at(setting.and_then(|it| it.after.clone()), "the cause")
            .at(receiver.map(|it| it.place.key("name")), "the receiver")
            .help(format!(
                "if the paths are intended, remove {} from the command{}",
                listed(flags),
                revert.unwrap_or_default()
            ))
    });
    let unwatched = changes.unwatched.iter().map(|it| {
        let message = "too many states on the way to look for new paths in each of them";
        let finding = Finding::on_cluster(&OPENED_PATH, it, message);
        finding.help("apply the change in smaller parts")
    });
    opened.chain(unwatched).collect()
}

/// The largest number of ranges that move for which nodes that could carry them are looked for.
const EXPLAINED: usize = 100;

/// The largest number of targets for which there is a command each.
const NAMED_TARGETS: usize = 3;

/// Reports findings together although they are about several clusters.
fn alike(mut finding: Finding, group: &str) -> Finding {
    group.clone_into(&mut finding.group);
    finding
}

/// Returns which cluster-wide ranges move where a cluster that has these Peers, perhaps the operator's,
/// applies the plan.
pub fn take_over(plan: &Plan, target: &ClusterName, files: &[AppliedFile]) -> Vec<Finding> {
    let files: Vec<ChangedFile> = files.iter().map(|it| old_file(target, it)).collect();
    let moves = tree_diff::moves(plan, target.as_str(), &files);
    moves
        .iter()
        .map(|it| moved(it, MoveReason::Unknown, "pin the range to nodes with `anchors`; "))
        .collect()
}

/// Returns a file as if it were in the folder of a target.
fn old_file(target: &ClusterName, file: &AppliedFile) -> ChangedFile {
    let peers = file.content.peers.iter().filter_map(|peer| {
        let spec = peer.spec.as_ref().ok()?;
        Some(OldPeer {
            name: peer.name.clone(),
            source: None,
            key: Some(spec.key),
            ranges: spec.networks(),
            endpoint_flaw: spec.endpoint_flaw(),
            dialled: spec.dialled().map(|it| it.host.clone()),
            bytes: 0..0,
        })
    });
    let reading = Reading { peers: peers.collect(), oddities: Vec::new() };
    ChangedFile {
        path: format!("{target}/{}", file.source),
        source: Arc::clone(&file.source),
        is_stale: false,
        content: tree_diff::ChangedContent::Peers(Arc::new(reading)),
    }
}

/// Returns the changes of a render that should be reviewed.
pub(super) fn findings(changes: &TreeDiff, planned: PlannedFleet, config: &Config) -> Vec<Finding> {
    let PlannedFleet { fleet, plan } = planned;
    let cut_off: BTreeSet<&str> = plan.cut_off().map(|it| it.cluster.as_str()).collect();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(changes.shrunk.iter().map(|it| {
        let of_target = match it.targets.as_slice() {
            [target] => cut_off.get(target.as_str()),
            _ => None,
        };
        let cause = of_target.map(|target| FindingCause::of(&CUT_OFF, target));
        shrunk::finding(it, fleet, cause)
    }));
    let exchanged = exchanged::pairs(&changes.renamed);
    let exchanged_names: BTreeSet<&str> =
        exchanged.iter().flatten().map(|it| it.what.from.as_str()).collect();
    let is_exchanged = |peer: &str| exchanged_names.contains(peer);
    findings.extend(exchanged.iter().map(|it| exchanged::finding(it, fleet)));
    let renamed_alone = changes.renamed.iter().filter(|it| !is_exchanged(&it.what.from));
    findings.extend(renamed_alone.map(|it| {
        let mut names = changes.names.iter();
        let old = names.find(|(_, new)| **new == it.what.source).map(|it| it.0.as_str());
        renamed(it, old, config)
    }));
    let mut pins: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for it in &changes.moved {
        let of_source = pins.entry(it.what.source.as_str()).or_default();
        of_source.insert(anchor_item(&it.what, fleet));
    }
    let readdressed = readdressed(pins.keys().copied(), fleet);
    let are_few = changes.moved.len() <= EXPLAINED;
    findings.extend(changes.moved.iter().map(|it| {
        let of_source = pins.get(it.what.source.as_str());
        let pin = pin(&it.what, of_source.into_iter().flatten(), fleet);
        let left_out = carrier_left_out(it, planned);
        let reason = match left_out {
            Some(_) => MoveReason::LeftOut,
            None => MoveReason::of(&it.what, fleet),
        };
        let is_gone = are_few && matches!(reason, MoveReason::Gone);
        let finding = moved(it, reason, &pin);
        let left_out =
            left_out.or_else(|| is_gone.then(|| successor_left_out(it, planned)).flatten());
        let cause = wrong_label(fleet, &it.what.source).or(left_out);
        let cause = cause.or_else(|| unlocated(&it.what, fleet));
        finding.with_cause(cause.or_else(|| readdressed.get(&it.what.from).cloned()))
    }));
    let rekeyed_alone = changes.rekeyed.iter().filter(|it| !is_exchanged(&it.what.peer));
    findings.extend(rekeyed_alone.map(|it| rekeyed(it, fleet)));
    findings
}

/// Returns whether a range moves away from the Peer of a node.
fn is_from(moved: &Moved, member: &Member, node: &str) -> bool {
    peer_name(member.mesh.name.as_str(), member.entry.name.as_str(), node) == moved.from
}

/// Returns the finding that the node that carries a range has no location, if that is why it no longer leads one.
fn unlocated(moved: &Moved, fleet: &Fleet) -> Option<FindingCause> {
    members(fleet, &moved.source).find_map(|member| {
        let cause = unlocated_leader(member)?;
        is_from(moved, member, cause.node.as_deref()?).then_some(cause)
    })
}

/// Returns the findings about nodes whose addresses are in no declared range, by their Peers.
fn readdressed<'s>(
    sources: impl Iterator<Item = &'s str>,
    fleet: &Fleet,
) -> BTreeMap<String, FindingCause> {
    let members = sources.flat_map(|source| members(fleet, source));
    let peers = members.flat_map(|member| {
        outside::causes(member).into_iter().map(|(node, cause)| {
            let (mesh, cluster) = (member.mesh.name.as_str(), member.entry.name.as_str());
            (peer_name(mesh, cluster, &node), cause)
        })
    });
    peers.collect()
}

/// Returns the finding for which the node that carries a range is left out, if it is.
fn carrier_left_out(change: &Case<Moved>, planned: PlannedFleet) -> Option<FindingCause> {
    let PlannedFleet { fleet, plan } = planned;
    let source = &change.what.source;
    let of_peer = |member: &Member, node: &str| is_from(&change.what, member, node);
    let excluded = || {
        members(fleet, source).find_map(|member| {
            let mut excluded = member.membership.excluded.iter();
            let node = excluded.find(|it| of_peer(member, &it.node))?;
            Some(membership::excluded(member, node).as_cause())
        })
    };
    let withheld = || {
        let mut withheld = plan.withheld.iter().filter(|it| {
            it.source.as_str() == source
                && change.targets.iter().any(|target| it.target.as_str() == target)
        });
        withheld.find_map(|it| {
            let cause = super::plan::finding(it).as_cause();
            let node = cause.node.as_deref()?;
            members(fleet, source).any(|member| of_peer(member, node)).then_some(cause)
        })
    };
    excluded().or_else(withheld)
}

/// Returns the finding for which a node with an address in a range is left out, if one is that could carry it instead of a node
/// that is gone.
fn successor_left_out(change: &Case<Moved>, planned: PlannedFleet) -> Option<FindingCause> {
    let PlannedFleet { fleet, plan } = planned;
    let Moved { source, range, .. } = &change.what;
    let is_inside = |member: &Member, name: &str| {
        let node = member.cluster.node(name);
        node.is_some_and(|it| it.internal_addresses().any(|it| range.holds(it)))
    };
    let excluded = members(fleet, source).find_map(|member| {
        let mut excluded = member.membership.excluded.iter();
        let node = excluded.find(|it| is_inside(member, &it.node))?;
        Some(membership::excluded(member, node).as_cause())
    });
    let withheld = || {
        let mut withheld = plan.withheld.iter().filter(|it| {
            let mut targets = change.targets.iter();
            it.source.as_str() == source && targets.any(|target| it.target.as_str() == target)
        });
        withheld.find_map(|it| {
            let cause = super::plan::finding(it).as_cause();
            let node = cause.node.as_deref()?;
            members(fleet, source).any(|member| is_inside(member, node)).then_some(cause)
        })
    };
    excluded.or_else(withheld)
}

/// Returns a wrong label of locations, by which other nodes of the cluster lead.
fn wrong_label(fleet: &Fleet, source: &str) -> Option<FindingCause> {
    members(fleet, source)
        .find_map(|it| contradicted_label(it).or_else(|| membership::split_locations(it)))
}

/// Reports a Peer with another name, given the old name of its cluster or external peer if that has a new one. The folder of a
/// cluster is lost then.
fn renamed(case: &Case<Renamed>, old: Option<&str>, config: &Config) -> Finding {
    let Renamed { source, node, from, to, mesh } = &case.what;
    let external = old.filter(|it| ClusterName::is_external_text(it));
    let now = external.map(|it| format!("was called {}, so ", Quoted(it))).unwrap_or_default();
    let message =
        format!("{now}Peer {} would be renamed to {to} {}", bare(from), within(&case.targets));
    let selector = match mesh {
        Some(mesh) => format!("{MESH_LABEL}={mesh}"),
        None => match source.strip_prefix("external.") {
            Some(name) => format!("{EXTERNAL_LABEL}={}", bare(name)),
            None => format!("{SOURCE_LABEL}={}", bare(source)),
        },
    };
    let command =
        |kubectl: &str| format!("`{kubectl} annotate peers --overwrite -l {selector} touched=1`");
    let targets = case.targets.iter().filter_map(|it| it.parse().ok());
    let commands = if case.targets.len() <= NAMED_TARGETS {
        listed(targets.map(|it| command(&config.kubectl(&it))))
    } else {
        format!("{} in each of these clusters", command("kubectl"))
    };
    let mut finding = Finding::on_named(&RENAMED_PEER, source, message);
    if let Some(old) = old {
        finding = finding.of_name(old);
    }
    let folder = old.and_then(|it| it.parse::<ClusterName>().ok());
    let finding = finding.with_cause(folder.map(|it| FindingCause::of(&LOST_TARGET, &it)));
    let elsewhere = external.map(|_| "write the new name in expectations too; ");
    let elsewhere = elsewhere.unwrap_or_default();
    on_node(finding, node).at(case.place.clone(), "").help(format!(
        "{elsewhere}Kilo drops a key when an old Peer with it is deleted: with Flux, run {commands} after that; Argo CD needs \
         nothing if its Applications have `PrunePropagationPolicy=background`"
    ))
}

fn rekeyed(case: &Case<Rekeyed>, fleet: &Fleet) -> Finding {
    let Rekeyed { source, node, peer } = &case.what;
    let message = format!("Peer {} would get another key {}", bare(peer), within(&case.targets));
    let help = if ClusterName::is_external_text(source) {
        "expected if `publicKey` in the mesh was changed; replace the key on the host when all clusters have the Peer"
    } else {
        "expected after a node or Kilo was reinstalled; otherwise find out who changed the key"
    };
    on_node(Finding::on_named(&CHANGED_KEY, source, message), node)
        .at(case.place.clone(), "")
        .at(new_key(fleet, source, node), "the new key")
        .help(help)
}

/// Returns the place of the key that a node has from now on.
fn new_key(fleet: &Fleet, source: &str, node: &str) -> Option<Place> {
    let mut candidates = members(fleet, source).flat_map(|it| &it.membership.candidates);
    let candidate = candidates.find(|it| it.leader.as_str() == node)?;
    Some(candidate.place.key("annotations").key(annotation::KEY))
}

fn members<'f>(fleet: &'f Fleet, source: &str) -> impl Iterator<Item = &'f Member<'f>> {
    let source = ClusterName::of_member(source).ok();
    let members = fleet.members().iter();
    members.filter(move |it| source.as_ref() == Some(&it.entry.name))
}

fn on_node(mut finding: Finding, node: &str) -> Finding {
    finding.node = Some(node.to_owned());
    finding
}
