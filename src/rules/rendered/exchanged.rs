//! Exchanged keys: two Peers of which each would get the key of the other.

use std::collections::BTreeMap;

use super::{CHANGED_KEY, new_key, within};
use crate::diagnostic::Severity;
use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::rules::{Finding, bare};
use crate::tree_diff::{Case, Renamed};

/// Two keys that get the names of each other.
type ExchangedKeys<'c> = [&'c Case<Renamed>; 2];

/// Returns the pairs of keys that are exchanged in the same targets.
pub(super) fn pairs(renamed: &[Case<Renamed>]) -> Vec<ExchangedKeys<'_>> {
    let by_names: BTreeMap<[&str; 2], &Case<Renamed>> =
        renamed.iter().map(|it| ([it.what.from.as_str(), it.what.to.as_str()], it)).collect();
    let pairs = by_names.iter().filter(|it| it.0[0] < it.0[1]).filter_map(|([from, to], one)| {
        let other = by_names.get(&[*to, *from])?;
        (one.targets == other.targets).then_some([*one, *other])
    });
    pairs.collect()
}

/// Returns the finding about two such keys.
pub(super) fn finding(pair: &ExchangedKeys, fleet: &Fleet) -> Finding {
    let [one, other] = pair;
    let message = format!(
        "Peers {} and {} would exchange their keys {}",
        bare(&one.what.to),
        bare(&other.what.to),
        within(&one.targets)
    );
    let is_external = pair.iter().all(|it| ClusterName::is_external_text(&it.what.source));
    let help = if is_external {
        "exchange the two `publicKey` in the mesh, unless the hosts exchanged their keys"
    } else {
        "expected if the two nodes exchanged their names; otherwise find out who changed the keys"
    };
    let places = pair.map(|it| (new_key(fleet, &it.what.source, &it.what.node), "the new key"));
    let mut finding = Finding::on_named(&CHANGED_KEY, &one.what.source, message);
    finding.severity = Severity::Warning;
    finding.at(one.place.clone(), "").at_each(places).of_name(&other.what.source).help(help)
}
