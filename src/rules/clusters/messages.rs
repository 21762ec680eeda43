//! Messages about clusters that could not be read, and their remedies.

use std::fmt;

use super::{CertificateProblem, Fault, LoginProblem, Right, User};
use crate::diagnostic::{Quoted, escaped};

/// The longest part of a message of a server or a plugin that is shown, in characters.
pub(super) const MAX_LENGTH: usize = 400;

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Kubeconfig { origin, problem } => {
                write!(formatter, "{} ({})", shown(problem), shown(origin))
            }
            Self::Secret { origin, problem } => {
                write!(formatter, "{}: {}", shown(origin), shown(problem))
            }
            Self::Context { origin, wanted, .. } => {
                let (origin, wanted) = (shown(origin), Quoted(wanted));
                write!(formatter, "{origin} has no context {wanted}")
            }
            Self::Unsafe { origin, field } => write!(
                formatter,
                "the kubeconfig in {} contains `{field}`, which runs a program or reads a file on \
                 this machine",
                shown(origin)
            ),
            Self::Foreign {
                origin,
                field,
                config,
            } => formatter.write_str(&foreign(origin, field, config)),
            Self::Unowned { origin, config } => formatter.write_str(&unowned(origin, config)),
            Self::Ambiguous { problem } => formatter.write_str(&shown(problem)),
            Self::Login { command, problem } => {
                write!(formatter, "the login plugin {} {problem}", Quoted(command))
            }
            Self::Host { host } => write!(formatter, "the name {} does not resolve", Quoted(host)),
            Self::Unreachable {
                server,
                problem,
                attempts,
            } => write!(
                formatter,
                "cannot connect to {} (attempts: {attempts}): {}",
                shown(server),
                shown(problem)
            ),
            Self::Proxy {
                proxy,
                origin,
                server,
                problem,
            } => write!(
                formatter,
                "no connection through the proxy {} (`{origin}`) to {}: {}",
                shown(proxy),
                shown(server),
                shown(problem)
            ),
            Self::Slow { server, seconds } => write!(
                formatter,
                "no response from {} within {seconds} s",
                shown(server)
            ),
            Self::Endless { answers, seconds } => write!(
                formatter,
                "the {answers} did not arrive completely within {seconds} s"
            ),
            Self::Certificate { server, problem } => {
                let what = problem.subject();
                write!(formatter, "{what}{} {problem}", shown(server))
            }
            Self::Unauthorized {
                server,
                right,
                user,
                says,
            } => formatter.write_str(&unauthorized(&shown(server), right, user, says)),
            Self::Forbidden { right, user, says } => {
                formatter.write_str(&forbidden(right, user, says))
            }
            Self::Refused {
                status,
                says,
                attempts,
            } => write!(
                formatter,
                "the server responded{} with {status}{}",
                times(*attempts),
                says_so(says)
            ),
            Self::Redirected { to } => write!(
                formatter,
                "the server redirects to {}, which clustermesh does not follow",
                shown(to)
            ),
            Self::Cut { problem, attempts } => write!(
                formatter,
                "the response was cut off{}: {}",
                times(*attempts),
                shown(problem)
            ),
            Self::Unreadable { problem } | Self::Oversized { problem } => {
                write!(formatter, "the response cannot be used: {}", shown(problem))
            }
            Self::Versions { served, wanted } => formatter.write_str(&versions(served, wanted)),
        }
    }
}

fn versions(served: &[String], wanted: &str) -> String {
    let served = shown(&served.join(", "));
    format!("Kilo's CRD `peers.kilo.squat.ai` has {served}, but not {wanted}")
}

fn unowned(origin: &str, config: &str) -> String {
    let (origin, config) = (shown(origin), shown(config));
    format!("the kubeconfig {origin}, which {config} names, belongs to another user")
}

fn foreign(origin: &str, field: &str, config: &str) -> String {
    format!(
        "the kubeconfig {} contains `{field}`, which runs a program or reads a file, and the \
         config that names it, {}, belongs to another user",
        shown(origin),
        shown(config)
    )
}

impl fmt::Display for LoginProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Start(problem) => write!(formatter, "cannot be started: {}", shown(problem)),
            Self::Failed { status, stderr } => {
                let said = match stderr.trim() {
                    "" => "without output".to_owned(),
                    text => format!("with output: {}", shown(text)),
                };
                write!(formatter, "failed ({}) {said}", shown(status))
            }
            Self::Slow(seconds) => write!(formatter, "did not finish within {seconds} s"),
            Self::Interactive => {
                formatter.write_str("needs a terminal (`interactiveMode: Always`)")
            }
            Self::Unreadable(problem) => write!(formatter, "printed no credentials: {problem}"),
        }
    }
}

