//! The costs of the mesh for people: a line for each cluster, and the exceeded limits; or all details.

use std::fmt::Write as _;

use crate::capacity::{Cost, CostChange, Estimate, units};
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::text;
use anstyle::AnsiColor;

use crate::report::alike::rows;
use crate::report::style::{bold, coloured};
use crate::report::table::TextTable;
use crate::report::width::Width;

mod estimates;
mod remedies;

use estimates::estimates;
use remedies::remedies;

/// The number of clusters with the same problem that are named.
const NAMED: usize = 6;

/// The number of different problems that are listed below the overview.
const BLOCKS: usize = 12;

/// The columns of the overview, between the cluster and the change.
const COLUMNS: [(&str, Quantity); 8] = [
    (">PEERS", Quantity::Peers),
    (">RANGES", Quantity::Ranges),
    (">RULES", Quantity::Rules),
    (">APPLY", Quantity::ApplySeconds),
    (">RESTART", Quantity::RestartSeconds),
    (">ROUTES", Quantity::Routes),
    (">CONFIG", Quantity::ConfigurationBytes),
    (">TUNNELS", Quantity::TunnelsPerNode),
];

/// The effect of a change on traffic.
const PAUSE: &str = "    Kilo replaces its WireGuard configuration with every changed Peer. Requests through its nodes
    then may get no answer for 15 s, unless the nodes are annotated with
    `kilo.squat.ai/persistent-keepalive`.
";

/// The sections of the full output.
#[derive(Clone, Copy, Eq, PartialEq)]
enum CapacitySection {
    /// The load of each node.
    Kilo,
    /// The load of the API server, GitOps and git.
    Objects,
}

impl CapacitySection {
    const ALL: [(Self, &'static str); 2] = [
        (Self::Kilo, "Kilo, on the busiest node"),
        (Self::Objects, "the API server, GitOps and git"),
    ];

    fn from_quantity(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Ranges
            | Quantity::Rules
            | Quantity::ApplySeconds
            | Quantity::RestartSeconds
            | Quantity::Routes
            | Quantity::ConfigurationBytes
            | Quantity::AnnotationBytes
            | Quantity::TunnelsPerNode
            | Quantity::Tunnels
            | Quantity::DnsEndpoints => Self::Kilo,
            Quantity::Peers
            | Quantity::StoredBytes
            | Quantity::KustomizeSeconds
            | Quantity::FluxSeconds
            | Quantity::ApplicationBytes
            | Quantity::InventoryBytes
            | Quantity::FileBytes
            | Quantity::DirectoryEntries => Self::Objects,
        }
    }
}

/// Returns a block for each exceeded limit, the most severe first. Problems that several clusters share are listed
/// once.
pub(super) fn exceeded(costs: &[Cost], width: Width) -> String {
    let mut text = String::new();
    let mut blocks: Vec<(Severity, String, Vec<&str>)> = Vec::new();
    for cost in costs {
        let Some(gravest) = cost.grade else {
            continue;
        };
        let exceeded = cost.exceeded();
        let block = estimates(&exceeded, "  ", width) + &remedies(&exceeded, width);
        match blocks.iter_mut().find(|(_, known, _)| *known == block) {
            Some((.., clusters)) => clusters.push(&cost.cluster),
            None => blocks.push((gravest, block, vec![&cost.cluster])),
        }
    }
    blocks.sort_by_key(|(gravest, ..)| std::cmp::Reverse(*gravest));
    for (_, block, clusters) in blocks.iter().take(BLOCKS) {
        let _ = write!(text, "\n{}\n{block}", bold(&text::first(NAMED, clusters)));
    }
    let rest: usize = blocks.iter().skip(BLOCKS).map(|(.., clusters)| clusters.len()).sum();
    if 0 < rest {
        let _ = writeln!(
            text,
            "\n{} more exceed a limit; run `clustermesh capacity TARGET` for details",
            plural(rest, "cluster")
        );
    }
    text
}

