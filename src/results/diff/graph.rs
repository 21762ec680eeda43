//! Changed links as a flowchart of Mermaid's, in a form that GitHub and GitLab draw.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::changes::{ChangedLink, LinkEffect, PeerCounts};
use crate::name::ClusterName;
use crate::report::alike::{AlikeArrows, Arrow, folded};
use crate::report::mermaid::label;
use crate::text::{NAMED, count, list, listed, noun};

/// The first line.
const FRAME: &str = "flowchart LR\n";

/// The largest diagram that GitLab draws unasked, in characters. GitHub draws 50,000 characters and 500 lines.
const SIZE: usize = 2000;

/// The room for the styles, in characters.
const STYLES: usize = 250;

/// The largest number of lines that a person can follow.
const LINES: usize = 12;

/// The longest part of a name that is shown, in characters.
const NAME: usize = 25;

/// The longest part of a line's text that is shown, in characters.
const TEXT: usize = 200;

/// A flowchart that is being drawn.
#[derive(Default)]
struct Flowchart<'a> {
    text: String,
    /// The boxes, by the clusters in each.
    boxes: BTreeMap<Vec<&'a str>, usize>,
    /// The lines of each effect.
    lines: BTreeMap<LinkEffect, Vec<usize>>,
}

/// Returns the diagram as a block of code, and the number of links that are not in it; nothing if no link changes.
pub(super) fn text(links: &[ChangedLink]) -> String {
    let arrows = links.iter().flat_map(|link| {
        let [one, other] = link.clusters.map(ClusterName::as_str);
        let label = (link.effect(), effects(link));
        [(one, other), (other, one)].map(|(from, to)| Arrow { from, to, label: label.clone() })
    });
    let arrows: Vec<_> = arrows.collect();
    let mut folded = folded(&arrows);
    // Both directions of a link are alike.
    folded.retain(|it| it.from <= it.to);
    let mut ends: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for end in folded.iter().flat_map(|it| [&it.from, &it.to]) {
        *ends.entry(end.clone()).or_default() += 1;
    }
    let mut chart = Flowchart::default();
    let mut drawn = 0;
    for mut it in folded {
        // A hub is on the left of the others.
        if ends.get(&it.from) < ends.get(&it.to) {
            std::mem::swap(&mut it.from, &mut it.to);
        }
        if !chart.add(&it) {
            break;
        }
        drawn += it.links();
    }
    let mut text = chart.finish();
    let more = links.len() - drawn;
    if 0 < more {
        let _ = writeln!(text, "\n… and {}", count(more, "more link"));
    }
    text
}

impl AlikeArrows<'_, '_, (LinkEffect, String)> {
    /// Returns the number of links, each of which is one arrow or two among the same clusters.
    fn links(&self) -> usize {
        if self.from == self.to { self.number() / 2 } else { self.number() }
    }
}

impl<'a> Flowchart<'a> {
    /// Adds the line between two boxes, if there is room for it.
    fn add(&mut self, alike: &AlikeArrows<'_, 'a, (LinkEffect, String)>) -> bool {
        let (effect, what) = alike.label;
        let each = if alike.links() == 1 { "" } else { "each " };
        let what = label(&format!("{each}{what}"), TEXT);
        let form = match effect {
            LinkEffect::Lost => "-.-",
            LinkEffect::Changed => "===",
            LinkEffect::Gained => "---",
        };
        let mut boxes = self.boxes.clone();
        let [from, to] = [&alike.from, &alike.to].map(|it| drawn_box(&mut boxes, it));
        let text = format!("    {from} {form}|\"{what}\"| {to}\n");
        let number: usize = self.lines.values().map(Vec::len).sum();
        if number == LINES || SIZE < FRAME.len() + self.text.len() + text.len() + STYLES {
            return false;
        }
        self.boxes = boxes;
        self.text += &text;
        self.lines.entry(*effect).or_default().push(number);
        true
    }

    /// Returns the diagram as a block of code. Effects differ in colour and in the form of the lines.
    fn finish(self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let mut text = format!("\n```mermaid\n{FRAME}{}", self.text);
        for (effect, lines) in self.lines {
            // Colours of Okabe and Ito, which also colour-blind people tell apart, with a contrast of 3:1 to white
            // and to black.
            let style = match effect {
                LinkEffect::Lost => "stroke:#d55e00,stroke-width:3px",
                LinkEffect::Changed => "stroke:#0072b2,stroke-width:3px",
                LinkEffect::Gained => "stroke:#009e73,stroke-width:2px",
            };
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "    linkStyle {} {style}", lines.join(","));
        }
        text + "```\n"
    }
}

/// Returns how a line refers to a box: by its number, with its text if it is new.
fn drawn_box<'a>(boxes: &mut BTreeMap<Vec<&'a str>, usize>, clusters: &[&'a str]) -> String {
    let next = boxes.len();
    if let Some(number) = boxes.get(clusters) {
        return format!("n{number}");
    }
    boxes.insert(clusters.to_vec(), next);
    format!("n{next}[\"{}\"]", name(clusters))
}

/// Returns a name that is cut in the middle if it is long: many names of clusters differ at the end.
fn middle_cut(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= NAME {
        return name.to_owned();
    }
    let side = (NAME - 1) / 2;
    let (head, tail) =
        (characters.iter().take(side), characters.iter().skip(characters.len() - side));
    head.chain(&['…']).chain(tail).collect()
}

/// Returns the text of a box.
fn name(clusters: &[&str]) -> String {
    let names = clusters.iter().map(|it| label(&middle_cut(it), NAME));
    if clusters.len() <= NAMED {
        list(names)
    } else {
        format!("{}: {}", count(clusters.len(), "cluster"), listed(names))
    }
}

/// Returns what becomes of the Peers and the paths of a link, the worst first.
fn effects(link: &ChangedLink) -> String {
    let PeerCounts { added, changed, removed } = link.peers;
    let signs = [("+", added), ("~", changed), ("-", removed)].into_iter();
    let mut peers: Vec<String> =
        signs.filter(|it| 0 < it.1).map(|(sign, peers)| format!("{sign}{peers}")).collect();
    match added + changed + removed {
        0 if link.is_cut => peers.push("all Peers removed".to_owned()),
        0 => {}
        all => peers.push(noun(all, "Peer")),
    }
    let paths = [
        (link.paths.lost, "lost"),
        (link.paths.no_longer_proved, "no longer proved"),
        (link.paths.interrupted, "interrupted"),
        (link.paths.opened, "opened"),
        (link.paths.ended, "ended"),
        (link.paths.repaired, "repaired"),
        (link.paths.gained, "gained"),
    ];
    let paths = paths.into_iter().filter(|it| 0 < it.0);
    let paths = paths.map(|(paths, what)| format!("{} {what}", count(paths, "path")));
    let peers = Some(peers.join(" ")).filter(|it| !it.is_empty());
    list(peers.into_iter().chain(paths))
}

#[cfg(test)]
mod tests;
