//! Capacities: the load of each cluster, and the load with the clusters that join.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::findings::markdown::COMMENT;
use super::forms::ResultForms;
use super::node_addresses;
use crate::capacity::{Cost, Outgrowth};
use crate::diagnostic::Quoted;
use crate::joining::{self, JoinedLoad, Joiner};
use crate::name::ClusterName;
use crate::report::json::JsonDocument;
use crate::report::page::{PageForm, ReportPage};
use crate::schema::ExampleFile;
use crate::text;

mod growth;
mod shown;

/// The room for a table, in bytes.
const TABLE: usize = COMMENT / 3;

/// The room for the exceeded limits, in bytes.
const LIMITS: usize = COMMENT / 4;

/// The output of `clustermesh capacity --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Capacity", example = ExampleFile(include_str!("capacity/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct CapacityResult<'a> {
    /// The values of `--with`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["east.advertise.podCIDRs=Merged"])]
    pub with: Vec<String>,
    /// Clusters whose entries advertise neither WireGuard addresses nor internal IPs of nodes, by name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "Vec<&str>")]
    pub without_node_addresses: BTreeSet<&'a ClusterName>,
    /// The clusters, by name.
    pub targets: Vec<Cost>,
    /// All clusters with `state: Joining` that have a snapshot, and the load of each cluster when
    /// they have joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joining: Option<JoinedLoad>,
    /// Clusters with `state: Joining` that cannot join before they have a snapshot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Joiner>,
    /// The number of clusters that can be added. Missing if the cluster that they would be like gives no Peers to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<Outgrowth>,
    /// Whether the page shows everything about each cluster.
    #[serde(skip)]
    pub is_detailed: bool,
}

impl ResultForms for CapacityResult<'_> {
    fn page(&self, form: PageForm) -> String {
        let mut page = ReportPage::new(form, "clustermesh capacity");
        if self.is_detailed {
            page.block(COMMENT / 2, |width| shown::details(&self.targets, width));
        } else {
            self.overview(&mut page);
        }
        if let Some(sentence) = node_addresses::keeping(&self.without_node_addresses) {
            page.sentence(&sentence);
        }
        if !self.with.is_empty() {
            let values = self.with.iter().map(|it| Quoted(it).to_string());
            page.sentence(&format!("Computed with {}.", text::list(values)));
        }
        if let Some(joining) = &self.joining {
            let with = match form {
                PageForm::Terminal(_) => "with",
                PageForm::Markdown => "With",
            };
            let names = joining::listed(&joining.joiners);
            page.heading(&format!("{with} {names} joined"));
            page.table(&shown::clusters(&joining.costs), TABLE);
        }
        if !self.waiting.is_empty() {
            let names = joining::listed(&self.waiting);
            page.text(&format!("\nNot counted, because a snapshot is missing: {names}.\n"));
        }
        page.finish()
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(self).text()
    }
}

impl CapacityResult<'_> {
    fn overview(&self, page: &mut ReportPage) {
        page.table(&shown::clusters(&self.targets), TABLE);
        page.paragraph(&shown::total(&self.targets));
        page.block(LIMITS, |width| shown::exceeded(&self.targets, width));
        let Some(growth) = &self.growth else {
            return;
        };
        page.heading(&format!("How many more clusters like {} fit?", growth.like));
        page.table(&growth::table(&growth.rooms), TABLE);
        if let Some(closing) = growth::closing(growth) {
            page.paragraph(&closing);
        }
    }
}
