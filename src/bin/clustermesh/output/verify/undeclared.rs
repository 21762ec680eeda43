//! Undeclared paths: what gets through although no mesh promises it, by range.

use clustermesh::proof::verify::{Paths, Undeclared};
use clustermesh::report::table::TextTable;
use clustermesh::report::width::Width;

use super::Verified;
use super::json::PathSide;

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
        let Paths {
            sender, receiver, ..
        } = undeclared.paths;
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