/// Returns everything about each cluster.
pub(super) fn details(costs: &[Cost], width: Width) -> String {
    let mut text = String::new();
    for (index, cost) in costs.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}: {}", bold(&cost.cluster), grade(cost.grade));
        for (section, title) in CapacitySection::ALL {
            let of_section: Vec<&Estimate> = cost
                .estimates
                .iter()
                .filter(|it| CapacitySection::from_quantity(it.quantity) == section)
                .collect();
            let _ = write!(text, "\n  {title}\n{}", estimates(&of_section, "    ", width));
        }
        if cost.change.delta.is_empty() {
            text.push_str("\n  the change from the current tree: none\n");
        } else {
            let (change, busy) = (change(cost), units::seconds(cost.change.seconds));
            let _ = writeln!(
                text,
                "\n  the change from the current tree: {change}; Kilo is busy for {busy}"
            );
            text.push_str(PAUSE);
        }
        let remedies = remedies(&cost.exceeded(), width);
        if !remedies.is_empty() {
            let _ = write!(text, "\n{remedies}");
        }
    }
    text
}

/// Returns a row for each cluster, below the head. If there are many, alike clusters share one.
pub(super) fn clusters(costs: &[Cost]) -> TextTable {
    // A column without any change is omitted.
    let is_changing = costs.iter().any(|it| !it.change.delta.is_empty());
    let change_columns = if is_changing { [">CHANGE", ">BUSY"] } else { [">"; 2] };
    let columns = ["TARGET", "GRADE"].into_iter();
    let columns = columns.chain(COLUMNS.map(|(name, _)| name));
    let mut table = TextTable::new(columns.chain(change_columns));
    let cells = costs.iter().map(|cost| {
        let cell = |quantity: Quantity| {
            let found = cost.estimates.iter().find(|it| it.quantity == quantity);
            found.map_or_else(String::new, |it| match quantity {
                Quantity::ConfigurationBytes => units::bytes(it.value),
                _ => units::value(quantity, it.value),
            })
        };
        let mut row = vec![grade(cost.grade)];
        row.extend(COLUMNS.iter().map(|(_, quantity)| cell(*quantity)));
        let CostChange { delta, seconds } = &cost.change;
        let busy = if delta.is_empty() { String::new() } else { units::seconds(*seconds) };
        row.extend([change(cost), busy]);
        (row, cost.cluster.as_str())
    });
    for (row, clusters) in rows(cells) {
        table.add([text::listed(clusters)].into_iter().chain(row).collect());
    }
    table
}

/// Returns what comes, changes and goes, such as `+40 ~2 -1`.
fn change(cost: &Cost) -> String {
    let delta = cost.change.delta;
    let parts = [("+", delta.added), ("~", delta.changed), ("-", delta.removed)]
        .into_iter()
        .filter(|(_, number)| 0 < *number)
        .map(|(sign, number)| format!("{sign}{}", units::count(number)));
    parts.collect::<Vec<String>>().join(" ")
}

/// Objects and tunnels are often taken for each other.
pub(super) fn total(costs: &[Cost]) -> String {
    let objects: usize = costs.iter().map(|it| it.load.objects()).sum();
    let tunnels = costs.iter().map(|it| it.load.peers() * it.load.nodes.segments);
    format!(
        "{}, {}; {} in total on all nodes (not Kubernetes objects)",
        plural(costs.len(), "cluster"),
        plural(objects, "Peer object"),
        plural(tunnels.sum(), "tunnel end"),
    )
}

fn plural(number: usize, noun: &str) -> String {
    format!("{} {}", units::count(number), text::noun(number, noun))
}

/// Returns a grade, in its colour.
fn grade(grade: Option<Severity>) -> String {
    let color = match grade {
        None => AnsiColor::Green,
        Some(Severity::Notice) => AnsiColor::Cyan,
        Some(Severity::Warning) => AnsiColor::Yellow,
        Some(Severity::Error) => AnsiColor::Red,
    };
    let word = grade.map_or_else(|| "ok".to_owned(), |it| it.to_string());
    coloured(color, &word)
}
