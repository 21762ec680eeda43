//! `clustermesh diff`

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::mem::{self, ManuallyDrop};

use clap::builder::OsStringValueParser;
use clustermesh::changes::{self, Changes, Delivery, Grade, ServiceChange, Version, WatchedPaths};
use clustermesh::controls::JudgedChange;
use clustermesh::engine::{Engine, Engines};
use clustermesh::fleet::Fleet;
use clustermesh::name::ClusterName;
use clustermesh::plan::Plan;
use clustermesh::results::diff::Compared;
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::{self, LevelledFindings, gitops};

use crate::checked_plan::RenderPlan;
use crate::choice::choice;
use crate::cluster_peers::{ClusterPeers, Dumps};
use crate::failure::{CommandFailure, CommandResult, FileMistakes};
use crate::inputs::{Inputs, KnownSnapshots};
use crate::output::{DiffFormat, Printer, TableFormat, terminal};
use crate::settings::FileOptions;
use crate::{
    Outcome, applications, checked_plan, cluster_peers, guard_files, inputs, tree_comparison,
};

mod before;
mod controls;
mod losses;
mod new_paths;

use before::{Against, Before};
use controls::BothControls;
use new_paths::NamedPaths;

/// Show what a change does to the network
///
/// Compares the Peers that `render` would write now with those of a git commit. Lists what causes each
/// difference, which Peers change in each cluster, and a grade of how severe that is for traffic.
/// Contacts no cluster without `--live`, and writes nothing.
#[derive(Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    /// Compare with a commit or a rendered folder [default: HEAD]
    ///
    /// REV is a commit, branch or tag. `main...` is the commit at which the current branch left `main`.
    /// A rendered folder, `--peers` and `--live` have no mesh and no snapshots, so no causes are listed.
    /// `none` compares with nothing: use it if nothing of this mesh was applied yet.
    #[arg(long, value_name = "REV|DIR|none", value_parser = OsStringValueParser::new())]
    against: Option<OsString>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: DiffFormat,

    /// Lowest grade that makes the exit code 1
    #[arg(long, value_name = "GRADE")]
    fail_on: Option<NamedGrade>,

    /// Do not count a pause of traffic that only missing annotations cause
    ///
    /// A change that is `brief` for no other reason counts as `additive` or `cleanup` for `--fail-on`.
    #[arg(long, requires = "fail_on")]
    allow_pause: bool,

    /// Exit with 1 also if a cluster has lost too many nodes
    ///
    /// Compares the nodes of both versions by the limits of `clustermesh snapshot` (`limits` in the config). A cluster that
    /// is not in this commit must not lose any node since `HEAD`. Jobs that merge compare with the day before.
    #[arg(long)]
    check_losses: bool,

    /// Exit with 1 also if a path opens between clusters or groups; repeatable
    ///
    /// A group has its members of both versions. A path counts if it was closed before, and is open after the change or
    /// during its rollout.
    #[arg(long, value_name = "FROM:TO")]
    fail_on_new_path: Vec<NamedPaths>,

    /// Exit with 1 also if controls of the commit refuse it, or one is weaker
    #[arg(long)]
    fail_on_weaker: bool,

    /// Tool that applies the Peers [default: assume the worse of both]
    #[arg(long, value_name = "TOOL")]
    applied_by: Option<NamedEngine>,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh diff                                  what is not committed yet
  clustermesh diff --against main... --fail-on brief
  clustermesh diff --peers west=<(kubectl --context west get peers -o yaml)";

choice! {
    /// A grade of changes.
    enum NamedGrade of Grade {
        /// Paths are only gained, and nothing that works is disturbed
        Additive,
        /// Only paths to nodes or addresses that no longer exist are removed, and nothing that works is disturbed
        Cleanup,
        /// Requests in changed clusters may get no answer for at most 30 seconds; nodes behind NAT that send nothing may be
        /// unreachable for up to 205 seconds
        Brief,
        /// A path is lost or unproved, or interrupted for longer
        Disruptive,
        /// A cluster loses all of its Peers, or all Peers of another one
        Destructive,
    }
}

choice! {
    /// A tool that applies Peers.
    enum NamedEngine of Engine {
        /// Applies, then deletes
        Flux,
        /// Deletes while it applies, or before it if the Application has `PrunePropagationPolicy=background`
        #[value(name = "argocd")]
        ArgoCd,
    }
}

pub(crate) fn run(args: &DiffArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    // Exit code 1 is for differences only.
    diff(args, files, printer)
        .map_err(|failure| failure.map(|it| FileMistakes { outcome: Outcome::Unreadable, ..it }))
}

