//! The judge: compares the paths between two clusters with those that their link declares.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use super::assumption::{AlikePremises, PremiseSubject};
use super::cause::FailureCause;
use super::failures::Failures;
use super::link_terms::LinkTerms;
use super::links::Asked;
use super::{Assumption, Failure, Leak, ProofPart, Tallies, Tally, undeclared};
use crate::agent::fabric::{DialPremise, NodeRef, SiteId, SitePair};
use crate::mesh::{AddressClass, Link, refusals, separating};
use crate::net::Cidr;
use crate::net::prefixes::Span;
use crate::packet::premise::{Distant, Premise, Unencapsulated, UnshownRoute};
use crate::packet::trace::Trace;
use crate::packet::{AssumedDial, Doubt, Ending, Goal, Packet, Session};
use crate::proof::claimed::is_of_few;
use crate::proof::excused;
use crate::proof::reach::{AddressBlock, ClassVerdict, Premised, PremisedPaths, Reach};

/// Counts what holds between two clusters.
pub(super) struct PairJudge<'j, 'f, 'a> {
    pub(super) reach: &'j Reach<'f, 'a>,
    pub(super) pair: SitePair,
    /// The link. If one of the two leaves, what still works is undeclared and ends with the Peers that
    /// are left.
    pub(super) link: Option<Link>,
    /// The terms of the sender and of the receiver, if they exchange Peers.
    pub(super) terms: Option<[LinkTerms<'j>; 2]>,
    /// The ranges that the sender does not get of the receiver because of nodes' claims, and the reverse.
    pub(super) excused: [&'j [Cidr]; 2],
    pub(super) asked: Asked<'j>,
    /// Whether the causes of failures are looked for.
    pub(super) explains: bool,
    pub(super) tallies: Tallies,
}

/// Numbers of declared paths that hold only under premises.
#[derive(Default)]
struct AssumedPaths {
    assumed: u64,
    /// Those of them that need only a route of an anchor.
    routed: u64,
}

impl<'j> PairJudge<'j, '_, '_> {
    pub(super) fn count(&mut self, verdict: &ClassVerdict<'j>, part: &mut ProofPart) {
        let sites = self.pair.both().map(|it| self.reach.fabric.site(it));
        let are_promised = are_promised(verdict.from, verdict.to);
        let terms = self.terms.as_mut().filter(|_| are_promised);
        let promised = terms.map_or(0, |[sent, taken]| {
            let senders = sent.count(sites[0], &verdict.senders);
            senders.saturating_mul(taken.count(sites[1], &verdict.receivers))
        });
        // Answers need the way back, so each must take what the other has.
        let terms = self.terms.as_ref().filter(|_| are_promised);
        let is_sent =
            |it: &&AddressBlock| terms.is_some_and(|[sent, _]| sent.promise(sites[0], it));
        let is_taken =
            |it: &&AddressBlock| terms.is_some_and(|[_, taken]| taken.promise(sites[1], it));
        let senders = || verdict.senders.iter().filter(is_sent);
        let receivers = || verdict.receivers.iter().filter(is_taken);
        let blocks = || [senders().copied().collect(), receivers().copied().collect()];
        let ways = if 0 < promised { self.ways(verdict, blocks) } else { PremisedPaths::default() };
        let AssumedPaths { assumed, routed } = self.assume(ways.assumed, &mut part.assumptions);
        let others = verdict.pairs().saturating_sub(promised);
        let holds = verdict.holds();
        let held = |paths: u64| if holds { paths } else { 0 };
        let tally = Tally {
            promised,
            kept: held(promised - assumed),
            assumed,
            routed,
            others,
            reached: held(others),
        };
        self.tallies.add((verdict.from, verdict.to), tally);
        if holds {
            if 0 < others {
                let asked = (self.asked, self.pair);
                let found = &mut part.unallowed;
                found.add(asked, sites, verdict, is_sent, is_taken);
                if self.asked.lists_undeclared {
                    undeclared::add(&mut part.undeclared, self.pair, verdict, is_sent, is_taken);
                }
            }
        } else if self.explains {
            for [senders, receivers] in ways.failing {
                let promised = ClassVerdict {
                    senders: senders.into(),
                    receivers: receivers.into(),
                    fate: verdict.fate.clone(),
                    ..*verdict
                };
                self.blame_each(&promised, &mut part.failures);
            }
        }
        part.leaks.extend(self.leak(verdict));
    }

    /// Divides promised blocks by what their paths depend on.
    fn ways(
        &self,
        verdict: &ClassVerdict,
        blocks: impl Fn() -> [Vec<AddressBlock>; 2],
    ) -> PremisedPaths {
        if !verdict.holds() {
            if self.reach.may_be_unmasked(self.pair, verdict) {
                return self.reach.unmasked(self.pair, &blocks());
            }
            let failing = self.explains.then(blocks);
            return PremisedPaths { failing: failing.into_iter().collect(), assumed: Vec::new() };
        }
        if !self.reach.may_be_premised(self.pair, [verdict.from, verdict.to]) {
            return PremisedPaths::default();
        }
        let [senders, receivers] = blocks();
        let assumed = self.reach.premised(self.pair, &senders, &receivers);
        PremisedPaths { assumed, failing: Vec::new() }
    }

    /// Returns a packet that arrives although no mesh links the two clusters.
    fn leak(&self, verdict: &ClassVerdict) -> Option<Leak> {
        let mut traces = verdict.traces().iter();
        // The choice of the leader does not stop the packet, and WireGuard works on without the agent of another node.
        let is_received = |trace: &&Trace| match &trace.there.ending {
            Ending::Ambiguous { doubt: Doubt::Leader, .. } => true,
            Ending::NotReady { node } => *node != trace.packet.from,
            ending => ending.is_delivered(),
        };
        let arrived = traces.find(is_received)?;
        let is_linked = matches!(self.link, Some(Link::Exchange | Link::Ended));
        (!is_linked).then(|| {
            let [one, other] = self.pair.both();
            let cluster = |it: SiteId| self.reach.fabric.site(it).cluster;
            let (meshes, one, other) = (self.asked.meshes, cluster(one), cluster(other));
            Leak {
                trace: arrived.clone(),
                range: None,
                refusals: refusals(meshes, one, other),
                topology: separating(meshes, one, other).map(|it| it.linking_field().1),
            }
        })
    }

    /// Adds what holds only under premises, and returns the number of pairs.
    fn assume(
        &self,
        premised: Vec<Premised>,
        assumptions: &mut BTreeMap<AlikePremises, Assumption>,
    ) -> AssumedPaths {
        let mut paths = AssumedPaths::default();
        for premised in premised {
            let pairs =
                count(premised.senders.iter()).saturating_mul(count(premised.receivers.iter()));
            paths.assumed += pairs;
            if let Premise::Route(_) = premised.premise {
                paths.routed += pairs;
            }
            let (alike, nodes) = self.alike(&premised);
            let assumption = Assumption {
                premise: premised.premise,
                pairs,
                between: BTreeSet::from([self.pair]),
                nodes,
            };
            match assumptions.entry(alike) {
                Entry::Vacant(entry) => drop(entry.insert(assumption)),
                Entry::Occupied(mut entry) => entry.get_mut().add(assumption),
            }
        }
        paths
    }

    /// Returns the common part of premises, and the nodes that must meet the condition.
    fn alike(&self, premised: &Premised) -> (AlikePremises, BTreeSet<NodeRef>) {
        let [from, to] = self.pair.both();
        let other = |site| if site == from { to } else { from };
        match premised.premise {
            Premise::Pods(site) => ((site, site, PremiseSubject::Pods), self.ends(site, premised)),
            Premise::Masqueraded(it) => {
                let nodes = premised.senders.iter().filter_map(|it| it.owner.node());
                let nodes = nodes.map(|node| NodeRef { site: from, node }).chain([it.at]);
                ((from, to, PremiseSubject::Sources), nodes.collect())
            }
            Premise::Dial(AssumedDial { premise, at, .. }) => {
                let subject = PremiseSubject::Dial(premise);
                match premise {
                    DialPremise::Family(_) => {
                        let is_sender = at.site == from;
                        let blocks =
                            if is_sender { &premised.senders } else { &premised.receivers };
                        let nodes = self.leaders(at.site, blocks).chain([at]);
                        ((at.site, other(at.site), subject), nodes.collect())
                    }
                    // One network joins both clusters, or none does.
                    DialPremise::Private => {
                        ((from.min(to), from.max(to), subject), BTreeSet::from([at]))
                    }
                    DialPremise::Claimed | DialPremise::Stranger | DialPremise::Name => {
                        ((at.site, other(at.site), subject), BTreeSet::from([at]))
                    }
                }
            }
            Premise::Distant(Distant { carrier, range, .. })
            | Premise::Route(UnshownRoute { carrier, range }) => {
                let subject = PremiseSubject::Range(range);
                let alike = (carrier.site, carrier.site, subject);
                (alike, BTreeSet::from([carrier]))
            }
            Premise::Unencapsulated(Unencapsulated { leader, node, range, .. }) => {
                let alike = (leader.site, leader.site, PremiseSubject::Lan(range));
                (alike, BTreeSet::from([node]))
            }
            Premise::Plugin(NodeRef { site, .. }) => {
                ((site, site, PremiseSubject::Plugin), self.ends(site, premised))
            }
        }
    }

    /// Returns the nodes of one of the two clusters.
    fn ends(&self, site: SiteId, premised: &Premised) -> BTreeSet<NodeRef> {
        let is_sender = site == self.pair.from;
        let blocks = if is_sender { &premised.senders } else { &premised.receivers };
        let nodes = blocks.iter().filter_map(|it| it.owner.node());
        nodes.map(|node| NodeRef { site, node }).collect()
    }

    /// Returns the leaders of the nodes that have some blocks.
    fn leaders(&self, site: SiteId, blocks: &[AddressBlock]) -> impl Iterator<Item = NodeRef> {
        let nodes = blocks.iter().filter_map(|it| it.owner.node());
        nodes.filter_map(move |node| {
            let it = self.reach.fabric.site(site);
            let node = it.leader(it.segment(node)?).node();
            Some(NodeRef { site, node })
        })
    }

    /// Adds what fails of promised packets.
    fn blame_each(&self, promised: &ClassVerdict, failures: &mut Failures) {
        for verdict in self.reach.follow(self.pair, promised) {
            self.blame(&verdict, failures);
        }
    }

    /// Adds what fails, what nodes' claims cause apart from the rest.
    fn blame(&self, verdict: &ClassVerdict, failures: &mut Failures) {
        let [senders, receivers] = [&verdict.senders, &verdict.receivers].map(|it| it.to_vec());
        let traces = || verdict.traces().iter();
        let failing = || traces().filter(|it| !it.ending().is_delivered());
        let Some(failing) = failing().find(|it| !self.is_claimed(it)) else {
            if let Some(claimed) = failing().next() {
                self.fail((claimed, true), verdict, &[senders, receivers], failures);
            }
            return;
        };
        let [there, back] = self.excused;
        let split = |blocks: &[AddressBlock], excused: &[Cidr]| -> [Vec<AddressBlock>; 2] {
            let (claimed, others) =
                blocks.iter().partition(|block| excused::holds(excused, block.span));
            [claimed, others]
        };
        let [unsent, sent] = split(&senders, back);
        let [untaken, taken] = split(&receivers, there);
        let pieces =
            [(true, [senders, untaken]), (true, [unsent, taken.clone()]), (false, [sent, taken])];
        for (is_claimed, promised) in pieces {
            if promised.iter().all(|it| !it.is_empty()) {
                self.fail((failing, is_claimed), verdict, &promised, failures);
            }
        }
    }

    /// Returns whether nodes' claims keep a packet or its answer from arriving.
    fn is_claimed(&self, failing: &Trace) -> bool {
        let [there, back] = self.excused;
        let packet = &failing.packet;
        excused::holds(there, Span::host(packet.destination))
            || excused::holds(back, Span::host(packet.source))
            || is_of_few(self.reach.fabric, failing)
    }

    /// Adds a failure to those of its cause.
    fn fail(
        &self,
        (failing, is_claimed): (&Trace, bool),
        verdict: &ClassVerdict,
        [senders, receivers]: &[Vec<AddressBlock>; 2],
        failures: &mut Failures,
    ) {
        let trace = self.smallest(failing, senders, receivers);
        let cause = FailureCause::find(self.reach.fabric, &trace, is_claimed);
        let owners = receivers.iter().map(|it| (self.pair.to, it.owner));
        let failure = Failure {
            trace,
            is_claimed,
            follows: None,
            pairs: count(senders.iter()).saturating_mul(count(receivers.iter())),
            between: BTreeSet::from([self.pair]),
            classes: BTreeSet::from([(verdict.from, verdict.to)]),
            receivers: owners.collect(),
        };
        failures.add(cause, failure);
    }

    /// Returns how the packet between the smallest of these addresses fails, if it fails as this one
    /// does.
    fn smallest(
        &self,
        failing: &Trace,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> Trace {
        let smallest =
            |blocks: &[AddressBlock]| blocks.iter().min_by_key(|it| it.span.first).copied();
        let (Some(sender), Some(receiver)) = (smallest(senders), smallest(receivers)) else {
            return failing.clone();
        };
        let Some(node) = sender.owner.node() else {
            return failing.clone();
        };
        let to = match receiver.owner.node() {
            Some(node) => Goal::Node(NodeRef { site: self.pair.to, node }),
            None => failing.packet.to,
        };
        let packet = Packet {
            from: NodeRef { site: self.pair.from, node },
            source: sender.span.first_address(),
            to,
            destination: receiver.span.first_address(),
            session: Session::New,
        };
        if packet == failing.packet {
            return failing.clone();
        }
        let trace = self.reach.fabric.exchange(packet);
        if trace.verdict() == failing.verdict() {
            return trace;
        }
        failing.clone()
    }
}

/// Returns whether links promise paths between these classes. Ranges of a whole cluster are promised
/// to pods.
pub(super) fn are_promised(from: AddressClass, to: AddressClass) -> bool {
    from == AddressClass::Pod || matches!(to, AddressClass::Pod | AddressClass::Node)
}

fn count<'p>(blocks: impl Iterator<Item = &'p AddressBlock>) -> u64 {
    u64::try_from(blocks.count()).unwrap_or(u64::MAX)
}
