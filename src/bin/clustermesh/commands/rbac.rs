//! `clustermesh rbac`

use std::collections::BTreeMap;

use clap::ArgAction;
use clustermesh::diagnostic::Quoted;
use clustermesh::mesh::{Mesh, SecretKeyRef};
use clustermesh::name::ClusterName;
use clustermesh::template::{self, Format};
use minijinja::context;

use super::snapshot::{cluster, services::named};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, input_file};

/// Print the manifests that grant rights in a cluster
///
/// `snapshot` needs the right to list nodes in every cluster of a mesh. Apply the manifests there, and
/// put a token of the service account into the kubeconfig of the job.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RbacArgs {
    /// Also grant the rights to list Peers and read the guard, for `status`, `--live`
    #[arg(long)]
    peers: bool,

    /// Also grant the right to list pods, whose addresses `status` compares
    ///
    /// Kilo routes the pod CIDRs of nodes, and some network plugins give pods other addresses. `status` then looks at one
    /// pod of each node, and reports pods outside of the pod CIDRs of their nodes. It keeps nothing of pods.
    #[arg(long, conflicts_with_all = ["delivery", "secret", "services"])]
    pods: bool,

    /// Print a shell script that creates a login for jobs and writes a kubeconfig
    ///
    /// In each cluster, the script grants the rights to a service account and creates a token that does not expire. It
    /// prints no token, and only you can read the kubeconfig.
    #[arg(long, conflicts_with_all = ["delivery", "secret"])]
    kubeconfig: bool,

    /// Grant only the rights that Flux needs to deliver Peers
    ///
    /// Prints the service account `clustermesh` in `flux-system`, which the Kustomizations in `flux/` use,
    /// with these rights. Flux can then apply only Peers, even if the repository contains other objects.
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

    /// Grant only the right to read the Services of this cluster that meshes name
    ///
    /// `snapshot --services` needs this right in the cluster, in addition to the manifests of `clustermesh rbac`. The
    /// Roles name exactly the Services of `spec.services` that the cluster has or gets.
    #[arg(
        long,
        value_name = "CLUSTER",
        value_parser = cluster,
        conflicts_with_all = ["peers", "kubeconfig", "delivery", "secret"]
    )]
    services: Option<ClusterName>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh rbac | kubectl --context east apply -f -
  clustermesh rbac --kubeconfig > login.sh && sh login.sh jobs.kubeconfig east west=admin@west
  clustermesh rbac --services west | kubectl --context west apply -f -
  clustermesh rbac --delivery | kubectl --context east apply -f -
  clustermesh rbac --secret kilo-clustermesh/west-kubeconfig | kubectl --context hub apply -f -";

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

pub(crate) fn run(args: &RbacArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    printer.print(&manifests(args, files)?)?;
    Ok(Outcome::Clean)
}

fn manifests(args: &RbacArgs, files: &FileOptions) -> CommandResult<String> {
    if let Some(cluster) = &args.services {
        let settings = files.settle()?;
        let meshes = input_file::meshes(&settings.mesh_files()?, settings.ceilings)?;
        return Ok(of_services(cluster, &meshes)?);
    }
    if args.delivery {
        return Ok(include_str!("../../../../templates/rbac/delivery.yaml").to_owned());
    }
    if !args.secret.is_empty() {
        let text = include_str!("../../../../templates/rbac/secrets.yaml.j2");
        let secrets = args.secret.iter().map(|GrantedSecret { namespace, name }| {
            context! { namespace => namespace, name => name, role => format!("{ROLE}{name}") }
        });
        let values = context! { secrets => secrets.collect::<Vec<_>>() };
        return Ok(template::filled("secrets", text, Format::Yaml, values)?);
    }
    let text = include_str!("../../../../templates/rbac/account.yaml.j2");
    let values = context! { peers => args.peers, pods => args.pods, token => args.kubeconfig };
    let manifests = template::filled("account", text, Format::Yaml, values)?;
    if args.kubeconfig {
        let script = include_str!("rbac/login.sh");
        return Ok(script.replace("@MANIFESTS@", &manifests));
    }
    Ok(manifests)
}

fn of_services(cluster: &ClusterName, meshes: &[Mesh]) -> anyhow::Result<String> {
    let services = named(meshes, cluster)?;
    let mut namespaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for service in services {
        let namespace = namespaces.entry(service.namespace.to_string()).or_default();
        namespace.push(service.name().to_owned());
    }
    let text = include_str!("../../../../templates/rbac/services.yaml.j2");
    let values = context! { cluster => cluster.as_str(), namespaces => namespaces };
    Ok(template::filled("services", text, Format::Yaml, values)?)
}

fn secret(text: &str) -> Result<GrantedSecret, String> {
    let (namespace, name) =
        text.split_once('/').ok_or_else(|| "expected NAMESPACE/NAME".to_owned())?;
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
        None => Ok(GrantedSecret { namespace: namespace.to_owned(), name: name.to_owned() }),
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
