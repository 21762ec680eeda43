//! Terminals: how wide the standard streams are.

use clustermesh::report::width::Width;
use terminal_size::terminal_size_of;

/// Returns the width of standard output.
pub(crate) fn stdout() -> Width {
    of(terminal_size_of(std::io::stdout()))
}

/// Returns the width of standard error.
pub(super) fn stderr() -> Width {
    of(terminal_size_of(std::io::stderr()))
}

fn of(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Width {
    Width::new(size.map(|(width, _)| usize::from(width.0)))
}
