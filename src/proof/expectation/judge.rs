//! Judging an expectation: how many pairs it is about, how many break it, and with which packet.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use by_address::ByAddress;

use super::group::{ClassGroup, Lot};
use super::meant::{Chosen, Meant, Stock};
use super::packets::{packet, traces};
use super::{Check, ExpectationSide, LeftOut, of_sides};
use crate::agent::fabric::{NodeRef, Site, SiteId, SitePair, Sites, are_few};
use crate::expectations::{Expectation, Expected};
use crate::kilo::id::NodeId;
use crate::kilo::topology::Leader;
use crate::mesh::AddressClass;
use crate::net::Family;
use crate::net::prefixes::Span;
use crate::packet::premise::Premise;
use crate::packet::trace::Trace;
use crate::packet::{Goal, Packet};
use crate::proof::claimed::{self, ReportedAddresses};
use crate::proof::reach::{AddressBlock, ClassOutcome, Endings, ForwardingView, Proven, Reach};

/// Both families of addresses.
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// The proof with which all expectations are compared.
pub(in crate::proof) struct ExpectationJudge<'j, 'f, 'a> {
    pub(in crate::proof) reach: &'j Reach<'f, 'a>,
    stocks: Sites<Stock>,
    /// Whether it is certain how packets end that do not leave the cluster.
    keeps_for_certain: Sites<bool>,
    left_out: &'j dyn LeftOut,
    /// The nodes that take no part, although a mesh selects them.
    absent: Sites<OnceLock<BTreeSet<NodeId>>>,
    /// The addresses that nodes report: filled in when a packet fails that nothing else excuses.
    reported: Sites<OnceLock<ReportedAddresses>>,
    /// By both clusters: filled in when an expectation is about them.
    fates: Sites<Sites<OnceLock<KnownFates>>>,
}

/// The fates of packets between two clusters, by the places of what is alike in both.
type KnownFates = Vec<OnceLock<ClassOutcome>>;

/// The chosen blocks of a cluster, grouped for each cluster that sees it in its own way.
struct Grouped<'c> {
    chosen: &'c Chosen,
    /// All blocks that send and receive, by family, those of nodes that take no part apart.
    ready: [Vec<Lot>; 2],
    /// Many clusters share a view.
    groups: BTreeMap<ByAddress<Arc<ForwardingView>>, Vec<ClassGroup>>,
}

impl<'c> Grouped<'c> {
    fn all(chosen: &'c Sites<Chosen>) -> Vec<(SiteId, Self)> {
        let grouped = chosen.numbered().map(|(site, chosen)| {
            let of = |family| {
                let lot = |is_absent| {
                    let picks = chosen.ready.iter().filter(|it| it.is_absent == is_absent);
                    Lot::from_blocks(picks.map(|it| it.block).filter(|it| it.span.family == family))
                };
                [false, true].into_iter().filter_map(lot).collect()
            };
            let grouped = Self { chosen, ready: FAMILIES.map(of), groups: BTreeMap::new() };
            (site, grouped)
        });
        grouped.collect()
    }

    fn seen_as(&mut self, view: &Arc<ForwardingView>) -> &[ClassGroup] {
        let groups = self.groups.entry(ByAddress(Arc::clone(view)));
        groups.or_insert_with(|| ClassGroup::all(self.chosen, view))
    }
}

impl<'j, 'f, 'a> ExpectationJudge<'j, 'f, 'a> {
    pub(in crate::proof) fn new(reach: &'j Reach<'f, 'a>, left_out: &'j dyn LeftOut) -> Self {
        let sites = &reach.fabric.sites;
        Self {
            reach,
            stocks: sites.map(|it| Stock::new(it)),
            keeps_for_certain: sites.map(|it| keeps_for_certain(it)),
            left_out,
            absent: sites.map(|_| OnceLock::new()),
            reported: sites.map(|_| OnceLock::new()),
            fates: sites.map(|_| sites.map(|_| OnceLock::new())),
        }
    }

