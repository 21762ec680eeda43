//! Undeclared paths: what gets through although no mesh promises it, by range.

use std::fmt::Write as _;

use clustermesh::proof::verify::{Paths, Undeclared};
use clustermesh::rules::verified::whose;
use schemars::JsonSchema;
use serde::Serialize;

use super::json::{WrittenClass, class};
use super::{Verified, table};

/// Paths from or to one range that work although no mesh declares them.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Undeclared")]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenUndeclared {
    /// The cluster that sends.
    from: String,
    /// The cluster that receives.
    to: String,
    /// The class of a source.
    sender: WrittenClass,
    /// The class of the destination.
    receiver: WrittenClass,
    /// Whether the range is that of the sender or of the receiver.
    side: PathSide,
    /// The range: a CIDR, or its first and last address.
    #[schemars(example = &"10.42.1.0/24")]
    range: String,
    /// The owner of the addresses.
    #[schemars(example = &"pods of east/worker-1")]
    owner: String,
    /// The narrowest declared range that contains it, if any.
    #[schemars(with = "&str", example = &"10.42.0.0/16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    declared: Option<String>,
    /// The number of paths between owners: nodes, or cluster-wide ranges.
    pairs: u64,
}

/// A side of a path.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Side")]
enum PathSide {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

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

    pub(super) fn undeclared(&self, undeclared: &Undeclared) -> WrittenUndeclared {
        let Paths {
            from,
            to,
            sender,
            receiver,
            is_source,
            span,
            owner,
        } = undeclared.paths;
        let home = if is_source { from } else { to };
        WrittenUndeclared {
            from: self.cluster(from),
            to: self.cluster(to),
            sender: class(sender),
            receiver: class(receiver),
            side: if is_source {
                PathSide::Sender
            } else {
                PathSide::Receiver
            },
            range: span.to_string(),
            owner: whose(self.fabric, home, owner),
            declared: undeclared.declared.map(|it| it.to_string()),
            pairs: undeclared.pairs,
        }
    }
}
