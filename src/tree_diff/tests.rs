use super::*;
use crate::id::Numbered;
use crate::kilo::peer::Peer;
use crate::manifest::{HEADER, reading};
use crate::name::{ClusterName, MeshName, PeerName, PeerSetName};
use crate::plan::{AbsentSource, PeerSet, Target};
use crate::testing::key;

mod on_disk;

/// A Peer of `west`, from `node key range …`.
fn peer(line: &str) -> Peer {
    let mut words = line.split(' ');
    let (mesh, cluster) = (mesh(), "west".parse().unwrap());
    let node = words.next().unwrap().parse().unwrap();
    Peer {
        name: PeerName::new(&mesh, &cluster, &node),
        mesh,
        cluster,
        key: key(words.next().unwrap()).parse().unwrap(),
        allowed_ips: words.map(|it| it.parse().unwrap()).collect(),
        endpoint: None,
        keepalive: None,
    }
}

fn mesh() -> MeshName {
    "m".parse().unwrap()
}

/// A plan that gives `east` these Peers of `west`.
fn plan(lines: &[&str]) -> Plan {
    let source: ClusterName = "west".parse().unwrap();
    let peer_set = PeerSet {
        name: PeerSetName::new(&mesh(), &source),
        mesh: mesh(),
        source,
        peers: lines.iter().map(|it| peer(it)).collect(),
        shared: vec!["10.96.0.0/16".parse().unwrap()],
    };
    let peer_sets = Some(peer_set).filter(|_| !lines.is_empty());
    let peer_sets = Numbered::new(peer_sets.into_iter().collect());
    Plan {
        targets: vec![Target {
            cluster: "east".parse().unwrap(),
            peer_sets: peer_sets.ids().collect(),
            seen: [PeerSetName::new(&mesh(), &"west".parse().unwrap())].into(),
            without: Some("west".parse().unwrap())
                .filter(|_| lines.is_empty())
                .into_iter()
                .collect(),
            absent: BTreeMap::new(),
            parted: BTreeSet::new(),
        }],
        peer_sets,
        ..Plan::default()
    }
}

/// A file with Peers of `west`.
fn file(path: &str, lines: &[&str]) -> ChangedFile {
    let old = plan(lines);
    let text = old.peer_sets.first().map(crate::manifest::text);
    read(path, &text.unwrap_or_else(|| HEADER.into()))
}

fn read(path: &str, text: &str) -> ChangedFile {
    let content = if path.ends_with(KUSTOMIZATION) {
        ChangedContent::Kustomization(Kustomization::read(text).unwrap())
    } else {
        ChangedContent::Peers(Arc::new(reading(text)))
    };
    ChangedFile {
        path: path.to_owned(),
        source: Arc::from(format!("rendered/{path}")),
        is_stale: !path.ends_with(KUSTOMIZATION),
        content,
    }
}

fn same() -> BTreeSet<String> {
    BTreeSet::from(["east/kustomization.yaml".to_owned()])
}

fn changed(plan: &Plan, files: &[ChangedFile]) -> TreeDiff {
    changes(plan, files, &same(), &Limits::default())
}

/// Returns what changes in `east`, in a few words.
fn report(plan: &Plan, files: &[ChangedFile]) -> Vec<String> {
    let changes = changed(plan, files);
    assert_eq!(changes.losses, []);
    let shrunk = changes.shrunk.iter().map(|it| {
        format!("{} of {}: {}", it.what.gone.len(), it.what.before, it.what.gone.join(" "))
    });
    let renamed = changes.renamed.iter();
    let renamed = renamed.map(|it| format!("{} is {}", it.what.from, it.what.to));
    let rekeyed = changes.rekeyed.iter();
    let rekeyed = rekeyed.map(|it| format!("{} has another key", it.what.peer));
    let moved = changes.moved.iter();
    let moved =
        moved.map(|it| format!("{} from {} to {}", it.what.range, it.what.from, it.what.to));
    shrunk.chain(renamed).chain(rekeyed).chain(moved).collect()
}

fn losses(plan: &Plan, files: &[ChangedFile], same: &BTreeSet<String>) -> Vec<String> {
    let losses = changes(plan, files, same, &Limits::default()).losses;
    let losses = losses.into_iter().map(|loss| match loss {
        Loss::Unrecorded { target, source } => format!("{target} has no record of {source}"),
        Loss::SilentSource { source } => format!("{source} is silent"),
        Loss::RenamedMesh(renamed) => format!("{renamed:?}"),
        Loss::EmptyTarget { target } => format!("{target} is empty"),
        Loss::Target { target, peers, .. } => format!("{target} is gone with {peers}"),
        Loss::Source { target, source, peers, .. } => format!("{target} loses {peers} of {source}"),
    });
    losses.collect()
}

