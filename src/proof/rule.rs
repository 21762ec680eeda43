//! The rules about what the proof finds in the manifests as they are applied.

rules! {
    "Paths between clusters (`verify` and `trace`)" in "../rules/reach" about Proof
    with crate::packet::rule::NO_ROUTE,
    with crate::packet::rule::LOCAL_SHADOW,
    with crate::packet::rule::STOLEN_BY,
    with crate::packet::rule::UNKNOWN_KEY,
    with crate::packet::rule::NOT_ACCEPTED,
    with crate::packet::rule::LOOPS,
    with crate::packet::rule::FLAPPING,
    with crate::packet::rule::SOURCE_REJECTED,
    with crate::packet::rule::AMBIGUOUS,
    with crate::packet::rule::NOT_READY,
    with crate::packet::rule::RETURN_FAILS,
    with crate::packet::rule::UNDECLARED_ADDRESS,
    with crate::packet::rule::UNASSIGNED_ADDRESS,
    with crate::packet::rule::NO_COMMON_FAMILY;
    UNPROMISED_REACH = "unpromised-reach" Error;
    ASSUMED_REACH = "assumed-reach" Notice;
    NOTHING_PROVED = "nothing-proved" Error;
    UNPROVED_CLUSTER = "unproved-cluster" Warning;
    UNPROVED_NODES = "unproved-nodes" Warning;
    OUTDATED_TREE = "outdated-tree" Warning;
    UNREACHED_PODS = "unreached-pods" Notice;
    OUTSIDE_PEER = "outside-peer" Warning;
    FAILED_EXPECTATION = "failed-expectation" Error;
    EMPTY_EXPECTATION = "empty-expectation" Error;
    IMPERSONATION = "impersonation" Error;
    CAPTURE = "capture" Error;
    BROKEN_ISOLATION = "broken-isolation" Error;
}
