//! Failures: the cause of a request that failed.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::time::Duration;

use clustermesh::rules::clusters::{
    CERTIFICATE, CUT, Fault, FaultKind, OTHER_SERVER, SLOW, UNREACHABLE, shown,
};
use hyper_util::client::legacy;
use rustls::{AlertDescription, CertificateError};

use super::connection::{Connection, unknown_host};

/// The reason for which there is no answer.
pub(super) enum RequestFailure {
    /// It stays so.
    Final(Fault),
    /// It may pass, perhaps after the time that the server wants.
    Passing(Fault, Option<Duration>),
}

/// Returns what an error before the answer means.
pub(super) fn of_request(error: &kube::Error, connection: &Connection) -> RequestFailure {
    let is_connect = chain(error)
        .any(|it| it.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect));
    let known = chain(error).find_map(|cause| known(cause, connection, is_connect));
    known.unwrap_or_else(|| {
        let problem = connection.hidden.hide(&innermost(error));
        if is_connect {
            RequestFailure::Final(unreachable(connection, &problem))
        } else {
            cut(&problem)
        }
    })
}

/// Returns what an error in the middle of an answer means.
pub(super) fn of_body(error: &kube::Error, connection: &Connection) -> RequestFailure {
    chain(error)
        .find_map(|cause| known(cause, connection, false))
        .unwrap_or_else(|| cut(&connection.hidden.hide(&innermost(error))))
}

/// Returns what a cause means, if it is one that means something by itself.
fn known(
    cause: &(dyn Error + 'static),
    connection: &Connection,
    is_connect: bool,
) -> Option<RequestFailure> {
    let tls = cause.downcast_ref::<rustls::Error>();
    if let Some(fault) = tls.and_then(|error| certificate(error, &connection.server)) {
        return Some(RequestFailure::Final(fault));
    }
    if cause.to_string().starts_with("dns error") {
        // The name of a server behind a proxy is the proxy's business.
        let fault = match &connection.proxy {
            Some(proxy) => proxy.unusable(&connection.server, "the name does not resolve"),
            None => unknown_host(connection.server.rsplit_once(':').map_or("", |it| it.0)),
        };
        return Some(RequestFailure::Final(fault));
    }
    let error = cause.downcast_ref::<io::Error>()?;
    let problem = error.to_string();
    match error.kind() {
        ErrorKind::TimedOut if is_connect => {
            Some(RequestFailure::Final(slow(connection, connection.connect)))
        }
        ErrorKind::TimedOut => Some(RequestFailure::Final(slow(connection, connection.patience))),
        // An API server that restarts refuses connections for some seconds.
        ErrorKind::ConnectionRefused => {
            let fault = unreachable(connection, &problem);
            Some(RequestFailure::Passing(fault, None))
        }
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::AddrNotAvailable => {
            Some(RequestFailure::Final(unreachable(connection, &problem)))
        }
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => match &connection.proxy {
            Some(proxy) if is_connect => {
                let fault = proxy.unusable(&connection.server, &problem);
                Some(RequestFailure::Passing(fault, None))
            }
            _ => Some(cut(&problem)),
        },
        _ => None,
    }
}

/// Returns what is wrong with the server's certificate, or with ours.
pub(super) fn certificate(error: &rustls::Error, server: &str) -> Option<Fault> {
    let server = shown(server);
    let about = |words| Fault::new(&CERTIFICATE, format!("the certificate of {server} {words}"));
    Some(match error {
        rustls::Error::InvalidCertificate(problem) => {
            let (words, help) = server_certificate(problem);
            match help {
                Some(help) => about(words).help(help),
                None => about(words),
            }
        }
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied
            | AlertDescription::UnknownCA,
        ) => about("is valid, but the server refuses our client certificate")
            .help("renew the client certificate in the kubeconfig if it has expired"),
        rustls::Error::AlertReceived(
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity,
        )
        | rustls::Error::PeerIncompatible(_) => Fault::new(
            &CERTIFICATE,
            format!("{server} supports no TLS version or cipher of TLS 1.2 and 1.3"),
        )
        .help("allow TLS 1.2 or 1.3 on the API server, or on the load balancer in front of it"),
        rustls::Error::InvalidMessage(_) => {
            Fault::new(&CERTIFICATE, format!("{server} does not support TLS")).help(OTHER_SERVER)
        }
        rustls::Error::NoCertificatesPresented => about(MALFORMED),
        _ => return None,
    })
}

