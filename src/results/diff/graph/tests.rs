//! Diagrams of changed links, which must fit what GitHub and GitLab draw.

use crate::changes::LinkPaths;

use super::*;

/// Two clusters, the Peers that are added, changed and removed, and the paths that are lost, ended and gained.
type Written<'a> = (&'a str, &'a str, [usize; 3], [u64; 3]);

fn drawn(links: &[Written]) -> String {
    let name = |name: &str| ClusterName::of_member(name).unwrap();
    let names: Vec<[ClusterName; 2]> = links.iter().map(|it| [name(it.0), name(it.1)]).collect();
    let links = names.iter().zip(links).map(|(names, link)| {
        let [added, changed, removed] = link.2;
        let [lost, ended, gained] = link.3;
        ChangedLink {
            clusters: names.each_ref(),
            peers: PeerCounts { added, changed, removed },
            is_cut: false,
            paths: LinkPaths { lost, ended, gained, ..LinkPaths::default() },
        }
    });
    text(&links.collect::<Vec<_>>())
}

#[test]
fn each_effect_has_its_line_and_its_colour() {
    let page = drawn(&[
        ("east", "hub", [0, 0, 2], [8, 0, 0]),
        ("hub", "west", [0, 1, 0], [0, 0, 0]),
        ("hub", "north", [1, 1, 1], [0, 1, 12]),
        ("external.laptop", "hub", [1, 0, 0], [0, 0, 4]),
    ]);
    insta::assert_snapshot!(page, @r##"

    ```mermaid
    flowchart LR
        n0["hub"] -.-|"-2 Peers, 8 paths lost"| n1["east"]
        n0 ===|"#126;1 Peer"| n2["west"]
        n0 ===|"#43;1 #126;1 -1 Peers, 1 path ended, 12 paths gained"| n3["north"]
        n0 ---|"#43;1 Peer, 4 paths gained"| n4["external.laptop"]
        linkStyle 0 stroke:#d55e00,stroke-width:3px
        linkStyle 1,2 stroke:#0072b2,stroke-width:3px
        linkStyle 3 stroke:#009e73,stroke-width:2px
    ```
    "##);
    assert_eq!(drawn(&[]), "");
}

#[test]
fn many_alike_links_are_one_line() {
    let names: Vec<String> = (1..=199).map(|it| format!("spoke-{it:03}")).collect();
    let star = names.iter().map(|it| ("hub", it.as_str(), [0, 0, 1], [0, 40, 0]));
    let mut star: Vec<Written> = star.collect();
    insta::assert_snapshot!(drawn(&star), @r##"

    ```mermaid
    flowchart LR
        n0["hub"] -.-|"each -1 Peer, 40 paths ended"| n1["199 clusters: spoke-001, spoke-002, spoke-003 and 196 more"]
        linkStyle 0 stroke:#d55e00,stroke-width:3px
    ```
    "##);
    // Of a full mesh, each is like the others.
    for (number, one) in names.iter().enumerate() {
        let others = names.iter().skip(number + 1);
        star.extend(others.map(|it| (one.as_str(), it.as_str(), [0, 0, 1], [0, 40, 0])));
    }
    insta::assert_snapshot!(drawn(&star), @r##"

    ```mermaid
    flowchart LR
        n0["200 clusters: hub, spoke-001, spoke-002 and 197 more"] -.-|"each -1 Peer, 40 paths ended"| n0
        linkStyle 0 stroke:#d55e00,stroke-width:3px
    ```
    "##);
    star.push(("east", "hub", [1, 0, 0], [0, 0, 8]));
    insta::assert_snapshot!(drawn(&star), @r##"

    ```mermaid
    flowchart LR
        n0["199 clusters: spoke-001, spoke-002, spoke-003 and 196 more"] -.-|"each -1 Peer, 40 paths ended"| n1["hub"]
        n0 -.-|"each -1 Peer, 40 paths ended"| n0
        n1 ---|"#43;1 Peer, 8 paths gained"| n2["east"]
        linkStyle 0,1 stroke:#d55e00,stroke-width:3px
        linkStyle 2 stroke:#009e73,stroke-width:2px
    ```
    "##);
}

/// 200 clusters with the longest names, all with different changes.
#[test]
fn a_diagram_fits_what_gitlab_draws() {
    let names: Vec<String> = (0..200).map(|it| format!("{it:03}{}", "x".repeat(60))).collect();
    let mut links: Vec<Written> = Vec::new();
    for (number, one) in names.iter().enumerate() {
        for other in names.iter().skip(number + 1) {
            let peers = 1_000_000 + links.len();
            let paths = 1_000_000_000 + links.len() as u64;
            links.push((one, other, [peers; 3], [paths; 3]));
        }
    }
    for links in [&links[..], &links[..300], &links[..12], &links[..1]] {
        let page = drawn(links);
        let (diagram, rest) = page.rsplit_once("```\n").unwrap();
        let diagram = diagram.strip_prefix("\n```mermaid\n").unwrap();
        assert!(diagram.chars().count() <= SIZE, "{diagram}");
        assert!(!diagram.contains(['&', '<', '`']), "{diagram}");
        let drawn = diagram.matches("===").count() + diagram.matches("-.-").count();
        assert!(0 < drawn && drawn <= LINES, "{diagram}");
        let more = rest.trim().strip_prefix("… and ");
        let more = more.map_or(0, |it| it.split(' ').next().unwrap().parse().unwrap());
        assert_eq!(drawn + more, links.len());
    }
}
