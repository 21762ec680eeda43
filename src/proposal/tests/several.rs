//! Ranges of several clusters.

use super::*;

fn many(count: usize, nodes: impl Fn(u8) -> Vec<Node>) -> Result<Proposal, Vec<Obstacle>> {
    let snapshots = (0..count).map(|number| {
        let name = format!("c{number:02}").parse().unwrap();
        Snapshot::new(name, nodes(u8::try_from(number).unwrap())).unwrap()
    });
    Proposal::new("prod".parse().unwrap(), &snapshots.collect::<Vec<_>>())
}

/// All clusters have the default ranges of k3s and Kilo. After all proposals are followed, none is left.
#[test]
fn clusters_with_the_same_ranges_get_disjoint_ones_each() {
    let default = |cluster: u8| {
        (1..=3).map(move |number| {
            let mut node = node(cluster, number);
            node.pod_cidrs =
                vec![format!("10.42.{number}.0/24"), format!("fd00:42:0:{number}::/64")];
            annotate(&mut node, "wireguard-ip", &format!("10.4.0.{number}/16"));
            node
        })
    };
    for count in [2, 3, 30] {
        let obstacles = many(count, |it| default(it).collect()).unwrap_err();
        let moved: Vec<(String, Cidr)> = obstacles
            .iter()
            .map(|it| match it {
                Obstacle::Overlap { moves, stays, free } => {
                    assert_eq!((stays.cluster.as_str(), stays.cidr), ("c00", moves.cidr));
                    let free = free.unwrap();
                    assert_eq!(free.family(), moves.cidr.family());
                    (moves.cluster.to_string(), free)
                }
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(moved.len(), 3 * (count - 1));
        let mut all: Vec<Cidr> =
            ["10.42.0.0/16", "fd00:42::/48", "10.4.0.0/16"].map(|it| it.parse().unwrap()).into();
        for (_, range) in &moved {
            assert!(!all.iter().any(|it| it.overlaps(*range)), "{range}");
            all.push(*range);
        }
        let proposal = many(count, |it| {
            let own: Vec<Cidr> = moved
                .iter()
                .filter(|(cluster, _)| *cluster == format!("c{it:02}"))
                .map(|it| it.1)
                .collect();
            let mut nodes: Vec<Node> = default(it).collect();
            for (number, node) in (1..).zip(&mut nodes) {
                if let [first, second, subnet] = own.as_slice() {
                    let within = |range: &Cidr, at: &str| range.to_string().replace(at, "");
                    node.pod_cidrs = vec![
                        format!("{}.{number}.0/24", within(first, ".0.0/16")),
                        format!("{}:0:{number}::/64", within(second, "::/48")),
                    ];
                    annotate(
                        node,
                        "wireguard-ip",
                        &format!("{}.0.{number}/16", within(subnet, ".0.0/16")),
                    );
                }
            }
            nodes
        });
        assert_eq!(proposal.unwrap().clusters.len(), count);
    }
}

/// More than twenty pairs share a /16, which none of them needs.
#[test]
fn all_ranges_that_share_a_16_are_narrowed() {
    let shared = |cluster: u8| {
        let mut nodes = nodes(cluster);
        for (number, node) in (0..).zip(&mut nodes) {
            node.pod_cidrs = vec![format!("10.1.{}.0/24", 4 * cluster + number)];
        }
        nodes
    };
    let proposal = many(30, shared).unwrap();
    let ranges = proposal.clusters.iter().flat_map(|it| &it.pods);
    assert!(ranges.clone().all(|it| it.cidr.prefix_length() == 22));
    assert_eq!(ranges.count(), 30);
}

/// Another cluster would leave it out, with a notice and nothing else.
#[test]
fn a_family_that_no_other_cluster_routes_is_not_proposed() {
    let dual = |cluster: u8| {
        let mut nodes = nodes(cluster);
        for (number, node) in (0..).zip(&mut nodes) {
            node.pod_cidrs.push(format!("fd00:{cluster}:0:{number}::/64"));
        }
        nodes
    };
    let one = entries([dual(1), nodes(2)]);
    assert!(one.contains("podCIDRs: [10.1.0.0/16]\n"), "{one}");
    let mut v6 = dual(2);
    for node in &mut v6 {
        node.pod_cidrs.reverse();
        annotate(node, "internal-ip", "fd00:9::1/64");
    }
    let both = entries([dual(1), v6]);
    assert!(both.contains("podCIDRs: [10.1.0.0/16, \"fd00:1::/48\"]\n"), "{both}");
}
