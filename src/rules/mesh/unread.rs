//! Controls that are not read: expectations and policies under other names than those that are looked for.

use crate::diagnostic::mistake::UNREAD_CONTROL;
use crate::diagnostic::{Finding, Quoted, Severity};
use crate::mesh::ControlKind;
use crate::place::Place;

/// Reports a control that is not read. Its right name is `own`; it is `missing` if nothing is read there and the names
/// are alike. Other documents can be in its file.
pub fn unread(control: ControlKind, place: Place, own: &str, is_missing: bool) -> Finding {
    let what = match control {
        ControlKind::Config => "a config",
        ControlKind::Expectations => "expectations",
        ControlKind::Policy => "a policy",
    };
    let is_alone = place.document == 0 && place.pointer.steps().next().is_none();
    let message = format!("not read: {what} must be in {}", Quoted(own));
    let finding = Finding::new(&UNREAD_CONTROL, message).at(place, "");
    let moved = if is_alone { "rename the file to" } else { "move the document to" };
    match (is_missing, control) {
        (true, _) => finding.help(format!("{moved} `{own}`")),
        (false, ControlKind::Expectations) => Finding { severity: Severity::Warning, ..finding }
            .help("delete them if they are a copy; otherwise move them there, or check them with `clustermesh verify --expectations FILE`"),
        (false, ControlKind::Config) => Finding { severity: Severity::Warning, ..finding }
            .help("delete it if it is a copy; otherwise move it there, or name it with `--config FILE`"),
        (false, ControlKind::Policy) => {
            Finding { severity: Severity::Warning, ..finding }.help("delete it if it is a copy; otherwise move it there")
        }
    }
}

/// Reports a file or a folder whose name is like that of a control, and that cannot be read.
pub fn unknown(place: Place, own: &str, reason: &str) -> Finding {
    let message = format!("not read: its name is similar to {}, and {reason}", Quoted(own));
    Finding::new(&UNREAD_CONTROL, message)
        .at(place, "")
        .help(format!("move what belongs in `{own}` there, and rename or delete the rest"))
}

/// Reports a file or a folder without any control whose name is like that of one.
pub fn named_alike(place: Place, own: &str) -> Finding {
    let message = format!("not read: its name is similar to {}", Quoted(own));
    let finding = Finding::new(&UNREAD_CONTROL, message).at(place, "");
    Finding { severity: Severity::Notice, ..finding }
}

/// Reports a folder in which controls were not looked for.
pub fn unsearched(place: Place, reason: &str) -> Finding {
    let message = format!("not searched for expectations and policies: {reason}");
    let finding = Finding::new(&UNREAD_CONTROL, message).at(place, "");
    Finding { severity: Severity::Warning, ..finding }
}
