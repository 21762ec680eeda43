//! Words for what a render would not do unless a flag allows it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{CONSEQUENCES, EMPTY_TARGET, LOST_SOURCE, LOST_TARGET, RENAMED_MESH, alike, members};
use crate::diagnostic::mistake::{NO_MESH, ONE_SIDED_LINK};
use crate::diagnostic::{FindingCause, Quoted, Severity, escaped, gravest_first};
use crate::fleet::{Fleet, Member};
use crate::mesh::{acceptance, at_policies, refusals};
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::{Plan, TargetReason, Withheld};
use crate::rules::kilo::separation;
use crate::rules::nodes::{CONTRADICTED, SILENT_CLUSTER};
use crate::rules::plan::{AcceptingList, accept_ranges, cause_of, finding as withheld, within};
use crate::rules::{Finding, LevelledFindings, Rule, bare, consequences, membership};
use crate::text::{count, listed};
use crate::tree_diff::Loss;

mod removal;

use removal::Removals;

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
        let losses = losses.iter().map(|it| quoted(&escaped(it, MAX_LENGTH)).into_owned());
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

/// A fleet, and its plan.
#[derive(Clone, Copy)]
pub struct PlannedFleet<'a> {
    /// The clusters.
    pub fleet: &'a Fleet<'a>,
    /// Their Peers.
    pub plan: &'a Plan,
}

/// The lists of accepted ranges that do not contain a range, by target and source.
type UnacceptedLists<'p> = BTreeMap<[&'p ClusterName; 2], (&'p Place, FindingCause)>;

/// Returns the rule about a loss.
pub fn rule_of(loss: &Loss) -> &'static Rule {
    match loss {
        Loss::SilentSource { .. } => &SILENT_CLUSTER,
        Loss::EmptyTarget { .. } => &EMPTY_TARGET,
        Loss::RenamedMesh(_) => &RENAMED_MESH,
        Loss::Target { .. } => &LOST_TARGET,
        Loss::Source { .. } | Loss::Unrecorded { .. } => &LOST_SOURCE,
    }
}

/// Adds what a render would not do unless a flag allows it, the most severe first. The help names the
/// cause first, and then the command that allows everything that is listed.
pub fn add_losses(
    findings: &mut LevelledFindings,
    losses: &[Loss],
    planned: PlannedFleet,
    allowing: Allowing,
) {
    // Without a mesh every target is lost, and that one finding is enough.
    if losses.is_empty() || findings.iter().any(|it| it.rule == &NO_MESH) {
        return;
    }
    let removals = Removals::new(losses, planned.fleet);
    let instruction = allowing.instruction(&allowed_by(losses, &removals));
    let intention = removals.intention();
    let unaccepted = unaccepted_lists(planned.plan);
    let reported: Vec<FindingCause> = findings.iter().map(Finding::as_cause).collect();
    let mut losses: Vec<Finding> = losses
        .iter()
        .map(|it| {
            let mut finding = lost(it, planned, &unaccepted, &removals);
            finding.cause = finding.cause.and_then(|it| {
                let is_loss = [&LOST_SOURCE, &LOST_TARGET].contains(&it.rule);
                if is_loss { Some(it) } else { it.reported_in(&reported) }
            });
            let help = match (it, &finding.help) {
                (Loss::SilentSource { source }, repair) => {
                    format!("{}; {}", repair.as_deref().unwrap_or(REPAIR), join_later(source))
                }
                (Loss::EmptyTarget { .. }, None) => {
                    format!("{REPAIR}; if it should have no Peers, {instruction}")
                }
                (Loss::RenamedMesh(_), _) => {
                    format!(
                        "restore the old name, or give the files of all meshes; if the mesh should be renamed, {instruction}"
                    )
                }
                (Loss::Target { owner: Some(_), .. }, Some(rename)) => rename.clone(),
                (Loss::Target { .. }, Some(deliver)) => format!("{deliver}, and {instruction}"),
                (Loss::Source { .. } | Loss::Unrecorded { .. }, Some(repair)) => {
                    format!("to keep them, {repair}; {intention}, {instruction}")
                }
                _ => format!("{intention}, {instruction}"),
            };
            finding.help(help)
        })
        .collect();
    let findings = &mut findings.0;
    consequences::link(&mut losses, findings, &CONSEQUENCES);
    let losses = joined(losses);
    // A silent cluster is an error then, instead of the warning that it was.
    let is_graver = |it: &Finding| {
        let mut silent = losses.iter().filter(|loss| loss.rule == &SILENT_CLUSTER);
        it.rule == &SILENT_CLUSTER && silent.any(|loss| loss.cluster == it.cluster)
    };
    findings.retain(|it| !is_graver(it));
    allow_at_causes(findings, &losses, &instruction);
    findings.extend(losses);
    consequences::link_all(findings, &CONSEQUENCES);
    gravest_first(findings);
}

