//! Reasons why a node, or one of its ranges, is left out.

use std::net::IpAddr;

use crate::mesh::EndpointSource;
use crate::name::NameError;
use crate::net::{Cidr, CidrError};
use crate::wireguard::{EndpointError, KeyError};

/// The reason why a node is left out. The operator's own reasons come first, in its order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ExcludedReason {
    /// Kubernetes assigned it no pod CIDR.
    NoPodCidr,
    /// Its first pod CIDR is invalid.
    PodCidrInvalid {
        /// The text.
        text: String,
        /// The problem.
        error: CidrError,
    },
    /// Its first pod CIDR is not in the declared ranges.
    PodCidrOutOfRange {
        /// The pod CIDR.
        cidr: Cidr,
    },
    /// It has no WireGuard address: it does not lead, or Kilo does not run there.
    NoWireguardIp,
    /// Its WireGuard address is not written as `address/length`.
    WireguardIpInvalid {
        /// The text.
        text: String,
        /// The problem.
        error: CidrError,
    },
    /// Its WireGuard address is not in the declared range.
    WireguardIpOutOfRange {
        /// The address.
        address: IpAddr,
    },
    /// It has no public key.
    NoPublicKey,
    /// No handshake can use its public key.
    PublicKeyInvalid {
        /// The text.
        text: String,
        /// The problem.
        error: KeyError,
    },
    /// The endpoint that wins cannot be dialled.
    EndpointInvalid {
        /// Its source.
        origin: Origin,
        /// The text.
        text: String,
        /// The problem.
        error: EndpointProblem,
    },
    /// There is no endpoint in any of these places.
    NoEndpoint(Vec<EndpointSource>),
    /// Its name is not a valid Kubernetes name.
    NameInvalid(NameError),
    /// Its Peer would be called as that of a node before it, since long names are cut.
    DuplicateName(String),
    /// A node before it has the same key.
    DuplicateKey(String),
    /// Its pod CIDR shares addresses with a better founded one.
    PodCidrTaken {
        /// Its own.
        cidr: Cidr,
        /// The other.
        other: Cidr,
        /// The other's node.
        node: String,
    },
    /// Kilo ignores it, and it is not a segment of its own.
    NotReady(Unready),
    /// The leader of its segment is left out.
    LeaderExcluded(String),
    /// The mesh's `nodeSelector` does not select it.
    NotSelected,
}

/// The source of an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// An annotation of this name.
    Annotation(&'static str),
    /// The node's external address.
    ExternalIP,
    /// The node's internal address.
    InternalIP,
}

/// A problem of an endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EndpointProblem {
    /// In itself.
    Endpoint(EndpointError),
    /// A name under none of the mesh's `endpointDomains`.
    UndeclaredName,
}

/// The reason why Kilo does not count a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unready {
    /// It stopped checking in.
    Stale,
    /// Kilo has no endpoint for it.
    NoEndpoint,
}

/// The reason why a range is withheld although its node is not left out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WithheldReason {
    /// It is not a range.
    Invalid(CidrError),
    /// It is not in the declared ranges.
    OutOfRange,
    /// The node already has one of this family.
    SecondOfFamily,
    /// The node already has an internal address of this family.
    SecondAddress,
    /// Kilo uses another internal address of this family, which is not in the declared ranges.
    Overridden {
        /// The address that Kilo uses.
        by: IpAddr,
    },
    /// A node before it claims the same address.
    Taken {
        /// The other node.
        node: String,
    },
    /// It is in another segment's pod CIDR.
    InPodCidr {
        /// That pod CIDR.
        cidr: Cidr,
        /// The node that owns it.
        node: String,
    },
    /// It shares addresses with another node's pod CIDR.
    PodCidrTaken {
        /// That pod CIDR.
        other: Cidr,
        /// The node that owns it.
        node: String,
    },
}
