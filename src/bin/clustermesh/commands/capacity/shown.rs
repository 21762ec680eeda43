//! The costs of the mesh for people: a line for each cluster, and the exceeded limits; or all details.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use clustermesh::capacity::{Effect, Estimate, Lever, Measure, units};
use clustermesh::config::capacity::Quantity;
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::text;

use super::cost::Cost;
use crate::output::text_table::{Align, TextTable};
use crate::output::wrap::Width;

/// The longest name of a source that is shown, in characters.
const SHOWN: usize = 200;

/// The number of clusters with the same problem that are named.
const NAMED: usize = 6;

/// The number of different problems that are listed below the overview.
const BLOCKS: usize = 12;

/// The maximum width of a formula with its numbers on one line.
const FORMULA: usize = 64;

/// The columns of the overview, between the cluster and the change.
const COLUMNS: [(&str, Quantity); 8] = [
    ("PEERS", Quantity::Peers),
    ("RANGES", Quantity::Ranges),
    ("RULES", Quantity::Rules),
    ("APPLY", Quantity::ApplySeconds),
    ("RESTART", Quantity::RestartSeconds),
    ("ROUTES", Quantity::Routes),
    ("CONFIG", Quantity::ConfigurationBytes),
    ("TUNNELS", Quantity::TunnelsPerNode),
];

/// The effect of a change on traffic that is not answered.
const ONE_WAY_STREAMS: &str = "
    Kilo replaces its WireGuard configuration with every changed Peer. A stream that only one side
    sends on then stays silent for up to 15 s per change, unless the nodes are annotated with
    `kilo.squat.ai/persistent-keepalive`; streams with answers are not interrupted.
";

/// The sections of the full output.
#[derive(Clone, Copy, Eq, PartialEq)]
enum CapacitySection {
    /// The load of each node.
    Kilo,
    /// The load of the API server, GitOps and git.
    Objects,
    /// The changes that are applied together.
    Change,
}

impl CapacitySection {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Kilo, "Kilo, on the busiest node"),
        (Self::Objects, "the API server, GitOps and git"),
        (Self::Change, "the change from the current tree"),
    ];

    fn from_quantity(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Ranges
            | Quantity::Rules
            | Quantity::ApplySeconds
            | Quantity::RestartSeconds
            | Quantity::Routes
            | Quantity::ConfigurationBytes
            | Quantity::TunnelsPerNode
            | Quantity::Tunnels
            | Quantity::DnsEndpoints => Self::Kilo,
            Quantity::Peers
            | Quantity::StoredBytes
            | Quantity::KustomizeSeconds
            | Quantity::ApplicationBytes
            | Quantity::InventoryBytes
            | Quantity::FileBytes
            | Quantity::DirectoryEntries => Self::Objects,
            Quantity::WavePeers | Quantity::WaveSeconds => Self::Change,
        }
    }
}

/// Returns a line for each cluster, and the exceeded limits, the most severe first. Problems that
/// several clusters share are listed once.
pub(super) fn overview(costs: &[Cost], width: Width) -> String {
    let table = clusters(costs).folded(width);
    let total = width.wrapped(0, &total(costs));
    format!("{table}\n{total}\n{}", exceeded(costs, width))
}

/// Returns a block for each exceeded limit.
pub(super) fn exceeded(costs: &[Cost], width: Width) -> String {
    let mut text = String::new();
    let mut blocks: Vec<(Severity, String, Vec<&str>)> = Vec::new();
    for cost in costs {
        let Some(gravest) = cost.grade() else {
            continue;
        };
        let grave: Vec<&Estimate> = cost
            .estimates
            .iter()
            .filter(|it| it.grade.is_some())
            .collect();
        let block = estimates(&grave, ("  ", width)) + &levers(cost, &grave, ("  ", width));
        match blocks.iter_mut().find(|(_, known, _)| *known == block) {
            Some((.., clusters)) => clusters.push(&cost.cluster),
            None => blocks.push((gravest, block, vec![&cost.cluster])),
        }
    }
    blocks.sort_by_key(|(gravest, ..)| std::cmp::Reverse(*gravest));
    for (_, block, clusters) in blocks.iter().take(BLOCKS) {
        let _ = write!(text, "\n{}\n{block}", head(&text::first(NAMED, clusters)));
    }
    let rest: usize = blocks
        .iter()
        .skip(BLOCKS)
        .map(|(.., clusters)| clusters.len())
        .sum();
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
        let _ = writeln!(
            text,
            "{gap}{}: {}",
            head(&cost.cluster),
            grade(cost.grade())
        );
        for (section, title) in CapacitySection::ALL {
            let of_section = cost.estimates.iter();
            let of_section =
                of_section.filter(|it| CapacitySection::from_quantity(it.quantity) == section);
            let of_section: Vec<&Estimate> = of_section.collect();
            if section == CapacitySection::Change && cost.wave.is_empty() {
                let _ = writeln!(text, "\n  {title}: none");
            } else {
                let _ = write!(
                    text,
                    "\n  {title}\n{}",
                    estimates(&of_section, ("    ", width))
                );
            }
            if section == CapacitySection::Change && !cost.wave.is_empty() {
                text.push_str(ONE_WAY_STREAMS);
            }
        }
        let all: Vec<&Estimate> = cost.estimates.iter().collect();
        let levers = levers(cost, &all, ("  ", width));
        if !levers.is_empty() {
            let _ = write!(text, "\n{levers}");
        }
    }
    text
}

