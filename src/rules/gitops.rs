//! Limits of Flux, Argo CD and git, for the plan and for the tree on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::within;
use super::refusal::consequence;
use super::{Finding, Rule, bare};
use crate::capacity::units;
use crate::config::Limits;
use crate::config::capacity::Quantity;
use crate::diagnostic::{Quoted, Severity};
use crate::kilo::peer::Peer;
use crate::manifest::{KUSTOMIZATION, Oddity, OldPeer, Reading, Unfit, last_applied_bytes};
use crate::place::Place;
use crate::plan::{PeerSet, Plan};
use crate::text::{NAMED, count, listed};
use crate::tree_diff::{
    ChangedContent, ChangedFile, ForeignFile, KustomizationMismatch, OnDiskTree, Overriding,
    SameNamePeers,
};

rules! {
    "gitops" about Tree;
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
    MISMATCHED_KUSTOMIZATION = "mismatched-kustomization" Warning;
}

/// From how many bytes on etcd takes no object.
const ETCD_LIMIT: usize = 3 << 19;

/// What an API server and the delivering tools add at most to an object: identity, times, managed
/// fields, labels and annotations.
const ADDED_BYTES: usize = 2 << 10;

/// What a range has at most as JSON: an IPv6 address, its length, quotes and a comma.
const RANGE_BYTES: usize = 46;

/// The largest size of the rest of a Peer as JSON.
const PEER_BYTES: usize = 2_000;

/// The next change to generated files that are out of date.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// They stay.
    Kept,
    /// They will be replaced or removed. Mistakes in them are reported and do not stop a render.
    Replaced,
}

/// Returns findings about a plan. The sizes of its sets of Peers as files are given.
pub(super) fn planned(plan: &Plan, bytes: &[usize], limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut targets_of: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for target in &plan.targets {
        for &peer_set in &target.peer_sets {
            let name = target.cluster.to_string();
            targets_of.entry(peer_set).or_default().push(name);
        }
    }
    for (peer_set, targets) in targets_of {
        if let (Some(bytes), Some(peer_set)) = (bytes.get(peer_set), plan.peer_sets.get(peer_set)) {
            findings.extend(large_file(peer_set, *bytes, limits, &targets));
            findings.extend(
                peer_set
                    .peers
                    .iter()
                    .filter_map(|it| large_peer(it, limits, &targets)),
            );
        }
    }
    findings
}

fn large_file(
    peer_set: &PeerSet,
    bytes: usize,
    limits: &Limits,
    targets: &[String],
) -> Option<Finding> {
    let steps = limits.capacity.steps(Quantity::FileBytes);
    let (severity, step) = steps.passed(units::float(bytes))?;
    if severity < Severity::Warning {
        return None;
    }
    let message = format!(
        "{}.yaml would have {bytes} bytes, more than {step} {}",
        peer_set.name,
        within(targets)
    );
    let mut finding = Finding::on_cluster(&LARGE_FILE, &peer_set.source, message);
    finding.severity = severity;
    Some(finding.help("declare fewer, larger ranges, or select fewer nodes"))
}

fn large_peer(peer: &Peer, limits: &Limits, targets: &[String]) -> Option<Finding> {
    let ranges = peer.allowed_ips.len();
    if ranges * RANGE_BYTES + PEER_BYTES <= limits.peer_bytes && PEER_BYTES < limits.peer_bytes {
        return None;
    }
    let bytes = last_applied_bytes(peer);
    if bytes <= limits.peer_bytes {
        return None;
    }
    let message = format!(
        "{} would have {bytes} bytes in the annotation of `kubectl apply`, more than {}, with {} {}",
        peer.name,
        limits.peer_bytes,
        count(ranges, "range"),
        within(targets)
    );
    let mut finding = Finding::on_cluster(&LARGE_PEER, &peer.cluster, message);
    if ETCD_LIMIT < bytes + ADDED_BYTES {
        finding.severity = Severity::Error;
    }
    Some(finding.help("declare fewer, larger ranges"))
}

