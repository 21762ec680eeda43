//! Outages: the declared paths of others that end.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::agent::fabric::{Fabric, SiteId};
use crate::diagnostic::escaped;
use crate::outage::{FleetPart, Harm, LostPaths, OutageObstacle, OutageReport, Survey};
use crate::packet::messages;
use crate::proof::reach::AddressBlock;
use crate::proof::verify::Tally;
use crate::report::json::JsonDocument;
use crate::report::markdown::prose;
use crate::report::page::PageForm;
use crate::report::table::TextTable;
use crate::report::width::Width;
use crate::results::findings::markdown::COMMENT;
use crate::results::forms::ResultForms;
use crate::text;

use crate::results::verify::declared_paths;

pub mod json;

/// The number of parts and of pairs of clusters that are shown.
const SHOWN: usize = 30;

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

/// The losses that were tried, and what they point into.
pub struct LossProof<'a, 'f> {
    /// A line for people about the mesh and the Peers.
    pub basis: String,
    /// The clusters.
    pub fabric: &'a Fabric<'f>,
    /// The paths without a loss.
    pub total: Tally,
    /// The losses.
    pub tried: &'a TriedLosses,
}

/// The losses that were tried.
pub enum TriedLosses {
    /// The parts that people named, lost together.
    Together(PartsLoss),
    /// Every single part.
    Single(Survey),
}

/// The parts that people named, and what their loss does.
pub struct PartsLoss {
    /// The parts.
    pub parts: Vec<FleetPart>,
    /// The effect.
    pub report: Result<OutageReport, OutageObstacle>,
    /// The effect of the next render, if paths end and there is a plan.
    pub next_render: Option<NextRender>,
}

/// The effect of the next render after an outage.
pub struct NextRender {
    /// The number of ended paths that it restores.
    pub restored: Result<u64, OutageObstacle>,
    /// The rules of the guards that stop it until a person accepts the losses.
    pub guards: Vec<&'static str>,
}

impl ResultForms for LossProof<'_, '_> {
    fn page(&self, form: PageForm) -> String {
        match form {
            PageForm::Terminal(width) => self.human(width),
            PageForm::Markdown => self.markdown(),
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(json::written(self)).text()
    }
}

impl LossProof<'_, '_> {
    fn human(&self, width: Width) -> String {
        let ([head, rest], table) = self.section();
        let mut text = format!("{}\n\n{}", self.basis, width.wrapped(0, &(head + "\n")));
        text.push_str(&table.map_or_else(String::new, |it| it.text("  ", width)));
        if !rest.is_empty() {
            text.push_str(&width.wrapped(0, &(rest + "\n")));
        }
        text.push('\n');
        text.push_str(&width.wrapped(0, &(self.today() + "\n")));
        text
    }

    fn markdown(&self) -> String {
        let ([head, rest], table) = self.section();
        let mut text = format!("### clustermesh outage\n\n{}\n", prose(&head));
        if let Some(table) = table {
            let _ = write!(text, "\n{}", table.markdown(COMMENT));
        }
        for part in [rest, self.today()].iter().filter(|it| !it.is_empty()) {
            let _ = write!(text, "\n{}\n", prose(part));
        }
        text
    }

    /// Returns the sentence about the paths without a loss.
    fn today(&self) -> String {
        declared_paths(&self.total)
    }

    /// Returns whether there are paths that can break.
    fn any_work(&self) -> bool {
        0 < self.total.kept + self.total.assumed
    }

    /// Returns the sentences before and behind the table, with the table.
    fn section(&self) -> ([String; 2], Option<TextTable>) {
        match self.tried {
            TriedLosses::Together(loss) => (self.named_outage(loss), self.ended_table(loss)),
            TriedLosses::Single(survey) => {
                (self.surveyed(survey), self.harm_table(&survey.harmful))
            }
        }
    }

    /// Returns the sentence before the table of a named outage, and those behind it.
    fn named_outage(&self, outage: &PartsLoss) -> [String; 2] {
        let parts = text::listed(outage.parts.iter().map(|it| format!("`{}`", self.part(it))));
        let without = format!("Without {parts}");
        match &outage.report {
            Err(obstacle) => {
                [format!("{without}: not examined, because {}.", obstacle.phrase()), String::new()]
            }
            Ok(report) => {
                let ended = report.ended.iter().map(LostPaths::count).sum::<u64>();
                let paths = text::count(ended, "declared path");
                let head = if !self.any_work() {
                    format!("{without}, no declared path works, as before.")
                } else if ended == 0 {
                    format!("{without}, no declared path of other nodes breaks.")
                } else {
                    let verb = if ended == 1 { "breaks" } else { "break" };
                    format!("{without}, {paths} of other nodes {verb} until the next render:")
                };
                [head, self.consequences(report, ended, outage)]
            }
        }
    }

    /// Returns the sentence about external peers, whose hosts keep their configuration when clusters get other Peers.
    fn hosts(&self, report: &OutageReport, next: &NextRender) -> Option<String> {
        let ended = report.ended.iter().flat_map(|it| [it.pair.from, it.pair.to]);
        let clusters: BTreeSet<String> = ended.map(|it| self.cluster(it)).collect();
        let hosts = clusters.iter().filter_map(|it| it.strip_prefix("external."));
        let commands: Vec<String> = hosts.map(|it| format!("clustermesh wireguard {it}")).collect();
        let is_restored = next.restored.as_ref().is_ok_and(|it| 0 < *it);
        (is_restored && !commands.is_empty()).then(|| {
            format!(
                "Paths of external peers also need the new output of {} on their hosts.",
                text::quoted(commands)
            )
        })
    }