fn diff(args: &DiffArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let comparison = match VersionComparison::new(args, files)? {
        Ok(comparison) => comparison,
        Err(failure) => return unread(failure, args, printer),
    };
    let VersionComparison { inputs, before, changes, findings, .. } = &comparison;
    if args.output != DiffFormat::Github {
        printer.findings(&inputs.files, findings);
    }
    let compared = comparison.compared();
    match args.output {
        DiffFormat::Human => printer.finish(&compared, TableFormat::Human)?,
        DiffFormat::Markdown => printer.finish(&compared, TableFormat::Markdown)?,
        DiffFormat::Json => printer.finish(&compared, TableFormat::Json)?,
        DiffFormat::Github => {
            printer.print(&compared.github(terminal::stdout(), args.fail_on_weaker))?;
            printer.summarize_differences(&compared);
        }
    }
    // Behind a long result, where a person sees them.
    for note in &before.notes {
        printer.note(note);
    }
    let is_grave = args.check_losses && changes.grade() == Grade::Destructive;
    let is_weaker = args.fail_on_weaker && compared.judged.is_some_and(JudgedChange::is_weaker);
    let is_refused = is_grave || is_weaker || !findings.is_empty() || fails(args, changes);
    Ok(Outcome::findings_if(is_refused))
}

/// Reports why the old version cannot be read. For `--fail-on-weaker`, its controls count as weaker then, so that the
/// commit that repairs them can land.
fn unread(failure: CommandFailure, args: &DiffArgs, printer: &mut Printer) -> CommandResult {
    let failure = failure.map(|it| FileMistakes { outcome: Outcome::Findings, ..it });
    match failure {
        CommandFailure::Mistakes(_) if args.fail_on_weaker => Ok(printer.failure(failure)),
        _ => Err(failure),
    }
}

/// Both versions, and their differences.
pub(crate) struct VersionComparison {
    inputs: ManuallyDrop<Inputs>,
    before: Before,
    against: String,
    watched: Vec<WatchedPaths>,
    /// The controls of both, which are kept until the process ends.
    controls: Option<&'static BothControls>,
    judged: Option<JudgedChange<'static>>,
    changes: ManuallyDrop<Changes>,
    /// The number of clusters that were compared.
    clusters: usize,
    /// The findings that make the change fail besides its grade.
    findings: LevelledFindings,
}

impl VersionComparison {
    /// Compares with what `--against` names.
    pub(crate) fn against(name: &OsStr, files: &FileOptions) -> CommandResult<Self> {
        let args = DiffArgs { against: Some(name.to_owned()), ..DiffArgs::default() };
        Self::new(&args, files)?
    }

    /// Reads both versions, and compares them. The inner failure is that of the old version.
    fn new(args: &DiffArgs, files: &FileOptions) -> CommandResult<CommandResult<Self>> {
        let against = Against::named_by(args)?;
        let name = against.name();
        if args.fail_on_weaker && !matches!(against, Against::Revision(_)) {
            return Err(controls::unknown(&name));
        }
        let mut snapshots = KnownSnapshots::default();
        // The process ends after this. To free large fleets takes a twentieth of a run.
        let inputs = inputs::gather_and_keep(files, &mut snapshots, &BTreeSet::new())?;
        let mut inputs = ManuallyDrop::new(inputs);
        let read = against.read(files, &mut inputs, &mut snapshots, args.fail_on_weaker);
        let mut before = match read {
            Ok(before) => before,
            Err(failure) => {
                let note =
                    format!("this is about the files of {name}; compare with another commit");
                return Ok(Err(failure.map(|it| FileMistakes { note: Some(note), ..it })));
            }
        };
        let controls = BothControls::read(before.controls.take(), &mut inputs);
        let controls = controls.map(|it| -> &'static BothControls { Box::leak(Box::new(it)) });
        before.notes.extend(controls.and_then(BothControls::note));
        // The rest of the run uses their memory again.
        drop(snapshots);
        let planned = ManuallyDrop::new(checked_plan::plan_or_refusal(&inputs)?);
        before.find_renamed(&planned.fleet);
        let watched = new_paths::watched(&args.fail_on_new_path, &inputs, before.inputs.as_ref())?;
        let mut asked = AskedChange { args, watched: &watched, controls, judged: None };
        let changes = changes(&mut asked, &inputs, &planned, &mut before)?;
        let (mut changes, judged) = (ManuallyDrop::new(changes), asked.judged);
        changes.services = services(&mut before, &inputs, &planned)?;
        before.notes.extend(refused_by_guards(&inputs, &planned.plan)?);
        let check = || losses::check(&before, &inputs, &name, files);
        let losses = args.check_losses.then(check).transpose()?;
        let opened = rules::rendered::opened(&changes, &watched, &inputs.meshes);
        // Flags ask for them, so no level of the config changes them.
        let findings = LevelledFindings::fixed([losses.unwrap_or_default(), opened].concat());
        let clusters = clusters(&planned, &changes);
        Ok(Ok(Self {
            inputs,
            before,
            against: name,
            watched,
            controls,
            judged,
            changes,
            clusters,
            findings,
        }))
    }

    /// Returns the result.
    pub(crate) fn compared(&self) -> Compared<'_> {
        let Self { inputs, before, .. } = self;
        let old_files = before.inputs.as_ref().map(|it| &it.files);
        let old_files = old_files.or(self.controls.and_then(BothControls::old_files));
        Compared {
            changes: &self.changes,
            clusters: self.clusters,
            against: self.against.clone(),
            meshes: &inputs.meshes,
            notes: &before.notes,
            findings: &self.findings,
            watched: &self.watched,
            judged: self.judged.as_ref(),
            config: &inputs.settings.config.content,
            files: &inputs.files,
            old_files: old_files.map(|it| -> &dyn SourceTexts { it }),
        }
    }
}