/// Returns findings about the tree on disk.
pub(super) fn on_disk(on_disk: &OnDiskTree, plan: &Plan, fate: Fate) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let blocked = on_disk.blocked.iter();
    findings.extend(blocked.map(|it| blocked_file(on_disk, it)));
    findings.extend(on_disk.foreign.iter().map(|it| foreign(on_disk, it)));
    let mut ours: Vec<Finding> = Vec::new();
    let mismatches = on_disk.mismatches();
    for file in &on_disk.files {
        ours.extend(of_file(file, &mismatches));
    }
    ours.extend(on_disk.clashes(plan).into_iter().map(clash));
    ours.extend(mismatches.into_iter().map(mismatch));
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
    let finding = Finding::on_named(&TWIN_PEERS, cluster, message);
    let places = peers.iter().take(NAMED).map(|(_, place)| place.clone());
    places
        .fold(finding, |finding, it| finding.at(it, "same key"))
        .help(
            "delete all but one, then immediately touch the remaining one: `kubectl annotate peers \
             --overwrite NAME touched=1`",
        )
}

/// Returns a finding about a file in the tree.
fn on_path(rule: &'static Rule, path: &str, message: String) -> Finding {
    let (folder, _) = path.split_once('/').unwrap_or(("", path));
    let mut finding = Finding::on_named(rule, folder, String::new());
    finding.message = message;
    finding
}

fn whole(on_disk: &OnDiskTree, path: &str) -> Place {
    Place::document(&on_disk.source(path), 0).bytes(&(0..0))
}

fn blocked_file(on_disk: &OnDiskTree, it: &ForeignFile) -> Finding {
    let path = on_disk.source(&it.path);
    let message = format!(
        "{} ({}) blocks a generated file and was not written by clustermesh",
        Quoted(&path),
        it.kind
    );
    let finding = on_path(&BLOCKED_FILE, &it.path, message);
    finding.at(whole(on_disk, &it.path), "").help(
        "move it away (generated files begin with `# Generated by clustermesh; do not \
            edit.`)",
    )
}

fn foreign(on_disk: &OnDiskTree, it: &ForeignFile) -> Finding {
    let path = on_disk.source(&it.path);
    let (rule, what, help) = match nature(on_disk, it) {
        Nature::Override(overriding) => {
            let (message, help) = overrides(&path, it.kind, overriding);
            let finding = on_path(&OVERRIDE_FILE, &it.path, message);
            return finding.at(whole(on_disk, &it.path), "").help(help);
        }
        Nature::Rival => (
            &RIVAL_KUSTOMIZATION,
            "is a second kustomization, not written by clustermesh",
            "move it away: kustomize refuses a folder with two kustomizations",
        ),
        Nature::Manifest => (
            &STRAY_MANIFEST,
            "was not written by clustermesh and may be applied together with the Peers",
            "move it to a folder outside the rendered tree",
        ),
        Nature::Other => (
            &FOREIGN_FILE,
            "was not written by clustermesh",
            "move it to a folder outside the rendered tree",
        ),
    };
    let message = format!("{} ({}) {what}", Quoted(&path), it.kind);
    let finding = on_path(rule, &it.path, message);
    finding.at(whole(on_disk, &it.path), "").help(help)
}

/// Returns a finding about a hidden file outside of the rendered tree that changes what is delivered
/// from it: its path, harmless to print, and what it is, with its article.
pub fn override_file(path: &str, kind: &str, overriding: Overriding) -> Finding {
    let (message, help) = overrides(path, kind, overriding);
    let place = Place::document(&Arc::from(path), 0).bytes(&(0..0));
    Finding::new(&OVERRIDE_FILE, message)
        .at(place, "")
        .help(help)
}

/// Returns what a hidden file changes, and what to do about it.
fn overrides(path: &str, kind: &str, overriding: Overriding) -> (String, &'static str) {
    let of_argocd = "delete it, and write the override into the Application";
    let (what, help) = match overriding {
        Overriding::Source => (
            "overrides the source of every Argo CD Application with this path".to_owned(),
            of_argocd,
        ),
        Overriding::SourceOf(name) => (
            format!(
                "overrides the source of the Argo CD Application {}",
                Quoted(name)
            ),
            of_argocd,
        ),
        Overriding::Ignore => (
            "makes Flux ignore the files that match it".to_owned(),
            "delete it, and write its patterns into `spec.ignore` of the Flux source",
        ),
    };
    (format!("{} ({kind}) {what}", Quoted(path)), help)
}

/// The effect of a foreign file on Flux and Argo CD.
enum Nature<'a> {
    Override(Overriding<'a>),
    Rival,
    Manifest,
    Other,
}

