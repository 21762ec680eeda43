//! `clustermesh rbac`

use std::fmt::Write as _;
use std::io;

use clap::ArgAction;
use clustermesh::diagnostic::Quoted;
use clustermesh::mesh::SecretKeyRef;
use clustermesh::yaml;

use crate::Outcome;

/// Print the manifests that grant rights in a cluster
///
/// `snapshot` needs the right to list nodes in every cluster of a mesh. Apply the manifests there, and
/// put a token of the service account into the kubeconfig of the job.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RbacArgs {
    /// Also grant the right to list Kilo's Peers, for `status` and `--live`
    #[arg(long)]
    peers: bool,

    /// Print a shell script that creates a login for jobs and writes a kubeconfig
    ///
    /// In each cluster, the script grants the rights to a service account and creates a token that does not expire. It
    /// prints no token, and only you can read the kubeconfig.
    #[arg(long, conflicts_with_all = ["delivery", "secret"])]
    kubeconfig: bool,

    /// Grant only the rights that Flux needs to deliver Peers
    ///
    /// The Kustomizations of `flux/` name this service account. Flux can then apply only Peers, even if the
    /// repository contains other objects.
    #[arg(long, conflicts_with_all = ["peers", "secret"])]
    delivery: bool,

    /// Grant only the right to read this Secret; repeatable
    ///
    /// `snapshot --secrets-from` needs this right in the cluster of the ClusterMesh operator.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = secret,
        conflicts_with = "peers",
        action = ArgAction::Append
    )]
    secret: Vec<GrantedSecret>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh rbac | kubectl --context east apply -f -
  clustermesh rbac --kubeconfig > login.sh && sh login.sh jobs.kubeconfig east west=admin@west
  clustermesh rbac --delivery | kubectl --context east apply -f -
  clustermesh rbac --secret kilo-clustermesh/west-kubeconfig | kubectl --context hub apply -f -";

/// The manifests that grant the rights in a cluster, up to the rules.
const ACCOUNT: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: clustermesh
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: snapshot
  namespace: clustermesh
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: clustermesh-snapshot
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: clustermesh-snapshot
subjects:
  - kind: ServiceAccount
    name: snapshot
    namespace: clustermesh
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: clustermesh-snapshot
rules:
";

const NODES: &str = r#"  - apiGroups: [""]
    resources: [nodes]
    verbs: [list]
"#;

const PEERS: &str = "  - apiGroups: [kilo.squat.ai]
    resources: [peers]
    verbs: [list]
";

/// The rights of the service account as which Flux applies Peers: to compare, create, change and delete them.
const DELIVERY: &str = "\
# The rights that Flux needs to deliver Peers, and no others. Apply this in every cluster in which Flux runs.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: clustermesh
  namespace: flux-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: clustermesh-delivery
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: clustermesh-delivery
subjects:
  - kind: ServiceAccount
    name: clustermesh
    namespace: flux-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: clustermesh-delivery
rules:
  - apiGroups: [kilo.squat.ai]
    resources: [peers]
    verbs: [get, list, watch, create, patch, delete]
";

/// The Secret into which Kubernetes writes a token that does not expire.
const TOKEN: &str = "\
---
apiVersion: v1
kind: Secret
metadata:
  name: snapshot-login
  namespace: clustermesh
  annotations:
    kubernetes.io/service-account.name: snapshot
type: kubernetes.io/service-account-token
";

/// The prefix of the names of the roles for Secrets.
const ROLE: &str = "clustermesh-snapshot-";

/// The longest name of a Kubernetes object, in characters.
const LONGEST: usize = 253;

/// A Secret that the operator keeps.
#[derive(Clone, Debug)]
struct GrantedSecret {
    namespace: String,
    name: String,
}

pub(crate) fn run(args: &RbacArgs, result: &mut impl io::Write) -> anyhow::Result<Outcome> {
    crate::print(result, &manifests(args))?;
    Ok(Outcome::Clean)
}

fn manifests(args: &RbacArgs) -> String {
    if args.delivery {
        return DELIVERY.to_owned();
    }
    if !args.secret.is_empty() {
        let secrets: Vec<String> = args.secret.iter().map(GrantedSecret::manifests).collect();
        return secrets.join("---\n");
    }
    let purpose = if args.peers {
        "# The rights that `clustermesh snapshot`, `clustermesh status` and `--live` need in a cluster:\n\
         # to list its nodes and Peers."
    } else {
        "# The right that `clustermesh snapshot` needs in a cluster: to list its nodes."
    };
    let mut text = format!(
        "{purpose}\n\
         # Apply this in every cluster of the mesh. To use another user than this service account,\n\
         # change the subject of the ClusterRoleBinding.\n\
         {ACCOUNT}{NODES}"
    );
    if args.peers {
        text.push_str(PEERS);
    }
    if args.kubeconfig {
        let script = include_str!("rbac/login.sh");
        return script.replace("@MANIFESTS@", &(text + TOKEN));
    }
    text
}

impl GrantedSecret {
    fn manifests(&self) -> String {
        let (namespace, name) = (yaml::scalar(&self.namespace), yaml::scalar(&self.name));
        let object = yaml::scalar(&format!("{ROLE}{}", self.name)).into_owned();
        let mut text = String::from(
            "# The right that `clustermesh snapshot --secrets-from` needs in the cluster of the\n\
             # ClusterMesh operator: to read one Secret. Apply this only there.\n",
        );
        // Writing into a `String` cannot fail.
        let _ = write!(
            text,
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {object}
  namespace: {namespace}
rules:
  - apiGroups: [\"\"]
    resources: [secrets]
    resourceNames: [{name}]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {object}
  namespace: {namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {object}
subjects:
  - kind: ServiceAccount
    name: snapshot
    namespace: clustermesh
"
        );
        text
    }
}

fn secret(text: &str) -> Result<GrantedSecret, String> {
    let (namespace, name) = text
        .split_once('/')
        .ok_or_else(|| "expected NAMESPACE/NAME".to_owned())?;
    let reference = SecretKeyRef {
        name: name.to_owned(),
        // Any key that there can be.
        key: "value".to_owned(),
    };
    if LONGEST < ROLE.len() + name.len() {
        return Err(format!(
            "{} is too long: the Role `{ROLE}NAME` can have at most {LONGEST} characters",
            Quoted(text)
        ));
    }
    match reference.problem(namespace) {
        None => Ok(GrantedSecret {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        Some(problem) => Err(format!("{} cannot be a Secret: {problem}", Quoted(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_role_fits() {
        let longest = LONGEST - ROLE.len();
        let secret = |length: usize| secret(&format!("kilo/{}", "a".repeat(length)));
        assert!(secret(longest).is_ok());
        let error = secret(longest + 1).unwrap_err();
        assert!(error.contains("at most 253 characters"), "{error}");
    }
}
