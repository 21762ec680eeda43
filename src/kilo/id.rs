//! Numbers of nodes, which always lead to one.

use std::ops::{Deref, Index};

/// The number of a node in its cluster, in order of name. Only [`Nodes`] hands it out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(usize);

/// Something about each node of one cluster, in order of name.
#[derive(Clone, Debug)]
pub struct Nodes<T>(Vec<T>);

impl NodeId {
    /// Returns the place of the node in any list of all nodes of its cluster.
    pub fn index(self) -> usize {
        self.0
    }
}

impl<T> Nodes<T> {
    /// Takes something about each node, in order of name.
    pub fn new(nodes: Vec<T>) -> Self {
        Self(nodes)
    }

    /// Returns the numbers of all nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<T> {
        (0..self.0.len()).map(NodeId)
    }

    /// Returns all nodes with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.ids().zip(&self.0)
    }

    /// Returns something else about the same nodes, with the same numbers.
    pub fn map<'n, U>(&'n self, map: impl FnMut(&'n T) -> U) -> Nodes<U> {
        Nodes(self.0.iter().map(map).collect())
    }
}

impl<T> Index<NodeId> for Nodes<T> {
    type Output = T;

    fn index(&self, id: NodeId) -> &T {
        &self.0[id.0]
    }
}

impl<T> Deref for Nodes<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
