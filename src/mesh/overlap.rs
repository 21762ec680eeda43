//! Overlaps: ranges of one mesh that share addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::diagnostic::{Finding, Quoted, mistake};
use crate::net::{self, Cidr};
use crate::place::Place;
use crate::text::{NAMED, listed};

use super::Range;
use super::entry::Draft;
use super::mistakes::REMOVE_ONE;

/// The number of comparisons for equal ranges. To compare all repetitions of a range with each other
/// would take long, and the first ones show the mistake.
const REPETITIONS: usize = 4;

/// The number of overlaps of one mesh that are reported.
const MAX_REPORTED: usize = 1000;

/// Kilo's default range of WireGuard addresses.
const KILO_SUBNET: &str = "10.4.0.0/16";

struct OverlapClaim<'a> {
    whose: &'a Draft,
    range: &'a Range,
}

/// Returns findings about all pairs of a mesh's ranges that share addresses, those of one cluster included. Two clusters that
/// keep Kilo's subnets to themselves may have the same one.
pub(super) fn within(drafts: &[Draft]) -> Vec<Finding> {
    let mut seen: BTreeMap<(Cidr, bool), usize> = BTreeMap::new();
    let mut claims = Vec::new();
    let mut names = BTreeSet::new();
    // A second entry with the same name is reported as such.
    for whose in drafts.iter().filter(|it| names.insert(&it.text)) {
        for range in &whose.declared.ranges {
            let times = seen.entry((range.cidr, whose.keeps(range))).or_default();
            *times += 1;
            if *times <= REPETITIONS {
                claims.push(OverlapClaim { whose, range });
            }
        }
    }
    let cidrs: Vec<Cidr> = claims.iter().map(|claim| claim.range.cidr).collect();
    let is_kept = |claim: usize| {
        let claim = claims.get(claim);
        claim.is_some_and(|it| it.whose.keeps(it.range))
    };
    let pairs = net::overlaps(&cidrs, MAX_REPORTED, is_kept);
    let pairs: Vec<[&OverlapClaim; 2]> = pairs
        .into_iter()
        .filter_map(|(first, second)| Some([claims.get(first)?, claims.get(second)?]))
        .collect();
    let (copies, pairs) = copies(&pairs);
    // A range that contains several others was probably declared too wide, which is one mistake.
    let mut inner_of: BTreeMap<&Place, Vec<&OverlapClaim>> = BTreeMap::new();
    for [outer, inner] in pairs.iter().filter_map(contained) {
        inner_of.entry(&outer.range.place).or_default().push(inner);
    }
    let mut findings = copies;
    for pair in &pairs {
        let [earlier, later] = pair;
        let outer = contained(pair).map(|it| it[0]);
        let several = outer.and_then(|it| Some((it, inner_of.get_mut(&it.range.place)?)));
        match several {
            // The first of its pairs reports all of them.
            Some((outer, inner)) if inner.len() != 1 => {
                let inner = mem::take(inner);
                findings.extend((!inner.is_empty()).then(|| too_wide(outer, &inner)));
            }
            _ => findings.push(overlap_finding(later, earlier)),
        }
    }
    findings
}

/// Returns a finding for each entry that has the ranges of another one, and the pairs of other ranges.
fn copies<'c>(
    pairs: &[[&'c OverlapClaim<'c>; 2]],
) -> (Vec<Finding>, Vec<[&'c OverlapClaim<'c>; 2]>) {
    let mut equal: BTreeMap<[&Place; 2], Vec<[&OverlapClaim; 2]>> = BTreeMap::new();
    for pair in pairs.iter().filter(|[earlier, later]| earlier.range.cidr == later.range.cidr) {
        equal.entry(pair.map(|it| &it.whose.place)).or_default().push(*pair);
    }
    equal.retain(|[earlier, later], pairs| {
        let all = pairs.first().map(|it| it[1].whose.declared.ranges.len());
        earlier != later && 1 < pairs.len() && all == Some(pairs.len())
    });
    let is_copied = |pair: &[&OverlapClaim; 2]| equal.contains_key(&pair.map(|it| &it.whose.place));
    let rest = pairs.iter().filter(|it| !is_copied(it)).copied().collect();
    (equal.values().filter_map(|it| copy(it)).collect(), rest)
}

