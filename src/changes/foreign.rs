//! Foreign Peers: those of a cluster that no mesh gives, and that no engine prunes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::applied::{AppliedFile, Content};

/// Returns the foreign Peers of a cluster that has some files and gets others; none if it has none. They
/// stay when the others arrive, so they belong to both versions.
pub fn foreign_peers(
    has: &[AppliedFile],
    gets: &[AppliedFile],
    is_ours: impl Fn(&str) -> bool,
) -> Option<AppliedFile> {
    let peers = |files: &'_ [AppliedFile]| -> BTreeSet<String> {
        let peers = files.iter().flat_map(|it| &it.content.peers);
        peers.map(|it| it.name.clone()).collect()
    };
    let known = peers(gets);
    let found = has.iter().flat_map(|it| &it.content.peers);
    let foreign = found.filter(|it| !known.contains(&it.name) && !is_ours(&it.name));
    let foreign: Vec<_> = foreign.cloned().collect();
    let source = Arc::clone(&has.first()?.source);
    (!foreign.is_empty()).then(|| AppliedFile {
        source,
        content: Arc::new(Content {
            peers: foreign,
            others: Vec::new(),
        }),
    })
}
