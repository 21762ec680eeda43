//! Is what people wrote well formed?
//!
//! The gates report the mistakes of a file; here are those of a folder.

pub mod unread;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::ceilings::{Ceilings, Exceeded};
use crate::diagnostic::mistake::{
    BEYOND_CEILING, DROPPED_LABEL, DUPLICATE_SNAPSHOT, FOREIGN_SNAPSHOT, INVALID_SNAPSHOT,
    MISSING_SNAPSHOT, NO_MESH, UNUSED_SNAPSHOT,
};
use crate::diagnostic::{Finding, FindingCause, Quoted, Quotes, Rule, escaped, mistake};
use crate::document::nearest;
use crate::fleet::MissingSnapshot;
use crate::granularity::Granularity;
use crate::kilo::cluster::Cluster;
use crate::mesh::Entry;
use crate::name::ClusterName;
use crate::place::Place;
use crate::snapshot::services::ServiceSnapshotError;
use crate::snapshot::stray::Stray;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::text::{NAMED, count, listed, quoted, shell_word};

/// The message about a file that should have been converted to a snapshot.
const NODE_LIST: &str =
    "this file is not a snapshot, but nodes as `kubectl get nodes -o json` prints them";

/// The same for Services.
const SERVICE_LIST: &str =
    "this file is not a snapshot, but Services as `kubectl get services -o json` prints them";

/// The largest number of clusters that a command names; without names it is about all.
const IN_COMMAND: usize = 20;

/// Returns more input than a run accepts as a finding.
pub fn beyond_ceiling(exceeded: &Exceeded) -> Finding {
    let Exceeded { counted, count, most, place } = exceeded;
    let name = counted.name();
    let message = format!("{count} {counted} exceed the ceiling of {most}");
    let usual = Ceilings::default().most(*counted);
    let help = if *most < usual && *count <= usual {
        format!(
            "if intended, raise or remove this ceiling where it was lowered: `{name}` of `limits.ceilings` in the config, \
             `--ceiling` or `CLUSTERMESH_CEILINGS`"
        )
    } else {
        format!(
            "if intended, add `--ceiling {name}={count}` or set `CLUSTERMESH_CEILINGS={name}={count}`"
        )
    };
    Finding::new(&BEYOND_CEILING, message).at(place.clone(), "").help(help)
}

/// Returns a file of people that cannot be read as a finding; without a file, the reason names it.
pub fn unreadable(file: Option<&Arc<str>>, reason: String) -> Finding {
    let finding = Finding::new(&mistake::INVALID_VALUE, reason);
    match file {
        Some(file) => finding.at(Place::document(file, 0), ""),
        None => finding,
    }
}

/// The snapshots in files that no cluster is read from.
#[derive(Clone, Debug, Default)]
pub struct StraySnapshots {
    /// The clusters with a snapshot that no mesh names.
    pub unnamed: Vec<String>,
    /// The files with a snapshot of a cluster that are not named after it, by the cluster.
    pub misnamed: BTreeMap<String, Arc<str>>,
}

/// Returns a cluster without a snapshot as a finding; `file` is where it was looked for. `is_committed` is whether the last
/// commit has the file.
pub fn missing_snapshot(
    missing: &MissingSnapshot,
    file: &str,
    strays: &StraySnapshots,
    is_committed: bool,
) -> Finding {
    let MissingSnapshot { cluster, place } = missing;
    let message = format!("cluster `{cluster}` has no snapshot: `{file}` does not exist");
    if let Some(other) = strays.misnamed.get(cluster.as_str()) {
        let finding = Finding::new(&MISSING_SNAPSHOT, message).of_name(cluster.as_str());
        return finding.at(place.clone(), "named here").help(format!(
            "run `mv {} {}`: the first file has the nodes of `{cluster}`",
            shell_word(other),
            shell_word(file)
        ));
    }
    let unnamed = strays.unnamed.as_slice();
    let near = nearest(cluster.as_str(), unnamed.iter().map(String::as_str));
    let near = near.filter(|it| it.parse::<ClusterName>().is_ok());
    let meant = near.map(|it| format!("if `{it}` is meant, write `name: {it}` here; otherwise "));
    if is_committed {
        return Finding::new(&MISSING_SNAPSHOT, message)
            .at(place.clone(), "named here")
            .help(format!(
                "run `git checkout HEAD -- {}` if the file was deleted by mistake; otherwise run `clustermesh snapshot {cluster}`",
                shell_word(file)
            ));
    }
    // The only snapshot that no mesh names may be that of the cluster under its old name.
    let renamed = || match unnamed {
        [old] if old.parse::<ClusterName>().is_ok() => {
            let folder = file.strip_suffix(&format!("{cluster}.json"))?;
            let [from, to] =
                [old.as_str(), cluster.as_str()].map(|it| format!("{folder}{it}.json"));
            Some(format!(
                "if `{old}` was renamed to `{cluster}`, run `git mv {} {}` and write `\"cluster\": \"{cluster}\"` in that \
                 file; otherwise ",
                shell_word(&from),
                shell_word(&to)
            ))
        }
        _ => None,
    };
    let old = meant.as_ref().and(near).or_else(|| unnamed.first().map(String::as_str));
    let meant = meant.or_else(renamed);
    let old = old.filter(|_| meant.is_some()).map(ToOwned::to_owned);
    let help = format!(
        "{}run `clustermesh snapshot {cluster}`, or `clustermesh snapshot --from {cluster}=FILE` with the output of \
         `kubectl get nodes -o json`",
        meant.unwrap_or_default()
    );
    let finding =
        Finding::new(&MISSING_SNAPSHOT, message).at(place.clone(), "named here").help(help);
    Finding { named: old.map(Into::into), ..finding }
}

