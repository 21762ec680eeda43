//! `clustermesh graph`

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;

use clap::ValueEnum;
use clustermesh::graph::{GraphInputs, GraphLevel, MeshGraph, dot, mermaid, svg};
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::report::json::JsonDocument;

use crate::choice::choice;
use crate::cluster_peers::{self, Dumps};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::proving::{self, WantedPeers};
use crate::settings::FileOptions;
use crate::{input_file, origin};

/// Draw the clusters, and whether their links work
///
/// Each link shows the result of `verify`: it works, depends on an assumption, fails, fails in one direction, or is
/// unknown. A segment shows its leader, its endpoint (or `behind NAT`) and the ranges that it carries as an anchor.
/// With more than 30 links, the picture is a matrix, or a list of the clusters of a hub. Writes nothing, and needs no
/// other program.
///
/// Failing links do not change the exit code. It is 1 if a file has an error.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GraphArgs {
    /// Clusters to draw, with those that they are linked to [default: all]
    ///
    /// An external peer is called `external.NAME`.
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "svg")]
    output: GraphFormat,

    /// Level of detail [default: the most detailed with at most 60 boxes]
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelArgument>,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh graph > mesh.svg
  clustermesh graph west --level nodes > west.svg
  clustermesh graph --output mermaid
  clustermesh graph --output dot | dot -Tpdf > mesh.pdf
  clustermesh graph --output json | jq '.links[] | select(.state == \"fails\") | .clusters'";

/// The format of a graph.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum GraphFormat {
    /// Picture for browsers and Markdown
    Svg,
    /// Flowchart that GitHub and GitLab draw, with fewer details if it gets too long for them
    Mermaid,
    /// Graph for Graphviz
    Dot,
    /// JSON
    Json,
}

choice! {
    /// The level of detail.
    enum LevelArgument of GraphLevel {
        /// Clusters only
        Clusters,
        /// The segments of each cluster
        Segments,
        /// The nodes of each segment, and those that are left out
        Nodes,
    }
}

pub(crate) fn run(args: &GraphArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let (inputs, applied, outcome) =
        cluster_peers::gather_all(files, &args.dumps, &args.clusters, printer)?;
    let inputs = ManuallyDrop::new(inputs);
    let names = inputs.meshes.iter().flat_map(Mesh::all_entries);
    let names: Vec<ClusterName> = names.map(|it| it.name.clone()).collect();
    let focus: BTreeSet<String> = args
        .clusters
        .iter()
        .map(|it| Ok(cluster_peers::named(it, &names)?.to_string()))
        .collect::<anyhow::Result<_>>()?;
    let wanted = ManuallyDrop::new(WantedPeers::plan(&inputs, &args.dumps, &applied, None)?);
    if wanted.outdated.is_some() {
        let folder = input_file::name(&inputs.settings.rendered.value);
        printer.note(&format!(
            "the graph shows the Peers in {folder}, which `clustermesh render` would change"
        ));
    }
    let fabric = applied.fabric_of(&inputs, Some(&wanted.fleet), None);
    let fabric = ManuallyDrop::new(wanted.delivered(fabric));
    let reach = proving::look(&fabric, inputs.settings.ceilings)?;
    let verification = proving::verified(&reach, inputs.asked(), || wanted.excused());
    let graph = GraphInputs {
        meshes: &inputs.meshes,
        fleet: &wanted.fleet,
        plan: wanted.plan.as_ref(),
        fabric: &fabric,
        verification: &verification,
    };
    let mut graph = graph.graph().shown(&focus, args.level.map(Into::into));
    graph.origin = Some(origin::of(&inputs, None));
    printer.print(&text(args, graph)?)?;
    Ok(outcome)
}

fn text(args: &GraphArgs, graph: MeshGraph) -> anyhow::Result<String> {
    Ok(match args.output {
        GraphFormat::Svg => svg::svg(&graph),
        GraphFormat::Mermaid => mermaid::mermaid(&graph, args.level.is_some()),
        GraphFormat::Dot => dot::dot(&graph),
        GraphFormat::Json => JsonDocument::of(graph).text()?,
    })
}
