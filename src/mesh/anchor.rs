//! Anchors: which nodes are to carry what belongs to a cluster as a whole.

use std::collections::BTreeMap;

use crate::diagnostic::{Finding, Mistakes, Quoted, Severity, mistake};
use crate::net::Cidr;
use crate::place::Place;

use super::mistakes::REMOVE_ONE;
use super::networks::{DeclaredNetworks, any_range, list};
use super::raw::{self, COUNTS};
use super::{Advertise, Networks, Range};

/// The nodes that carry some ranges.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Anchor {
    /// The ranges, each as it is declared; none for all that no other anchor names.
    pub ranges: Option<Vec<Cidr>>,
    /// The nodes, the best first.
    pub nodes: Vec<Named>,
    /// Over how many nodes each range is spread, as a power of two.
    pub spread: u8,
    /// The anchor.
    pub place: Place,
}

impl Anchor {
    /// Returns the anchor for a range: the one that names it, else the one without ranges.
    pub fn of(anchors: &[Self], range: Cidr) -> Option<&Self> {
        let lists = |it: &&Self| it.ranges.as_ref().is_some_and(|it| it.contains(&range));
        anchors.iter().find(lists).or_else(|| anchors.iter().find(|it| it.ranges.is_none()))
    }
}

/// A node by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The line with the name.
    pub place: Place,
}

