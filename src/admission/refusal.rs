//! Refusals: the rules of a guard, each with the sentence that the API server prints.

use thiserror::Error;

use super::MOST_RANGES;

macro_rules! refusals {
    ($($(#[doc = $doc:literal])* $name:ident $sentence:literal)*) => {
        /// A rule that a Peer breaks, in order of weight.
        #[derive(Clone, Copy, Debug, Eq, Error, Ord, PartialEq, PartialOrd)]
        pub enum Refusal {$(
            $(#[doc = $doc])*
            #[error($sentence)]
            $name,
        )*}

        impl Refusal {
            /// Every rule, in order of weight.
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

refusals! {
    /// The user may not write Peers with our labels.
    Writer "this user may not create, change or delete Peers with the labels of clustermesh (`--writers`)"
    /// A Peer without our labels that the owner does not allow.
    Unlisted "the Peer has no labels of clustermesh and is not one that the owner of the cluster allows (`--allow-peer`)"
    /// The user may not write a Peer that the owner allows.
    PeerWriter "this user may not create, change or delete this Peer (`--allow-peer-writers`)"
    /// Labels that name no source.
    Source "the labels name no mesh and source from which this cluster accepts Peers"
    /// The name of another source.
    Name "the name of the Peer does not fit its labels: MESH--SOURCE--NODE, or MESH--external.NAME of an external peer"
    /// Too many allowed IPs.
    ManyRanges "the Peer has more than {MOST_RANGES} allowed IPs"
    /// No allowed IP.
    NoRange "the Peer has no allowed IP"
    /// An IPv4 range written as IPv6.
    MappedRange "an allowed IP is an IPv4-mapped IPv6 range"
    /// A text that is not a range.
    UnreadableRange "an allowed IP is not a range such as 10.42.0.0/24"
    /// Every address of a family.
    DefaultRoute "an allowed IP is a default route"
    /// A range of the cluster itself.
    OwnRange "an allowed IP overlaps a range of this cluster itself"
    /// A family that the cluster does not declare.
    Family "an allowed IP is of an address family that no range of this cluster has"
    /// A range that the cluster does not accept of this source.
    Outside "an allowed IP is outside of the ranges that this cluster accepts of this source"
    /// A range that is not masked.
    HostBits "an allowed IP has host bits"
    /// One range twice.
    Twice "the Peer has an allowed IP twice"
    /// A text that is not a key.
    Key "the public key is not 44 characters of canonical base64"
    /// No endpoint.
    NoEndpoint "the Peer has no endpoint, so Kilo would not apply later changes of other Peers"
    /// An endpoint that Kilo does not read.
    Address "the endpoint has no valid address"
    /// A name beside an address.
    NameAndAddress "the endpoint has a DNS name and an address"
    /// A name that is not of a declared domain.
    Domain "the DNS name of the endpoint is not under a domain in `endpointDomains` of this source"
    /// An address that no other cluster can dial.
    Undialable "the endpoint is a loopback, link-local, multicast, broadcast or unspecified address"
    /// An endpoint in the ranges of its own Peer.
    Loop "the endpoint is inside an allowed IP of the same Peer"
    /// An endpoint inside of the cluster.
    OwnEndpoint "the endpoint is inside a pod, service or WireGuard range of this cluster"
    /// A placeholder without a keepalive.
    IdlePlaceholder "the endpoint is the placeholder 192.0.2.1:9, which needs a keepalive"
    /// A port that UDP does not have.
    Port "the port of the endpoint is not from 1 to 65535"
    /// A keepalive that WireGuard cannot have.
    Keepalive "the keepalive is not from 0 to 65535"
}
