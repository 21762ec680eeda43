//! Reasons why the nodes of a cluster could not be listed.

use super::{Finding, Rule};
use crate::name::ClusterName;

mod help;
mod messages;

rules! {
    "clusters" about Snapshots;
    INVALID_KUBECONFIG = "invalid-kubeconfig" Error;
    UNKNOWN_CONTEXT = "unknown-context" Error;
    UNSAFE_KUBECONFIG = "unsafe-kubeconfig" Error;
    MISSING_SECRET = "missing-secret" Error;
    AMBIGUOUS_ACCESS = "ambiguous-access" Error;
    FAILED_LOGIN = "failed-login" Error;
    UNKNOWN_HOST = "unknown-host" Error;
    UNREACHABLE_CLUSTER = "unreachable-cluster" Error;
    UNUSABLE_PROXY = "unusable-proxy" Error;
    SLOW_CLUSTER = "slow-cluster" Error;
    UNTRUSTED_CERTIFICATE = "untrusted-certificate" Error;
    UNAUTHORIZED = "unauthorized" Error;
    FORBIDDEN = "forbidden" Error;
    REFUSED_REQUEST = "refused-request" Error;
    REDIRECTED = "redirected" Error;
    CUT_ANSWER = "cut-answer" Error;
    UNREADABLE_ANSWER = "unreadable-answer" Error;
    OVERSIZED_ANSWER = "oversized-answer" Error;
    UNCHECKED_CERTIFICATE = "unchecked-certificate" Warning;
    UNENCRYPTED_CONNECTION = "unencrypted-connection" Warning;
    MISSING_CRD = "missing-crd" Warning;
}

/// The reason why the nodes of a cluster could not be listed. No text in it may contain a secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The kubeconfig does not exist, is invalid, or is incomplete.
    Kubeconfig {
        /// The kubeconfig: a file or a Secret.
        origin: String,
        /// The problem.
        problem: String,
    },
    /// The kubeconfig does not have the context.
    Context {
        /// The files that were read.
        origin: String,
        /// The context.
        wanted: String,
        /// The context that was probably meant.
        nearest: Option<String>,
        /// The contexts of the kubeconfig.
        known: Vec<String>,
    },
    /// A kubeconfig that others wrote asks for more than its own data.
    Unsafe {
        /// The Secret.
        origin: String,
        /// The field.
        field: &'static str,
    },
    /// A kubeconfig that another user's config names requires more than its own data.
    Foreign {
        /// The kubeconfig.
        origin: String,
        /// The field.
        field: &'static str,
        /// The config.
        config: String,
    },
    /// A kubeconfig that a config names belongs to neither the user, nor root, nor the owner of the config.
    Unowned {
        /// The kubeconfig.
        origin: String,
        /// The config.
        config: String,
    },
    /// The Secret with the kubeconfig does not exist, or differs from its declaration in the mesh.
    Secret {
        /// The Secret.
        origin: String,
        /// The problem.
        problem: String,
    },
    /// The meshes disagree on how the cluster is reached.
    Ambiguous {
        /// The difference.
        problem: String,
    },
    /// The login plugin gave no credentials.
    Login {
        /// The program, without its arguments: people put secrets there.
        command: String,
        /// The problem of the program.
        problem: LoginProblem,
    },
    /// The server's name does not resolve.
    Host {
        /// The name.
        host: String,
    },
    /// No connection can be made.
    Unreachable {
        /// The server, as `host:port`.
        server: String,
        /// The message of the system.
        problem: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The proxy on the way leads nowhere.
    Proxy {
        /// The proxy, as `host:port`.
        proxy: String,
        /// The source of the setting: a field of the kubeconfig, or a variable.
        origin: &'static str,
        /// The server, as `host:port`.
        server: String,
        /// The problem.
        problem: String,
    },
    /// No answer in time.
    Slow {
        /// The server, as `host:port`, and the proxy on the way.
        server: String,
        /// The time that was waited, in seconds.
        seconds: u64,
    },
    /// Every answer in time, and yet no end.
    Endless {
        /// The requested objects.
        answers: &'static str,
        /// The time that was waited, in seconds.
        seconds: u64,
    },
    /// Another server may have answered.
    Certificate {
        /// The server, as `host:port`.
        server: String,
        /// The problem of the certificate.
        problem: CertificateProblem,
    },
    /// The server refuses the credentials.
    Unauthorized {
        /// The server, as `host:port`.
        server: String,
        /// The requested address, which identifies the server.
        right: Right,
        /// The user with the credentials.
        user: User,
        /// The text of the response.
        says: String,
    },
    /// The user lacks a right.
    Forbidden {
        /// The right that is missing.
        right: Right,
        /// The user who lacks it.
        user: User,
        /// The text of the response.
        says: String,
    },
    /// The server refused for another reason.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The text of the response.
        says: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The server sends us elsewhere.
    Redirected {
        /// The host.
        to: String,
    },
    /// The answer was cut off.
    Cut {
        /// The message of the system.
        problem: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The answer is not a list of nodes.
    Unreadable {
        /// The kind.
        problem: String,
    },
    /// The answer is more than is believed.
    Oversized {
        /// The excess.
        problem: String,
    },
    /// Kilo's CRD has only versions that are not understood.
    Versions {
        /// The versions that it has.
        served: Vec<String>,
        /// The version that is understood.
        wanted: &'static str,
    },
}

impl Fault {
    /// Returns whether another try would end the same, until a person acts: a refused login asked
    /// again and again may lock the account.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Kubeconfig { .. }
            | Self::Context { .. }
            | Self::Unsafe { .. }
            | Self::Foreign { .. }
            | Self::Unowned { .. }
            | Self::Secret { .. }
            | Self::Ambiguous { .. }
            | Self::Login { .. }
            | Self::Certificate { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::Redirected { .. }
            | Self::Oversized { .. } => true,
            Self::Host { .. }
            | Self::Unreachable { .. }
            | Self::Proxy { .. }
            | Self::Slow { .. }
            | Self::Endless { .. }
            | Self::Refused { .. }
            | Self::Cut { .. }
            | Self::Unreadable { .. }
            | Self::Versions { .. } => false,
        }
    }
}