fn copy(pairs: &[[&OverlapClaim; 2]]) -> Option<Finding> {
    let [earlier, later] = pairs.first()?;
    let (whose, others) = (Quoted(&later.whose.text), Quoted(&earlier.whose.text));
    let ranges = listed(pairs.iter().map(|it| it[1].range.cidr));
    let message = format!("{whose} declares the same ranges as {others}: {ranges}");
    let places = pairs.iter().take(NAMED).flat_map(|[earlier, later]| {
        let of =
            |it: &OverlapClaim| (it.range.place.clone(), format!("of {}", Quoted(&it.whose.text)));
        [of(later), of(earlier)]
    });
    Some(Finding::new(&mistake::OVERLAPPING_RANGES, message).at_each(places).help(format!(
        "write the ranges of {whose}; if both clusters use these addresses, see `docs/how-to/same-ranges.md`"
    )))
}

/// Returns the range of two that contains the other one, and that one.
fn contained<'c>(pair: &[&'c OverlapClaim<'c>; 2]) -> Option<[&'c OverlapClaim<'c>; 2]> {
    let [one, other] = *pair;
    let is_first = one.range.cidr.contains(other.range.cidr);
    let [outer, inner] = if is_first { [one, other] } else { [other, one] };
    (outer.range.cidr != inner.range.cidr).then_some([outer, inner])
}

/// Reports a range that contains several others.
fn too_wide(outer: &OverlapClaim, inner: &[&OverlapClaim]) -> Finding {
    let cidr = outer.range.cidr;
    let named = |it: &&OverlapClaim| format!("{} of {}", it.range.cidr, Quoted(&it.whose.text));
    let ranges = listed(inner.iter().map(named));
    let message = format!("{cidr} overlaps {} other ranges: {ranges}", inner.len());
    let others = inner.iter().take(NAMED);
    Finding::on_named(&mistake::OVERLAPPING_RANGES, &outer.whose.text, message)
        .at(outer.range.place.clone(), "contains the others")
        .at_each(
            others.map(|it| (it.range.place.clone(), format!("of {}", Quoted(&it.whose.text)))),
        )
        .help(format!("narrow {cidr} to the addresses that {} uses", Quoted(&outer.whose.text)))
}

fn overlap_finding(later: &OverlapClaim, earlier: &OverlapClaim) -> Finding {
    let (own, other) = (later.range.cidr, earlier.range.cidr);
    let (whose, others) = (Quoted(&later.whose.text), Quoted(&earlier.whose.text));
    let same_cluster = later.whose.place == earlier.whose.place;
    let message = if same_cluster && own == other {
        format!("duplicate range {own} of {whose}")
    } else {
        format!("{own} of {whose} overlaps {other} of {others}")
    };
    Finding::new(&mistake::OVERLAPPING_RANGES, message)
        .at(later.range.place.clone(), format!("of {whose}"))
        .at(earlier.range.place.clone(), format!("of {others}"))
        .help(if same_cluster {
            redundant(later.range, earlier.range)
        } else {
            remedy(later.range, earlier.range)
        })
}

/// Returns the remedy for two ranges of one cluster.
fn redundant(one: &Range, other: &Range) -> String {
    let (outer, inner) = if one.cidr.contains(other.cidr) { (one, other) } else { (other, one) };
    if field(one) != field(other) || !outer.cidr.contains(inner.cidr) {
        "correct one of the two: an address can be used for only one of them".to_owned()
    } else if outer.cidr == inner.cidr {
        REMOVE_ONE.to_owned()
    } else {
        format!("remove {}, which {} contains", inner.cidr, outer.cidr)
    }
}

/// Returns the remedy for ranges of two clusters.
pub(super) fn remedy(one: &Range, other: &Range) -> String {
    default_subnet(one.cidr, other.cidr).unwrap_or_else(|| {
        let fields = [field(one), field(other)];
        let help = if fields.iter().all(|it| it == "serviceCIDR") {
            "correct the range that is wrong; if both clusters use these addresses, remove `serviceCIDR` from \
             both: their pods still reach each other, but not each other's Services"
        } else if fields.iter().any(|it| it == "serviceCIDR") {
            "correct the range that is wrong or too wide, or remove `serviceCIDR` if other clusters need \
             not reach these Services"
        } else if fields.iter().all(|it| it == "podCIDRs") {
            "correct the range that is wrong or too wide; clusters whose nodes really use the same pod CIDR cannot be \
             joined: create one of them again with another `--cluster-cidr`"
        } else if fields.iter().any(|it| it == "podCIDRs") {
            "correct the range that is wrong or too wide: other uses of these addresses do not go together with pods that \
             have them"
        } else if fields.iter().all(|it| it == "additionalCIDRs") {
            "remove the range from `additionalCIDRs` of both clusters, or of the one that does not \
             have it"
        } else if fields.iter().all(|it| it == "wireguardCIDR") {
            "correct the range that is wrong; if both clusters use these addresses, start Kilo in one of the two with \
             another `--subnet`, and declare that range"
        } else {
            "correct the range that is wrong or too wide, or give one of the two clusters another one"
        };
        help.to_owned()
    })
}

