//! Rights: what of the addresses that a hostile cluster holds it declares itself.

use super::far_end::HeldPeer;
use super::{Hold, Whose};
use crate::agent::fabric::{Fabric, Owner, Site, SiteId};
use crate::net::prefixes::{Prefixes, Span};

/// The rightful owners of addresses.
pub(super) struct Rights<'f, 'a> {
    declared: Prefixes<()>,
    others: Vec<(SiteId, &'f Site<'a>)>,
}

impl<'f, 'a> Rights<'f, 'a> {
    pub(super) fn new(fabric: &'f Fabric<'a>, number: SiteId, hostile: &Site) -> Self {
        let declared = hostile.entry.networks.all().into_iter();
        let others = fabric.sites.numbered();
        Self {
            declared: Prefixes::union(declared.map(|it| it.cidr)),
            others: others
                .filter(|it| it.0 != number)
                .map(|(number, site)| (number, &**site))
                .collect(),
        }
    }

    /// Splits addresses by those whose they should be.
    pub(super) fn split(&self, held: Vec<HeldPeer>) -> Vec<Hold> {
        let mut holds: Vec<Hold> = Vec::new();
        for HeldPeer { span, claim, is_certain } in held {
            for (span, whose) in self.whose(span) {
                let next = Hold { span, claim, is_certain, whose };
                match holds.last_mut() {
                    Some(last) if last.is_continued_by(&next) => last.span.last = next.span.last,
                    _ => holds.push(next),
                }
            }
        }
        holds
    }

    fn whose(&self, span: Span) -> Vec<(Span, Whose)> {
        if self.declared.around(span).next().is_some() {
            return vec![(span, Whose::Declared)];
        }
        let declared = self.declared.across(span);
        let owned = self.others.iter().flat_map(|it| it.1.owned().across(span));
        let pieces = span.cut(declared.chain(owned)).into_iter();
        pieces.map(|span| (span, self.whose_piece(span))).collect()
    }

    fn whose_piece(&self, span: Span) -> Whose {
        if self.declared.around(span).next().is_some() {
            return Whose::Declared;
        }
        let others = self.others.iter();
        let owners: Vec<(SiteId, Owner)> = others
            .filter_map(|(number, site)| {
                let slot = site.owned().around(span).next()?;
                Some((*number, *site.owned().at(slot).1.first()?))
            })
            .collect();
        if owners.is_empty() { Whose::Nobody } else { Whose::Others(owners) }
    }
}

impl Hold {
    fn is_continued_by(&self, next: &Self) -> bool {
        self.span.family == next.span.family
            && self.span.last.checked_add(1) == Some(next.span.first)
            && (self.claim, self.is_certain) == (next.claim, next.is_certain)
            && self.whose == next.whose
    }
}
