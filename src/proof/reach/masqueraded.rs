//! Masqueraded pods: whether packets also arrive with the address of a node instead of that of the pod.

use std::net::IpAddr;

use super::address_block::AddressBlock;
use super::premised::parties;
use super::{ClassFate, ClassVerdict, Premised, Reach};
use crate::agent::fabric::{NodeRef, Owner, SiteId, SitePair};
use crate::kilo::pod_network::Masquerading;
use crate::mesh::AddressClass;
use crate::packet::premise::{MaskedPod, Premise};
use crate::packet::rule::{RETURN_FAILS, SOURCE_REJECTED};
use crate::packet::{Packet, Session};

/// Senders and receivers, by what the paths between them depend on.
#[derive(Default)]
pub struct PremisedPaths {
    /// Those between which packets arrive only under a premise.
    pub assumed: Vec<Premised>,
    /// Those between which packets fail.
    pub failing: Vec<[Vec<AddressBlock>; 2]>,
}

impl Reach<'_, '_> {
    /// Returns how sure it is that packets of a cluster's pods keep their source.
    pub(super) fn masquerading(&self, site: SiteId) -> Masquerading {
        self.fabric.site(site).reading.masquerading()
    }

    /// Divides senders whose packets arrive with the address of the pod: those of which packets may be lost with the
    /// address of the node, and the others.
    pub(super) fn lost_if_masked(
        &self,
        pair: SitePair,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> [Vec<AddressBlock>; 2] {
        let are_pods = senders.iter().all(|it| matches!(it.owner, Owner::Pods(_)));
        if !are_pods || self.masquerading(pair.from) == Masquerading::No {
            return [Vec::new(), senders.to_vec()];
        }
        let are_regular = pair.both().iter().all(|it| self.fabric.site(*it).is_regular());
        let (lost, kept) = senders.iter().partition(|sender| {
            let Some((at, address)) = self.mask(pair, sender) else {
                return true;
            };
            match self.fabric.takes_masked(at, pair.to, address) {
                Some(is_taken) if are_regular => !is_taken,
                _ => !receivers.iter().all(|it| self.arrives_masked(pair, sender, it)),
            }
        });
        [lost, kept]
    }

    /// Returns whether packets that fail with the address of the pod may arrive with that of the node, and people
    /// declared that they may have it.
    pub fn may_be_unmasked(&self, pair: SitePair, verdict: &ClassVerdict) -> bool {
        let rules = [&SOURCE_REJECTED, &RETURN_FAILS];
        let depends_on_source = match &verdict.fate {
            ClassFate::Rejected => true,
            ClassFate::Followed(traces) => {
                traces.iter().any(|it| it.verdict().is_some_and(|it| rules.contains(&it)))
            }
            ClassFate::Proven | ClassFate::Lost | ClassFate::Kept => false,
        };
        depends_on_source
            && verdict.from == AddressClass::Pod
            && self.masquerading(pair.from) == Masquerading::Declared
    }

    /// Divides senders and receivers between which packets fail with the address of the pod.
    pub fn unmasked(
        &self,
        pair: SitePair,
        [senders, receivers]: &[Vec<AddressBlock>; 2],
    ) -> PremisedPaths {
        let receivers = parties(self.fabric, pair.from, pair.to, receivers);
        let mut unmasked = PremisedPaths::default();
        for sending in parties(self.fabric, pair.to, pair.from, senders).into_values() {
            for receiving in receivers.values() {
                let first = sending.first().zip(receiving.first());
                let first = first.filter(|(sender, to)| self.arrives_masked(pair, sender, to));
                let premise = first.and_then(|(sender, _)| self.masked_pod(pair, sender));
                let (senders, receivers) = (sending.clone(), receiving.clone());
                match premise {
                    Some(premise) => {
                        unmasked.assumed.push(Premised { premise, senders, receivers });
                    }
                    None => unmasked.failing.push([senders, receivers]),
                }
            }
        }
        unmasked
    }

    /// Returns the premise about the source of a sender's packets.
    pub(super) fn masked_pod(&self, pair: SitePair, sender: &AddressBlock) -> Option<Premise> {
        let at = NodeRef { site: pair.from, node: sender.owner.node()? };
        let address = self.mask(pair, sender).map(|it| it.1);
        Some(Premise::Masqueraded(MaskedPod { at, address }))
    }

    /// Returns the node of a sender, and the address with which its packets may arrive.
    fn mask(&self, pair: SitePair, sender: &AddressBlock) -> Option<(NodeRef, IpAddr)> {
        let at = NodeRef { site: pair.from, node: sender.owner.node()? };
        let address = self.fabric.site(at.site).masks(at.node, sender.span.family).next()?;
        Some((at, address))
    }

    /// Returns whether packets of a sender arrive with the address of its node.
    fn arrives_masked(&self, pair: SitePair, sender: &AddressBlock, to: &AddressBlock) -> bool {
        let trace = self.mask(pair, sender).map(|(from, source)| {
            self.fabric.exchange(Packet {
                from,
                source,
                to: to.owner.goal(pair.to),
                destination: to.span.first_address(),
                session: Session::New,
            })
        });
        trace.is_some_and(|it| it.is_delivered())
    }
}

#[cfg(test)]
mod tests {
    use crate::proof::reach::Reach;
    use crate::proof::verify::{Asked, verify};
    use crate::testing::lab::{EAST, EAST_NODES, Lab, WEST, WEST_NODES, WEST_OF_EAST};

