//! The document of `outage`, as far as the page shows it.

use serde::{Deserialize, Serialize};

/// The losses.
#[derive(Deserialize)]
pub(super) struct PageOutage {
    pub(super) single: PageSurvey,
}

/// The effects of single losses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageSurvey {
    pub(super) parts: u64,
    pub(super) harmful: Vec<PageHarm>,
    pub(super) not_examined: Vec<PageUnexamined>,
}

/// A part that was not examined.
#[derive(Deserialize)]
pub(super) struct PageUnexamined {
    pub(super) part: String,
    pub(super) reason: String,
}

/// The effect of one loss.
#[derive(Deserialize)]
pub(super) struct PageHarm {
    pub(super) part: String,
    pub(super) paths: u64,
    pub(super) ended: Vec<PageEnded>,
}

/// The paths between two clusters that end.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct PageEnded {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) paths: u64,
    pub(super) example: Option<[String; 2]>,
}
