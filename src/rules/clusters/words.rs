//! Messages about clusters that could not be read, and their remedies.

use std::fmt;

use super::{CertificateProblem, Fault, LoginProblem, Right, User};
use crate::diagnostic::{Quoted, escaped};
use crate::name::ClusterName;

/// How much of a message of a server or a plugin is shown, in characters.
const TOLD: usize = 400;

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Kubeconfig { origin, problem } | Self::Secret { origin, problem } => {
                write!(formatter, "{}: {}", told(origin), told(problem))
            }
            Self::Context { origin, wanted, .. } => {
                let (origin, wanted) = (told(origin), Quoted(wanted));
                write!(formatter, "{origin} has no context {wanted}")
            }
            Self::Unsafe { origin, field } => write!(
                formatter,
                "the kubeconfig in {} has `{field}`, by which whoever wrote it would run programs \
                 or read files here",
                told(origin)
            ),
            Self::Foreign {
                origin,
                field,
                config,
            } => formatter.write_str(&foreign(origin, field, config)),
            Self::Ambiguous { problem } => formatter.write_str(&told(problem)),
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
                "cannot connect to {}{}: {}",
                told(server),
                match attempts {
                    0 | 1 => String::new(),
                    attempts => format!(" ({attempts} attempts)"),
                },
                told(problem)
            ),
            Self::Proxy {
                proxy,
                origin,
                server,
                problem,
            } => write!(
                formatter,
                "the proxy {} (`{origin}`) does not lead to {}: {}",
                told(proxy),
                told(server),
                told(problem)
            ),
            Self::Slow { server, seconds } => write!(
                formatter,
                "{} did not answer within {seconds} s",
                told(server)
            ),
            Self::Endless { seconds } => write!(
                formatter,
                "it answers, but its nodes were not all listed within {seconds} s"
            ),
            Self::Certificate { server, problem } => {
                let what = if problem.is_of_tls() {
                    ""
                } else {
                    "the certificate of "
                };
                write!(formatter, "{what}{} {problem}", told(server))
            }
            Self::Unauthorized {
                server,
                right,
                user,
                says,
            } => formatter.write_str(&unauthorized(&told(server), right, user, says)),
            Self::Forbidden { right, user, says } => {
                formatter.write_str(&forbidden(right, user, says))
            }
            Self::Refused {
                status,
                says,
                attempts,
            } => write!(
                formatter,
                "it answered {status}{}{}",
                times(*attempts),
                says_so(says)
            ),
            Self::Redirected { to } => write!(
                formatter,
                "it answered with a redirect to {}, which is not followed",
                told(to)
            ),
            Self::Cut { problem, attempts } => write!(
                formatter,
                "its answer broke off{}: {}",
                times(*attempts),
                told(problem)
            ),
            Self::Unreadable { problem } | Self::Oversized { problem } => {
                write!(formatter, "its answer cannot be used: {}", told(problem))
            }
        }
    }
}

fn foreign(origin: &str, field: &str, config: &str) -> String {
    format!(
        "the kubeconfig {} has `{field}`, and the config that names it, {}, belongs to another \
         user, who would run programs or read files here",
        told(origin),
        told(config)
    )
}

impl fmt::Display for LoginProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Start(problem) => write!(formatter, "cannot be started: {}", told(problem)),
            Self::Failed { status, stderr } => {
                let said = match stderr.trim() {
                    "" => "without a word".to_owned(),
                    text => format!("saying: {}", told(text)),
                };
                write!(formatter, "failed ({}) {said}", told(status))
            }
            Self::Slow(seconds) => write!(formatter, "did not end within {seconds} s"),
            Self::Interactive => formatter
                .write_str("wants a terminal (`interactiveMode: Always`), and has none here"),
            Self::Unreadable(problem) => write!(formatter, "printed no credentials: {problem}"),
        }
    }
}

impl CertificateProblem {
    /// Returns whether there was no certificate to look at.
    fn is_of_tls(&self) -> bool {
        matches!(self, Self::NoTls | Self::NoCommonTls)
    }

