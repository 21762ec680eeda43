//! Possible attacks of hostile clusters, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::agent::model::Tunnel;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::proof::bounded_list::{BoundedList, Kinded as _};
use crate::proof::hostile::{Breach, Exposure, FarEndKind, Hold, OpenWay, Relay, RelayKind, Whose};
use crate::proof::messages::hostile::{far_end, owners};
use crate::text;

use super::Verified;

/// The number of items of a kind that are named.
const NAMED: usize = 4;

/// The number of clusters that are shown one by one.
const SHOWN: usize = 20;

impl Verified<'_, '_> {
    /// Prints what each could do, by affected cluster.
    pub(super) fn hostilities(&self) -> String {
        let mut text = String::new();
        for hostile in self.hostiles {
            let _ = writeln!(text, "If {} were hostile:", self.cluster(hostile.site));
            let exposures = hostile.exposures.iter();
            let (hearing, deaf): (Vec<&Exposure>, Vec<&Exposure>) =
                exposures.partition(|it| !it.heard.is_empty());
            for exposure in hearing.iter().take(SHOWN) {
                text.push_str(&self.exposure(exposure));
            }
            let more = hearing.len().saturating_sub(SHOWN);
            if 0 < more {
                let more = text::count(more, "more cluster");
                let _ = writeln!(
                    text,
                    "  {more} accept packets from it; `--output json` lists all \
                    of them"
                );
            }
            if !deaf.is_empty() {
                let names = text::first(NAMED, deaf.iter().map(|it| self.cluster(it.site)));
                let _ = writeln!(text, "  directly, none of its packets reach {names}");
            }
            text.push('\n');
        }
        text
    }

    /// Prints whether each is limited to what it declares.
    pub(super) fn containment(&self) -> String {
        let mut text = String::new();
        for hostile in self.hostiles {
            let name = self.cluster(hostile.site);
            let breaches = hostile.breaches();
            let _ = match breaches.iter().map(Breach::count).sum::<usize>() {
                0 => writeln!(text, "the meshes allow {name} everything that is listed above"),
                more => writeln!(
                    text,
                    "{name} could do {} that no mesh allows",
                    text::count(more, "thing")
                ),
            };
        }
        text
    }

    fn exposure(&self, exposure: &Exposure) -> String {
        let name = self.cluster(exposure.site);
        let mut text = format!("  {name} accepts its packets through {}\n", self.heard(exposure));
        if exposure.believed.is_empty() {
            text.push_str("    but accepts no source address from it\n");
        } else {
            let others = if self.fabric.site(exposure.site).cluster.is_external() {
                format!("whether {name} forwards packets to other addresses depends on the host")
            } else {
                format!(
                    "Kilo in {name} masquerades packets to other addresses, so they can reach everything that the nodes of {name} can reach"
                )
            };
            let _ = writeln!(
                text,
                "    it could send with the addresses {}\n    to {}\n    {others}",
                self.held(&exposure.believed),
                open(&exposure.open)
            );
        }
        if exposure.is_mirrored {
            if !exposure.attracted.is_empty() {
                text.push_str("    it also receives the packets to these addresses\n");
            }
        } else if !exposure.attracted.is_empty() {
            let destinations = self.held(&exposure.attracted);
            let _ = writeln!(text, "    it receives the packets to {destinations}");
        }
        let relays = exposure.relays.listed().iter();
        let (shut, ways): (Vec<&Relay>, Vec<&Relay>) =
            relays.partition(|it| it.kind() == RelayKind::Dropped);
        for relay in ways {
            let passages = relay.passages.listed().iter().map(|it| it.span);
            let third = self.cluster(relay.site);
            let passages = text::first_of(NAMED, passages, relay.passages.unlisted());
            let _ = writeln!(text, "    {name} forwards its packets from {passages} to {third}");
        }
        let more = |kind| exposure.relays.more(kind);
        let through = more(RelayKind::Linked) + more(RelayKind::Unlinked);
        if 0 < through {
            let through = text::count(through, "more cluster");
            let _ = writeln!(text, "    {name} forwards some of its packets to {through}");
        }
        if !shut.is_empty() {
            let names = shut.iter().map(|it| self.cluster(it.site));
            let thirds = text::first_of(NAMED, names, more(RelayKind::Dropped));
            let _ = writeln!(text, "    through {name}, none of its packets reach {thirds}");
        }
        text
    }

    /// Names the far ends that have its keys.
    fn heard(&self, exposure: &Exposure) -> String {
        let site = self.fabric.site(exposure.site);
        let peers = &site.model.peers;
        let (mut names, mut own) = (Vec::new(), Vec::new());
        for tunnel in exposure.heard.listed() {
            match *tunnel {
                Tunnel::Peer(peer) => names.push(peers[peer].applied.name.clone()),
                Tunnel::Segment(_) => own.push(far_end(self.fabric, exposure.site, *tunnel)),
            }
        }
        let noun = match exposure.heard.count(FarEndKind::Peer) {
            0 => None,
            1 => Some("the Peer"),
            _ => Some("the Peers"),
        };
        let peers = text::first_of(NAMED, names, exposure.heard.more(FarEndKind::Peer));
        let peers = noun.map(|noun| format!("{noun} {peers}"));
        let more = exposure.heard.more(FarEndKind::Segment);
        text::first_of(NAMED, peers.into_iter().chain(own), more)
    }

    /// Names addresses, those first that are not its own to use.
    fn held(&self, holds: &BoundedList<Hold>) -> String {
        let is_declared = |hold: &&Hold| hold.whose == Whose::Declared;
        let (own, others): (Vec<&Hold>, Vec<&Hold>) = holds.listed().iter().partition(is_declared);
        let names = others.into_iter().chain(own).map(|hold| {
            let doubt = if hold.is_certain { "" } else { "perhaps " };
            match hold.whose {
                Whose::Declared => format!("{doubt}{}", hold.span),
                Whose::Others(_) | Whose::Nobody => {
                    format!("{doubt}{} ({})", hold.span, owners(self.fabric, hold))
                }
            }
        });
        text::first_of(NAMED, names, holds.unlisted())
    }
}

/// Names what is open by kind.
fn open(ways: &BoundedList<OpenWay>) -> String {
    let mut kinds: BTreeMap<Option<AddressClass>, Vec<Span>> = BTreeMap::new();
    for open in ways.listed() {
        let shown = Span::new(open.range());
        kinds.entry(open.kind()).or_default().push(shown);
    }
    let lans = kinds.remove(&None).map(|it| (None, it));
    let kinds: Vec<String> = kinds
        .into_iter()
        .chain(lans)
        .map(|(class, ranges)| {
            let kind = class.map_or_else(|| "LANs".to_owned(), |it| format!("{it}s"));
            format!("{kind} {}", text::first_of(NAMED, ranges, ways.more(class)))
        })
        .collect();
    kinds.join("; ")
}
