//! Words about expectations: what breaks them, and what they mean that is not there.

use std::collections::BTreeSet;

use crate::agent::fabric::{Fabric, NodeRef};
use crate::diagnostic::{Finding, Mistakes, Quoted, Severity, escaped};
use crate::document::suggesting;
use crate::expectations::{Expectation, Expected, SelectedClusters, Selection};
use crate::mesh::{Mesh, or_group, separating};
use crate::name::ClusterName;
use crate::net::prefixes::Span;
use crate::packet::Step;
use crate::packet::messages::{called, unprovided, verdict, whose};
use crate::packet::trace::Trace;
use crate::place::Place;
use crate::proof::expectation::{self, Check, ExpectationSide, MatchesNothing, Survival};
use crate::proof::rule;
use crate::text::{self, listed};

/// Returns what an expectation is called in a sentence.
pub fn name(expectation: &Expectation) -> String {
    match &expectation.name {
        Some(name) => format!("expectation {}", Quoted(name)),
        None => "expectation".to_owned(),
    }
}

/// Returns what is wrong with an expectation, each at its own place and at those that are
/// responsible; nothing where it holds.
pub fn findings(fabric: &Fabric, meshes: &[Mesh], check: &Check) -> Vec<Finding> {
    let unmatched = check.unmatched.iter().map(|it| empty(fabric, meshes, check.expectation, *it));
    let lost = check.survival.iter().flat_map(|it| losses(fabric, check, it));
    let failure = check.counterexample.as_ref();
    let failure = failure.map(|it| {
        let finding = self::failure(fabric, check, it, check.broken);
        let is_asked = check.expectation.expected == Expected::Reach;
        let advice = is_asked.then(|| unprovided(fabric, meshes, it)).flatten();
        let ends = [it.packet.from.site, it.packet.to.site()].map(|it| fabric.site(it).cluster);
        let separating = separating(meshes, ends[0], ends[1]).filter(|_| is_asked);
        let finding =
            finding.at(separating.map(|it| it.linking_field().1), "does not link the two clusters");
        let own = finding.help.clone().filter(|_| separating.is_none());
        Finding { help: advice.or(own), ..finding }
    });
    let excused = excused(fabric, check);
    failure.into_iter().chain(unmatched).chain(lost).chain(assumed(check)).chain(excused).collect()
}

/// Returns the warning about paths that work only under a condition.
fn assumed(check: &Check) -> Option<Finding> {
    let paths = (0 < check.assumed).then_some(check.assumed)?;
    let message = format!(
        "{}: {paths} of {} are only assumed to work",
        name(check.expectation),
        text::count(check.pairs, "path")
    );
    let mut finding = Finding::new(&rule::ASSUMED_REACH, message);
    finding.severity = Severity::Warning;
    let place = check.expectation.place.key("expect");
    Some(finding.at(Some(place), "expected to reach"))
}

/// Returns the warning about paths that fail because of a few nodes.
fn excused(fabric: &Fabric, check: &Check) -> Option<Finding> {
    let trace = check.excused_example.as_ref()?;
    Some(Finding { severity: Severity::Warning, ..failure(fabric, check, trace, check.excused) })
}

/// The number of nodes that a message lists.
const LISTED: usize = 3;

/// Returns what paths do not survive, or what is not known.
fn losses(fabric: &Fabric, check: &Check, survival: &Survival) -> Vec<Finding> {
    let name = name(check.expectation);
    let place = check.expectation.place.key("survives");
    let nodes = |nodes: &[NodeRef]| text::first(LISTED, nodes.iter().map(|it| called(fabric, *it)));
    let mut findings = Vec::new();
    if let ([worst, others @ ..], Some([from, to])) = (&*survival.nodes, &survival.example) {
        let more = match others {
            [] => String::new(),
            _ => format!("; the loss of {} also ends paths", nodes(others)),
        };
        findings.push(format!(
            "{name}: expected to survive the loss of any node, but without {}, {} until the next render, such as {from} → {to}{more}",
            called(fabric, *worst),
            match survival.ended {
                1 => "1 path ends".to_owned(),
                ended => format!("{ended} paths end"),
            },
        ));
    }
    if !survival.unexamined.is_empty() {
        findings.push(format!(
            "{name}: it is not known whether its paths survive the loss of {}",
            nodes(&survival.unexamined)
        ));
    }
    if 0 < survival.partial {
        findings.push(format!(
            "{name}: it is not known whether {} survive the loss of a node, because only some of their addresses work",
            text::count(survival.partial, "path")
        ));
    }
    let help = if survival.is_carried {
        "limit the expectation to `class: Pod`, or remove `survives`: one node carries a range of a whole cluster until the next render"
    } else {
        "run `clustermesh outage` for all such losses"
    };
    let findings = findings.into_iter().map(|message| {
        Finding::new(&rule::FAILED_EXPECTATION, message)
            .at(Some(place.clone()), "expected to survive")
            .help(help)
    });
    findings.collect()
}

