//! Losses: a mesh without one of its nodes, with the Peers that were rendered before.

use clustermesh::agent::fabric::{Fabric, NodeRef};
use clustermesh::net::Cidr;
use clustermesh::net::prefixes::Span;
use clustermesh::outage::{LostNodes, OutageProof};
use clustermesh::packet::trace::EndFinder;
use clustermesh::proof::reach::Reach;

use crate::applied::{applied, site};
use crate::pair::Pair;
use crate::random::Random;
use crate::rendered::meshes;
use crate::verdict::kept_alive;
use crate::world::{Manifests, World};

/// A node that is lost.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// The mesh with it.
    before: World,
    cluster: usize,
    node: usize,
}

impl Loss {
    /// Chooses a node of a cluster with several.
    pub(crate) fn random(random: &mut Random, before: World) -> Option<Self> {
        let clusters = before.clusters.iter().enumerate();
        let several = clusters.filter(|it| 1 < it.1.nodes.len());
        let several: Vec<usize> = several.map(|it| it.0).collect();
        if several.is_empty() {
            return None;
        }
        let cluster = *random.pick(&several);
        let node = random.below(before.clusters[cluster].nodes.len());
        Some(Self { before, cluster, node })
    }

    /// Returns the mesh without it.
    pub(crate) fn world(&self) -> World {
        let mut world = self.before.clone();
        world.clusters[self.cluster].nodes.remove(self.node);
        world
    }

    /// Returns what was rendered with it.
    pub(crate) fn manifests(&self) -> Manifests {
        self.before.manifests()
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> String {
        let cluster = &self.before.clusters[self.cluster];
        format!("{}/{}", cluster.name, cluster.nodes[self.node].name)
    }

    /// Returns for each pair whether it survives, as the library finds it from the mesh with the node; none if its
    /// packets did not get through before.
    pub(crate) fn survival(&self, pairs: &[Pair]) -> Vec<Option<bool>> {
        let meshes = meshes(&self.before.mesh());
        let snapshots = self.before.snapshots();
        let manifests = self.manifests();
        let files = manifests.iter().flat_map(|(cluster, files)| {
            let files = files.iter();
            files.map(move |(name, text)| (format!("{cluster}/{name}"), kept_alive(text)))
        });
        let files = applied(files);
        let sites = meshes[0].entries.iter().map(|it| site(it, &snapshots, &files));
        let fabric = Fabric::new(sites.collect());
        let reach = Reach::new(&fabric, u64::MAX);
        let proof = OutageProof::of_all_paths(&reach, u64::MAX);
        let cluster = &self.before.clusters[self.cluster];
        let lost = fabric.site_named(&cluster.name).unwrap();
        let node = fabric.site(lost).node_named(&cluster.nodes[self.node].name);
        let lost = LostNodes::from_iter([NodeRef { site: lost, node: node.unwrap() }]);
        let found = proof.examine(&lost).unwrap();
        let mut finder = EndFinder::new(&fabric);
        let mut results = Vec::new();
        for pair in pairs {
            let mut end = |(cluster, address): &(String, _)| {
                let name = format!("{cluster}/{address}");
                finder.find(&name, None).unwrap().end
            };
            let (from, to) = (end(&pair.from), end(&pair.to));
            let worked = fabric.trace(from, to).unwrap().is_delivered();
            let holds = |span: Span, address| span.holds(Span::new(Cidr::host(address)));
            let ended = found.ended.iter().any(|it| {
                let is_pair = it.pair.from == from.site && it.pair.to == to.site;
                is_pair
                    && proof.ends(it).iter().any(|[sender, receiver]| {
                        holds(sender.span, from.address) && holds(receiver.span, to.address)
                    })
            });
            results.push(worked.then_some(!ended));
        }
        results
    }
}
