//! How many tenants fit around a hub in each form of `advertise`: the figures, as a table and as a chart.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each target needs a part of it, and fails loudly"
)]

use std::fmt::Write as _;
use std::path::Path;

use clustermesh::capacity::units;
use serde_json::Value;

use super::tenants::{Form, Placement, Tenants};

/// The forms that are compared.
const FORMS: [(Form, Placement); 6] = [
    (Form::Full, Placement::Together),
    (Form::Location, Placement::Together),
    (Form::Merged, Placement::Pools),
    (Form::Merged, Placement::Together),
    (Form::Declared, Placement::Pools),
    (Form::Declared, Placement::Together),
];

/// Returns the fleets that are compared.
pub(crate) fn all() -> Vec<Tenants> {
    let fleets = FORMS.map(|(form, placement)| Tenants::new(form, placement));
    fleets.to_vec()
}

/// The arguments that print the load of the hub. By default, a run takes at most 400 clusters.
pub(crate) const CAPACITY: &[&str] =
    &["capacity", "hub", "--output", "json", "--ceiling", "clusters=1000"];

/// The load of the hub.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) tenants: Tenants,
    /// Allowed IPs of all Peers.
    pub(crate) ranges: usize,
    /// Seconds for a change.
    pub(crate) apply: f64,
    /// Seconds for a restart.
    pub(crate) restart: f64,
    /// The number of tenants with which a change takes 5 seconds, and 30.
    pub(crate) most: [usize; 2],
}

/// Returns the figures of some tenants. `capacity` runs the program with [`CAPACITY`] in a folder.
pub(crate) fn row(tenants: Tenants, folder: &Path, capacity: impl Fn(&Path) -> String) -> Row {
    // What fits beside one tenant is computed.
    let one = Tenants { count: 1, ..tenants };
    let one = report(one, &folder.join("one"), &capacity);
    let all = report(tenants, &folder.join("all"), &capacity);
    let quantities = all["targets"][0]["quantities"].as_array().unwrap();
    let value = |name: &str| {
        let mut quantities = quantities.iter();
        &quantities.find(|it| it["name"] == name).unwrap()["value"]
    };
    let mut limits = one["growth"]["limits"].as_array().unwrap().iter();
    let room = limits.find(|it| it["name"] == "applySeconds").unwrap();
    let most = |limit: &str| 1 + whole(&room[limit]["clusters"]);
    Row {
        tenants,
        ranges: whole(value("ranges")),
        apply: value("applySeconds").as_f64().unwrap(),
        restart: value("restartSeconds").as_f64().unwrap(),
        most: ["warning", "error"].map(most),
    }
}

fn whole(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn report(tenants: Tenants, folder: &Path, capacity: impl Fn(&Path) -> String) -> Value {
    tenants.write(folder).unwrap();
    serde_json::from_str(&capacity(folder)).unwrap()
}

/// Returns the rows as a table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = "\
| advertised | ranges | a change | a restart | tenants up to 5 s | up to 30 s |
|---|---|---|---|---|---|
"
    .to_owned();
    for row in rows {
        let [warning, error] = row.most.map(units::count);
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {warning} | {error} |",
            row.tenants,
            units::count(row.ranges),
            units::seconds(row.apply),
            units::seconds(row.restart),
        );
    }
    table
}

/// The height of a form in the chart, in pixels.
const STEP: usize = 44;
/// Where the bars begin.
const LEFT: usize = 270;
/// The length of the longest bar.
const LONGEST: usize = 410;

/// Returns how many tenants fit, as an SVG of bars.
pub(crate) fn chart(rows: &[Row]) -> String {
    let height = 90 + STEP * rows.len();
    let longest = rows.iter().map(|it| it.most[1]).max().unwrap_or(1);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}" role="img"
  aria-label="How many tenants of 20 nodes fit around a hub of 30 nodes, for each form of advertise. The table on this page has the same figures.">
  <style>
    text {{ font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933; }}
    .title {{ font-weight: 600; }}
    .small {{ font-size: 12px; fill: #52606d; }}
    .warning {{ fill: #2f6f9f; }}
    .error {{ fill: #9fc3dd; }}
  </style>
  <rect width="760" height="{height}" fill="#ffffff"/>
  <text class="title" x="20" y="28">Tenants of 20 nodes that fit around a hub of 30 nodes</text>
  <rect class="warning" x="20" y="42" width="14" height="12"/>
  <text class="small" x="40" y="52">a change takes at most 5 s</text>
  <rect class="error" x="226" y="42" width="14" height="12"/>
  <text class="small" x="246" y="52">at most 30 s, where the hub’s own network is at risk</text>
"##
    );
    for (place, row) in rows.iter().enumerate() {
        let top = 74 + STEP * place;
        let _ = writeln!(
            svg,
            r#"  <text x="{}" y="{}" text-anchor="end">{}</text>"#,
            LEFT - 12,
            top + 20,
            row.tenants.to_string().replace('`', ""),
        );
        for (bar, (class, most)) in
            [("warning", row.most[0]), ("error", row.most[1])].into_iter().enumerate()
        {
            let top = top + 15 * bar;
            let length = LONGEST * most / longest;
            let _ = writeln!(
                svg,
                r#"  <rect class="{class}" x="{LEFT}" y="{top}" width="{length}" height="13"/><text class="small" x="{}" y="{}">{}</text>"#,
                LEFT + length + 6,
                top + 11,
                units::count(most),
            );
        }
    }
    svg + "</svg>\n"
}
