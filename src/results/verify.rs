//! Verifications: what every cluster reaches as a result, in the form that was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::agent::fabric::{Fabric, SiteId, SitePair};
use crate::mesh::{AddressClass, RefusedLink};
use crate::name::ClusterName;
use crate::packet::messages;
use crate::packet::premise::{Premise, UnshownRoute};
use crate::proof::expectation::Check;
use crate::proof::hostile::Hostile;
use crate::proof::verify::{Assumption, ClassPair, Pairing, SinglePoint, Tally, Verification};
use crate::report::json::JsonDocument;
use crate::report::page::PageForm;
use crate::report::table::TextTable;
use crate::report::width::Width;
use crate::results::findings::Report;
use crate::results::findings::markdown::COMMENT;
use crate::results::forms::ResultForms;
use crate::results::node_addresses;
use crate::results::source_texts::SourceTexts;
use crate::rules::LevelledFindings;
use crate::text;

mod expected;
mod hostile;
mod joining;
pub mod json;
mod matrix;
mod services;
mod undeclared;

pub use joining::JoinVerification;
use matrix::Matrix;
pub use services::ProvedService;

/// The number of pairs of clusters that are shown one by one.
const SHOWN: usize = 30;

/// The number of nodes of one cluster that alone carry something and are shown one by one.
const POINTS: usize = 3;

/// The classes, in the order in which they are shown.
pub(crate) const CLASSES: [ClassPair; 8] = [
    (AddressClass::Pod, AddressClass::Pod),
    (AddressClass::Pod, AddressClass::Service),
    (AddressClass::Pod, AddressClass::Network),
    (AddressClass::Pod, AddressClass::Node),
    (AddressClass::Node, AddressClass::Pod),
    (AddressClass::Node, AddressClass::Node),
    (AddressClass::Node, AddressClass::Service),
    (AddressClass::Node, AddressClass::Network),
];

/// The width of a table for people, in columns.
const WIDTH: usize = 80;

/// A verification, and what it points into.
pub struct Verified<'a, 'f> {
    /// A line for people about the mesh and the Peers.
    pub basis: String,
    /// The clusters.
    pub fabric: &'a Fabric<'f>,
    /// The files.
    pub files: &'a dyn SourceTexts,
    /// The result.
    pub verification: &'a Verification,
    /// The number of clusters of which no path was checked, as they have no usable snapshot.
    pub unchecked: usize,
    /// The clusters of which no path was checked, as their entries have mistakes.
    pub broken: &'a BTreeSet<&'a str>,
    /// Whether the file of expectations has a mistake, so that none was checked.
    pub has_wrong_expectations: bool,
    /// The rendered folder, if `render` would change its files, from which the Peers are.
    pub outdated: Option<&'a str>,
    /// The results of the expectations.
    pub checks: &'a [Check<'a>],
    /// The Services that clusters get of others.
    pub services: &'a [ProvedService<'a>],
    /// The possible attacks of the clusters of `--assume-hostile`.
    pub hostiles: &'a [Hostile],
    /// The same as text.
    pub findings: &'a LevelledFindings,
    /// Whether none of them makes the run fail.
    pub is_passed: bool,
    /// The links of meshes that policies refuse.
    pub refused: Vec<RefusedLink>,
    /// The clusters of which a table shows all pairs; nothing for all clusters.
    pub focus: Option<&'a BTreeSet<SiteId>>,
    /// The clusters whose entries keep all addresses of their nodes.
    pub keeping_nodes: BTreeSet<&'a ClusterName>,
    /// The result if the clusters that join were joined.
    pub joining: Option<&'a JoinVerification<'a, 'f>>,
}

impl ResultForms for Verified<'_, '_> {
    fn page(&self, form: PageForm) -> String {
        match form {
            PageForm::Terminal(width) => self.human(width),
            PageForm::Markdown => self.markdown(),
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(json::written(self)?.bounded()).text()
    }
}

impl Verified<'_, '_> {
    /// Returns the findings alone.
    pub fn report(&self) -> Report<'_> {
        Report::new(self.files, self.findings)
    }

