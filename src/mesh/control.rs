//! Controls: documents that limit what meshes may do. They are in files of their own.

use crate::document::TreeNode;

/// A kind of control that is in a file of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ControlKind {
    /// The levels, limits and accepted ranges of all meshes.
    Config,
    /// The paths that must work, and those that must not.
    Expectations,
    /// The limits that the owner of a cluster sets.
    Policy,
}

impl ControlKind {
    /// The `apiVersion` of all of them.
    pub const API_VERSION: &str = "kilo-clustermesh.io/v1";

    /// All of them.
    pub const ALL: [Self; 3] = [Self::Config, Self::Expectations, Self::Policy];

    /// Returns the `kind` of its documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "Config",
            Self::Expectations => "Expectations",
            Self::Policy => "ClusterPolicy",
        }
    }

    /// Returns the kind of a document, if it is a control. Objects of Kilo and of other programs do not count.
    pub(super) fn of(document: &TreeNode) -> Option<Self> {
        let field = |name: &str| document.get(name)?.text();
        let kind = field("kind").filter(|_| field("apiVersion") == Some(Self::API_VERSION))?;
        Self::ALL.into_iter().find(|it| it.name() == kind)
    }
}
