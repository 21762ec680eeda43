use super::*;
use crate::testing::numbered;

#[test]
fn an_election_that_depends_on_names_is_not_certain() {
    let leader = |more: &str| {
        let one = "pod=10.42.0.0/24 endpoint=wg.example:1 internal-ip=192.168.0.1/24";
        let two = "pod=10.42.1.0/24 endpoint=192.0.2.2:1 internal-ip=192.168.0.2/24";
        let nodes = format!("a {one} {more}\nb {two}");
        let own = numbered(&nodes, Granularity::Location);
        let leader = own.segments.first().unwrap().leader;
        format!("{leader:?}")
    };
    assert_eq!(leader(""), "Ambiguous(1)");
    assert_eq!(leader("wireguard-ip=10.4.0.1/16"), "Certain(0)");
    assert_eq!(leader("stale"), "Certain(1)");
}

#[test]
fn a_node_of_another_granularity_does_not_lead_beside_one_that_claims_the_lead() {
    let leader = |[one, two]: [&str; 2]| {
        let nodes = [("a", one), ("b", two)].map(|(name, more)| {
            format!(
                "{name} pod=10.42.0.0/24 endpoint=192.0.2.2:1 internal-ip=192.168.0.1/24 {more}"
            )
        });
        let own = numbered(&nodes.join("\n"), Granularity::Location);
        format!("{:?}", own.segments.first().unwrap().leader)
    };
    let [of_location, of_full] =
        ["location", "full"].map(|it| format!("granularity={it} wireguard-ip=10.4.0.1/16"));
    assert_eq!(leader([&of_full, &of_location]), "Ambiguous(0)");
    assert_eq!(leader([&of_location, &of_full]), "Certain(0)");
    assert_eq!(leader([&of_location, &of_location]), "Ambiguous(0)");
}

#[test]
fn addresses_end_with_the_subnet() {
    let addresses = |length: u8, nodes: u8| {
        let lines = (1..=nodes).map(|it| {
            format!("n{it} pod=10.42.{it}.0/24 endpoint=192.0.2.{it}:1 wireguard-ip=10.4.0.{it}/{length}\n")
        });
        let own = numbered(&lines.collect::<String>(), Granularity::Full);
        let given = own.segments.iter().filter(|it| it.wireguard_ip != WireguardIp::None);
        (given.count(), own.is_exhausted)
    };
    assert_eq!(addresses(30, 3), (3, false));
    assert_eq!(addresses(30, 4), (3, false), "the fourth address is empty");
    assert_eq!(addresses(30, 5), (3, true));
}
