//! Limits of Flux, Argo CD and git, for the plan and for the tree on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::refusal::consequence;
use super::{Finding, Rule, bare};
use crate::diagnostic::{FindingCause, Quoted, Severity};
use crate::kilo::peer::EndpointFlaw;
use crate::manifest::{KUSTOMIZATION, Oddity, OldPeer, Reading, Unfit};
use crate::place::Place;
use crate::plan::Plan;
use crate::text::{NAMED, listed, shell_word};
use crate::tree_diff::{
    ChangedContent, ChangedFile, KustomizationMismatch, OnDiskTree, SameNamePeers,
};
use crate::wireguard::Endpoint;

mod foreign;
mod guards;
mod planned;

pub use foreign::override_file;
use foreign::{blocked_file, foreign};
pub(super) use guards::guards;
pub use guards::{GuardFile, refused_peers};
pub(super) use planned::planned;

rules! {
    "Limits of Flux, Argo CD and git" in "gitops" about Tree;
    CROWDED_TARGET = "crowded-target" Warning;
    LARGE_FILE = "large-file" Warning;
    LARGE_PEER = "large-peer" Warning;
    BLOCKED_FILE = "blocked-file" Error;
    RIVAL_KUSTOMIZATION = "rival-kustomization" Error;
    STRAY_MANIFEST = "stray-manifest" Warning;
    FOREIGN_FILE = "foreign-file" Notice;
    OVERRIDE_FILE = "override-file" Error;
    EDITED_FILE = "edited-file" Warning;
    UNREADABLE_MANIFEST = "unreadable-manifest" Warning;
    EMPTY_MANIFEST = "empty-manifest" Warning;
    REFUSED_PEER = "refused-peer" Warning;
    PEER_WITHOUT_ENDPOINT = "peer-without-endpoint" Warning;
    TWIN_PEERS = "twin-peers" Warning;
    VARIABLE_IN_MANIFEST = "variable-in-manifest" Warning;
    CLASHING_PEERS = "clashing-peers" Warning;
    OUTDATED_GUARD = "outdated-guard" Error;
    MISMATCHED_KUSTOMIZATION = "mismatched-kustomization" Warning;
}

/// The next change to generated files that are out of date.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// They stay.
    Kept,
    /// They will be replaced or removed. Mistakes in them are reported and do not stop a render.
    Replaced,
}

/// Returns findings about the tree on disk.
pub(super) fn on_disk(on_disk: &OnDiskTree, plan: &Plan, fate: Fate) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(on_disk.blocked.iter().map(|it| blocked_file(on_disk, it)));
    findings.extend(on_disk.foreign.iter().map(|it| foreign(on_disk, it)));
    let mut ours: Vec<Finding> = Vec::new();
    let mismatches = on_disk.mismatches();
    for file in &on_disk.files {
        let is_edited = is_edited_since_commit(on_disk, file);
        let found = of_file(file, &mismatches, fate).into_iter();
        ours.extend(found.filter(|it| !is_edited || *it.rule != EDITED_FILE));
        ours.extend(is_edited.then(|| edited_since_commit(on_disk, file)));
    }
    let clashes = on_disk.clashes(plan);
    ours.extend(mismatches.into_iter().map(|it| {
        let of_target = clashes.iter().filter(|clash| clash.target == it.target);
        let files = of_target.flat_map(|it| [&*it.place.source, &it.first]);
        let copies: BTreeSet<&str> = files.filter_map(|it| it.rsplit('/').next()).collect();
        let is_copy = |it: &String| copies.contains(it.as_str());
        let are_copies = it.absent.is_empty() && it.unnamed.iter().all(is_copy);
        let cause = are_copies.then(|| FindingCause::of(&CLASHING_PEERS, &it.target));
        mismatch(it, fate).with_cause(cause)
    }));
    ours.extend(clashing(clashes, fate));
    if fate == Fate::Replaced {
        let noted =
            |finding: &mut Finding| finding.severity = finding.severity.min(Severity::Notice);
        ours.iter_mut().for_each(noted);
    }
    findings.extend(ours);
    // A render that removes one of them is what cuts the tunnel.
    let twins = on_disk.twins(plan).into_iter();
    findings.extend(twins.map(|it| twin_peers(&it.target, &it.peers)));
    findings
}

/// Reports Peers of one cluster that have one key, each with its name and place: deleting one of them
/// cuts the tunnel of all.
pub(super) fn twin_peers(cluster: &str, peers: &[(String, Place)]) -> Finding {
    let names = listed(peers.iter().map(|(name, _)| bare(name)));
    let message = format!(
        "the Peers {names} have the same key: deleting one of them removes the tunnel until the \
         agents' next resync (8 minutes measured)"
    );
    Finding::on_named(&TWIN_PEERS, cluster, message)
        .at_each(peers.iter().take(NAMED).map(|(_, place)| (place.clone(), "same key")))
        .help(format!(
            "in {}, delete all but one, then immediately touch the remaining one: `kubectl annotate peers \
             --overwrite NAME touched=1`",
            bare(cluster)
        ))
}

