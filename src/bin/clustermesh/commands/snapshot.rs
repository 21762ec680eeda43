//! `clustermesh snapshot`

use std::path::PathBuf;

use anyhow::bail;
use clustermesh::diagnostic::{Quoted, escaped};
use clustermesh::kilo::node::annotation;
use clustermesh::name::ClusterName;
use clustermesh::snapshot::{Node, SIZE_LIMIT, dump};

use crate::output::Talk;
use crate::settings::Options;
use crate::{Outcome, disk, input};

/// The largest dump that is read, in bytes: 25,000 nodes of 18 KB, with room.
const DUMP_LIMIT: u64 = 512 << 20;

/// Keep a cluster's nodes as JSON in git
///
/// Reads what `kubectl get nodes` prints and writes what a mesh needs of it to
/// `snapshots/CLUSTER.json`: names, labels, Kilo's annotations, pod CIDRs and addresses.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The cluster, as the mesh calls it
    #[arg(value_name = "CLUSTER", value_parser = cluster)]
    cluster: ClusterName,

    /// A dump of the nodes, JSON or YAML; `-` for standard input
    #[arg(long, value_name = "FILE", required = true)]
    from: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  kubectl --context east get nodes -o json | clustermesh snapshot east --from -
  clustermesh snapshot west --from west-nodes.yaml";

pub(crate) fn run(args: &Args, options: &Options, talk: &mut Talk) -> anyhow::Result<Outcome> {
    let folder = match options.settle_snapshots() {
        Ok(folder) => folder,
        Err(unreadable) => return Ok(talk.unreadable(unreadable)),
    };
    let text = disk::read_text(&args.from, DUMP_LIMIT)?;
    let name = match args.from.to_str() {
        Some("-") => "the standard input".to_owned(),
        _ => format!("`{}`", input::name(&args.from)),
    };
    if text.trim().is_empty() {
        bail!("{name} is empty; did the command that lists the nodes fail?");
    }
    let snapshot = dump::snapshot(args.cluster.clone(), &text).map_err(|error| {
        anyhow::anyhow!(
            "{name} makes no snapshot: {}",
            escaped(&error.to_string(), 400)
        )
    })?;
    drop(text);
    let json = snapshot.to_json()?;
    if SIZE_LIMIT < json.len() as u64 {
        bail!(
            "the snapshot would have {} bytes, more than the {SIZE_LIMIT} that are read back",
            json.len()
        );
    }
    let path = folder.join(format!("{}.json", args.cluster));
    let written = disk::write_file(&path, json.as_bytes())?;
    let nodes = described(&snapshot.nodes);
    let done = if written { "written" } else { "unchanged" };
    talk.line(&format!("{}: {nodes}, {done}", input::name(&path)));
    Ok(Outcome::Clean)
}

/// Says how many nodes there are, and what is odd about them.
fn described(nodes: &[Node]) -> String {
    let total = match nodes.len() {
        1 => "1 node".to_owned(),
        total => format!("{total} nodes"),
    };
    let stale = nodes.iter().filter(|node| node.stale).count();
    let has_key = |node: &Node| node.annotations.contains_key(annotation::KEY);
    if !nodes.iter().any(has_key) {
        return format!("{total}, none with a key of Kilo's (does Kilo run there?)");
    }
    match stale {
        0 => total,
        stale => format!("{total}, {stale} of them stale"),
    }
}

fn cluster(text: &str) -> Result<ClusterName, String> {
    text.parse()
        .map_err(|error| format!("{} is no cluster name: {error}", Quoted(text)))
}
