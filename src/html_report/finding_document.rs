//! The document of findings, as far as the page shows it.

use serde::{Deserialize, Serialize};

/// The findings of a command.
#[derive(Deserialize)]
pub(super) struct PageReport {
    pub(super) findings: Vec<PageFinding>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageFinding {
    pub(super) rule: String,
    pub(super) severity: String,
    pub(super) message: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
    pub(super) help: Option<String>,
    pub(super) cause: Option<PageCause>,
    #[serde(default)]
    pub(super) places: Vec<PagePlace>,
}

/// The finding that causes another one.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PageCause {
    pub(super) rule: String,
    pub(super) cluster: Option<String>,
    pub(super) node: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PagePlace {
    file: String,
    line: Option<u64>,
    column: Option<u64>,
    label: Option<String>,
    excerpt: Option<String>,
}

impl PageFinding {
    /// Returns it as the cause of others.
    pub(super) fn as_cause(&self) -> PageCause {
        PageCause {
            rule: self.rule.clone(),
            cluster: self.cluster.clone(),
            node: self.node.clone(),
        }
    }

    /// Returns its severity as a number, the most severe first.
    pub(super) fn rank(&self) -> usize {
        ["error", "warning", "notice"]
            .iter()
            .position(|it| *it == self.severity)
            .unwrap_or_default()
    }
}
