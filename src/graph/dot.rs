//! Graphs in the DOT language, for Graphviz.

use std::fmt::Write as _;

use super::{GraphCluster, LinkState, MOST_LINKS, MeshGraph};

/// Returns the graph. If it has more links than Graphviz draws in a minute, clusters with the same links become one.
pub fn dot(graph: &MeshGraph) -> String {
    if graph.links.len() <= MOST_LINKS {
        return drawn(graph, "");
    }
    let note = format!(
        "// Clusters with the same links share a box, because Graphviz draws {} links for minutes.\n",
        graph.links.len()
    );
    drawn(&graph.folded(), &note)
}

fn drawn(graph: &MeshGraph, note: &str) -> String {
    let mut text =
        format!("{note}graph mesh {{\n  compound=true;\n  rankdir=LR;\n  node [shape=box];\n");
    if let Some(origin) = &graph.origin {
        let _ =
            writeln!(text, "  label={}; labelloc=b; fontsize=10;", quoted(&[&origin.sentence()]));
    }
    for (place, cluster) in graph.clusters.iter().enumerate() {
        draw_cluster(place, cluster, &mut text);
    }
    for (link, [one, other]) in graph.placed() {
        let is_turned = link.directed()[0] != link.clusters[0];
        let [from, to] = if is_turned { [other, one] } else { [one, other] };
        let end = |place: usize, side: &str| match graph.clusters.get(place) {
            Some(it) if is_framed(it) => {
                (format!("c{place}n0"), format!(", {side}=cluster_{place}"))
            }
            _ => (format!("c{place}"), String::new()),
        };
        let ((from, tail), (to, head)) = (end(from, "ltail"), end(to, "lhead"));
        let _ = writeln!(
            text,
            "  {from} -- {to} [label={}, {}{tail}{head}];",
            quoted(&[&link.label()]),
            style(link.state),
        );
    }
    text.push_str("}\n");
    text
}

/// Returns whether a cluster is drawn as a frame around its segments.
fn is_framed(cluster: &GraphCluster) -> bool {
    !cluster.segments.is_empty() || cluster.excluded().next().is_some()
}

fn draw_cluster(place: usize, cluster: &GraphCluster, text: &mut String) {
    let facts = cluster.facts();
    let title = quoted(&[&cluster.name, &facts]);
    let width = if cluster.is_hub { 3 } else { 1 };
    if !is_framed(cluster) {
        let _ = writeln!(text, "  c{place} [label={title}, penwidth={width}];");
        return;
    }
    let _ =
        writeln!(text, "  subgraph cluster_{place} {{\n    label={title};\n    penwidth={width};");
    let mut boxes = Vec::new();
    for segment in &cluster.segments {
        let facts = segment.facts();
        let mut lines: Vec<&str> = vec![&segment.leader];
        lines.extend(facts.iter().map(String::as_str));
        let members = segment.nodes.iter().filter(|it| **it != segment.leader);
        lines.extend(members.map(String::as_str));
        let style = if segment.is_behind_nat { ", style=dashed" } else { "" };
        boxes.push(format!("label={}{style}", quoted(&lines)));
    }
    for node in cluster.excluded() {
        let reason = node.reason.as_deref().unwrap_or_default();
        let label = quoted(&[&node.name, "left out", reason]);
        boxes.push(format!("label={label}, style=dotted"));
    }
    for (number, it) in boxes.iter().enumerate() {
        let _ = writeln!(text, "    c{place}n{number} [{it}];");
    }
    text.push_str("  }\n");
}

/// Returns lines as one string of DOT.
fn quoted(lines: &[&str]) -> String {
    let lines = lines.iter().map(|it| it.replace('\\', r"\\").replace('"', "\\\""));
    format!("\"{}\"", lines.collect::<Vec<_>>().join("\\n"))
}

fn style(state: LinkState) -> &'static str {
    match state {
        LinkState::Works => "color=\"#009e73\"",
        LinkState::Assumed => "color=\"#b07d00\", style=dashed",
        LinkState::Fails => "color=\"#d55e00\", style=dotted, penwidth=4",
        LinkState::OneWay => "color=\"#b0578d\", style=dashed, penwidth=3, dir=forward",
        LinkState::Unproved => "color=\"#808080\", style=dotted",
    }
}