    fn help(&self) -> String {
        let help = match self {
            Self::UnknownIssuer | Self::Signature => {
                "is `certificate-authority-data` in the kubeconfig that of this cluster?"
            }
            Self::OtherHost => {
                "is `server` right in the kubeconfig, or should it have `tls-server-name`?"
            }
            Self::Time => "renew it; is the clock right here?",
            Self::Client => "has the client certificate in the kubeconfig expired?",
            Self::Authority | Self::Purpose | Self::Algorithm | Self::Version | Self::Malformed => {
                "give the API server a certificate for servers, signed by its certificate authority"
            }
            Self::NoTls => "is `server` in the kubeconfig a Kubernetes API server?",
            Self::NoCommonTls => "allow TLS 1.2 or 1.3 on the API server, or on what is before it",
        };
        help.to_owned()
    }
}

impl fmt::Display for CertificateProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::UnknownIssuer => formatter.write_str("is signed by nobody that is trusted"),
            Self::OtherHost => formatter.write_str("is for another host"),
            Self::Time => formatter.write_str("is not valid at this time"),
            Self::Client => formatter.write_str("is in order, but ours is refused"),
            Self::Authority => formatter.write_str(
                "is that of a certificate authority, which cannot be used as a server certificate",
            ),
            Self::Purpose => formatter.write_str("is not for servers (`serverAuth` is missing)"),
            Self::Signature => formatter.write_str(
                "is signed by an authority that has the name of a trusted one, but another key",
            ),
            Self::Algorithm => {
                formatter.write_str("is signed with an algorithm that is not supported")
            }
            Self::Version => formatter.write_str("is X.509 version 1, and only 3 is supported"),
            Self::Malformed => formatter.write_str("does not follow the X.509 standard"),
            Self::NoTls => formatter.write_str("does not speak TLS"),
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
            Self::GetSecret { namespace, name } => {
                let secret = escaped(&format!("{namespace}/{name}"), TOLD);
                write!(formatter, "`get` the Secret `{secret}`")
            }
        }
    }
}

pub(super) fn help(cluster: &ClusterName, fault: &Fault) -> String {
    match fault {
        Fault::Kubeconfig { .. } => {
            "another is named with --kubeconfig, in KUBECONFIG, or in the config; `kubectl config \
             view` shows what is read"
                .to_owned()
        }
        Fault::Context { nearest, known, .. } => {
            format!(
                "{}{}",
                contexts(nearest.as_deref(), known),
                name_the_context(cluster)
            )
        }
        Fault::Ambiguous { .. } => name_the_context(cluster),
        Fault::Unsafe { .. } => {
            "put the credentials into the Secret itself, or name a kubeconfig of your own in the \
             config"
                .to_owned()
        }
        Fault::Foreign { config, .. } => {
            format!(
                "if you trust this config, name it: `--config {}`",
                told(config)
            )
        }
        Fault::Secret { .. } => "the mesh's `kubeconfigSecretRef` names Secret and key".to_owned(),
        Fault::Login { problem, .. } => match problem {
            LoginProblem::Start(_) => "install it, or see that it is in the PATH".to_owned(),
            LoginProblem::Slow(_) => {
                "log in beforehand, or give it more time with --timeout".to_owned()
            }
            _ => "log in beforehand; `kubectl get nodes` with this context must work without a \
                  question"
                .to_owned(),
        },
        Fault::Host { .. } => {
            "is `server` right in the kubeconfig, and are its names known here, as in a VPN?"
                .to_owned()
        }
        Fault::Proxy {
            origin: "proxy-url",
            ..
        } => "is `proxy-url` right in the kubeconfig?".to_owned(),
        Fault::Proxy { origin, server, .. } => format!(
            "is `{origin}` right, or should `NO_PROXY` have {}?",
            told(server)
        ),
        Fault::Refused { status, .. } => match status {
            404 | 405 => "is `server` in the kubeconfig a Kubernetes API server?".to_owned(),
            410 | 429 | 500.. => {
                "it may pass; is the API server, or what is before it, in order?".to_owned()
            }
            _ => "does `kubectl get nodes` work with this context?".to_owned(),
        },
        Fault::Unreachable { .. } => {
            "is the cluster up, is the way to it open, is `server` right in the kubeconfig?"
                .to_owned()
        }
        Fault::Slow { .. } | Fault::Endless { .. } => {
            "if it is just slow, give it more time with --timeout".to_owned()
        }
        Fault::Certificate { problem, .. } => problem.help(),
        Fault::Unauthorized { user, .. } if user.has_credentials => {
            format!("renew the credentials of {}", told(&user.origin))
        }
        Fault::Unauthorized { user, .. } => add_credentials(user),
        Fault::Forbidden { user, says, .. } if is_anonymous(says) => add_credentials(user),
        Fault::Forbidden { right, .. } => granting(right),
        Fault::Redirected { .. } => {
            "the credentials are not for others; is `server` right in the kubeconfig?".to_owned()
        }
        Fault::Cut { .. } => "does a proxy or load balancer cut long answers?".to_owned(),
        Fault::Unreadable { .. } | Fault::Oversized { .. } => {
            "is `server` in the kubeconfig a Kubernetes API server?".to_owned()
        }
    }
}

