//! What is said of a cluster that could not be read, and what to do about it.

use std::fmt;

use super::{CertificateProblem, Fault, LoginProblem, Right};
use crate::diagnostic::{Quoted, escaped};
use crate::name::ClusterName;

/// How much of what a server or a plugin says is told, in characters.
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
            Self::Unreachable { server, problem } => write!(
                formatter,
                "nobody answers at {}: {}",
                told(server),
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
            Self::Unauthorized { says } => {
                write!(
                    formatter,
                    "it does not know who asks (401{})",
                    says_so(says)
                )
            }
            Self::Forbidden { right, says } => {
                write!(
                    formatter,
                    "the right to {right} is missing (403{})",
                    says_so(says)
                )
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
        Fault::Unauthorized { .. } => {
            "have the credentials in the kubeconfig expired, or been revoked?".to_owned()
        }
        Fault::Forbidden { right, .. } => match right {
            Right::ListNodes => "examples/rbac.yaml grants just that".to_owned(),
            Right::GetSecret { .. } => "examples/rbac-secrets.yaml grants just that".to_owned(),
        },
        Fault::Redirected { .. } => {
            "the credentials are not for others; is `server` right in the kubeconfig?".to_owned()
        }
        Fault::Cut { .. } => "does a proxy or load balancer cut long answers?".to_owned(),
        Fault::Unreadable { .. } | Fault::Oversized { .. } => {
            "is `server` in the kubeconfig a Kubernetes API server?".to_owned()
        }
    }
}

/// Says which context was perhaps meant, or which there are.
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