/// Returns the field of a mesh in which a range is.
fn field(range: &Range) -> String {
    let steps = range.place.pointer.steps();
    let names = steps.filter(|it| !it.bytes().all(|byte| byte.is_ascii_digit()));
    names.last().unwrap_or_default()
}

/// Returns the remedy for two clusters that both have Kilo's default range.
fn default_subnet(own: Cidr, other: Cidr) -> Option<String> {
    (own == other && own.to_string() == KILO_SUBNET).then(|| {
        format!(
            "start Kilo in one of the two clusters with another `--subnet` than the default {KILO_SUBNET}, and declare \
             that range; or, with `wireguardCIDR`, write `wireguardAddresses: None` in `advertise` of both"
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::{mesh, report};

    #[test]
    fn subnets_that_clusters_keep_to_themselves_may_be_equal() {
        let entry = |name: &str, number: u8, advertise: &str| {
            format!(
                "{{ name: {name}, podCIDRs: [10.{number}.0.0/16], wireguardCIDR: 10.4.0.0/16, advertise: \
                 {{ wireguardAddresses: {advertise} }} }}"
            )
        };
        let report = |entries: [String; 3]| {
            let entries = entries.join(", ");
            report(&format!(
                "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec: {{ \
                 clusters: [{entries}] }}\n"
            ))
        };
        let (a, b) = (entry("a", 1, "None"), entry("b", 2, "None"));
        assert_eq!(report([a.clone(), b.clone(), entry("c", 3, "None")]), "");
        let one = report([a.clone(), b.clone(), entry("c", 3, "PerNode")]);
        assert_eq!(one.matches("10.4.0.0/16 of `c` overlaps").count(), 2, "{one}");
        let pods = report([a, b, entry("c", 4, "None")]);
        assert_eq!(pods.matches("overlaps 10.4.0.0/16").count(), 2, "{pods}");
        assert!(pods.contains("duplicate range 10.4.0.0/16 of `c`"), "{pods}");
    }

    #[test]
    fn every_pair_is_reported_and_a_range_that_is_too_wide_once() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, podCIDRs: [10.0.0.0/8, 11.0.0.0/16], wireguardCIDR: 11.0.0.0/16 }
    - { name: b, allowedNetworks: [10.4.0.0/16, 10.4.2.0/24] }
"), @"
        error[overlapping-ranges]: 10.0.0.0/8 overlaps 2 other ranges: 10.4.0.0/16 of `b`, 10.4.2.0/24 of `b`
          7:29 | 10.0.0.0/8 | contains the others
          8:36 | 10.4.0.0/16 | of `b`
          8:49 | 10.4.2.0/24 | of `b`
          help: narrow 10.0.0.0/8 to the addresses that `a` uses
        error[overlapping-ranges]: duplicate range 11.0.0.0/16 of `a`
          7:70 | 11.0.0.0/16 | of `a`
          7:41 | 11.0.0.0/16 | of `a`
          help: correct one of the two: an address can be used for only one of them
        error[overlapping-ranges]: 10.4.2.0/24 of `b` overlaps 10.4.0.0/16 of `b`
          8:49 | 10.4.2.0/24 | of `b`
          8:36 | 10.4.0.0/16 | of `b`
          help: remove 10.4.2.0/24, which 10.4.0.0/16 contains
        ");
    }

    #[test]
    fn two_clusters_with_kilo_s_default_are_reported_how_to_change_it() {
        insta::assert_snapshot!(report(&mesh("m", &["a: 10.4.0.0/16", "b: 10.4.0.0/16"])), @"
        error[overlapping-ranges]: 10.4.0.0/16 of `b` overlaps 10.4.0.0/16 of `a`
          7:36 | 10.4.0.0/16 | of `b`
          6:36 | 10.4.0.0/16 | of `a`
          help: start Kilo in one of the two clusters with another `--subnet` than the default 10.4.0.0/16, and declare that range; or, with `wireguardCIDR`, write `wireguardAddresses: None` in `advertise` of both
        ");
    }

    #[test]
    fn neighbours_are_fine() {
        let text = mesh("m", &["a: 10.0.0.0/17", "b: 10.0.128.0/17", "c: fd00::/48"]);
        assert_eq!(report(&text), "");
    }

    #[test]
    fn a_thousand_repetitions_do_not_take_for_ever() {
        let ranges = vec!["10.0.0.0/8"; 20_000].join(", ");
        let text = mesh("m", &[&format!("a: {ranges}"), "b: 11.0.0.0/8"]);
        assert_eq!(report(&text).matches("duplicate range ").count(), 6);
    }
}
