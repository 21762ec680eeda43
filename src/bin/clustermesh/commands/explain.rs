//! `clustermesh explain`

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use anstyle::Style;
use anyhow::anyhow;
use clustermesh::diagnostic::Quoted;
use clustermesh::document::nearest;
use clustermesh::fleet::Member;
use clustermesh::mesh::State;
use clustermesh::name::ClusterName;
use clustermesh::node_gates::NodeExplanation;
use clustermesh::rules::reach::TERMS;
use clustermesh::rules::rendered::PlannedFleet;
use clustermesh::rules::{self, QUESTIONS, Rule};
use clustermesh::text;

use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs};
use crate::output::{Printer, TableFormat, terminal_markdown};
use crate::settings::{FileOptions, NoMesh};
use crate::{Outcome, checked_plan, cluster_peers};

/// Explain a rule, or why other clusters get a node or do not get it
///
/// Without an argument, all rules are listed by topic, with their levels. If there is no rule with that name, the
/// rules that contain the text are listed.
///
/// With CLUSTER/NODE, `explain` lists every gate that the node must pass before the Peers of other clusters carry its
/// pods: those of the mesh, those of Kilo in its cluster, and the plan for each linked cluster. Each gate has its result
/// and the value that decides, with its place. Reads only files. Exits with 1 if a linked cluster does not get the pods
/// of the node, if none is linked, or if `verify` cannot prove any path of the node.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Rule, code of the operator, result of a trace, text to look for, or CLUSTER/NODE
    #[arg(value_name = "RULE|CLUSTER/NODE")]
    subject: Option<String>,

    /// Print all rules as one page of Markdown
    #[arg(long, conflicts_with = "subject")]
    all: bool,

    /// Output format for CLUSTER/NODE [default: human]
    #[arg(short, long, value_name = "FORMAT", requires = "subject")]
    output: Option<TableFormat>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh explain
  clustermesh explain west/worker-1
  clustermesh explain missing-endpoint
  clustermesh explain NodeNoEndpoint
  clustermesh explain nat                       search for rules about NAT";

const HEADING: Style = Style::new().bold();

/// The column of the levels, and that of the summaries.
const LEVELS: usize = 30;
const SUMMARIES: usize = 39;

pub(crate) fn run(args: &ExplainArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    if let Some(named) = args.subject.as_deref().and_then(node_named) {
        return explain_node(named, args.output, files, printer);
    }
    if args.output.is_some() {
        return Err(anyhow!("`--output` works only with CLUSTER/NODE").into());
    }
    let text = match &args.subject {
        _ if args.all => rules::manual(),
        None => list(),
        Some(given) => {
            let name = copied_name(given);
            match pages(name) {
                Some(pages) if io::stdout().is_terminal() => terminal_markdown::page(&pages),
                Some(pages) => pages,
                None => {
                    refuse_named(name, files)?;
                    search(name)?
                }
            }
        }
    };
    printer.result(&text)?;
    Ok(Outcome::Clean)
}

/// A text that can name a node of a cluster.
#[derive(Clone, Copy)]
struct NodeArgument<'t> {
    text: &'t str,
    cluster: &'t str,
    node: &'t str,
}

/// Returns the cluster and the node that a text names. Names of annotations have a slash, too, and no cluster is named like
/// their prefix.
fn node_named(text: &str) -> Option<NodeArgument<'_>> {
    let (cluster, node) = text.split_once('/')?;
    cluster.parse::<ClusterName>().is_ok().then_some(NodeArgument { text, cluster, node })
}