fn unauthorized(server: &str, right: &Right, user: &User, says: &str) -> String {
    let server = match right {
        Right::GetSecret { .. } => format!("the operator's cluster {server}"),
        Right::ListNodes | Right::ListPeers => server.to_owned(),
    };
    let (origin, says) = (told(&user.origin), says_so(says));
    if user.has_credentials {
        format!("{server} refused the credentials of {origin} (401{says})")
    } else {
        format!("{server} requires credentials, and {origin} has none (401{says})")
    }
}

fn forbidden(right: &Right, user: &User, says: &str) -> String {
    let (origin, said) = (told(&user.origin), says_so(says));
    match user.has_credentials {
        _ if !is_anonymous(says) => format!("the right to {right} is missing (403{said})"),
        true => format!("the server received no credentials from {origin} (403{said})"),
        false => format!("{origin} has no credentials (403{said})"),
    }
}

/// Returns whether the server treated the request as one without credentials. Such a right would be
/// granted to all users.
fn is_anonymous(says: &str) -> bool {
    says.contains("\"system:anonymous\"")
}

fn add_credentials(user: &User) -> String {
    format!(
        "add a token, a client certificate or a login plugin (`exec`) to {}",
        told(&user.origin)
    )
}

fn granting(right: &Right) -> String {
    match right {
        Right::ListNodes => {
            "`clustermesh rbac` prints the manifests that grant this right".to_owned()
        }
        Right::ListPeers => {
            "`clustermesh rbac --peers` prints the manifests that grant this right".to_owned()
        }
        Right::GetSecret { namespace, name } => {
            let secret = escaped(&format!("{namespace}/{name}"), TOLD);
            format!(
                "`clustermesh rbac --secret {secret}` prints the manifests that grant this right in \
                 the operator's cluster"
            )
        }
    }
}

/// Suggests the context that was probably meant, or lists all contexts.
fn contexts(nearest: Option<&str>, known: &[String]) -> String {
    const SHOWN: usize = 5;
    match (nearest, known) {
        (Some(nearest), _) => format!("did you mean {}? ", Quoted(nearest)),
        (None, []) => "it has no context at all; ".to_owned(),
        (None, known) => {
            let shown = known.iter().take(SHOWN).map(|it| Quoted(it).to_string());
            let shown: Vec<String> = shown.collect();
            let more = if SHOWN < known.len() { ", …" } else { "" };
            format!("it has {}{more}; ", shown.join(", "))
        }
    }
}

fn name_the_context(cluster: &ClusterName) -> String {
    format!("name the context in the config: `clusters: {{ {cluster}: {{ context: … }} }}`")
}

fn told(text: &str) -> String {
    escaped(text, TOLD)
}

fn says_so(says: &str) -> String {
    match says.trim() {
        "" => String::new(),
        says => format!(": {}", told(says)),
    }
}

fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        attempts => format!(" {attempts} times"),
    }
}
