//! What an expectation means: which addresses of which clusters.

use super::Side;
use crate::expectations::{Expectation, Selection};
use crate::net::Family;
use crate::proof::fabric::Site;
use crate::proof::prefixes::Span;
use crate::proof::reach::{Parcel, of_nodes, parcels};
use crate::proof::trace::Class;

/// Which addresses of a parcel are meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Part {
    /// None of them.
    None,
    /// All of them.
    Whole,
    /// These, which lie in it and apart.
    Spans(Vec<Span>),
}

/// What there is in a cluster.
pub(super) struct Stock {
    /// What is sent to and from.
    pub(super) ready: Vec<Parcel>,
    /// What would be, if Kilo counted its node.
    pub(super) unready: Vec<Parcel>,
}

impl Stock {
    pub(super) fn of(site: &Site) -> Self {
        Self {
            ready: parcels(site),
            unready: of_nodes(site, false),
        }
    }
}

/// What one side of an expectation means.
pub(super) struct Meant<'m> {
    selection: &'m Selection,
    /// The ranges, of two that meet the wider only.
    spans: Vec<Span>,
    is_sender: bool,
}

impl<'m> Meant<'m> {
    pub(super) fn by(expectation: &'m Expectation, side: Side) -> Self {
        let selection = side.of(expectation);
        let mut spans: Vec<Span> = selection.addresses.iter().map(|it| Span::of(*it)).collect();
        spans.sort_by_key(|it| (it.family, it.first, std::cmp::Reverse(it.last)));
        spans.dedup_by(|inner, outer| outer.holds(*inner));
        Self {
            selection,
            spans,
            is_sender: side == Side::From,
        }
    }

    /// Returns which addresses of a parcel of a cluster are meant.
    pub(super) fn part(&self, site: &Site, parcel: &Parcel) -> Part {
        let class = parcel.owner.class();
        let is_class = match self.selection.class {
            Some(wanted) => class == Some(wanted.into()),
            None => class.is_some(),
        };
        let is_able = !self.is_sender || matches!(class, Some(Class::Pod | Class::Node));
        if !is_class || !is_able || !self.is_cluster(site) || !self.is_node(site, parcel) {
            return Part::None;
        }
        if self.spans.is_empty() || self.spans.iter().any(|it| it.holds(parcel.span)) {
            return Part::Whole;
        }
        let common = self.spans.iter().filter_map(|it| it.common(parcel.span));
        let common: Vec<Span> = common.collect();
        if common.is_empty() {
            return Part::None;
        }
        Part::Spans(common)
    }

    fn is_cluster(&self, site: &Site) -> bool {
        let cluster = self.selection.cluster.as_ref();
        cluster.is_none_or(|it| it == site.cluster)
    }

    fn is_node(&self, site: &Site, parcel: &Parcel) -> bool {
        let Some(selector) = &self.selection.nodes else {
            return true;
        };
        let node = parcel.owner.node();
        let node = node.and_then(|it| site.snapshot.nodes.get(it));
        node.is_some_and(|it| selector.matches(&it.labels))
    }

    /// Returns what is meant of some parcels of a cluster.
    pub(super) fn of(&self, site: &Site, parcels: &[Parcel]) -> Vec<Parcel> {
        let mut meant = Vec::new();
        for &parcel in parcels {
            match self.part(site, &parcel) {
                Part::None => {}
                Part::Whole => meant.push(parcel),
                Part::Spans(spans) => {
                    meant.extend(spans.into_iter().map(|span| Parcel { span, ..parcel }));
                }
            }
        }
        meant
    }
}

/// What of a cluster is meant by a side.
pub(super) struct Chosen {
    pub(super) ready: Vec<Parcel>,
    pub(super) unready: Vec<Parcel>,
}

impl Chosen {
    pub(super) fn all(&self) -> impl Iterator<Item = Parcel> {
        self.ready.iter().chain(&self.unready).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Returns how many of its parcels can be in one packet with `parcel`.
    pub(super) fn fitting(&self, parcel: Parcel) -> u64 {
        count(&self.ready, parcel.span.family) + count(&self.unready, parcel.span.family)
    }
}

pub(super) fn count(parcels: &[Parcel], family: Family) -> u64 {
    let fitting = parcels.iter().filter(|it| it.span.family == family);
    u64::try_from(fitting.count()).unwrap_or(u64::MAX)
}