/// Puts losses of one source that differ only in the target together.
fn joined(losses: Vec<Finding>) -> Vec<Finding> {
    let mut joined: Vec<(Finding, Vec<String>)> = Vec::new();
    for loss in losses {
        let target = loss.value().map(ToOwned::to_owned);
        let is_alike = |it: &&mut (Finding, Vec<String>)| {
            let of = |it: &Finding| {
                let source = (it.cluster.clone(), it.named.clone());
                (it.rule, source, it.what().to_owned(), it.cause.clone())
            };
            !it.1.is_empty() && of(&it.0) == of(&loss) && it.0.help == loss.help
        };
        match (target, joined.iter_mut().find(is_alike)) {
            (Some(target), Some((first, targets))) => {
                targets.push(target);
                for label in loss.labels {
                    if !first.labels.contains(&label) {
                        first.labels.push(label);
                    }
                }
            }
            (target, _) => joined.push((loss, target.into_iter().collect())),
        }
    }
    let findings = joined.into_iter().map(|(finding, targets)| {
        let external = finding.named.as_ref().filter(|_| finding.cluster.is_none());
        let prefix = external.map(|it| format!("{}: ", Quoted(it))).unwrap_or_default();
        let message = format!("{prefix}{} from {}", finding.what(), listed(&targets)).into();
        if 1 < targets.len() { Finding { message, ..finding } } else { finding }
    });
    findings.collect()
}

/// Adds to what causes a loss, which is listed below it, how to allow the loss.
fn allow_at_causes(findings: &mut [Finding], losses: &[Finding], instruction: &str) {
    let mut causes: BTreeSet<&FindingCause> =
        losses.iter().filter_map(|it| it.cause.as_ref()).collect();
    for cause in findings.iter_mut() {
        // Of several with one subject, losses are listed below the first.
        if !causes.remove(&cause.as_cause()) || cause.severity == Severity::Error {
            continue;
        }
        // The declaration is wrong, so its losses are not intended.
        if cause.rule == &CONTRADICTED {
            continue;
        }
        let help = cause.help.take().unwrap_or_else(|| REPAIR.to_owned());
        let own = cause.as_cause();
        let following = losses.iter().filter(|it| it.cause.as_ref() == Some(&own));
        let silent =
            following.map(|it| it.cluster.as_deref().filter(|_| it.rule == &SILENT_CLUSTER));
        let silent: BTreeSet<Option<&str>> = silent.collect();
        cause.help = Some(match silent.first() {
            Some(Some(new)) if silent.len() == 1 => format!("{help}; {}", join_later(new)),
            _ => format!("{help}; if a cluster should have no Peers, {instruction}"),
        });
    }
}

/// Returns how a cluster that never gave Peers is in the mesh before it does.
fn join_later(cluster: &str) -> String {
    format!("until then, write `state: Joining` into the entry of {}", bare(cluster))
}

/// Returns what allows losses, as `TARGET` or `TARGET/SOURCE`.
fn allowed_by(losses: &[Loss], removals: &Removals) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    for loss in losses {
        let flag = match loss {
            Loss::EmptyTarget { target } | Loss::Target { target, .. } => target.clone(),
            Loss::Source { target, source, .. } if removals.is_of_one(source) => {
                format!("{target}/{source}")
            }
            Loss::Unrecorded { target, source } => format!("{target}/{source}"),
            Loss::Source { source, .. } | Loss::SilentSource { source } => format!("*/{source}"),
            Loss::RenamedMesh(renamed) => format!("*/{}", renamed.from),
        };
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    flags
}

