//! Undeclared paths: what gets through although no mesh promises it, by range.

use crate::packet::messages;
use crate::proof::verify::{Paths, Undeclared, Unowned};
use crate::report::table::TextTable;
use crate::report::width::Width;
use crate::text;

use super::json::PathSide;
use super::{SHOWN, Verified};

impl Verified<'_, '_> {
    /// Returns a table; nothing if no undeclared path works or they were not requested.
    pub(super) fn undeclared_table(&self) -> Option<TextTable> {
        let listed = self.verification.undeclared.as_ref();
        let listed = listed.filter(|it| !it.is_empty())?;
        let columns = ["FROM", "TO", "PATH", "RANGE", "OWNER", "DECLARED", "PAIRS"];
        let mut table = TextTable::new(columns);
        for undeclared in listed {
            table.add(self.undeclared_row(undeclared));
        }
        Some(table)
    }

    fn undeclared_row(&self, undeclared: &Undeclared) -> Vec<String> {
        let written = self.undeclared(undeclared);
        let Paths { sender, receiver, .. } = undeclared.paths;
        let preposition = match written.side {
            PathSide::Sender => "from",
            PathSide::Receiver => "to",
        };
        vec![
            written.from,
            written.to,
            format!("{sender} → {receiver}"),
            format!("{preposition} {}", written.range),
            written.owner,
            written.declared.unwrap_or_else(|| "-".to_owned()),
            written.pairs.to_string(),
        ]
    }

    /// Returns a line for each range with addresses of no node, for a person.
    pub(super) fn unowned_list(&self, width: Width) -> String {
        let unowned = &self.verification.unowned;
        if unowned.is_empty() {
            return String::new();
        }
        let shown = unowned.iter().take(SHOWN).map(|it| self.unowned(it));
        let more = unowned.len().saturating_sub(SHOWN);
        let more = (0 < more).then(|| format!("… and {}", text::count(more, "more range")));
        let lines = shown.chain(more);
        let lines = lines.map(|it| width.wrapped(0, &(it + "\n")));
        lines.collect::<String>() + "\n"
    }

    /// Describes what becomes of packets to addresses that no node has.
    pub(super) fn unowned(&self, unowned: &Unowned) -> String {
        let node = messages::called(self.fabric, unowned.at);
        let senders = unowned.senders.iter().map(|&it| self.fabric.site(it).cluster);
        let addresses = match unowned.addresses {
            1 => "1 address".to_owned(),
            // An IPv6 range has more than a person can compare.
            all if u64::from(u32::MAX) < all => "addresses".to_owned(),
            all => format!("{all} addresses"),
        };
        format!(
            "packets from {} to {} of {} that no node has reach {node}, which sends them on by its default route with \
             its own address as the source",
            text::listed(senders),
            addresses,
            unowned.range
        )
    }

    /// Returns the list for a person.
    pub(super) fn undeclared_list(&self) -> String {
        match self.undeclared_table() {
            Some(table) => {
                let rows = table.text("", Width::default());
                format!("Undeclared paths that work:\n\n{rows}\n")
            }
            None if self.verification.undeclared.is_some() => {
                "No undeclared path works.\n\n".to_owned()
            }
            None => String::new(),
        }
    }
}
