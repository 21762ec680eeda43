//! Reasons why the nodes of a cluster could not be listed.

use std::fmt;

use super::{Finding, Rule};
use crate::diagnostic::escaped;
use crate::name::ClusterName;

rules! {
    "Failures to read a cluster" in "clusters" about Snapshots;
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

/// A kind of failure to read a cluster.
#[derive(Debug, Eq, PartialEq)]
pub struct FaultKind {
    rule: &'static Rule,
    /// Whether another try would end the same, until a person acts: a refused login asked again and
    /// again may lock the account.
    is_final: bool,
    /// The remedy, unless the failure has a better one.
    help: &'static str,
}

impl FaultKind {
    const fn lasting(rule: &'static Rule, help: &'static str) -> Self {
        Self { rule, is_final: true, help }
    }

    const fn passing(rule: &'static Rule, help: &'static str) -> Self {
        Self { rule, is_final: false, help }
    }
}

/// The help for a server that does not answer as an API server does.
pub const OTHER_SERVER: &str = "check that `server` in the kubeconfig is a Kubernetes API server";

/// The help for a server that fails.
pub const LATER: &str =
    "try again later; check the API server and the load balancer in front of it";

/// The kubeconfig does not exist, is invalid, or is incomplete.
pub static KUBECONFIG: FaultKind = FaultKind::lasting(
    &INVALID_KUBECONFIG,
    "check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, `KUBECONFIG` or \
     the config",
);
/// The kubeconfig does not have the context.
pub static CONTEXT: FaultKind = FaultKind::lasting(
    &UNKNOWN_CONTEXT,
    "the kubeconfig has no contexts: choose another one with `--kubeconfig`, `KUBECONFIG` or the \
     config",
);
/// A kubeconfig that others wrote asks for more than its own data.
pub static UNSAFE: FaultKind = FaultKind::lasting(
    &UNSAFE_KUBECONFIG,
    "put the credentials themselves into the Secret, or set your own kubeconfig for this cluster in \
     the config",
);
/// The Secret with the kubeconfig does not exist, or differs from its declaration.
pub static SECRET: FaultKind = FaultKind::lasting(
    &MISSING_SECRET,
    "check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config",
);
/// The meshes disagree on how the cluster is reached; the help names a context.
pub static AMBIGUOUS: FaultKind = FaultKind::lasting(&AMBIGUOUS_ACCESS, "");
/// The login plugin gave no credentials.
pub static LOGIN: FaultKind = FaultKind::lasting(
    &FAILED_LOGIN,
    "log in first, so that `kubectl get nodes` works with this context without prompting",
);
/// The server's name does not resolve.
pub static HOST: FaultKind = FaultKind::passing(
    &UNKNOWN_HOST,
    "check `server` in the kubeconfig, and that this machine can resolve it (VPN?)",
);
/// No connection can be made.
pub static UNREACHABLE: FaultKind = FaultKind::passing(
    &UNREACHABLE_CLUSTER,
    "check that the cluster runs, that the network path is open, and `server` in the kubeconfig",
);
/// The proxy on the way leads nowhere.
pub static PROXY: FaultKind =
    FaultKind::passing(&UNUSABLE_PROXY, "check `proxy-url` in the kubeconfig");
/// No answer in time, or no end of it.
pub static SLOW: FaultKind =
    FaultKind::passing(&SLOW_CLUSTER, "increase `--timeout` if the cluster is slow");
/// Another server may have answered.
pub static CERTIFICATE: FaultKind = FaultKind::lasting(
    &UNTRUSTED_CERTIFICATE,
    "give the API server a certificate for servers, signed by its certificate authority",
);
/// The server refuses the credentials.
pub static CREDENTIALS: FaultKind = FaultKind::lasting(&UNAUTHORIZED, "renew the credentials");
/// The user lacks a right.
pub static RIGHT: FaultKind =
    FaultKind::lasting(&FORBIDDEN, "`clustermesh rbac` prints the manifests that grant this right");
/// The server refused for another reason.
pub static REFUSED: FaultKind =
    FaultKind::passing(&REFUSED_REQUEST, "check that `kubectl get nodes` works with this context");
/// The server has too much to do.
pub static BUSY: FaultKind = FaultKind::passing(&REFUSED_REQUEST, LATER);
/// The server sends us elsewhere.
pub static ELSEWHERE: FaultKind = FaultKind::lasting(
    &REDIRECTED,
    "correct `server` in the kubeconfig: credentials are not sent to other servers",
);
/// The answer was cut off.
pub static CUT: FaultKind =
    FaultKind::passing(&CUT_ANSWER, "check whether a proxy or load balancer cuts long responses");
/// The answer is not a list of nodes.
pub static UNREADABLE: FaultKind = FaultKind::passing(&UNREADABLE_ANSWER, OTHER_SERVER);
/// The answer is more than is believed.
pub static OVERSIZED: FaultKind = FaultKind::lasting(&OVERSIZED_ANSWER, OTHER_SERVER);

/// The reason why the nodes of a cluster could not be listed. No text in it may contain a secret, and
/// foreign texts are [`shown`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The kind.
    pub kind: &'static FaultKind,
    sentence: String,
    /// The number of attempts, if they belong into the message.
    attempts: Option<u32>,
    /// The end of the message, behind the attempts.
    reason: String,
    help: String,
    /// The context that the help sets for the cluster.
    context: Option<String>,
    /// The kubeconfig, if all clusters that use it have the same problem.
    kubeconfig: String,
}

