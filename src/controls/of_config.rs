//! Limits in the config: levels, hidden findings, numbers, ceilings, and the paths of files with controls.

use std::collections::BTreeSet;

use super::Controls;
use super::limit::{Limit, Passing};
use crate::config::capacity::{Quantity, Steps};
use crate::config::ceilings::Counted;
use crate::config::{Config, Ignore, RuleLevel};
use crate::diagnostic::{Quoted, Severity};
use crate::place::Place;
use crate::rules::{self, Rule};

/// The limit of lost nodes that is stricter if it is larger: the weight of a lost node.
const WEIGHT: &str = "gonePercent";

/// Returns the limits of a version, with the levels of all rules that any version sets.
pub(super) fn limits<'c>(
    controls: &Controls<'c>,
    levels: &BTreeSet<&'static Rule>,
) -> Vec<Limit<'c>> {
    let config = controls.config;
    let place = |keys: &[&str]| -> Option<Place> {
        let whole = controls.config_place?.clone();
        Some(keys.iter().fold(whole, |place, key| place.key(key)))
    };
    let mut limits: Vec<Limit> = levels.iter().map(|it| of_level(it, config)).collect();
    limits.extend(config.ignore.iter().map(of_ignore));
    let mut add = |keys: &[&str], value: Option<u64>, most: u64| {
        let subject = format!("`{}`", keys.join("."));
        limits.push(Limit::new(subject, value, place(keys), Passing::UpTo(most, None)));
    };
    for (name, limit) in config.limits.all() {
        let most = if name == WEIGHT { u64::MAX - limit } else { limit };
        add(&["limits", name], Some(limit), most);
    }
    for &quantity in Quantity::ALL {
        let Steps { notice, warning, error } = config.limits.capacity.steps(quantity);
        for (name, step) in [("notice", notice), ("warning", warning), ("error", error)] {
            let most = step.unwrap_or(u64::MAX);
            add(&["limits", "capacity", quantity.key(), name], step, most);
        }
    }
    // With a smaller cost, more Peers stay below a limit.
    for (name, cost) in config.limits.capacity.costs.all() {
        add(&["limits", "capacity", "costs", name], Some(cost), u64::MAX - cost);
    }
    for counted in Counted::ALL {
        let most = u64::try_from(config.ceilings.most(counted)).unwrap_or(u64::MAX);
        add(&["limits", "ceilings", counted.name()], Some(most), most);
    }
    for (field, path) in controls.paths {
        let passing = Passing::Names(Some([path.clone()].into()));
        limits.push(Limit::new(
            format!("`{field}` of the config"),
            [path],
            place(&[field]),
            passing,
        ));
    }
    let outputs = config.outputs.iter().map(|it| format!("{} from {}", it.path, it.template));
    let subject = "`outputs` of the config".to_owned();
    limits.push(Limit::new(subject, outputs, place(&["outputs"]), Passing::Undecided));
    limits
}

/// Returns the rules of which a config sets the level.
pub(super) fn rules_with_levels(config: &Config) -> impl Iterator<Item = &'static Rule> {
    config.rules.iter().flat_map(|it| rules::find(&it.rule))
}

/// Returns the level of a rule. That of its name takes precedence over that of a code.
fn of_level<'c>(rule: &'static Rule, config: &Config) -> Limit<'c> {
    let by_name = config.rules.iter().find(|it| it.rule == rule.name());
    let by_code = || config.rules.iter().find(|it| rules::find(&it.rule).contains(&rule));
    let default = rank(Some(rule.severity));
    let (written, place, passing) = match by_name.or_else(by_code) {
        None => ("default".to_owned(), None, Passing::UpTo(default, None)),
        Some(RuleLevel { level, until, place, .. }) => {
            let end = until.map(|it| format!(" until {it}")).unwrap_or_default();
            let passing = Passing::UpTo(rank(level.severity()), until.map(|it| (it, default)));
            (format!("{level}{end}"), Some(place.clone()), passing)
        }
    };
    Limit::new(format!("level of {}", Quoted(rule.name())), [written], place, passing)
}

/// Returns how much a level hides.
fn rank(severity: Option<Severity>) -> u64 {
    match severity {
        Some(Severity::Error) => 0,
        Some(Severity::Warning) => 1,
        Some(Severity::Notice) => 2,
        None => 3,
    }
}

fn of_ignore(ignore: &Ignore) -> Limit<'_> {
    let cluster = ignore.cluster.as_ref().map(|it| format!(" of {it}"));
    let node = ignore.node.as_ref().map(|it| format!(" on the node {}", Quoted(it)));
    let of = [cluster, node].into_iter().flatten().collect::<String>();
    let rules = rules::find(&ignore.rule);
    let rules: Vec<String> = rules.iter().map(|it| Quoted(it.name()).to_string()).collect();
    let subject = format!("ignored findings of {}{of}", rules.join(", "));
    let until = ignore.until.map_or("without end".to_owned(), |it| format!("until {it}"));
    let place = Some(ignore.place.clone());
    Limit::new(subject, [until], place, Passing::Findings(ignore))
}
