//! Topology: who is linked to whom, among the clusters that are there.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Finding, Mistakes, Rule, mistake};
use crate::name::ClusterName;
use crate::place::Place;

use super::entry::Draft;
use super::group::unknown_cluster;
use super::mistakes::REMOVE_ONE;
use super::raw::{self, Mode};
use super::{Mesh, Topology};

impl Topology {
    /// Returns whether two different clusters see each other, if both have joined.
    pub fn links(&self, a: &ClusterName, b: &ClusterName) -> bool {
        match self {
            Self::FullMesh => true,
            Self::Hub(hubs) => hubs.contains(a) || hubs.contains(b),
            Self::Links(pairs) => {
                let (first, second) = if a < b { (a, b) } else { (b, a) };
                pairs.contains(&(first.clone(), second.clone()))
            }
        }
    }

    /// Returns whether all clusters are linked.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::FullMesh)
    }

    /// Returns whether a cluster is a hub.
    pub fn is_hub(&self, cluster: &ClusterName) -> bool {
        matches!(self, Self::Hub(hubs) if hubs.contains(cluster))
    }
}

impl Mesh {
    /// Returns the field that decides which of its clusters are linked, with its place.
    pub fn linking_field(&self) -> (&'static str, Place) {
        let topology = self.place.key("spec").key("topology");
        match self.topology {
            Topology::FullMesh => ("topology", topology),
            Topology::Hub(_) => ("hubs", topology.key("hubs")),
            Topology::Links(_) => ("links", topology.key("links")),
        }
    }
}

/// Returns the first mesh that has two clusters, if the topology of none links them.
pub fn separating<'m>(
    meshes: impl IntoIterator<Item = &'m Mesh>,
    one: &ClusterName,
    other: &ClusterName,
) -> Option<&'m Mesh> {
    let has = |mesh: &Mesh, name: &ClusterName| mesh.entries.iter().any(|it| it.name == *name);
    let mut with_both = meshes.into_iter().filter(|it| has(it, one) && has(it, other));
    let links = |it: &Mesh| it.topology.links(one, other);
    let first = with_both.next().filter(|it| !links(it))?;
    (!with_both.any(links)).then_some(first)
}

/// Returns the topology, unless something is wrong with it; either way `findings` gets all of its mistakes.
pub(super) fn topology(
    written: &raw::RawTopology,
    drafts: &[Draft],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Topology> {
    let mode = written.mode.unwrap_or_default();
    let before = findings.errors();
    for (field, there, wanted) in [
        ("hubs", written.hubs.is_some(), Mode::Hub),
        ("links", written.links.is_some(), Mode::Links),
    ] {
        findings.extend(mismatch(field, there, mode, wanted, place));
    }
    let mut members = TopologyMembers {
        known: drafts.iter().map(|draft| (&*draft.text, draft)).collect(),
        findings,
    };
    let hubs = members.hubs(written.hubs.as_deref(), &place.key("hubs"));
    let links = members.links(written.links.as_deref(), &place.key("links"));
    if mode == Mode::Links && findings.errors() == before {
        findings.extend(unlinked(drafts, &links, place));
    }
    if before < findings.errors() {
        return None;
    }
    match mode {
        Mode::FullMesh => Some(Topology::FullMesh),
        Mode::Hub => Some(Topology::Hub(hubs)),
        Mode::Links => Some(Topology::Links(links.pairs())),
    }
}

/// Reports a field without its mode, or a mode without its field.
fn mismatch(field: &str, there: bool, mode: Mode, wanted: Mode, place: &Place) -> Option<Finding> {
    let message = match (there, mode == wanted) {
        (true, false) => format!("`{field}` cannot be used with `mode: {mode:?}`"),
        (false, true) => format!("`mode: {mode:?}` needs `{field}`"),
        _ => return None,
    };
    // A mode that is misspelled counts as the default, which fits no other field.
    let diagnostic = Finding::new(&mistake::CONTRADICTING_FIELDS, message).shadow();
    Some(if there {
        diagnostic
            .at(place.key(field).named(), "")
            .help(format!("set `mode: {wanted:?}`, or remove `{field}`"))
    } else {
        diagnostic.at(place.key("mode"), "")
    })
}

/// The clusters that a topology may name.
struct TopologyMembers<'a> {
    known: BTreeMap<&'a str, &'a Draft>,
    findings: &'a mut Mistakes,
}

/// Links with the places where they were first written.
struct DeclaredLinks(BTreeMap<(ClusterName, ClusterName), Place>);

impl DeclaredLinks {
    fn pairs(self) -> BTreeSet<(ClusterName, ClusterName)> {
        self.0.into_keys().collect()
    }
}

impl TopologyMembers<'_> {
    fn hubs(&mut self, names: Option<&[String]>, place: &Place) -> BTreeSet<ClusterName> {
        let mut hubs: BTreeMap<ClusterName, Place> = BTreeMap::new();
        for (index, name) in names.unwrap_or_default().iter().enumerate() {
            let place = place.index(index);
            let Some(hub) = self.member(name, &place) else {
                continue;
            };
            if let Some(first) = hubs.get(&hub) {
                let message = format!("duplicate hub `{hub}`");
                self.findings.push(repeated(&mistake::DUPLICATE_HUB, &message, &place, first));
            } else {
                hubs.insert(hub, place);
            }
        }
        hubs.into_keys().collect()
    }

    fn links(&mut self, pairs: Option<&[[String; 2]]>, place: &Place) -> DeclaredLinks {
        let mut links: BTreeMap<(ClusterName, ClusterName), Place> = BTreeMap::new();
        for (index, [one, other]) in pairs.unwrap_or_default().iter().enumerate() {
            let place = place.index(index);
            let one = self.member(one, &place.index(0));
            let other = self.member(other, &place.index(1));
            let (Some(one), Some(other)) = (one, other) else {
                continue;
            };
            if one == other {
                let message = format!("`{one}` is linked to itself");
                self.findings.push(Finding::new(&mistake::UNKNOWN_CLUSTER, message).at(place, ""));
                continue;
            }
            let pair = if one < other { (one, other) } else { (other, one) };
            if let Some(first) = links.get(&pair) {
                let message = format!("`{}` and `{}` are linked twice", pair.0, pair.1);
                self.findings.push(repeated(&mistake::DUPLICATE_LINK, &message, &place, first));
            } else {
                links.insert(pair, place);
            }
        }
        DeclaredLinks(links)
    }

    fn member(&mut self, text: &str, place: &Place) -> Option<ClusterName> {
        if let Some(draft) = self.known.get(text) {
            return draft.name.clone();
        }
        let names = self.known.keys().copied();
        self.findings.push_with(&mistake::UNKNOWN_CLUSTER, || {
            unknown_cluster(text, place.clone(), names, "this mesh has no cluster")
        });
        None
    }
}

