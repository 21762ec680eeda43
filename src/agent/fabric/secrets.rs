//! Preshared keys by number, so that they can be compared without their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{KeyHolders, Site, SitePair, Sites, sites_of};
use crate::agent::applied::Content;
use crate::kilo::id::{Id, Numbered};
use crate::kilo::peer::translation::PresharedKey;

/// Preshared keys that the Peers of two clusters may have in common.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfSecret {}

/// The preshared key of a Peer, without its text.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Secret {
    /// The Peer has none.
    Absent,
    /// In no two clusters do the Peers for each other have it, so that no tunnel is opened with it.
    Unmatched,
    /// The same number for the same key, in one fabric.
    Numbered(Id<OfSecret>),
}

/// The preshared keys of a fabric that are in the Peers of two clusters for each other, in order.
#[derive(Debug, Default)]
pub(super) struct MutualSecrets(Numbered<OfSecret, PresharedKey>);

impl MutualSecrets {
    /// Collects the keys of the Peers that Kilo configures.
    pub(super) fn collect(
        sites: &Sites<Arc<Site>>,
        contents: &[&Arc<Content>],
        keys: &KeyHolders,
    ) -> Self {
        let mut specs = contents.iter().flat_map(|it| &it.peers);
        // Without any, which is usual, the Peers of all clusters need not be looked at.
        if !specs.any(|it| it.spec.as_ref().is_ok_and(|it| it.preshared_key.is_some())) {
            return Self::default();
        }
        let mut users: BTreeMap<PresharedKey, BTreeSet<SitePair>> = BTreeMap::new();
        for (number, site) in sites.numbered() {
            let shares = site.model.peers.iter().filter_map(|it| it.share());
            for translation in shares.map(|it| it.translation) {
                let Some(secret) = translation.preshared_key else {
                    continue;
                };
                let holders = keys.get(&translation.key).map_or(&[][..], Vec::as_slice);
                let pairs = sites_of(holders).map(|to| SitePair { from: number, to });
                users.entry(secret).or_default().extend(pairs);
            }
        }
        let is_mutual =
            |pairs: &BTreeSet<SitePair>| pairs.iter().any(|it| pairs.contains(&it.back()));
        users.retain(|_, pairs| is_mutual(pairs));
        Self(Numbered::new(users.into_keys().collect()))
    }

    /// Returns the number of a key.
    pub(super) fn secret(&self, key: Option<PresharedKey>) -> Secret {
        key.map_or(Secret::Absent, |key| {
            self.0.find(|it| it.cmp(&key)).map_or(Secret::Unmatched, Secret::Numbered)
        })
    }
}