    fn human(&self, width: Width) -> String {
        let mut text = format!("{}\n\n{}", self.basis, self.aligned());
        let points = &self.verification.single_points;
        // In a large fleet there is a line of this kind for almost every node.
        for points in points.chunk_by(|one, next| one.at.site == next.at.site) {
            for point in points.iter().take(POINTS) {
                let _ = writeln!(text, "{}", width.wrapped(0, &self.single_point(point)));
            }
            if let Some(point) = points.get(POINTS) {
                let more = text::count(points.len() - POINTS, "more node");
                let cluster = self.fabric.site(point.at.site).cluster;
                let _ = writeln!(
                    text,
                    "… and {more} of {cluster} that alone carry something (see `--output json`)"
                );
            }
        }
        let routes = self.verification.assumptions.iter();
        let routes: Vec<String> = routes.filter_map(|it| self.route(it)).collect();
        for route in &routes {
            let _ = writeln!(text, "{}", width.wrapped(0, route));
        }
        if !(points.is_empty() && routes.is_empty()) {
            text.push('\n');
        }
        text.push_str(&self.undeclared_list());
        text.push_str(&self.unowned_list(width));
        text.push_str(&self.hostilities());
        text.push_str(&self.counterexamples(width));
        for piece in self.report().pieces(width) {
            text.push_str(&piece);
            text.push('\n');
        }
        text.push_str(&width.wrapped(0, &self.summary()));
        text.push_str(&width.wrapped(0, &self.containment()));
        if let Some(joining) = self.joining {
            text.push_str(&joining.human(width));
        }
        text
    }

    /// The findings, and the table.
    fn markdown(&self) -> String {
        let mut text = self.report().markdown(COMMENT);
        let Matrix { table, rest } = self.matrix();
        text.push_str(&in_markdown(table));
        let _ = write!(text, "\n{rest}{}", self.summary());
        text.push_str(&in_markdown(self.undeclared_table()));
        for unowned in &self.verification.unowned {
            let _ = write!(text, "\n{}\n", self.unowned(unowned));
        }
        if let Some(joining) = self.joining {
            text.push_str(&joining.markdown());
        }
        text
    }

