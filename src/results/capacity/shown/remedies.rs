//! The remedies for exceeded limits, and the commands that compute their effect.

use std::fmt::Write as _;

use crate::capacity::{Estimate, LoadRemedy, remedy};
use crate::report::width::Width;
use crate::text;

/// Returns a sentence for each remedy, and below it the commands that people can try.
pub(super) fn remedies(exceeded: &[&Estimate], width: Width) -> String {
    let mut remedies: Vec<(LoadRemedy, Vec<String>)> = Vec::new();
    for estimate in exceeded {
        let remedy = remedy(estimate.quantity);
        let key = format!("`{}`", estimate.quantity.key());
        match remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, keys)) => keys.push(key),
            None => remedies.push((remedy, vec![key])),
        }
    }
    let mut text = String::new();
    for ((advice, assumed), keys) in remedies {
        let sentence = format!("{}: {advice}", text::list(keys));
        let _ = writeln!(text, "  {}", width.hanging(2, &sentence));
        for assumed in assumed {
            let _ = writeln!(text, "    clustermesh capacity --with '{assumed}'");
        }
    }
    text
}
