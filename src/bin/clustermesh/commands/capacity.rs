//! `clustermesh capacity`

use std::mem::ManuallyDrop;

use anyhow::Error;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::capacity::{Cost, Ledger, Outgrowth};
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::joining::Joining;
use clustermesh::mesh::{self, AssumedValue};
use clustermesh::plan::Plan;
use clustermesh::results::capacity::CapacityResult;
use clustermesh::rules::gitops::{self, Fate};
use clustermesh::rules::reach::manifests;
use clustermesh::rules::{Finding, LevelledFindings, Purpose, capacity, rendered};
use clustermesh::text;

use crate::checked_plan::OutputCheck;
use crate::cluster_peers::{DumpedPeers, Dumps};
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs};
use crate::output::{Printer, TableFormat};
use crate::settings::{FileOptions, Settings};
use crate::threshold::FailOn;
use crate::tree_comparison::{self, TreeComparison};
use crate::{Outcome, allowed_losses, checked_plan};

/// Estimate the load on each cluster, and how to reduce it
///
/// Counts the Peers, routes and iptables rules of each cluster, and the seconds that Kilo needs for each
/// change. Checks the limits of Flux, Argo CD and git. If the rendered tree is out of date, estimates how
/// long Kilo will need to apply the difference. Below the table, lists every exceeded limit with
/// remedies. For the given clusters, shows all details. If clusters are joining, it also prints
/// the load with them. Writes nothing.
///
/// With `--peers`, the difference is computed from the Peers in the cluster, including Peers that
/// clustermesh does not manage.
///
/// Set the limits in `limits.capacity` in the config. Each exceeded limit is reported as a warning or a
/// notice, also if its `GRADE` is `error`. `--fail-on warning` or `rules` in the config make it fail.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CapacityArgs {
    /// Clusters to show in detail
    #[arg(value_name = "TARGET", value_parser = NonEmptyStringValueParser::new())]
    targets: Vec<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output: TableFormat,

    /// Compute the load with another value of an entry (repeatable)
    ///
    /// No file is changed. For all clusters, write a quoted star: `--with '*.advertise.podCIDRs=Merged'`.
    #[arg(long, value_name = "CLUSTER.FIELD=VALUE")]
    with: Vec<AssumedValue>,

    #[command(flatten)]
    fail_on: FailOn,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh capacity
  clustermesh capacity east                     all formulas
  clustermesh capacity --with east.advertise.podCIDRs=Merged
                                                the load if this entry had another value
  clustermesh capacity --fail-on warning        in CI: fail if a limit is exceeded
  clustermesh capacity east --peers east=<(kubectl --context east get peers -o yaml)
  clustermesh capacity --output json | jq '.targets[] | select(.grade == \"error\") | .cluster'";

