//! Ways to reduce the load.

use super::*;

/// Returns what levers bring, a line each.
fn lever_lines(levers: &[Lever]) -> String {
    let lines = levers.iter().map(|it| {
        let Effect { ranges, seconds } = it.effect;
        let seconds = [seconds.0, seconds.1].map(units::seconds);
        format!("{:?}: {ranges:?}, {seconds:?}\n", it.measure)
    });
    lines.collect()
}

fn levers_of(snapshot: &Snapshot, files: &[AppliedFile], capacity: &Capacity) -> String {
    with(snapshot, files, |model| {
        let load = Load::count(model, None);
        let internal = NodeAddress {
            is_internal: true,
            ..NodeAddress::default()
        };
        let addresses = (0..200).map(|it| (IpAddr::from([10, 200, 0, it]), internal));
        let advertised = AdvertisedRanges {
            addresses: addresses.collect(),
            ..AdvertisedRanges::default()
        };
        let before = Model::new(&own(&snapshot.nodes, Granularity::Full), &[]);
        let wave = Wave::between(&before, model);
        lever_lines(&levers(model, &load, Some(&wave), &advertised, capacity))
    })
}

#[test]
fn levers_bring_what_the_formulas_say() {
    // A tenant of 20 nodes that sees a host of 30.
    let tenant = levers_of(&nodes(20), &[peers("host", 0..30)], &Capacity::default());
    insta::assert_snapshot!(tenant, @r#"
    SelectNodes { sources: ["host"], left: 10, of: 30 }: (60, 20), ["0.1 s", "40 ms"]
    LeaveOutAddresses { addresses: 30 }: (60, 30), ["0.1 s", "54 ms"]
    SplitSource { source: "host", parts: 2 }: (60, 30), ["0.1 s", "54 ms"]
    Waves { peers: 20, waves: 2 }: (0, 60), ["1.8 s", "1.5 s"]
    "#);
    // A hub with tenants.
    let tenants = [0, 200, 400, 600].map(|from| peers(&format!("t{from}"), from..from + 190));
    insta::assert_snapshot!(levers_of(&nodes(30), &tenants, &Capacity::default()), @r#"
    SelectNodes { sources: ["t0", "t200", "t400", "t600"], left: 31, of: 190 }: (1520, 248), ["25 s", "1.0 s"]
    SplitTarget { parts: 3, sources: 4 }: (1520, 507), ["25 s", "2.8 s"]
    LeaveOutAddresses { addresses: 190 }: (1520, 1330), ["25 s", "19 s"]
    Waves { peers: 4, waves: 190 }: (0, 1520), ["110 min", "100 s"]
    "#);
}

#[test]
fn a_lever_reaches_what_it_aims_at() {
    let capacity = Capacity::default();
    let snapshot = nodes(30);
    let files = [peers("host", 0..300), peers("other", 400..410)];
    with(&snapshot, &files, |model| {
        let load = Load::count(model, None);
        let levers = levers(model, &load, None, &AdvertisedRanges::default(), &capacity);
        let selected = levers.iter().find_map(|it| match &it.measure {
            Measure::SelectNodes { left, .. } => Some((*left, it.effect.seconds.1)),
            _ => None,
        });
        let (left, seconds) = selected.unwrap();
        assert!(seconds <= 1.0, "{seconds}");
        // One more would be one too many.
        let one_more = load.nodes.rules(2 * (left + 1 + 10));
        assert!(1.0 < time::apply(one_more, &capacity.costs));
    });
}

#[test]
fn what_no_mesh_gives_no_mesh_makes_less() {
    let snapshot = nodes(30);
    let files = [peers("others", 0..300), peers("host", 300..340)];
    with(&snapshot, &files, |model| {
        let mut load = Load::count(model, None);
        for bundle in &mut load.bundles {
            bundle.is_foreign = bundle.name == "others";
        }
        let levers = levers(
            model,
            &load,
            None,
            &AdvertisedRanges::default(),
            &Capacity::default(),
        );
        insta::assert_snapshot!(lever_lines(&levers), @r#"SelectNodes { sources: ["host"], left: 21, of: 40 }: (680, 642), ["5.5 s", "5.0 s"]"#);
    });
}

#[test]
fn ranges_side_by_side_are_fewer() {
    let fewer = |ranges: &str| {
        let ranges: Vec<&str> = ranges.split(", ").collect();
        let spec = json!({"publicKey": key(1), "allowedIPs": ranges});
        let file = file("a", &peer("a", &spec));
        with(&nodes(1), &[file], |model| {
            let load = Load::count(model, None);
            let levers = levers(
                model,
                &load,
                None,
                &AdvertisedRanges::default(),
                &Capacity::default(),
            );
            levers.iter().find_map(|it| match it.measure {
                Measure::Aggregate { fewer } => Some(fewer),
                _ => None,
            })
        })
    };
    assert_eq!(
        fewer("10.1.1.0/24, 10.1.0.0/24, 10.1.2.0/24, 10.1.3.0/24"),
        Some(3)
    );
    assert_eq!(
        fewer("10.1.1.0/24, 10.1.2.0/24"),
        None,
        "they lie side by side, but not as one"
    );
    assert_eq!(
        fewer("10.1.0.0/24, 10.2.0.0/24, 10.3.0.1/32, 10.3.0.0/32"),
        None
    );
    assert_eq!(fewer("fd00::/65, fd00:0:0:0:8000::/65"), Some(1));
}
