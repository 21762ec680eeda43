//! Undeclared paths: what gets through although no mesh promises it, by range.

use std::fmt::Write as _;

use clustermesh::proof::verify::{Paths, Undeclared};

use super::json::PathSide;
use super::{Verified, table};

impl Verified<'_, '_> {
    /// Returns the rows of a table, its head first; nothing if there are none or they were not
    /// requested.
    pub(super) fn undeclared_rows(&self) -> Vec<Vec<String>> {
        let listed = self.verification.undeclared.iter().flatten();
        let rows: Vec<Vec<String>> = listed.map(|it| self.undeclared_row(it)).collect();
        if rows.is_empty() {
            return rows;
        }
        let head = ["FROM", "TO", "PATH", "RANGE", "OWNER", "DECLARED", "PAIRS"];
        let head = vec![head.map(str::to_owned).to_vec()];
        head.into_iter().chain(rows).collect()
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
        let mut text = String::new();
        match &self.verification.undeclared {
            None => {}
            Some(listed) if listed.is_empty() => text.push_str("No undeclared path works.\n\n"),
            Some(_) => {
                let rows = table(&self.undeclared_rows());
                let _ = write!(text, "Undeclared paths that work:\n\n{rows}\n");
            }
        }
        text
    }
}
