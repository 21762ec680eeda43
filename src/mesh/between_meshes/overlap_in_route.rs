//! Overlaps in route: overlapping ranges of different meshes that one cluster would have to route.

use std::collections::BTreeSet;

use crate::diagnostic::{Finding, mistake};
use crate::name::ClusterName;
use crate::net::{self, Cidr};

use super::{MeshMember, MeshMembers};
use crate::mesh::overlap::remedy;
use crate::mesh::{Mesh, Range};

/// The number of overlaps that are reported.
const MAX_REPORTED: usize = 1000;

/// The number of overlaps seen by one cluster that are examined.
const COMPARED: usize = 10 * MAX_REPORTED;

/// A range and who declares it.
struct RoutedRange<'a> {
    member: MeshMember<'a>,
    range: &'a Range,
}

/// Returns every two ranges that share addresses and that some cluster, itself included, would see
/// both of, except those that a mesh by itself forbids.
pub(super) fn overlaps(meshes: &[Mesh], members: &MeshMembers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    for (target, memberships) in members.shared() {
        let claims = claims(&seen(target, memberships, meshes, members));
        let cidrs: Vec<Cidr> = claims.iter().map(|claim| claim.range.cidr).collect();
        let is_kept =
            |claim: usize| claims.get(claim).is_some_and(|it| it.member.entry.keeps(it.range));
        for (first, second) in net::overlaps(&cidrs, COMPARED, is_kept) {
            let (Some(first), Some(second)) = (claims.get(first), claims.get(second)) else {
                continue;
            };
            if findings.len() < MAX_REPORTED
                && !share_a_mesh(first, second, members)
                && known.insert((&first.range.place, &second.range.place))
            {
                findings.push(overlap(second, first, target));
            }
        }
    }
    findings
}

/// Returns the clusters that `target` sees, itself included, in order of meshes and entries.
fn seen<'a>(
    target: &'a ClusterName,
    memberships: &[MeshMember<'a>],
    meshes: &'a [Mesh],
    members: &MeshMembers<'a>,
) -> Vec<MeshMember<'a>> {
    let mut names = BTreeSet::from([target]);
    for mesh in memberships.iter().filter_map(|member| meshes.get(member.index)) {
        let linked = mesh.entries.iter().filter(|entry| mesh.topology.links(target, &entry.name));
        names.extend(linked.map(|entry| &entry.name));
    }
    // All entries of a cluster must be equal, so the first one is used.
    let mut seen: Vec<MeshMember> =
        names.into_iter().filter_map(|name| members.0.get(name)?.first().copied()).collect();
    seen.sort_by_key(|member| (member.index, member.position));
    seen
}

fn claims<'a>(seen: &[MeshMember<'a>]) -> Vec<RoutedRange<'a>> {
    seen.iter()
        .flat_map(|member| {
            let ranges = member.entry.networks.all().into_iter();
            ranges.map(|range| RoutedRange { member: *member, range })
        })
        .collect()
}

/// Ranges of one cluster, and of two that are in one mesh, are compared there.
fn share_a_mesh(first: &RoutedRange, second: &RoutedRange, members: &MeshMembers) -> bool {
    let meshes = |claim: &RoutedRange| -> BTreeSet<usize> {
        let all = members.0.get(&claim.member.entry.name);
        all.into_iter().flatten().map(|member| member.index).collect()
    };
    !meshes(first).is_disjoint(&meshes(second))
}

fn overlap(later: &RoutedRange, earlier: &RoutedRange, target: &ClusterName) -> Finding {
    let whose = |claim: &RoutedRange| {
        format!("`{}` (mesh `{}`)", claim.member.entry.name, claim.member.mesh.name)
    };
    let message = format!(
        "{} of {} overlaps {} of {}, and `{target}` sees both",
        later.range.cidr,
        whose(later),
        earlier.range.cidr,
        whose(earlier),
    );
    let label = |claim: &RoutedRange| format!("of `{}`", claim.member.entry.name);
    Finding::new(&mistake::OVERLAPPING_RANGES, message)
        .at(later.range.place.clone(), label(later))
        .at(earlier.range.place.clone(), label(earlier))
        .help(remedy(later.range, earlier.range))
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::{mesh, report};

    #[test]
    fn a_hub_cannot_see_one_range_twice() {
        let one = mesh("m", &["hub: 10.0.0.0/16", "a: 10.1.0.0/16"]);
        let two = mesh("k", &["hub: 10.0.0.0/16", "b: 10.1.128.0/17"]);
        insta::assert_snapshot!(report(&format!("{one}---\n{two}")), @"
        error[overlapping-ranges]: 10.1.128.0/17 of `b` (mesh `k`) overlaps 10.1.0.0/16 of `a` (mesh `m`), and `hub` sees both
          15:36 | 10.1.128.0/17 | of `b`
          7:36 | 10.1.0.0/16 | of `a`
          help: correct the range that is wrong or too wide, or give one of the two clusters another one
        ");
    }

    #[test]
    fn every_cluster_in_several_meshes_is_asked() {
        let one = mesh("m", &["x: 10.0.0.0/16", "a: 10.1.0.0/16"]);
        let two = mesh("k", &["a: 10.1.0.0/16", "b: 10.0.1.0/24"]);
        let three = mesh("o", &["b: 10.0.1.0/24", "c: 10.1.0.0/16"]);
        insta::assert_snapshot!(report(&format!("{one}---\n{two}---\n{three}")), @"
        error[overlapping-ranges]: 10.0.1.0/24 of `b` (mesh `k`) overlaps 10.0.0.0/16 of `x` (mesh `m`), and `a` sees both
          15:36 | 10.0.1.0/24 | of `b`
          6:36 | 10.0.0.0/16 | of `x`
          help: correct the range that is wrong or too wide, or give one of the two clusters another one
        error[overlapping-ranges]: 10.1.0.0/16 of `c` (mesh `o`) overlaps 10.1.0.0/16 of `a` (mesh `m`), and `b` sees both
          23:36 | 10.1.0.0/16 | of `c`
          7:36 | 10.1.0.0/16 | of `a`
          help: correct the range that is wrong or too wide, or give one of the two clusters another one
        ");
    }

    #[test]
    fn strangers_may_use_the_same_range() {
        let one = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        let two = mesh("k", &["c: 10.0.0.0/16", "d: 10.1.0.0/16"]);
        assert_eq!(report(&format!("{one}---\n{two}")), "");
    }

    #[test]
    fn what_one_mesh_forbids_is_reported_there_only() {
        let one = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        let two = mesh("k", &["a: 10.0.0.0/16", "c: 10.0.0.0/16"]);
        let report = report(&format!("{one}---\n{two}"));
        assert_eq!(report.matches("overlaps").count(), 1, "{report}");
    }
}
