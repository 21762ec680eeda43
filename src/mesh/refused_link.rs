//! Links that a mesh has and a policy refuses.

use std::collections::BTreeMap;

use super::Mesh;
use crate::diagnostic::{Finding, Quoted};
use crate::name::ClusterName;
use crate::place::Place;
use crate::text::listed;

/// The links of a mesh that policies refuse: each cluster that refuses some, with those at the other end.
#[derive(Clone, Debug, Default)]
pub struct RefusedLinks(BTreeMap<ClusterName, BTreeMap<ClusterName, Place>>);

/// A link that a mesh has, and that one end refuses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusedLink {
    /// The cluster whose policy refuses it.
    pub by: ClusterName,
    /// The cluster at the other end.
    pub other: ClusterName,
    /// The field `acceptedClusters` of the policy.
    pub place: Place,
}

/// The ends of a link that refuse it: one, both, or none if the link is there or no mesh has it.
pub type Refusals = Vec<RefusedLink>;

impl RefusedLinks {
    /// Adds a link, given the field of the policy.
    pub fn add(&mut self, by: &ClusterName, other: &ClusterName, place: Place) {
        self.0.entry(by.clone()).or_default().insert(other.clone(), place);
    }

    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = RefusedLink> {
        self.0.iter().flat_map(|(by, others)| others.iter().map(move |it| (by, it))).map(
            |(by, (other, place))| RefusedLink {
                by: by.clone(),
                other: other.clone(),
                place: place.clone(),
            },
        )
    }

    pub(super) fn contains(&self, one: &ClusterName, other: &ClusterName) -> bool {
        self.place(one, other).or_else(|| self.place(other, one)).is_some()
    }

    fn place(&self, by: &ClusterName, other: &ClusterName) -> Option<&Place> {
        self.0.get(by)?.get(other)
    }
}

/// Returns which ends refuse to exchange Peers by the first mesh whose link between two clusters is refused.
pub fn refusals<'m>(
    meshes: impl IntoIterator<Item = &'m Mesh>,
    one: &ClusterName,
    other: &ClusterName,
) -> Refusals {
    let of_mesh = |mesh: &Mesh| {
        let refused = [(one, other), (other, one)].into_iter().filter_map(|(by, other)| {
            let place = mesh.refused.place(by, other)?.clone();
            let (by, other) = (by.clone(), other.clone());
            Some(RefusedLink { by, other, place })
        });
        Some(refused.collect::<Refusals>()).filter(|it| !it.is_empty())
    };
    meshes.into_iter().find_map(of_mesh).unwrap_or_default()
}

/// Returns the files of the policies that refuse, such as "`policies/west.yaml` refuses the link"; nothing if none does.
pub fn refusing(refusals: &[RefusedLink]) -> Option<String> {
    let files = listed(refusals.iter().map(|it| Quoted(&it.place.source)));
    match refusals {
        [] => None,
        [_] => Some(format!("{files} refuses the link")),
        _ => Some(format!("{files} refuse the link")),
    }
}

/// Returns what makes the policies accept the link, such as "add `east` to `acceptedClusters` in `policies/west.yaml`".
pub fn acceptance(refusals: &[RefusedLink]) -> String {
    let additions = refusals.iter().map(|it| {
        let file = Quoted(&it.place.source);
        format!("add `{}` to `acceptedClusters` in {file}", it.other)
    });
    additions.collect::<Vec<_>>().join(" and ")
}

/// Adds the places of the policies to a finding.
pub fn at_policies(finding: Finding, refusals: &[RefusedLink]) -> Finding {
    let places = refusals.iter().map(|it| it.place.clone());
    finding.at_each(places.map(|it| (it, "refuses the link")))
}
