//! Options: what the owner of a cluster decides, as the options of `clustermesh guard`.

use std::collections::BTreeMap;

use super::{Account, Accounts, AllowedPeerError, Enforcement, Guard, GuardAccess};
use crate::diagnostic::escaped;
use crate::mesh::Mesh;
use crate::name::is_dns_subdomain;
use crate::net::Cidr;
use crate::text::{and_more, list, shell_word};

/// The longest text of an account or a name that is shown.
const SHOWN: usize = 200;

/// The options that print a guard again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GuardOptions {
    /// The options, each with a space before it.
    pub text: String,
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
        Some(GuardOptions { text, left_out })
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
        let option = |name: &str, value: &str| format!(" --{name} {}", shell_word(value));
        let accounts = |name: &str, accounts: &Accounts| -> String {
            accounts.texts().map(|it| option(name, &it)).collect()
        };
        let mut options = String::new();
        if self.enforcement == Enforcement::Warn {
            options += " --warn";
        }
        let writers = self.writers.iter();
        options.extend(writers.map(|it| accounts("writers", it)));
        options.extend(self.peers.iter().map(|(name, ranges)| {
            let ranges = list(ranges.iter().map(Cidr::to_string)).replace(", ", ",");
            option("allow-peer", &format!("{name}={ranges}"))
        }));
        options + &accounts("allow-peer-writers", &self.peer_writers)
    }
}