/// Returns what breaks an expectation, at its own place and at those that are responsible; this many paths do.
fn failure(fabric: &Fabric, check: &Check, trace: &Trace, failing: u64) -> Finding {
    let packet = &trace.packet;
    let expectation = check.expectation;
    let from = whose(fabric, packet.from.site, packet.source);
    let to = whose(fabric, packet.to.site(), packet.destination);
    let pairs = match (failing, check.pairs) {
        (1, 1) => String::new(),
        (failing, pairs) => format!(" ({failing} of {pairs} pairs)"),
    };
    let ending = verdict(fabric, trace);
    let why = ending.as_ref().map(|it| format!(": {}", it.message)).unwrap_or_default();
    let arrives = trace.there.ending.is_delivered();
    let (expected, verb, why) = match expectation.expected {
        Expected::Reach => ("Reach", "does not reach", why),
        Expected::Deny if arrives => ("Deny", "reaches", if_dialled(fabric, trace)),
        Expected::Deny => ("Deny", "may reach", why),
    };
    let finding = Finding::new(
        &rule::FAILED_EXPECTATION,
        format!(
            "{}: expected {expected}, but {} ({from}) {verb} {} ({to}){pairs}{why}",
            name(expectation),
            packet.source,
            packet.destination
        ),
    );
    let own = expectation.place.key("expect");
    let mut finding = match expectation.expected {
        Expected::Reach => finding.at(Some(own), "expected to reach"),
        Expected::Deny => finding.at(Some(own), "expected not to reach"),
    };
    match expectation.expected {
        Expected::Deny if arrives => {
            for (place, text) in passed(trace) {
                finding = finding.at(Some(place), text);
            }
            finding = finding.help(
                "remove the link, the node or the range from the mesh: Kilo has no firewall, and \
                 clustermesh does not read NetworkPolicies",
            );
        }
        Expected::Reach | Expected::Deny => {
            let (labels, help) = ending.map(|it| (it.labels, it.help)).unwrap_or_default();
            finding.labels.extend(labels);
            finding.help = help;
        }
    }
    finding
}

/// Returns why a packet does not arrive as the nodes dial now, which is the end of a message that it can.
fn if_dialled(fabric: &Fabric, trace: &Trace) -> String {
    match fabric.way(&trace.packet).ending.rule() {
        None => String::new(),
        Some(rule) => format!(
            " as soon as one of the two nodes dials the other: each has the other's key and ranges, and only the way to dial \
             is missing (`{}`)",
            rule.name()
        ),
    }
}

/// Returns the ranges of manifests that let a packet through.
fn passed(trace: &Trace) -> Vec<(Place, &'static str)> {
    let steps = trace.there.steps.iter();
    steps
        .filter_map(|step| match step {
            Step::Selected { place, .. } => Some((place.clone()?, "sent by this range")),
            Step::Accepted { place, .. } => Some((place.clone()?, "accepted by this range")),
            _ => None,
        })
        .collect()
}

fn empty(
    fabric: &Fabric,
    meshes: &[Mesh],
    expectation: &Expectation,
    unmatched: MatchesNothing,
) -> Finding {
    let name = name(expectation);
    match unmatched {
        MatchesNothing::Cluster { side, index } => {
            let selection = side.selection(expectation);
            let mut clusters = selection.clusters.iter().flat_map(|it| &it.members);
            let Some((wanted, place)) = clusters.nth(index) else {
                return Finding::new(&rule::EMPTY_EXPECTATION, name);
            };
            let mut known = meshes.iter().flat_map(Mesh::all_entries).map(|it| &it.name);
            if known.clone().any(|it| it == wanted) {
                let why = if wanted.is_external() {
                    "a mistake in a mesh leaves open what its Peers are"
                } else {
                    "it has no snapshot"
                };
                let problem = format!("{} was not checked: {why}", Quoted(wanted.as_str()));
                return not_selected(&name, problem, (wanted.as_str(), place));
            }
            let known = known.by_ref().map(ClusterName::as_str);
            let finding = no_cluster(&name, (wanted.as_str(), place), known);
            or_group(finding, meshes.iter().flat_map(|it| &it.groups), true)
        }
        MatchesNothing::Addresses { side, index } => {
            no_address(fabric, &name, (side, side.selection(expectation)), index)
        }
        MatchesNothing::Nothing(side) => nothing(&name, side, side.selection(expectation)),
        MatchesNothing::OneCluster(site) => {
            let cluster = fabric.site(site).cluster.as_str();
            Finding::new(&rule::EMPTY_EXPECTATION, format!("{name}: both sides are in {cluster}"))
                .at(Some(expectation.place.clone()), "both sides in one cluster")
                .help("choose two clusters: clustermesh does not check traffic within a cluster")
        }
        MatchesNothing::Families => Finding::new(
            &rule::EMPTY_EXPECTATION,
            format!("{name}: one side has IPv4 addresses only, and the other IPv6"),
        )
        .at(Some(expectation.place.clone()), "no common address family"),
    }
}

