//! Ids: the names of the parts of a page, each of which is there once.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::PageDocuments;

/// The ids of clusters and of pairs of clusters.
pub(super) struct PageIds {
    taken: BTreeSet<String>,
    clusters: BTreeMap<String, String>,
    pairs: BTreeMap<(String, String), String>,
}

impl PageIds {
    /// Gives every cluster an id.
    pub(super) fn new(documents: &PageDocuments) -> Self {
        let mut ids =
            Self { taken: BTreeSet::new(), clusters: BTreeMap::new(), pairs: BTreeMap::new() };
        for name in documents.cluster_names() {
            let id = ids.take(&format!("cluster-{name}"));
            ids.clusters.insert(name.to_owned(), id);
        }
        ids
    }

    /// Gives a pair of clusters an id.
    pub(super) fn add_pair(&mut self, from: &str, to: &str) -> String {
        let id = self.take(&format!("pair-{from}-{to}"));
        self.pairs.insert((from.to_owned(), to.to_owned()), id.clone());
        id
    }

    /// Returns the id of a cluster.
    pub(super) fn cluster(&self, name: &str) -> Option<&str> {
        self.clusters.get(name).map(String::as_str)
    }

    /// Returns the id of a pair of clusters, if it has one.
    pub(super) fn pair(&self, from: &str, to: &str) -> Option<&str> {
        let pair = (from.to_owned(), to.to_owned());
        self.pairs.get(&pair).map(String::as_str)
    }

    /// Takes an id, with a number behind it if another part has it: `a-b` and `c`, and `a` and `b-c`.
    fn take(&mut self, wanted: &str) -> String {
        let is_safe = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        let wanted = wanted.replace(|it| !is_safe(it), "_");
        let numbered = (2..).map(|it| format!("{wanted}-{it}"));
        let mut free =
            std::iter::once(wanted.clone()).chain(numbered).filter(|it| !self.taken.contains(it));
        let id = free.next().unwrap_or(wanted);
        self.taken.insert(id.clone());
        id
    }
}