/// Returns a row for each cluster, below the head.
pub(super) fn clusters(costs: &[Cost]) -> TextTable {
    let mut columns = vec![Align::Left];
    columns.extend(COLUMNS.map(|_| Align::Right));
    columns.extend([Align::Right, Align::Right, Align::Left]);
    let mut table = TextTable::new(columns);
    // A column without any change is omitted.
    let is_changing = costs.iter().any(|it| !it.wave.is_empty());
    let head = |name: &str| (if is_changing { name } else { "" }).to_owned();
    let mut row = vec!["TARGET".to_owned()];
    row.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    row.extend([head("CHANGE"), head("BUSY"), "GRADE".to_owned()]);
    table.add(row);
    for cost in costs {
        let cell = |quantity: Quantity| {
            let found = cost.estimates.iter().find(|it| it.quantity == quantity);
            found.map_or_else(String::new, |it| match quantity {
                Quantity::ConfigurationBytes => units::bytes(it.value),
                _ => units::value(quantity, it.value),
            })
        };
        let mut row = vec![cost.cluster.clone()];
        row.extend(COLUMNS.iter().map(|(_, quantity)| cell(*quantity)));
        let busy = if cost.wave.is_empty() {
            String::new()
        } else {
            cell(Quantity::WaveSeconds)
        };
        row.extend([change(cost), busy, grade(cost.grade())]);
        table.add(row);
    }
    table
}

/// Returns what comes, changes and goes, such as `+40 ~2 -1`.
pub(super) fn change(cost: &Cost) -> String {
    let parts = [
        ("+", cost.wave.added),
        ("~", cost.wave.changed),
        ("-", cost.wave.removed),
    ]
    .into_iter()
    .filter(|(_, number)| 0 < *number)
    .map(|(sign, number)| format!("{sign}{}", units::count(number)));
    parts.collect::<Vec<String>>().join(" ")
}