    /// The same, aligned for people.
    fn aligned(&self) -> String {
        let Matrix { table, rest } = self.matrix();
        let table = table.map(|it| it.folded(Width::new(WIDTH)));
        let mut text = table.unwrap_or_default() + &rest;
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Describes what is cut if a node is lost.
    fn single_point(&self, point: &SinglePoint) -> String {
        let ranges = (!point.ranges.is_empty()).then(|| text::listed(&point.ranges));
        let pods = (!point.members.is_empty())
            .then(|| format!("the pods of {}", text::count(point.members.len(), "other node")));
        let viewers = point.viewers.iter().map(|&it| self.fabric.site(it).cluster);
        format!(
            "only {} carries {} for {}",
            messages::called(self.fabric, point.at),
            ranges.into_iter().chain(pods).collect::<Vec<_>>().join(" and "),
            text::listed(viewers)
        )
    }

    /// Describes a route into a network that no node shows, if an assumption is about one.
    fn route(&self, assumption: &Assumption) -> Option<String> {
        let Premise::Route(UnshownRoute { range, .. }) = assumption.premise else {
            return None;
        };
        let carriers = assumption.nodes.iter();
        Some(format!(
            "assumes that {} can forward to {range}, which is on the LAN of no node ({})",
            text::listed(carriers.map(|it| messages::called(self.fabric, *it))),
            text::count(assumption.pairs, "path")
        ))
    }

    fn summary(&self) -> String {
        let total = self.verification.total();
        let mut sentences = Vec::new();
        if !self.is_passed && 0 < total.promised && total.kept == total.promised {
            // The last line must not look like a success.
            sentences.push("Problems were found.".to_owned());
        }
        sentences.push(declared_paths(&total));
        if 0 < total.reached {
            let verb = if total.reached == 1 { "works" } else { "work" };
            let paths = text::count(total.reached, "undeclared path");
            let list = match self.verification.undeclared {
                Some(_) => "",
                None => " (list them with `--undeclared`)",
            };
            sentences.push(format!("{paths} also {verb}{list}."));
        }
        let apart = self.verification.apart.len();
        if 0 < apart {
            let verb = if apart == 1 { "has" } else { "have" };
            sentences.push(format!("{} {verb} no declared paths.", text::count(apart, "node")));
        }
        sentences.extend(self.pathless());
        if !self.checks.is_empty() {
            let held = self.checks.iter().filter(|it| it.holds()).count();
            let in_part = self.checks.iter().filter(|it| it.holds() && 0 < it.excused).count();
            sentences.push(match (held, self.checks.len()) {
                (held, all) if held == all && 0 < in_part => {
                    let part =
                        if in_part == 1 { "1 is met" } else { &format!("{in_part} are met") };
                    let fully = all - in_part;
                    format!(
                        "{fully} of {} met, and {part} only in part, because of nodes.",
                        met(all)
                    )
                }
                (1, 1) => "The expectation is met.".to_owned(),
                (held, all) if held == all => format!("All {all} expectations are met."),
                (held, all) => {
                    let empty = self.checks.iter().filter(|it| !it.unmatched.is_empty()).count();
                    let empty = match empty {
                        0 => String::new(),
                        1 => ", and 1 selects nothing".to_owned(),
                        empty => format!(", and {empty} select nothing"),
                    };
                    format!("{held} of {} met{empty}.", met(all))
                }
            });
        }
        if self.has_wrong_expectations {
            let none = "No expectations were checked, because their file has a mistake.";
            sentences.push(none.to_owned());
        }
        sentences.extend(self.services_sentence());
        sentences.extend(match self.unchecked {
            0 => None,
            1 => Some(
                "1 cluster was not checked, because its snapshot is missing or cannot be read."
                    .to_owned(),
            ),
            clusters => Some(format!(
                "{clusters} clusters were not checked, because their snapshots are missing or cannot be read."
            )),
        });
        sentences.extend(match self.broken.len() {
            0 => None,
            1 => Some(format!(
                "{} was not checked, because its entry has a mistake.",
                text::listed(self.broken)
            )),
            _ => Some(format!(
                "{} were not checked, because their entries have mistakes.",
                text::listed(self.broken)
            )),
        });
        sentences.extend(node_addresses::keeping(&self.keeping_nodes));
        // The Peers that are delivered next have not been proved then.
        let with = self.outdated;
        let with = with.map(|it| format!("With the outdated Peers in {it}: "));
        format!("{}{}\n", with.unwrap_or_default(), sentences.join(" "))
    }
}

impl Verified<'_, '_> {
    /// Describes the pairs of joined clusters that a mesh links, and that have no declared path.
    fn pathless(&self) -> Option<String> {
        let sites = self.fabric.sites.ids();
        let sites: BTreeMap<&ClusterName, SiteId> =
            sites.map(|it| (self.fabric.site(it).cluster, it)).collect();
        let refused = self.refused.iter().filter_map(|it| {
            Some(SitePair { from: *sites.get(&it.by)?, to: *sites.get(&it.other)? })
        });
        let linked = self.verification.pairings.iter().filter(|it| it.is_linked);
        let with_paths = self.verification.with_paths();
        let pairs = refused.chain(linked.map(Pairing::pair));
        let pairs = pairs.filter(|it| {
            it.both().into_iter().all(|it| self.fabric.site(it).entry.is_joined_cluster())
        });
        let pairs = pairs.filter(|it| !with_paths.contains(it));
        let named: BTreeSet<String> = pairs
            .map(|it| {
                let mut ends = it.both().map(|it| self.fabric.site(it).cluster);
                ends.sort_unstable();
                let [one, other] = ends;
                format!("{one} and {other}")
            })
            .collect();
        let have = if named.len() == 1 { "has" } else { "have" };
        let pairs = text::count(named.len(), "pair");
        (!named.is_empty()).then(|| {
            format!(
                "{pairs} of clusters that a mesh links {have} no declared paths: {} (see `clustermesh validate`).",
                text::listed(named)
            )
        })
    }
}

/// Returns how many paths are only assumed to work, with the verb.
fn are_assumed(paths: u64) -> String {
    let verb = if paths == 1 { "is" } else { "are" };
    format!("{paths} {verb} assumed to work")
}

/// Returns the sentence about declared paths.
pub fn declared_paths(total: &Tally) -> String {
    let assumed = match total.assumed {
        0 => String::new(),
        assumed => format!(", and {}", are_assumed(assumed)),
    };
    match (total.kept, total.promised) {
        (_, 0) => "There are no declared paths to check.".to_owned(),
        (1, 1) => "The declared path works in both directions.".to_owned(),
        (kept, promised) if kept == promised => {
            format!("All {promised} declared paths work in both directions.")
        }
        (kept, promised) => {
            format!("{kept} of {promised} declared paths work in both directions{assumed}.")
        }
    }
}

/// Returns a number of expectations, of which only some are met, with its verb.
fn met(all: usize) -> String {
    let verb = if all == 1 { "is" } else { "are" };
    format!("{} {verb}", text::count(all, "expectation"))
}

/// Returns a table with an empty line before it, or an empty text without a table.
fn in_markdown(table: Option<TextTable>) -> String {
    let table = table.map(|it| format!("\n{}", it.markdown(usize::MAX)));
    table.unwrap_or_default()
}
