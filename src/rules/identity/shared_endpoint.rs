//! Shared endpoints: those at which two nodes are to be dialled.

use std::collections::BTreeSet;

use super::SHARED_ENDPOINT;
use super::shared_nodes::SharedNodes;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::place::Place;
use crate::rules::command::blank;
use crate::rules::{Finding, bare};

/// Annotations from which an endpoint may come.
const ANNOTATIONS: [&str; 3] =
    [annotation::CLUSTERMESH_ENDPOINT, annotation::FORCE_ENDPOINT, annotation::ENDPOINT];

/// A candidate that others dial.
#[derive(Clone, Copy)]
struct DialledCandidate<'a> {
    /// Its cluster.
    member: &'a Member<'a>,
    candidate: &'a PeerCandidate,
}

/// Returns findings about candidates with the endpoint of one before them: of all meshes, as an endpoint is
/// one place in the world, or on the network that all of them share.
pub(super) fn findings(fleet: &Fleet, nodes: &[SharedNodes]) -> Vec<Finding> {
    let mut dialled: Vec<DialledCandidate> = fleet
        .members()
        .iter()
        .flat_map(|member| {
            let candidates = member.membership.candidates.iter();
            let with_endpoint = candidates.filter(|it| it.endpoint.is_some());
            with_endpoint.map(move |candidate| DialledCandidate { member, candidate })
        })
        .collect();
    // Stable, so that of one endpoint the candidates stay in order of rank and name.
    dialled.sort_by_key(|it| &it.candidate.endpoint);
    let mut findings = Vec::new();
    for alike in dialled.chunk_by(|a, b| a.candidate.endpoint == b.candidate.endpoint) {
        let Some((first, rest)) = alike.split_first() else {
            continue;
        };
        let mut known = BTreeSet::from([first.who()]);
        // With one key they are one machine, or a copy, which is reported already.
        let others = rest.iter().filter(|it| {
            let is_same_node =
                nodes.iter().any(|nodes| nodes.has(&it.member.entry.name, it.who().1));
            known.insert(it.who()) && it.candidate.key != first.candidate.key && !is_same_node
        });
        findings.extend(others.filter_map(|it| finding(*it, *first)));
    }
    findings
}

/// Reports a candidate with the endpoint of another one.
fn finding(again: DialledCandidate, first: DialledCandidate) -> Option<Finding> {
    let (cluster, node) = first.who();
    let whose = format!("{cluster}/{}", bare(node));
    let endpoint = again.candidate.endpoint.as_ref()?;
    let message = format!("same endpoint as {whose}: {endpoint}");
    let (cluster, node) = (&again.member.entry.name, again.who().1);
    let change = blank(annotation::FORCE_ENDPOINT);
    let finding = Finding::on_node(&SHARED_ENDPOINT, cluster, node, message)
        .at(again.place(), "second here")
        .at(first.place(), format!("of {whose}"))
        .resolved_by(&change, cluster, [node])
        .resolved_by(&change, &first.member.entry.name, [first.who().1])
        .help(
            "give each node its own port: annotate each with `kilo.squat.ai/force-endpoint: \
             ADDRESS:PORT`, and forward these ports",
        );
    Some(finding)
}

impl<'a> DialledCandidate<'a> {
    /// Returns the names of its cluster and node.
    fn who(self) -> (&'a str, &'a str) {
        let cluster = self.member.entry.name.as_str();
        (cluster, self.candidate.leader.as_str())
    }

    /// Returns where the snapshot has the endpoint: the annotation or the address that it is made of.
    fn place(self) -> Place {
        let place = &self.candidate.place;
        let endpoint = self.candidate.endpoint.as_ref();
        let Some(node) = self.member.file.snapshot.node(self.who().1) else {
            return place.clone();
        };
        let is_it = |key: &&&str| {
            let text = node.annotations.get(**key);
            endpoint.is_some() && text.and_then(|it| it.parse().ok()).as_ref() == endpoint
        };
        match ANNOTATIONS.iter().find(is_it) {
            Some(key) => place.key("annotations").key(key),
            None => place.key("addresses"),
        }
    }
}
