use std::collections::BTreeSet;

use super::*;
use crate::fleet::SnapshotFile;
use crate::testing::key;
use crate::testing::lab::Lab;
use crate::wireguard::PublicKey;

const NOW: i64 = 1_763_600_000;

const EAST: &str = "n1 pod=10.1.1.0/24 key=A external=198.51.100.1 endpoint=198.51.100.1:51820 internal-ip=192.168.1.1/24 wg=10.4.0.1/16 granularity=location persistent-keepalive=25";
const WEST: &str = "w1 pod=10.2.1.0/24 key=B external=198.51.100.2 endpoint=198.51.100.2:51820 internal-ip=192.168.2.1/24 wg=10.5.0.1/16 granularity=location";

/// The state of one cluster in a read: the time of the list, the time of the last change of Peers, and a line for each node
/// with the time since its last check-in and the letters of the keys that it reports; `?` for a report that cannot be read.
struct ShownReports<'a> {
    at: i64,
    changed_at: Option<i64>,
    nodes: &'a [(&'a str, i64, &'a str)],
}

fn shown<'a>(nodes: &'a [(&'a str, i64, &'a str)]) -> ShownReports<'a> {
    ShownReports { at: NOW, changed_at: Some(NOW - 1000), nodes }
}

impl ShownReports<'_> {
    fn reports(&self) -> AgentReports {
        let times = self
            .nodes
            .iter()
            .map(|(node, age, _)| ((*node).to_owned(), self.at.saturating_sub(*age)));
        let readable = self.nodes.iter().filter(|it| it.2 != "?");
        let handshakes = readable.map(|(node, _, letters)| {
            let keys: BTreeSet<[u8; 32]> = letters
                .chars()
                .map(|it| PublicKey::bytes_as_kilo_reads(&key(&it.to_string())).unwrap())
                .collect();
            ((*node).to_owned(), keys)
        });
        AgentReports {
            heartbeats: Heartbeats::new(times, self.at),
            handshakes: handshakes.collect(),
            changed_at: self.changed_at,
        }
    }
}

/// Returns the entries of two clusters.
fn fields(granularity: &str) -> [String; 2] {
    [(1, 4), (2, 5)].map(|(pods, tunnels)| {
        format!(
            "podCIDRs: [10.{pods}.0.0/16], wireguardCIDR: 10.{tunnels}.0.0/16, granularity: {granularity}"
        )
    })
}

fn pair(east: &str, west: &str) -> Lab {
    let [one, other] = fields("Location");
    Lab::new(&[("east", &one, east), ("west", &other, west)])
}

/// Returns the answers after one more read, a line each. A cluster without reports was not read.
fn read(watch: &mut HandshakeWatch, lab: &Lab, reads: &[(&str, ShownReports)]) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<AppliedFile>> = BTreeMap::new();
    for (path, text) in &lab.files {
        let (cluster, _) = path.split_once('/').unwrap();
        let file = AppliedFile::read(&path.as_str().into(), &text.as_str().into());
        files.entry(cluster).or_default().push(file);
    }
    let reports: BTreeMap<&str, AgentReports> =
        reads.iter().map(|(cluster, shown)| (*cluster, shown.reports())).collect();
    let clusters: Vec<ClusterReading> = lab
        .meshes
        .iter()
        .flat_map(|it| &it.entries)
        .map(|entry| {
            let SnapshotFile { snapshot, .. } = &lab.snapshots[&entry.name];
            let name = entry.name.as_str();
            let files = files.get(name).map_or(&[][..], Vec::as_slice);
            ClusterReading { entry, snapshot, files, reports: reports.get(name) }
        })
        .collect();
    let pairs = watch.read(&lab.meshes, &clusters);
    let answers = pairs.iter().flat_map(|pair| {
        let [one, other] = &pair.clusters;
        pair.answers.iter().map(move |(answer, group)| {
            let first: Vec<String> = group.first.iter().map(|it| it.join("-")).collect();
            format!("{one}-{other}: {} {} {answer:?}", group.count, first.join(","))
        })
    });
    answers.collect()
}

/// Returns the only answer of one read of two clusters with one leader each.
fn answer(east: ShownReports, west: ShownReports) -> String {
    let mut watch = HandshakeWatch::new(30);
    let answers = read(&mut watch, &pair(EAST, WEST), &[("east", east), ("west", west)]);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    answer.strip_prefix("east-west: 1 n1-w1 ").unwrap().to_owned()
}

