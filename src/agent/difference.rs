//! Differences: what two versions of a Peer do not have in common.

use super::peers::ClusterPeer;
use crate::net::{Cidr, without};
use crate::wireguard::Endpoint;

/// A part of a Peer that is another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Difference {
    /// The key.
    Key,
    /// The endpoint; none if the node must connect first.
    Endpoint {
        /// The old one.
        from: Option<Endpoint>,
        /// The new one.
        to: Option<Endpoint>,
    },
    /// The seconds of its keepalive; zero for none.
    Keepalive {
        /// The old ones.
        from: u64,
        /// The new ones.
        to: u64,
    },
    /// The secret of both sides.
    PresharedKey,
    /// Ranges that it gets.
    RangesGained(Vec<Cidr>),
    /// Ranges that it no longer has.
    RangesLost(Vec<Cidr>),
    /// The order of its ranges, or how they are written.
    Spelling,
    /// Kilo accepts only one of the two versions.
    Validity,
}

impl Difference {
    /// Compares two versions of a Peer that are not equal.
    pub fn between(before: &ClusterPeer, after: &ClusterPeer) -> Vec<Self> {
        let (Ok(old), Ok(new)) = (&before.applied.spec, &after.applied.spec) else {
            return vec![Self::Validity];
        };
        let mut differences = Vec::new();
        if old.key != new.key {
            differences.push(Self::Key);
        }
        if old.endpoint != new.endpoint {
            differences
                .push(Self::Endpoint { from: old.dialled().cloned(), to: new.dialled().cloned() });
        }
        if old.keepalive != new.keepalive {
            differences.push(Self::Keepalive {
                from: old.keepalive.map_or(0, Into::into),
                to: new.keepalive.map_or(0, Into::into),
            });
        }
        if old.preshared_key != new.preshared_key {
            differences.push(Self::PresharedKey);
        }
        let (had, has) = (old.networks(), new.networks());
        let (gained, lost) = (without(&has, &had), without(&had, &has));
        if !gained.is_empty() {
            differences.push(Self::RangesGained(gained));
        }
        if !lost.is_empty() {
            differences.push(Self::RangesLost(lost));
        }
        if differences.is_empty() {
            differences.push(Self::Spelling);
        }
        differences
    }
}
