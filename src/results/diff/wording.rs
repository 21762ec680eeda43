//! Differences in words. Every text of a node or a file is escaped here.

use crate::capacity::units;
use crate::changes::cause::{ChangedSetting, ChangedValue, FORM};
use crate::changes::{
    Cause, CauseEffect, ChangedPorts, Changes, DialledPort, LoadChange, NamedNode, NodeChange,
    PathChange, PathCounts, PeerChange, PeerChangeKind, PeerCounts, ServiceChange,
    ServiceChangeKind,
};
use crate::diagnostic::{Quoted, bare, escaped};
use crate::mesh::State;
use crate::name::ClusterName;
use crate::net::{Cidr, without};
use crate::place::Place;
use crate::report::alike::Arrow;
use crate::results::peer_difference::{self, moved, ranges};
use crate::results::source_texts::SourceTexts;
use crate::rules;
use crate::text::{self, count, first, listed};

use super::Compared;

mod help;
mod reason;

pub(super) use help::helps;
pub(super) use reason::reason;

/// The longest name that is shown, in characters.
const SHOWN: usize = 300;

/// The largest number of ranges of a list that are shown.
const LISTED: usize = 4;

/// The largest number of endpoints of a list that are shown.
const PORTS: usize = 20;

/// Returns how many Peers are added, changed and removed.
pub fn counts(counts: PeerCounts) -> String {
    let PeerCounts { added, changed, removed } = counts;
    format!("+{added} ~{changed} -{removed}")
}

/// Returns what becomes of a Service.
pub(super) fn service(change: &ServiceChange) -> String {
    let (name, source) = (&change.name, &change.source);
    match &change.kind {
        ServiceChangeKind::Added => format!("gets the Service {name} of {source}"),
        ServiceChangeKind::Removed => format!("loses the Service {name} of {source}"),
        ServiceChangeKind::Moved { from, to } => format!(
            "its Service {name} of {source} leads to {to} instead of {from}; open connections go on to the old address"
        ),
        ServiceChangeKind::Ports { lost, gained, changed } => {
            let parts = [("loses", lost), ("gains", gained)].into_iter();
            let parts = parts.filter(|it| !it.1.is_empty()).map(|(verb, ports)| {
                format!("{verb} {}", listed(ports.iter().map(ToString::to_string)))
            });
            let parts: Vec<String> = parts
                .chain(changed.iter().map(|[then, now]| {
                    let [before, after] =
                        [then, now].map(|it| it.app_protocol.as_deref().unwrap_or_default());
                    let fields = [["appProtocol", before, after], ["name", &then.name, &now.name]];
                    format!("changes {now}: {}", changed_fields(&fields))
                }))
                .collect();
            format!("its Service {name} of {source} {}", parts.join(" and "))
        }
    }
}

/// Returns which fields of something are others now, each with its name, the old and the new value.
fn changed_fields(fields: &[[&str; 3]]) -> String {
    let shown = |it: &str| if it.is_empty() { "none".to_owned() } else { bare(it) };
    let changed = fields.iter().filter(|[_, then, now]| then != now);
    listed(changed.map(|[field, then, now]| format!("`{field}` {} → {}", shown(then), shown(now))))
}

/// Returns what a cause changes in each target, at most `limit` of them one by one.
pub(super) fn effects(effect: &CauseEffect, compared: &Compared, limit: usize) -> String {
    let mut parts: Vec<String> = compared
        .effects(effect)
        .take(limit)
        .map(|(target, counts)| format!("{} {}", target.cluster, self::counts(counts)))
        .collect();
    let more = effect.targets.len().saturating_sub(limit);
    if 0 < more {
        parts.push(format!("and {}", count(more, "more target")));
    }
    if parts.is_empty() {
        return "no Peer changes because of this alone".to_owned();
    }
    parts.join(", ")
}

