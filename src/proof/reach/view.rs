//! Views: everything about some addresses of one cluster that the way of a packet from another one to
//! them, or from them to it, hangs on.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ground::{Connected, Ground, Looks, Split};
use super::home::{Deliver, Plot};
use super::known::{Dialled, Known, Link};
use super::parcel::{Parcel, pieces};
use super::scene::Scene;
use crate::agent::model::{Holder, Tunnel};
use crate::agent::network::{At, Fabric, Holding, Owner, Site, SiteId, Sites};
use crate::agent::peer_set::{PeerId, Peers};
use crate::kilo::id::SegmentId;
use crate::kilo::own::Leader;
use crate::net::Family;
use crate::net::prefixes::Span;
use crate::packet::stays;
use crate::packet::trace::Class;

/// How one cluster sees the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Each of the clusters.
    pub(super) others: Sites<Arc<Sight>>,
    /// How packets end that leave the cluster on no node, where that is not the same on all of them.
    splits: Vec<Split>,
}

/// How one cluster sees another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// What is alike in it.
    pub(super) kin: Vec<Kin>,
    /// The place in `kin` of each of its parcels, in their order.
    kin_of: Vec<u32>,
    /// Whether no packet leaves for any of it.
    pub(super) is_kept: bool,
}

/// Addresses of one cluster that another one sees alike.
#[derive(Clone, Debug)]
pub(super) struct Kin {
    pub(super) class: Class,
    /// How each piece of them is seen, in the order of addresses.
    pub(super) views: Vec<View>,
    /// Whose they are.
    pub(super) parcels: Vec<Parcel>,
}

/// How a piece of a parcel is seen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct View {
    family: Family,
    select: Select,
    /// Whether packets for it leave the cluster that looks on no node.
    is_kept: bool,
    /// The tunnel that packets for it take.
    onward: Link,
    /// The tunnel with whoever speaks for it, in which its packets come.
    back: Link,
    /// Whether what comes in that tunnel is taken for its own.
    belief: Belief,
    deliver: Deliver,
    /// Whether whoever speaks for it calls others unasked.
    calls: bool,
    /// Whether it is certain who does.
    is_led: bool,
    /// Its segment, where addresses of several segments in one range may fare differently: how a contest
    /// comes out, or who else claims the range at home, is not the same to each.
    segment: Option<SegmentId>,
    /// A number of its own where nodes of the cluster that looks see it differently.
    unique: Option<usize>,
}

/// Whether the cluster that looks takes some addresses for those of whoever speaks for them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Belief {
    No,
    /// It is not certain who has this range there.
    Doubt(usize),
    Yes,
}

/// Where the cluster that looks would send a packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Select {
    NoRoute,
    Shadow,
    /// It leaves on no node, and how it ends is not the same on all of them: the number of the split.
    Split(usize),
    /// It is not certain who has this range.
    Contested(usize),
    /// More than one node has the key of this Peer.
    Shared(PeerId),
    Unknown(PeerId),
    Thief(PeerId),
    Right,
}

impl Seen {
    /// Looks at all clusters from one of them.
    pub(super) fn from(scene: &Scene, viewer: SiteId) -> Self {
        let fabric = scene.fabric;
        let site = fabric.site(viewer);
        let mut eye = Eye {
            fabric,
            site,
            viewer,
            known: OnceCell::new(),
            unique: 0,
            ground: Ground::default(),
        };
        let standpoint = scene.standpoint(viewer, site);
        let others = fabric.sites.map_ids(|number| {
            let (home, facts) = (fabric.site(number), &scene.homes[number]);
            if number == viewer {
                return Arc::default();
            }
            scene.alike(number, &standpoint, || {
                let mut sight = Sight::default();
                for plot in &facts.plots {
                    eye.sort((number, home), plot, &mut sight);
                }
                sight.is_kept = sight.kin.iter().all(Kin::is_kept);
                sight
            })
        });
        Self {
            others,
            splits: eye.ground.splits(),
        }
    }

