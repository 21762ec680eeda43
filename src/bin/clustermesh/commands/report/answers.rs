//! The results of the other commands, of which the page is made.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;

use clustermesh::capacity::Cost;
use clustermesh::diagnostic::escaped;
use clustermesh::graph::{GraphInputs, GraphLevel, MeshGraph};
use clustermesh::html_report::{HtmlPage, MeshResults, NoResult, page};
use clustermesh::outage::OutageProof;
use clustermesh::proof::reach::Reach;
use clustermesh::report::origin::ResultOrigin;
use clustermesh::results::findings::Report;
use clustermesh::results::findings::json::{WrittenFinding, findings};
use clustermesh::results::outage::json::WrittenOutage;
use clustermesh::results::outage::{LossProof, TriedLosses};
use clustermesh::results::trace::TraceResult;
use clustermesh::results::trace::tracer::Tracer;
use clustermesh::results::verify::Verified;
use clustermesh::results::verify::json::{WrittenFailure, WrittenVerification, written};
use clustermesh::results::{diff, outage};

use crate::cluster_peers::{self, Dumps, Gathered};
use crate::commands::diff::VersionComparison;
use crate::commands::verify::{self, ProofInputs, VerifyArgs, expectations};
use crate::commands::{capacity, validate};
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs};
use crate::origin;
use crate::output::Printer;
use crate::proving::WantedPeers;
use crate::settings::FileOptions;
use crate::tree_comparison::TreeComparison;

/// The most packets that are followed.
const PACKETS: usize = 200;

/// The longest reason of a failure that is shown, in characters.
const SHOWN: usize = 4000;

/// Runs the commands with the same files, and returns the page.
///
/// # Errors
/// There is no mesh.
pub(super) fn gather(
    files: &FileOptions,
    against: Option<&OsStr>,
    printer: &Printer,
) -> CommandResult<HtmlPage> {
    let progress = printer.progress("Validating the mesh");
    let mut origin = ResultOrigin::default();
    let (CheckedMesh { findings, capacity, rendered }, read) = match inputs::gather(files) {
        Ok(inputs) => {
            origin = origin::of(&inputs, against);
            (check(&inputs)?, read(inputs).map_err(refusal))
        }
        Err(failure) => {
            let mistakes = failure.into_mistakes()?;
            let found = findings(&Report::new(&mistakes.files, &mistakes.findings));
            let refusal = NoResult::from(found.clone());
            let capacity = Err(refusal.clone());
            (CheckedMesh { findings: found, capacity, rendered: None }, Err(refusal))
        }
    };
    drop(progress);
    let _progress = printer.progress("Verifying the mesh");
    // The process ends after this, and to free the nodes of a large fleet takes a twentieth of a run.
    let read = ManuallyDrop::new(read);
    let proofs = read.as_ref().map_err(Clone::clone);
    let proofs =
        proofs.and_then(|(read, refused)| prove(read, rendered, refused.as_ref()).map_err(refusal));
    let (verification, outage, graph, traces) = match proofs {
        Ok(Proofs { verification, outage, graph, traces }) => {
            (verification, Some(outage), Ok(graph), traces)
        }
        Err(refusal) => (Err(refusal.clone()), None, Err(refusal), Vec::new()),
    };
    let comparison = against.map(|it| VersionComparison::against(it, files).map_err(refusal));
    let compared = comparison.as_ref().map(|it| it.as_ref().map(VersionComparison::compared));
    let results = MeshResults {
        origin,
        findings,
        verification,
        outage,
        capacity,
        graph,
        difference: compared
            .as_ref()
            .map(|it| it.as_ref().map(diff::json::written).map_err(|it| (*it).clone())),
        traces,
    };
    Ok(page(&results)?)
}

/// The results that take no proof.
struct CheckedMesh {
    findings: Vec<WrittenFinding>,
    /// The loads of the clusters, if there is a plan.
    capacity: Result<Vec<Cost>, NoResult>,
    /// The rendered tree beside the plan, if there is one.
    rendered: Option<TreeComparison>,
}