impl CertificateProblem {
    /// Returns the words before the server: some problems show no certificate.
    fn subject(&self) -> &'static str {
        match self {
            Self::NoTls | Self::NoCommonTls => "",
            _ => "the certificate of ",
        }
    }

    pub(super) fn help(&self) -> String {
        let help = match self {
            Self::UnknownIssuer | Self::Signature => {
                "check `certificate-authority-data` in the kubeconfig"
            }
            Self::OtherHost => "check `server` in the kubeconfig, or add `tls-server-name`",
            Self::Time => "renew the certificate, or correct the clock of this machine",
            Self::Client => "renew the client certificate in the kubeconfig if it has expired",
            Self::Authority | Self::Purpose | Self::Algorithm | Self::Version | Self::Malformed => {
                "give the API server a certificate for servers, signed by its certificate authority"
            }
            Self::NoTls => "check that `server` in the kubeconfig is a Kubernetes API server",
            Self::NoCommonTls => {
                "allow TLS 1.2 or 1.3 on the API server, or on the load balancer \
                in front of it"
            }
        };
        help.to_owned()
    }
}

impl fmt::Display for CertificateProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::UnknownIssuer => formatter.write_str("is signed by an unknown authority"),
            Self::OtherHost => formatter.write_str("is for another host"),
            Self::Time => formatter.write_str("is not valid at this time"),
            Self::Client => {
                formatter.write_str("is valid, but the server refuses our client certificate")
            }
            Self::Authority => formatter
                .write_str("is a CA certificate, which cannot be used as a server certificate"),
            Self::Purpose => {
                formatter.write_str("is not a server certificate (`serverAuth` is missing)")
            }
            Self::Signature => formatter.write_str(
                "is signed by an authority with the name of a trusted one but another key",
            ),
            Self::Algorithm => {
                formatter.write_str("is signed with an algorithm that is not supported")
            }
            Self::Version => formatter.write_str("is X.509 version 1, and only 3 is supported"),
            Self::Malformed => formatter.write_str("does not follow the X.509 standard"),
            Self::NoTls => formatter.write_str("does not support TLS"),
            Self::NoCommonTls => {
                formatter.write_str("supports no TLS version or cipher of TLS 1.2 and 1.3")
            }
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::ListNodes => formatter.write_str("`list` `nodes`"),
            Self::ListPeers => formatter.write_str("`list` `peers.kilo.squat.ai`"),
            Self::ListMeshes => formatter.write_str("`list` `clustermeshes.kilo.squat.ai`"),
            Self::GetSecret { namespace, name } => {
                let secret = escaped(&format!("{namespace}/{name}"), MAX_LENGTH);
                write!(formatter, "`get` the Secret `{secret}`")
            }
        }
    }
}

fn unauthorized(server: &str, right: &Right, user: &User, says: &str) -> String {
    let server = match right {
        Right::GetSecret { .. } | Right::ListMeshes => format!("the operator's cluster {server}"),
        Right::ListNodes | Right::ListPeers => server.to_owned(),
    };
    let (origin, says) = (shown(&user.origin), says_so(says));
    if user.has_credentials {
        format!("{server} refused the credentials of {origin} (401{says})")
    } else {
        format!("{server} requires credentials, and {origin} has none (401{says})")
    }
}

fn forbidden(right: &Right, user: &User, says: &str) -> String {
    let (origin, said) = (shown(&user.origin), says_so(says));
    match user.has_credentials {
        _ if !is_anonymous(says) => format!("the right to {right} is missing (403{said})"),
        true => format!("the server received no credentials from {origin} (403{said})"),
        false => format!("{origin} has no credentials (403{said})"),
    }
}

/// Returns whether the server treated the request as one without credentials. Such a right would be
/// granted to all users.
pub(super) fn is_anonymous(says: &str) -> bool {
    says.contains("\"system:anonymous\"")
}

pub(super) fn shown(text: &str) -> String {
    escaped(text, MAX_LENGTH)
}

fn says_so(says: &str) -> String {
    match says.trim() {
        "" => String::new(),
        says => format!(": {}", shown(says)),
    }
}

fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        attempts => format!(" {attempts} times"),
    }
}
