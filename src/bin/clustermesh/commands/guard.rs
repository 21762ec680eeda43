//! `clustermesh guard`

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use clap::ArgAction;
use clustermesh::admission::{
    Account, Accounts, Enforcement, Guard, GuardAccess, GuardCost, MOST_COST, MOST_RANGES, PeerForm,
};
use clustermesh::diagnostic::Quoted;
use clustermesh::name::{ClusterName, is_dns_subdomain};
use clustermesh::net::{Cidr, Interface};
use clustermesh::plan::Plan;

use crate::cluster_peers::Dumps;
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, checked_plan, cluster_peers, inputs};

mod update;

/// Print an admission policy for the Peers of a cluster
///
/// The API server of the cluster then refuses other Peers, from every user: ranges that the cluster does not
/// accept of this source, ranges of its own, endpoints that would loop. The policy is a
/// `ValidatingAdmissionPolicy` of Kubernetes 1.31 or newer and needs no other program. It contains no keys or
/// addresses of nodes, so it stays valid when nodes change. Only `--update` writes files.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GuardArgs {
    /// Cluster that the policy is for, by its name in the mesh
    #[arg(value_name = "CLUSTER", required_unless_present = "update")]
    cluster: Option<String>,

    /// Write outdated files in `guards` again, each with its own options
    ///
    /// Prints the commands that apply them. With CLUSTER, it writes only the file of this cluster. Files of clusters that
    /// leave stay as they are.
    #[arg(long, conflicts_with_all = ["writers", "allow_peer", "allow_peer_writers", "warn", "check"])]
    update: bool,

    /// Account that may write Peers: USER or group:NAME; repeatable [default: all]
    ///
    /// A service account is the user `system:serviceaccount:NAMESPACE:NAME`.
    #[arg(long, value_name = "ACCOUNT", action = ArgAction::Append)]
    writers: Vec<Account>,

    /// Peer without our labels, and its ranges, separated by commas; repeatable
    ///
    /// No range can overlap one that this cluster or a linked cluster declares, or be wider than /8 (IPv4) or /16
    /// (IPv6). Needs `--writers` and `--allow-peer-writers`.
    #[arg(
        long,
        value_name = "NAME=RANGES",
        requires_all = ["writers", "allow_peer_writers"],
        action = ArgAction::Append
    )]
    allow_peer: Vec<AllowedPeer>,

    /// Account that may write the Peers of `--allow-peer`; repeatable
    ///
    /// It cannot be one of `--writers`: who changes the repository could then replace the key of such a Peer.
    #[arg(long, value_name = "ACCOUNT", requires = "allow_peer", action = ArgAction::Append)]
    allow_peer_writers: Vec<Account>,

    /// Only warn and write to the audit log, instead of refusing
    #[arg(long)]
    warn: bool,

    /// List the Peers that would be refused, and exit with 1 if there are any
    ///
    /// Checks the Peers that `render` writes, or with `--live` or `--peers` those that the cluster has, with the guard
    /// that these options would print.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  mkdir -p guards && clustermesh guard west --writers ACCOUNT > guards/west.yaml
  clustermesh guard west --check --live            which Peers of west would be refused?
  clustermesh guard west --warn | kubectl --context west apply --server-side -f -
  clustermesh guard west --writers system:serviceaccount:flux-system:clustermesh > guards/west.yaml
  clustermesh guard --update                       after a change of the mesh";

/// A Peer that the owner of the cluster allows.
#[derive(Clone, Debug)]
struct AllowedPeer {
    name: String,
    ranges: Vec<Cidr>,
}

impl FromStr for AllowedPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, ranges) = text.split_once('=').ok_or("expected NAME=RANGES")?;
        if !is_dns_subdomain(name) {
            return Err(format!("{} is not the name of a Peer", Quoted(name)));
        }
        let range = |it: &str| match it.parse::<Interface>() {
            Ok(range) if !range.is_network() => Err(format!(
                "{} has host bits; write `{}` for its network or `{}` for the address",
                Quoted(it),
                range.network,
                Cidr::host(range.address)
            )),
            read => read.map(|it| it.network).map_err(|error| error.to_string()),
        };
        Ok(Self {
            name: name.to_owned(),
            ranges: ranges.split(',').map(range).collect::<Result<_, _>>()?,
        })
    }
}

