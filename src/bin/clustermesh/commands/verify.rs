//! `clustermesh verify`

use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use clap::ValueHint;
use clustermesh::agent::fabric::Fabric;
use clustermesh::expectations::Expectation;
use clustermesh::plan;
use clustermesh::proof::expectation::{self, Check};
use clustermesh::proof::messages;
use clustermesh::proof::reach::Reach;
use clustermesh::proof::verify::{Asked, Excused, Verification, verify_excusing, verify_sound};
use clustermesh::rules::verified::{self, InputGaps};
use clustermesh::rules::{self, Finding, Purpose};

use crate::fabric::{Dumps, Gathered};
use crate::inputs::Inputs;
use crate::output::{CheckedCounts, JoinVerification, Printer, Verified, VerifyFormat};
use crate::settings::CommonOptions;
use crate::threshold::Strict;
use crate::{Outcome, check, clock, fabric};

mod expectations;
mod hostile;
mod joining;

use joining::JoinPlan;

/// Prove that clusters reach each other as the meshes declare
///
/// Computes the routes of Kilo and WireGuard from the snapshots and the Peers, and checks reachability
/// between all ranges of all clusters, for every address. A link between two clusters declares that
/// their pods reach each other, and the services and other ranges of the other cluster. Nodes are
/// included where their internal addresses are declared.
///
/// Fails if a declared path does not work, if traffic reaches a cluster without a link, or if one of
/// your expectations is not met. If clusters are joining, the result with them follows; it does not
/// affect the exit code. Sends nothing and writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: VerifyFormat,

    #[command(flatten)]
    strict: Strict,

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

    #[command(flatten)]
    dumps: Dumps,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh verify
  clustermesh verify --output json | jq '.pairings[] | select(.linked)'
  clustermesh verify --output sarif > verify.sarif
  clustermesh verify --assume-hostile west
  clustermesh verify --peers west=<(kubectl --context west get peers -o yaml)";

/// The results of a proof of the Peers of all clusters.
struct Proof<'e> {
    verification: Verification,
    /// The results of the expectations.
    checks: Vec<Check<'e>>,
    /// The results of both.
    findings: Vec<Finding>,
}

impl<'e> Proof<'e> {
    /// Proves it; nodes' claims are asked for only if a declared path does not work.
    fn new(
        fabric: &Fabric,
        asked: Asked,
        expectations: &'e [Expectation],
        gaps: InputGaps,
        excused: impl FnOnce() -> anyhow::Result<Excused>,
    ) -> anyhow::Result<Self> {
        let reach = Reach::new(fabric);
        let verification = match verify_sound(&reach, asked) {
            Some(verification) => verification,
            None => verify_excusing(&reach, asked, &excused()?),
        };
        let checks = expectation::check(&reach, expectations);
        let mut findings = verified::findings(fabric, &verification, gaps);
        let of_checks = checks.iter();
        findings.extend(of_checks.flat_map(|it| messages::expectation::findings(fabric, it)));
        Ok(Self {
            verification,
            checks,
            findings,
        })
    }
}

pub(crate) fn run(
    args: &VerifyArgs,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let Gathered { mut inputs, grave } = match fabric::gather(&args.common.files) {
        Ok(gathered) => gathered,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    let given = args.expectations.as_ref();
    let (expectations, mistakes) = match expectations::read(&mut inputs, given) {
        Ok(read) => read,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    let applied = match fabric::read(&mut inputs, Some(&args.dumps)) {
        Ok(applied) => applied,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    // The process ends after this, and to free the nodes of a large fleet takes a twentieth of a run.
    let inputs = ManuallyDrop::new(inputs);
    let fabric = applied.fabric(&inputs);
    let clusters = fabric.sites.len();
    let progress = printer.progress(format!("Verifying {clusters} clusters"));
    let accepted = &inputs.settings.config.content.accepted;
    let asked = Asked {
        meshes: &inputs.meshes,
        accepted,
        lists_undeclared: args.undeclared,
    };
    let missing = check::missing(&inputs);
    let gaps = InputGaps {
        mistakes: &grave,
        missing: &missing,
    };
    // Finding the responsible claims takes a plan, which a mesh that holds does not need.
    let proof = Proof::new(&fabric, asked, &expectations, gaps, || excused(&inputs))?;
    let hostiles = hostile::read(&inputs, &fabric, &args.assume_hostile)?;
    let planned = JoinPlan::plan(&inputs)?;
    let joined = planned
        .joined
        .as_ref()
        .map(|it| (it, it.applied.fabric(&inputs)));
    let joined = joined
        .as_ref()
        .map(|(joined, fabric)| {
            let asked = Asked {
                meshes: &joined.meshes,
                accepted,
                lists_undeclared: false,
            };
            let proof = Proof::new(fabric, asked, &expectations, gaps, || {
                Ok(joined.excused.clone())
            })?;
            Ok::<_, anyhow::Error>((fabric, proof))
        })
        .transpose()?;
    let levels = &inputs.settings.config.levels;
    let in_force = |findings| levels.apply(findings, clock::today(), Purpose::Validate);
    let new = joined.as_ref().map_or_else(Vec::new, |(_, it)| {
        in_force(joining::new_findings(&proof.findings, &it.findings))
    });
    let focus = planned.sites(&fabric);
    let outlook = JoinVerification {
        joiners: &planned.joiners,
        waiting: &planned.waiting,
        verified: joined.as_ref().map(|(fabric, proof)| Verified {
            fabric,
            files: &inputs.files,
            verification: &proof.verification,
            unchecked: 0,
            checks: &proof.checks,
            hostiles: &[],
            findings: &new,
            focus: Some(&focus),
            joining: None,
        }),
    };
    let mut findings = grave;
    // No path from or to these clusters was checked.
    findings.extend(check::missing_snapshots(&inputs, &missing));
    findings.extend(mistakes);
    findings.extend(applied.findings.iter().cloned());
    findings.extend(proof.findings);
    findings.extend(
        hostiles
            .iter()
            .flat_map(|it| messages::hostile::findings(&fabric, it)),
    );
    let findings = in_force(findings);
    let verified = Verified {
        fabric: &fabric,
        files: &inputs.files,
        verification: &proof.verification,
        unchecked: missing.len(),
        checks: &proof.checks,
        hostiles: &hostiles,
        findings: &findings,
        focus: None,
        joining: Some(&outlook),
    };
    drop(progress);
    report(args.output, &verified, printer, result)?;
    Ok(args.strict.threshold().outcome(&findings))
}

/// Plans the mesh, and returns what that leaves out for nodes' claims; nothing where it cannot be
/// planned.
fn excused(inputs: &Inputs) -> anyhow::Result<Excused> {
    if !inputs.is_whole {
        return Ok(Excused::default());
    }
    let (fleet, missing) = check::fleet(inputs);
    if !missing.is_empty() {
        return Ok(Excused::default());
    }
    Ok(rules::excused(&fleet, &plan::plan(&fleet)?))
}

/// Prints what came of it.
fn report(
    format: VerifyFormat,
    verified: &Verified,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<()> {
    let text = verified.text(format)?;
    if format == VerifyFormat::Human {
        printer.result(result, &text)?;
        let checked = CheckedCounts::fabric(verified.fabric);
        printer.counts(verified.findings, Some(&checked));
    } else {
        crate::print(result, &text)?;
    }
    if format == VerifyFormat::Github {
        printer.summarize(&verified.report());
    }
    Ok(())
}