#[test]
fn tells_sources_and_targets_that_lose_their_peers() {
    let two = ["a A 10.1.0.0/24", "b B 10.1.1.0/24"];
    let files = [
        file("east/m--west.yaml", &two),
        read("north/kustomization.yaml", "resources: []"),
        file("north/m--west.yaml", &two),
    ];
    insta::assert_snapshot!(losses(&plan(&[]), &files, &BTreeSet::new()).join("\n"), @"
    east is empty
    north is gone with 2
    east loses 2 of west
    ");
}

/// A plan that gives `east` nothing of `west`, whose nodes might give something of a range.
fn absent(nodes: usize, range: &str, is_claimed: bool) -> Plan {
    let mut plan = plan(&[]);
    let absent = AbsentSource {
        nodes,
        ranges: vec![range.parse().unwrap()],
        is_claimed,
        is_of_one: false,
        has_no_endpoint: false,
        ..AbsentSource::default()
    };
    plan.targets[0].absent.insert("west".parse().unwrap(), absent);
    plan
}

#[test]
fn nodes_excuse_as_many_peers_as_there_are_of_them() {
    let lost = |lines: &[&str]| {
        let plan = absent(2, "10.1.0.0/16", true);
        losses(&plan, &[file("east/m--west.yaml", lines)], &same())
    };
    let three = ["a A 10.1.0.0/24", "b B 10.1.1.0/24", "c C 10.1.2.0/24"];
    assert_eq!(lost(&three[..2]), Vec::<String>::new());
    assert_eq!(lost(&three), ["east loses 3 of west"]);
}

#[test]
fn nodes_excuse_no_peer_that_people_took_away() {
    let lost = |lines: &[&str]| {
        let plan = absent(2, "10.1.1.0/24", true);
        losses(&plan, &[file("east/m--west.yaml", lines)], &same())
    };
    assert_eq!(lost(&["a A 10.1.0.0/24"]), ["east loses 1 of west"]);
    assert_eq!(lost(&["a A 10.1.0.0/24 10.1.1.9/32"]), Vec::<String>::new());
    let two = ["a A 10.1.1.0/25", "b B 10.1.0.0/24"];
    assert_eq!(lost(&two), ["east loses 2 of west"]);
}

#[test]
fn claims_that_leave_a_target_nothing_do_not_stop_a_render() {
    let empty = |plan: &Plan, files: &[ChangedFile]| losses(plan, files, &BTreeSet::new());
    let (claimed, unsaid) = (absent(1, "10.1.0.0/16", true), absent(1, "10.1.0.0/16", false));
    assert_eq!(empty(&plan(&[]), &[]), ["east is empty"]);
    assert_eq!(empty(&claimed, &[]), Vec::<String>::new());
    assert_eq!(empty(&unsaid, &[]), ["east is empty"]);
    // A node may have lost its annotations.
    let let_go = [file("east/m--west.yaml", &["a A 10.1.0.0/24"])];
    assert_eq!(empty(&unsaid, &let_go), Vec::<String>::new());
    let taken = [file("east/m--west.yaml", &["a A 10.2.0.0/24"])];
    let both = ["east is empty", "east loses 1 of west"];
    assert_eq!(empty(&unsaid, &taken), both);
}

#[test]
fn a_target_that_was_emptied_before_may_stay_empty() {
    assert_eq!(losses(&plan(&[]), &[], &same()), Vec::<String>::new());
}

#[test]
fn what_does_not_say_its_source_is_reported_by_its_file() {
    let files = [read("east/m--west.yaml", "{ not: [a, Peer")];
    assert_eq!(losses(&plan(&[]), &files, &same()), ["east loses 1 of m--west"]);
    let unread = ChangedFile {
        content: ChangedContent::Unread("it is too large".to_owned()),
        ..files[0].clone()
    };
    assert_eq!(losses(&plan(&[]), &[unread], &same()), ["east loses 1 of m--west"]);
}

#[test]
fn tells_no_loss_below_its_share_or_its_number() {
    let nine: Vec<String> = (1..10).map(|it| format!("n{it} A 10.1.{it}.0/24")).collect();
    let old = |count: usize| {
        let lines: Vec<&str> = nine.iter().take(count).map(String::as_str).collect();
        // Names alone count where keys cannot.
        let mut file = file("east/m--west.yaml", &lines);
        if let ChangedContent::Peers(reading) = &mut file.content {
            Arc::make_mut(reading).peers.iter_mut().for_each(|it| it.key = None);
        }
        [file]
    };
    let new = |count: usize| {
        let lines: Vec<&str> = nine.iter().take(count).map(String::as_str).collect();
        plan(&lines)
    };
    assert_eq!(report(&new(9), &old(9)), Vec::<String>::new());
    assert_eq!(report(&new(1), &old(2)), Vec::<String>::new(), "one");
    assert_eq!(report(&new(6), &old(8)), Vec::<String>::new(), "a quarter");
    assert_eq!(report(&new(5), &old(7)), ["2 of 7: m--west--n6 m--west--n7"]);
}

#[test]
fn what_is_left_in_a_file_that_stays_counts() {
    let plan = plan(&["a A 10.1.0.0/24", "b B 10.1.1.0/24"]);
    let stray = [file(
        "east/copy.yaml",
        &["c C 10.1.2.0/24", "d 9WZ1GYQh5p8IXu3xTHjzCVbvCZBnkWMqAZ7Q0mZzYlI= 10.1.3.0/24"],
    )];
    assert_eq!(report(&plan, &stray), ["2 of 2: m--west--c m--west--d"]);
    let mut same = same();
    same.insert("east/m--west.yaml".to_owned());
    let limits = Limits { lost_peers_percent: 50, ..Limits::default() };
    assert_eq!(changes(&plan, &stray, &same, &limits).shrunk, []);
}

#[test]
fn a_key_under_another_name_is_not_gone() {
    let old = [file("east/m--west.yaml", &["a A 10.1.0.0/24", "b B 10.1.1.0/24"])];
    let new = plan(&["b B 10.1.1.0/24", "c A 10.1.0.0/24"]);
    assert_eq!(report(&new, &old), ["m--west--a is m--west--c"]);
}

#[test]
fn a_name_with_another_key_is_reported() {
    let old = [file("east/m--west.yaml", &["a A 10.1.0.0/24", "b B 10.1.1.0/24"])];
    let new = plan(&["a C 10.1.0.0/24", "b B 10.9.1.0/24"]);
    assert_eq!(report(&new, &old), ["m--west--a has another key"]);
    let swapped = plan(&["a B 10.1.0.0/24", "b A 10.1.1.0/24"]);
    insta::assert_snapshot!(report(&swapped, &old).join("\n"), @"
    m--west--b is m--west--a
    m--west--a is m--west--b
    m--west--a has another key
    m--west--b has another key
    ");
}

#[test]
fn only_a_cluster_wide_range_moves() {
    let old = [file("east/m--west.yaml", &["a A 10.1.0.0/24 10.96.0.0/16", "b B 10.1.1.0/24"])];
    let new = plan(&["a A 10.1.1.0/24", "b B 10.1.0.0/24 10.96.0.0/16"]);
    assert_eq!(report(&new, &old), ["10.96.0.0/16 from m--west--a to m--west--b"]);
    let heir = plan(&["c A 10.1.0.0/24 10.96.0.0/16", "b B 10.1.1.0/24"]);
    assert_eq!(report(&heir, &old), ["m--west--a is m--west--c"]);
}

#[test]
fn what_is_alike_in_many_targets_is_reported_once() {
    let lines = ["a A 10.1.0.0/24"];
    let mut plan = plan(&["b A 10.1.0.0/24"]);
    plan.targets.push(Target {
        cluster: "north".parse().unwrap(),
        peer_sets: plan.peer_sets.ids().collect(),
        seen: plan.targets[0].seen.clone(),
        without: BTreeSet::new(),
        absent: BTreeMap::new(),
        parted: BTreeSet::new(),
    });
    let files = [file("east/m--west.yaml", &lines), file("north/m--west.yaml", &lines)];
    let renamed = changed(&plan, &files).renamed;
    assert_eq!(renamed.len(), 1);
    assert_eq!(renamed[0].targets, ["east", "north"]);
    assert_eq!(&*renamed[0].place.source, "rendered/east/m--west.yaml");
}

#[test]
fn a_mesh_with_another_name_is_a_loss() {
    let lines = ["a A 10.1.0.0/24", "b B 10.1.1.0/24"];
    let text = crate::manifest::text(plan(&lines).peer_sets.first().unwrap());
    let renamed = text.replace("m--west--", "old--west--");
    let of = |path: &str| read(path, &renamed);
    let losses = |path: &str| changed(&plan(&lines), &[of(path)]).losses;
    let [Loss::RenamedMesh(renamed)] = &losses("east/old--west.yaml")[..] else {
        panic!("{:?}", losses("east/old--west.yaml"));
    };
    assert_eq!((renamed.from.as_str(), renamed.peers), ("old", 2));
    assert_eq!(renamed.to, mesh());
    assert_eq!(losses("east/m--west.yaml"), []);
    // The file is that of no set of Peers of this source.
    assert_eq!(losses("east/peers.yaml"), []);
    // Nodes are the reason for which another mesh gives the Peers.
    let mut both = plan(&lines);
    both.targets[0]
        .seen
        .insert(PeerSetName::new(&"old".parse().unwrap(), &"west".parse().unwrap()));
    assert_eq!(changed(&both, &[of("east/old--west.yaml")]).losses, []);
}