/// Prints the gates of a node. A text such as `and/or` whose first word is not a cluster is looked for in the rules.
fn explain_node(
    named: NodeArgument,
    format: Option<TableFormat>,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let gathered = inputs::gather(files);
    let NodeArgument { text, cluster, node } = named;
    if format.is_none()
        && !may_be_known(cluster, &gathered)
        && let Ok(found) = search(text)
    {
        printer.result(&found)?;
        return Ok(Outcome::Clean);
    }
    let inputs = gathered?;
    if let Some(failure) = inputs.broken_entry(cluster) {
        return Err(failure);
    }
    let clusters = cluster_peers::clusters(&inputs);
    let cluster = cluster_peers::named(cluster, &clusters).map_err(|error| match format {
        None => anyhow!("no rule contains {}, and {error}", Quoted(text)),
        Some(_) => error,
    })?;
    if node.is_empty() {
        return Err(unnamed_node(text, cluster, &inputs).into());
    }
    let planned = checked_plan::plan_or_refusal(&inputs)?;
    let memberships: Vec<&Member> = planned.fleet.memberships(cluster).collect();
    let found = PlannedFleet { fleet: &planned.fleet, plan: &planned.plan };
    let found = (found, &inputs.settings.config.content);
    let explained = NodeExplanation::new(found, &memberships, node, &inputs.files);
    let Some(explained) = explained else {
        let mut entries = inputs.meshes.iter().filter_map(|it| it.entry(cluster));
        if memberships.is_empty() && entries.any(|it| it.state == State::Leaving) {
            let why = "leaves (`state: Leaving`), so no other cluster gets its nodes";
            return Err(anyhow!("{cluster} {why}").into());
        }
        return Err(unknown_node(cluster, node, &memberships).into());
    };
    printer.finish(&explained, format.unwrap_or_default())?;
    Ok(Outcome::findings_if(!explained.is_routed()))
}

/// Fails if a text that no rule is called names a cluster, whose nodes are meant, or a node.
fn refuse_named(name: &str, files: &FileOptions) -> anyhow::Result<()> {
    let Ok(inputs) = inputs::gather(files) else {
        return Ok(());
    };
    let clusters = cluster_peers::clusters(&inputs);
    if let Some(cluster) = clusters.iter().find(|it| it.as_str() == name) {
        return Err(unnamed_node(name, cluster, &inputs));
    }
    let has_node = |it: &&ClusterName| {
        inputs.snapshots[*it].snapshot.nodes.iter().any(|node| node.name == name)
    };
    let whole = inputs.snapshots.keys().filter(has_node).map(|it| format!("{it}/{name}"));
    let whole: Vec<String> = whole.map(|it| Quoted(&it).to_string()).collect();
    if whole.is_empty() {
        return Ok(());
    }
    Err(anyhow!("{} is a node; write {}", Quoted(name), text::joined(&whole, "or")))
}

/// Returns whether a mesh has a cluster. Of a mesh that cannot be read, that is not known.
fn may_be_known(cluster: &str, gathered: &CommandResult<Inputs>) -> bool {
    match gathered {
        Ok(inputs) => inputs.named.iter().any(|it| it.eq_ignore_ascii_case(cluster)),
        Err(CommandFailure::Error(error)) => !error.is::<NoMesh>(),
        Err(_) => true,
    }
}

fn unnamed_node(text: &str, cluster: &ClusterName, inputs: &Inputs) -> anyhow::Error {
    let nodes = inputs.snapshots.get(cluster).into_iter().flat_map(|it| &it.snapshot.nodes);
    let nodes: Vec<Quoted> = nodes.map(|it| Quoted(&it.name)).collect();
    let known = if nodes.is_empty() {
        format!("; {cluster} has no snapshot with nodes")
    } else {
        format!("; the snapshot of {cluster} has {}", text::listed(nodes))
    };
    anyhow!("{} names no node; write `{cluster}/NODE`{known}", Quoted(text))
}

fn unknown_node(cluster: &ClusterName, node: &str, memberships: &[&Member]) -> anyhow::Error {
    let nodes = memberships.first().into_iter().flat_map(|it| &it.file.snapshot.nodes);
    let meant = nearest(node, nodes.map(|it| it.name.as_str()));
    let meant = meant.map(|it| format!(" (did you mean {}?)", Quoted(it))).unwrap_or_default();
    anyhow!(
        "the snapshot of {cluster} has no node {}{meant}; if the node is new, run `clustermesh snapshot {cluster}`",
        Quoted(node)
    )
}

