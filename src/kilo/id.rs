//! The numbers of nodes and segments.

pub use crate::id::{Id, Numbered};

/// Nodes of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfNode {}

/// The number of a node in its cluster, in order of name.
pub type NodeId = Id<OfNode>;

/// Something about each node of one cluster, in order of name.
pub type Nodes<T> = Numbered<OfNode, T>;

/// Segments of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfSegment {}

/// The number of a segment in its cluster, in order of key.
pub type SegmentId = Id<OfSegment>;

/// Something about each segment of one cluster, in order of key.
pub type Segments<T> = Numbered<OfSegment, T>;