/// Returns a finding about a file in the tree.
fn on_path(rule: &'static Rule, path: &str, message: String) -> Finding {
    let (folder, _) = path.split_once('/').unwrap_or(("", path));
    let mut finding = Finding::on_named(rule, folder, String::new());
    finding.message = message.into();
    finding
}

fn of_file(file: &ChangedFile, mismatches: &[KustomizationMismatch], fate: Fate) -> Vec<Finding> {
    let (target, name) = file.path.split_once('/').unwrap_or(("", &file.path));
    match &file.content {
        ChangedContent::Peers(reading) => {
            let is_unread = |it: &Oddity| matches!(it, Oddity::Unreadable { .. });
            let is_unread = reading.oddities.iter().any(is_unread);
            // A file that cannot be read was probably not written by clustermesh, so the message
            // does not mention it.
            let oddities = reading
                .oddities
                .iter()
                .filter(|it| !is_unread || !matches!(it, Oddity::Edited { .. }))
                .map(|it| odd(file, &bare(name), it, fate));
            oddities.chain(without_endpoint(file, reading, fate)).collect()
        }
        ChangedContent::Kustomization(it)
            if it.is_ours || mismatches.iter().any(|it| it.target == target) =>
        {
            Vec::new()
        }
        ChangedContent::Kustomization(it) if it.has_returns => {
            vec![odd(file, &bare(name), &Oddity::Returns, fate)]
        }
        ChangedContent::Kustomization(_) => {
            let finding = edited(file, &bare(name), "it differs").help(
                "run `clustermesh render`, which writes it again; changes of your own belong into a kustomization in another \
                 folder, with this folder in its `resources`",
            );
            vec![finding.at(file.place(&(0..0)), "")]
        }
        ChangedContent::Unread(problem) => {
            let message = format!("{} cannot be read: {problem}", bare(name));
            let finding = on_path(&UNREADABLE_MANIFEST, &file.path, message);
            vec![finding.at(file.place(&(0..0)), "").help(fate.remedy())]
        }
    }
}

/// Returns an error for each place at which a file of Peers of a target cannot be read, or is not ours.
pub fn unread(on_disk: &OnDiskTree) -> Vec<Finding> {
    let findings = on_disk.unread().flat_map(|it| of_file(it, &[], Fate::Kept));
    let blocked = on_disk.in_the_way().map(|it| blocked_file(on_disk, it));
    let unread = findings.filter(|it| *it.rule == UNREADABLE_MANIFEST).chain(blocked);
    let error = |it| Finding { severity: Severity::Error, ..it };
    unread.map(error).collect()
}

impl Fate {
    /// Returns the remedy for a generated file.
    fn remedy(self) -> &'static str {
        match self {
            Self::Kept => "run `clustermesh render`, which rewrites or removes the file",
            Self::Replaced => "`clustermesh render` rewrites or removes the file",
        }
    }
}

fn edited(file: &ChangedFile, name: &str, what: &str) -> Finding {
    let message = format!("{name} was edited: {what} from what clustermesh writes");
    on_path(&EDITED_FILE, &file.path, message).help(
        "make the change in the mesh instead: `clustermesh render` overwrites or removes this file",
    )
}

/// Returns whether Peers were up to date when they were committed. Git itself may write other line ends, and a file that
/// cannot be read has its own finding.
fn is_edited_since_commit(on_disk: &OnDiskTree, file: &ChangedFile) -> bool {
    let ChangedContent::Peers(reading) = &file.content else { return false };
    let mut oddities = reading.oddities.iter();
    on_disk.uncommitted.contains(&file.path)
        && !oddities.any(|it| matches!(it, Oddity::Returns | Oddity::Unreadable { .. }))
}

/// Reports a file that was up to date when it was committed.
fn edited_since_commit(on_disk: &OnDiskTree, file: &ChangedFile) -> Finding {
    let path = format!("{}/{}", on_disk.root, file.path);
    let message = format!("{} was edited: the last commit has what `render` writes", bare(&path));
    on_path(&EDITED_FILE, &file.path, message).at(file.place(&(0..0)), "").help(format!(
        "run `git checkout HEAD -- {}`; if the change was intended, make it in the mesh",
        shell_word(&path)
    ))
}

