//! Packets between address blocks.

use crate::agent::fabric::{Fabric, NodeRef, SitePair};
use crate::packet::trace::Trace;
use crate::packet::{Packet, Session};
use crate::proof::reach::{AddressBlock, pieces};

/// Follows a packet from each piece of a block to each piece of another one.
pub(in crate::proof) fn traces(
    fabric: &Fabric,
    pair: SitePair,
    sender: AddressBlock,
    receiver: AddressBlock,
) -> impl Iterator<Item = Trace> {
    let [home, away] = pair.both().map(|it| fabric.site(it));
    let sources = pieces(away, home, sender.span);
    let destinations = pieces(home, away, receiver.span);
    let packets = sources.into_iter().flat_map(move |source| {
        let destinations = destinations.clone().into_iter();
        destinations.filter_map(move |destination| {
            let sender = AddressBlock { span: source, ..sender };
            let receiver = AddressBlock { span: destination, ..receiver };
            packet(pair, sender, receiver)
        })
    });
    packets.map(|it| fabric.exchange(it))
}

/// Returns the smallest packet from one block to another.
pub(super) fn packet(
    pair: SitePair,
    sender: AddressBlock,
    receiver: AddressBlock,
) -> Option<Packet> {
    let node = sender.owner.node()?;
    Some(Packet {
        from: NodeRef { site: pair.from, node },
        source: sender.span.first_address(),
        to: receiver.owner.goal(pair.to),
        destination: receiver.span.first_address(),
        session: Session::New,
    })
}
