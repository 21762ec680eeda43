//! Changes of nodes that resolve findings.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::ClusterName;

/// A change of a node that would resolve a finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeRemedy {
    /// The cluster.
    pub cluster: ClusterName,
    /// The node, as it calls itself.
    pub node: String,
    /// The change.
    pub change: MetadataChange,
}

/// A change of an annotation or a label. Its value is never one that only a node wrote: a person with rights runs a command
/// with it, and a hostile node could choose it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetadataChange {
    /// Whether an annotation or a label changes.
    pub kind: MetadataKind,
    /// The name of the annotation or label.
    pub key: String,
    /// The new value, or its form, such as `ADDRESS:51820`; nothing to remove it.
    pub value: Option<String>,
    /// Whether a person has to write the value, or to decide about the change.
    pub is_open: bool,
}

/// The two kinds of metadata of a node.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum MetadataKind {
    /// An annotation.
    Annotation,
    /// A label.
    Label,
}

impl MetadataChange {
    /// Returns the new value of an annotation.
    pub fn annotation(key: &str, value: impl Into<String>) -> Self {
        Self {
            kind: MetadataKind::Annotation,
            key: key.to_owned(),
            value: Some(value.into()),
            is_open: false,
        }
    }

    /// Returns the removal of an annotation.
    pub fn removal(key: &str) -> Self {
        Self { value: None, ..Self::annotation(key, "") }
    }

    /// Leaves the value or the decision to a person.
    #[must_use]
    pub fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Returns the same change of a label.
    #[must_use]
    pub fn of_label(self) -> Self {
        Self { kind: MetadataKind::Label, ..self }
    }
}

impl fmt::Display for MetadataChange {
    /// Writes it as `kubectl annotate` and `kubectl label` take it.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let key = &self.key;
        match &self.value {
            None => write!(formatter, "{key}-"),
            Some(value) => write!(formatter, "{key}={value}"),
        }
    }
}