impl Fault {
    /// Returns a fault of a kind, with the message about it and the help of its kind.
    pub fn new(kind: &'static FaultKind, sentence: impl Into<String>) -> Self {
        Self {
            kind,
            sentence: sentence.into(),
            attempts: None,
            reason: String::new(),
            help: kind.help.to_owned(),
            context: None,
            kubeconfig: String::new(),
        }
    }

    /// Returns a problem of a kubeconfig, which concerns all clusters that use it.
    pub fn of_kubeconfig(origin: &str, problem: &str) -> Self {
        let sentence = format!("{} ({})", shown(problem), shown(origin));
        Self { kubeconfig: origin.to_owned(), ..Self::new(&KUBECONFIG, sentence) }
    }

    /// Replaces the help.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        let help = help.into();
        Self { help, ..self }
    }

    /// Adds to the help how the cluster gets this context.
    #[must_use]
    pub fn context(self, context: impl Into<String>) -> Self {
        let context = Some(context.into());
        Self { context, ..self }
    }

    /// Ends the message with a reason, before which it counts the attempts; this is the first.
    #[must_use]
    pub fn counted(self, reason: String) -> Self {
        Self { attempts: Some(1), reason, ..self }
    }

    /// Sets the number of attempts, if the message counts them.
    #[must_use]
    pub fn tried(self, times: u32) -> Self {
        let attempts = self.attempts.map(|_| times);
        Self { attempts, ..self }
    }

    /// Returns whether another try would end the same, until a person acts.
    pub fn is_final(&self) -> bool {
        self.kind.is_final
    }

    /// Returns the finding, of which the help ends with how the cluster gets a context.
    fn finding(
        &self,
        cluster: &ClusterName,
        message: String,
        set: fn(&ClusterName, &str) -> String,
    ) -> Finding {
        let mut finding = Finding::on_cluster(self.kind.rule, cluster, message);
        if !self.kubeconfig.is_empty() {
            finding.group.clone_from(&self.kubeconfig);
        }
        let context = self.context.as_deref().map(|it| set(cluster, it));
        finding.help(format!("{}{}", self.help, context.unwrap_or_default()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let attempts = match self.attempts {
            Some(attempts) if *self.kind == UNREACHABLE => format!(" (attempts: {attempts})"),
            None | Some(0 | 1) => String::new(),
            Some(attempts) => format!(" {attempts} times"),
        };
        write!(formatter, "{}{attempts}{}", self.sentence, self.reason)
    }
}

/// Returns a text of a server, a plugin or a file as messages show it.
pub fn shown(text: &str) -> String {
    const MAX_LENGTH: usize = 400;
    escaped(text, MAX_LENGTH)
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
    let mut finding =
        fault.finding(cluster, format!("could not be read: {fault}; {kept}"), set_context);
    // Another machine may reach the cluster and dump its nodes.
    if [&UNREACHABLE_CLUSTER, &UNKNOWN_HOST].contains(&fault.kind.rule)
        && let Some(help) = &mut finding.help
    {
        *help = format!("{help}; or read a dump with `--from {cluster}=FILE`");
    }
    finding
}

/// Returns the finding about the operator's objects that could not be read.
pub fn unread_meshes(fault: &Fault) -> Finding {
    let message = format!("the ClusterMesh objects could not be read: {fault}");
    Finding::new(fault.kind.rule, message).help(&fault.help)
}

/// Returns the finding about a cluster that could not be read and has no snapshot to keep.
pub fn unread(cluster: &ClusterName, fault: &Fault) -> Finding {
    fault.finding(cluster, format!("could not be read: {fault}"), set_context)
}

/// Returns the same about a cluster of `--context` that is in no mesh yet, so that no other command knows it.
pub fn unread_new(cluster: &ClusterName, fault: &Fault) -> Finding {
    fault.finding(cluster, format!("could not be read: {fault}"), |cluster, context| {
        format!("write `--context {cluster}={context}`")
    })
}

fn set_context(cluster: &ClusterName, context: &str) -> String {
    format!(
        "set `clusters: {{ {cluster}: {{ context: {context} }} }}` in the config, or run `clustermesh snapshot {cluster} \
         --context {context}`"
    )
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