/// Returns several clusters without a snapshot as one finding; `folder` is where they were looked for, if it is there, and
/// `lost` is what the last commit has of them.
pub fn missing_snapshots(
    missing: &[&MissingSnapshot],
    folder: &str,
    is_folder_there: bool,
    lost: Option<&[String]>,
) -> Finding {
    let names: Vec<&str> = missing.iter().map(|it| it.cluster.as_str()).collect();
    let clusters = count(missing.len(), "cluster");
    let quoted = listed(names.iter().map(|it| Quoted(it)));
    let folder = Quoted(folder);
    let (message, other_folder) = if is_folder_there {
        (format!("{clusters} have no snapshot in {folder}: {quoted}"), "")
    } else {
        let message =
            format!("the snapshot folder {folder} does not exist, so {clusters} have no snapshot");
        (
            message,
            "if the snapshots are in another folder, name it with `--snapshots` or in the config; otherwise ",
        )
    };
    let in_command = if missing.len() <= IN_COMMAND { names } else { Vec::new() };
    let command = [&["clustermesh snapshot"], &*in_command].concat().join(" ");
    let lost = lost.filter(|it| it.len() <= IN_COMMAND).map(|files| {
        let files: Vec<_> = files.iter().map(|it| shell_word(it)).collect();
        let restore = format!("git checkout HEAD -- {}", files.join(" "));
        let otherwise = if is_folder_there { "otherwise " } else { "" };
        format!("run `{restore}` if the files were deleted by mistake; {otherwise}")
    });
    let lost = lost.unwrap_or_default();
    let places = missing.iter().take(NAMED).map(|it| (it.place.clone(), "named here"));
    Finding::new(&MISSING_SNAPSHOT, message).at_each(places).help(format!(
        "{lost}{other_folder}run `{command}`, or give each cluster as `--from CLUSTER=FILE`, with the output of \
         `kubectl get nodes -o json`"
    ))
}

/// Returns the finding about a file that is not a valid service snapshot.
pub fn invalid_service_snapshot(
    cluster: &ClusterName,
    place: Place,
    error: &ServiceSnapshotError,
) -> Finding {
    if let ServiceSnapshotError::ServiceList = error {
        return Finding::on_cluster(&INVALID_SNAPSHOT, cluster, SERVICE_LIST)
            .at(place, "")
            .help(format!(
                "move it to another folder, then run `clustermesh snapshot --services --from {cluster}=FILE`"
            ))
            .quoting(Quotes::Nothing);
    }
    let message = format!("not a snapshot of Services: {}", escaped(&error.to_string(), 400));
    Finding::on_cluster(&INVALID_SNAPSHOT, cluster, message)
        .at(place, "")
        .help(format!("run `clustermesh snapshot {cluster} --services`"))
        .quoting(Quotes::FileExceptHelp)
}

