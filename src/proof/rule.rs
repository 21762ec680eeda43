//! The rules about what the proof finds in the manifests as they are applied.

rules! {
    "Paths between clusters (`verify` and `trace`)" in "../rules/reach" about Proof
    with crate::packet::rule:
        NO_ROUTE, LOCAL_SHADOW, STOLEN_BY, UNKNOWN_KEY, NOT_ACCEPTED, LOOPS, FLAPPING,
        SOURCE_REJECTED, AMBIGUOUS, NOT_READY, RETURN_FAILS, UNDECLARED_ADDRESS, UNASSIGNED_ADDRESS,
        NO_COMMON_FAMILY;
    UNPROMISED_REACH = "unpromised-reach" Error;
    ASSUMED_REACH = "assumed-reach" Notice;
    NOTHING_PROVED = "nothing-proved" Error;
    UNPROVED_CLUSTER = "unproved-cluster" Warning;
    UNPROVED_NODES = "unproved-nodes" Warning;
    OUTDATED_TREE = "outdated-tree" Warning;
    UNREACHED_PODS = "unreached-pods" Notice;
    UNREACHED_SERVICE = "unreached-service" Error;
    OUTSIDE_PEER = "outside-peer" Warning;
    UNDECLARED_PATH = "undeclared-path" Error;
    UNUSED_EXCEPTION = "unused-exception" Warning;
    FAILED_EXPECTATION = "failed-expectation" Error;
    EMPTY_EXPECTATION = "empty-expectation" Error;
    IMPERSONATION = "impersonation" Error;
    CAPTURE = "capture" Error;
    BROKEN_ISOLATION = "broken-isolation" Error;
}
