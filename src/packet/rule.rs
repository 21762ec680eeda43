//! The rules about how packets end. They are listed with those of the proof.

rule! {
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
    UNDECLARED_ADDRESS = "undeclared-address" Error;
    UNASSIGNED_ADDRESS = "unassigned-address" Error;
    NO_COMMON_FAMILY = "no-common-family" Error;
}

rule! {
    "../rules/endpoints" about Plan;
    NO_INITIATOR = "no-initiator" Warning;
}