/// Returns the finding about a file that is not a valid snapshot. `is_restorable` is whether the last commit has another text.
pub fn invalid_snapshot(
    cluster: &ClusterName,
    place: Place,
    error: &SnapshotError,
    is_restorable: bool,
) -> Finding {
    if let SnapshotError::NodeList = error {
        return Finding::on_cluster(&INVALID_SNAPSHOT, cluster, NODE_LIST)
            .at(place, "")
            .help(format!(
                "move it to another folder, then run `clustermesh snapshot --from {cluster}=FILE`"
            ))
            .quoting(Quotes::Nothing);
    }
    let message = error.to_string();
    // The place is clearer.
    let message = match error {
        SnapshotError::Json(json) => {
            let position = format!(" at line {} column {}", json.line(), json.column());
            message.strip_suffix(&position).unwrap_or(&message).to_owned()
        }
        _ => message,
    };
    let message = match error {
        SnapshotError::Json(json) if json.is_eof() => "the snapshot ends too early".to_owned(),
        SnapshotError::Json(json) if json.is_data() => {
            format!("invalid snapshot: {}", escaped(&message, 400))
        }
        SnapshotError::Cluster { .. } => escaped(&message, 400),
        _ => format!("not a snapshot: {}", escaped(&message, 400)),
    };
    let other = match error {
        _ if is_restorable => {
            format!("restore it with `git checkout HEAD -- {}`, or ", shell_word(&place.source))
        }
        SnapshotError::Cluster { found, .. } => format!(
            "if {} was renamed to `{cluster}`, write `\"cluster\": \"{cluster}\"` in this file; otherwise ",
            Quoted(found)
        ),
        _ => String::new(),
    };
    Finding::on_cluster(&INVALID_SNAPSHOT, cluster, message)
        .at(place, "")
        .help(format!(
            "{other}take a new one with `clustermesh snapshot {cluster} --accept {cluster}`"
        ))
        .quoting(Quotes::FileExceptHelp)
}

/// Returns the labels that an entry uses although the snapshot of its cluster leaves them out: the
/// mesh began to use them after the snapshot, so it is unknown which nodes have them.
pub fn dropped_labels(entry: &Entry, snapshot: &Snapshot) -> Vec<Finding> {
    let cluster = &entry.name;
    let labels: BTreeSet<(&str, &str)> = entry.labels().collect();
    let dropped =
        labels.into_iter().filter_map(|(field, key)| Some((field, key, snapshot.dropped(key)?)));
    let counts = |field: &str| {
        // With granularity Full, Kilo ignores locations.
        field != "topologyLabel" || Cluster::new(entry, snapshot).granularity != Granularity::Full
    };
    let findings = dropped.filter(|(field, ..)| counts(field)).map(|(field, key, prefix)| {
        let message = format!(
            "`{field}` uses the label {}, but the snapshot leaves out the labels under {}",
            Quoted(key),
            Quoted(prefix)
        );
        Finding::on_cluster(&DROPPED_LABEL, cluster, message)
            .at(entry.place.key(field), "")
            .help(format!("run `clustermesh snapshot {cluster}`"))
    });
    findings.collect()
}

/// Returns the rule about a file among the snapshots that is that of no cluster; `own` is the file that the cluster in it
/// has already.
pub fn stray_rule(stray: &Stray, own: &str) -> &'static Rule {
    match stray {
        Stray::Unnamed(_) => &UNUSED_SNAPSHOT,
        Stray::Services(_) if own.is_empty() => &UNUSED_SNAPSHOT,
        Stray::Duplicate(_) | Stray::Services(_) => &DUPLICATE_SNAPSHOT,
        Stray::Foreign | Stray::NodeList => &FOREIGN_SNAPSHOT,
    }
}

