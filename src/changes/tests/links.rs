//! Changed links: what becomes of the Peers and the paths of two clusters together.

use super::*;

/// Lists the links with their effect, their Peers and the paths of each kind that has any.
fn links(before: &Lab, after: &Lab) -> String {
    let changes = compared(before, after, &Engines::default());
    let mut text = String::new();
    for link in changes.links() {
        let PeerCounts { added, changed, removed } = link.peers;
        let [one, other] = link.clusters;
        let cut = if link.is_cut { " cut" } else { "" };
        writeln!(
            text,
            "{one}, {other}: {:?}{cut} +{added} ~{changed} -{removed} {:?}",
            link.effect(),
            link.paths
        )
        .unwrap();
    }
    Regex::new(r"(\w+: 0, |, \w+: 0)").unwrap().replace_all(&text, "").into_owned()
}

#[test]
fn a_link_gains_changes_or_loses() {
    let (two, three) = (lab(EAST, WEST), lab(&format!("{EAST}{JOINING}"), WEST));
    let moved = lab(&EAST.replace("198.18.0.12", "198.18.0.19"), WEST);
    let other = lab(&format!("{EAST}{JOINING}").replace("198.18.0.12", "198.18.0.19"), WEST);
    let stale = lab(&EAST.replace("pod=10.1.2.0/24", "pod=10.9.2.0/24"), WEST);
    let all = [
        ("joins", &two, &three),
        ("leaves", &three, &two),
        ("moves", &two, &moved),
        ("leaves while another moves", &other, &two),
        ("is excluded", &two, &stale),
        ("stays", &two, &two),
    ];
    let text =
        all.map(|(what, before, after)| format!("{what}\n  {}", links(before, after))).concat();
    insta::assert_snapshot!(text, @"
    joins
      east, west: Gained +1 ~0 -0 LinkPaths { gained: 14 }
    leaves
      east, west: Lost +0 ~0 -1 LinkPaths { ended: 14 }
    moves
      east, west: Changed +0 ~1 -0 LinkPaths { gained: 0 }
    leaves while another moves
      east, west: Changed +0 ~1 -1 LinkPaths { ended: 14 }
    is excluded
      east, west: Lost +0 ~0 -1 LinkPaths { lost: 14 }
    stays
    ");
}

#[test]
fn the_worst_link_comes_first() {
    let south = (
        "south",
        "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24",
        "s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 persistent-keepalive=25 granularity=full",
    );
    let joined = format!("{EAST}{JOINING}");
    let west = ("west", FIELDS[1], WEST);
    let before = Lab::new(&[("east", FIELDS[0], EAST), west, south]);
    let after = Lab::new(&[("east", FIELDS[0], &joined), west]);
    insta::assert_snapshot!(links(&before, &after), @"
    east, south: Lost cut +0 ~0 -3 LinkPaths { lost: 22 }
    south, west: Lost cut +0 ~0 -2 LinkPaths { lost: 14 }
    east, west: Gained +1 ~0 -0 LinkPaths { gained: 14 }
    ");
}