    /// Returns how many declared paths are proved, assumed and fail.
    fn counts(lab: &Lab) -> [u64; 3] {
        lab.show(|fabric, meshes| {
            let asked = Asked { meshes, lists_undeclared: false, allowed: None };
            let total = verify(&Reach::new(fabric, u64::MAX), asked).total();
            [total.kept, total.assumed, total.promised - total.kept - total.assumed]
        })
    }

    /// Joins `east`, of which each node leads, and `west`, with a leader `m1` and a member `m2`.
    fn joined([east, west]: [&str; 2], plugin: &str) -> Lab {
        let (east, west) = (format!("{EAST}, {east}"), format!("{WEST}, {west}"));
        let with_plugin = |nodes: &str| {
            let nodes = nodes.lines().filter(|it| !it.is_empty());
            nodes.map(|it| format!("{it} {plugin}")).collect::<Vec<_>>().join("\n")
        };
        let (east_nodes, west_nodes) = (with_plugin(EAST_NODES), with_plugin(WEST_NODES));
        Lab::new(&[("east", &east, &east_nodes), ("west", &west, &west_nodes)])
    }

    const BOTH: [&str; 2] = ["podSource: Masqueraded", "podSource: Masqueraded"];
    const KEPT: [&str; 2] = ["podSource: Kept", "podSource: Kept"];
    const NONE: &str = "advertise: { wireguardAddresses: None }";

    /// `west` declares no network of its nodes, so packets of pods on `m2` with the address of `m2` are lost.
    #[test]
    fn packets_of_pods_have_to_arrive_with_both_addresses() {
        let all = counts(&joined(["", ""].map(|_| "state: Joined"), ""));
        assert_eq!([all[1], all[2]], [0, 0]);
        for (fields, plugin, assumed) in [
            (BOTH, "", 7),
            (KEPT, "plugin=Cilium", 0),
            (["state: Joined"; 2], "plugin=Cilium", 7),
            (["state: Joined"; 2], "cni-compatibility-ip=10.0.0.9/32", 7),
            (["podSource: Masqueraded", "podSource: Kept"], "plugin=Cilium", 0),
            (["state: Joined", "additionalCIDRs: [192.168.2.0/24]"], "plugin=Cilium", 0),
            // Pods of both nodes, to two pod CIDRs, lose the address of their leader.
            ([NONE, KEPT[1]], "plugin=Cilium", 4),
        ] {
            let found = counts(&joined(fields, plugin));
            assert_eq!([found[1], found[2]], [assumed, 0], "{fields:?} {plugin}: {found:?}");
        }
    }

    /// The Peers of `west` have no range around the pods of `n1`, and the WireGuard address of `n1`.
    #[test]
    fn packets_that_arrive_only_with_the_address_of_the_node_are_assumed() {
        let none = "podSource: Masqueraded, advertise: { wireguardAddresses: None }";
        for (fields, assumed, failing) in
            [(KEPT[0], 0, 4), (BOTH[0], 2, 2), ("state: Joined", 0, 4), (none, 2, 4)]
        {
            let lab = joined([fields, KEPT[1]], "");
            let lab = lab.edit(WEST_OF_EAST, "  - \"10.1.1.0/24\"\n", "");
            let [_, assumed_paths, failing_paths] = counts(&lab);
            assert_eq!([assumed_paths, failing_paths], [assumed, failing], "{fields}");
        }
    }
}