/// Returns a file among the snapshots that is that of no cluster as a finding; `named` are those that
/// meshes name, `lacking` those of them without a snapshot, and `own` the file of the cluster in it, which `is_only` is
/// whether it is missing.
pub fn stray(
    stray: &Stray,
    file: &Arc<str>,
    own: &str,
    named: &BTreeSet<String>,
    lacking: &BTreeSet<&str>,
    is_only: bool,
) -> Finding {
    let whole = Place::document(file, 0);
    let (message, help) = match stray {
        Stray::Duplicate(cluster) | Stray::Services(cluster) if is_only => {
            let of_services = matches!(stray, Stray::Services(_));
            let what = if of_services { "Services" } else { "snapshot" };
            let (cluster, name) = (Quoted(cluster), file.rsplit('/').next().unwrap_or_default());
            (
                format!(
                    "{what} of {cluster} in {}, a file with another name, which is not read",
                    Quoted(name)
                ),
                format!("run `mv {} {}`", shell_word(file), shell_word(own)),
            )
        }
        Stray::Duplicate(cluster) => (
            format!("second snapshot of {}, which is not read", Quoted(cluster)),
            format!("keep the newer one as `{own}`, and delete the other"),
        ),
        Stray::Unnamed(cluster) => (
            format!("snapshot of {}, which is in no mesh", Quoted(cluster)),
            remedy_of_unnamed(nearest(cluster, named.iter().map(String::as_str)), lacking),
        ),
        Stray::Services(cluster) if own.is_empty() => (
            format!(
                "Services of {}, although no mesh names a Service that it has or gets",
                Quoted(cluster)
            ),
            "delete the file".to_owned(),
        ),
        Stray::Services(cluster) => (
            format!("second file with Services of {}, which is not read", Quoted(cluster)),
            format!("keep the newer one as `{own}`, and delete the other"),
        ),
        Stray::Foreign => (
            "this file in the snapshot folder is not a snapshot".to_owned(),
            "move it to another folder".to_owned(),
        ),
        Stray::NodeList => (
            NODE_LIST.to_owned(),
            "move it to another folder, then run `clustermesh snapshot --from CLUSTER=FILE`"
                .to_owned(),
        ),
    };
    let (place, quotes) = match stray {
        Stray::Foreign | Stray::NodeList => (whole, Quotes::Nothing),
        Stray::Duplicate(_) | Stray::Unnamed(_) | Stray::Services(_) => {
            (whole.key("cluster"), Quotes::File)
        }
    };
    let named_here = match stray {
        Stray::Duplicate(cluster) | Stray::Unnamed(cluster) => Some(cluster.clone()),
        Stray::Services(cluster) if is_only => Some(cluster.clone()),
        Stray::Services(_) | Stray::Foreign | Stray::NodeList => None,
    };
    // The cluster has probably another name in the mesh now.
    let is_renamed = matches!(stray, Stray::Unnamed(_)) && lacking.len() == 1;
    let cause =
        is_renamed.then_some(FindingCause { rule: &MISSING_SNAPSHOT, cluster: None, node: None });
    let finding = Finding::new(stray_rule(stray, own), message).at(place, "").with_cause(cause);
    Finding { named: named_here.map(Into::into), ..finding.help(help).quoting(quotes) }
}

/// Returns the remedy for the snapshot of a cluster that no mesh names; `nearest` is one that a mesh names.
fn remedy_of_unnamed(nearest: Option<&str>, lacking: &BTreeSet<&str>) -> String {
    match nearest {
        Some(name) if lacking.contains(name) => format!(
            "if this is the cluster that a mesh calls {}, correct the name there; otherwise delete the file",
            Quoted(name)
        ),
        Some(name) => format!(
            "if {} is meant, take a new snapshot with `clustermesh snapshot {name}`, and \
             delete this file",
            Quoted(name)
        ),
        None => "add the cluster to a mesh, or delete the file".to_owned(),
    }
}

/// Returns whether a finding is that there is no mesh at all.
pub fn is_no_mesh(finding: &Finding) -> bool {
    finding.rule == &NO_MESH
}

/// Returns whether a finding is about a document that is not read.
pub fn is_skipped_document(finding: &Finding) -> bool {
    finding.rule == &mistake::SKIPPED_DOCUMENT
}

/// Returns that there is no mesh at all in some files as a finding, given whether Peers were rendered
/// before, and whether they have other documents, edits of which git would take back too. `committed` are those that the
/// last commit has.
pub fn no_mesh(
    files: &[String],
    has_peers: bool,
    has_documents: bool,
    committed: &[String],
) -> Finding {
    let files = quoted(files);
    if has_peers {
        let message = format!("no ClusterMesh in {files}, so every Peer would be deleted");
        let words: Vec<_> = committed.iter().map(|it| shell_word(it)).collect();
        let restored = match words.as_slice() {
            _ if has_documents => "begin the mesh with the lines `apiVersion: kilo.squat.ai/v1alpha1` and `kind: ClusterMesh`"
                .to_owned(),
            [] => "write the mesh again".to_owned(),
            words => format!("run `git checkout HEAD -- {}`", words.join(" ")),
        };
        return Finding::new(&NO_MESH, message).help(format!(
            "{restored}, or, if every Peer is to be deleted, run `clustermesh render --allow-empty '*'`"
        ));
    }
    Finding::new(&NO_MESH, format!("no ClusterMesh in {files}")).help(
        "run `clustermesh init` in an empty folder for a mesh to start with, or write one that \
         begins with `apiVersion: kilo.squat.ai/v1alpha1` and `kind: ClusterMesh`",
    )
}
