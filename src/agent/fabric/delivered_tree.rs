//! The rendered tree as applied. If it is up to date, only its delivery changes anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Fabric, SiteId};
use crate::agent::applied::AppliedFile;
use crate::name::ClusterName;

/// The effect of a delivery, which no render has.
#[derive(Clone, Debug)]
pub(super) struct DeliveredTree<'a> {
    /// The same clusters once the tree is applied.
    fabric: Fabric<'a>,
    /// The clusters whose Peers are from files, which may be old.
    dumped: BTreeSet<ClusterName>,
}

impl<'a> Fabric<'a> {
    /// Returns the same with what clusters have once the rendered tree, which is up to date, is applied. `dumped` are
    /// the clusters whose Peers are from files.
    #[must_use]
    pub fn with_delivery(
        self,
        delivered: &'a BTreeMap<ClusterName, Vec<AppliedFile>>,
        dumped: BTreeSet<ClusterName>,
    ) -> Self {
        let sites = self.sites.iter().map(|site| {
            delivered
                .get(site.cluster)
                .map_or_else(|| Arc::clone(site), |it| Arc::new(site.with_files(it)))
        });
        let fabric = Self::shared(sites.collect(), Some(&self));
        Self { delivery: Some(Arc::new(DeliveredTree { fabric, dumped })), ..self }
    }

    /// Returns the same clusters once the rendered tree is applied, if it is known to be up to date.
    pub fn delivered(&self) -> Option<&Self> {
        self.delivery.as_deref().map(|it| &it.fabric)
    }

    /// Returns whether the Peers of a cluster are from a file, which may be old.
    pub fn is_dumped(&self, site: SiteId) -> bool {
        let dumped = self.delivery.as_deref().map(|it| &it.dumped);
        dumped.is_some_and(|it| it.contains(self.site(site).cluster))
    }
}
