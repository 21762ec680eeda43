//! Missing routes: when Kilo refuses something, any route of its node may be missing.

use super::{Doubt, Ending};
use crate::agent::fabric::{NodeRef, Site};

/// Looks whether any of a node's routes may be missing: what is decided by one, for better or worse, is
/// chance then.
pub(super) fn missing(site: &Site, at: NodeRef) -> Option<Ending> {
    let doubt = Doubt::Refused(site.refused(at.node)?);
    Some(Ending::Ambiguous { at, doubt })
}
