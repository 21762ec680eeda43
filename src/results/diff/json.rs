//! Differences as an object for programs, in a form of its own that is versioned.

use crate::capacity::units::number;
use crate::changes::{
    CarrierMove, Cause, CauseEffect, DialledPort, Difference, ForgottenAddresses, LoadChange,
    NamedNode, NewPaths, OpenedPaths, PathChange, PathCounts, PeerChange, PeerChangeKind,
    ServiceChange, TargetChange,
};
use crate::diagnostic::escaped;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::results::findings::json::{WrittenPlace, bare_place, findings};
use crate::results::peer_difference;
use crate::results::source_texts::SourceTexts;

use super::{Compared, remedy, wording};

pub(crate) mod controls;
pub mod form;

use form::{
    WrittenCarrier, WrittenDiff, WrittenDiffCause, WrittenEffect, WrittenExample, WrittenForgotten,
    WrittenKeyMove, WrittenNewPaths, WrittenPath, WrittenPeer, WrittenPeerChangeKind, WrittenPort,
    WrittenQuantity, WrittenReason, WrittenServiceChange, WrittenTargetChange,
};

/// The longest name that is written, in characters.
const NAME: usize = 1000;

/// Returns the object.
pub fn written<'a>(compared: &'a Compared) -> WrittenDiff<'a> {
    let changes = compared.changes;
    let causes = changes.causes.iter().map(|it| cause(it, compared));
    let targets = changes.targets.iter();
    let new_paths = changes.new_paths(compared.watched).into_iter();
    WrittenDiff {
        against: &compared.against,
        notes: compared.notes,
        grade: changes.grade(),
        pause_only: changes.is_pause_only(),
        causes: causes.collect(),
        targets: targets.map(|it| target(it, compared)).collect(),
        paths: changes.paths.iter().map(path).collect(),
        new_paths: new_paths.map(new_path).collect(),
        services: changes.services.iter().map(service).collect(),
        opened_ports: changes.ports.opened.iter().map(port).collect(),
        closed_ports: changes.ports.closed.iter().map(port).collect(),
        controls: controls::written(compared),
        findings: findings(&compared.report()),
        states: changes.states,
    }
}

fn service(change: &ServiceChange) -> WrittenServiceChange<'_> {
    WrittenServiceChange {
        cluster: change.target.as_str(),
        grade: change.grade(),
        message: wording::service(change),
        name: change.name.name(),
        namespace: change.name.namespace.as_str(),
        source: change.source.as_str(),
    }
}

fn port(port: &DialledPort) -> WrittenPort {
    let owner = port.owner.as_ref().map(|it| escaped(it, NAME));
    WrittenPort { endpoint: port.endpoint.to_string(), owner }
}

fn cause<'a>(effect: &'a CauseEffect, compared: &'a Compared<'a>) -> WrittenDiffCause<'a> {
    let cause = &effect.cause;
    let setting = match cause {
        Cause::Setting(setting) => Some(setting),
        _ => None,
    };
    let old = compared.old_files.unwrap_or(compared.files);
    let targets = compared.effects(effect);
    let targets =
        targets.map(|(target, counts)| WrittenEffect { cluster: target.cluster.as_str(), counts });
    WrittenDiffCause {
        kind: wording::kind(cause),
        message: wording::cause(cause, compared),
        cluster: cause.cluster().map(ClusterName::as_str),
        node: cause.node().map(|it| escaped(&it.node, NAME)),
        before: setting.and_then(|it| written_place(it.before.as_ref(), old)),
        after: setting.and_then(|it| written_place(it.after.as_ref(), compared.files)),
        help: wording::follow_up(cause),
        targets: targets.collect(),
    }
}

fn written_place(it: Option<&Place>, files: &dyn SourceTexts) -> Option<WrittenPlace> {
    it.map(|it| bare_place(it, "", files))
}

fn target<'a>(target: &'a TargetChange, compared: &Compared) -> WrittenTargetChange<'a> {
    let reasons = target
        .reasons
        .iter()
        .map(|it| WrittenReason { grade: it.grade(), message: wording::reason(it) });
    let key_moves = target.key_moves.iter().map(|it| WrittenKeyMove {
        peers: &it.peers,
        lost: &it.lost,
        help: joined(&remedy::of_key_moves(target, [it], compared)),
    });
    WrittenTargetChange {
        cluster: target.cluster.as_str(),
        renamed_from: target.renamed_from.as_ref().map(ClusterName::as_str),
        grade: target.grade(),
        pause_only: target.is_pause_only(),
        reasons: reasons.collect(),
        peers_before: target.peers_before,
        peers_after: target.peers_after,
        counts: target.counts(),
        peers: target.peers.iter().map(peer).collect(),
        carriers: target.carriers.iter().map(carrier).collect(),
        pausing: target.pausing.iter().map(|it| escaped(it, NAME)).collect(),
        forgotten: target.forgotten.as_ref().map(forgotten),
        key_moves: key_moves.collect(),
        help: remedy::of_target(target, compared),
        busy_seconds: target.load.as_ref().map(|it| number(it.seconds)),
        capacity: target.load.as_ref().map(quantities).unwrap_or_default(),
    }
}

