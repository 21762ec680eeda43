//! Does what was declared hold for any node?

rules! {
    "nodes" about Plan;
    NODE_NOT_SELECTED = "node-not-selected" Notice;
    SILENT_CLUSTER = "silent-cluster" Warning;
    CONTRADICTED = "contradicted-declaration" Warning;
    CUT_OFF = "cut-off-cluster" Error;
}
