//! The rules about files that people write: each gate names the one that a file breaks.

rules! {
    "Errors in the files you write" in "../rules/mesh" about Files;
    ADDITIONAL_FIELDS = "additional-fields" Notice;
    BEYOND_CEILING = "beyond-ceiling" Error;
    CONTRADICTING_FIELDS = "contradicting-fields" Error;
    DROPPED_LABEL = "dropped-label" Error;
    DUPLICATE_HUB = "duplicate-hub" Warning;
    DUPLICATE_ITEM = "duplicate-item" Error;
    DUPLICATE_LINK = "duplicate-link" Warning;
    DUPLICATE_NAME = "duplicate-name" Error;
    DUPLICATE_SNAPSHOT = "duplicate-snapshot" Warning;
    FOREIGN_SNAPSHOT = "foreign-snapshot" Warning;
    EMPTY_POLICIES = "empty-policies" Warning;
    HOST_BITS = "host-bits" Warning;
    INCONSISTENT_CLUSTER = "inconsistent-cluster" Error;
    INVALID_ANCHOR = "invalid-anchor" Error;
    INVALID_LEVEL = "invalid-level" Error;
    INVALID_OUTPUT = "invalid-output" Error;
    INVALID_RANGE = "invalid-range" Error;
    INVALID_SNAPSHOT = "invalid-snapshot" Error;
    INVALID_TYPE = "invalid-type" Error;
    INVALID_VALUE = "invalid-value" Error;
    LINKED_TWICE = "linked-twice" Error;
    MISSING_FIELD = "missing-field" Error;
    MISSING_SNAPSHOT = "missing-snapshot" Error;
    NO_MESH = "no-mesh" Error;
    ONE_SIDED_LINK = "one-sided-link" Warning;
    OVERLAPPING_RANGES = "overlapping-ranges" Error;
    OVERRIDDEN_DEFAULT = "overridden-default" Warning;
    REFUSED_LINK = "refused-link" Notice;
    SKIPPED_DOCUMENT = "skipped-document" Notice;
    SYNTAX_ERROR = "syntax-error" Error;
    TOO_LARGE = "too-large" Error;
    UNKNOWN_CLUSTER = "unknown-cluster" Error;
    UNKNOWN_FIELD = "unknown-field" Error;
    UNREAD_CONTROL = "unread-control" Error;
    UNUSED_SNAPSHOT = "unused-snapshot" Notice;
}
