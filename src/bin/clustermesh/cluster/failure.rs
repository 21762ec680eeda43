//! Failures: the cause of a request that failed.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use clustermesh::rules::clusters::{CertificateProblem, Fault};
use hyper_util::client::legacy;
use rustls::{AlertDescription, CertificateError};

use super::connection::Connection;
use super::proxy::Proxy;

/// The reason for which there is no answer.
pub(super) enum RequestFailure {
    /// It stays so.
    Final(Fault),
    /// It may pass, perhaps after the time that the server wants.
    Passing(Fault, Option<Duration>),
}

/// Returns what an error before the answer means.
pub(super) fn of_request(error: &kube::Error, connection: &Connection) -> RequestFailure {
    let is_connect = chain(error).any(|it| {
        let error = it.downcast_ref::<legacy::Error>();
        error.is_some_and(legacy::Error::is_connect)
    });
    let waited = if is_connect {
        connection.connect
    } else {
        connection.patience
    };
    let known = chain(error).find_map(|cause| known(cause, connection, waited));
    match (known, &connection.proxy) {
        (Some(RequestFailure::Passing(Fault::Cut { problem, .. }, pause)), Some(proxy))
            if is_connect =>
        {
            RequestFailure::Passing(unusable(proxy, connection, problem), pause)
        }
        (Some(failure), _) => failure,
        (None, proxy) => {
            let problem = connection.hidden.hide(&innermost(error));
            match proxy {
                Some(proxy) if is_connect => {
                    RequestFailure::Final(unusable(proxy, connection, problem))
                }
                None if is_connect => RequestFailure::Final(unreachable(connection, problem)),
                _ => cut(problem),
            }
        }
    }
}

/// Returns what an error in the middle of an answer means.
pub(super) fn of_body(error: &kube::Error, connection: &Connection) -> RequestFailure {
    let known = chain(error).find_map(|cause| known(cause, connection, connection.patience));
    known.unwrap_or_else(|| cut(connection.hidden.hide(&innermost(error))))
}

/// Returns what a cause means, if it is one that means something by itself.
fn known(
    cause: &(dyn Error + 'static),
    connection: &Connection,
    waited: Duration,
) -> Option<RequestFailure> {
    let tls = cause.downcast_ref::<rustls::Error>();
    if let Some(problem) = tls.and_then(certificate) {
        return Some(RequestFailure::Final(Fault::Certificate {
            server: connection.server.clone(),
            problem,
        }));
    }
    if cause.to_string().starts_with("dns error") {
        // The name of a server behind a proxy is the proxy's business.
        let fault = match &connection.proxy {
            Some(proxy) => unusable(proxy, connection, "the name does not resolve".to_owned()),
            None => Fault::Host {
                host: host(&connection.server),
            },
        };
        return Some(RequestFailure::Final(fault));
    }
    let error = cause.downcast_ref::<io::Error>()?;
    match error.kind() {
        ErrorKind::TimedOut => Some(RequestFailure::Final(Fault::Slow {
            server: connection.way(),
            seconds: waited.as_secs(),
        })),
        // An API server that restarts refuses connections for some seconds.
        ErrorKind::ConnectionRefused => Some(RequestFailure::Passing(
            unreachable(connection, error.to_string()),
            None,
        )),
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::AddrNotAvailable => Some(RequestFailure::Final(unreachable(
            connection,
            error.to_string(),
        ))),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(cut(error.to_string())),
        _ => None,
    }
}

/// Returns what is wrong with the server's certificate, or with ours.
fn certificate(error: &rustls::Error) -> Option<CertificateProblem> {
    match error {
        rustls::Error::InvalidCertificate(problem) => Some(server_certificate(problem)),
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied
            | AlertDescription::UnknownCA,
        ) => Some(CertificateProblem::Client),
        rustls::Error::AlertReceived(
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity,
        )
        | rustls::Error::PeerIncompatible(_) => Some(CertificateProblem::NoCommonTls),
        rustls::Error::InvalidMessage(_) => Some(CertificateProblem::NoTls),
        rustls::Error::NoCertificatesPresented => Some(CertificateProblem::Malformed),
        _ => None,
    }
}

fn server_certificate(error: &CertificateError) -> CertificateProblem {
    use CertificateError as Error;
    use CertificateProblem as Problem;
    #[expect(deprecated, reason = "rustls may still return it")]
    match error {
        Error::UnknownIssuer => Problem::UnknownIssuer,
        Error::NotValidForName | Error::NotValidForNameContext { .. } => Problem::OtherHost,
        Error::Expired
        | Error::ExpiredContext { .. }
        | Error::NotValidYet
        | Error::NotValidYetContext { .. } => Problem::Time,
        Error::InvalidPurpose | Error::InvalidPurposeContext { .. } => Problem::Purpose,
        Error::BadSignature => Problem::Signature,
        Error::UnsupportedSignatureAlgorithm
        | Error::UnsupportedSignatureAlgorithmContext { .. }
        | Error::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Problem::Algorithm,
        // webpki's own errors, which are called so and no longer have a type.
        Error::Other(error) => match error.to_string().as_str() {
            "CaUsedAsEndEntity" => Problem::Authority,
            "UnsupportedCertVersion" => Problem::Version,
            _ => Problem::Malformed,
        },
        _ => Problem::Malformed,
    }
}

fn unreachable(connection: &Connection, problem: String) -> Fault {
    match &connection.proxy {
        Some(proxy) => unusable(proxy, connection, problem),
        None => Fault::Unreachable {
            server: connection.server.clone(),
            problem,
            attempts: 1,
        },
    }
}

fn unusable(proxy: &Proxy, connection: &Connection, problem: String) -> Fault {
    Fault::Proxy {
        proxy: proxy.address(),
        origin: proxy.origin,
        server: connection.server.clone(),
        problem,
    }
}

fn host(server: &str) -> String {
    let host = server.rsplit_once(':').map_or("", |it| it.0);
    host.to_owned()
}

/// Returns what an answer means that ends in the middle, although the connection ended well.
pub(super) fn of_half() -> RequestFailure {
    cut("the response is incomplete".to_owned())
}

fn cut(problem: String) -> RequestFailure {
    let fault = Fault::Cut {
        problem,
        attempts: 1,
    };
    RequestFailure::Passing(fault, None)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An error within an I/O error is not among its sources; only what caused it is.
        let within = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        within.map_or_else(|| error.source(), |within| Some(within))
    })
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}
