use super::*;

fn read(annotations: &[(&str, &str)]) -> KiloNode {
    let node = Node {
        annotations: annotations
            .iter()
            .map(|&(key, value)| (format!("kilo.squat.ai/{key}"), value.to_owned()))
            .collect(),
        labels: [("region", "eu")].into_iter().collect(),
        ..Node::default()
    };
    KiloNode::read(&node, "region")
}

#[test]
fn a_malformed_force_endpoint_falls_back() {
    let node = read(&[("force-endpoint", "10.0.0.1"), ("endpoint", "1.2.3.4:5")]);
    assert_eq!(node.endpoint.unwrap().to_string(), "1.2.3.4:5");
}

#[test]
fn presence_of_a_location_hides_the_label() {
    assert_eq!(read(&[]).location, "eu");
    assert_eq!(read(&[("location", "")]).location, "");
}

#[test]
fn a_dash_disables_the_internal_address() {
    let found = ("internal-ip", "10.0.0.1/24");
    assert_eq!(read(&[("force-internal-ip", "-"), found]).internal_ip, InternalIp::Disabled);
    assert_eq!(
        read(&[("force-internal-ip", "nonsense"), found]).internal_address(),
        Some("10.0.0.1".parse().unwrap())
    );
    assert_eq!(read(&[("internal-ip", "")]).internal_ip, InternalIp::Unknown);
}

#[test]
fn the_annotation_that_counts_says_where_kilo_listens() {
    let key = |annotations: &[(&str, &str)]| {
        let node = Node {
            annotations: annotations
                .iter()
                .map(|&(key, value)| (format!("kilo.squat.ai/{key}"), value.to_owned()))
                .collect(),
            ..Node::default()
        };
        listening(&node).map(|(key, endpoint)| format!("{key} {}", endpoint.port))
    };
    let found = ("endpoint", "10.0.0.1:1");
    let forced = ("force-endpoint", "10.0.0.2:2");
    assert_eq!(key(&[found, forced]).unwrap(), "kilo.squat.ai/force-endpoint 2");
    let ignored = ("force-endpoint", "WG.example.com:2");
    assert_eq!(key(&[found, ignored]).unwrap(), "kilo.squat.ai/endpoint 1");
    assert_eq!(key(&[ignored]), None);
}

#[test]
fn seconds_wrap_as_in_kilo_and_wireguard() {
    for (text, seconds) in [
        ("25", 25),
        ("0", 0),
        ("25s", 0),
        (" 25", 0),
        ("-5", 0),
        ("65535", 65_535),
        ("65536", 0),
        ("65561", 25),
        // 2^63 nanoseconds and a little more.
        ("9223372037", 33_532),
        // A multiple of 2^64 nanoseconds.
        ("36028797018963968", 0),
    ] {
        assert_eq!(read(&[("persistent-keepalive", text)]).keepalive, seconds);
    }
}

#[test]
fn the_network_is_that_of_the_address() {
    let found = ("internal-ip", "10.0.0.1/24");
    assert_eq!(read(&[found]).lan.unwrap().to_string(), "10.0.0.0/24");
    assert_eq!(read(&[found, ("force-internal-ip", "-")]).lan, None);
}

#[test]
fn shared_address_space_is_public_to_kilo() {
    let public = |text| read(&[("endpoint", text)]).has_public_endpoint();
    assert!(public("100.64.0.1:1") && public("[fd12::1]:1") && public("127.0.0.1:1"));
    assert!(!public("192.168.0.1:1") && !public("[fd00::1]:1") && !public("wg.example:1"));
}
