//! Allowed ranges: those that the owner of a cluster can allow for Peers of other programs.

use thiserror::Error;

use super::Guard;
use crate::mesh::{Entry, Mesh};
use crate::name::ClusterName;
use crate::net::{Cidr, Family};

/// The reason why a range cannot be allowed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum AllowedRangeError {
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
    /// Checks a range that the owner allows for a Peer of another program.
    ///
    /// # Errors
    /// The range is too wide, of a family that the cluster does not declare, or not outside of the meshes.
    pub fn check_allowed(&self, range: Cidr, meshes: &[Mesh]) -> Result<(), AllowedRangeError> {
        let shortest = match range.family() {
            Family::V4 => 8,
            Family::V6 => 16,
        };
        if range.prefix_length() < shortest {
            return Err(AllowedRangeError::Wide(range, shortest));
        }
        if !self.declared.families.contains(&range.family()) {
            let cluster = self.cluster.clone();
            return Err(AllowedRangeError::Family(range, cluster));
        }
        let declared = meshes.iter().flat_map(|it| self.declared_around(it));
        let mut overlaps = declared.filter(|(_, it)| it.overlaps(range));
        overlaps.next().map_or(Ok(()), |(cluster, declared)| {
            let cluster = cluster.clone();
            Err(AllowedRangeError::Declared(range, declared, cluster))
        })
    }

    /// Returns what the cluster and those that a mesh links it to declare, also those that leave.
    fn declared_around<'m>(&self, mesh: &'m Mesh) -> Vec<(&'m ClusterName, Cidr)> {
        let mut declared = Vec::new();
        let own = mesh.entries.iter().find(|it| it.name == self.cluster);
        if let Some(own) = own {
            let local = own.local_networks.iter();
            declared.extend(local.map(|it| (&own.name, it.cidr)));
            let is_near = |it: &&Entry| it.name == own.name || mesh.link(own, it).is_some();
            for entry in mesh.entries.iter().filter(is_near) {
                let ranges = entry.networks.all().into_iter();
                declared.extend(ranges.map(|it| (&entry.name, it.cidr)));
            }
        }
        declared
    }
}