fn odd(file: &ChangedFile, name: &str, oddity: &Oddity, fate: Fate) -> Finding {
    match oddity {
        Oddity::Edited { bytes } => {
            let finding = edited(file, name, "the Peers differ");
            finding.at(file.place(bytes), "first difference")
        }
        Oddity::Returns => {
            let message = format!("lines of {name} end with a carriage return");
            let finding = on_path(&EDITED_FILE, &file.path, message);
            finding
                .at(file.place(&(0..0)), "")
                .help("add a line to `.gitattributes`: `rendered/** text eol=lf`")
        }
        Oddity::NoPeer => {
            let message = format!("{name} contains no Peer");
            let finding = on_path(&EMPTY_MANIFEST, &file.path, message);
            finding.at(file.place(&(0..0)), "").help(fate.remedy())
        }
        Oddity::Unreadable { bytes, problem } => {
            let message = format!("{name} cannot be read: {problem}");
            let finding = on_path(&UNREADABLE_MANIFEST, &file.path, message);
            finding.at(file.place(bytes), "").help(fate.remedy())
        }
        Oddity::Refused { peer, bytes, why } => {
            let name = Quoted(peer);
            let message = match why {
                Unfit::Name => {
                    format!("the API server refuses {name}: the name is not a DNS-1123 subdomain")
                }
                Unfit::Label(key) => {
                    let key = Quoted(key);
                    format!("the API server refuses {name}: the value of label {key} is not valid")
                }
                Unfit::Spec(fault) => consequence(peer, fault),
            };
            let finding = on_path(&REFUSED_PEER, &file.path, message);
            finding.at(file.place(bytes), "").help(fate.remedy())
        }
        Oddity::Variable { bytes } => {
            let message = format!("{name} contains `${{`, which Flux may replace as a variable");
            let finding = on_path(&VARIABLE_IN_MANIFEST, &file.path, message);
            finding.at(file.place(bytes), "").help(fate.remedy())
        }
    }
}

/// Returns the findings about the Peers of a file that are dialled badly, one for each flaw.
fn without_endpoint(file: &ChangedFile, reading: &Reading, fate: Fate) -> Vec<Finding> {
    let flaws = [EndpointFlaw::Missing, EndpointFlaw::IdlePlaceholder];
    let findings = flaws.into_iter().filter_map(|flaw| {
        let peers = reading.peers.iter();
        let peers = peers.filter(|it| it.endpoint_flaw == Some(flaw));
        let peers: Vec<&OldPeer> = peers.collect();
        let first = peers.first()?;
        let (names, have, its, they_connect) = if peers.len() == 1 {
            (Quoted(&first.name).to_string(), "has", "its tunnel", "it connects")
        } else {
            let names = listed(peers.iter().map(|it| bare(&it.name)));
            (names, "have", "their tunnels", "they connect")
        };
        let message = match flaw {
            EndpointFlaw::Missing => format!(
                "{names} {have} no endpoint: until {they_connect}, Kilo does not apply later changes of Peers and nodes"
            ),
            EndpointFlaw::IdlePlaceholder => idle_placeholder(&names, have, its),
        };
        let finding = on_path(&PEER_WITHOUT_ENDPOINT, &file.path, message);
        Some(finding.at(file.place(&first.bytes), "").help(fate.remedy()))
    });
    findings.collect()
}

/// Describes Peers with the placeholder and no keepalive.
pub(super) fn idle_placeholder(names: &str, have: &str, its: &str) -> String {
    let placeholder = Endpoint::PLACEHOLDER;
    format!(
        "{names} {have} the placeholder {placeholder} as endpoint, but no `persistentKeepalive`: Kilo \
         resets {its} with every pass"
    )
}

/// Reports Peers that are in two files, one finding for two files.
fn clashing(clashes: Vec<SameNamePeers>, fate: Fate) -> Vec<Finding> {
    let mut by_files: BTreeMap<_, (Vec<String>, Vec<Place>)> = BTreeMap::new();
    for SameNamePeers { target, peer, place, first } in clashes {
        let of_files = by_files.entry((target, Arc::clone(&place.source), first)).or_default();
        of_files.0.push(Quoted(&peer).to_string());
        of_files.1.push(place);
    }
    let findings = by_files.into_iter().map(|((target, _, first), (peers, places))| {
        let first = first.rsplit('/').next().map(bare).unwrap_or_default();
        let what = if peers.len() == 1 { "duplicate Peer" } else { "duplicate Peers" };
        let message = format!("{what} {}, also in {first}", listed(peers));
        let finding = Finding::on_named(&CLASHING_PEERS, &target, message);
        let places = places.into_iter().take(NAMED).map(|it| (it, "second here"));
        finding.at_each(places).help(fate.remedy())
    });
    findings.collect()
}

fn mismatch(mismatch: KustomizationMismatch, fate: Fate) -> Finding {
    let KustomizationMismatch { target, absent, unnamed, place } = mismatch;
    let mut parts = Vec::new();
    if !absent.is_empty() {
        let names = listed(absent.iter().map(|it| bare(it)));
        parts.push(format!("lists missing files: {names}"));
    }
    if !unnamed.is_empty() {
        let names = listed(unnamed.iter().map(|it| bare(it)));
        parts.push(format!("does not list {names}"));
    }
    let message = format!("{KUSTOMIZATION} {}", parts.join(" and "));
    let finding = Finding::on_named(&MISMATCHED_KUSTOMIZATION, &target, message);
    finding.at(place, "").help(fate.remedy())
}

#[cfg(test)]
mod tests;
