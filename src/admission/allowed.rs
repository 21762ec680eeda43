//! Allowed Peers: those of other programs, which the owner of a cluster can allow.

use std::collections::BTreeMap;

use thiserror::Error;

use super::Guard;
use crate::mesh::{Entry, Mesh};
use crate::name::ClusterName;
use crate::net::{Cidr, Family};

/// The reason why a Peer cannot be allowed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum AllowedPeerError {
    /// The name of a Peer that we write.
    #[error("clustermesh writes Peers with such names; rename that Peer")]
    Name,
    /// A range of many networks, such as half of all addresses.
    #[error(
        "{0} is wider than /{1}, so one Peer could receive packets for many networks; allow narrower ranges"
    )]
    Wide(Cidr, u8),
    /// A family that the cluster does not declare.
    #[error("{1} declares no range of the address family of {0}, so it cannot reach such a Peer")]
    Family(Cidr, ClusterName),
    /// A range in which a mesh has addresses.
    #[error(
        "{0} overlaps {1} of {2}, so the Peer could receive packets for that cluster; allow ranges that no mesh declares"
    )]
    Declared(Cidr, Cidr, ClusterName),
}

impl Guard {
    /// Returns the Peers of other programs that the guard allows and that are not possible, each with the reason.
    pub fn impossible_peers(&self, meshes: &[Mesh]) -> BTreeMap<String, AllowedPeerError> {
        let peers = self.access.peers.iter().filter_map(|(name, ranges)| {
            let error = if self.is_name_of_source(name) {
                Some(AllowedPeerError::Name)
            } else {
                let mut ranges = ranges.iter();
                ranges.find_map(|it| self.check_allowed(*it, meshes).err())
            };
            Some((name.clone(), error?))
        });
        peers.collect()
    }

    /// Returns whether a name is one that a source's Peers have.
    fn is_name_of_source(&self, name: &str) -> bool {
        self.declared.sources.keys().any(|it| {
            let set = it.replacen('/', "--", 1);
            let rest = name.strip_prefix(&*set);
            rest.is_some_and(|it| it.is_empty() || it.starts_with("--"))
        })
    }

    /// Checks a range that the owner allows for a Peer of another program.
    ///
    /// # Errors
    /// The range is too wide, of a family that the cluster does not declare, or not outside of the meshes.
    pub(super) fn check_allowed(
        &self,
        range: Cidr,
        meshes: &[Mesh],
    ) -> Result<(), AllowedPeerError> {
        let shortest = match range.family() {
            Family::V4 => 8,
            Family::V6 => 16,
        };
        if range.prefix_length() < shortest {
            return Err(AllowedPeerError::Wide(range, shortest));
        }
        if !self.declared.families.contains(&range.family()) {
            let cluster = self.cluster.clone();
            return Err(AllowedPeerError::Family(range, cluster));
        }
        let declared = meshes.iter().flat_map(|it| self.declared_around(it));
        let mut overlaps = declared.filter(|(_, it)| it.overlaps(range));
        overlaps.next().map_or(Ok(()), |(cluster, declared)| {
            let cluster = cluster.clone();
            Err(AllowedPeerError::Declared(range, declared, cluster))
        })
    }

    /// Returns what the cluster and those that a mesh links it to declare, also those that leave.
    fn declared_around<'m>(&self, mesh: &'m Mesh) -> Vec<(&'m ClusterName, Cidr)> {
        let mut declared = Vec::new();
        let own = mesh.entries.iter().find(|it| it.name == self.cluster);
        if let Some(own) = own {
            declared.extend(own.local_networks.iter().map(|it| (&own.name, it.cidr)));
            let is_near = |it: &&Entry| it.name == own.name || mesh.link(own, it).is_some();
            for entry in mesh.all_entries().filter(is_near) {
                let ranges = entry.networks.all().into_iter();
                declared.extend(ranges.map(|it| (&entry.name, it.cidr)));
            }
        }
        declared
    }
}
