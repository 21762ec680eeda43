//! `clustermesh schema`

use anyhow::anyhow;
use clap::ValueEnum;
use clustermesh::dns_config::DnsConfig;
use clustermesh::firewall::Firewall;
use clustermesh::graph::MeshGraph;
use clustermesh::host_config::HostConfig;
use clustermesh::kilo::peer;
use clustermesh::node_changes::NodeChanges;
use clustermesh::node_gates::NodeExplanation;
use clustermesh::report::json;
use clustermesh::results::capacity::CapacityResult;
use clustermesh::results::diff::json::form::WrittenDiff;
use clustermesh::results::findings::json::WrittenReport;
use clustermesh::results::outage::json::WrittenOutage;
#[cfg(feature = "snapshot")]
use clustermesh::results::status::StatusResult;
use clustermesh::results::trace::TraceResult;
use clustermesh::results::trace::batch::TraceMistake;
use clustermesh::results::verify::json::WrittenVerification;
use clustermesh::{config, expectations, mesh, outputs, policy, snapshot};

use crate::Outcome;
use crate::failure::CommandResult;
use crate::output::Printer;

/// Print the JSON Schema of a format
///
/// Editors, `kubeconform` and other programs use schemas to check files. `clustermesh validate` also
/// checks rules that a schema cannot express.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Format to describe
    #[arg(value_name = "KIND")]
    kind: SchemaKind,

    /// For `peer`: also check what Kilo requires, not only what the API server does
    #[arg(long)]
    strict: bool,
}

/// A format of clustermesh or of Kilo.
#[derive(Clone, Copy, ValueEnum)]
enum SchemaKind {
    /// `ClusterMesh`, the clusters and their networks
    Mesh,
    /// `clustermesh.yaml`
    Config,
    /// `expectations.yaml`
    Expectations,
    /// Files in `policies`
    Policy,
    /// Files that `snapshot` writes
    Snapshot,
    /// Files that `snapshot --services` writes
    ServicesSnapshot,
    /// Output of `validate --output json`
    Report,
    /// Output of `trace --output json`
    Trace,
    /// Lines of `trace --batch` that cannot be traced
    TraceMistake,
    /// Output of `verify --output json`
    Verification,
    /// Output of `outage --output json`
    Outage,
    /// Output of `diff --output json`
    Diff,
    /// Output of `graph --output json`
    Graph,
    /// Output of `capacity --output json`
    Capacity,
    /// Output of `status --output json`
    #[cfg(feature = "snapshot")]
    Status,
    /// Output of `dns --output json`
    Dns,
    /// Output of `wireguard --output json`
    Wireguard,
    /// Output of `firewall --output json`
    Firewall,
    /// Output of `annotate --output json`
    Annotate,
    /// Output of `explain CLUSTER/NODE --output json`
    Explanation,
    /// Peers that `render` writes
    Peer,
    /// Values for `clustermesh template` and for `outputs`
    TemplateContext,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh schema mesh > mesh.schema.json
  clustermesh schema peer --strict > peer.schema.json

Editors find the schema in the first line of a YAML file:
  # yaml-language-server: $schema=mesh.schema.json";

pub(crate) fn run(args: &SchemaArgs, printer: &mut Printer) -> CommandResult {
    let schema = match (args.kind, args.strict) {
        (SchemaKind::Peer, true) => peer::strict_schema(),
        (_, true) => return Err(anyhow!("`--strict` works only with `peer`").into()),
        (SchemaKind::Mesh, _) => mesh::schema(),
        (SchemaKind::Config, _) => config::schema(),
        (SchemaKind::Expectations, _) => expectations::schema(),
        (SchemaKind::Policy, _) => policy::schema(),
        (SchemaKind::Snapshot, _) => snapshot::schema(),
        (SchemaKind::ServicesSnapshot, _) => snapshot::services::schema(),
        (SchemaKind::Report, _) => json::schema::<WrittenReport>(),
        (SchemaKind::Trace, _) => json::schema::<TraceResult>(),
        (SchemaKind::TraceMistake, _) => json::schema::<TraceMistake>(),
        (SchemaKind::Verification, _) => json::schema::<WrittenVerification>(),
        (SchemaKind::Outage, _) => json::schema::<WrittenOutage>(),
        (SchemaKind::Diff, _) => json::schema::<WrittenDiff>(),
        (SchemaKind::Graph, _) => json::schema::<MeshGraph>(),
        (SchemaKind::Capacity, _) => json::schema::<CapacityResult>(),
        #[cfg(feature = "snapshot")]
        (SchemaKind::Status, _) => json::schema::<StatusResult>(),
        (SchemaKind::Dns, _) => json::schema::<DnsConfig>(),
        (SchemaKind::Wireguard, _) => json::schema::<HostConfig>(),
        (SchemaKind::Firewall, _) => json::schema::<Firewall>(),
        (SchemaKind::Annotate, _) => json::schema::<NodeChanges>(),
        (SchemaKind::Explanation, _) => json::schema::<NodeExplanation>(),
        (SchemaKind::Peer, _) => peer::schema(),
        (SchemaKind::TemplateContext, _) => outputs::context::schema(),
    };
    let mut text = serde_json::to_string_pretty(&schema)?;
    text.push('\n');
    printer.print(&text)?;
    Ok(Outcome::Clean)
}
