//! `clustermesh annotate`

use std::num::NonZeroU16;

use anyhow::anyhow;
use clap::builder::TypedValueParser;
use clap::{ArgAction, ValueEnum};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::kilo::cluster::Cluster;
use clustermesh::kilo::node::endpoint;
use clustermesh::name::is_label_value;
use clustermesh::node_changes::{GivenValues, NodeChanges};
use clustermesh::report::json::JsonDocument;
use clustermesh::rules::Purpose;

use crate::checked_plan::OutputCheck;
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, checked_plan, cluster_peers, input_file, inputs};

/// Print annotations and labels of nodes that resolve findings
///
/// Computes them from the findings of `validate`, and prints `kubectl` commands or patches for the machine
/// configuration of Talos. If clustermesh cannot know a value, such as the address of a NAT, the command is a comment
/// with the value in capitals. Options give such values. Commands never contain values that nodes wrote. Changes no
/// node.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnnotateArgs {
    /// Cluster with the nodes, by its name in the mesh
    #[arg(value_name = "CLUSTER")]
    cluster: String,

    /// Print the changes of this node only
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Print a policy by which each new node gets the keepalive annotation
    ///
    /// The `MutatingAdmissionPolicy` makes the API server of the cluster add the annotation to new nodes that lack it. It
    /// needs Kubernetes 1.36; its first lines name the flags for older versions. Without `--keepalive`, the value is 25.
    #[arg(long, conflicts_with_all = ["node", "endpoint", "location", "output"])]
    new_nodes: bool,

    /// Seconds between keepalives of all nodes
    ///
    /// If all nodes send keepalives, connections survive changes of Peers.
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    keepalive: Option<NonZeroU16>,

    /// Endpoint of a node for other clusters; repeatable
    #[arg(long, value_name = "NODE=ADDRESS:PORT", action = ArgAction::Append, value_parser = given_endpoint)]
    endpoint: Vec<(String, String)>,

    /// Location of a node; repeatable
    #[arg(long, value_name = "NODE=LOCATION", action = ArgAction::Append, value_parser = given_location)]
    location: Vec<(String, String)>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "kubectl")]
    output: AnnotateFormat,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh annotate west
  clustermesh annotate west --keepalive 25
  clustermesh annotate west --endpoint west-1=198.18.7.7:51820
  clustermesh annotate west --node west-1 --output talos > west-1.patch.yaml
  clustermesh annotate west --new-nodes | kubectl --context west apply --server-side -f -";

/// The policy for nodes that do not exist yet.
const POLICY: &str = include_str!("../../../../templates/admission/keepalive.yaml");

fn seconds() -> impl TypedValueParser<Value = NonZeroU16> {
    clap::value_parser!(u16).range(1..).try_map(NonZeroU16::try_from)
}

/// The format of the changes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AnnotateFormat {
    /// Commands of `kubectl`
    Kubectl,
    /// Patches for the machine configuration of Talos
    Talos,
    /// JSON
    Json,
}

fn given_endpoint(text: &str) -> Result<(String, String), String> {
    let given = text.split_once('=');
    let given = given.filter(|it| endpoint(it.1).is_ok_and(|it| it.check().is_ok()));
    let given = given.map(|(node, value)| (node.to_owned(), value.to_owned()));
    given.ok_or_else(|| "expected NODE=ADDRESS:PORT, such as west-1=198.18.7.7:51820".to_owned())
}

fn given_location(text: &str) -> Result<(String, String), String> {
    let given = text.split_once('=');
    let given = given.filter(|it| !it.1.is_empty() && is_label_value(it.1));
    let given = given.map(|(node, value)| (node.to_owned(), value.to_owned()));
    given.ok_or_else(|| {
        "expected NODE=LOCATION with letters, digits, inner dots, dashes and underscores".to_owned()
    })
}

pub(crate) fn run(
    args: &AnnotateArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    if args.new_nodes {
        return print_policy(args, files, printer);
    }
    let inputs = inputs::gather(files)?;
    let checked = checked_plan::check(&inputs, Purpose::Validate, None, OutputCheck::Unasked)?;
    let Some((fleet, _)) = &checked.planned else {
        return Err(inputs.refusal(checked.findings));
    };
    let clusters = cluster_peers::clusters(&inputs);
    let name = cluster_peers::named(&args.cluster, &clusters)?;
    let Some(member) = fleet.memberships(name).next() else {
        return Err(anyhow!("{name} leaves its meshes, so its nodes are not read").into());
    };
    let given = GivenValues {
        keepalive: args.keepalive,
        endpoints: args.endpoint.iter().cloned().collect(),
        locations: args.location.iter().cloned().collect(),
        node: args.node.clone(),
    };
    let named = given.endpoints.keys().chain(given.locations.keys());
    for node in named.chain(&given.node) {
        check_node(&member.cluster, node)?;
    }
    let changes = NodeChanges::new(&member.cluster, &checked.findings, &given);
    if changes.is_empty() {
        printer.note(&format!(
            "nothing to annotate: no annotation or label resolves a finding about {name}"
        ));
    }
    match args.output {
        AnnotateFormat::Kubectl => {
            let kubectl = inputs.settings.config.content.kubectl(name);
            printer.print(&changes.commands(&kubectl, &member.cluster))?;
        }
        AnnotateFormat::Talos => printer.print(&changes.talos())?,
        AnnotateFormat::Json => printer.print(&JsonDocument::of(&changes).text()?)?,
    }
    if !changes.is_empty() {
        printer.note(&format!("after the change, run `clustermesh snapshot {name}`"));
    }
    Ok(Outcome::Clean)
}

/// Prints the policy for new nodes, which depends on no node.
fn print_policy(args: &AnnotateArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let settings = files.settle()?;
    let meshes = input_file::meshes(&settings.mesh_files()?, settings.ceilings)?;
    let clusters: Vec<_> =
        meshes.iter().flat_map(|it| &it.entries).map(|it| it.name.clone()).collect();
    cluster_peers::named(&args.cluster, &clusters)?;
    let seconds = args.keepalive.map_or(25, NonZeroU16::get);
    printer.print(&POLICY.replace("@SECONDS@", &seconds.to_string()))?;
    Ok(Outcome::Clean)
}

/// Checks that a cluster has a node of this name.
fn check_node(cluster: &Cluster, node: &str) -> anyhow::Result<()> {
    if cluster.node(node).is_some() {
        return Ok(());
    }
    let known = cluster.nodes.iter().map(|it| it.node.name.as_str());
    let help = nearest(node, known).map(|it| format!("; did you mean {}?", Quoted(it)));
    Err(anyhow!(
        "the snapshot of {} has no node {}{}",
        cluster.entry.name,
        Quoted(node),
        help.unwrap_or_default()
    ))
}
