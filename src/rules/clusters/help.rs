//! Help for clusters that cannot be read.

use super::messages::{MAX_LENGTH, is_anonymous, shown};
use super::{Fault, LoginProblem, Right, User};
use crate::diagnostic::{Quoted, escaped};
use crate::name::ClusterName;
use crate::text::shell_word;

pub(super) fn help(cluster: Option<&ClusterName>, fault: &Fault) -> String {
    match fault {
        Fault::Kubeconfig { .. } => {
            "check `kubectl config view`, or choose another kubeconfig with `--kubeconfig`, \
             `KUBECONFIG` or the config"
                .to_owned()
        }
        Fault::Context { known, .. } if known.is_empty() => {
            "the kubeconfig has no contexts: choose another one with `--kubeconfig`, `KUBECONFIG` or \
             the config"
                .to_owned()
        }
        Fault::Context { nearest, known, .. } => {
            let meant = nearest.as_deref().filter(|it| is_word(it));
            format!(
                "{}{}",
                contexts(nearest.as_deref(), known),
                name_the_context(cluster, meant.unwrap_or("CONTEXT"))
            )
        }
        Fault::Ambiguous { .. } => name_the_context(cluster, "CONTEXT"),
        Fault::Unsafe { .. } => {
            "put the credentials themselves into the Secret, or set your own kubeconfig for this \
             cluster in the config"
                .to_owned()
        }
        Fault::Foreign { config, .. } => {
            format!("if you trust this config, add `--config {}`", shown(config))
        }
        Fault::Unowned { origin, .. } => format!(
            "if you trust it, become its owner: `sudo chown \"$(id -u)\" {}`",
            shell_word(&shown(origin))
        ),
        Fault::Secret { .. } => {
            "check `kubeconfigSecretRef` in the mesh, or `kubeconfigSecret` in the config".to_owned()
        }
        Fault::Login { problem, .. } => match problem {
            LoginProblem::Start(_) => "install it, or add its folder to PATH".to_owned(),
            LoginProblem::Slow(_) => "log in first, or increase `--timeout`".to_owned(),
            _ => "log in first, so that `kubectl get nodes` works with this context without \
                prompting"
                .to_owned(),
        },
        Fault::Host { .. } => {
            "check `server` in the kubeconfig, and that this machine can resolve it (VPN?)"
                .to_owned()
        }
        Fault::Proxy {
            origin: "proxy-url",
            ..
        } => "check `proxy-url` in the kubeconfig".to_owned(),
        Fault::Proxy { origin, server, .. } => {
            format!("correct `{origin}`, or add {} to `NO_PROXY`", shown(server))
        }
        Fault::Refused { status, .. } => match status {
            404 | 405 => {
                "check that `server` in the kubeconfig is a Kubernetes API server".to_owned()
            }
            410 | 429 | 500.. => {
                "try again later; check the API server and the load balancer in front of it"
                    .to_owned()
            }
            _ => "check that `kubectl get nodes` works with this context".to_owned(),
        },
        Fault::Unreachable { .. } => {
            "check that the cluster runs, that the network path is open, and `server` in the \
             kubeconfig"
                .to_owned()
        }
        Fault::Slow { .. } | Fault::Endless { .. } => {
            "increase `--timeout` if the cluster is slow".to_owned()
        }
        Fault::Certificate { problem, .. } => problem.help(),
        Fault::Unauthorized { user, .. } if user.has_credentials => {
            format!("renew the credentials of {}", shown(&user.origin))
        }
        Fault::Unauthorized { user, .. } => add_credentials(user),
        Fault::Forbidden { user, says, .. } if is_anonymous(says) => add_credentials(user),
        Fault::Forbidden { right, .. } => granting(right),
        Fault::Redirected { .. } => {
            "correct `server` in the kubeconfig: credentials are not sent to other servers"
                .to_owned()
        }
        Fault::Cut { .. } => {
            "check whether a proxy or load balancer cuts long responses".to_owned()
        }
        Fault::Unreadable { .. } | Fault::Oversized { .. } => {
            "check that `server` in the kubeconfig is a Kubernetes API server".to_owned()
        }
        Fault::Versions { wanted, .. } => {
            format!("install a version of Kilo whose CRD has {wanted} in this cluster")
        }
    }
}

fn add_credentials(user: &User) -> String {
    format!(
        "add a token, a client certificate or a login plugin (`exec`) to {}",
        shown(&user.origin)
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
        Right::ListMeshes => {
            "grant this right in the operator's cluster, or copy the objects into \
                              mesh.yaml: `kubectl get clustermeshes -A -o yaml`"
                .to_owned()
        }
        Right::GetSecret { namespace, name } => {
            let secret = escaped(&format!("{namespace}/{name}"), MAX_LENGTH);
            format!(
                "`clustermesh rbac --secret {secret}` prints the manifests that grant this right in \
                 the operator's cluster"
            )
        }
    }
}

/// Suggests the context that was probably meant, or lists all contexts; there is at least one.
fn contexts(nearest: Option<&str>, known: &[String]) -> String {
    const SHOWN: usize = 5;
    match (nearest, known) {
        (Some(nearest), _) => format!("did you mean {}? ", Quoted(nearest)),
        (None, known) => {
            let shown: Vec<String> = known
                .iter()
                .take(SHOWN)
                .map(|it| Quoted(it).to_string())
                .collect();
            let more = if SHOWN < known.len() { ", …" } else { "" };
            format!("known contexts: {}{more}; ", shown.join(", "))
        }
    }
}

fn name_the_context(cluster: Option<&ClusterName>, context: &str) -> String {
    let Some(cluster) = cluster else {
        return "choose another context with `--secrets-from`".to_owned();
    };
    format!(
        "set `clusters: {{ {cluster}: {{ context: {context} }} }}` in the config, or run \
         `clustermesh snapshot {cluster} --context {context}`"
    )
}

/// Returns whether a context needs no quotes in YAML and in a shell.
fn is_word(context: &str) -> bool {
    let mut characters = context.chars();
    characters.next().is_some_and(|it| it.is_ascii_alphabetic())
        && characters
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/' | '@'))
}