/// Names the kind of a cause, for programs.
pub(super) fn kind(cause: &Cause) -> &'static str {
    match cause {
        Cause::ClusterJoined(_) => "clusterJoined",
        Cause::ClusterAdded { .. } => "clusterAdded",
        Cause::ClusterLeft(_) => "clusterLeft",
        Cause::ClusterRenamed { .. } => "clusterRenamed",
        Cause::MeshJoined { .. } => "meshJoined",
        Cause::MeshLeft { .. } => "meshLeft",
        Cause::Setting(_) => "setting",
        Cause::Node { change, .. } => match change {
            NodeChange::Joined => "nodeJoined",
            NodeChange::Left => "nodeLeft",
            NodeChange::Excluded(_) => "nodeExcluded",
            NodeChange::Back(_) => "nodeBack",
            NodeChange::NewKey => "newKey",
            NodeChange::NewEndpoint { .. } => "newEndpoint",
            NodeChange::NewAddress { .. } => "newAddress",
            NodeChange::OtherLocation { .. } => "otherLocation",
            NodeChange::RangesGained(_) => "rangesGained",
            NodeChange::RangesLost(_) => "rangesLost",
        },
        Cause::OtherGranularity { .. } => "otherGranularity",
        Cause::NodeRenamed { .. } => "nodeRenamed",
        Cause::LeaderChanged { .. } => "leaderChanged",
        Cause::AnchorMoved { .. } => "anchorMoved",
        Cause::ForeignPeer { .. } => "foreignPeer",
        Cause::Other => "other",
    }
}

/// Returns the changes of paths as arrows between clusters.
pub(super) fn path_arrows(changes: &Changes) -> Vec<Arrow<'_, String>> {
    let arrows = changes.paths.iter().map(|path| Arrow {
        from: path.from.as_str(),
        to: path.to.as_str(),
        label: path_change(path, &changes.causes).join(", "),
    });
    arrows.collect()
}

/// Returns what a person has to do beside the change, if anything. The grade is about the Peers alone.
pub(super) fn follow_up(cause: &Cause) -> Option<String> {
    let Cause::ClusterRenamed { from, to } = cause else {
        return None;
    };
    // A host has no folder.
    (!to.is_external()).then(|| format!(
        "let the Flux Kustomization or Argo CD Application of {from} apply the folder `{to}`; until then the \
         cluster keeps its old Peers"
    ))
}

/// Returns the endpoints that clusters dial from now on, and those that they dial no longer, each as a sentence.
pub(super) fn ports(ports: &ChangedPorts) -> Vec<String> {
    let ChangedPorts { opened, closed } = ports;
    let listed = |ports: &[DialledPort]| {
        let ports = ports.iter().map(|it| match &it.owner {
            Some(owner) => format!("UDP {} ({})", it.endpoint, name(owner)),
            None => format!("UDP {}", it.endpoint),
        });
        first(PORTS, ports)
    };
    let sentences = [
        ("before the merge, open what other clusters will dial:", opened),
        ("after the merge, other clusters no longer dial:", closed),
    ];
    let sentences = sentences.into_iter().filter(|it| !it.1.is_empty());
    sentences.map(|(words, ports)| format!("{words} {}", listed(ports))).collect()
}

/// Returns a cause as a phrase.
pub(super) fn cause(cause: &Cause, compared: &Compared) -> String {
    match cause {
        Cause::ClusterJoined(cluster) => format!("{} joined", member(cluster)),
        Cause::ClusterAdded { cluster, mesh, state } => {
            let mesh = mesh.as_ref().map(|it| format!(" to the mesh {it}"));
            let mesh = mesh.unwrap_or_default();
            format!("cluster {cluster} was added{mesh} with `state: {state:?}`")
        }
        Cause::ClusterLeft(cluster) => {
            let entry = compared.meshes.iter().find_map(|it| it.entry(cluster));
            let member = member(cluster);
            match entry {
                _ if cluster.is_external() => format!("{member} was removed"),
                Some(_) => format!("{member} leaves (`state: Leaving`)"),
                None => format!("{member} left (its entry is removed)"),
            }
        }
        Cause::ClusterRenamed { from, to } => format!("{} is now called {to}", member(from)),
        Cause::MeshJoined { cluster, mesh } => format!("cluster {cluster} joined the mesh {mesh}"),
        Cause::MeshLeft { cluster, mesh } => format!("cluster {cluster} left the mesh {mesh}"),
        Cause::Setting(setting) => self::setting(setting, compared),
        Cause::Node { node, change } => of_node(&self::node(node), change),
        Cause::OtherGranularity { cluster, from, to } => {
            format!("most nodes of {cluster} report another granularity: {from} → {to}")
        }
        Cause::NodeRenamed { cluster, from, to } => {
            format!("node renamed: {cluster}/{} → {}", name(from), name(to))
        }
        Cause::LeaderChanged { cluster, location, from, to } => {
            let location = match location.as_str() {
                "" => "the location without a name".to_owned(),
                location => format!("location {}", Quoted(location)),
            };
            format!("{location} of {cluster} has another leader: {} → {}", name(from), name(to))
        }
        Cause::AnchorMoved { cluster, range, from, to } => {
            format!("{range} of {cluster} moves from {} to {}", name(from), name(to))
        }
        Cause::ForeignPeer { target, peer } => {
            format!("{target} has the Peer {}, which belongs to no mesh", name(peer))
        }
        Cause::Other => {
            "other causes: conflicting claims, a rendered tree that was out of date, or \
                         another version of clustermesh"
                .to_owned()
        }
    }
}