/// Reports a selection without a match. If it is of one cluster, it may follow from a problem of that one.
fn nothing(name: &str, side: ExpectationSide, selection: &Selection) -> Finding {
    let message =
        format!("{name}: {} selects nothing: no matching {}", field(side), kind(selection));
    let finding = Finding::new(&rule::EMPTY_EXPECTATION, message)
        .at(Some(selection.place.clone()), "selects nothing")
        .help("correct the selection: an expectation that matches nothing checks nothing");
    of_only_cluster(finding, selection)
}

/// Names the only cluster of a selection, so that a finding about it may be the cause.
fn of_only_cluster(finding: Finding, selection: &Selection) -> Finding {
    let clusters: Vec<&ClusterName> =
        selection.clusters.iter().flat_map(|it| it.members.keys()).collect();
    match clusters[..] {
        [only] => finding.of_name(only.as_str()),
        _ => finding,
    }
}

/// Finds clusters of expectations that are in no mesh.
pub fn find_unknown(expectations: &[Expectation], meshes: &[Mesh], found: &mut Mistakes) {
    let entries = meshes.iter().flat_map(Mesh::all_entries);
    let known: BTreeSet<&str> = entries.map(|it| it.name.as_str()).collect();
    for expectation in expectations {
        let sides = [&expectation.from, &expectation.to].map(|it| it.clusters.as_ref());
        let named = sides.into_iter().flatten().filter(|it| it.group.is_none());
        let members = named.flat_map(|it| &it.members);
        for (wanted, place) in members.filter(|it| !known.contains(it.0.as_str())) {
            found.push_with(&rule::EMPTY_EXPECTATION, || {
                let (name, wanted) = (name(expectation), (wanted.as_str(), place));
                let finding = no_cluster(&name, wanted, known.iter().copied());
                or_group(finding, meshes.iter().flat_map(|it| &it.groups), true)
            });
        }
    }
}

/// Reports that a side of an expectation, given with its name, selects nothing of a cluster.
fn not_selected(name: &str, problem: String, (wanted, place): (&str, &Place)) -> Finding {
    let finding = Finding::new(&rule::EMPTY_EXPECTATION, format!("{name}: {problem}"));
    finding.at(Some(place.clone()), "").of_name(wanted).with_alike(problem, None)
}

/// Returns findings about expectations that select nothing of the clusters that they name.
pub fn empty_selections(fabric: &Fabric, expectations: &[Expectation]) -> Vec<Finding> {
    let unmatched = expectation::unmatched(fabric, expectations).into_iter();
    let is_selection = |it: &MatchesNothing| !matches!(it, MatchesNothing::Cluster { .. });
    let unmatched = unmatched.filter(|(_, it)| is_selection(it));
    unmatched.map(|(expectation, it)| empty(fabric, &[], expectation, it)).collect()
}

fn no_cluster<'k>(
    name: &str,
    (wanted, place): (&str, &Place),
    known: impl Iterator<Item = &'k str>,
) -> Finding {
    let problem = format!("no mesh has a cluster {}", Quoted(wanted));
    let finding = not_selected(name, problem, (wanted, place));
    suggesting(wanted, known, finding).unwrap_or_else(|finding| finding)
}

fn no_address(
    fabric: &Fabric,
    name: &str,
    (side, selection): (ExpectationSide, &Selection),
    index: usize,
) -> Finding {
    let place = selection.place.key("addresses").index(index);
    let Some(range) = selection.addresses.get(index) else {
        return Finding::new(&rule::EMPTY_EXPECTATION, name);
    };
    let shown = Span::new(*range);
    let owners = fabric.owners(range.first());
    let message = match owners.first() {
        Some((cluster, _)) => format!(
            "{name}: {} selects nothing in {shown}, which belongs to {}",
            field(side),
            whose(fabric, *cluster, range.first())
        ),
        None => format!("{name}: nothing selected has an address in {shown}"),
    };
    let finding = Finding::new(&rule::EMPTY_EXPECTATION, message)
        .at(Some(place), "matches no selected node")
        .help("correct the selection: an expectation that matches nothing checks nothing");
    of_only_cluster(finding, selection)
}

fn field(side: ExpectationSide) -> &'static str {
    match side {
        ExpectationSide::From => "`from`",
        ExpectationSide::To => "`to`",
    }
}

/// Returns what a selection looks for.
fn kind(selection: &Selection) -> String {
    let class = match selection.class {
        Some(class) => format!("{class:?}").to_lowercase(),
        None => "address".to_owned(),
    };
    let of = match &selection.clusters {
        None => String::new(),
        Some(SelectedClusters { group: Some(group), .. }) => format!(" in group {group}"),
        Some(clusters) => {
            format!(" in {}", listed(clusters.members.keys().map(ToString::to_string)))
        }
    };
    escaped(&format!("{class}{of}"), 200)
}
