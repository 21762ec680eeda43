//! Paths that are only assumed to work: those that were proved, and new ones.

use super::*;

/// The part of an entry that puts both clusters into one network.
const CORP: &str = ", underlays: [{ name: corp, cidrs: [192.168.0.0/16] }]";

/// Two clusters that dial each other at private addresses.
fn privately(east: &str, under: &str) -> Lab {
    let [of_east, of_west] = [1, 2]
        .map(|it| format!("podCIDRs: [10.{it}.0.0/16], wireguardCIDR: 10.4.{it}.0/24, persistentKeepalive: 25{under}"));
    let east = east.replace("198.18.0.1", "192.168.1.1");
    let west = WEST.replace("198.18.0.21", "192.168.2.1");
    Lab::new(&[("east", &of_east, &east), ("west", &of_west, &west)])
}

/// The same, with one node of `east` at some address.
fn dialled_at(address: &str, under: &str) -> Lab {
    privately(&EAST.lines().nth(1).unwrap().replace("198.18.0.11", address), under)
}

fn counts(changes: &Changes, of: fn(&PathChange) -> PathCounts) -> u64 {
    changes.paths.iter().map(|it| of(it).declared).sum()
}

#[test]
fn a_path_that_is_no_longer_proved_is_disruptive() {
    let before = dialled_at("203.0.113.9", "");
    let changes = compared(&before, &dialled_at("192.168.1.1", ""), &Engines::default());
    assert!(0 < counts(&changes, |it| it.no_longer_proved));
    assert_eq!(counts(&changes, |it| it.lost), 0);
    assert_eq!(changes.grade(), Grade::Disruptive);
    // It is a person's word that both are in one network.
    let before = dialled_at("203.0.113.9", CORP);
    let changes = compared(&before, &dialled_at("192.168.1.1", CORP), &Engines::default());
    assert_eq!(counts(&changes, |it| it.no_longer_proved), 0);
    assert_eq!(changes.grade(), Grade::Brief);
}

#[test]
fn what_was_assumed_before_is_not_counted() {
    let before = dialled_at("192.168.1.1", "");
    let changes = compared(&before, &dialled_at("192.168.1.9", ""), &Engines::default());
    assert_eq!(counts(&changes, |it| it.no_longer_proved), 0);
    assert_eq!(changes.grade(), Grade::Brief);
}

#[test]
fn new_paths_say_that_they_are_assumed() {
    let one = EAST.lines().nth(1).unwrap();
    let (before, after) = (privately(one, ""), privately(EAST, ""));
    let changes = compared(&before, &after, &Engines::default());
    assert_eq!(changes.grade(), Grade::Additive);
    let [gained, assumed] = [counts(&changes, |it| it.gained), counts(&changes, |it| it.assumed)];
    assert!(0 < gained && gained == assumed, "{gained} {assumed}");
    let reasons = changes.targets.iter().flat_map(|it| &it.reasons);
    assert!(reasons.clone().any(|it| matches!(it, Reason::Paths(PathReason::Assumed, _))));
}

/// Lists the cause, the targets and the pairs of a change of entries alone.
fn of_entries(before: &Lab, after: &Lab) -> (Changes, Vec<String>) {
    let changes = compared(before, after, &Engines::default());
    assert!(changes.targets.iter().all(|it| it.peers.is_empty()), "{changes:#?}");
    let causes = changes.causes.iter().filter_map(|it| match &it.cause {
        Cause::Setting(setting) => Some(format!("{:?} {}", setting.cluster, setting.field)),
        _ => None,
    });
    let causes = causes.collect();
    (changes, causes)
}

#[test]
fn an_entry_that_no_longer_names_the_network_is_disruptive() {
    let elsewhere = CORP.replace("192.168.0.0/16", "192.168.2.0/24");
    for after in ["", &elsewhere] {
        let (before, after) = (dialled_at("192.168.1.1", CORP), dialled_at("192.168.1.1", after));
        let (changes, causes) = of_entries(&before, &after);
        let reasons = changes.targets.iter().map(|it| (it.cluster.as_str(), &*it.reasons));
        let no_longer =
            |it: &[Reason]| matches!(it, [Reason::Paths(PathReason::NoLongerProved, _)]);
        assert_eq!(reasons.clone().map(|it| it.0).collect::<Vec<_>>(), ["east", "west"]);
        assert!(reasons.clone().all(|it| no_longer(it.1)), "{changes:#?}");
        assert_eq!(changes.grade(), Grade::Disruptive);
        assert_eq!(causes.len(), 2, "{causes:?}");
        // In the other direction, nothing ends.
        let (changes, causes) = of_entries(&after, &before);
        assert_eq!(changes.grade(), Grade::None);
        assert!(changes.targets.is_empty() && changes.paths.is_empty());
        assert_eq!(causes.len(), 2, "{causes:?}");
    }
}

#[test]
fn a_name_that_is_no_longer_listed_whole_is_disruptive() {
    let named =
        |domains: &str| dialled_at("vpn.example.org", &format!(", endpointDomains: [{domains}]"));
    let (whole, suffix) = (named("vpn.example.org"), named("example.org"));
    let (changes, causes) = of_entries(&whole, &suffix);
    assert_eq!(changes.grade(), Grade::Disruptive);
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert_eq!(of_entries(&suffix, &whole).0.grade(), Grade::None);
}

#[test]
fn pods_whose_source_is_no_longer_declared_are_disruptive() {
    let lab = |source: &str| {
        let of = |it| format!("podCIDRs: [10.{it}.0.0/16], wireguardCIDR: 10.4.{it}.0/24");
        let east = format!("{}, advertise: {{ wireguardAddresses: None }}, {source}", of(1));
        Lab::new(&[("east", &east, EAST), ("west", &of(2), WEST)])
    };
    let (kept, masqueraded) = (lab("podSource: Kept"), lab("podSource: Masqueraded"));
    let (changes, causes) = of_entries(&kept, &masqueraded);
    assert_eq!(causes, [r#"Some(ClusterName("east")) podSource"#]);
    assert_eq!(changes.grade(), Grade::Disruptive, "{changes:#?}");
    assert_eq!(of_entries(&masqueraded, &kept).0.grade(), Grade::None);
}
