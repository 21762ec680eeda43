//! The causes of findings about changes of the rendered tree.

use super::{
    CHANGED_KEY, LOST_SOURCE, LOST_TARGET, MOVED_ANCHOR, RENAMED_MESH, RENAMED_PEER, SHRUNK_SOURCE,
};
use crate::diagnostic::mistake::{
    MISSING_SNAPSHOT, ONE_SIDED_LINK, UNKNOWN_CLUSTER, UNUSED_SNAPSHOT,
};
use crate::proof::rule::EMPTY_EXPECTATION;
use crate::rules::consequences::{Common, ConsequenceRow};
use crate::rules::endpoints::LOOPING_ENDPOINT;
use crate::rules::gitops::{EDITED_FILE, TWIN_PEERS};
use crate::rules::identity::{
    DUPLICATE_KEY, INVALID_NODE_NAME, KEY_IN_TWO_CLUSTERS, KEY_OF_TARGET_NODE,
};
use crate::rules::kilo::UNCERTAIN_LEADER;
use crate::rules::nodes::{CONTRADICTED, SILENT_CLUSTER};
use crate::rules::ranges::UNACCEPTED_RANGE;
use crate::rules::snapshots::{STALE_NODE, UNNAMED_CLUSTER};

/// The causes of findings about changes, of links and of names. They stand here because losses need them before all
/// findings are folded.
pub(in crate::rules) static CONSEQUENCES: [ConsequenceRow; 34] = [
    (&TWIN_PEERS, &EDITED_FILE, Common::File),
    (&SHRUNK_SOURCE, &EDITED_FILE, Common::File),
    (&MOVED_ANCHOR, &EDITED_FILE, Common::File),
    (&RENAMED_PEER, &EDITED_FILE, Common::File),
    (&CHANGED_KEY, &EDITED_FILE, Common::File),
    (&LOST_SOURCE, &EDITED_FILE, Common::File),
    (&SHRUNK_SOURCE, &CONTRADICTED, Common::Cluster),
    (&SHRUNK_SOURCE, &KEY_OF_TARGET_NODE, Common::Cluster),
    (&SHRUNK_SOURCE, &LOOPING_ENDPOINT, Common::Cluster),
    (&SHRUNK_SOURCE, &UNACCEPTED_RANGE, Common::Cluster),
    (&MOVED_ANCHOR, &CONTRADICTED, Common::Cluster),
    (&MOVED_ANCHOR, &UNCERTAIN_LEADER, Common::Cluster),
    (&MOVED_ANCHOR, &STALE_NODE, Common::Cluster),
    (&MOVED_ANCHOR, &INVALID_NODE_NAME, Common::Cluster),
    (&RENAMED_PEER, &RENAMED_MESH, Common::Run),
    (&RENAMED_PEER, &DUPLICATE_KEY, Common::Cluster),
    (&RENAMED_PEER, &KEY_OF_TARGET_NODE, Common::Cluster),
    (&RENAMED_PEER, &KEY_OF_TARGET_NODE, Common::Name),
    (&RENAMED_PEER, &KEY_IN_TWO_CLUSTERS, Common::Name),
    (&EMPTY_EXPECTATION, &RENAMED_PEER, Common::Name),
    (&EMPTY_EXPECTATION, &LOST_TARGET, Common::Name),
    (&EMPTY_EXPECTATION, &LOST_SOURCE, Common::Name),
    (&CHANGED_KEY, &DUPLICATE_KEY, Common::Cluster),
    (&CHANGED_KEY, &KEY_OF_TARGET_NODE, Common::Cluster),
    (&CHANGED_KEY, &KEY_OF_TARGET_NODE, Common::Name),
    (&CHANGED_KEY, &KEY_IN_TWO_CLUSTERS, Common::Name),
    (&UNUSED_SNAPSHOT, &LOST_TARGET, Common::Name),
    (&UNNAMED_CLUSTER, &LOST_TARGET, Common::Name),
    (&LOST_SOURCE, &SILENT_CLUSTER, Common::Cluster),
    (&ONE_SIDED_LINK, &UNKNOWN_CLUSTER, Common::File),
    (&UNKNOWN_CLUSTER, &MISSING_SNAPSHOT, Common::Name),
    (&UNKNOWN_CLUSTER, &LOST_SOURCE, Common::Name),
    (&UNNAMED_CLUSTER, &MISSING_SNAPSHOT, Common::Name),
    (&UNNAMED_CLUSTER, &UNKNOWN_CLUSTER, Common::Name),
];
