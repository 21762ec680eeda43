//! Reasons: why a node is left out, in words, and what many nodes may have in common of it.

use crate::diagnostic::{Quoted, escaped};
use crate::membership::{EndpointProblem, ExcludedReason, Origin, Unready};
use crate::mesh::EndpointSource;
use crate::wireguard::EndpointError;

/// Describes why a node is left out.
pub fn words(reason: &ExcludedReason) -> String {
    match reason {
        ExcludedReason::NoPodCidr => "no pod CIDR is assigned".to_owned(),
        ExcludedReason::PodCidrInvalid { text, error } => {
            format!("pod CIDR {} is not valid: {}", Quoted(text), foreign(error))
        }
        ExcludedReason::PodCidrOutOfRange { cidr } => {
            format!("pod CIDR {cidr} is outside the declared ranges")
        }
        ExcludedReason::NoWireguardIp => {
            "annotation kilo.squat.ai/wireguard-ip is missing or empty".to_owned()
        }
        ExcludedReason::WireguardIpInvalid { text, error } => {
            let text = Quoted(text);
            format!("WireGuard address {text} is not valid: {}", foreign(error))
        }
        ExcludedReason::WireguardIpOutOfRange { address } => {
            format!("WireGuard address {address} is outside the declared ranges")
        }
        ExcludedReason::NoPublicKey => {
            "annotation kilo.squat.ai/key is missing or empty".to_owned()
        }
        ExcludedReason::PublicKeyInvalid { text, error } => {
            format!("public key {} is not valid: {error}", Quoted(text))
        }
        ExcludedReason::EndpointInvalid { origin, text, error } => {
            format!("{}: {}", endpoint(*origin, text), problem(error))
        }
        ExcludedReason::NoEndpoint(sources) => no_endpoint(sources),
        ExcludedReason::NameInvalid(error) => format!("invalid name: {error}"),
        ExcludedReason::DuplicateName(node) => {
            format!("its Peer would have the same name as the Peer of {}", Quoted(node))
        }
        ExcludedReason::DuplicateKey(node) => format!("same public key as {}", Quoted(node)),
        ExcludedReason::PodCidrTaken { cidr, other, node } => {
            format!("pod CIDR {cidr} overlaps {other} of {}", Quoted(node))
        }
        ExcludedReason::NotReady(why) => format!("not ready: {}", unready(*why)),
        ExcludedReason::LeaderExcluded(leader) => {
            format!("the leader of its location, {}, is left out", Quoted(leader))
        }
        ExcludedReason::NotSelected => "not selected by nodeSelector".to_owned(),
    }
}

/// Splits a reason that names a value of the node into what many nodes may have in common, and that value.
pub(super) fn in_common(reason: &ExcludedReason) -> Option<(String, String)> {
    let (what, value) = match reason {
        ExcludedReason::PodCidrInvalid { text, .. } => ("pod CIDR is not valid", text),
        ExcludedReason::PodCidrOutOfRange { cidr } => {
            let what = "pod CIDR is outside the declared ranges".to_owned();
            return Some((what, cidr.to_string()));
        }
        ExcludedReason::WireguardIpInvalid { text, .. } => ("WireGuard address is not valid", text),
        ExcludedReason::WireguardIpOutOfRange { address } => {
            let what = "WireGuard address is outside the declared ranges".to_owned();
            return Some((what, address.to_string()));
        }
        ExcludedReason::PublicKeyInvalid { text, .. } => ("public key is not valid", text),
        ExcludedReason::EndpointInvalid { origin, text, error } => {
            let what = format!("{}: {}", place_of(*origin), kind_of(error));
            return Some((what, Quoted(text).to_string()));
        }
        _ => return None,
    };
    Some((what.to_owned(), Quoted(value).to_string()))
}

/// Describes what is wrong with an endpoint, without the value.
fn kind_of(error: &EndpointProblem) -> String {
    let EndpointProblem::Endpoint(endpoint) = error else {
        return problem(error);
    };
    match endpoint {
        EndpointError::Port(_) => "the port is not a number from 1 to 65535".to_owned(),
        EndpointError::Dns(_) => "neither an IP address nor a lowercase DNS name".to_owned(),
        EndpointError::Unreachable { what, .. } => {
            format!("{what}, which other clusters cannot dial")
        }
        EndpointError::Form
        | EndpointError::NoPort
        | EndpointError::NoHost
        | EndpointError::Placeholder => problem(error),
    }
}

/// Names the source of an endpoint.
fn place_of(origin: Origin) -> String {
    match origin {
        Origin::Annotation(key) => format!("endpoint of annotation {key}"),
        Origin::ExternalIP => "external address".to_owned(),
        Origin::InternalIP => "internal address".to_owned(),
    }
}

fn unready(why: Unready) -> &'static str {
    match why {
        Unready::Stale => "its Kilo agent stopped sending heartbeats",
        Unready::NoEndpoint => "Kilo has no endpoint for it",
    }
}

fn endpoint(origin: Origin, text: &str) -> String {
    match origin {
        Origin::Annotation(key) => format!("endpoint {} of annotation {key}", Quoted(text)),
        Origin::ExternalIP => format!("external address {}", Quoted(text)),
        Origin::InternalIP => format!("internal address {}", Quoted(text)),
    }
}

fn problem(problem: &EndpointProblem) -> String {
    match problem {
        EndpointProblem::Endpoint(error) => foreign(error),
        EndpointProblem::UndeclaredName => {
            "the DNS name is not under the cluster's `endpointDomains`".to_owned()
        }
    }
}

fn no_endpoint(sources: &[EndpointSource]) -> String {
    let names: Vec<&str> = sources
        .iter()
        .map(|source| match source {
            EndpointSource::Annotation => {
                "annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint"
            }
            EndpointSource::ExternalIP => "external address",
            EndpointSource::InternalIP => "internal address",
            EndpointSource::Kilo => "annotation kilo.squat.ai/endpoint",
        })
        .collect();
    format!("no endpoint: no {}", names.join(", no "))
}

/// The text of an error that may quote a value of a node.
pub(super) fn foreign(error: &impl std::fmt::Display) -> String {
    escaped(&error.to_string(), 200)
}