fn nature<'a>(on_disk: &OnDiskTree, it: &'a ForeignFile) -> Nature<'a> {
    let (folder, name) = it.path.rsplit_once('/').unwrap_or(("", &it.path));
    if let Some(overriding) = Overriding::from_name(name).filter(|_| it.kind != "a folder") {
        return Nature::Override(overriding);
    }
    if name.starts_with('.') {
        return Nature::Other;
    }
    let kustomization = format!("{folder}/{KUSTOMIZATION}");
    let is_ours = on_disk.same.contains(&kustomization)
        || on_disk.missing.contains(&kustomization)
        || on_disk.files.iter().any(|it| it.path == kustomization);
    if ["kustomization.yml", "Kustomization"].contains(&name) && is_ours {
        return Nature::Rival;
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_manifest = ["yaml", "yml", "json", "jsonnet"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known));
    if is_manifest || it.kind == "a folder" {
        Nature::Manifest
    } else {
        Nature::Other
    }
}

fn of_file(file: &ChangedFile, mismatches: &[KustomizationMismatch]) -> Vec<Finding> {
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
                .map(|it| odd(file, &bare(name), it));
            oddities.chain(without_endpoint(file, reading)).collect()
        }
        ChangedContent::Kustomization(it)
            if it.is_ours || mismatches.iter().any(|it| it.target == target) =>
        {
            Vec::new()
        }
        ChangedContent::Kustomization(_) => {
            let finding = edited(file, &bare(name), "its list of files");
            vec![finding.at(file.place(&(0..0)), "")]
        }
        ChangedContent::Unread(problem) => {
            let message = format!("{} cannot be read: {problem}", bare(name));
            let finding = on_path(&UNREADABLE_MANIFEST, &file.path, message);
            vec![finding.at(file.place(&(0..0)), "").help(ANEW)]
        }
    }
}

/// The remedy for a generated file.
const ANEW: &str = "run `clustermesh render`, which rewrites or removes the file";

fn edited(file: &ChangedFile, name: &str, what: &str) -> Finding {
    let message = format!("{name} was edited: {what} differ from what clustermesh writes");
    on_path(&EDITED_FILE, &file.path, message).help(
        "make the change in the mesh instead: `clustermesh render` overwrites or removes this file",
    )
}

fn odd(file: &ChangedFile, name: &str, oddity: &Oddity) -> Finding {
    match oddity {
        Oddity::Edited { bytes } => {
            let finding = edited(file, name, "the Peers");
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
            finding.at(file.place(&(0..0)), "").help(ANEW)
        }
        Oddity::Unreadable { bytes, problem } => {
            let message = format!("{name} cannot be read: {problem}");
            let finding = on_path(&UNREADABLE_MANIFEST, &file.path, message);
            finding.at(file.place(bytes), "").help(ANEW)
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
            finding.at(file.place(bytes), "").help(ANEW)
        }
        Oddity::Variable { bytes } => {
            let message = format!("{name} contains `${{`, which Flux may replace as a variable");
            let finding = on_path(&VARIABLE_IN_MANIFEST, &file.path, message);
            finding.at(file.place(bytes), "").help(ANEW)
        }
    }
}

/// Returns a finding about the Peers of a file that have no endpoint.
fn without_endpoint(file: &ChangedFile, reading: &Reading) -> Option<Finding> {
    let peers: Vec<&OldPeer> = reading.peers.iter().filter(|it| !it.has_endpoint).collect();
    let first = peers.first()?;
    let (names, have) = match peers.len() {
        1 => (Quoted(&first.name).to_string(), "has"),
        _ => (listed(peers.iter().map(|it| bare(&it.name))), "have"),
    };
    let message = format!(
        "{names} {have} no endpoint: until it connects, Kilo does not apply changes of other Peers \
         and nodes to WireGuard"
    );
    let finding = on_path(&PEER_WITHOUT_ENDPOINT, &file.path, message);
    Some(finding.at(file.place(&first.bytes), "").help(ANEW))
}

fn clash(clash: SameNamePeers) -> Finding {
    let SameNamePeers {
        target,
        peer,
        place,
        first,
    } = clash;
    let first = first.rsplit('/').next().map(bare).unwrap_or_default();
    let message = format!("duplicate Peer {}, also in {first}", Quoted(&peer));
    let finding = Finding::on_named(&CLASHING_PEERS, &target, message);
    finding.at(place, "second here").help(ANEW)
}

fn mismatch(mismatch: KustomizationMismatch) -> Finding {
    let KustomizationMismatch {
        target,
        absent,
        unnamed,
        place,
    } = mismatch;
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
    finding.at(place, "").help(ANEW)
}

#[cfg(test)]
mod tests;