pub(crate) fn run(
    args: &CapacityArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    // The process ends with the command, and everything is freed then.
    let inputs = inputs::gather_assuming(files, &args.with)?;
    let mut inputs = ManuallyDrop::new(inputs);
    // Without a mesh no cluster is known, and the mesh is the problem to report.
    let dumped =
        if inputs.is_unparsable { DumpedPeers::default() } else { args.dumps.read(&mut inputs)? };
    let checked =
        checked_plan::check(&inputs, Purpose::Validate, Some(Fate::Kept), OutputCheck::Unasked)?;
    let checked = ManuallyDrop::new(checked);
    let findings = &checked.findings;
    let planned = checked.planned.as_ref().zip(checked.rendered.as_ref());
    let Some((planned, rendered)) = planned else {
        // Without a plan there is nothing to count, and what keeps it from being made is an error.
        let (findings, outcome) = (findings.clone(), inputs.failure());
        let files = ManuallyDrop::into_inner(inputs).files;
        return Err(CommandFailure::mistakes(files, findings, outcome));
    };
    let plan = &planned.1;
    check_targets(&args.targets, plan)?;
    let of_inputs = inputs.settings.in_force(findings_of(&dumped, plan));
    let limits = &inputs.settings.config.content.limits.capacity;
    let ledger = ledger(planned, rendered, &inputs.settings).with_dumps(&dumped.files);
    let mut costs = costs(&ledger);
    let is_asked =
        |cluster: &str| args.targets.is_empty() || args.targets.iter().any(|it| it == cluster);
    let joining = Joining { meshes: &inputs.meshes, snapshots: &inputs.snapshots };
    let growth = Outgrowth::new(&inputs.meshes, &costs, limits);
    costs.retain(|it| is_asked(&it.cluster));
    let result = CapacityResult {
        with: args.with.iter().map(AssumedValue::to_string).collect(),
        without_node_addresses: mesh::without_node_addresses(&inputs.meshes),
        targets: costs,
        joining: joining.load(&ledger, is_asked).map_err(Error::from)?,
        waiting: joining.waiting(),
        growth,
        is_detailed: !args.targets.is_empty(),
    };
    let unread = gitops::unread(&rendered.on_disk).into_iter().filter(|it| {
        let cluster = it.cluster.as_deref().unwrap_or_default();
        is_asked(cluster) && ledger.is_unread(cluster)
    });
    // A cluster without a load is missing in the result, which no level hides.
    let unread = LevelledFindings::fixed(unread.collect());
    let of_inputs = LevelledFindings::from_iter([of_inputs, unread]);
    printer.finish(&result, args.output)?;
    printer.findings(&inputs.files, &of_inputs);
    remind(printer, &inputs, findings, &args.with);
    let threshold = args.fail_on.threshold();
    let shown = findings.iter().filter(|it| {
        let is_asked = it.cluster.as_deref().is_none_or(is_asked);
        is_asked && capacity::is_about(it.rule)
    });
    let is_grave = threshold.fails(shown.chain(&of_inputs));
    // No rule covers notices, and what is shown as an error is one at any level of its rule.
    let grave = match threshold.0 {
        Severity::Notice => Severity::Notice,
        Severity::Warning | Severity::Error => Severity::Error,
    };
    let is_graded = result.targets.iter().any(|it| it.grade.is_some_and(|it| grave <= it));
    Ok(Outcome::findings_if(is_grave || is_graded))
}

/// Returns what the loads of clusters are counted from.
pub(crate) fn ledger<'a>(
    (fleet, plan): &'a (Fleet<'a>, Plan),
    rendered: &'a TreeComparison,
    settings: &'a Settings,
) -> Ledger<'a> {
    let limits = &settings.config.content.limits.capacity;
    let differing = tree_comparison::differing(rendered, settings);
    Ledger::new(fleet, plan, &rendered.tree, limits).replacing(&rendered.on_disk, &differing)
}

/// Returns the loads of the clusters whose Peers are known.
pub(crate) fn costs(ledger: &Ledger) -> Vec<Cost> {
    let mut costs = ledger.costs();
    costs.retain(|it| !ledger.is_unread(&it.cluster));
    costs
}

/// Returns what is wrong with dumps. Unreadable parts of a dump are not counted either.
fn findings_of(dumped: &DumpedPeers, plan: &Plan) -> Vec<Finding> {
    let unread = dumped.files.iter();
    let unread = unread.flat_map(|(it, files)| manifests(it, files));
    let moved = dumped.files.iter();
    let moved = moved.flat_map(|(it, files)| rendered::take_over(plan, it, files));
    dumped.findings.iter().cloned().chain(unread).chain(moved).collect()
}

/// Fails if a cluster is in no mesh.
fn check_targets(named: &[String], plan: &Plan) -> anyhow::Result<()> {
    let known = || plan.targets.iter().map(|it| it.cluster.as_str());
    let unknown = named.iter().find(|it| !known().any(|known| known == it.as_str()));
    match unknown {
        Some(unknown) => Err(allowed_losses::unknown_target(unknown, plan)),
        None => Ok(()),
    }
}

/// Prints that there is more than this output shows. No other command knows the values that are assumed, so the errors with
/// them are printed.
fn remind(
    printer: &mut Printer,
    inputs: &Inputs,
    findings: &LevelledFindings,
    assumed: &[AssumedValue],
) {
    let mut others = findings.clone();
    others.retain(|it| it.severity == Severity::Error && !capacity::is_about(it.rule));
    if !assumed.is_empty() {
        printer.findings(&inputs.files, &others);
        return;
    }
    let others = others.len();
    if 0 < others {
        printer.note(&format!(
            "`clustermesh validate` lists {}, without which the figures may be others",
            text::count(others, "error")
        ));
    }
}
