//! Graphs as flowcharts of Mermaid's, which GitHub and GitLab draw.

use std::fmt::Write as _;

use super::{GraphCluster, GraphLevel, LinkState, MOST_LINKS, MeshGraph};
use crate::report::mermaid::label;

/// The longest text that GitLab draws before a reader asks for it, in characters. GitHub draws 50,000.
const LONGEST: usize = 2000;

/// The longest text that GitHub draws, in characters.
const LONGEST_OF_GITHUB: usize = 50_000;

/// The longest part of a text that is drawn, in characters.
const DRAWN: usize = 60;

/// Returns the graph on its level if GitHub draws it, and on a level that GitLab draws too if the level is not
/// `fixed`. If there is too much of it, clusters with the same links become one, and then the links that work are left out.
pub fn mermaid(graph: &MeshGraph, is_fixed: bool) -> String {
    let limit = if is_fixed { LONGEST_OF_GITHUB } else { LONGEST };
    let levels = GraphLevel::ALL.into_iter().filter(|it| *it <= graph.level);
    for level in levels {
        let text = drawn(&graph.clone().at(level), usize::MAX, "");
        if text.len() <= limit && graph.links.len() <= MOST_LINKS {
            return text;
        }
    }
    let service = if is_fixed { "GitHub" } else { "GitLab" };
    let note = format!(
        "%% Clusters with the same links share a box: {service} draws at most {limit} characters and {MOST_LINKS} links\n"
    );
    let folded = graph.folded();
    let counts = [usize::MAX, 200, 100, 50, 20, 10, 5];
    let mut texts = counts.iter().map(|most| drawn(&folded, *most, &note));
    let fits = texts.find(|it| it.len() <= limit);
    fits.unwrap_or_else(|| drawn(&folded, 0, &note))
}

/// Returns a flowchart with the worst links, at most this many, and the clusters at their ends.
fn drawn(graph: &MeshGraph, most: usize, note: &str) -> String {
    let mut links: Vec<_> = graph.placed().collect();
    links.sort_by_key(|it| it.0.state);
    let more = links.len().saturating_sub(most);
    links.truncate(most);
    let mut text = format!("flowchart LR\n{note}");
    if let Some(origin) = &graph.origin {
        let _ = writeln!(text, "%% {}", origin.sentence());
    }
    for (place, cluster) in graph.clusters.iter().enumerate() {
        if more == 0 || links.iter().any(|it| it.1.contains(&place)) {
            draw_cluster(place, cluster, &mut text);
        }
    }
    let mut styled: Vec<(LinkState, Vec<String>)> = Vec::new();
    for (number, (link, [one, other])) in links.iter().enumerate() {
        let is_turned = link.directed()[0] != link.clusters[0];
        let [from, to] = if is_turned { [other, one] } else { [one, other] };
        let words = label(&link.label(), DRAWN);
        let _ = writeln!(text, "c{from} {}|{words}| c{to}", line(link.state));
        match styled.last_mut() {
            Some((state, numbers)) if *state == link.state => numbers.push(number.to_string()),
            _ => styled.push((link.state, vec![number.to_string()])),
        }
    }
    if 0 < more {
        let _ = writeln!(text, "more[\"and {more} more links\"]");
    }
    for (state, numbers) in styled {
        let _ = writeln!(text, "linkStyle {} stroke:{}", numbers.join(","), colour(state));
    }
    text
}

fn draw_cluster(place: usize, cluster: &GraphCluster, text: &mut String) {
    let name = label(&cluster.name, DRAWN);
    let facts = label(&cluster.facts(), DRAWN);
    let excluded = cluster.excluded().count();
    if cluster.segments.is_empty() && excluded == 0 {
        let [open, close] = if cluster.is_hub { ["[[", "]]"] } else { ["[", "]"] };
        let _ = writeln!(text, "c{place}{open}\"{name}<br/>{facts}\"{close}");
        return;
    }
    let _ = writeln!(text, "subgraph c{place}[\"{name}: {facts}\"]");
    for (number, segment) in cluster.segments.iter().enumerate() {
        let mut lines = vec![segment.leader.clone()];
        lines.extend(segment.facts());
        if segment.nodes.is_empty() && 1 < segment.node_count {
            lines.push(crate::text::count(segment.node_count, "node"));
        }
        let members = segment.nodes.iter().filter(|it| **it != segment.leader);
        lines.extend(members.cloned());
        let lines: Vec<String> = lines.iter().map(|it| label(it, DRAWN)).collect();
        let _ = writeln!(text, "c{place}s{number}[\"{}\"]", lines.join("<br/>"));
    }
    for (number, node) in cluster.excluded().enumerate() {
        let name = label(&node.name, DRAWN);
        let _ = writeln!(text, "c{place}x{number}[\"left out: {name}\"]");
    }
    text.push_str("end\n");
}

/// Returns the line of a result. Results do not differ in colour alone.
fn line(state: LinkState) -> &'static str {
    match state {
        LinkState::Works => "---",
        LinkState::Assumed | LinkState::Unproved => "-.-",
        LinkState::Fails => "x==x",
        LinkState::OneWay => "==x",
    }
}

/// Returns a colour that is seen on white and on black.
fn colour(state: LinkState) -> &'static str {
    match state {
        LinkState::Works => "#009e73",
        LinkState::Assumed => "#b07d00",
        LinkState::Fails => "#d55e00",
        LinkState::OneWay => "#b0578d",
        LinkState::Unproved => "#808080",
    }
}
