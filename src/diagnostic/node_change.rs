//! Changes of nodes that mend findings.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::ClusterName;

/// A change of a node that would mend a finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeChange {
    /// The cluster.
    pub cluster: ClusterName,
    /// The node, as it calls itself.
    pub node: String,
    /// The change.
    pub change: MetadataChange,
}

/// A change of an annotation or a label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetadataChange {
    /// Whether an annotation or a label changes.
    pub kind: MetadataKind,
    /// The name of the annotation or label.
    pub key: String,
    /// The new value.
    pub value: NewValue,
}

/// The two kinds of metadata of a node.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum MetadataKind {
    /// An annotation.
    Annotation,
    /// A label.
    Label,
}

/// The new value of an annotation or label. It is never one that only a node wrote: a person with rights runs a command
/// with it, and a hostile node could choose it.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum NewValue {
    /// It is removed.
    #[default]
    Removed,
    /// Its form, such as `ADDRESS:51820`. Only a person knows the value.
    Form(String),
    /// A value that is computed or declared.
    Known(String),
}

impl MetadataChange {
    fn annotation(key: &str, value: NewValue) -> Self {
        Self {
            kind: MetadataKind::Annotation,
            key: key.to_owned(),
            value,
        }
    }

    /// Returns the known new value of an annotation.
    pub fn known(key: &str, value: impl Into<String>) -> Self {
        Self::annotation(key, NewValue::Known(value.into()))
    }

    /// Returns the form of the value of an annotation.
    pub fn form(key: &str, form: impl Into<String>) -> Self {
        Self::annotation(key, NewValue::Form(form.into()))
    }

    /// Returns the removal of an annotation.
    pub fn removal(key: &str) -> Self {
        Self::annotation(key, NewValue::Removed)
    }
}

impl fmt::Display for MetadataChange {
    /// Writes it as `kubectl annotate` and `kubectl label` take it.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let key = &self.key;
        match &self.value {
            NewValue::Removed => write!(formatter, "{key}-"),
            NewValue::Form(value) | NewValue::Known(value) => write!(formatter, "{key}={value}"),
        }
    }
}
