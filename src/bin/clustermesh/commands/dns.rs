//! `clustermesh dns`

use std::net::IpAddr;

use anyhow::anyhow;
use clap::ValueEnum;
use clustermesh::agent::fabric::Fabric;
use clustermesh::diagnostic::escaped;
use clustermesh::dns_config::DnsConfig;
use clustermesh::manifest;
use clustermesh::mesh::AddressClass;
use clustermesh::name::{ClusterName, is_dns_subdomain};
use clustermesh::packet::trace::EndFinder;
use clustermesh::report::json::JsonDocument;
use clustermesh::text::{count, listed, shell_word};

use crate::cluster_peers::{ClusterPeers, KnownContents};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, allowed_losses, checked_plan, inputs};

/// Print the DNS with which a cluster resolves Services of others
///
/// A Service `web` in the namespace `shop` of `east` gets the name `web.shop.svc.east.mesh.internal` in the other clusters. Their
/// CoreDNS forwards these names to the DNS service of `east`, which is the field `dns` of its entry in the mesh. Only clusters
/// that give the cluster the address of their DNS service are included. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DnsArgs {
    /// Cluster whose DNS service is to be configured
    #[arg(value_name = "CLUSTER")]
    target: String,

    /// Domain of the names; use the same one for all clusters
    #[arg(long, value_name = "DOMAIN", default_value = "mesh.internal", value_parser = domain)]
    domain: String,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "corefile")]
    output: DnsFormat,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh dns west
  clustermesh dns west --output k3s | kubectl --context west apply --server-side -f -";

/// The longest domain, in characters: a Service, its namespace and its cluster have up to 63 each, and a DNS name has 253.
const DOMAIN_LIMIT: usize = 253 - "svc".len() - 3 * 63 - 4;

/// The longest name of a node that is shown, in characters.
const NAME_LIMIT: usize = 300;

/// The format of the configuration.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DnsFormat {
    /// Server blocks for a Corefile
    Corefile,
    /// The `ConfigMap` that the CoreDNS of k3s imports
    K3s,
    /// JSON
    Json,
}

fn domain(text: &str) -> Result<String, String> {
    if is_dns_subdomain(text) && text.len() <= DOMAIN_LIMIT {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected a lowercase DNS name of at most {DOMAIN_LIMIT} characters, such as mesh.internal"
    ))
}

pub(crate) fn run(args: &DnsArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let inputs = inputs::gather(files)?;
    let (fleet, plan) = &checked_plan::right(&inputs)?;
    let mut targets = plan.targets.iter();
    let Some(target) = targets.find(|it| it.cluster.as_str() == args.target) else {
        return Err(allowed_losses::unknown_target(&args.target, plan).into());
    };
    let texts = manifest::texts(plan);
    let known = KnownContents::default();
    let applied = ClusterPeers::planned(&inputs.settings, plan, &texts, &known);
    let fabric = applied.fabric_of(&inputs, Some(fleet), None);
    let silent = |service| silent_nodes(&fabric, &target.cluster, service);
    let config = DnsConfig::new(fleet, plan, target, &args.domain, silent);
    if !config.unreached().is_empty() {
        printer.note(&format!(
            "left out {}, because {} gets no Peer with the address of the DNS service; run `clustermesh validate` for the \
             reasons",
            listed(config.unreached()),
            target.cluster
        ));
    }
    if config.is_empty() {
        let help = if config.unreached().is_empty() {
            "; write `dns: { service: ADDRESS }` in the entries of the clusters whose Services it should resolve"
        } else {
            ""
        };
        return Err(
            anyhow!("{} reaches no DNS service of another cluster{help}", target.cluster).into()
        );
    }
    for (service, nodes) in config.silent() {
        let first = nodes.iter().take(1).map(|it| format!("{}/{it}", target.cluster));
        let first = shell_word(&first.collect::<String>());
        printer.note(&format!(
            "{service} does not answer {} of {}, so NodeLocal DNSCache cannot ask it there; `clustermesh trace {} {service} \
             --class node` shows the reason",
            count(nodes.len(), "node"),
            target.cluster,
            escaped(&first, NAME_LIMIT)
        ));
    }
    match args.output {
        DnsFormat::Corefile => printer.print(&config.corefile())?,
        DnsFormat::K3s => printer.print(&config.k3s())?,
        DnsFormat::Json => printer.print(&JsonDocument::of(config).text()?)?,
    }
    Ok(Outcome::Clean)
}

/// Returns the nodes of a cluster to which an address of another cluster does not answer.
fn silent_nodes(fabric: &Fabric, asking: &ClusterName, service: IpAddr) -> Vec<String> {
    let mut ends = EndFinder::new(fabric);
    let service = ends.find(&service.to_string(), None);
    let site = fabric.site_named(asking.as_str()).map(|it| fabric.site(it));
    let nodes = site.into_iter().flat_map(|it| &it.reading.topology.nodes);
    let mut answers = |node: &str| {
        let from = ends.find(&format!("{asking}/{node}"), Some(AddressClass::Node)).ok()?;
        let to = service.as_ref().ok()?;
        Some(fabric.trace(from.end, to.end).ok()?.is_delivered())
    };
    nodes.map(|it| &it.kilo.name).filter(|it| answers(it) != Some(true)).cloned().collect()
}
