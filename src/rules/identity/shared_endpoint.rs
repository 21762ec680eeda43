//! Shared endpoints: those at which two nodes are to be dialled.

use std::collections::BTreeSet;

use super::shared_nodes::SharedNodes;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::place::Place;

/// Annotations from which an endpoint may come.
const ANNOTATIONS: [&str; 3] = [
    annotation::CLUSTERMESH_ENDPOINT,
    annotation::FORCE_ENDPOINT,
    annotation::ENDPOINT,
];

/// A candidate that others dial.
#[derive(Clone, Copy)]
pub(super) struct DialledCandidate<'a> {
    /// Its cluster.
    pub(super) member: &'a Member<'a>,
    /// The candidate.
    pub(super) candidate: &'a PeerCandidate,
}

/// A candidate with the endpoint of another one.
pub(super) struct SharedEndpoint<'a> {
    /// The candidate.
    pub(super) again: DialledCandidate<'a>,
    /// The first one with the endpoint.
    pub(super) first: DialledCandidate<'a>,
}

/// Returns the candidates with the endpoint of one before them: of all meshes, as an endpoint is one
/// place in the world, or on the network that all of them share.
pub(super) fn shared<'a>(fleet: &'a Fleet, nodes: &[SharedNodes]) -> Vec<SharedEndpoint<'a>> {
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
    let mut found = Vec::new();
    for alike in dialled.chunk_by(|a, b| a.candidate.endpoint == b.candidate.endpoint) {
        let Some((first, rest)) = alike.split_first() else {
            continue;
        };
        let mut known = BTreeSet::from([first.who()]);
        // With one key they are one machine, or a copy, which is reported already.
        let others = rest.iter().filter(|it| {
            let is_same_node = nodes
                .iter()
                .any(|nodes| nodes.has(&it.member.entry.name, it.who().1));
            known.insert(it.who()) && it.candidate.key != first.candidate.key && !is_same_node
        });
        found.extend(others.map(|&again| SharedEndpoint {
            again,
            first: *first,
        }));
    }
    found
}

impl<'a> DialledCandidate<'a> {
    /// Returns the names of its cluster and node.
    pub(super) fn who(self) -> (&'a str, &'a str) {
        let cluster = self.member.entry.name.as_str();
        (cluster, self.candidate.leader.as_str())
    }

    /// Returns where the snapshot has the endpoint: the annotation or the address that it is made of.
    pub(super) fn place(self) -> Place {
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
