//! Secrets that clusters are sent, or that look as if they were: no message shows them.

pub(crate) use self::redactions::Redactions;

mod pattern;
mod redactions;
