//! The rules about what the proof finds in the manifests as they are applied.

rules! {
    "../rules/reach" about Proof;
    NO_ROUTE = "no-route" Error;
    LOCAL_SHADOW = "local-shadow" Error;
    STOLEN_BY = "stolen-by" Error;
    UNKNOWN_KEY = "unknown-key" Error;
    NOT_ACCEPTED = "not-accepted" Error;
    LOOPS = "loops" Error;
    FLAPPING = "flapping" Error;
    SOURCE_REJECTED = "source-rejected" Error;
    AMBIGUOUS = "ambiguous" Error;
    NOT_READY = "not-ready" Error;
    RETURN_FAILS = "return-fails" Error;
    UNPROMISED_REACH = "unpromised-reach" Error;
    ASSUMED_REACH = "assumed-reach" Notice;
    NOTHING_PROVED = "nothing-proved" Error;
    UNPROVED_CLUSTER = "unproved-cluster" Warning;
    UNREACHED_PODS = "unreached-pods" Notice;
    OUTSIDE_PEER = "outside-peer" Warning;
    FAILED_EXPECTATION = "failed-expectation" Error;
    EMPTY_EXPECTATION = "empty-expectation" Error;
    IMPERSONATION = "impersonation" Error;
    CAPTURE = "capture" Error;
    BROKEN_ISOLATION = "broken-isolation" Error;
}

// `validate` finds it too, and lists it among its own.
rule! {
    "../rules/endpoints" about Plan;
    NO_INITIATOR = "no-initiator" Warning;
}
