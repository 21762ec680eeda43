//! Options: what the owner of a cluster decides, as the options of `clustermesh guard`, also which Peers of other
//! programs are allowed.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Account, Accounts, Enforcement, Guard, GuardAccess};
use crate::diagnostic::escaped;
use crate::mesh::{Entry, Mesh};
use crate::name::{ClusterName, is_dns_subdomain};
use crate::net::{Cidr, Family};
use crate::text::{and_more, list, shell_word};

/// The longest text of an account or a name that is shown.
const SHOWN: usize = 200;

/// The options that print a guard again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GuardOptions {
    /// The options, each with a space before it.
    pub text: String,
    /// The same decisions.
    pub access: GuardAccess,
    /// The Peers of other programs that are not possible any more, each with the reason.
    pub left_out: BTreeMap<String, AllowedPeerError>,
}

impl GuardOptions {
    /// Returns the first Peer that is left out, with the reason.
    pub fn first_left_out(&self) -> Option<String> {
        let (name, error) = self.left_out.first_key_value()?;
        let more = and_more(self.left_out.len().saturating_sub(1), "Peer");
        let name = escaped(name, SHOWN);
        Some(format!("`--allow-peer {name}=…`{more} is left out: {error}"))
    }
}

impl Guard {
    /// Returns the options that print this guard again, without Peers of other programs that `meshes` make impossible;
    /// nothing if it has a decision that no option can have.
    pub fn options(&self, meshes: &[Mesh]) -> Option<GuardOptions> {
        let left_out = self.impossible_peers(meshes);
        let mut access = self.access.clone();
        access.peers.retain(|name, _| !left_out.contains_key(name));
        if access.peers.is_empty() {
            access.peer_writers = Accounts::default();
        }
        let text = access.is_possible().then(|| access.options())?;
        Some(GuardOptions { text, access, left_out })
    }
}

impl GuardAccess {
    /// Returns whether `clustermesh guard` takes the options for these decisions. A person may have edited a recorded guard.
    fn is_possible(&self) -> bool {
        let is_account = |it: String| it.parse::<Account>().is_ok() && escaped(&it, SHOWN) == it;
        let are_accounts = |it: &Accounts| it.texts().all(is_account);
        let writers = self.writers.as_ref();
        let mut peers = self.peers.iter();
        let has_all = writers.is_some() && self.peer_writers != Accounts::default();
        writers.is_none_or(|it| *it != Accounts::default() && are_accounts(it))
            && are_accounts(&self.peer_writers)
            && writers.is_none_or(|it| it.shared(&self.peer_writers).is_none())
            && peers.all(|(name, ranges)| is_dns_subdomain(name) && !ranges.is_empty())
            && (self.peers.is_empty() || has_all)
    }

    /// Returns the options that print a guard with these decisions, each with a space before it.
    pub(super) fn options(&self) -> String {
        let mut options = String::new();
        if self.enforcement == Enforcement::Warn {
            options += " --warn";
        }
        options += &self.writer_options();
        options.extend(self.peers.iter().map(|(name, ranges)| {
            let ranges = list(ranges.iter().map(Cidr::to_string)).replace(", ", ",");
            option("allow-peer", &format!("{name}={ranges}"))
        }));
        options + &accounts("allow-peer-writers", &self.peer_writers)
    }

    /// Returns the options for its writers, each with a space before it.
    pub fn writer_options(&self) -> String {
        self.writers.iter().map(|it| accounts("writers", it)).collect()
    }
}

/// Returns an option with a value.
fn option(name: &str, value: &str) -> String {
    format!(" --{name} {}", shell_word(value))
}

/// Returns an option for each account.
fn accounts(name: &str, accounts: &Accounts) -> String {
    accounts.texts().map(|it| option(name, &it)).collect()
}

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
