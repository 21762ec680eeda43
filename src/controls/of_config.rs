//! Controls in the config: levels, hidden findings, limits, ceilings, and the paths of files with controls.

use super::{Control, ControlValue, Controls, NamedControls};
use crate::config::capacity::{Quantity, Steps};
use crate::config::ceilings::Counted;
use crate::config::{Date, Ignore, Level, RuleLevel};
use crate::diagnostic::{Quoted, Severity};
use crate::rules;

/// The limit that is stricter if it is larger: the weight of a lost node.
const WEIGHT: &str = "gonePercent";

/// Returns the controls of both versions under the same names.
pub(super) fn controls(old: &Controls, new: &Controls) -> [NamedControls; 2] {
    let mut both = [old, new].map(of_version);
    // A level that only one version sets has a default in the other one.
    for level in old.config.rules.iter().chain(&new.config.rules) {
        for named in &mut both {
            named.entry(subject_of(level)).or_insert_with(|| {
                let rank = default_rank(&level.rule);
                Control::new(["default"], None, ControlValue::Level(rank, None))
            });
        }
    }
    // A new entry hides nothing more if an old one hides that already.
    let is_hidden = |it: &Ignore| old.config.ignore.iter().any(|old| covers(old, it));
    for ignore in new.config.ignore.iter().filter(|it| is_hidden(it)) {
        if let Some(control) = both[1].get_mut(&subject_of_ignore(ignore)) {
            control.value = ControlValue::Other;
        }
    }
    both
}

fn of_version(controls: &Controls) -> NamedControls {
    let config = controls.config;
    let place = |keys: &[&str]| {
        let mut place = controls.config_place?.clone();
        for key in keys {
            place = place.key(key);
        }
        Some(place)
    };
    let mut named = NamedControls::new();
    for level in &config.rules {
        named.insert(subject_of(level), of_level(level));
    }
    for ignore in &config.ignore {
        let until = ignore.until.map_or("without end".to_owned(), |it| format!("until {it}"));
        let control = Control::new([until], Some(ignore.place.clone()), ControlValue::Exemption);
        named.insert(subject_of_ignore(ignore), control);
    }
    for (name, limit) in config.limits.all() {
        let value =
            if name == WEIGHT { ControlValue::AtLeast(limit) } else { ControlValue::AtMost(limit) };
        let control = Control::new([limit], place(&["limits", name]), value);
        named.insert(format!("`limits.{name}`"), control);
    }
    for &quantity in Quantity::ALL {
        let Steps { notice, warning, error } = config.limits.capacity.steps(quantity);
        for (name, step) in [("notice", notice), ("warning", warning), ("error", error)] {
            let key = quantity.key();
            let value = ControlValue::AtMost(step.unwrap_or(u64::MAX));
            let control = Control::new(step, place(&["limits", "capacity", key, name]), value);
            named.insert(format!("`limits.capacity.{key}.{name}`"), control);
        }
    }
    for counted in Counted::ALL {
        let (name, most) = (counted.name(), config.ceilings.most(counted));
        let value = ControlValue::AtMost(u64::try_from(most).unwrap_or(u64::MAX));
        let control = Control::new([most], place(&["limits", "ceilings", name]), value);
        named.insert(format!("`limits.ceilings.{name}`"), control);
    }
    for (field, path) in controls.paths {
        let control = Control::new([path], place(&[field]), ControlValue::Fixed);
        named.insert(format!("`{field}` of the config"), control);
    }
    let outputs = config.outputs.iter().map(|it| format!("{} from {}", it.path, it.template));
    let outputs = Control::new(outputs, place(&["outputs"]), ControlValue::Other);
    named.insert("`outputs` of the config".to_owned(), outputs);
    named
}

fn subject_of(level: &RuleLevel) -> String {
    format!("level of {}", Quoted(&level.rule))
}

fn subject_of_ignore(ignore: &Ignore) -> String {
    let cluster = ignore.cluster.as_ref().map(|it| format!(" of {it}"));
    let node = ignore.node.as_ref().map(|it| format!(" on the node {}", Quoted(it)));
    let of = [cluster, node].into_iter().flatten().collect::<String>();
    format!("ignored findings of {}{of}", Quoted(&ignore.rule))
}

fn of_level(level: &RuleLevel) -> Control {
    let rank = rank(level.level);
    // The end of a stricter level is the end of nothing that is hidden.
    let until = level.until.filter(|_| rank < default_rank(&level.rule));
    let written = level.until.map(|it| format!(" until {it}")).unwrap_or_default();
    let written = format!("{}{written}", level.level);
    Control::new([written], Some(level.place.clone()), ControlValue::Level(rank, until))
}

fn rank(level: Level) -> u8 {
    level.severity().map_or(0, rank_of)
}

fn rank_of(severity: Severity) -> u8 {
    match severity {
        Severity::Notice => 1,
        Severity::Warning => 2,
        Severity::Error => 3,
    }
}

/// Returns the rank of a rule without a level in the config: the lowest of all rules with a code.
fn default_rank(rule: &str) -> u8 {
    let rules = rules::find(rule).into_iter();
    rules.map(|it| rank_of(it.severity)).min().unwrap_or_default()
}

/// Returns whether an old entry hides everything that a new one does, for as long.
fn covers(old: &Ignore, new: &Ignore) -> bool {
    let is_as_long = |old: Option<Date>, new: Option<Date>| {
        old.is_none_or(|old| new.is_some_and(|new| new <= old))
    };
    old.rule == new.rule
        && (old.cluster.is_none() || old.cluster == new.cluster)
        && (old.node.is_none() || old.node == new.node)
        && is_as_long(old.until, new.until)
}
