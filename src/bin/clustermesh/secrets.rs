//! Secrets: texts that are never shown, whether they are written in our files, sent to clusters, or only
//! look like secrets.

#[cfg(feature = "snapshot")]
pub(crate) use self::redactions::Redactions;
pub(crate) use self::written::{Secrets, has_private_key, without_private_keys};

#[cfg(feature = "snapshot")]
mod pattern;
#[cfg(feature = "snapshot")]
mod redactions;
mod written;
