//! `clustermesh wireguard`

use std::net::IpAddr;

use anyhow::anyhow;
use clap::{ArgAction, ValueEnum};
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::host_config::{HostConfig, HostOptions};
use clustermesh::mesh::{ExternalPeer, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::report::json::JsonDocument;
use clustermesh::text::{count, listed};

use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, checked_plan, inputs};

/// Print the WireGuard configuration of an external peer
///
/// The configuration has a peer for each segment of each cluster that the external peer reaches, with the same
/// ranges as other clusters get, and no private key. Nothing delivers the configuration to the host: after each change that
/// `diff` lists for the host, print and install it again. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WireguardArgs {
    /// External peer, by its name in the mesh
    #[arg(value_name = "NAME")]
    name: String,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "conf")]
    output: WireguardFormat,

    /// DNS server of the host; repeatable
    #[arg(long, value_name = "ADDRESS", action = ArgAction::Append)]
    dns: Vec<IpAddr>,

    /// Largest packet in bytes
    ///
    /// By default, it is that of the tunnels of its clusters if the mesh declares less than 1420, else that of the system.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..))]
    mtu: Option<u16>,

    /// Seconds between keepalives to each segment; 0 disables them
    ///
    /// The keepalives of the host keep its NAT open. `persistentKeepalive` in the mesh is for the clusters.
    #[arg(long, value_name = "SECONDS", default_value_t = 25, value_parser = clap::value_parser!(u16).range(0..))]
    keepalive: u16,

    /// File on the host with its private key [default: a placeholder]
    #[arg(long, value_name = "PATH", value_parser = key_file)]
    private_key_file: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh wireguard laptop > wg0.conf
  clustermesh wireguard laptop --private-key-file /etc/wireguard/laptop.key --dns 10.43.0.10
  clustermesh wireguard router --output networkd";

/// The format of the configuration.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WireguardFormat {
    /// A file of `wg-quick`
    Conf,
    /// The two files of `systemd-networkd`
    Networkd,
    /// JSON
    Json,
}

/// Returns a path that fits into one line of a configuration.
fn key_file(text: &str) -> Result<String, String> {
    // `wg-quick` cuts every line at `#`.
    if !text.starts_with('/') || text.contains(|it: char| it.is_control() || it == '#') {
        return Err(
            "expected an absolute path on the host, such as /etc/wireguard/laptop.key".to_owned()
        );
    }
    Ok(text.to_owned())
}

pub(crate) fn run(
    args: &WireguardArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let inputs = inputs::gather(files)?;
    let (_, plan) = &checked_plan::right(&inputs)?;
    let bare = args.name.strip_prefix("external.").unwrap_or(&args.name);
    let found = ClusterName::of_external(bare).ok().and_then(|name| {
        let (mesh, external) =
            inputs.meshes.iter().find_map(|it| Some((it, it.external(&name)?)))?;
        let target = plan.externals.iter().find(|it| it.cluster == name)?;
        Some((mesh, external, target))
    });
    let Some((mesh, external, target)) = found else {
        let known = plan.externals.iter().filter_map(|it| it.cluster.external());
        return Err(unknown(&args.name, &known.collect::<Vec<_>>()).into());
    };
    if args.keepalive == 0 && external.endpoint.is_none() {
        return Err(anyhow!(
            "`--keepalive 0` is not possible: {} has no `endpoint` in the mesh, so clusters reach it only while it sends \
             keepalives",
            Quoted(bare)
        )
        .into());
    }
    let options = HostOptions {
        dns: args.dns.iter().map(ToString::to_string).collect(),
        mtu: args.mtu.or_else(|| declared_mtu(mesh, external)),
        keepalive: args.keepalive,
        private_key_file: args.private_key_file.clone(),
    };
    let config = HostConfig::new(&mesh.name, external, plan, target, &options);
    notes(&config, printer);
    match args.output {
        WireguardFormat::Conf => printer.print(&config.wg_quick(&options))?,
        WireguardFormat::Networkd => printer.print(&config.networkd(&options))?,
        WireguardFormat::Json => printer.print(&JsonDocument::of(config).text()?)?,
    }
    Ok(Outcome::Clean)
}

/// Returns the MTU of the smallest tunnel of the clusters of an external peer, if it is smaller than that of most tunnels.
fn declared_mtu(mesh: &Mesh, external: &ExternalPeer) -> Option<u16> {
    const USUAL: u16 = 1420;
    let entries = mesh.entries.iter();
    let entries = entries.filter(|it| external.clusters.contains(&it.name));
    let smallest = entries.filter_map(|it| it.mtu.tunnel()).min();
    smallest.filter(|it| *it < USUAL)
}

/// Prints what the owner of the host has to know beside the configuration.
fn notes(config: &HostConfig, printer: &mut Printer) {
    if 0 < config.left_out() {
        printer.note(&format!(
            "left out {} without an endpoint, because the host has none either; `clustermesh validate` names the clusters",
            count(config.left_out(), "segment")
        ));
    }
    if !config.clusters_without_tunnel().is_empty() {
        printer.note(&format!(
            "no tunnel to {}; run `clustermesh validate` for the reasons",
            listed(config.clusters_without_tunnel())
        ));
    }
    if config.is_without_address() {
        printer.note(
            "no `Address`, because no range is a single address; add one such as `10.200.0.5/32` to `ranges` if the \
             host itself sends or receives packets",
        );
    }
    if config.has_names() {
        printer.note(
            "some endpoints are DNS names: `wg-quick` fails as a whole if the host cannot resolve one of them",
        );
    }
}

fn unknown(name: &str, known: &[&str]) -> anyhow::Error {
    let quoted = Quoted(name);
    if known.is_empty() {
        return anyhow!("{quoted} is not an external peer: no mesh has `externalPeers`");
    }
    match nearest(name, known.iter().copied()) {
        Some(meant) => anyhow!("unknown external peer {quoted}; did you mean {}?", Quoted(meant)),
        None => anyhow!("unknown external peer {quoted}; known: {}", listed(known)),
    }
}