/// Returns the name in a text that was copied from a message, such as `error[no-mesh]:`.
fn copied_name(given: &str) -> &str {
    let text = given.trim().trim_end_matches(':');
    let text = text.strip_suffix(']').unwrap_or(text);
    match text.split_once('[') {
        Some((before, name)) if before.chars().all(char::is_alphanumeric) => name,
        _ => text,
    }
}

/// Returns the pages of the rules of a name, as Markdown.
fn pages(name: &str) -> Option<String> {
    if let Some(term) = TERMS.iter().find(|term| term.name == name) {
        return Some(rules::page_of_term(term, 1));
    }
    let pages: Vec<String> = rules::find(name).iter().map(|rule| rules::page_of(rule, 1)).collect();
    (!pages.is_empty()).then(|| pages.join("\n"))
}

/// Returns the rules that a text is in: first those with it in a name, then in the summary, then anywhere.
fn search(given: &str) -> anyhow::Result<String> {
    let wanted = given.to_lowercase();
    // Not inside of a word: `nat` is not meant by `destination`.
    let wanted_in = |text: &str| {
        let text = text.to_lowercase();
        let mut places = text.match_indices(&wanted);
        places.any(|(at, _)| !text.get(..at).is_some_and(|it| it.ends_with(char::is_alphanumeric)))
    };
    let rank = |rule: &Rule| {
        let names = [&[rule.name()], rule.aliases].concat();
        let page = rule.page();
        if names.iter().any(|name| wanted_in(name)) {
            Some(0)
        } else if wanted_in(page.summary()) {
            Some(1)
        } else {
            let is_there = page.sections.iter().any(|it| wanted_in(it.text));
            is_there.then_some(2)
        }
    };
    let rules = rules::all().into_iter();
    let mut found: Vec<(u8, &Rule)> = rules.filter_map(|it| Some((rank(it)?, it))).collect();
    if found.is_empty() {
        return Err(unknown(given));
    }
    found.sort_by_key(|(rank, rule)| (*rank, rule.name()));
    // A misspelled name is also in pages about names.
    let is_name = given.contains('-') && !found.iter().any(|(rank, _)| *rank == 0);
    if let Some(meant) = nearest_name(given).filter(|_| is_name) {
        return Err(misspelled(given, meant));
    }
    Ok(found.into_iter().map(|(_, rule)| line(rule)).collect())
}

fn unknown(name: &str) -> anyhow::Error {
    match nearest_name(name) {
        Some(meant) => misspelled(name, meant),
        None => anyhow!("unknown rule `{name}`; `clustermesh explain` lists all rules"),
    }
}

fn misspelled(name: &str, meant: &str) -> anyhow::Error {
    anyhow!("unknown rule `{name}`; did you mean `{meant}`?")
}

/// Returns the name, alias or term that is probably meant.
fn nearest_name(name: &str) -> Option<&'static str> {
    let all = rules::all();
    let aliases = all.iter().flat_map(|rule| rule.aliases.iter().copied());
    let names = all.iter().map(|rule| rule.name()).chain(aliases);
    nearest(name, names.chain(TERMS.iter().map(|term| term.name)))
}

/// Returns every rule with its level and what it finds, in a sentence.
fn list() -> String {
    let mut text = String::new();
    for question in QUESTIONS {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{HEADING}{}{HEADING:#}", question.title);
        let mut rules: Vec<&Rule> = question.rules.to_vec();
        rules.sort_by_key(|rule| rule.name());
        text.extend(rules.into_iter().map(line));
    }
    let _ = writeln!(text, "\n{HEADING}Outcomes that are not findings{HEADING:#}");
    for term in TERMS {
        let summary = term.page().summary().replace('\n', " ");
        text.push_str(&terminal_markdown::item(&format!("  {}", term.name), &summary, SUMMARIES));
    }
    text
}

fn line(rule: &Rule) -> String {
    let summary = rule.page().summary().replace('\n', " ");
    let name = format!("  {:<width$} {}", rule.name(), rule.severity, width = LEVELS - 3);
    terminal_markdown::item(&name, &summary, SUMMARIES)
}
