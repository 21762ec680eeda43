//! `clustermesh verify`

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::ValueHint;
use clustermesh::agent::fabric::{Fabric, NodeRef, SiteId};
use clustermesh::expectations::Expectations;
use clustermesh::fleet::{Fleet, Member, MissingSnapshot};
use clustermesh::kilo::id::NodeId;
use clustermesh::membership::causing_nodes;
use clustermesh::mirror::Mirrors;
use clustermesh::proof::excused::Excused;
use clustermesh::proof::expectation::{self, Check, LeftOut};
use clustermesh::proof::messages;
use clustermesh::proof::reach::Reach;
use clustermesh::proof::verify::{Asked, Verification};
use clustermesh::results::verify::{JoinVerification, Verified};
use clustermesh::rules::rendered::PlannedFleet;
use clustermesh::rules::verified::{self, InputGaps};
use clustermesh::rules::{self, Finding, LevelledFindings};
use clustermesh::{manifest, mesh, outage};

use crate::cluster_peers::{ClusterPeers, Dumps, Gathered, KnownContents, basis};
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::{CheckedCounts, Printer, ReportFormat};
use crate::proving::{self, WantedPeers, look_with};
use crate::settings::FileOptions;
use crate::threshold::FailOn;
use crate::{checked_plan, clock, cluster_peers, input_file};

pub(crate) mod expectations;
mod held_back;
mod hostile;
mod joining;
mod services;

use joining::JoinPlan;

/// Prove that clusters reach each other as the meshes declare
///
/// Computes the routes of Kilo and WireGuard from the snapshots and the Peers, and checks reachability
/// between all ranges of all clusters, for every address. If a mesh links two clusters, their pods must reach
/// each other, and also the services and other declared ranges of the other cluster. Nodes are checked if
/// their internal addresses are declared.
///
/// Fails if a declared path does not work, if traffic reaches a cluster without a link, or if one of your
/// expectations is not met. If clusters are joining, it also prints the result with them, which does not
/// affect the exit code. Sends nothing and writes nothing.
#[derive(Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output: ReportFormat,

    #[command(flatten)]
    fail_on: FailOn,

    /// File with reachability expectations [default: expectations.yaml]
    ///
    /// Expectations declare paths that must work, or must not, in addition to the links of the mesh.
    /// The default is the file that the config names, or `expectations.yaml` in the folder of the config.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    expectations: Option<PathBuf>,

    /// Report what an attacker with root in this cluster could do; repeatable
    ///
    /// Lists where such a cluster could send packets, and which packets it could capture. Fails if that
    /// is more than the cluster declares.
    #[arg(long, value_name = "CLUSTER")]
    assume_hostile: Vec<String>,

    /// List the paths that work but are not declared, by range
    #[arg(long)]
    undeclared: bool,

    /// Only list clusters whose snapshots changed since this commit and cause errors
    ///
    /// Prints one cluster per line. Checks what `render` would write now, and compares with the snapshots of
    /// the commit. A job that refreshes snapshots restores the old ones of these clusters, so that they do not
    /// hold back the others. The reasons go to standard error as warnings, and the exit code is 0.
    #[arg(long, value_name = "REV", conflicts_with_all = ["output", "expectations", "assume_hostile", "undeclared"])]
    held_back: Option<String>,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh verify
  clustermesh verify --output json | jq '.pairings[] | select(.linked)'
  clustermesh verify --output sarif > verify.sarif
  clustermesh verify --fail-on warning
  clustermesh verify --assume-hostile west
  clustermesh verify --peers west=<(kubectl --context west get peers -o yaml)";

/// Everything that is read for a proof.
pub(crate) struct ProofInputs {
    pub(crate) inputs: Inputs,
    /// Problems that are so severe that every proof must report them.
    pub(crate) grave: Vec<Finding>,
    pub(crate) expectations: Expectations,
    /// The mistakes in the file of the expectations.
    pub(crate) mistakes: Vec<Finding>,
    pub(crate) applied: ClusterPeers,
}

