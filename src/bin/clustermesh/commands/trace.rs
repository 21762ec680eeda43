//! `clustermesh trace`

use std::io::Write;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::agent::fabric::{Fabric, Site};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::name::ClusterName;
use clustermesh::packet::messages;
use clustermesh::packet::trace::{self, End, NoEnd};
use clustermesh::rules::granularity_advice;
use clustermesh::text;

use crate::fabric::{Dumps, Gathered};
use crate::inputs::Inputs;
use crate::output::{Printer, TraceFormat, Traced};
use crate::settings::CommonOptions;
use crate::{Outcome, fabric};

/// Follow a packet between clusters, and its reply
///
/// Computes the routes of Kilo and WireGuard from the snapshots and the Peers, and shows each step of a
/// packet and of its reply: where they go, or where they are dropped and why. Sends nothing. Exits with
/// 0 if the packet and its reply are delivered, else with 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// Sender: CLUSTER/NODE, CLUSTER/ADDRESS or an ADDRESS that only one cluster has
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    from: String,

    /// Receiver, in the same forms, or a CLUSTER with `--class`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    to: String,

    /// Kind of address to use for a node or a cluster
    #[arg(long, value_name = "CLASS")]
    class: Option<ClassArgument>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: TraceFormat,

    #[command(flatten)]
    dumps: Dumps,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh trace east/worker-1 west/worker-2
  clustermesh trace east/worker-1 west/worker-2 --class node
  clustermesh trace east/worker-1 west --class service
  clustermesh trace 10.42.1.7 10.244.2.9
  clustermesh trace east/worker-1 west/worker-2 --peers west=<(kubectl --context west get peers -o yaml)";

/// The class of a source or destination.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClassArgument {
    /// A pod; of a node, the first address of its pod CIDR
    Pod,
    /// The node itself, or a pod with `hostNetwork`
    Node,
    /// A service of the cluster; the sender is a pod
    Service,
    /// An address in `additionalCIDRs` of the cluster; the sender is a pod
    Network,
}

impl From<ClassArgument> for trace::AddressClass {
    fn from(class: ClassArgument) -> Self {
        match class {
            ClassArgument::Pod => Self::Pod,
            ClassArgument::Node => Self::Node,
            ClassArgument::Service => Self::Service,
            ClassArgument::Network => Self::Network,
        }
    }
}

pub(crate) fn run(
    args: &TraceArgs,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let Gathered { mut inputs, grave } = match fabric::gather(&args.common.files) {
        Ok(gathered) => gathered,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    let applied = match fabric::read(&mut inputs, Some(&args.dumps)) {
        Ok(applied) => applied,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    printer.findings(&inputs.files, &grave);
    printer.findings(&inputs.files, &applied.findings);
    let fabric = applied.fabric(&inputs);
    let class = args.class.map(trace::AddressClass::from);
    let of_sender = match class {
        // Nothing is sent from what a cluster has as a whole.
        Some(trace::AddressClass::Service | trace::AddressClass::Network) => None,
        class => class,
    };
    let from = end(&inputs, &fabric, "FROM", &args.from, of_sender)?;
    let to = end(&inputs, &fabric, "TO", &args.to, class)?;
    let trace = fabric.trace(from, to)?;
    let traced = Traced {
        fabric: &fabric,
        files: &inputs.files,
        ends: (from, to),
        trace: &trace,
        advice: [from.site, to.site]
            .into_iter()
            .find_map(|it| granularity_advice(&fabric.site(it).reading))
            .or_else(|| messages::unprovided(&fabric, &inputs.meshes, &trace)),
    };
    let text = traced.text(args.output)?;
    if args.output == TraceFormat::Human {
        printer.result(result, &text)?;
    } else {
        crate::print(result, &text)?;
    }
    Ok(if trace.is_delivered() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

/// Finds an end, or suggests what may have been meant.
fn end(
    inputs: &Inputs,
    fabric: &Fabric,
    argument: &str,
    text: &str,
    class: Option<trace::AddressClass>,
) -> anyhow::Result<End> {
    let error = match fabric.end(text, class) {
        Ok(end) => return Ok(end),
        Err(error) => error,
    };
    let advice = match &error {
        NoEnd::Cluster(name) => {
            let entries = inputs.meshes.iter().flat_map(|mesh| &mesh.entries);
            if entries.map(|it| it.name.as_str()).any(|it| it == name) {
                bail!(
                    "{argument}: {} has no snapshot; run `clustermesh snapshot`",
                    Quoted(name)
                );
            }
            of_clusters(fabric, name)
        }
        NoEnd::Unreadable(text) => match fabric.site_named(text) {
            Some(_) if argument == "FROM" => format!("write `{text}/NODE`"),
            Some(_) => {
                format!("write `{text}/NODE`, or add `--class service` or `--class network`")
            }
            None => of_clusters(fabric, text),
        },
        NoEnd::Node { cluster, node } => {
            let site = fabric.site_named(cluster).map(|it| fabric.site(it));
            site.map_or_else(String::new, |site| of_nodes(site, node))
        }
        NoEnd::NoAddress { class, .. } => match class {
            trace::AddressClass::Service => {
                "choose a cluster with a `serviceCIDR`, or give an address in \
                it"
            }
            trace::AddressClass::Network => {
                "choose a cluster with `additionalCIDRs`, or give an address \
                in them"
            }
            trace::AddressClass::Pod => "the node has no pod CIDR",
            trace::AddressClass::Node => {
                "the node has no internal address and no WireGuard address"
            }
        }
        .to_owned(),
        NoEnd::Nobody { .. }
        | NoEnd::Several { .. }
        | NoEnd::Silent { .. }
        | NoEnd::OneCluster(_) => String::new(),
    };
    let error = anyhow!("{argument}: {error}");
    Err(if advice.is_empty() {
        error
    } else {
        anyhow!("{error}; {advice}")
    })
}

fn of_clusters(fabric: &Fabric, name: &str) -> String {
    let names = || fabric.sites.iter().map(|it| it.cluster);
    match nearest(name, names().map(ClusterName::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known clusters: {}", text::first(LISTED, names())),
    }
}

fn of_nodes(site: &Site, name: &str) -> String {
    let names = || {
        site.model
            .topology
            .nodes
            .iter()
            .map(|it| it.kilo.name.as_str())
    };
    match nearest(name, names()) {
        Some(meant) => format!("did you mean {}?", Quoted(meant)),
        None => format!("known nodes: {}", text::first(LISTED, names().map(Quoted))),
    }
}

/// The number of names that are listed.
const LISTED: usize = 8;