fn check(inputs: &Inputs) -> CommandResult<CheckedMesh> {
    let checked = validate::check(inputs)?;
    let found = findings(&Report::new(&inputs.files, &checked.findings));
    let planned = checked.planned.as_ref().zip(checked.rendered.as_ref());
    let costs = planned.map(|(planned, rendered)| {
        capacity::costs(&capacity::ledger(planned, rendered, &inputs.settings))
    });
    let capacity = costs.ok_or_else(|| found.clone().into());
    Ok(CheckedMesh { findings: found, capacity, rendered: checked.rendered })
}

/// Reads what the proofs need. Without the expectations, everything else is still proved.
fn read(inputs: Inputs) -> CommandResult<(ProofInputs, Option<NoResult>)> {
    let Gathered { mut inputs, grave } = cluster_peers::provable(inputs)?;
    let ((expectations, mistakes), refused) = match expectations::read(&mut inputs, None) {
        Ok(read) => (read, None),
        Err(failure) => (Default::default(), Some(refusal(failure))),
    };
    let applied = cluster_peers::read(&mut inputs, Some(&Dumps::default()))?;
    Ok((ProofInputs { inputs, grave, expectations, mistakes, applied }, refused))
}

/// The results of the proofs.
struct Proofs<'r> {
    verification: Result<WrittenVerification, NoResult>,
    outage: WrittenOutage,
    graph: MeshGraph,
    traces: Vec<Option<TraceResult<'r>>>,
}

fn prove<'r>(
    read: &'r ProofInputs,
    rendered: Option<TreeComparison>,
    refused: Option<&NoResult>,
) -> CommandResult<Proofs<'r>> {
    let wanted = WantedPeers::plan(&read.inputs, &Dumps::default(), &read.applied, rendered)?;
    verify::prove(&VerifyArgs::default(), read, &wanted, |verified, reach| {
        proofs(read, &wanted, verified, reach, refused)
    })?
}

/// Returns what one proof shows.
fn proofs<'r>(
    read: &'r ProofInputs,
    wanted: &WantedPeers,
    verified: &Verified,
    reach: &Reach,
    refused: Option<&NoResult>,
) -> CommandResult<Proofs<'r>> {
    let inputs = &read.inputs;
    let Verified { fabric, verification, .. } = *verified;
    let verified = match refused {
        Some(refused) => Err(refused.clone()),
        None => Ok(written(verified)?),
    };
    let proof = OutageProof::new(reach, inputs.asked(), inputs.settings.ceilings.most_steps());
    let tried = TriedLosses::Single(proof.survey());
    let total = verification.total();
    let outage = LossProof { basis: String::new(), fabric, total, tried: &tried };
    let graph = GraphInputs {
        meshes: &inputs.meshes,
        fleet: &wanted.fleet,
        plan: wanted.plan.as_ref(),
        fabric,
        verification,
    };
    let graph = graph.graph().shown(&BTreeSet::new(), Some(GraphLevel::Nodes));
    let mut tracer = Tracer::new(&inputs.files, &inputs.meshes, fabric, None);
    let failures = verified.iter().flat_map(|it| &it.failures);
    let packets = failures.take(PACKETS).map(|it| {
        let WrittenFailure { from, source, to, destination, .. } = it;
        let from = format!("{}/{source}", from.cluster);
        tracer.trace(&from, &format!("{to}/{destination}")).ok()
    });
    let followed = packets.collect();
    Ok(Proofs {
        verification: verified,
        outage: outage::json::written(&outage),
        graph,
        traces: followed,
    })
}

/// Returns the reason for which there is no result.
fn refusal(failure: CommandFailure) -> NoResult {
    match failure.into_mistakes() {
        Ok(it) => findings(&Report::new(&it.files, &it.findings)).into(),
        Err(error) => {
            let message = escaped(&format!("{error:#}"), SHOWN);
            NoResult { message, ..NoResult::default() }
        }
    }
}
