//! Outages: the declared paths of others that end, for people.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clustermesh::diagnostic::escaped;
use clustermesh::outage::{FleetPart, Harm, LostPaths, OutageObstacle, OutageReport, Survey};
use clustermesh::packet::messages;
use clustermesh::proof::reach::AddressBlock;
use clustermesh::report::table::TextTable;
use clustermesh::report::width::Width;
use clustermesh::text;

use super::{SHOWN, Verified};

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

/// The results of all outages that were tried.
#[derive(Default)]
pub(crate) struct ProvedOutages {
    /// The parts that people named, lost together.
    pub(crate) named: Option<ProvedOutage>,
    /// Every single part.
    pub(crate) survey: Option<Survey>,
}

/// The parts that people named, and what their loss does.
pub(crate) struct ProvedOutage {
    /// The parts.
    pub(crate) parts: Vec<FleetPart>,
    /// The effect.
    pub(crate) report: Result<OutageReport, OutageObstacle>,
    /// The effect of the next render, if paths end and there is a plan.
    pub(crate) next_render: Option<NextRender>,
}

/// The effect of the next render after an outage.
pub(crate) struct NextRender {
    /// The number of ended paths that it restores.
    pub(crate) restored: Result<u64, OutageObstacle>,
    /// The rules of the guards that stop it until a person accepts the losses.
    pub(crate) guards: Vec<&'static str>,
}

impl Verified<'_, '_> {
    /// Returns the results for a person.
    pub(super) fn outage_list(&self, width: Width) -> String {
        let mut text = String::new();
        for ([head, rest], table) in self.outage_sections() {
            let table = table.map(|it| it.text("  ", width));
            let rest = if rest.is_empty() { rest } else { rest + "\n" };
            text.push_str(&width.wrapped(0, &(head + "\n")));
            text.push_str(&table.unwrap_or_default());
            text.push_str(&width.wrapped(0, &rest));
            text.push('\n');
        }
        text
    }

    /// Returns the results in Markdown.
    pub(super) fn outage_markdown(&self) -> String {
        let mut text = String::new();
        for ([head, rest], table) in self.outage_sections() {
            let table = table.map(|it| format!("\n{}", it.markdown(usize::MAX)));
            let _ = write!(text, "\n{head}\n{}\n{rest}\n", table.unwrap_or_default());
        }
        text
    }

    /// Returns the sentences before and behind each table, with the table.
    fn outage_sections(&self) -> Vec<([String; 2], Option<TextTable>)> {
        let mut sections = Vec::new();
        let outages = self.outages;
        if let Some(outage) = outages.and_then(|it| it.named.as_ref()) {
            sections.push((self.named_outage(outage), self.ended_table(outage)));
        }
        if let Some(survey) = outages.and_then(|it| it.survey.as_ref()) {
            sections.push((self.surveyed(survey), self.harm_table(&survey.harmful)));
        }
        sections
    }

    /// Returns the sentence before the table of a named outage, and those behind it.
    fn named_outage(&self, outage: &ProvedOutage) -> [String; 2] {
        let parts = text::listed(outage.parts.iter().map(|it| self.part(it)));
        let without = format!("Without {parts}");
        match &outage.report {
            Err(obstacle) => [
                format!("{without}: not examined, because {}.", obstacle.phrase()),
                String::new(),
            ],
            Ok(report) => {
                let ended = report.ended.iter().map(LostPaths::count).sum::<u64>();
                let paths = text::count(ended, "declared path");
                let head = if ended == 0 {
                    format!("{without}, no declared path of other nodes ends.")
                } else {
                    let verb = if ended == 1 { "ends" } else { "end" };
                    format!("{without}, {paths} of other nodes {verb} until the next render:")
                };
                [head, self.consequences(report, ended, outage)]
            }
        }
    }

    /// Returns the sentence about external peers, whose hosts keep their configuration when clusters get other Peers.
    fn hosts(&self, report: &OutageReport, next: &NextRender) -> Option<String> {
        let ended = report
            .ended
            .iter()
            .flat_map(|it| [it.pair.from, it.pair.to]);
        let clusters: BTreeSet<String> = ended.map(|it| self.cluster(it)).collect();
        let hosts = clusters
            .iter()
            .filter_map(|it| it.strip_prefix("external."));
        let commands: Vec<String> = hosts
            .map(|it| format!("clustermesh wireguard {it}"))
            .collect();
        let is_restored = next.restored.as_ref().is_ok_and(|it| 0 < *it);
        (is_restored && !commands.is_empty()).then(|| {
            format!(
                "Paths of external peers also need the new output of {} on their hosts.",
                text::quoted(commands)
            )
        })
    }

    /// Returns the sentences behind the table of a named outage.
    fn consequences(&self, report: &OutageReport, ended: u64, outage: &ProvedOutage) -> String {
        let mut sentences = Vec::new();
        if let Some(next) = &outage.next_render {
            sentences.extend(restored(next, ended));
            sentences.extend(self.hosts(report, next));
        }
        if 0 < report.own {
            sentences.push(format!("Of their own declared paths, {} end.", report.own));
        }
        sentences.join(" ")
    }

    fn ended_table(&self, outage: &ProvedOutage) -> Option<TextTable> {
        let report = outage.report.as_ref().ok()?;
        let mut table = TextTable::new(["FROM", "TO", ">PATHS", "KIND", "EXAMPLE"]);
        for ended in report.ended.iter().take(SHOWN) {
            let kinds = ended.classes.keys();
            table.add(vec![
                self.cluster(ended.pair.from),
                self.cluster(ended.pair.to),
                ended.count().to_string(),
                text::list(kinds.map(|(from, to)| format!("{from} → {to}"))),
                self.example(ended)
                    .map(|it| it.join(" → "))
                    .unwrap_or_default(),
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
        let parts = parts.replace(
            "node, location or clusters",
            "nodes, locations and clusters",
        );
        let head = match survey.harmful.len() {
            0 if survey.unexamined.is_empty() => {
                format!("All declared paths of other nodes survive the loss of any one of {parts}.")
            }
            0 => format!("No known loss among {parts} ends declared paths of other nodes."),
            harmful => format!(
                "The loss of {harmful} of {parts} ends declared paths of other nodes until the next render:"
            ),
        };
        let unexamined = survey.unexamined.iter().map(|(part, obstacle)| {
            format!(
                "{} was not examined, because {}.",
                self.part(part),
                obstacle.phrase()
            )
        });
        let mut sentences: Vec<String> = unexamined.take(SHOWN).collect();
        let more = survey.unexamined.len().saturating_sub(SHOWN);
        if 0 < more {
            sentences.push(format!(
                "{} were not examined either.",
                text::count(more, "more part")
            ));
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

    /// Returns the name of a part.
    pub(super) fn part(&self, part: &FleetPart) -> String {
        escaped(&part.name(self.fabric), NAMED)
    }

    /// Returns the sender and the receiver of one of some paths.
    pub(super) fn example(&self, ended: &LostPaths) -> Option<[String; 2]> {
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
        Err(obstacle) => format!(
            "It is not known what a render restores, because {}",
            obstacle.phrase()
        ),
    };
    if next.guards.is_empty() {
        return vec![format!("{restored}, and no loss limit stops it.")];
    }
    let guards = text::quoted(&next.guards);
    let joined = if next.restored == Ok(0) { "and" } else { "but" };
    vec![format!(
        "{restored}, {joined} a person must accept the losses first ({guards})."
    )]
}
