//! `clustermesh firewall`

use std::collections::BTreeSet;

use clap::ValueEnum;
use clustermesh::diagnostic::{bare, escaped};
use clustermesh::firewall::{Firewall, InsidePort, SendingCluster};
use clustermesh::joining::{self, Joining};
use clustermesh::mesh::State;
use clustermesh::name::ClusterName;
use clustermesh::report::json::JsonDocument;
use clustermesh::report::table::TextTable;
use clustermesh::report::width::Width;
use clustermesh::text::{first, listed};

use crate::failure::CommandResult;
use crate::output::{Printer, terminal};
use crate::settings::FileOptions;
use crate::{Outcome, checked_plan, cluster_peers, inputs};

/// List the ports that must be open, and what each cluster sends
///
/// Lists the UDP endpoints at which the Peers of other clusters dial a cluster, and the ports that its own Kilo
/// needs. A node behind NAT has no endpoint and needs no open port. Behind each cluster in `FROM` are the addresses of
/// its sending nodes that its snapshot shows. A NAT gateway may send from another address, so any source must be
/// allowed unless you know better.
///
/// The second table lists the endpoints of other clusters to which the nodes of a cluster send. Clusters with
/// `state: Joining` or `state: Leaving` count as joined. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FirewallArgs {
    /// Cluster whose firewall is meant, by its name in the mesh [default: all]
    #[arg(value_name = "CLUSTER")]
    cluster: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: FirewallFormat,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh firewall west
  clustermesh firewall --output json | jq -r '.clusters[].endpoints[].endpoint'
  clustermesh firewall west --output json | jq -r '.clusters[].sends[].endpoints[].endpoint'";

/// The format of the ports.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FirewallFormat {
    /// Table
    Table,
    /// JSON
    Json,
}

pub(crate) fn run(
    args: &FirewallArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let mut inputs = inputs::gather(files)?;
    let joining = Joining { meshes: &inputs.meshes, snapshots: &inputs.snapshots };
    let joiners = joining.ready();
    inputs.meshes = joining.joined(&joiners);
    // Their ports are needed until all Peers of them are gone.
    let mut leaving: BTreeSet<ClusterName> = BTreeSet::new();
    for entry in inputs.meshes.iter_mut().flat_map(|it| &mut it.entries) {
        if entry.state == State::Leaving && inputs.snapshots.contains_key(&entry.name) {
            entry.state = State::Joined;
            leaving.insert(entry.name.clone());
        }
    }
    let mut clusters = cluster_peers::clusters(&inputs);
    let externals = inputs.meshes.iter().flat_map(|it| &it.externals);
    clusters.extend(externals.map(|it| it.entry.name.clone()));
    let only = args.cluster.as_deref();
    let only: Option<&ClusterName> =
        only.map(|it| cluster_peers::asked(it, &inputs, &clusters)).transpose()?;
    let (fleet, plan) = &checked_plan::right(&inputs)?;
    let firewall = Firewall::new(fleet, plan, only);
    if firewall.clusters.is_empty() {
        printer.note("no port must be open: no cluster dials an endpoint");
    }
    if !joiners.is_empty() {
        let names = joining::listed(&joiners);
        printer.note(&format!(
            "these are the ports with {names} joined: open them before you remove `state: Joining`"
        ));
    }
    if !leaving.is_empty() {
        let names = listed(&leaving);
        printer.note(&format!(
            "these are the ports before {names} left: close those for other clusters when its Peers are gone"
        ));
    }
    match args.output {
        FirewallFormat::Table => printer.result(&table(&firewall, terminal::stdout()))?,
        FirewallFormat::Json => printer.print(&JsonDocument::of(firewall).text()?)?,
    }
    Ok(Outcome::Clean)
}

/// The largest number of nodes or endpoints in a cell.
const LISTED: usize = 12;

/// The longest name of a node that is shown, in characters.
const NAME_LIMIT: usize = 80;

fn table(firewall: &Firewall, width: Width) -> String {
    let mut table = TextTable::new(["CLUSTER", "OPEN", "ON", "FROM"]);
    for it in &firewall.clusters {
        let mut row = |open: String, on: String, from: String| {
            table.add(vec![it.cluster.clone(), open, on, from]);
        };
        for open in &it.endpoints {
            let port = open.listen_port;
            let on = match &open.node {
                Some(node) => match open.forward_to {
                    Some(address) => format!("forward UDP {port} to {address} ({node})"),
                    None if port == open.port => node.clone(),
                    None => format!("{node}, forwarded to UDP {port}"),
                },
                None => "the host".to_owned(),
            };
            let is_same = |inside: &&InsidePort| {
                inside.endpoint.endpoint == open.endpoint
                    && Some(&inside.node) == open.node.as_ref()
            };
            let own = it.inside.iter().find(is_same).map(|_| nodes_of(&it.cluster));
            let from = open.senders.iter().map(sender).chain(own);
            row(format!("UDP {}", open.endpoint), on, first(LISTED, from));
        }
        // Their names are claims, and not checked as those of nodes that others dial.
        let name = |it: &str| escaped(it, NAME_LIMIT);
        let is_listed = |inside: &InsidePort| {
            let mut open = it.endpoints.iter();
            open.any(|it| {
                it.endpoint == inside.endpoint.endpoint && it.node.as_ref() == Some(&inside.node)
            })
        };
        for inside in it.inside.iter().filter(|it| !is_listed(it)) {
            let to = format!("UDP {}", inside.endpoint.endpoint);
            row(to, name(&inside.node), nodes_of(&it.cluster));
        }
        for nodes in &it.encapsulated {
            let on = first(LISTED, nodes.iter().map(|it| name(&it.node)));
            row(it.encapsulation.to_string(), on, "each other".to_owned());
        }
    }
    let sent = sent(firewall).text("", width);
    format!("{}\n{sent}", table.text("", width))
}

fn nodes_of(cluster: &str) -> String {
    format!("nodes of {cluster}")
}

/// Names a cluster that sends, with the known addresses of its nodes.
fn sender(sender: &SendingCluster) -> String {
    let unknown = (0 < sender.unknown && !sender.addresses.is_empty())
        .then(|| format!("{} unknown", sender.unknown));
    let addresses = sender.addresses.iter().map(ToString::to_string).chain(unknown);
    match first(LISTED, addresses) {
        none if none.is_empty() => sender.cluster.clone(),
        addresses => format!("{} ({addresses})", sender.cluster),
    }
}

/// Returns the endpoints to which each cluster sends.
fn sent(firewall: &Firewall) -> TextTable {
    let mut table = TextTable::new(["CLUSTER", "SENDS TO", "OF", "FROM"]);
    for it in &firewall.clusters {
        let nodes = it.senders.iter().map(|sender| {
            let node = sender.node.as_deref().map_or_else(|| "the host".to_owned(), bare);
            match sender.address {
                Some(address) => format!("{node} ({address})"),
                None => node,
            }
        });
        let from = first(LISTED, nodes);
        for sent in &it.sends {
            let endpoints = first(LISTED, sent.endpoints.iter().map(|it| &it.endpoint));
            let to = format!("UDP {endpoints}");
            table.add(vec![it.cluster.clone(), to, sent.cluster.clone(), from.clone()]);
        }
    }
    table
}
