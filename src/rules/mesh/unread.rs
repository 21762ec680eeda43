//! Controls that are not read: expectations and policies under other names than those that are looked for.

use crate::diagnostic::mistake::UNREAD_CONTROL;
use crate::diagnostic::{Finding, Quoted, Severity};
use crate::document::Source;
use crate::place::Place;

/// A kind of control in a file of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ControlFile {
    /// The paths that must work, and those that must not.
    Expectations,
    /// The limits that the owner of a cluster sets.
    Policy,
}

impl ControlFile {
    /// Returns the control in a file. Objects of Kilo and of other programs do not count.
    pub fn of(source: &Source) -> Option<Self> {
        let field = |name: &str| source.documents.first()?.get(name)?.text();
        match (field("apiVersion")?, field("kind")?) {
            ("kilo-clustermesh.io/v1", "Expectations") => Some(Self::Expectations),
            ("kilo-clustermesh.io/v1", "ClusterPolicy") => Some(Self::Policy),
            _ => None,
        }
    }

    /// Returns the beginning of every name that is like that of its file or folder.
    pub fn stem(self) -> &'static str {
        match self {
            Self::Expectations => "expectation",
            Self::Policy => "policy",
        }
    }
}

/// Reports a control that is not read. Its right name is `own`; it is `missing` if nothing is read there and the names
/// are alike.
pub fn unread(control: ControlFile, place: Place, own: &str, is_missing: bool) -> Finding {
    let what = match control {
        ControlFile::Expectations => "expectations",
        ControlFile::Policy => "a policy",
    };
    let message = format!("not read: {what} must be in {}", Quoted(own));
    let finding = Finding::new(&UNREAD_CONTROL, message).at(place, "");
    match (is_missing, control) {
        (true, _) => finding.help(format!("rename the file to `{own}`")),
        (false, ControlFile::Expectations) => Finding { severity: Severity::Warning, ..finding }
            .help("move them there, or check them with `clustermesh verify --expectations FILE`"),
        (false, ControlFile::Policy) => {
            Finding { severity: Severity::Warning, ..finding }.help("move it there, or delete it")
        }
    }
}

/// Reports a file or a folder without any control whose name is like that of one.
pub fn named_alike(place: Place, own: &str) -> Finding {
    let message = format!("not read: its name is similar to {}", Quoted(own));
    let finding = Finding::new(&UNREAD_CONTROL, message).at(place, "");
    Finding { severity: Severity::Notice, ..finding }
}
