//! The rules about files that people write: each gate names the one that a file breaks.

rules! {
    "Errors in the files you write" in "../rules/mesh" about Files;
    ADDITIONAL_FIELDS = "additional-fields" Notice;
    BEYOND_CEILING = "beyond-ceiling" Error;
    CONTRADICTING_FIELDS = "contradicting-fields" Error
        was "descending-limits" "invalid-selector" "mixed-networks" "several-local-clusters" "topology-mismatch";
    DROPPED_LABEL = "dropped-label" Error;
    DUPLICATE_HUB = "duplicate-hub" Warning;
    DUPLICATE_ITEM = "duplicate-item" Error
        was "duplicate-field" "repeated-anchor" "repeated-endpoint-source";
    DUPLICATE_LINK = "duplicate-link" Warning;
    DUPLICATE_NAME = "duplicate-name" Error
        was "colliding-names" "duplicate-cluster" "duplicate-expectation" "duplicate-mesh";
    DUPLICATE_SNAPSHOT = "duplicate-snapshot" Warning;
    FOREIGN_SNAPSHOT = "foreign-snapshot" Warning;
    EMPTY_POLICIES = "empty-policies" Warning;
    HOST_BITS = "host-bits" Warning;
    INCONSISTENT_CLUSTER = "inconsistent-cluster" Error;
    INVALID_ANCHOR = "invalid-anchor" Error was "undeclared-anchor-range" "uneven-anchors";
    INVALID_LEVEL = "invalid-level" Error was "lowered-error" "unknown-rule";
    INVALID_OUTPUT = "invalid-output" Error was "wrong-output" "wrong-template";
    INVALID_RANGE = "invalid-range" Error was "default-route";
    INVALID_SNAPSHOT = "invalid-snapshot" Error;
    INVALID_TYPE = "invalid-type" Error was "wrong-type";
    INVALID_VALUE = "invalid-value" Error
        was "invalid-date" "invalid-domain" "invalid-label" "invalid-name" "out-of-bounds" "unknown-value" "wrong-length";
    LINKED_TWICE = "linked-twice" Error;
    MISSING_FIELD = "missing-field" Error was "missing-networks";
    MISSING_SNAPSHOT = "missing-snapshot" Error;
    NO_MESH = "no-mesh" Error;
    ONE_SIDED_LINK = "one-sided-link" Warning;
    OVERLAPPING_RANGES = "overlapping-ranges" Error;
    OVERRIDDEN_DEFAULT = "overridden-default" Warning;
    SKIPPED_DOCUMENT = "skipped-document" Notice;
    SYNTAX_ERROR = "syntax-error" Error
        was "complex-key" "merge-key" "no-document" "second-document" "unsupported-tag";
    TOO_LARGE = "too-large" Error was "endless-alias";
    UNKNOWN_CLUSTER = "unknown-cluster" Error was "self-link" "unlinked-cluster";
    UNKNOWN_FIELD = "unknown-field" Error;
    UNUSED_SNAPSHOT = "unused-snapshot" Notice;
}