pub(crate) fn run(args: &GuardArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    if args.dumps.are_any() && !args.check {
        return Err(anyhow!("`--live` and `--peers` work only with `--check`").into());
    }
    let mut inputs = inputs::gather(files)?;
    let clusters = cluster_peers::clusters(&inputs);
    let asked = args.cluster.as_deref();
    let asked = asked.map(|it| cluster_peers::asked(it, &inputs, &clusters)).transpose()?;
    let Some(cluster) = asked.filter(|_| !args.update) else {
        let (_, plan) = &checked_plan::right(&inputs)?;
        return Ok(update::run(asked, &inputs, plan, printer)?);
    };
    let dumped =
        if args.dumps.are_any() { Some(args.dumps.read_one(&mut inputs, cluster)?) } else { None };
    let (_, plan) = &checked_plan::right(&inputs)?;
    let guard = guard(args, cluster, &inputs)?;
    if let Some(dumped) = dumped {
        let files = dumped.files.into_values().flatten();
        let files: Vec<_> = files.collect();
        let peers = files.iter().flat_map(|it| &it.content.peers);
        return Ok(check(&guard, peers.map(PeerForm::applied), printer)?);
    }
    let rendered = plan.peers_of(cluster).map(PeerForm::rendered);
    if args.check {
        return Ok(check(&guard, rendered, printer)?);
    }
    within_limits(&guard, plan)?;
    notes(args, &guard, printer);
    let manifests = guard.manifests().map_err(anyhow::Error::from)?;
    printer.print(&manifests)?;
    Ok(Outcome::Clean)
}

/// Returns the guard that the options ask for.
fn guard(args: &GuardArgs, cluster: &ClusterName, inputs: &Inputs) -> anyhow::Result<Guard> {
    let all = |accounts: &[Account]| accounts.iter().cloned().collect::<Accounts>();
    let writers = (!args.writers.is_empty()).then(|| all(&args.writers));
    let peer_writers = all(&args.allow_peer_writers);
    let shared = writers.as_ref().and_then(|it| it.shared(&peer_writers));
    if let Some(account) = shared {
        bail!(
            "{} cannot be both in `--writers` and in `--allow-peer-writers`: a person who can change the repository \
             could then replace the key of an allowed Peer; give these Peers other writers",
            Quoted(&account)
        );
    }
    let mut peers: BTreeMap<String, Vec<Cidr>> = BTreeMap::new();
    for AllowedPeer { name, ranges } in &args.allow_peer {
        peers.entry(name.clone()).or_default().extend(ranges);
    }
    let access = GuardAccess {
        writers,
        peers,
        peer_writers,
        enforcement: if args.warn { Enforcement::Warn } else { Enforcement::Deny },
    };
    let guard = Guard::new(&inputs.meshes, cluster, access);
    match guard.impossible_peers(&inputs.meshes).pop_first() {
        Some((name, error)) => bail!("`--allow-peer {name}=…` is not possible: {error}"),
        None => Ok(guard),
    }
}

/// Lists the Peers that the guard refuses, each with every rule that it breaks.
fn check<'p>(
    guard: &Guard,
    peers: impl Iterator<Item = PeerForm<'p>>,
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let (mut all, mut refused) = (0, 0);
    let mut lines: Vec<String> = Vec::new();
    for peer in peers {
        let refusals = guard.refusals(&peer);
        all += 1;
        refused += usize::from(!refusals.is_empty());
        lines.extend(refusals.iter().map(|it| format!("{}: {it}\n", peer.name)));
    }
    printer.print(&lines.concat())?;
    printer.line(&format!("{refused} of {all} Peers would be refused in {}", guard.cluster));
    Ok(Outcome::findings_if(0 < refused))
}

/// Fails if a Peer of the cluster costs more than half of what its API server spends on one.
fn within_limits(guard: &Guard, plan: &Plan) -> anyhow::Result<()> {
    for peer in plan.peers_of(&guard.cluster) {
        let name = &peer.name;
        let GuardCost { cost, allowed_ips, ranges } =
            GuardCost::of(guard, &PeerForm::rendered(peer));
        if MOST_RANGES < allowed_ips {
            bail!(
                "Peer {name} has {allowed_ips} allowed IPs, and the policy refuses more than {MOST_RANGES}; in the entry of its \
                 cluster, declare fewer, wider ranges, or `podCIDRs: Merged` under `advertise` if most of them are pod \
                 CIDRs"
            );
        }
        if MOST_COST / 2 < cost {
            bail!(
                "Peer {name} has {allowed_ips} allowed IPs, which the policy compares with {ranges} ranges: a cost of \
                 {cost}, more than half of the {MOST_COST} that an API server spends on a Peer; declare fewer, wider \
                 ranges"
            );
        }
    }
    Ok(())
}

/// Prints what the owner of the cluster should know before applying the policy.
fn notes(args: &GuardArgs, guard: &Guard, printer: &mut Printer) {
    if guard.is_open() {
        printer.note(&format!(
            "the entry of {} has `allowedNetworks`, which does not show its pod ranges, so the policy does not refuse \
             endpoints inside of the cluster",
            guard.cluster
        ));
    }
    if args.writers.is_empty() {
        printer.note(
            "without `--writers`, the policy accepts Peers from every user with the right to write them",
        );
    }
    for user in args.writers.iter().filter_map(Account::person) {
        printer.note(&format!(
            "{} counts as the name of a user; a service account is `system:serviceaccount:NAMESPACE:NAME`",
            Quoted(user)
        ));
    }
    if !args.allow_peer.is_empty() {
        printer.note(
            "a Peer of `--allow-peer` may have no endpoint; until it connects, Kilo does not apply later changes of other Peers",
        );
    }
}