/// The words for a certificate without a better description.
const MALFORMED: &str = "does not follow the X.509 standard";

/// Returns what is wrong with a certificate, and the help if a new certificate is not the remedy.
fn server_certificate(error: &CertificateError) -> (&'static str, Option<&'static str>) {
    use CertificateError as Error;
    const AUTHORITY: &str = "check `certificate-authority-data` in the kubeconfig";
    #[expect(deprecated, reason = "rustls may still return it")]
    match error {
        Error::UnknownIssuer => ("is signed by an unknown authority", Some(AUTHORITY)),
        Error::NotValidForName | Error::NotValidForNameContext { .. } => (
            "is for another host",
            Some("check `server` in the kubeconfig, or add `tls-server-name`"),
        ),
        Error::Expired
        | Error::ExpiredContext { .. }
        | Error::NotValidYet
        | Error::NotValidYetContext { .. } => (
            "is not valid at this time",
            Some("renew the certificate, or correct the clock of this machine"),
        ),
        Error::InvalidPurpose | Error::InvalidPurposeContext { .. } => {
            ("is not a server certificate (`serverAuth` is missing)", None)
        }
        Error::BadSignature => (
            "is signed by an authority with the name of a trusted one but another key",
            Some(AUTHORITY),
        ),
        Error::UnsupportedSignatureAlgorithm
        | Error::UnsupportedSignatureAlgorithmContext { .. }
        | Error::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            ("is signed with an algorithm that is not supported", None)
        }
        // webpki's own errors, which are called so and no longer have a type.
        Error::Other(error) => match error.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                ("is a CA certificate, which cannot be used as a server certificate", None)
            }
            "UnsupportedCertVersion" => ("is X.509 version 1, and only 3 is supported", None),
            _ => (MALFORMED, None),
        },
        _ => (MALFORMED, None),
    }
}

/// Returns the fault of a server to which there is no connection.
pub(super) fn unreachable(connection: &Connection, problem: &str) -> Fault {
    let server = &connection.server;
    if let Some(proxy) = &connection.proxy {
        return proxy.unusable(server, problem);
    }
    let sentence = format!("cannot connect to {}", shown(server));
    Fault::new(&UNREACHABLE, sentence).counted(format!(": {}", shown(problem)))
}

/// Returns the fault of a server that has not answered in time.
pub(super) fn slow(connection: &Connection, waited: Duration) -> Fault {
    let (server, seconds) = (shown(&connection.way()), waited.as_secs());
    Fault::new(&SLOW, format!("no response from {server} within {seconds} s"))
}

/// Returns the fault of a server whose answers have no end.
pub(super) fn endless(answers: &str, waited: Duration) -> Fault {
    let seconds = waited.as_secs();
    let sentence = format!("the {answers} did not arrive completely within {seconds} s");
    Fault::new(&SLOW, sentence)
}

/// Returns the fault of an answer that is not a list, or too long.
pub(crate) fn useless(kind: &'static FaultKind, problem: &(impl Display + ?Sized)) -> Fault {
    let problem = shown(&problem.to_string());
    Fault::new(kind, format!("the response cannot be used: {problem}"))
}

/// Returns what an answer means that ends in the middle, although the connection ended well.
pub(super) fn of_half() -> RequestFailure {
    cut("the response is incomplete")
}

/// Returns the failure of an answer that was cut off.
pub(super) fn cut(problem: &str) -> RequestFailure {
    let fault = Fault::new(&CUT, "the response was cut off");
    RequestFailure::Passing(fault.counted(format!(": {}", shown(problem))), None)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An error within an I/O error is not among its sources; only what caused it is.
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        within.map_or_else(|| error.source(), |within| Some(within))
    })
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
