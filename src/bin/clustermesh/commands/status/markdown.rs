//! States as Markdown, for a comment on a pull request. All foreign text is in code spans.

use std::fmt::Write as _;

use clustermesh::report::markdown::code;

use super::shown::{COLUMNS, Note, notes, row};
use super::state::ClusterStatus;

/// Returns the table and, below it, what is to be acted on.
pub(super) fn text(states: &[ClusterStatus]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = "### clustermesh: status\n\n".to_owned();
    text.push_str(&line(&COLUMNS.map(|it| it.trim_start_matches('>').to_lowercase())));
    text.push_str(&line(&["---"; COLUMNS.len()].map(str::to_owned)));
    for state in states {
        let mut cells = row(state);
        // The names; all other cells are our own words and numbers.
        for cell in cells.iter_mut().take(2) {
            *cell = code(cell).replace('|', "\\|");
        }
        text.push_str(&line(&cells));
    }
    for state in states {
        let notes = notes(state);
        if notes.is_empty() {
            continue;
        }
        let _ = write!(text, "\n**{}**\n\n", code(state.cluster.as_str()));
        for Note { about, lines, help } in notes {
            for line in lines {
                let _ = writeln!(text, "- {about}: {}", code(&line));
            }
            if let Some(help) = help {
                let _ = writeln!(text, "  help: {}", code(&help));
            }
        }
    }
    text
}