/// The results of a proof of the Peers of all clusters.
struct Proof<'e> {
    verification: Verification,
    /// The results of the expectations.
    checks: Vec<Check<'e>>,
    /// The results of both.
    findings: Vec<Finding>,
}

/// The nodes and ranges that the plan of a proof leaves out because of claims of nodes.
struct LeftOutByPlan<'p, 'f, F> {
    fabric: &'p Fabric<'f>,
    planned: Option<PlannedFleet<'p>>,
    excused: LazyLock<Excused, F>,
}

/// The paths to prove with the Peers of all clusters.
#[derive(Clone, Copy)]
struct ProofRequest<'p, 'e> {
    asked: Asked<'p>,
    expectations: &'e Expectations,
    gaps: InputGaps<'p>,
    /// The largest number of steps of the proof of a loss.
    most: u64,
}

impl<'e> Proof<'e> {
    /// Proves it; nodes' claims are asked for only if a declared path does not work.
    fn new(
        reach: &Reach,
        request: ProofRequest<'_, 'e>,
        excused: impl FnOnce() -> Excused + Send,
    ) -> Self {
        let ProofRequest { asked, expectations, gaps, most } = request;
        let fabric = reach.fabric;
        let (today, denied) = (clock::today(), expectations.denied.as_ref());
        let allowed = denied.map(|it| it.allowed(&expectations.expectations, today));
        let asked = Asked { allowed: allowed.as_deref(), ..asked };
        let left_out =
            LeftOutByPlan { fabric, planned: gaps.planned, excused: LazyLock::new(excused) };
        let verification = proving::verified(reach, asked, || left_out.excused.clone());
        let mut checks = expectation::check(reach, &expectations.expectations, &left_out);
        outage::survive(reach, &mut checks, most);
        let mut findings = verified::findings(fabric, &verification, gaps);
        let of_checks = checks.iter();
        findings.extend(
            of_checks.flat_map(|it| messages::expectation::findings(fabric, asked.meshes, it)),
        );
        let of_denied = denied.into_iter();
        let of_denied = of_denied.flat_map(|it| {
            messages::denied::findings(fabric, asked.meshes, (it, today), &verification)
        });
        findings.extend(of_denied);
        gaps.explain_unchecked(asked.meshes, &mut findings);
        Self { verification, checks, findings }
    }
}

impl<F: FnOnce() -> Excused + Send> LeftOut for LeftOutByPlan<'_, '_, F> {
    fn has_node(&self, at: NodeRef) -> bool {
        self.planned.is_some_and(|it| is_left_out(it.fleet, self.fabric, at))
    }

    fn causing(&self, site: SiteId, others: &[NodeId]) -> usize {
        let nodes = &self.fabric.site(site).model.topology.nodes;
        let causing = self.members(site).map(|Member { membership, cluster, .. }| {
            let excluded = membership.excluded.iter().map(|it| (&*it.node, Some(&it.reason)));
            let others = others.iter().map(|it| (&*nodes[*it].kilo.name, None));
            causing_nodes(cluster.granularity, excluded.chain(others))
        });
        causing.max().unwrap_or(others.len())
    }

    fn excused(&self) -> Option<&Excused> {
        Some(&self.excused)
    }
}

impl<F> LeftOutByPlan<'_, '_, F> {
    /// Returns the memberships of a cluster; none without a plan.
    fn members(&self, site: SiteId) -> impl Iterator<Item = &Member<'_>> {
        let planned = self.planned.into_iter();
        planned.flat_map(move |it| it.fleet.memberships(self.fabric.site(site).cluster))
    }
}

/// Returns whether every mesh of a cluster leaves a node out.
pub(crate) fn is_left_out(fleet: &Fleet, fabric: &Fabric, at: NodeRef) -> bool {
    let site = fabric.site(at.site);
    let name = site.node(at.node).kilo.name.as_str();
    let mut members = fleet.memberships(site.cluster).peekable();
    members.peek().is_some() && members.all(|it| !it.membership.usable.contains(name))
}