/// Returns a change of a node as a phrase.
fn of_node(node: &str, change: &NodeChange) -> String {
    match change {
        NodeChange::Joined => format!("{node} was added"),
        NodeChange::Left => format!("{node} was removed"),
        NodeChange::Excluded(reason) => {
            format!("{node} is left out now: {}", rules::excluded(reason))
        }
        NodeChange::Back(reason) => {
            format!("{node} takes part again (it was left out: {})", rules::excluded(reason))
        }
        NodeChange::NewKey => format!("{node} has a new key"),
        NodeChange::NewEndpoint { from, to } => {
            let moved = moved(from.as_ref(), to.as_ref());
            format!("{node} has another endpoint: {moved}")
        }
        NodeChange::NewAddress { from, to } => readdressed(node, from, to),
        NodeChange::OtherLocation { from, to } => {
            let [from, to] = [from, to].map(|it| match it.as_str() {
                "" => "none".to_owned(),
                location => Quoted(location).to_string(),
            });
            format!("{node} is in another location: {from} → {to}")
        }
        NodeChange::RangesGained(ranges) => {
            format!("{node} gained {}", peer_difference::ranges(ranges))
        }
        NodeChange::RangesLost(ranges) => {
            format!("{node} lost {}", peer_difference::ranges(ranges))
        }
    }
}

fn setting(setting: &ChangedSetting, compared: &Compared) -> String {
    let ChangedSetting { cluster, field, before, after, value } = setting;
    let of = cluster.as_ref().map_or_else(String::new, |cluster| format!(" of {cluster}"));
    let new = || Some(line(after.as_ref()?, compared.files));
    let old = || {
        let files = compared.old_files.unwrap_or(compared.files);
        let line = line(before.as_ref()?, files);
        Some(format!("{line} before"))
    };
    let what = match *field {
        FORM => "the form of the entry".to_owned(),
        field => format!("`{field}`"),
    };
    let place = new().or_else(old);
    let at = place.as_ref().map(|it| format!(" ({it})"));
    let at = at.unwrap_or_default();
    let values = |values: &[String]| first(LISTED, values.iter().map(|it| name(it)));
    match (value, cluster) {
        (ChangedValue::State { from, to }, Some(cluster)) => {
            let place = place.map(|it| format!(", {it}")).unwrap_or_default();
            match to {
                State::Joined => format!("cluster {cluster} joined (`state: {from:?}` removed)"),
                State::Joining if *from == State::Joined => {
                    format!("cluster {cluster} is disconnected (`state: {to:?}` added{place})")
                }
                State::Joining => {
                    format!("cluster {cluster} is to join later (`state: {to:?}`{place})")
                }
                State::Leaving => format!("cluster {cluster} leaves (`state: {to:?}`{place})"),
            }
        }
        (ChangedValue::Listed { before, after }, _) => {
            match (before.as_slice(), after.as_slice()) {
                ([], []) => format!("{what}{of} changed{at}"),
                (before, []) => format!("{what}{of} removed: {}{at}", values(before)),
                ([], after) => format!("{what}{of} added: {}{at}", values(after)),
                (before, after) => {
                    format!("{what}{of} changed: {} → {}{at}", values(before), values(after))
                }
            }
        }
        (ChangedValue::State { .. }, _) => {
            format!("{what}{of} changed{at}")
        }
    }
}

/// Describes a node with other addresses.
fn readdressed(node: &str, from: &[Cidr], to: &[Cidr]) -> String {
    let (lost, gained) = (without(from, to), without(to, from));
    match (lost.as_slice(), gained.as_slice()) {
        ([], gained) => format!("{node} got the address {}", ranges(gained)),
        (lost, []) => format!("{node} lost the address {}", ranges(lost)),
        (lost, gained) => {
            format!("{node} has another address: {} → {}", ranges(lost), ranges(gained))
        }
    }
}

