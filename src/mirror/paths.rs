//! The paths of mirrored Services: what must be reached, and what only works if clusters give addresses of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Mirrors;
use crate::expectations::{Expectation, Expected, SelectedClusters, Selection};
use crate::mesh::{AddressClass, MirroredService};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;

/// The paths to a cluster IP of a Service, from the clusters that get the Service.
#[derive(Debug)]
pub struct ServicePath<'a> {
    /// The Service.
    pub service: &'a MirroredService,
    /// Its cluster IP.
    pub address: IpAddr,
    /// The clusters.
    pub targets: BTreeSet<&'a ClusterName>,
}

impl<'a> Mirrors<'a> {
    /// Returns the paths of all Services, in the order of the clusters that get them.
    pub fn paths(&self) -> Vec<ServicePath<'a>> {
        let mut paths: BTreeMap<(&Place, IpAddr), ServicePath> = BTreeMap::new();
        for (target, mirrors) in &self.targets {
            for mirror in mirrors {
                let key = (&mirror.service.place, mirror.address);
                let path = paths.entry(key).or_insert_with(|| ServicePath {
                    service: mirror.service,
                    address: mirror.address,
                    targets: BTreeSet::new(),
                });
                path.targets.insert(target);
            }
        }
        paths.into_values().collect()
    }
}

impl ServicePath<'_> {
    /// Returns that all addresses of a class reach the Service.
    pub fn expectation(&self, class: AddressClass) -> Expectation {
        let place = &self.service.place;
        let clusters = |members: &[&ClusterName]| SelectedClusters {
            members: members.iter().map(|it| ((*it).clone(), place.clone())).collect(),
            group: None,
        };
        let selection = |clusters| Selection {
            clusters: Some(clusters),
            nodes: None,
            addresses: Vec::new(),
            class: None,
            place: place.clone(),
        };
        let targets: Vec<&ClusterName> = self.targets.iter().copied().collect();
        Expectation {
            name: None,
            from: Selection { class: Some(class), ..selection(clusters(&targets)) },
            to: Selection {
                addresses: vec![Cidr::host(self.address)],
                ..selection(clusters(&[&self.service.source]))
            },
            expected: Expected::Reach,
            survives_a_node: false,
            place: place.clone(),
        }
    }
}