/// Objects and tunnels are often taken for each other.
pub(super) fn total(costs: &[Cost]) -> String {
    let objects: usize = costs.iter().map(|it| it.load.objects()).sum();
    let tunnels = costs
        .iter()
        .map(|it| it.load.peers() * it.load.nodes.segments);
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
pub(super) fn grade(grade: Option<Severity>) -> String {
    let color = match grade {
        None => AnsiColor::Green,
        Some(Severity::Notice) => AnsiColor::Cyan,
        Some(Severity::Warning) => AnsiColor::Yellow,
        Some(Severity::Error) => AnsiColor::Red,
    };
    let style = Style::new().fg_color(Some(color.into()));
    let word = grade.map_or_else(|| "ok".to_owned(), |it| it.to_string());
    format!("{style}{word}{style:#}")
}

/// Returns a heading.
pub(super) fn head(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// Returns a line for each quantity: its grade, its value, its limit, and how one gets at it.
pub(super) fn estimates(estimates: &[&Estimate], (indent, width): (&str, Width)) -> String {
    let columns = [
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Left,
        Align::Left,
    ];
    let mut table = TextTable::new(columns.into());
    for estimate in estimates {
        table.add(vec![
            graded(estimate),
            estimate.quantity.key().to_owned(),
            units::value(estimate.quantity, estimate.value),
            limit(estimate),
            formula(estimate),
        ]);
    }
    table.text(indent, width)
}

/// Returns the grade of a quantity; one without a limit has none.
fn graded(estimate: &Estimate) -> String {
    let has_limit = estimate
        .steps
        .all()
        .into_iter()
        .any(|(_, step)| step.is_some());
    if has_limit {
        grade(estimate.grade)
    } else {
        "-".to_owned()
    }
}

/// Returns the limit that is passed, or else the first that would be.
fn limit(estimate: &Estimate) -> String {
    let step = |step| units::step(estimate.quantity, step);
    if let Some((_, passed)) = estimate.steps.passed(estimate.value) {
        return format!("> {}", step(passed));
    }
    let mut steps = estimate.steps.all().into_iter();
    let lowest = steps.find_map(|(_, step)| step);
    lowest.map_or_else(String::new, |lowest| format!("≤ {}", step(lowest)))
}

fn formula(estimate: &Estimate) -> String {
    let Estimate {
        quantity,
        formula,
        worked,
        ..
    } = estimate;
    if worked.is_empty() {
        return (*formula).to_owned();
    }
    // The room that is left is not a sum.
    let sign = if *quantity == Quantity::Ranges {
        ";"
    } else {
        " ="
    };
    let whole = format!("{formula}{sign} {worked}");
    if whole.chars().count() <= FORMULA {
        return whole;
    }
    format!("{formula}{sign}\n{worked}")
}

/// Returns the levers that are about any of these quantities.
pub(super) fn levers(
    cost: &Cost,
    estimates: &[&Estimate],
    (indent, width): (&str, Width),
) -> String {
    let sections: Vec<CapacitySection> = estimates
        .iter()
        .map(|it| CapacitySection::from_quantity(it.quantity))
        .collect();
    let of_change = sections.contains(&CapacitySection::Change);
    let of_load = sections.iter().any(|it| *it != CapacitySection::Change);
    let columns = [Align::Left, Align::Left, Align::Left, Align::Left];
    let mut table = TextTable::new(columns.into());
    let mut number = 0;
    for lever in &cost.levers {
        let is_meant = match lever.measure {
            Measure::Waves { .. } => of_change,
            _ => of_load,
        };
        if is_meant {
            table.add(row(lever));
            number += 1;
        }
    }
    if number == 0 {
        return String::new();
    }
    let lines = table.text(&format!("{indent}  "), width);
    format!("{indent}ways to reduce it\n{lines}")
}

/// Returns what a measure is, and what it brings.
fn row(lever: &Lever) -> Vec<String> {
    let Effect { ranges, seconds } = lever.effect;
    let seconds = [seconds.0, seconds.1].map(units::seconds);
    let seconds = format!("{} → {}", seconds[0], seconds[1]);
    let measure = measure(&lever.measure);
    if matches!(lever.measure, Measure::Waves { .. }) {
        return vec![seconds, "in a row".to_owned(), String::new(), measure];
    }
    let ranges = [ranges.0, ranges.1].map(units::count);
    let ranges = format!("A {} → {}", ranges[0], ranges[1]);
    vec![seconds, "for each change".to_owned(), ranges, measure]
}

fn measure(measure: &Measure) -> String {
    let count = |number: &usize| units::count(*number);
    match measure {
        Measure::SelectNodes { sources, left, of } => match sources.as_slice() {
            [source] => format!(
                "a `nodeSelector` that keeps {} of {} Peers of {}",
                count(left),
                count(of),
                escaped(source, SHOWN)
            ),
            sources => format!(
                "a `nodeSelector` in {} that keeps at most {} (now up to {})",
                plural(sources.len(), "source"),
                plural(*left, "Peer"),
                count(of)
            ),
        },
        Measure::LeaveOutAddresses { ranges } => {
            format!(
                "not declaring the nodes' internal addresses ({})",
                plural(*ranges, "range")
            )
        }
        Measure::Aggregate { fewer } => format!(
            "merging adjacent pod CIDRs of a Peer ({} fewer)",
            plural(*fewer, "range")
        ),
        Measure::SplitSource { source, parts } => format!(
            "splitting {} into {} clusters, of which one is linked to this target",
            escaped(source, SHOWN),
            count(parts)
        ),
        Measure::SplitTarget { parts, sources } => format!(
            "splitting this cluster into {}, which share its {} sources",
            count(parts),
            count(sources)
        ),
        Measure::Waves { peers, waves } => format!(
            "{} of at most {}",
            plural(*waves, "wave"),
            plural(*peers, "Peer")
        ),
    }
}
