//! Refusals: what an invalid spec does to a Peer.

use super::bare;
use crate::kilo::peer::translation::TranslationFault;

/// Describes the effect of an invalid spec on a Peer.
pub(super) fn consequence(peer: &str, fault: &TranslationFault) -> String {
    effect(&bare(peer), fault)
}

/// Describes the effect of an invalid spec on a Peer that is called `name`.
pub fn effect(name: &str, fault: &TranslationFault) -> String {
    match fault {
        TranslationFault::NotStored(mismatch) => {
            format!("the API server refuses {name}: {} {}", mismatch.field, mismatch.problem)
        }
        TranslationFault::Undecodable(refusal) => {
            format!("{name} prevents restarted Kilo agents from reading any Peer: {refusal}")
        }
        TranslationFault::Ignored(refusal) => format!("Kilo ignores {name}: {refusal}"),
    }
}