/// Reports the clusters without any link: they would get no Peers at all.
fn unlinked(drafts: &[Draft], links: &DeclaredLinks, place: &Place) -> Vec<Finding> {
    let linked: BTreeSet<&ClusterName> =
        links.0.keys().flat_map(|(one, other)| [one, other]).collect();
    let lonely = drafts
        .iter()
        .filter(|draft| draft.name.as_ref().is_some_and(|name| !linked.contains(name)));
    lonely
        .map(|draft| {
            let message =
                format!("`{}` is in no link, so no other cluster would reach it", draft.text);
            Finding::new(&mistake::UNKNOWN_CLUSTER, message)
                .at(draft.place.key("name"), "")
                .at(place.key("links").named(), "missing here")
                .help(format!("add `[{}, OTHER]` to `links`, or remove its entry", draft.text))
        })
        .collect()
}

fn repeated(rule: &'static Rule, message: &str, again: &Place, first: &Place) -> Finding {
    Finding::new(rule, message).at_both(again.clone(), first.clone()).help(REMOVE_ONE)
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::{mesh, report};

    fn with(topology: &str) -> String {
        let ranges = ["east: 10.0.0.0/16", "west: 10.1.0.0/16", "north: 10.2.0.0/16"];
        report(&format!("{}  topology: {topology}\n", mesh("m", &ranges)))
    }

    #[test]
    fn all_modes_work() {
        assert_eq!(with("{ mode: FullMesh }"), "");
        assert_eq!(with("{ mode: Hub, hubs: [east] }"), "");
        assert_eq!(with("{ mode: Links, links: [[east, west], [west, north]] }"), "");
        assert_eq!(with("{}"), "");
        assert_eq!(with("~"), "");
    }

    #[test]
    fn fields_and_mode_belong_together() {
        insta::assert_snapshot!(with("{ mode: Hub }"), @r"
        error[contradicting-fields]: `mode: Hub` needs `hubs`
          9:21 | Hub
        ");
        insta::assert_snapshot!(with("{ mode: Links, hubs: [east] }"), @r"
        error[contradicting-fields]: `hubs` cannot be used with `mode: Links`
          9:28 | hubs
          help: set `mode: Hub`, or remove `hubs`
        error[contradicting-fields]: `mode: Links` needs `links`
          9:21 | Links
        ");
        insta::assert_snapshot!(with("{ hubs: [east], links: [[east, west]] }"), @r"
        error[contradicting-fields]: `hubs` cannot be used with `mode: FullMesh`
          9:15 | hubs
          help: set `mode: Hub`, or remove `hubs`
        error[contradicting-fields]: `links` cannot be used with `mode: FullMesh`
          9:29 | links
          help: set `mode: Links`, or remove `links`
        ");
    }

    #[test]
    fn names_are_those_of_members() {
        insta::assert_snapshot!(with("{ mode: Hub, hubs: [East, east, south, east] }"), @"
        error[unknown-cluster]: this mesh has no cluster `East`
          9:33 | East
          help: did you mean `east`?
        error[unknown-cluster]: this mesh has no cluster `south`
          9:45 | south
          help: correct or remove `south`, or declare a cluster of this name; known clusters: `east`, `north`, `west`
        warning[duplicate-hub]: duplicate hub `east`
          9:52 | east | second here
          9:39 | east | first here
          help: remove one of the two
        ");
        insta::assert_snapshot!(with("{ mode: Links, links: [[east, wets], [nroth, far]] }"), @"
        error[unknown-cluster]: this mesh has no cluster `wets`
          9:43 | wets
          help: did you mean `west`?
        error[unknown-cluster]: this mesh has no cluster `nroth`
          9:51 | nroth
          help: did you mean `north`?
        error[unknown-cluster]: this mesh has no cluster `far`
          9:58 | far
          help: correct or remove `far`, or declare a cluster of this name; known clusters: `east`, `north`, `west`
        ");
    }

    #[test]
    fn links_join_two_and_leave_nobody_out() {
        insta::assert_snapshot!(with("{ mode: Links, links: [[east, east], [east, west]] }"), @r"
        error[unknown-cluster]: `east` is linked to itself
          9:36 | [east, east]
        ");
        insta::assert_snapshot!(with("{ mode: Links, links: [[east, west], [west, east]] }"), @"
        warning[duplicate-link]: `east` and `west` are linked twice
          9:50 | [west, east] | second here
          9:36 | [east, west] | first here
          help: remove one of the two
        error[unknown-cluster]: `north` is in no link, so no other cluster would reach it
          8:15 | north
          9:28 | links | missing here
          help: add `[north, OTHER]` to `links`, or remove its entry
        ");
    }
}