/// Returns the anchors of an entry, or reports what is wrong with them.
pub(super) fn anchors(
    written: Vec<raw::RawAnchor>,
    advertise: Advertise,
    declared: &DeclaredNetworks,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<Anchor>> {
    let mut named = BTreeMap::new();
    let anchors: Vec<Option<Anchor>> = written
        .into_iter()
        .enumerate()
        .map(|(index, written)| {
            let place = place.index(index);
            let ranges = ranges(&written, advertise, declared, &place, findings);
            let is_new = once(&mut named, ranges.as_ref(), &place, findings);
            let spread = spread(written.count, &place, findings);
            let nodes = nodes(written.nodes, &place.key("nodes"), findings);
            let ranges: Vec<Cidr> = ranges?.into_iter().map(|it| it.cidr).collect();
            Some(Anchor {
                ranges: Some(ranges).filter(|it| !it.is_empty()),
                nodes: nodes.filter(|_| is_new)?,
                spread: spread?,
                place,
            })
        })
        .collect();
    anchors.into_iter().collect()
}

/// Returns the ranges of an anchor, each of which one node can carry for the whole cluster; none if
/// the field is missing, because it is never an empty list.
fn ranges(
    written: &raw::RawAnchor,
    advertise: Advertise,
    declared: &DeclaredNetworks,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<Range>> {
    let Some(texts) = &written.ranges else {
        return Some(Vec::new());
    };
    let place = place.key("ranges");
    let ranges = list(texts, &place, findings, |text, place, findings| {
        let range = any_range(text, place, findings)?;
        if is_shared(range.cidr, advertise, declared) {
            return Some(range);
        }
        let is_declared = declared.ranges.iter().any(|it| it.cidr == range.cidr);
        findings.push(undeclared(&range, declared));
        // It has no effect, so that `advertise` can be switched alone.
        is_declared.then_some(range)
    });
    ranges.into_iter().collect()
}

/// Returns whether a range is declared for the cluster as a whole. If the declaration has mistakes,
/// any of its ranges may have been meant.
fn is_shared(cidr: Cidr, advertise: Advertise, declared: &DeclaredNetworks) -> bool {
    let mut ranges: Box<dyn Iterator<Item = &Range>> = match &declared.networks {
        Some(networks @ Networks::Typed { services, additional, .. }) => {
            let carried = advertise.anchored_pods(networks).iter();
            let carried = carried.chain(advertise.anchored_subnet(networks));
            Box::new(services.iter().chain(additional).chain(carried))
        }
        Some(Networks::Flat { .. }) | None => Box::new(declared.ranges.iter()),
    };
    ranges.any(|range| range.cidr == cidr)
}

/// Reports a range in an anchor of which each node carries its own part, unless `advertise` has a value.
pub(crate) fn without_effect(
    range: &Range,
    declared: &Range,
    what: &str,
    advertised: Option<&str>,
) -> Finding {
    let message = format!(
        "{} has no effect in `anchors`, because each node carries its own {what}",
        range.cidr
    );
    let mut finding = Finding::new(&mistake::INVALID_ANCHOR, message);
    finding.severity = Severity::Warning;
    let finding = finding.at(range.place.clone(), "").at(declared.place.clone(), "declared here");
    finding.help(match advertised {
        Some(value) => format!(
            "write `advertise: {{ {value} }}` if one location should carry the whole range, else remove the range here"
        ),
        None => "remove the range here".to_owned(),
    })
}

fn undeclared(range: &Range, declared: &DeclaredNetworks) -> Finding {
    let cidr = range.cidr;
    let mut around = declared.ranges.iter();
    let fields = match &declared.networks {
        Some(Networks::Typed { .. }) => "`serviceCIDR` or `additionalCIDRs`",
        _ => "`allowedNetworks`",
    };
    let message = format!("{cidr} is not declared in {fields}");
    let finding = Finding::new(&mistake::INVALID_ANCHOR, message).at(range.place.clone(), "");
    match around.find(|it| it.cidr.contains(cidr)) {
        Some(around) if around.cidr == cidr => {
            let (what, value) = match &declared.networks {
                Some(Networks::Typed { wireguard, .. }) if wireguard.cidr == cidr => {
                    ("address", "wireguardAddresses: Carrier")
                }
                _ => ("pod CIDR", "podCIDRs: Declared"),
            };
            without_effect(range, around, what, Some(value))
        }
        Some(around) => finding
            .at(around.place.clone(), "inside this range")
            .help("write the declared range, and use `count` to spread it over several nodes"),
        None => finding.help(format!(
            "write a range that is declared, declare {cidr} in {fields}, or remove it from `anchors`"
        )),
    }
}

/// Returns whether no anchor before has one of these ranges, or, as this one, all the others.
fn once(
    named: &mut BTreeMap<Option<Cidr>, Place>,
    ranges: Option<&Vec<Range>>,
    place: &Place,
    findings: &mut Mistakes,
) -> bool {
    let before = findings.len();
    let claims: Vec<(Option<Cidr>, Place)> = match ranges {
        Some(ranges) if ranges.is_empty() => vec![(None, place.clone())],
        Some(ranges) => {
            ranges.iter().map(|range| (Some(range.cidr), range.place.clone())).collect()
        }
        None => Vec::new(),
    };
    for (claim, place) in claims {
        if let Some(first) = named.get(&claim) {
            let message = match claim {
                Some(cidr) => format!("{cidr} is in two anchors"),
                None => "two anchors have no `ranges`".to_owned(),
            };
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            findings.push(finding.at_both(place, first.clone()).help(REMOVE_ONE));
        } else {
            named.insert(claim, place);
        }
    }
    findings.len() == before
}

fn spread(count: Option<u16>, place: &Place, findings: &mut Mistakes) -> Option<u8> {
    let count = count.unwrap_or(1);
    let spread = COUNTS.iter().zip(0..).find(|(it, _)| **it == count);
    if spread.is_none() {
        let below = COUNTS.iter().rfind(|it| **it < count).unwrap_or(&1);
        let message = format!("`count` must be a power of two, not `{count}`");
        findings.push(
            Finding::new(&mistake::INVALID_ANCHOR, message)
                .at(place.key("count"), "")
                .help(format!("write `{below}` or `{}`", 2 * below)),
        );
    }
    spread.map(|(_, spread)| spread)
}

fn nodes(names: Option<Vec<String>>, place: &Place, findings: &mut Mistakes) -> Option<Vec<Named>> {
    let before = findings.len();
    let mut first: BTreeMap<String, Place> = BTreeMap::new();
    let mut nodes = Vec::new();
    for (index, name) in names.unwrap_or_default().into_iter().enumerate() {
        let place = place.index(index);
        if let Some(first) = first.get(&name) {
            let message = format!("node {} is listed twice", Quoted(&name));
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            findings.push(finding.at_both(place, first.clone()).help(REMOVE_ONE));
            continue;
        }
        first.insert(name.clone(), place.clone());
        nodes.push(Named { name, place });
    }
    (findings.len() == before).then_some(nodes)
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn anchors_are_for_declared_ranges_each_once() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - name: a
      podCIDRs: [10.1.0.0/16]
      wireguardCIDR: 10.101.0.0/24
      serviceCIDR: 10.201.0.0/16
      additionalCIDRs: [10.111.0.0/24]
      anchors:
        - { ranges: [10.201.0.0/16, 10.1.0.0/16, 10.201.4.0/24, 10.9.0.0/16, 10.9.0.0/33] }
        - { ranges: [10.111.0.0/24], nodes: [n1, n2, n1], count: 3 }
        - { ranges: [10.111.0.0/24], nodes: [\"\\e[31m\", \"\\e[31m\"] }
        - { count: 256 }
        - {}
    - name: b
      allowedNetworks: [10.2.0.0/16, 10.102.0.0/24]
      anchors: [{ ranges: [10.102.0.9/24] }, { ranges: [10.2.4.0/24] }]
"), @r#"
        warning[invalid-anchor]: 10.1.0.0/16 has no effect in `anchors`, because each node carries its own pod CIDR
          13:37 | 10.1.0.0/16
          8:18 | 10.1.0.0/16 | declared here
          help: write `advertise: { podCIDRs: Declared }` if one location should carry the whole range, else remove the range here
        error[invalid-anchor]: 10.201.4.0/24 is not declared in `serviceCIDR` or `additionalCIDRs`
          13:50 | 10.201.4.0/24
          10:20 | 10.201.0.0/16 | inside this range
          help: write the declared range, and use `count` to spread it over several nodes
        error[invalid-anchor]: 10.9.0.0/16 is not declared in `serviceCIDR` or `additionalCIDRs`
          13:65 | 10.9.0.0/16
          help: write a range that is declared, declare 10.9.0.0/16 in `serviceCIDR` or `additionalCIDRs`, or remove it from `anchors`
        error[invalid-range]: invalid range: `33` is not a prefix length from 0 to 32
          13:78 | 10.9.0.0/33
          help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
        error[invalid-anchor]: `count` must be a power of two, not `3`
          14:66 | 3
          help: write `2` or `4`
        error[duplicate-item]: node `n1` is listed twice
          14:54 | n1 | second here
          14:46 | n1 | first here
          help: remove one of the two
        error[duplicate-item]: 10.111.0.0/24 is in two anchors
          15:22 | 10.111.0.0/24 | second here
          14:22 | 10.111.0.0/24 | first here
          help: remove one of the two
        error[duplicate-item]: node `\u{1b}[31m` is listed twice
          15:56 | "\e[31m" | second here
          15:46 | "\e[31m" | first here
          help: remove one of the two
        error[duplicate-item]: two anchors have no `ranges`
          17:11 | {} | second here
          16:11 | { count: 256 } | first here
          help: remove one of the two
        warning[host-bits]: `10.102.0.9/24` has host bits set; clustermesh reads it as 10.102.0.0/24
          20:28 | 10.102.0.9/24
          help: write `10.102.0.0/24`
        error[invalid-anchor]: 10.2.4.0/24 is not declared in `allowedNetworks`
          20:57 | 10.2.4.0/24
          19:25 | 10.2.0.0/16 | inside this range
          help: write the declared range, and use `count` to spread it over several nodes
        "#);
    }

    #[test]
    fn structure_is_reported_as_everywhere() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, allowedNetworks: [10.1.0.0/16], anchors: [{ range: [], nodes: [], count: 0 }] }
    - { name: b, allowedNetworks: [10.2.0.0/16], anchors: [{ ranges: [], nodes: [''], count: 257 }] }
"), @"
        error[unknown-field]: unknown field `range`
          7:62 | range
          help: did you mean `ranges`?
        error[invalid-value]: `nodes` needs at least 1 item, not 0
          7:80 | []
        error[invalid-value]: `count` must be from 1 to 256, not `0`
          7:91 | 0
          help: write a number from 1 to 256
        error[invalid-value]: `ranges` needs at least 1 item, not 0
          8:70 | []
        error[invalid-value]: an item of `nodes` must not be empty
          8:82 | ''
        error[invalid-value]: `count` must be from 1 to 256, not `257`
          8:94 | 257
          help: write a number from 1 to 256
        ");
    }
}
