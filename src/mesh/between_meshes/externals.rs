//! External peers: what those of all meshes must not have in common with clusters and with each other.

use std::collections::BTreeMap;

use crate::diagnostic::{Finding, mistake};
use crate::mesh::{Entry, ExternalPeer, Mesh, Range};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::wireguard::text_of_key;

/// A range, and whose it is.
type DeclaredRange<'a> = (&'a Entry, &'a Range);

pub(super) fn check(meshes: &[Mesh]) -> Vec<Finding> {
    let externals: Vec<&ExternalPeer> = meshes.iter().flat_map(|it| &it.externals).collect();
    if externals.is_empty() {
        return Vec::new();
    }
    let mut findings = repeated(&externals);
    let of_clusters: Vec<DeclaredRange> =
        meshes.iter().flat_map(|it| &it.entries).flat_map(declared).collect();
    let of_externals: Vec<DeclaredRange> =
        externals.iter().flat_map(|it| declared(&it.entry)).collect();
    // Those of clusters come before all of external peers.
    let ranges =
        of_clusters.into_iter().map(|it| (0, it)).chain((1..).zip(of_externals.iter().copied()));
    let ranges: Vec<(Cidr, (usize, DeclaredRange))> = ranges.map(|it| (it.1.1.cidr, it)).collect();
    let ranges = Prefixes::new(ranges);
    for (number, &(entry, range)) in (1..).zip(&of_externals) {
        let (around, inside) = (ranges.containing(range.cidr), ranges.inside(range.cidr));
        if let Some((_, other)) = around.chain(inside).map(|it| it.1).find(|it| it.0 < number) {
            findings.push(overlap((entry, range), *other));
        }
    }
    findings
}

fn declared(entry: &Entry) -> impl Iterator<Item = DeclaredRange<'_>> {
    entry.networks.all().into_iter().map(move |range| (entry, range))
}

fn overlap((entry, range): DeclaredRange, (other, its): DeclaredRange) -> Finding {
    let message =
        format!("{} of `{}` overlaps {} of `{}`", range.cidr, entry.name, its.cidr, other.name);
    let help = if other.name.is_external() {
        "give each external peer addresses of its own".to_owned()
    } else {
        format!(
            "give the external peer addresses outside of all ranges that clusters declare, or remove {} from `{}` if no \
             address of that cluster is in it",
            its.cidr, other.name
        )
    };
    Finding::new(&mistake::OVERLAPPING_RANGES, message)
        .at(range.place.clone(), format!("of `{}`", entry.name))
        .at(its.place.clone(), format!("of `{}`", other.name))
        .help(help)
}

/// Returns the names and keys that external peers have in common. Those of one mesh have different names.
fn repeated(externals: &[&ExternalPeer]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for &it in externals {
        let name = it.entry.name.external().unwrap_or_default();
        let first: &ExternalPeer = names.entry(name).or_insert(it);
        let is_of_mesh = first.entry.place.document == it.entry.place.document
            && first.entry.place.source == it.entry.place.source;
        if !is_of_mesh {
            let message = format!("duplicate external peer `{name}`");
            let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
            let place = |it: &ExternalPeer| it.entry.place.key("name");
            findings.push(finding.at_both(place(it), place(first)).help("rename one of the two"));
        }
        let key = text_of_key(it.key.as_bytes());
        let first: &ExternalPeer = keys.entry(key).or_insert(it);
        if first.entry.place != it.entry.place {
            let other = &first.entry.name;
            let message = format!("`{}` has the same public key as `{other}`", it.entry.name);
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            let place = |it: &ExternalPeer| it.entry.place.key("publicKey");
            let finding = finding.at_both(place(it), place(first));
            findings.push(finding.help("create a key for each host: `wg genkey | wg pubkey`"));
        }
    }
    findings
}
