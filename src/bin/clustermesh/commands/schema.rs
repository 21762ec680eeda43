//! `clustermesh schema`

use std::io;

use anyhow::bail;
use clap::ValueEnum;
use clustermesh::kilo::peer;
use clustermesh::{config, expectations, mesh, outputs, snapshot};

use crate::commands::capacity;
#[cfg(feature = "snapshot")]
use crate::commands::status;
use crate::{Outcome, output};

/// Print the JSON Schema of a format
///
/// Editors, `kubeconform` and other programs use schemas to check files. `clustermesh validate` also
/// checks rules that a schema cannot express.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Format to describe
    #[arg(value_name = "KIND")]
    kind: Kind,

    /// For `peer`: also check what Kilo requires, not only what the API server does
    #[arg(long)]
    strict: bool,
}

/// A format of clustermesh or of Kilo.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// `ClusterMesh`, the clusters and their networks
    Mesh,
    /// `clustermesh.yaml`
    Config,
    /// `expectations.yaml`
    Expectations,
    /// Files that `snapshot` writes
    Snapshot,
    /// Output of `validate --output json`
    Report,
    /// Output of `trace --output json`
    Trace,
    /// Output of `verify --output json`
    Verification,
    /// Output of `capacity --output json`
    Capacity,
    /// Output of `status --output json`
    #[cfg(feature = "snapshot")]
    Status,
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

pub(crate) fn run(args: &Args, result: &mut impl io::Write) -> anyhow::Result<Outcome> {
    let schema = match (args.kind, args.strict) {
        (Kind::Peer, true) => peer::strict_schema(),
        (_, true) => bail!("`--strict` works only with `peer`"),
        (Kind::Mesh, _) => mesh::schema(),
        (Kind::Config, _) => config::schema(),
        (Kind::Expectations, _) => expectations::schema(),
        (Kind::Snapshot, _) => snapshot::schema(),
        (Kind::Report, _) => output::report_schema(),
        (Kind::Trace, _) => output::trace_schema(),
        (Kind::Verification, _) => output::verification_schema(),
        (Kind::Capacity, _) => capacity::schema(),
        #[cfg(feature = "snapshot")]
        (Kind::Status, _) => status::schema(),
        (Kind::Peer, _) => peer::schema(),
        (Kind::TemplateContext, _) => outputs::context::schema(),
    };
    let mut text = serde_json::to_string_pretty(&schema)?;
    text.push('\n');
    crate::print(result, &text)?;
    Ok(Outcome::Clean)
}
