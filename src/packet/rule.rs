//! The rules about how packets end. They are listed with those of the proof.

rule! {
    "../rules/reach" about Proof;
    NO_ROUTE = "no-route" Error;
}
rule! {
    "../rules/reach" about Proof;
    LOCAL_SHADOW = "local-shadow" Error;
}
rule! {
    "../rules/reach" about Proof;
    STOLEN_BY = "stolen-by" Error;
}
rule! {
    "../rules/reach" about Proof;
    UNKNOWN_KEY = "unknown-key" Error;
}
rule! {
    "../rules/reach" about Proof;
    NOT_ACCEPTED = "not-accepted" Error;
}
rule! {
    "../rules/reach" about Proof;
    LOOPS = "loops" Error;
}
rule! {
    "../rules/reach" about Proof;
    FLAPPING = "flapping" Error;
}
rule! {
    "../rules/reach" about Proof;
    SOURCE_REJECTED = "source-rejected" Error;
}
rule! {
    "../rules/reach" about Proof;
    AMBIGUOUS = "ambiguous" Error;
}
rule! {
    "../rules/reach" about Proof;
    NOT_READY = "not-ready" Error;
}
rule! {
    "../rules/reach" about Proof;
    RETURN_FAILS = "return-fails" Error;
}
rule! {
    "../rules/reach" about Proof;
    UNDECLARED_ADDRESS = "undeclared-address" Error;
}
rule! {
    "../rules/reach" about Proof;
    UNASSIGNED_ADDRESS = "unassigned-address" Error;
}
rule! {
    "../rules/reach" about Proof;
    NO_COMMON_FAMILY = "no-common-family" Error;
}

// `validate` finds it too, and lists it among its own.
rule! {
    "../rules/endpoints" about Plan;
    NO_INITIATOR = "no-initiator" Warning;
}
