//! `clustermesh trace`

use anyhow::{Error, anyhow};
use clap::builder::NonEmptyStringValueParser;
use clustermesh::mesh::AddressClass;
use clustermesh::results::trace::batch;
use clustermesh::results::trace::tracer::Tracer;

use crate::choice::choice;
use crate::cluster_peers::Dumps;
use crate::failure::CommandResult;
use crate::output::{Printer, TableFormat};
use crate::proving::WantedPeers;
use crate::settings::FileOptions;
use crate::{Outcome, cluster_peers, disk, input_file};

/// Follow a packet between clusters, and its reply
///
/// Computes the routes of Kilo and WireGuard from the snapshots and the Peers, and shows each step of a
/// packet and of its reply: where they go, or where they are dropped and why. Sends nothing. Exits with
/// 0 if the packet and its reply are delivered, else with 1, also if no cluster declares an address or a file has an error.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// Sender: CLUSTER, CLUSTER/NODE, CLUSTER/ADDRESS, or an ADDRESS of one cluster
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "batch")]
    from: Option<String>,

    /// Receiver, in the same forms; an address may have a port
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "batch")]
    to: Option<String>,

    /// Read pairs from standard input, and print a line of JSON for each
    ///
    /// A line has FROM and TO, with a space between them. Empty lines and lines that begin with `#` are skipped. A line that
    /// cannot be traced does not stop the others. The exit code is the highest of all lines.
    #[arg(long, conflicts_with_all = ["from", "to"])]
    batch: bool,

    /// Kind of address to use for a node or a cluster
    #[arg(long, value_name = "CLASS")]
    class: Option<ClassArgument>,

    /// Output format [default: human, or json with `--batch`]
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "human",
        default_value_if("batch", "true", "json"),
        hide_default_value = true
    )]
    output: TraceFormat,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh trace east/worker-1 west/worker-2
  clustermesh trace east/worker-1 west/worker-2 --class node
  clustermesh trace east/worker-1 west --class service
  clustermesh trace east 10.96.0.10:443
  clustermesh trace 10.42.1.7 10.244.2.9
  clustermesh trace --batch < pairs.txt | jq -r 'select(.verdict != \"delivered\") | .line'
  clustermesh trace east/worker-1 west/worker-2 --peers west=<(kubectl --context west get peers -o yaml)";

choice! {
    /// The class of a source or destination.
    enum ClassArgument of AddressClass {
        /// A pod. For a node: the third address of its pod CIDR, such as 10.42.1.2
        Pod,
        /// The node itself, or a pod with `hostNetwork`
        Node,
        /// A service of the cluster; the sender is a pod
        Service,
        /// An address in `additionalCIDRs` of the cluster; the sender is a pod
        Network,
    }
}

choice! {
    /// The format of a trace.
    enum TraceFormat of TableFormat {
        /// Numbered steps
        Human,
        /// JSON
        Json,
    }
}

pub(crate) fn run(args: &TraceArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    if args.batch && args.output != TraceFormat::Json {
        return Err(anyhow!("`--batch` prints JSON; omit `--output`").into());
    }
    let (inputs, applied, outcome) =
        cluster_peers::gather_all(files, &args.dumps, args.from.iter().chain(&args.to), printer)?;
    let wanted = WantedPeers::plan(&inputs, &args.dumps, &applied, None)?;
    if wanted.outdated.is_some() {
        let folder = input_file::name(&inputs.settings.rendered.value);
        printer.note(&format!(
            "the packet follows the Peers in {folder}, which `clustermesh render` would change"
        ));
    }
    let fabric = wanted.delivered(applied.fabric(&inputs));
    let rendered = wanted.unwritten(&inputs);
    let rendered = rendered.as_ref().map(|it| it.fabric(&inputs));
    let help = wanted.outdated.as_ref().and_then(|it| it.finding.help.clone());
    let mut tracer =
        Tracer::new(&inputs.files, &inputs.meshes, &fabric, args.class.map(Into::into))
            .beside(rendered.as_ref().zip(help));
    if args.batch {
        let input = disk::standard_input(batch::INPUT_LIMIT)?;
        return Ok(outcome.max(trace_all(&mut tracer, &input, printer)?));
    }
    let (Some(from), Some(to)) = (&args.from, &args.to) else {
        return Err(anyhow!("no packet is given").into());
    };
    let result = tracer.trace(from, to).map_err(Error::msg)?;
    printer.finish(&result, args.output.into())?;
    Ok(outcome.max(Outcome::findings_if(!result.is_delivered())))
}

/// Follows the packets of a batch, and prints a line for each.
fn trace_all(tracer: &mut Tracer, input: &[u8], printer: &mut Printer) -> CommandResult {
    let mut worst = Outcome::Clean;
    for (line, pair) in batch::pairs(input).map_err(Error::msg)? {
        let result = tracer.pair(line, pair);
        printer.print(&batch::line(&result)?)?;
        worst = worst.max(match &result {
            Ok(it) => Outcome::findings_if(!it.is_delivered()),
            Err(_) => Outcome::Unreadable,
        });
    }
    Ok(worst)
}
