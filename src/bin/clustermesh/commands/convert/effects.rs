//! The effects of the form of entries on what is rendered.

use std::collections::{BTreeMap, BTreeSet};

use clustermesh::diagnostic::bare;
use clustermesh::fleet::{Fleet, Member};
use clustermesh::membership::ExcludedReason;
use clustermesh::net::Cidr;
use clustermesh::{rules, text};

/// The nodes of a cluster that are left out, with the reasons.
type ExcludedNodes<'m> = BTreeMap<&'m str, &'m ExcludedReason>;

/// Returns how another form of the same entries changes what is rendered: nodes that are left out, and the
/// owners of ranges.
pub(super) fn effects(before: &Fleet, after: &Fleet) -> Vec<String> {
    let members = before.members().iter().zip(after.members());
    members
        .flat_map(|(old, new)| [nodes(old, new), ranges(old, new)].concat())
        .collect()
}

/// Lists the nodes that only one of the forms leaves out.
fn nodes(old: &Member, new: &Member) -> Vec<String> {
    let cluster = &new.entry.name;
    let [had, has] = [old, new].map(excluded);
    let only = |all: &ExcludedNodes, others: &ExcludedNodes, verb: &str| -> Vec<String> {
        let only = all.iter().filter(|(node, _)| !others.contains_key(*node));
        only.map(|(node, reason)| {
            let (node, reason) = (bare(node), rules::excluded(reason));
            format!("{cluster}/{node} would {verb} left out: {reason}")
        })
        .collect()
    };
    [only(&has, &had, "be"), only(&had, &has, "no longer be")].concat()
}

fn excluded<'m>(member: &'m Member) -> ExcludedNodes<'m> {
    let excluded = member.membership.excluded.iter();
    excluded.map(|it| (it.node.as_str(), &it.reason)).collect()
}

/// Lists the ranges that belong to the nodes in one form and to the whole cluster in the other.
fn ranges(old: &Member, new: &Member) -> Vec<String> {
    let cluster = &new.entry.name;
    let shared =
        |member: &Member| -> BTreeSet<Cidr> { member.cluster.shared.iter().copied().collect() };
    let (had, has) = (shared(old), shared(new));
    let only = |all: &BTreeSet<Cidr>, others: &BTreeSet<Cidr>, owner: &str| {
        let only: Vec<&Cidr> = all.difference(others).collect();
        let listed = text::listed(&only);
        (!only.is_empty()).then(|| format!("{listed} of {cluster} would belong to {owner}"))
    };
    let to_nodes = only(&had, &has, "its nodes, and no longer to the whole cluster");
    let to_cluster = only(&has, &had, "the whole cluster, and no longer to its nodes");
    to_nodes.into_iter().chain(to_cluster).collect()
}