/// Counts the clusters that were compared.
fn clusters(planned: &RenderPlan, changes: &Changes) -> usize {
    let targets = planned.plan.targets.iter().map(|it| &it.cluster);
    let affected = changes.targets.iter().map(|it| &it.cluster);
    let clusters: BTreeSet<&ClusterName> = targets.chain(affected).collect();
    clusters.len()
}

/// The questions about a change besides its grade, and what the old controls refuse in it.
struct AskedChange<'a> {
    args: &'a DiffArgs,
    watched: &'a [WatchedPaths],
    controls: Option<&'static BothControls>,
    judged: Option<JudgedChange<'static>>,
}

/// Compares the Peers of a plan with the earlier ones, and notes what changes the meaning of that.
fn changes(
    asked: &mut AskedChange,
    inputs: &Inputs,
    planned: &RenderPlan,
    before: &mut Before,
) -> CommandResult<Changes> {
    let args = asked.args;
    let RenderPlan { fleet, plan, texts } = planned;
    let known = mem::take(&mut before.known);
    let mut applied = ClusterPeers::planned(&inputs.settings, plan, texts, &known);
    drop(known);
    applied.add_kept(inputs)?;
    let mut foreign = Vec::new();
    if args.dumps.are_any() {
        (applied, foreign) = applied.with_foreign(&before.applied, &inputs.meshes);
    }
    let after = After { inputs, fleet, applied: &ManuallyDrop::new(applied), foreign: &foreign };
    let changes = compare(asked, before, &after);
    if args.dumps.are_any() {
        before.note_unread(&changes, &cluster_peers::clusters(inputs));
    }
    if changes.grade() == Grade::None {
        before.notes.extend(uncertain_leaders(&after));
    }
    // With the plugin of Argo CD, no version has a tree.
    let old = before.inputs.as_ref();
    let has_tree =
        before::is_there(inputs)? || old.map(before::is_there).transpose()? == Some(true);
    if has_tree && !tree_comparison::is_current(plan, texts, &inputs.settings)? {
        before.notes.push(NOT_RENDERED.to_owned());
    }
    Ok(changes)
}

/// The note if the rendered tree is not yet that of the meshes and snapshots.
const NOT_RENDERED: &str =
    "the rendered tree is not up to date, so this is about what `clustermesh render` would write";

/// The note if only the new version is known.
const UNCOMPARED: &str = "the old version has no usable mesh and snapshots, so Services of other clusters are not compared";

/// Compares the Services that clusters get of others, or notes that the old ones are unknown.
fn services(
    before: &mut Before,
    inputs: &Inputs,
    planned: &RenderPlan,
) -> anyhow::Result<Vec<ServiceChange>> {
    let names_any = |it: &Inputs| it.meshes.iter().any(|it| !it.services.is_empty());
    let old = before.inputs.as_ref();
    if !names_any(inputs) && old.is_none_or(|it| !names_any(it)) {
        return Ok(Vec::new());
    }
    let after = checked_plan::mirrors(inputs, &planned.fleet, &planned.plan);
    if let Some(old) = old
        && let Some(plan) = checked_plan::plan(old)?
    {
        let old = checked_plan::mirrors(old, &plan.fleet, &plan.plan);
        return Ok(ServiceChange::all(&old, &after));
    }
    before.notes.push(UNCOMPARED.to_owned());
    Ok(Vec::new())
}