    pub(super) fn check<'e>(&self, expectation: &'e Expectation) -> Check<'e> {
        let senders = self.choose(&Meant::by(expectation, ExpectationSide::From));
        let receivers = self.choose(&Meant::by(expectation, ExpectationSide::To));
        let mut check = Check {
            expectation,
            pairs: 0,
            broken: 0,
            excused: 0,
            excused_example: None,
            counterexample: None,
            assumed: 0,
            unmatched: Vec::new(),
            survival: None,
        };
        let (mut sent, mut taken) = (Grouped::all(&senders), Grouped::all(&receivers));
        let mut proven = Proven::default();
        for (from, sent) in &mut sent {
            for (to, taken) in &mut taken {
                if from != to && !sent.chosen.is_empty() && !taken.chosen.is_empty() {
                    let pair = SitePair { from: *from, to: *to };
                    self.judge(&mut check, pair, sent, taken, &mut proven);
                }
            }
        }
        let sides = [&senders, &receivers];
        check.unmatched = of_sides(self.reach.fabric, expectation, sides, 0 < check.pairs);
        check
    }

    /// Returns whether a packet is lost only because of what a few nodes report, or because a few nodes take no part or
    /// ranges are left out for it.
    pub(in crate::proof) fn is_excused(&self, failing: &Trace) -> bool {
        let fabric = self.reach.fabric;
        let packet = &failing.packet;
        let receiver = match packet.to {
            Goal::Node(at) => Some(at),
            Goal::Services(_) | Goal::Network(_) => None,
        };
        let mut ends = std::iter::once(packet.from).chain(receiver);
        let [from, to] = [packet.from.site, packet.to.site()].map(|it| fabric.site(it).cluster);
        let lacks = |target, source, address| {
            let excused = self.left_out.excused();
            excused.is_some_and(|it| it.lacks(target, source, Span::host(address)))
        };
        claimed::is_of_few(fabric, failing)
            || lacks(from, to, packet.destination)
            || lacks(to, from, packet.source)
            || ends.any(|it| self.is_absent(it) && self.are_absent_few(it.site))
            || self.is_doubtful(packet.from, packet.source)
            || receiver.is_some_and(|it| self.is_doubtful(it, packet.destination))
    }

    /// Returns whether an end of a packet may be wrong, because its node alone reports it.
    fn is_doubtful(&self, at: NodeRef, address: IpAddr) -> bool {
        let site = self.reach.fabric.site(at.site);
        let reported = self.reported[at.site].get_or_init(|| ReportedAddresses::new(site));
        reported.is_doubtful(site, at.node, address)
    }

    /// Removes the blocks of absent nodes of a cluster, if these nodes are few.
    pub(in crate::proof) fn leave_out_few(
        &self,
        site: SiteId,
        blocks: &mut Cow<'_, [AddressBlock]>,
    ) {
        if !self.absent(site).is_empty() && self.are_absent_few(site) {
            let is_absent = |node| self.is_absent(NodeRef { site, node });
            blocks.to_mut().retain(|it| !it.owner.node().is_some_and(is_absent));
        }
    }

    /// Returns whether a node takes no part, although a mesh selects it.
    fn is_absent(&self, at: NodeRef) -> bool {
        self.absent(at.site).contains(&at.node)
    }

    /// Returns whether only a few nodes of a cluster are why some take no part, of those that a mesh selects. The only node
    /// of a cluster is all of it.
    fn are_absent_few(&self, number: SiteId) -> bool {
        let selected = self.selected(number).count();
        let is_left_out = |node: NodeId| self.left_out.has_node(NodeRef { site: number, node });
        let absent = self.absent(number).iter().copied();
        let others: Vec<NodeId> = absent.filter(|it| !is_left_out(*it)).collect();
        1 < selected && are_few(self.left_out.causing(number, &others), selected)
    }

    fn absent(&self, number: SiteId) -> &BTreeSet<NodeId> {
        self.absent[number].get_or_init(|| {
            let fabric = self.reach.fabric;
            let is_absent = |it: &NodeId| {
                let at = NodeRef { site: number, node: *it };
                !fabric.takes_part(at) || self.left_out.has_node(at)
            };
            self.selected(number).filter(is_absent).collect()
        })
    }

    fn selected(&self, number: SiteId) -> impl Iterator<Item = NodeId> {
        let site = self.reach.fabric.site(number);
        let nodes = site.model.topology.nodes.ids();
        nodes.filter(|it| site.entry.selector.matches(&site.snapshot_of(*it).labels))
    }

    fn choose(&self, meant: &Meant) -> Sites<Chosen> {
        let sites = &self.reach.fabric.sites;
        sites.map_ids(|id| {
            let mut chosen = meant.choose(&sites[id], &self.stocks[id]);
            for pick in &mut chosen.ready {
                let node = pick.block.owner.node();
                let excused = self.left_out.excused();
                pick.is_absent = node
                    .is_some_and(|node| self.is_absent(NodeRef { site: id, node }))
                    || excused.is_some_and(|it| it.is_lacked(sites[id].cluster, pick.block.span));
            }
            chosen
        })
    }

    fn judge(
        &self,
        check: &mut Check,
        pair: SitePair,
        sent: &mut Grouped,
        taken: &mut Grouped,
        proven: &mut Proven<'j>,
    ) {
        check.judge_unready(self, pair, sent.chosen, taken.chosen);
        let SitePair { from, to } = pair;
        if self.reach.is_kept(from, to) && self.keeps_for_certain[from] {
            check.judge_kept(self, pair, sent, taken);
            return;
        }
        let (near, far) = (self.reach.view(from, to), self.reach.view(to, from));
        let senders = sent.seen_as(near);
        let receivers = taken.seen_as(far);
        let fates = self.fates[from][to].get_or_init(|| {
            let count = near.class_count() * far.class_count();
            (0..count).map(|_| OnceLock::new()).collect()
        });
        for sender in senders {
            for receiver in receivers {
                if sender.lot.least.span.family == receiver.lot.least.span.family {
                    let classes = [sender.class, receiver.class];
                    let known = fates.get(sender.class * far.class_count() + receiver.class);
                    let find = || self.reach.fate_of(pair, classes, proven);
                    let fate = known.map_or(ClassOutcome::Apart, |it| *it.get_or_init(find));
                    let broken = check.broken;
                    check.judge(self, fate, pair, sender, receiver);
                    if check.broken == broken {
                        check.assume(self.reach, pair, sender, receiver);
                    }
                }
            }
        }
    }
}