fn forgotten(forgotten: &ForgottenAddresses) -> WrittenForgotten<'_> {
    let nodes = forgotten.nodes.iter();
    let leaders = forgotten.leaders.iter();
    WrittenForgotten {
        leaders: leaders.map(|it| escaped(it, NAME)).collect(),
        nodes: nodes.map(written_node).collect(),
        peers: forgotten.peers.iter().map(String::as_str).collect(),
        is_published: forgotten.is_published,
    }
}

/// Returns several remedies as one, if there are any.
fn joined(remedies: &[String]) -> Option<String> {
    (!remedies.is_empty()).then(|| remedies.join("; "))
}

fn path(path: &PathChange) -> WrittenPath<'_> {
    WrittenPath {
        from: path.from.as_str(),
        to: path.to.as_str(),
        gained: path.gained,
        assumed: some(path.assumed),
        lost: path.lost,
        no_longer_proved: some(path.no_longer_proved),
        ended: path.ended.paths,
        repaired: path.repaired,
        apart: path.apart,
        stuck: path.stuck,
        paused: path.paused,
        opened: some(path.opened.stay),
        passing: some(path.opened.pass),
    }
}

fn new_path(new: NewPaths<'_>) -> WrittenNewPaths<'_> {
    let NewPaths { watched, path, causes } = new;
    let OpenedPaths { stay, pass, example } = &path.opened;
    WrittenNewPaths {
        watched: watched.iter().map(|it| it.name.as_str()).collect(),
        from: path.from.as_str(),
        to: path.to.as_str(),
        opened: *stay,
        passing: *pass,
        example: example
            .as_ref()
            .map(|(from, to)| WrittenExample { from: escaped(from, NAME), to: escaped(to, NAME) }),
        causes: causes.into_iter().collect(),
    }
}

fn some(counts: PathCounts) -> Option<PathCounts> {
    (!counts.is_empty()).then_some(counts)
}

fn carrier(carrier: &CarrierMove) -> WrittenCarrier {
    WrittenCarrier {
        range: carrier.range.to_string(),
        from: written_node(&carrier.from),
        to: written_node(&carrier.to),
    }
}

fn written_node(node: &NamedNode) -> String {
    format!("{}/{}", node.cluster, escaped(&node.node, NAME))
}

/// Returns the quantities that differ. Those of the change itself have no old value.
fn quantities(load: &LoadChange) -> Vec<WrittenQuantity> {
    let pairs = load.after.iter().filter_map(|after| {
        let mut before = load.before.iter();
        let before = before.find(|it| it.quantity == after.quantity)?;
        let (old, new) = (number(before.value), number(after.value));
        (old != new).then(|| WrittenQuantity {
            name: after.quantity.key(),
            before: old,
            after: new,
        })
    });
    pairs.collect()
}

fn peer(change: &PeerChange) -> WrittenPeer<'_> {
    let (mut gained, mut lost, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    let texts =
        |ranges: &[Cidr]| -> Vec<String> { ranges.iter().map(ToString::to_string).collect() };
    let peer = &*change.peer;
    let (kind, renamed) = match &peer.kind {
        PeerChangeKind::Added { renamed_from, ranges } => {
            gained = texts(ranges);
            (WrittenPeerChangeKind::Added, renamed_from.as_deref())
        }
        PeerChangeKind::Removed { renamed_to, ranges } => {
            lost = texts(ranges);
            (WrittenPeerChangeKind::Removed, renamed_to.as_deref())
        }
        PeerChangeKind::Changed(all) => {
            for difference in all {
                match difference {
                    Difference::RangesGained(ranges) => gained.extend(texts(ranges)),
                    Difference::RangesLost(ranges) => lost.extend(texts(ranges)),
                    other => differences.push(peer_difference::difference(other)),
                }
            }
            (WrittenPeerChangeKind::Changed, None)
        }
    };
    WrittenPeer {
        name: &peer.name,
        change: kind,
        source: peer.holder.as_ref().map(|it| it.cluster.as_str()),
        node: peer.holder.as_ref().map(|it| escaped(&it.node, NAME)),
        renamed,
        gained,
        lost,
        differences,
        causes: change.causes.listed(),
        more_causes: Some(change.causes.more()).filter(|it| 0 < *it),
    }
}