/// Returns a note for each guard in the repository that refuses Peers of the new version: its cluster keeps the old ones.
fn refused_by_guards(inputs: &Inputs, plan: &Plan) -> anyhow::Result<Vec<String>> {
    let files = guard_files::read(inputs)?;
    let guards = files.iter().filter_map(|it| Some(&it.guard()?.guard));
    let notes = guards.filter_map(|guard| {
        let refused = gitops::refused_peers(guard, plan)?;
        Some(format!(
            "the guard of {} refuses {refused}: run `clustermesh guard --update`, and apply it before the merge",
            guard.cluster
        ))
    });
    Ok(notes.collect())
}

/// Returns whether a flag makes differences a failure.
fn fails(args: &DiffArgs, changes: &Changes) -> bool {
    let grade = if args.allow_pause { changes.grade_without_pause() } else { changes.grade() };
    let limit = args.fail_on.map(Grade::from);
    limit.is_some_and(|limit| limit <= grade)
}

/// Returns what `validate` warns of if nothing changes only as long as an election ends as expected.
fn uncertain_leaders(now: &After) -> Vec<String> {
    let config = &now.inputs.settings.config.content;
    let found = rules::uncertain_leaders(now.fleet, config);
    let found = now.inputs.settings.in_force(found);
    let notes = found.iter().map(|it| {
        let (rule, message) = (it.rule.name(), &it.message);
        let subject = it.subject().unwrap_or_default();
        let help = it.help.iter().map(|it| format!("; {it}"));
        format!("{rule}: {subject}: {message}{}", help.collect::<String>())
    });
    notes.collect()
}

/// The current state.
struct After<'v> {
    inputs: &'v Inputs,
    fleet: &'v Fleet<'v>,
    /// Its Peers.
    applied: &'v ClusterPeers,
    /// Foreign Peers among them, by cluster and name.
    foreign: &'v [(ClusterName, String)],
}

fn compare(asked: &mut AskedChange, before: &Before, after: &After) -> Changes {
    let old_inputs = before.inputs.as_ref();
    let old_fleet = old_inputs.map(|it| checked_plan::fleet_beside(it, after.fleet));
    let old_fleet = ManuallyDrop::new(old_fleet);
    let old_inputs = old_inputs.unwrap_or(after.inputs);
    // Without a mesh of its own, the earlier state has the nodes of the current one.
    let old_nodes = old_fleet.as_ref().or(Some(after.fleet));
    let old = ManuallyDrop::new(before.applied.fabric_of(old_inputs, old_nodes, None));
    let new =
        ManuallyDrop::new(after.applied.fabric_of(after.inputs, Some(after.fleet), Some(&old)));
    let most_steps = after.inputs.settings.ceilings.most_steps();
    let versions = old_fleet.as_ref().map(|it| [(&*old, it), (&*new, after.fleet)]);
    let unknown = JudgedChange { is_unproven: true, ..JudgedChange::default() };
    asked.judged = match asked.controls {
        Some(controls) => Some(controls.judge(versions, most_steps)),
        None => Some(unknown).filter(|_| before.has_unknown_controls),
    };
    let version = |fleet, fabric, asked| Version { fleet, fabric, asked };
    changes::compare(
        &version(old_fleet.as_ref(), &old, old_inputs.asked()),
        &version(Some(after.fleet), &new, after.inputs.asked()),
        &Delivery {
            engines: &engines(asked.args, before, after),
            capacity: &after.inputs.settings.config.content.limits.capacity,
            foreign: after.foreign,
            left: before.applied.left(),
            watched: asked.watched,
            most_steps,
        },
    )
}

/// Returns what the command line and the Applications of both versions show about the tools that apply the Peers.
fn engines(args: &DiffArgs, before: &Before, after: &After) -> Engines {
    let clusters = cluster_peers::clusters(after.inputs);
    let mut argo_cd = applications::orders(&after.inputs.settings, &clusters);
    if let Some(old) = &before.inputs {
        applications::add_others(&mut argo_cd, &applications::orders(&old.settings, &clusters));
    }
    Engines { applied_by: args.applied_by.map(Into::into), argo_cd }
}