    /// Returns some senders of the cluster that looks, put together where packets to addresses that are
    /// kept end alike.
    pub(super) fn split<'p>(&self, kin: &Kin, senders: &'p [Parcel]) -> Vec<Cow<'p, [Parcel]>> {
        let split = kin.views.iter().find_map(|view| match view.select {
            Select::Split(number) => self.splits.get(number),
            _ => None,
        });
        let Some(split) = split else {
            return vec![Cow::Borrowed(senders)];
        };
        let mut groups: BTreeMap<Option<&str>, Vec<Parcel>> = BTreeMap::new();
        for &sender in senders {
            let ending = sender.owner.node().and_then(|it| split[it]);
            groups.entry(ending).or_default().push(sender);
        }
        groups.into_values().map(Cow::Owned).collect()
    }
}

impl Sight {
    /// Returns the number of kinds of parcels.
    pub(crate) fn kinds(&self) -> usize {
        self.kin.len()
    }

    /// Returns the place among what is alike of the parcel of that number.
    pub(crate) fn kin_of(&self, parcel: usize) -> Option<usize> {
        usize::try_from(*self.kin_of.get(parcel)?).ok()
    }

    /// Returns whether nothing in it is known by a number of the cluster that looks, so that others may
    /// see the same.
    pub(super) fn is_portable(&self) -> bool {
        self.kin.iter().all(Kin::is_portable)
    }
}

impl Kin {
    /// Returns whether all nodes of the cluster that looks see it so.
    pub(super) fn is_uniform(&self) -> bool {
        self.views
            .iter()
            .all(|view| view.unique.is_none() && !matches!(view.select, Select::Split(_)))
    }

    /// Returns whether packets to it leave the cluster that looks on no node, whoever sends them.
    pub(super) fn is_kept(&self) -> bool {
        let is_split = |it: &View| matches!(it.select, Select::Split(_));
        self.views.iter().all(|it| it.is_kept)
            && (self.is_whole() || !self.views.iter().any(is_split))
    }

    /// Returns whether nothing changes within any of the parcels.
    pub(super) fn is_whole(&self) -> bool {
        self.views.len() == 1
    }

    pub(super) fn family(&self) -> Option<Family> {
        Some(self.views.first()?.family)
    }

    /// Returns whether nothing about it is known by a number of the cluster that looks, so that others may
    /// see the same.
    fn is_portable(&self) -> bool {
        self.views.iter().all(View::is_portable)
    }

    /// Returns whether packets go where they should as far as this side is concerned, and nothing about it
    /// is known by a number of either cluster.
    pub(super) fn is_plain(&self) -> bool {
        let mut views = self.views.iter();
        views.all(|it| {
            it.is_portable() && it.select == Select::Right && it.deliver == Deliver::Takes
        })
    }
}

impl View {
    fn is_portable(&self) -> bool {
        let is_numbered = |link| matches!(link, Link::One(Dialled::Loops(_)) | Link::Doubt(_));
        matches!(
            self.select,
            Select::NoRoute | Select::Shadow | Select::Right
        ) && !is_numbered(self.onward)
            && !is_numbered(self.back)
            && !matches!(self.belief, Belief::Doubt(_))
            && self.unique.is_none()
    }
}

/// The Peer that has some addresses, or why there is none.
type Selected = Result<PeerId, Select>;

/// Who looks.
struct Eye<'e, 'a> {
    fabric: &'e Fabric<'a>,
    site: &'e Site<'a>,
    viewer: SiteId,
    known: OnceCell<Peers<Known>>,
    unique: usize,
    ground: Ground,
}

