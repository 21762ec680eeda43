//! Guards that the repository records, compared with older ones of the same clusters.

use std::collections::BTreeMap;

use super::{ControlChange, Controls, WrittenValues};
use crate::admission::{Enforcement, Guard, Recorded};
use crate::name::ClusterName;
use crate::place::Place;
use crate::rules::gitops::GuardFile;

/// Returns the guards that one version has otherwise than the other.
pub(super) fn changes(old: &Controls, new: &Controls) -> Vec<ControlChange> {
    let [had, has] = [old, new].map(|it| {
        let files = it.guards.iter().map(|it| (&it.cluster, it));
        files.collect::<BTreeMap<&ClusterName, &GuardFile>>()
    });
    let mut changes = Vec::new();
    for (cluster, old_file) in &had {
        let new_file = has.get(cluster).copied();
        let before = old_file.guard().map(|it| &it.guard);
        let after = new_file.and_then(GuardFile::guard).map(|it| &it.guard);
        if before == after && before.is_some() == new_file.is_some() {
            continue;
        }
        let is_member = new.meshes.iter().any(|it| it.entry(cluster).is_some());
        let accepted = before.zip(after).map(|(old, new)| allowed(old, new));
        let is_weaker = match (before, &accepted) {
            (Some(_), None) => is_member,
            (_, Some(accepted)) => !accepted.is_empty(),
            // A file without a guard did not hold.
            (None, None) => false,
        };
        changes.push(ControlChange {
            subject: format!("guard of {cluster}"),
            is_weaker,
            before: Some(written(old_file, Vec::new())),
            after: new_file.map(|it| written(it, accepted.unwrap_or_default())),
        });
    }
    let added = has.iter().filter(|it| !had.contains_key(it.0));
    changes.extend(added.map(|(cluster, file)| ControlChange {
        subject: format!("guard of {cluster}"),
        is_weaker: false,
        before: None,
        after: Some(written(file, Vec::new())),
    }));
    changes
}

fn written(file: &GuardFile, values: Vec<String>) -> WrittenValues {
    let policy = file.recorded.as_ref().map_or(0, |it: &Recorded| it.policy);
    WrittenValues { values, place: Some(Place::document(&file.source, policy)) }
}

/// Returns what a guard allows that an older one did not.
fn allowed(old: &Guard, new: &Guard) -> Vec<String> {
    let mut allowed: Vec<String> =
        new.beyond(old).iter().map(|it| format!("accepts {it}")).collect();
    let (had, has) = (&old.access, &new.access);
    if had.enforcement == Enforcement::Deny && has.enforcement == Enforcement::Warn {
        allowed.push("only warns".to_owned());
    }
    let is_wider = match (&had.writers, &has.writers) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(had), Some(has)) => !has.are_within(had),
    };
    if is_wider || !has.peer_writers.are_within(&had.peer_writers) {
        allowed.push("more accounts may write Peers".to_owned());
    }
    let peers = has.peers.iter().filter(|(name, ranges)| {
        had.peers.get(*name).is_none_or(|old| !super::are_covered(ranges, old))
    });
    allowed.extend(peers.map(|it| format!("allows the Peer {}", it.0)));
    allowed
}
