//! The estimates of a cluster for people: a row for each quantity.

use crate::capacity::{Estimate, units};
use crate::config::capacity::Quantity;

use super::grade;
use crate::report::table::TextTable;
use crate::report::width::Width;

/// The maximum width of a formula with its numbers on one line.
const FORMULA: usize = 64;

/// Returns a line for each quantity: its grade, its value, its limit, and how one gets at it.
pub(super) fn estimates(estimates: &[&Estimate], indent: &str, width: Width) -> String {
    let mut table = TextTable::new(["", "", ">", "", ""]);
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
    let has_limit = estimate.steps.all().into_iter().any(|(_, step)| step.is_some());
    if has_limit { grade(estimate.grade) } else { "-".to_owned() }
}

/// Returns the limit that is passed, or else the first that would be.
fn limit(estimate: &Estimate) -> String {
    let step = |step| units::step(estimate.quantity, step);
    if let Some((_, passed)) = estimate.steps.passed(estimate.value) {
        return format!("> {}", step(passed));
    }
    let lowest = estimate.steps.all().into_iter().find_map(|(_, step)| step);
    lowest.map_or_else(String::new, |lowest| format!("≤ {}", step(lowest)))
}

fn formula(estimate: &Estimate) -> String {
    let Estimate { quantity, formula, worked, .. } = estimate;
    if worked.is_empty() {
        return (*formula).to_owned();
    }
    // The room that is left is not a sum.
    let sign = if *quantity == Quantity::Ranges { ";" } else { " =" };
    let whole = format!("{formula}{sign} {worked}");
    if whole.chars().count() <= FORMULA {
        return whole;
    }
    format!("{formula}{sign}\n{worked}")
}