impl Eye<'_, '_> {
    /// Puts a parcel to those that are seen like it.
    fn sort(&mut self, (number, home): (SiteId, &Site), plot: &Plot, sight: &mut Sight) {
        let span = plot.parcel.span;
        let looks = Looks::of(self.site, span);
        let is_whole = span.first == span.last || plot.is_whole && looks.is_whole();
        let (one, several);
        let views = if is_whole {
            one = [self.view((number, home), plot, (span, looks))];
            &one[..]
        } else {
            let mut views = Vec::new();
            for piece in pieces(self.site, home, span) {
                let looks = Looks::of(self.site, piece);
                views.push(self.view((number, home), plot, (piece, looks)));
            }
            several = views;
            &several[..]
        };
        let mut alike = sight.kin.iter();
        let alike = alike.position(|it| it.class == plot.class && it.views == views);
        let place = alike.unwrap_or(sight.kin.len());
        match sight.kin.get_mut(place) {
            Some(alike) => alike.parcels.push(plot.parcel),
            None => sight.kin.push(Kin {
                class: plot.class,
                views: views.to_vec(),
                parcels: vec![plot.parcel],
            }),
        }
        sight.kin_of.push(u32::try_from(place).unwrap_or(u32::MAX));
    }

    /// Returns what the cluster knows of each of its Peers.
    fn known(&self) -> &Peers<Known> {
        let all = || Known::all(self.fabric, self.viewer);
        self.known.get_or_init(all)
    }

    fn view(
        &mut self,
        (number, home): (SiteId, &Site),
        plot: &Plot,
        (span, looks): (Span, Looks),
    ) -> View {
        let is_claimed = looks.are_claimed(self.site);
        let (selected, held, mut is_uniform) = if is_claimed {
            self.selected(span, looks)
        } else {
            let kept = Err(self.ground.select((self.viewer, self.site), (span, looks)));
            (kept, kept, looks.are_rejected(self.site))
        };
        let mut onward = Link::None;
        // Who speaks for the addresses, as far as the cluster that looks is concerned.
        let mut speaker = plot.leader.map(|it| At {
            site: number,
            node: it.node(),
        });
        let leader = speaker;
        let select = match selected {
            Err(select) => select,
            Ok(peer) => {
                let known = self.known()[peer];
                is_uniform &= known.is_uniform;
                match known.holding {
                    Holding::One(at) if is_meant((number, home), plot, at) => {
                        (onward, speaker) = (known.link, Some(at));
                        Select::Right
                    }
                    Holding::One(_) => Select::Thief(peer),
                    Holding::Many => Select::Shared(peer),
                    Holding::Nobody => Select::Unknown(peer),
                }
            }
        };
        let is_alone = matches!(onward, Link::One(_) | Link::Silent);
        let (back, belief) = if is_alone && (leader.is_none() || leader == speaker) {
            (onward, Belief::Yes)
        } else {
            let (peer, link, is_same) = self.peer_of(leader, plot);
            is_uniform &= is_same;
            let belief = match held {
                Ok(holder) if peer == Some(holder) => Belief::Yes,
                Err(Select::Contested(slot)) => Belief::Doubt(slot),
                _ => Belief::No,
            };
            (link, belief)
        };
        let segment = || speaker.and_then(|it| home.segment(it.node));
        let leads = || segment().map(|it| home.leader(it));
        let unique = (!is_uniform).then(|| {
            self.unique += 1;
            self.unique
        });
        // Of what is kept no packet gets there.
        let deliver = plot.deliver.filter(|_| is_claimed).unwrap_or_else(|| {
            if is_claimed {
                Deliver::of(home, plot.segment.or_else(segment), plot.parcel, span)
            } else {
                Deliver::Takes
            }
        });
        let is_doubtful = matches!(select, Select::Contested(_))
            || [onward, back].iter().any(|it| matches!(it, Link::Doubt(_)))
            || matches!(belief, Belief::Doubt(_))
            || matches!(deliver, Deliver::Sends(_));
        View {
            family: span.family,
            select,
            is_kept: !is_claimed
                || unique.is_none() && matches!(select, Select::NoRoute | Select::Shadow),
            onward,
            back,
            belief,
            deliver,
            segment: plot.segment.filter(|_| is_doubtful),
            calls: speaker
                .map(|it| home.node(it.node))
                .is_some_and(|it| 0 < it.kilo.keepalive),
            is_led: !matches!(plot.leader.or_else(leads), Some(Leader::Ambiguous(_))),
            unique,
        }
    }

