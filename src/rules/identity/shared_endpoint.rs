//! Shared endpoints: those at which two nodes are to be dialled.

use std::collections::BTreeSet;

use super::SHARED_ENDPOINT;
use super::shared_nodes::SharedNodes;
use crate::fleet::{Fleet, Member};
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::net::private_network;
use crate::place::Place;
use crate::rules::command::blank;
use crate::rules::{Finding, bare};
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::Endpoint;

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

/// Returns findings about candidates with the endpoint of another one, of all meshes: that whose node has the address, or
/// the one of highest rank.
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
        let owner = alike.iter().find(|it| it.shown().is_some());
        let Some(first) = owner.or_else(|| alike.first()) else {
            continue;
        };
        let mut known = BTreeSet::from([first.who()]);
        // With one key they are one machine, or a copy, which is reported already.
        let others = alike.iter().filter(|it| {
            let is_same_node =
                nodes.iter().any(|nodes| nodes.has(&it.member.entry.name, it.who().1));
            let is_other = known.insert(it.who()) && it.candidate.key != first.candidate.key;
            is_other && !is_same_node && it.is_beside(*first)
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
        .resolved_by(&change, &first.member.entry.name, [first.who().1]);
    let is_annotated = again.shown().is_none() && !again.member.entry.name.is_external();
    let key = again.annotated().filter(|_| is_annotated);
    Some(match first.shown().zip(key) {
        Some((kind, key)) => finding.help(format!(
            "{}: {} is the {kind:?} of {whose}",
            if again.has_external_address() {
                format!("remove `{key}` from {}", bare(node))
            } else {
                format!("correct `{key}` of {}", bare(node))
            },
            endpoint.address()?
        )),
        None if again.member.entry.name.is_external() => {
            finding.help(format!("correct `endpoint` of `{cluster}` in the mesh"))
        }
        None => {
            let wrong = key.map(|it| {
                format!("correct `{it}` of the node that has another address; otherwise ")
            });
            finding.help(format!(
                "{}give each node its own port: annotate each with `kilo.squat.ai/force-endpoint: ADDRESS:PORT`, and \
                 forward these ports",
                wrong.unwrap_or_default()
            ))
        }
    })
}

impl<'a> DialledCandidate<'a> {
    /// Returns the names of its cluster and node.
    fn who(self) -> (&'a str, &'a str) {
        let cluster = self.member.entry.name.as_str();
        (cluster, self.candidate.leader.as_str())
    }

    fn node(self) -> Option<&'a Node> {
        self.member.file.snapshot.node(self.who().1)
    }

    /// Returns the kind of the endpoint's address, if Kubernetes shows that the node has it.
    fn shown(self) -> Option<AddressKind> {
        let address = self.candidate.endpoint.as_ref()?.address()?;
        let mut addresses = self.node()?.addresses.iter();
        let own = addresses.find(|it| it.address.parse() == Ok(address));
        own.map(|it| it.kind)
    }

    /// Returns whether the node has an endpoint without an annotation.
    fn has_external_address(self) -> bool {
        let mut addresses = self.node().into_iter().flat_map(|it| &it.addresses);
        addresses.any(|it| it.kind == AddressKind::ExternalIP)
    }

    /// Returns the annotation with the endpoint.
    fn annotated(self) -> Option<&'static str> {
        let node = self.node()?;
        let endpoint = self.candidate.endpoint.as_ref()?;
        let mut keys = ANNOTATIONS.into_iter();
        keys.find(|key| {
            let text = node.annotations.get(key);
            text.and_then(|it| it.parse().ok()).as_ref() == Some(endpoint)
        })
    }

    /// Returns whether the endpoint is one place for both. A private address is not, unless both are of one cluster, or an
    /// underlay joins their clusters.
    fn is_beside(self, other: Self) -> bool {
        let entries = [self.member.entry, other.member.entry];
        let address = self.candidate.endpoint.as_ref().and_then(Endpoint::address);
        let Some(address) = address.filter(|it| private_network(*it).is_some()) else {
            return true;
        };
        let [own, others] = entries.map(|it| it.underlays.iter().filter(|it| it.holds(address)));
        let mut common = own.filter(|it| others.clone().any(|other| other.name == it.name));
        entries[0].name == entries[1].name || common.next().is_some()
    }

    /// Returns where the snapshot has the endpoint: the annotation or the address that it is made of.
    fn place(self) -> Place {
        let place = &self.candidate.place;
        match self.annotated() {
            Some(key) => place.key("annotations").key(key),
            None if self.node().is_none() => place.clone(),
            None => place.key("addresses"),
        }
    }
}