#[test]
fn a_handshake_is_reported_by_both_or_by_one() {
    let both =
        |east: &str, west: &str| answer(shown(&[("n1", 5, east)]), shown(&[("w1", 5, west)]));
    assert_eq!(both("B", "A"), "Both");
    assert_eq!(both("BC", "AD"), "Both", "keys of others");
    assert_eq!(both("B", ""), r#"One(ClusterName("east"))"#);
    assert_eq!(both("", "A"), r#"One(ClusterName("west"))"#);
    assert_eq!(both("B", "?"), r#"One(ClusterName("east"))"#);
    assert_eq!(both("", "?"), r#"Unknown(Unreadable(ClusterName("west")))"#);
    assert_eq!(both("A", "B"), "Unknown(Early)", "the own key");
}

#[test]
fn only_agents_that_check_in_count() {
    let ages =
        |east: i64, west: i64| answer(shown(&[("n1", east, "B")]), shown(&[("w1", west, "A")]));
    assert_eq!(ages(60, 60), "Both");
    // Each is the only node of its cluster, so either its clock is wrong or that of this machine.
    assert_eq!(ages(61, 5), r#"One(ClusterName("west"))"#);
    assert_eq!(ages(-61, 5), r#"One(ClusterName("west"))"#);
    assert_eq!(ages(61, 61), r#"Unknown(Clock(ClusterName("east")))"#);
    assert_eq!(ages(i64::MIN, i64::MAX), r#"Unknown(Clock(ClusterName("east")))"#);
    // Beside another node that checks in, the clock of this machine is right.
    let east = shown(&[("n1", 61, "B"), ("n2", 5, "")]);
    assert_eq!(answer(east, shown(&[("w1", 5, "?")])), r#"Unknown(Silent(ClusterName("east")))"#);
}

#[test]
fn only_check_ins_after_the_last_change_count() {
    let changed = |east: Option<i64>, west: Option<i64>| {
        let one = ShownReports { changed_at: east, ..shown(&[("n1", 5, "B")]) };
        let other = ShownReports { changed_at: west, ..shown(&[("w1", 5, "A")]) };
        answer(one, other)
    };
    assert_eq!(changed(Some(NOW - 95), Some(NOW - 95)), "Both");
    let unsettled = r#"Unknown(Unsettled(ClusterName("east")))"#;
    assert_eq!(changed(Some(NOW - 94), Some(NOW - 1000)), unsettled);
    assert_eq!(changed(Some(NOW - 1000), Some(NOW - 94)), unsettled, "a change of either cluster");
    assert_eq!(changed(Some(i64::MAX), None), unsettled);
    assert_eq!(changed(Some(i64::MIN), None), "Both");
    // A node whose clock is ahead is not settled sooner.
    let ahead = ShownReports { changed_at: Some(NOW - 89), ..shown(&[("n1", -50, "B")]) };
    assert_eq!(answer(ahead, shown(&[("w1", 0, "?")])), unsettled);
}

/// Reads twice, after some seconds, and returns the second answer. The letters are what `n1` reports.
fn twice(lab: &Lab, seconds: i64, later: &Lab, letters: [&str; 2]) -> String {
    twice_by(&mut HandshakeWatch::new(30), lab, seconds, later, letters)
}

fn twice_by(
    watch: &mut HandshakeWatch,
    lab: &Lab,
    seconds: i64,
    later: &Lab,
    [first, second]: [&str; 2],
) -> String {
    let mut read_at = |lab: &Lab, at: i64, letters: &str| {
        let changed_at = Some(NOW - 1000);
        let east = ShownReports { at, changed_at, nodes: &[("n1", 5, letters)] };
        let west = ShownReports { at, changed_at, nodes: &[("w1", 5, ""), ("w2", 5, "")] };
        read(watch, lab, &[("east", east), ("west", west)]).join("; ")
    };
    read_at(lab, NOW, first);
    read_at(later, NOW + seconds, second)
}

#[test]
fn none_is_reported_after_two_reads_that_are_far_apart() {
    let lab = pair(EAST, WEST);
    let none = "east-west: 1 n1-w1 NoneReported";
    let early = "east-west: 1 n1-w1 Unknown(Early)";
    assert_eq!(twice(&lab, 90, &lab, ["", ""]), none);
    assert_eq!(twice(&lab, 89, &lab, ["", ""]), early);
    assert_eq!(twice(&lab, 90, &lab, ["B", ""]), early, "it was there in the first read");
    assert_eq!(twice(&lab, 90, &lab, ["", "B"]), r#"east-west: 1 n1-w1 One(ClusterName("east"))"#);
    // Other Peers, or another leader.
    let peers = pair(EAST, WEST).edit("east/m--west.yaml", "port: 51820", "port: 7");
    assert_eq!(twice(&lab, 90, &peers, ["", ""]), early);
    let led = WEST.replace("w1 ", "w2 ");
    assert_eq!(twice(&lab, 90, &pair(EAST, &led), ["", ""]), "east-west: 1 n1-w2 Unknown(Early)");
}

/// However long Kilo takes: without `--wait`, the answer comes before the reading ends.
#[test]
fn none_is_reported_within_the_limit() {
    let lab = pair(EAST, WEST);
    for (resync, limit) in [(30, 150), (120, 240)] {
        let mut watch = HandshakeWatch::new(resync);
        assert_eq!(watch.limit(), limit);
        let seconds = i64::try_from(limit).unwrap();
        let answer = twice_by(&mut watch, &lab, seconds, &lab, ["", ""]);
        assert_eq!(answer, "east-west: 1 n1-w1 NoneReported");
    }
}

#[test]
fn without_an_end_that_dials_and_sends_keepalives_nothing_is_missing() {
    let idle = "east-west: 1 n1-w1 Unknown(Idle)";
    let silent = EAST.replace(" persistent-keepalive=25", "");
    let lab = pair(&silent, WEST);
    assert_eq!(twice(&lab, 90, &lab, ["", ""]), idle, "no annotation");
    let zero = pair(&EAST.replace("=25", "=0"), WEST);
    assert_eq!(twice(&zero, 90, &zero, ["", ""]), idle, "switched off");
    let placeholder = pair(EAST, WEST).edit("east/m--west.yaml", "198.51.100.2", "192.0.2.1").edit(
        "east/m--west.yaml",
        "51820",
        "9",
    );
    assert_eq!(
        twice(&placeholder, 90, &placeholder, ["", ""]),
        idle,
        "the only keepalives have no address"
    );
    let other = pair(&silent, &format!("{WEST} persistent-keepalive=5"));
    assert_eq!(twice(&other, 90, &other, ["", ""]), "east-west: 1 n1-w1 NoneReported");
}

#[test]
fn former_leaders_and_uncertain_ones_do_not_count() {
    let next = WEST.replace("w1 ", "w2 ").replace("key=B", "key=C").replace("10.2.1.", "10.2.2.");
    let next = next.replace("2.1/24", "2.2/24");
    let both = pair(EAST, WEST).later("west", &format!("{WEST}\n{next}"));
    // The former leader is marked as `snapshot` marks it; the Peers are still those of it.
    let former = pair(EAST, WEST).later("west", &format!("{WEST} lost-lead\n{next}"));
    let reads = || {
        [("east", shown(&[("n1", 5, "BC")])), ("west", shown(&[("w1", 5, "A"), ("w2", 5, "A")]))]
    };
    let mut watch = HandshakeWatch::new(30);
    assert_eq!(
        read(&mut watch, &former, &reads()),
        [r#"east-west: 1 n1-w2 Unknown(Peerless(ClusterName("east")))"#]
    );
    let answers = read(&mut watch, &both, &reads());
    assert_eq!(answers, [r#"east-west: 1 n1-w1 Unknown(Leaderless(ClusterName("west")))"#]);
    let announced = WEST.replace("wg=10.5.0.1/16 ", "");
    let answers = read(&mut watch, &pair(EAST, WEST).later("west", &announced), &reads());
    assert_eq!(answers, [r#"east-west: 1 n1-w1 Unknown(Leaderless(ClusterName("west")))"#]);
}

#[test]
fn one_cluster_alone_reports_too() {
    let lab = pair(EAST, WEST);
    let mut watch = HandshakeWatch::new(30);
    let answers = read(&mut watch, &lab, &[("east", shown(&[("n1", 5, "B")]))]);
    assert_eq!(answers, [r#"east-west: 1 n1-w1 One(ClusterName("east"))"#]);
    let answers = read(&mut watch, &lab, &[("east", shown(&[("n1", 5, "")]))]);
    assert_eq!(answers, [r#"east-west: 1 n1-w1 Unknown(Unread(ClusterName("west")))"#]);
    assert_eq!(read(&mut watch, &lab, &[]), [""; 0]);
}

/// In `Full`, every node leads: what one node reports or does not changes only the line of its tunnel.
#[test]
fn one_node_changes_only_its_own_tunnels() {
    let full = |line: &str| line.replace("granularity=location", "granularity=full");
    let second = WEST.replace("w1 ", "w2 ").replace("key=B", "key=C").replace("10.2.1.", "10.2.2.");
    let second = second.replace("2.1/24", "2.2/24").replace("10.5.0.1", "10.5.0.2");
    let [one, other] = fields("Full");
    let west = full(&format!("{WEST}\n{second}"));
    let lab = Lab::new(&[("east", &one, &full(EAST)), ("west", &other, &west)]);
    let mut watch = HandshakeWatch::new(30);
    let mut of_second = |age: i64, keys: &'static str| {
        let nodes = [("w1", 5, "A"), ("w2", age, keys)];
        let reads = [("east", shown(&[("n1", 5, "B")])), ("west", shown(&nodes))];
        read(&mut watch, &lab, &reads)
    };
    let first = "east-west: 1 n1-w1 Both";
    assert_eq!(of_second(5, "A"), [first, r#"east-west: 1 n1-w2 One(ClusterName("west"))"#]);
    for (age, keys) in [(5, ""), (5, "?"), (500, "A"), (-500, "A"), (5, "ABCDE")] {
        assert_eq!(of_second(age, keys)[0], first, "{age} {keys}");
    }
}
