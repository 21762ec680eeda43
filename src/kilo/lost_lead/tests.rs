use super::*;
use crate::testing::snapshot;

const NOW: i64 = 1_763_600_000;
const LABEL: &str = "topology.kubernetes.io/region";

/// Returns what is marked in a cluster of these nodes, one a line. `seen` is the age of the last heartbeat in seconds.
fn marked_at(now: i64, lines: &[&str]) -> Vec<String> {
    let numbered = lines.iter().zip(1..).map(|(line, number)| {
        let line = line.replacen("seen=", "last-seen=", 1);
        let granularity = if line.contains("granularity") { "" } else { "granularity=location" };
        let key = ["A", "B", "C", "D", "E"][number - 1];
        format!(
            "{line} {granularity} pod=10.42.{number}.0/24 key={key} endpoint=203.0.113.{number}:51820 internal-ip=10.0.0.{number}/24\n"
        )
    });
    let mut read = snapshot(&"east".parse().unwrap(), &numbered.collect::<String>());
    let mut times = Vec::new();
    for node in &mut read.nodes {
        if let Some(age) = node.annotations.get("kilo.squat.ai/last-seen") {
            times.push((node.name.clone(), NOW - age.parse::<i64>().unwrap()));
        }
    }
    let lost = mark_lost_leads(&mut read, &Heartbeats::new(times, now), LABEL);
    let named: Vec<&str> = lost.iter().map(|it| it.node.as_str()).collect();
    let nodes = read.nodes.iter().filter(|it| it.lost_lead);
    assert_eq!(nodes.map(|it| it.name.as_str()).collect::<Vec<_>>(), named);
    let lost = lost.iter().map(|it| format!("{} to {} {:?}", it.node, it.leader, it.seconds));
    lost.collect()
}

fn marked(lines: &[&str]) -> Vec<String> {
    marked_at(NOW, lines)
}

const SILENT: &str = "a wg=10.4.0.1/16 seen=120";
const NEXT: &str = "b wg=10.4.0.1/16 seen=10";
const MEMBER: &str = "c seen=20";

#[test]
fn a_silent_leader_beside_the_next_one_is_marked() {
    assert_eq!(marked(&[SILENT, NEXT, MEMBER]), ["a to b Some(120)"]);
    assert_eq!(marked(&[SILENT, NEXT]), ["a to b Some(120)"], "a cluster of two");
    let others = ["c label:topology.kubernetes.io/region=us wg=10.4.0.2/16 seen=5", "d seen=59"];
    assert_eq!(marked(&[&[SILENT, NEXT][..], &others].concat()), ["a to b Some(120)"]);
    let earlier =
        ["a wg=10.4.0.1/16 seen=200", "b wg=10.4.0.1/16 seen=100", "c wg=10.4.0.1/16 seen=0"];
    assert_eq!(marked(&earlier), ["a to c Some(200)", "b to c Some(100)"]);
    // The others elect a leader without it in every granularity of its own.
    let other = format!("{SILENT} granularity=full");
    assert_eq!(marked(&[&other, NEXT, MEMBER]), ["a to b Some(120)"]);
}

#[test]
fn a_stopped_leader_beside_the_next_one_is_marked() {
    assert_eq!(marked(&["a wg=10.4.0.1/16 carried-over", NEXT, MEMBER]), ["a to b None"]);
    // No other node has replaced it.
    let alone = ["a wg=10.4.0.1/16 carried-over", "b seen=10", MEMBER];
    assert_eq!(marked(&alone), [""; 0]);
}

#[test]
fn nothing_is_marked_where_the_lead_is_not_certain() {
    for (lines, why) in [
        (["a wg=10.4.0.1/16 seen=90", NEXT, MEMBER], "a loaded node misses a heartbeat"),
        ([SILENT, "b wg=10.4.0.1/16 seen=61", MEMBER], "the other one is late too"),
        (["a wg=10.4.0.1/16 seen=5", NEXT, MEMBER], "both are there"),
        ([SILENT, "b seen=10", MEMBER], "Kilo has not elected another one yet"),
        ([SILENT, NEXT, "c wg=10.4.0.1/16 seen=10"], "two are left"),
        ([SILENT, NEXT, "c leader= seen=20"], "Kilo elects another one"),
        ([SILENT, "b wg=10.4.0.1/16", MEMBER], "it has no heartbeat at all"),
        (["a wg=10.4.0.1/16 stale seen=400", NEXT, MEMBER], "Kilo does not count it anyway"),
        (["a wg=10.4.0.1/16 seen=120 location=x", NEXT, MEMBER], "they lead two locations"),
    ] {
        assert_eq!(marked(&lines), [""; 0], "{why}");
    }
    let full = |line: &str| format!("{line} granularity=full");
    let all = [SILENT, NEXT, MEMBER].map(full);
    assert_eq!(marked(&all.each_ref().map(String::as_str)), [""; 0], "each node leads itself");
    let most = [SILENT.to_owned(), full(NEXT), full(MEMBER)];
    assert_eq!(marked(&most.each_ref().map(String::as_str)), [""; 0]);
}

#[test]
fn a_wrong_clock_marks_nothing() {
    let nodes = [SILENT, NEXT, MEMBER];
    for skew in [-600, -130, 70, 100, 3_600, 1 << 40] {
        assert_eq!(marked_at(NOW + skew, &nodes), [""; 0], "{skew}");
    }
    assert_eq!(marked_at(NOW + 20, &nodes), ["a to b Some(140)"]);
    // All of these are there, and our clock is 100 seconds ahead.
    let there = ["a wg=10.4.0.1/16 seen=20", "b wg=10.4.0.1/16 seen=5", "c seen=1"];
    assert_eq!(marked_at(NOW + 100, &there), [""; 0]);
    // A node with a wrong clock decides nothing for most others.
    let claiming =
        ["a wg=10.4.0.1/16 seen=20", "b wg=10.4.0.1/16 seen=-90", "c seen=1", "d seen=4"];
    assert_eq!(marked_at(NOW + 80, &claiming), [""; 0]);
    assert_eq!(marked(&[SILENT, "b wg=10.4.0.1/16 seen=-3600", MEMBER]), [""; 0]);
}

#[test]
fn one_node_marks_no_other_one() {
    // With any claim of `b`, the agent of `a` was there a moment ago.
    for claim in ["seen=0", "seen=-60", "seen=-9999999999", "carried-over", "leader= seen=0"] {
        let claiming = format!("b wg=10.4.0.1/16 {claim}");
        let marks = marked(&["a wg=10.4.0.1/16 seen=20", &claiming, MEMBER]);
        assert!(!marks.iter().any(|it| it.starts_with('a')), "{claim}: {marks:?}");
    }
}