fn lost(
    loss: &Loss,
    planned: PlannedFleet,
    unaccepted: &UnacceptedLists,
    removals: &Removals,
) -> Finding {
    let PlannedFleet { fleet, plan } = planned;
    match loss {
        Loss::SilentSource { source } => silent(source, fleet, plan),
        Loss::EmptyTarget { target } => {
            let message = no_peers(fleet, target);
            let finding = Finding::on_named(&EMPTY_TARGET, target, message);
            let cause = removals.emptying(target);
            let cause = cause.or_else(|| cause_of_empty(target, planned, unaccepted));
            alike(finding.with_cause(cause), "clusters")
        }
        Loss::Target { target, place, owner: Some(owner), .. } => {
            let message = format!(
                "is in no mesh, but its folder has the Peers of `{owner}`, which has no folder"
            );
            let finding = Finding::on_named(&LOST_TARGET, target, message);
            let help = format!("rename the folder to `{owner}`");
            alike(finding.help(help), "clusters").at(place.clone(), "")
        }
        Loss::Target { target, peers, place, heir, .. } => {
            lost_target(target, *peers, heir.as_deref()).at(place.clone(), "")
        }
        Loss::Source { target, source, peers, place } => {
            let peers = match peers {
                1 => "its only Peer".to_owned(),
                peers => format!("all {peers} Peers"),
            };
            let field = removals.unlinking([target, source]).map(|it| it.linking_field().0);
            let unlinked = field.map(|it| format!("no longer linked by `{it}`: "));
            let what = format!("{}{peers} would be removed", unlinked.unwrap_or_default());
            let target_name = bare(target);
            let finding =
                Finding::on_named(&LOST_SOURCE, source, format!("{what} from {target_name}"));
            let finding = finding.at(place.clone(), "").with_alike(what, Some(target_name));
            let finding = finding.of_name(source);
            let finding = lost_source(finding, [target, source], planned, unaccepted);
            removals.explained(finding, [target, source])
        }
        Loss::RenamedMesh(renamed) => {
            let targets: Vec<String> = renamed.targets.iter().cloned().collect();
            let message = format!(
                "{} of the mesh {} would be deleted and created again with names of the mesh {} {}",
                count(renamed.peers, "Peer"),
                bare(&renamed.from),
                renamed.to,
                within(&targets)
            );
            Finding::new(&RENAMED_MESH, message).at(renamed.place.clone(), "")
        }
        Loss::Unrecorded { target, source } => {
            let named = bare(target);
            let message = format!(
                "would have no Peers in {named}, and {named} has no rendered folder to compare \
                 with"
            );
            let finding = Finding::on_named(&LOST_SOURCE, source, message);
            let member = members(fleet, source).next();
            let place = member.map(|it| it.entry.place.key("name"));
            lost_source(finding.at(place, ""), [target, source], planned, unaccepted)
        }
    }
}

/// Reports a folder of a cluster that no mesh has, given its new name if it has one.
fn lost_target(target: &str, peers: usize, heir: Option<&str>) -> Finding {
    let now = match heir {
        Some(heir) => format!("is now called {}", Quoted(heir)),
        None => "is no longer in any mesh".to_owned(),
    };
    let message = format!("{now}, but its folder has {}", count(peers, "Peer"));
    let mut finding = Finding::on_named(&LOST_TARGET, target, message);
    finding.help = heir.map(|heir| {
        format!(
            "let the Flux Kustomization or Argo CD Application of {} apply the folder {}, write the new name in \
             expectations",
            bare(target),
            Quoted(heir)
        )
    });
    alike(finding, "clusters")
}