impl ProofInputs {
    /// Returns the paths to prove.
    fn request<'p>(&'p self, gaps: InputGaps<'p>, lists_undeclared: bool) -> ProofRequest<'p, 'p> {
        ProofRequest {
            asked: Asked { lists_undeclared, ..self.inputs.asked() },
            expectations: &self.expectations,
            gaps,
            most: self.inputs.settings.ceilings.most_steps(),
        }
    }

    /// Returns the problems of what was read beside the Peers, given the clusters without a snapshot: no path from or to
    /// these is checked.
    fn findings(&self, missing: &[MissingSnapshot]) -> Vec<Finding> {
        let read = [&self.grave, &self.mistakes];
        let missing = checked_plan::missing_snapshots(&self.inputs, missing);
        read.into_iter().flatten().cloned().chain(missing).collect()
    }
}

pub(crate) fn run(args: &VerifyArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let gathered = cluster_peers::gather(files)?;
    if let Some(revision) = &args.held_back {
        return held_back::list(args, files, revision, gathered.inputs, printer);
    }
    // The process ends after this, and to free the nodes of a large fleet takes a twentieth of a run.
    let read = ManuallyDrop::new(read(args, gathered)?);
    verify(args, &read, printer)
}

/// Reads the expectations and the Peers.
fn read(args: &VerifyArgs, gathered: Gathered) -> CommandResult<ProofInputs> {
    let Gathered { mut inputs, grave } = gathered;
    let given = args.expectations.as_ref();
    let (expectations, mistakes) = expectations::read(&mut inputs, given)?;
    let applied = cluster_peers::read(&mut inputs, Some(&args.dumps))?;
    Ok(ProofInputs { inputs, grave, expectations, mistakes, applied })
}

/// Proves what was read, and prints the result.
fn verify(args: &VerifyArgs, read: &ProofInputs, printer: &mut Printer) -> CommandResult {
    let wanted = WantedPeers::plan(&read.inputs, &args.dumps, &read.applied, None)?;
    let wanted = ManuallyDrop::new(wanted);
    let clusters = wanted.fleet.clusters().chain(wanted.fleet.externals()).count();
    let progress = printer.progress(format!("Verifying {clusters} clusters"));
    prove(args, read, &wanted, |verified, _| {
        drop(progress);
        let report = verified.report();
        match args.output.of_table() {
            Some(format) => printer.finish(verified, format)?,
            None => printer.print(&args.output.text(&report)?)?,
        }
        match args.output {
            ReportFormat::Human => {
                printer.counts(verified.findings, Some(&CheckedCounts::fabric(verified.fabric)));
                if let Some(counts) = verified.joining.and_then(JoinVerification::counts) {
                    printer.line(&counts);
                }
            }
            ReportFormat::Github => printer.summarize(&report),
            _ => {}
        }
        Ok(args.fail_on.threshold().outcome(verified.findings))
    })?
}

/// Returns what a proof finds in the Peers that `render` would write, also about Services that clusters get and about clusters
/// that are assumed to be hostile.
fn of_plan(
    inputs: &Inputs,
    expectations: &Expectations,
    gaps: InputGaps,
    mirrors: &Mirrors,
    hostiles: &[String],
) -> CommandResult<Vec<Finding>> {
    let Some(PlannedFleet { fleet, plan }) = gaps.planned else {
        return Ok(Vec::new());
    };
    let settings = &inputs.settings;
    let (texts, known) = (manifest::texts(plan), KnownContents::default());
    let applied = ClusterPeers::planned(settings, plan, &texts, &known);
    let fabric = applied.fabric_of(inputs, Some(fleet), None);
    let most = settings.ceilings.most_steps();
    let request = ProofRequest { asked: inputs.asked(), expectations, gaps, most };
    let reach = look_with(&fabric, expectations, settings.ceilings)?;
    let mut findings = Proof::new(&reach, request, || rules::excused(fleet, plan)).findings;
    findings.extend(services::prove(&reach, mirrors, &mirrors.paths()).1);
    let hostiles = hostile::read(inputs, &fabric, hostiles)?;
    findings.extend(hostiles.iter().flat_map(|it| messages::hostile::findings(&fabric, it)));
    Ok(findings)
}

