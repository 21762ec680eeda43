//! The proof of the paths to Services that clusters get of others.

use clustermesh::expectations::Expectation;
use clustermesh::mesh::AddressClass;
use clustermesh::mirror::{Mirrors, ServicePath};
use clustermesh::proof::expectation;
use clustermesh::proof::messages::service;
use clustermesh::proof::reach::Reach;
use clustermesh::rules::{Finding, services};

use clustermesh::results::verify::ProvedService;

/// Proves the paths of pods, and counts those of nodes.
pub(super) fn prove<'a>(
    reach: &Reach,
    mirrors: &Mirrors,
    paths: &'a [ServicePath<'a>],
) -> (Vec<ProvedService<'a>>, Vec<Finding>) {
    let of = |class| {
        let expectations = paths.iter().map(|it| it.expectation(class));
        expectations.collect::<Vec<Expectation>>()
    };
    let (pods, nodes) = (of(AddressClass::Pod), of(AddressClass::Node));
    let pods = expectation::check(reach, &pods, &|_| false);
    let findings = paths.iter().zip(&pods);
    let findings =
        findings.filter_map(|(path, pods)| service::unreached(reach.fabric, path.service, pods));
    let findings = services::without_paths(mirrors).chain(findings).collect();
    let nodes = expectation::check(reach, &nodes, &|_| false);
    let proved = paths.iter().zip(pods.iter().zip(&nodes));
    let proved = proved.map(|(path, (pods, nodes))| ProvedService {
        path,
        pods: (pods.pairs, pods.failing()),
        nodes: (nodes.pairs, nodes.failing()),
    });
    (proved.collect(), findings)
}
