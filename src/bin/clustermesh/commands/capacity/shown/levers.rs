//! The levers of a cluster for people: a row for each measure that reduces its load.

use clustermesh::capacity::{Cost, Effect, Estimate, Lever, Measure, units};
use clustermesh::diagnostic::escaped;

use super::{CapacitySection, plural};
use clustermesh::report::table::TextTable;
use clustermesh::report::width::Width;

/// The longest name of a source that is shown, in characters.
const SHOWN: usize = 200;

/// Returns the levers that are about any of these quantities.
pub(crate) fn levers(cost: &Cost, estimates: &[&Estimate], indent: &str, width: Width) -> String {
    let sections: Vec<CapacitySection> = estimates
        .iter()
        .map(|it| CapacitySection::from_quantity(it.quantity))
        .collect();
    let of_change = sections.contains(&CapacitySection::Change);
    let of_load = sections.iter().any(|it| *it != CapacitySection::Change);
    let mut table = TextTable::new([""; 4]);
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
        Measure::LeaveOutAddresses { addresses } => {
            format!(
                "`advertise: {{ nodeAddresses: false }}` in the sources ({} fewer; ends connections of nodes)",
                plural(*addresses, "range")
            )
        }
        Measure::LeaveOutSubnets { addresses } => format!(
            "`advertise: {{ wireguardAddresses: None }}` in the sources ({} fewer; ends some connections of nodes)",
            plural(*addresses, "range")
        ),
        Measure::DeclarePods { fewer } => format!(
            "`advertise: {{ podCIDRs: Declared }}` in sources with `granularity: Location` ({} fewer)",
            plural(*fewer, "range")
        ),
        Measure::Aggregate { fewer } => format!(
            "`advertise: {{ podCIDRs: Merged }}` in the sources ({} fewer)",
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
            "{} of at most {} each",
            plural(*waves, "commit"),
            plural(*peers, "Peer")
        ),
    }
}