    /// Returns the sentences behind the table of a named outage.
    fn consequences(&self, report: &OutageReport, ended: u64, outage: &PartsLoss) -> String {
        let mut sentences = Vec::new();
        if let Some(next) = &outage.next_render {
            sentences.extend(restored(next, ended));
            sentences.extend(self.hosts(report, next));
        }
        if 0 < report.own {
            sentences.push(format!(
                "Of the declared paths of the lost nodes themselves, {} break.",
                report.own
            ));
        }
        sentences.join(" ")
    }

    fn ended_table(&self, outage: &PartsLoss) -> Option<TextTable> {
        let report = outage.report.as_ref().ok()?;
        let mut table = TextTable::new(["FROM", "TO", ">PATHS", "KIND", "EXAMPLE"]);
        for ended in report.ended.iter().take(SHOWN) {
            let kinds = ended.classes.keys();
            table.add(vec![
                self.cluster(ended.pair.from),
                self.cluster(ended.pair.to),
                ended.count().to_string(),
                text::list(kinds.map(|(from, to)| format!("{from} → {to}"))),
                self.example(ended).map(|it| it.join(" → ")).unwrap_or_default(),
            ]);
        }
        let more = report.ended.len().saturating_sub(SHOWN);
        if 0 < more {
            table.add(vec![format!("… and {}", text::count(more, "more pair"))]);
        }
        (!report.ended.is_empty()).then_some(table)
    }

    /// Returns the sentence before the table of single parts, and those behind it.
    fn surveyed(&self, survey: &Survey) -> [String; 2] {
        let parts = text::count(survey.parts, "node, location or cluster");
        let parts = parts.replace("node, location or clusters", "nodes, locations and clusters");
        let head = match survey.harmful.len() {
            0 if survey.parts == 0 => {
                "No loss was tried, because no node has declared paths.".to_owned()
            }
            0 if !self.any_work() => {
                "No declared path works now, so no loss breaks one: correct what \
                `clustermesh verify` reports first."
                    .to_owned()
            }
            0 if survey.unexamined.is_empty() => {
                let all =
                    if self.total.kept == self.total.promised { "" } else { " that work now" };
                format!(
                    "All declared paths of other nodes{all} survive the loss of any one of {parts}."
                )
            }
            0 => format!("No known loss among {parts} breaks declared paths of other nodes."),
            harmful => format!(
                "The loss of {harmful} of {parts} breaks declared paths of other nodes until the next render:"
            ),
        };
        let unexamined = survey.unexamined.iter().map(|(part, obstacle)| {
            format!("{} was not examined, because {}.", self.part(part), obstacle.phrase())
        });
        let mut sentences: Vec<String> = unexamined.take(SHOWN).collect();
        let more = survey.unexamined.len().saturating_sub(SHOWN);
        if 0 < more {
            sentences.push(format!("{} were not examined either.", text::count(more, "more part")));
        }
        [head, sentences.join("\n")]
    }

    fn harm_table(&self, harmful: &[Harm]) -> Option<TextTable> {
        let mut table = TextTable::new(["WITHOUT", ">PATHS", "BETWEEN", "EXAMPLE"]);
        for Harm { part, result } in harmful.iter().take(SHOWN) {
            let pairs = text::count(result.ended.len(), "pair");
            let first = result.ended.first();
            let example = first.and_then(|it| self.example(it));
            table.add(vec![
                self.part(part),
                result.paths().to_string(),
                format!("{pairs} of clusters"),
                example.map(|it| it.join(" → ")).unwrap_or_default(),
            ]);
        }
        let more = harmful.len().saturating_sub(SHOWN);
        if 0 < more {
            let more = text::count(more, "more part");
            table.add(vec![format!("… and {more}")]);
        }
        (!harmful.is_empty()).then_some(table)
    }

    fn cluster(&self, site: SiteId) -> String {
        self.fabric.site(site).cluster.to_string()
    }

    /// Returns the name of a part.
    fn part(&self, part: &FleetPart) -> String {
        escaped(&part.name(self.fabric), NAMED)
    }

    /// Returns the sender and the receiver of one of some paths.
    fn example(&self, ended: &LostPaths) -> Option<[String; 2]> {
        let [sender, receiver] = ended.example.as_ref()?;
        let (from, to) = (ended.pair.from, ended.pair.to);
        let end = |site, it: &AddressBlock| messages::end(self.fabric, site, it.owner, it.span);
        Some([end(from, sender), end(to, receiver)])
    }
}

/// Returns what the next render restores, and what stops it.
fn restored(next: &NextRender, ended: u64) -> Vec<String> {
    let restored = match next.restored {
        Ok(0) => "A render after that restores none of them".to_owned(),
        Ok(restored) if restored == ended => "A render after that restores all of them".to_owned(),
        Ok(restored) => format!("A render after that restores {restored} of them"),
        Err(obstacle) => {
            format!("It is not known what a render restores, because {}", obstacle.phrase())
        }
    };
    if next.guards.is_empty() {
        return vec![format!("{restored}, and no loss limit stops it.")];
    }
    let guards = text::quoted(&next.guards);
    let joined = if next.restored == Ok(0) { "and" } else { "but" };
    vec![format!("{restored}, {joined} a person must accept the losses first ({guards}).")]
}
