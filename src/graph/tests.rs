use std::collections::BTreeSet;

use proptest::prelude::*;

use super::mermaid::mermaid;
use super::svg::svg;
use super::*;
use crate::report::origin::ResultOrigin;

/// A name with the syntax of everything that we write.
const HOSTILE: &str = "<script>\"];'&\\ %%{init}%% --> {{x}} `x` #quot;\u{ffff}";

fn cluster(name: String, nodes: usize) -> GraphCluster {
    let names = (0..nodes).map(|it| format!("n{it}{HOSTILE}"));
    let nodes = names.map(|name| GraphNode {
        name,
        role: GraphRole::Leader,
        location: String::new(),
        pod_cidrs: vec!["10.0.0.0/24".to_owned()],
        internal_ip: None,
        reason: None,
    });
    let nodes: Vec<GraphNode> = nodes.collect();
    let segments = nodes.iter().map(|it| GraphSegment {
        leader: it.name.clone(),
        location: String::new(),
        endpoint: None,
        is_behind_nat: true,
        anchors: vec!["10.9.0.0/16".to_owned(), "10.8.0.0/16".to_owned()],
        ranges: Vec::new(),
        node_count: 1,
        nodes: vec![it.name.clone()],
    });
    GraphCluster {
        name,
        kind: GraphClusterKind::Cluster,
        state: State::Joined,
        is_hub: false,
        is_unread: false,
        meshes: vec!["prod".to_owned()],
        granularity: Some("Full".to_owned()),
        node_count: nodes.len(),
        excluded_count: 0,
        segment_count: nodes.len(),
        ranges: Vec::new(),
        gets: Vec::new(),
        segments: segments.collect(),
        nodes,
    }
}

/// Returns a graph of clusters with some nodes each, and links with these numbers of failing and assumed paths of four.
fn graph(clusters: usize, nodes: usize, links: &[(usize, usize, u64, u64)]) -> MeshGraph {
    let name = |it: usize| format!("c{it:03}");
    let links = links.iter().map(|&(one, other, failing, assumed)| {
        let back = ProvedPaths { declared: 4, working: 4, assumed: 0 };
        let there = ProvedPaths { declared: 4, working: 4 - failing - assumed, assumed };
        GraphLink {
            clusters: [name(one), name(other)],
            state: LinkState::of(there, back),
            there,
            back,
        }
    });
    MeshGraph {
        origin: None,
        level: GraphLevel::Nodes,
        clusters: (0..clusters).map(|it| cluster(name(it), nodes)).collect(),
        links: links.collect(),
    }
}

/// All pairs of clusters.
fn full(clusters: usize) -> Vec<(usize, usize, u64, u64)> {
    let pairs = (0..clusters).flat_map(|one| (one + 1..clusters).map(move |it| (one, it, 0, 0)));
    pairs.collect()
}

fn focus(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&it| it.to_owned()).collect()
}

#[test]
fn a_link_is_what_is_proved_in_both_directions() {
    let paths = |working, assumed| ProvedPaths { declared: 4, working, assumed };
    let nothing = ProvedPaths::default();
    for (there, back, state) in [
        (paths(4, 0), paths(4, 0), LinkState::Works),
        (paths(4, 0), nothing, LinkState::Works),
        (paths(3, 1), paths(4, 0), LinkState::Assumed),
        (paths(3, 0), paths(4, 0), LinkState::OneWay),
        (paths(4, 0), paths(0, 0), LinkState::OneWay),
        (paths(3, 0), paths(3, 1), LinkState::OneWay),
        (paths(3, 0), paths(3, 0), LinkState::Fails),
        (nothing, nothing, LinkState::Unproved),
    ] {
        assert_eq!(LinkState::of(there, back), state, "{there:?} {back:?}");
    }
}

#[test]
fn the_default_level_has_few_boxes() {
    for (clusters, nodes, level) in
        [(6, 10, GraphLevel::Nodes), (6, 11, GraphLevel::Clusters), (61, 1, GraphLevel::Clusters)]
    {
        let shown = graph(clusters, nodes, &[]).shown(&focus(&[]), None);
        assert_eq!(shown.level, level, "{clusters} clusters with {nodes} nodes");
        assert_eq!(shown.clusters[0].segments.is_empty(), level == GraphLevel::Clusters);
        assert_eq!(shown.clusters[0].node_count, nodes);
    }
}

#[test]
fn a_cluster_is_shown_with_those_that_it_is_linked_to() {
    let shown = graph(4, 2, &[(0, 1, 0, 0), (1, 2, 0, 0), (2, 3, 0, 0)]);
    let shown = shown.shown(&focus(&["c000"]), Some(GraphLevel::Nodes));
    let names: Vec<(&str, usize)> =
        (shown.clusters.iter()).map(|it| (&*it.name, it.segments.len())).collect();
    assert_eq!(names, [("c000", 2), ("c001", 0)]);
    assert_eq!(shown.links.len(), 1);
}