/// Returns all findings of a proof with their levels, given those about the Peers, and those that there also are with the Peers
/// that `render` would write.
fn levelled(
    read: &ProofInputs,
    wanted: &WantedPeers,
    missing: &[MissingSnapshot],
    mut of_peers: Vec<Finding>,
    lasting: impl FnOnce() -> Option<Vec<Finding>>,
) -> LevelledFindings {
    let mut outdated = wanted.outdated.clone();
    if let Some(outdated) = outdated.as_mut().filter(|_| !of_peers.is_empty())
        && let Some(lasting) = lasting()
    {
        outdated.explain(&mut of_peers, &lasting);
    }
    let mut found = read.findings(missing);
    found.extend(wanted.of_nodes(&read.inputs));
    found.extend(of_peers);
    // An old tree explains everything else, so it comes first, however severe the rest is.
    let outdated = outdated.into_iter().map(|it| it.finding).collect();
    let parts = [outdated, found].map(|it| read.inputs.settings.in_force(it));
    LevelledFindings::from_iter(parts)
}

/// Proves what was read, and hands the result on, with what the proof looked at.
pub(crate) fn prove<T>(
    args: &VerifyArgs,
    read: &ProofInputs,
    wanted: &WantedPeers,
    then: impl FnOnce(&Verified, &Reach) -> T,
) -> CommandResult<T> {
    let inputs = &read.inputs;
    let fabric = read.applied.fabric_of(inputs, Some(&wanted.fleet), None);
    let fabric = &*ManuallyDrop::new(wanted.delivered(fabric));
    let reach = look_with(fabric, &read.expectations, inputs.settings.ceilings)?;
    let missing = checked_plan::missing(inputs);
    let are_silenced = verified::silenced(&wanted.fleet, wanted.plan.as_ref());
    let (planned, config) = (wanted.planned(), &inputs.settings.config.content);
    let (mistakes, missing) = (&read.grave, &missing);
    let broken = &inputs.broken_entries();
    let gaps = InputGaps { mistakes, broken, missing, are_silenced, planned, config };
    let request = read.request(gaps, args.undeclared);
    let proof = Proof::new(&reach, request, || wanted.excused());
    let mirrors = wanted.mirrors(inputs);
    let service_paths = mirrors.paths();
    let (services, of_services) = services::prove(&reach, &mirrors, &service_paths);
    let hostiles = hostile::read(inputs, fabric, &args.assume_hostile)?;
    let joining = JoinPlan::plan(inputs)?;
    let threshold = args.fail_on.threshold();
    let joined = joining.prove(read, gaps, &proof)?;
    let outlook = joining.outlook(inputs, joined.as_ref(), threshold);
    let of_hostiles = hostiles.iter().flat_map(|it| messages::hostile::findings(fabric, it));
    let of_hostiles = of_hostiles.collect();
    let of_peers = [&read.applied.findings, &proof.findings, &of_services, &of_hostiles];
    let of_peers = of_peers.map(Vec::as_slice).concat();
    let lasting = || of_plan(inputs, &read.expectations, gaps, &mirrors, &args.assume_hostile).ok();
    let findings = levelled(read, wanted, missing, of_peers, lasting);
    let folder = input_file::name(&inputs.settings.rendered.value);
    let verified = Verified {
        basis: basis(inputs, &args.dumps),
        fabric,
        files: &inputs.files,
        verification: &proof.verification,
        unchecked: missing.len(),
        broken,
        has_wrong_expectations: !read.mistakes.is_empty(),
        outdated: wanted.outdated.as_ref().map(|_| &*folder),
        checks: &proof.checks,
        services: &services,
        hostiles: &hostiles,
        is_passed: !threshold.fails(&findings),
        findings: &findings,
        refused: inputs.meshes.iter().flat_map(|it| it.refused.all()).collect(),
        focus: None,
        keeping_nodes: mesh::without_node_addresses(&inputs.meshes),
        joining: Some(&outlook),
    };
    Ok(then(&verified, &reach))
}
