//! Options: what the owner of a cluster decides, as the options of `clustermesh guard`.

use super::{Accounts, Enforcement, GuardAccess};
use crate::diagnostic::escaped;
use crate::net::Cidr;
use crate::text::{list, shell_word};

/// The longest text of an account or a name that is shown.
const SHOWN: usize = 200;

impl GuardAccess {
    /// Returns the options that print a guard with these decisions, each with a space before it.
    pub fn options(&self) -> String {
        let option = |name: &str, value: &str| {
            let value = shell_word(&escaped(value, SHOWN));
            format!(" --{name} {value}")
        };
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