/// Returns whether it is certain how packets end that do not leave a cluster: no other node could lead, every range has one
/// tunnel (two nodes can report one address), and nothing else decides.
pub(in crate::proof) fn keeps_for_certain(site: &Site) -> bool {
    let mut segments = site.model.topology.segments.ids();
    let mut tunnels = site.model.tunnels.iter();
    site.is_regular()
        && segments.all(|it| matches!(site.leader(it), Leader::Certain(_)))
        && tunnels.all(|(_, claims)| matches!(claims, [one] if one.is_certain))
}

impl Check<'_> {
    fn is_broken_by(&self, endings: Endings) -> bool {
        match self.expectation.expected {
            Expected::Reach => endings.are_lost,
            // A packet that may arrive is not kept out.
            Expected::Deny => endings.may_arrive,
        }
    }

    fn judge(
        &mut self,
        judge: &ExpectationJudge,
        fate: ClassOutcome,
        pair: SitePair,
        senders: &ClassGroup,
        receivers: &ClassGroup,
    ) {
        let fabric = judge.reach.fabric;
        let are_meant = senders.is_whole() && receivers.is_whole();
        let are_masked = |it: Endings| self.may_be_masked(fabric, it, pair, senders.lot);
        if let ClassOutcome::Alike { endings, is_whole } = fate
            && (is_whole || are_meant)
        {
            if are_masked(endings) {
                for sender in senders.lots(false) {
                    self.tally_masked(judge, endings, pair, sender, receivers.lot);
                }
                return;
            }
            self.tally(judge, endings, pair, senders.lot, receivers.lot);
            return;
        }
        let are_alike = fate != ClassOutcome::Apart;
        let receivers = receivers.lots(are_alike);
        for sender in senders.lots(are_alike) {
            for receiver in &receivers {
                let traces = traces(fabric, pair, sender.first, receiver.first);
                let endings = Endings::from_traces(&traces.collect::<Vec<_>>());
                if self.may_be_masked(fabric, endings, pair, sender) {
                    self.tally_masked(judge, endings, pair, sender, *receiver);
                } else {
                    self.tally(judge, endings, pair, sender, *receiver);
                }
            }
        }
    }

    /// Counts the pairs that arrive only under a condition. A route of an anchor does not count, as elsewhere.
    fn assume(
        &mut self,
        reach: &Reach,
        pair: SitePair,
        senders: &ClassGroup,
        receivers: &ClassGroup,
    ) {
        let is_asked = self.expectation.expected == Expected::Reach;
        let mut classes = [AddressClass::Pod, AddressClass::Network].into_iter();
        if !is_asked || !classes.any(|to| reach.may_be_premised(pair, [AddressClass::Pod, to])) {
            return;
        }
        let all = |group: &ClassGroup| group.blocks().copied().collect::<Vec<_>>();
        for premised in reach.premised(pair, &all(senders), &all(receivers)) {
            let count = |blocks: &[AddressBlock]| u64::try_from(blocks.len()).unwrap_or(u64::MAX);
            let pairs = count(&premised.senders).saturating_mul(count(&premised.receivers));
            if !matches!(premised.premise, Premise::Route(_)) {
                self.assumed += pairs;
            }
        }
    }

    /// Counts the pairs of two clusters of which the first has no route to the second.
    fn judge_kept(
        &mut self,
        judge: &ExpectationJudge,
        pair: SitePair,
        sent: &Grouped,
        taken: &Grouped,
    ) {
        for (senders, receivers) in sent.ready.iter().zip(&taken.ready) {
            for (sender, receiver) in
                senders.iter().flat_map(|it| receivers.iter().map(move |to| (it, to)))
            {
                self.tally(judge, Endings::LOST, pair, *sender, *receiver);
            }
        }
    }

    /// Counts pairs that fare alike.
    pub(super) fn tally(
        &mut self,
        judge: &ExpectationJudge,
        endings: Endings,
        pair: SitePair,
        senders: Lot,
        receivers: Lot,
    ) {
        let fabric = judge.reach.fabric;
        let pairs = senders.count.saturating_mul(receivers.count);
        self.pairs += pairs;
        if !self.is_broken_by(endings) {
            return;
        }
        let is_asked = self.expectation.expected == Expected::Reach;
        let least = packet(pair, senders.least, receivers.least);
        if !is_asked && !least.as_ref().is_some_and(|it| self.is_smaller(it)) {
            self.broken += pairs;
            return;
        }
        let is_breaking = |it: &Trace| self.is_broken_by(Endings::from_traces([it]));
        let shown = least
            .map(|it| fabric.exchange(it))
            .filter(is_breaking)
            .or_else(|| traces(fabric, pair, senders.first, receivers.first).find(is_breaking));
        if is_asked && shown.as_ref().is_some_and(|it| judge.is_excused(it)) {
            self.excused += pairs;
            let known = self.excused_example.as_ref();
            if let Some(shown) = shown.filter(|it| is_less(&it.packet, known)) {
                self.excused_example = Some(shown);
            }
            return;
        }
        self.broken += pairs;
        if let Some(shown) = shown.filter(|it| self.is_smaller(&it.packet)) {
            self.counterexample = Some(shown);
        }
    }

    /// Counts the pairs with nodes that Kilo does not count: they reach nothing, and nothing reaches
    /// them.
    fn judge_unready(
        &mut self,
        judge: &ExpectationJudge,
        pair: SitePair,
        senders: &Chosen,
        receivers: &Chosen,
    ) {
        if senders.unready.is_empty() && receivers.unready.is_empty() {
            return;
        }
        for family in FAMILIES {
            let lot = |blocks: &mut dyn Iterator<Item = AddressBlock>| {
                Lot::from_blocks(blocks.filter(|it| it.span.family == family))
            };
            let apart = [
                (lot(&mut senders.ready()), lot(&mut receivers.unready())),
                (lot(&mut senders.unready()), lot(&mut receivers.all())),
            ];
            for (senders, receivers) in apart.into_iter().filter_map(|(one, other)| one.zip(other))
            {
                self.tally(judge, Endings::LOST, pair, senders, receivers);
            }
        }
    }

    /// Returns whether a packet is smaller than what is known to break it.
    pub(super) fn is_smaller(&self, packet: &Packet) -> bool {
        is_less(packet, self.counterexample.as_ref())
    }
}

/// Returns whether a packet is smaller than a known one.
fn is_less(packet: &Packet, known: Option<&Trace>) -> bool {
    let size = |it: &Packet| (it.source, it.destination);
    known.is_none_or(|known| size(packet) < size(&known.packet))
}