/// Returns a file and a line.
pub(super) fn line(place: &Place, files: &dyn SourceTexts) -> String {
    let file = name(&place.source);
    match files.positions(place) {
        Some(positions) => format!("{file}:{}", positions.start.line),
        None => file,
    }
}

/// Returns a change of a Peer as a line.
pub(super) fn change(change: &PeerChange) -> String {
    let peer = name(&change.peer.name);
    match &change.peer.kind {
        PeerChangeKind::Added { renamed_from: Some(from), .. } => {
            format!("+ {peer}, which was called {}", name(from))
        }
        PeerChangeKind::Added { ranges, .. } => {
            format!("+ {peer} with {}", peer_difference::ranges(ranges))
        }
        PeerChangeKind::Removed { renamed_to: Some(to), .. } => {
            format!("- {peer}, which is now called {}", name(to))
        }
        PeerChangeKind::Removed { ranges, .. } => {
            format!("- {peer} with {}", peer_difference::ranges(ranges))
        }
        PeerChangeKind::Changed(differences) => {
            let differences: Vec<String> =
                differences.iter().map(peer_difference::difference).collect();
            format!("~ {peer}: {}", differences.join("; "))
        }
    }
}

/// Returns how many paths there are of each kind.
pub(super) fn paths(counts: PathCounts) -> String {
    match (counts.declared, counts.undeclared) {
        (declared, 0) => count(declared, "declared path"),
        (0, undeclared) => count(undeclared, "undeclared path"),
        (declared, undeclared) => format!(
            "{} and {}",
            count(declared, "declared path"),
            count(undeclared, "undeclared path")
        ),
    }
}

/// Returns the changes of paths as phrases, without those of which there are none.
fn path_change(change: &PathChange, causes: &[CauseEffect]) -> Vec<String> {
    let no_longer_proved = no_longer_proved(change, causes);
    let kinds = [
        (change.gained, "gained"),
        (change.assumed, "of these only assumed to work"),
        (change.lost, "lost"),
        (change.no_longer_proved, &no_longer_proved),
        (change.ended.paths, "ended, because a node or an address no longer exists"),
        (change.repaired, "down until this is applied"),
        (change.apart, "interrupted until both clusters have their new Peers"),
        (change.stuck, "interrupted for up to 10 minutes"),
        (change.paused, "interrupted while the Peers arrive"),
        (change.opened.stay, "opened although `--fail-on-new-path` forbids it"),
        (change.opened.pass, "open only while the Peers arrive"),
    ];
    kinds
        .iter()
        .filter(|(counts, _)| !counts.is_empty())
        .map(|(counts, what)| format!("{} {what}", paths(*counts)))
        .collect()
}

/// Returns what becomes of paths that are no longer proved, with the settings of both clusters that decide it.
fn no_longer_proved(change: &PathChange, causes: &[CauseEffect]) -> String {
    let settings = causes.iter().filter_map(|it| match &it.cause {
        Cause::Setting(setting) if setting.decides_proof() => Some(setting),
        _ => None,
    });
    let settings = settings.filter_map(|it| Some((it.field, it.cluster.as_ref()?)));
    let settings = settings.filter(|it| *it.1 == change.from || *it.1 == change.to);
    let settings: Vec<String> =
        settings.map(|(field, cluster)| format!("`{field}` of {cluster}")).collect();
    let why = if settings.is_empty() {
        String::new()
    } else {
        format!(", because {} changed", text::list(settings))
    };
    format!("no longer proved, only assumed to work{why}")
}

/// Returns a cluster or an external peer with its noun.
fn member(name: &ClusterName) -> String {
    match name.external() {
        Some(host) => format!("external peer {host}"),
        None => format!("cluster {name}"),
    }
}

/// Returns how long Kilo takes.
pub(super) fn busy(load: &LoadChange) -> String {
    format!("Kilo needs {} to apply the change", units::seconds(load.seconds))
}

fn peer_names(peers: &[String]) -> String {
    first(LISTED, peers.iter().map(|it| name(it)))
}

fn node(node: &NamedNode) -> String {
    if node.cluster.is_external() {
        return node.cluster.to_string();
    }
    format!("node {}/{}", node.cluster, name(&node.node))
}

/// Returns a name from a node or a file: as it is if it could be one in Kubernetes, else quoted, so that it does not
/// look like a part of the sentence.
pub(super) fn name(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._/".contains(it);
    if name.chars().all(is_plain) {
        return escaped(name, SHOWN);
    }
    Quoted(name).to_string()
}
