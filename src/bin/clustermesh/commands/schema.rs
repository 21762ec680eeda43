//! `clustermesh schema`

use std::io;

use anyhow::bail;
use clap::ValueEnum;
use clustermesh::kilo::peer;
use clustermesh::{config, expectations, mesh, outputs, snapshot};

use crate::commands::capacity;
use crate::{Outcome, output};

/// Print the JSON Schema of a format
///
/// It is what editors, `kubeconform` and other programs check files with. What a schema cannot say,
/// `clustermesh validate` does.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The format
    #[arg(value_name = "KIND")]
    kind: Kind,

    /// Of a Peer, ask all that Kilo asks, not only what the API server does
    #[arg(long)]
    strict: bool,
}

/// A format of ours, or of Kilo's.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// The `ClusterMesh`: which clusters belong together
    Mesh,
    /// `clustermesh.yaml`
    Config,
    /// `expectations.yaml`
    Expectations,
    /// What `snapshot` writes
    Snapshot,
    /// What `validate --output json` prints
    Report,
    /// What `trace --output json` prints
    Trace,
    /// What `verify --output json` prints
    Verification,
    /// What `capacity --output json` prints
    Capacity,
    /// The Peers that `render` writes
    Peer,
    /// The values of `clustermesh template`, and of `outputs`
    TemplateContext,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh schema mesh > mesh.schema.json
  clustermesh schema peer --strict > peer.schema.json

The first line of a YAML file names its schema to editors:
  # yaml-language-server: $schema=mesh.schema.json";

pub(crate) fn run(args: &Args, result: &mut impl io::Write) -> anyhow::Result<Outcome> {
    let schema = match (args.kind, args.strict) {
        (Kind::Peer, true) => peer::strict_schema(),
        (_, true) => bail!("`--strict` is for `peer`: the others are as strict as the program is"),
        (Kind::Mesh, _) => mesh::schema(),
        (Kind::Config, _) => config::schema(),
        (Kind::Expectations, _) => expectations::schema(),
        (Kind::Snapshot, _) => snapshot::schema(),
        (Kind::Report, _) => output::report_schema(),
        (Kind::Trace, _) => output::trace_schema(),
        (Kind::Verification, _) => output::verification_schema(),
        (Kind::Capacity, _) => capacity::schema(),
        (Kind::Peer, _) => peer::schema(),
        (Kind::TemplateContext, _) => outputs::context::schema(),
    };
    let mut text = serde_json::to_string_pretty(&schema)?;
    text.push('\n');
    crate::print(result, &text)?;
    Ok(Outcome::Clean)
}