/// A user of an API server, as a kubeconfig or a pod names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct User {
    /// The source of the credentials, even if there are none.
    pub origin: String,
    /// Whether there are credentials.
    pub has_credentials: bool,
}

/// The result of a login plugin that gave no credentials.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LoginProblem {
    /// It cannot be started.
    Start(String),
    /// It ended badly.
    Failed {
        /// The exit status.
        status: String,
        /// Its output on standard error.
        stderr: String,
    },
    /// It did not end.
    Slow(u64),
    /// It requires a terminal.
    Interactive,
    /// Its output is not a credential.
    Unreadable(&'static str),
}

/// A problem of a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CertificateProblem {
    /// Signed by an unknown authority.
    UnknownIssuer,
    /// For other names.
    OtherHost,
    /// No longer, or not yet, valid.
    Time,
    /// The server asks for a client certificate that it would take.
    Client,
    /// It is that of an authority, which is not a server's.
    Authority,
    /// It is for something else than servers.
    Purpose,
    /// Signed by an authority of a trusted name with another key.
    Signature,
    /// Signed with an algorithm that is no longer, or not yet, known.
    Algorithm,
    /// It is X.509 of a version without extensions.
    Version,
    /// It does not follow the rules for certificates in some other way.
    Malformed,
    /// The server does not use TLS.
    NoTls,
    /// Server and client have no version of TLS, or no cipher, in common.
    NoCommonTls,
}

/// A required right.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Right {
    /// To list the nodes of the cluster.
    ListNodes,
    /// To list Kilo's Peers in the cluster.
    ListPeers,
    /// To list the operator's ClusterMesh objects in its cluster.
    ListMeshes,
    /// To read one Secret.
    GetSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// A reason to trust a cluster's answers less.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Weakness {
    /// Its certificate is not checked.
    UncheckedCertificate,
    /// The connection is not encrypted.
    Unencrypted,
    /// The certificate of the cluster that holds its kubeconfig is not checked.
    UncheckedStore,
    /// The connection to the cluster that holds its kubeconfig is not encrypted.
    UnencryptedStore,
}

/// Returns the finding about a cluster that could not be read; `kept` is the snapshot that stays,
/// if there is one.
pub fn fault(cluster: &ClusterName, fault: &Fault, kept: Option<&str>) -> Finding {
    let kept = match kept {
        Some(file) => format!("{file} was kept"),
        None => "it has no snapshot yet".to_owned(),
    };
    found(
        cluster,
        fault,
        format!("could not be read: {fault}; {kept}"),
    )
}