#[test]
fn clusters_with_the_same_links_are_folded() {
    let mut links: Vec<_> = (1..9).map(|it| (0, it, 0, 0)).collect();
    links[7].2 = 1;
    let mut hub = graph(9, 1, &links);
    hub.clusters[0].is_hub = true;
    let folded = |graph: &MeshGraph| -> Vec<String> {
        let folded = graph.folded();
        let names = folded.clusters.iter().map(|it| it.name.clone());
        let links = folded.links.iter().map(|it| {
            let [one, other] = &it.clusters;
            format!("{one} - {other}: {}", it.label())
        });
        names.chain(links).collect()
    };
    insta::assert_snapshot!(folded(&hub).join("\n"), @"
    c000
    c001 and 6 more
    c008
    c000 - c001 and 6 more: 56 paths work
    c000 - c008: 1 of 8 fail
    ");
    let mut broken = full(5);
    broken[9].3 = 2;
    insta::assert_snapshot!(folded(&graph(5, 1, &broken)).join("\n"), @"
    c000 and 2 more
    c003
    c004
    c000 and 2 more - c000 and 2 more: 24 paths work
    c000 and 2 more - c003: 24 paths work
    c000 and 2 more - c004: 24 paths work
    c003 - c004: 2 of 8 assumed
    ");
}

#[test]
fn many_links_are_a_matrix() {
    let lines = svg(&graph(8, 1, &full(8)));
    assert_eq!(lines.matches("<path class=\"link works\"").count(), 28 + 1);
    assert!(!lines.contains("class=\"cell"));
    let mut pairs = full(9);
    pairs[0].2 = 1;
    pairs[1].3 = 1;
    let matrix = svg(&graph(9, 1, &pairs).at(GraphLevel::Clusters));
    assert!(!matrix.contains("class=\"link"));
    // One cell fails, one is assumed, and the others are joined; the legend has one of each.
    assert_eq!(matrix.matches("class=\"cell fails\"").count(), 2);
    assert_eq!(matrix.matches("class=\"cell assumed\"").count(), 2);
    assert_eq!(matrix.matches("class=\"mark\"").count(), 3);
}

#[test]
fn a_hub_is_drawn_as_a_list_and_not_as_an_empty_square() {
    let mut links: Vec<_> = (1..=100).map(|it| (0, it, 0, 0)).collect();
    links[41].2 = 1;
    let mut hub = graph(101, 1, &links);
    hub.clusters[0].is_hub = true;
    let drawn = svg(&hub.clone().at(GraphLevel::Clusters));
    assert!(!drawn.contains("class=\"cell"));
    let texts: Vec<&str> = drawn.split("</text>").filter_map(|it| it.rsplit('>').next()).collect();
    for name in (0..=100).map(|it| format!("c{it:03}")) {
        let is_named = texts.iter().any(|it| it.split(' ').any(|it| it == name));
        assert!(is_named, "{name} is missing");
    }
    assert!(texts.contains(&"c001 and 98 more") && texts.contains(&"1 of 8 fail"), "{texts:?}");
    // Two hubs with the same links are one box, and details are above the list.
    let links: Vec<_> = (2..40).flat_map(|it| [(0, it, 0, 0), (1, it, 0, 0)]).collect();
    let drawn = svg(&graph(40, 1, &links));
    assert!(!drawn.contains("class=\"cell"));
    assert_eq!(drawn.matches("<path class=\"link works\"").count(), 1 + 1);
    assert_eq!(drawn.matches("<g ").count(), drawn.matches("</g>").count());
}

#[test]
fn texts_name_their_origin_and_what_they_leave_out() {
    let mut graph = graph(2, 1, &[(0, 1, 0, 0)]);
    graph.origin =
        Some(ResultOrigin { meshes: vec!["prod".to_owned()], ..ResultOrigin::default() });
    let origin = format!("Mesh prod; clustermesh {}", crate::report::origin::VERSION);
    let text = mermaid(&graph, true);
    assert_eq!(text.lines().nth(1), Some(&*format!("%% {origin}")));
    assert!(dot::dot(&graph).contains(&format!("  label=\"{origin}\"; labelloc=b;")));
    let crowded = self::graph(60, 1, &full(60));
    let text = mermaid(&crowded, true);
    assert!(text.starts_with("flowchart LR\n%% Clusters with the same links share a box: GitHub"));
    assert!(dot::dot(&crowded).starts_with("// Clusters with the same links share a box"));
}

#[test]
fn a_graph_is_drawn_the_same_each_time() {
    let graph = graph(7, 3, &full(7));
    let first = svg(&graph);
    for _ in 0..5 {
        assert!(svg(&graph) == first);
    }
}

#[test]
fn nothing_of_a_name_is_syntax() {
    let mut graph = graph(2, 3, &[(0, 1, 4, 0)]);
    for it in &mut graph.clusters {
        it.name += HOSTILE;
    }
    for link in &mut graph.links {
        link.clusters.iter_mut().for_each(|it| *it += HOSTILE);
    }
    let drawn = svg(&graph);
    let syntax = ["<script", "'&\\", "\u{ffff}"];
    assert!(syntax.iter().all(|it| !drawn.contains(it)));
    let mermaid = mermaid(&graph, true);
    let syntax = ["<script", "%%", "{{", "`", "--> {"];
    assert!(syntax.iter().all(|it| !mermaid.contains(it)), "{mermaid}");
    for line in dot::dot(&graph).lines() {
        let quotes = line.replace(r"\\", "").replace("\\\"", "");
        assert_eq!(quotes.matches('"').count() % 2, 0, "{line}");
    }
}

proptest! {
    #[test]
    fn mermaid_fits_and_shows_the_worst(
        clusters in 2_usize..120,
        states in proptest::collection::vec((0_u64..3, 0_u64..2), 1..400),
    ) {
        let pairs = full(clusters).into_iter().zip(states);
        let links = pairs.map(|((one, other, ..), (failing, assumed))| (one, other, failing, assumed));
        let links: Vec<_> = links.collect();
        let graph = graph(clusters, 2, &links);
        let text = mermaid(&graph, false);
        prop_assert!(text.len() <= 2000, "{} characters", text.len());
        if let Some(worst) = graph.states().next() {
            let stroke = text.matches("linkStyle").count();
            prop_assert!(0 < stroke && (worst == LinkState::Works || !text.contains("linkStyle 0 stroke:#009e73")));
        }
    }
}