    /// Returns the Peer with the key of whoever leads the segment of a parcel, the tunnel, and whether
    /// all nodes see that alike.
    fn peer_of(&self, leader: Option<At>, plot: &Plot) -> (Option<PeerId>, Link, bool) {
        let peers = plot
            .key
            .map_or(&[][..], |key| self.site.model.peers_with(&key));
        match (peers.first(), leader) {
            (Some(&peer), Some(at)) => {
                let of = |peer| Link::of(self.fabric, self.site, peer, at);
                let are_uniform = peers.iter().all(|peer| of(*peer).1);
                (Some(peer), of(peer).0, are_uniform)
            }
            _ => (None, Link::None, true),
        }
    }

    /// Returns whether all nodes say the same of every Peer that may have these addresses, however
    /// contests come out.
    fn are_uniform(&self, span: Span) -> bool {
        let tunnels = &self.site.model.tunnels;
        let slots = tunnels.around(span).filter_map(|slot| tunnels.get(slot));
        let mut claims = slots.flat_map(|it| it.1);
        claims.all(|claim| match claim.tunnel {
            Tunnel::Peer(peer) => self.known()[peer].is_uniform,
            Tunnel::Segment(_) => false,
        })
    }

    /// Returns the Peer that packets to addresses are given to which some Peer has, the one from which
    /// packets with them are taken, and whether both are the same on all nodes.
    fn selected(&self, span: Span, looks: Looks) -> (Selected, Selected, bool) {
        let (held, mut is_uniform) = self.held(looks);
        if matches!(held, Err(Select::Contested(_))) {
            is_uniform &= self.are_uniform(span);
        }
        let (stays, is_same) = self.stays(span, looks);
        let selected = if stays { Err(Select::Shadow) } else { held };
        (selected, held, is_uniform && is_same)
    }

    /// Returns whether a packet to these addresses never leaves the cluster that looks, since it has them
    /// itself, and whether that is the same on all nodes.
    fn stays(&self, span: Span, looks: Looks) -> (bool, bool) {
        let owner = looks.owner(self.site);
        if owner == Some(Owner::Services) {
            return (true, true);
        }
        // No other node has what is a node's own.
        let is_somebody = matches!(owner, Some(Owner::Node(_) | Owner::Tunnel(_)));
        match looks.connected(self.site) {
            _ if is_somebody => (false, false),
            Connected::All(node) => {
                let at = At {
                    site: self.viewer,
                    node,
                };
                (stays_at(self.site, at, span), true)
            }
            Connected::Nobody => (false, true),
            Connected::Some => (false, false),
        }
    }

    /// Returns the Peer that has these addresses in WireGuard, which packets for them are given to and
    /// from which packets with them are taken, and whether that is so on all nodes.
    fn held(&self, looks: Looks) -> (Selected, bool) {
        let tunnels = &self.site.model.tunnels;
        let slot = looks.tunnels.longest;
        let Some((slot, (_, claims))) = slot.and_then(|slot| Some((slot, tunnels.get(slot)?)))
        else {
            return (Err(Select::NoRoute), true);
        };
        let is_same = claims.iter().all(|claim| match claim.tunnel {
            Tunnel::Peer(peer) => !self.site.has_own_key(peer),
            Tunnel::Segment(_) => false,
        });
        // Without a segment, no node sends or takes anything.
        let any = self.site.model.own.segments.ids().next();
        let held = match any.and_then(|it| self.site.model.holder(it, slot)) {
            Some(Holder::Certain(claim)) => match claim.tunnel {
                Tunnel::Peer(peer) => Ok(peer),
                Tunnel::Segment(_) => Err(Select::Shadow),
            },
            Some(Holder::Ambiguous(_)) => Err(Select::Contested(slot)),
            None => Err(Select::NoRoute),
        };
        (held, is_same)
    }
}

/// Returns whether a Peer that leads to `at` leads to the parcel.
fn is_meant((number, home): (SiteId, &Site), plot: &Plot, at: At) -> bool {
    at.site == number
        && plot
            .parcel
            .owner
            .node()
            .is_none_or(|_| plot.segment.is_some() && home.segment(at.node) == plot.segment)
}

fn stays_at(site: &Site, at: At, span: Span) -> bool {
    stays(site, at, span.first_address()).is_err()
}