fn found(cluster: &ClusterName, fault: &Fault, message: String) -> Finding {
    let mut finding = Finding::on_cluster(rule_of(fault), cluster, message);
    if let Fault::Kubeconfig { origin, .. } = fault {
        // A problem of a kubeconfig concerns all clusters that use it.
        finding.group.clone_from(origin);
    }
    finding.help = Some(help::help(Some(cluster), fault));
    finding
}

/// Returns the finding about the operator's objects that could not be read.
pub fn unread_meshes(fault: &Fault) -> Finding {
    let message = format!("the ClusterMesh objects could not be read: {fault}");
    let finding = Finding::new(rule_of(fault), message);
    finding.help(help::help(None, fault))
}

/// Returns the finding about a cluster that could not be read and has no snapshot to keep.
pub fn unread(cluster: &ClusterName, fault: &Fault) -> Finding {
    found(cluster, fault, format!("could not be read: {fault}"))
}

/// Returns the finding about a cluster that has no Peers because Kilo's CRD is not there.
pub fn missing_crd(cluster: &ClusterName) -> Finding {
    let message = "Kilo's CRD `peers.kilo.squat.ai` is not installed".to_owned();
    Finding::on_cluster(&MISSING_CRD, cluster, message).help("install Kilo in this cluster")
}

/// Returns whether a finding is about a cluster without Kilo's CRD.
pub fn is_missing_crd(finding: &Finding) -> bool {
    *finding.rule == MISSING_CRD
}

/// Returns what weakens the trust in a cluster's answers; `answers` are those that were asked for.
pub fn weakness(cluster: &ClusterName, weakness: Weakness, answers: &str) -> Finding {
    let (rule, message) = match weakness {
        Weakness::UncheckedCertificate => (
            &UNCHECKED_CERTIFICATE,
            format!(
                "its certificate is not checked (`insecure-skip-tls-verify`): an attacker on the \
                 path could forge the {answers}"
            ),
        ),
        Weakness::Unencrypted => (
            &UNENCRYPTED_CONNECTION,
            format!("is read over plain HTTP: an attacker on the path could forge the {answers}"),
        ),
        Weakness::UncheckedStore => (
            &UNCHECKED_CERTIFICATE,
            "the certificate of the cluster with its kubeconfig is not checked \
             (`insecure-skip-tls-verify`): an attacker on the path could forge the kubeconfig"
                .to_owned(),
        ),
        Weakness::UnencryptedStore => (
            &UNENCRYPTED_CONNECTION,
            "the cluster with its kubeconfig is read over plain HTTP: an attacker on the path \
             could forge the kubeconfig"
                .to_owned(),
        ),
    };
    Finding::on_cluster(rule, cluster, message)
}

fn rule_of(fault: &Fault) -> &'static Rule {
    match fault {
        Fault::Kubeconfig { .. } => &INVALID_KUBECONFIG,
        Fault::Context { .. } => &UNKNOWN_CONTEXT,
        Fault::Unsafe { .. } | Fault::Foreign { .. } | Fault::Unowned { .. } => &UNSAFE_KUBECONFIG,
        Fault::Secret { .. } => &MISSING_SECRET,
        Fault::Ambiguous { .. } => &AMBIGUOUS_ACCESS,
        Fault::Login { .. } => &FAILED_LOGIN,
        Fault::Host { .. } => &UNKNOWN_HOST,
        Fault::Unreachable { .. } => &UNREACHABLE_CLUSTER,
        Fault::Proxy { .. } => &UNUSABLE_PROXY,
        Fault::Slow { .. } | Fault::Endless { .. } => &SLOW_CLUSTER,
        Fault::Certificate { .. } => &UNTRUSTED_CERTIFICATE,
        Fault::Unauthorized { .. } => &UNAUTHORIZED,
        Fault::Forbidden { .. } => &FORBIDDEN,
        Fault::Refused { .. } => &REFUSED_REQUEST,
        Fault::Redirected { .. } => &REDIRECTED,
        Fault::Cut { .. } => &CUT_ANSWER,
        Fault::Unreadable { .. } | Fault::Versions { .. } => &UNREADABLE_ANSWER,
        Fault::Oversized { .. } => &OVERSIZED_ANSWER,
    }
}

#[cfg(test)]
mod tests;