/// Adds why a target would get no Peers of a source, and what makes it accept them, to the finding about that.
fn lost_source(
    finding: Finding,
    ends: [&str; 2],
    PlannedFleet { fleet, plan }: PlannedFleet,
    unaccepted: &UnacceptedLists,
) -> Finding {
    let [_, source] = ends;
    let finding = finding.with_cause(all_left_out(source, fleet, plan));
    let [Ok(target), Ok(source)] = ends.map(ClusterName::of_member) else {
        return finding;
    };
    let is_unaccepted = unaccepted.contains_key(&[&target, &source]);
    let is_withheld = |it: &&Withheld| it.target == target && it.source == source;
    let mut of_target = plan.targets.iter().filter(|it| it.cluster == target);
    let is_lost = !is_unaccepted && of_target.any(|it| it.without.contains(&source));
    let withheld = plan.withheld.iter().filter(is_withheld).filter(|_| is_lost);
    let cause = finding.cause.clone().or_else(|| cause_of(withheld));
    let finding = finding.with_cause(cause);
    let meshes = fleet.memberships(&source).map(|it| it.mesh);
    let refusals = refusals(meshes, &target, &source);
    if let Some(first) = refusals.first() {
        let one_sided = FindingCause::of(&ONE_SIDED_LINK, &first.by);
        let finding = finding.with_cause(one_sided);
        return at_policies(finding, &refusals).help(acceptance(&refusals));
    }
    match unaccepted.get(&[&target, &source]) {
        Some((list, cause)) => {
            let finding = finding.at((*list).clone(), "does not contain its ranges");
            let list = AcceptingList { target: &target, place: list };
            finding.with_cause(cause.clone()).help(accept_ranges(&list))
        }
        None => finding,
    }
}

fn unaccepted_lists(plan: &Plan) -> UnacceptedLists<'_> {
    let lists = plan.withheld.iter().filter_map(|it| match &*it.reason {
        TargetReason::Unaccepted { accepted, .. } => {
            Some(([&it.target, &it.source], (accepted, withheld(it).as_cause())))
        }
        _ => None,
    });
    lists.collect()
}

/// Returns the finding for which a target has no Peers, if there is one.
fn cause_of_empty(
    target: &str,
    PlannedFleet { fleet, plan }: PlannedFleet,
    unaccepted: &UnacceptedLists,
) -> Option<FindingCause> {
    let target: ClusterName = target.parse().ok()?;
    let left_out = fleet.sources(&target).map(|it| {
        let source = &it.member.entry.name;
        let list = || unaccepted.get(&[&target, source]).map(|it| it.1.clone());
        all_left_out(source.as_str(), fleet, plan).or_else(list)
    });
    let left_out: Option<Vec<FindingCause>> = left_out.collect();
    let first = left_out.and_then(|it| it.into_iter().next());
    first.or_else(|| separation(fleet, &target))
}

/// Returns the finding for which all nodes of a cluster are left out, if there is one.
fn all_left_out(source: &str, fleet: &Fleet, plan: &Plan) -> Option<FindingCause> {
    let mut members = members(fleet, source);
    let first = members.next()?;
    let gives = |it: &Member| !it.membership.candidates.is_empty();
    if gives(first) || members.any(gives) {
        return None;
    }
    let silent = membership::silent(first, plan);
    silent.cause.clone().or_else(|| Some(silent.as_cause()))
}

fn silent(source: &str, fleet: &Fleet, plan: &Plan) -> Finding {
    let mut finding = match members(fleet, source).next() {
        Some(member) => {
            let finding = membership::silent(member, plan);
            let cause = finding.cause.clone();
            let cause = cause.or_else(|| separation(fleet, &member.entry.name));
            let place = member.entry.place.key("name");
            finding.with_cause(cause).at(place, "")
        }
        None => Finding::on_named(&SILENT_CLUSTER, source, "has no Peer".to_owned()),
    };
    finding.severity = Severity::Error;
    finding
}

/// Describes that a target would have no Peers, with the clusters that have none for it.
fn no_peers(fleet: &Fleet, target: &str) -> String {
    let target: Option<ClusterName> = target.parse().ok();
    let sources: BTreeSet<String> = target
        .iter()
        .flat_map(|it| fleet.sources(it))
        .map(|source| source.member.entry.name.to_string())
        .collect();
    if sources.is_empty() {
        return "would have no Peers: the mesh links it to no cluster".to_owned();
    }
    format!("would have no Peers from {}", listed(sources))
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
