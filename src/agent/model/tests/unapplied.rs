//! Changes that no agent applies while a Peer without endpoint has not connected.

use super::*;

/// Names what no agent applies, and because of whom.
fn unapplied(nodes: &str, lines: &str) -> Option<String> {
    with(nodes, lines, |model| {
        let unapplied = model.unapplied()?;
        let named = |tunnels: Vec<Tunnel>| {
            let claim = |tunnel| TunnelClaim { tunnel, range: None, is_certain: true };
            let names: Vec<String> =
                tunnels.into_iter().map(|it| called(model, claim(it))).collect();
            names.join(" ")
        };
        let peers = |peers: &[PeerId]| named(peers.iter().copied().map(Tunnel::Peer).collect());
        let segments = unapplied.segments.iter().copied().map(Tunnel::Segment);
        Some(format!(
            "{}: {}; {}",
            peers(&unapplied.because_of),
            peers(&unapplied.peers),
            named(segments.collect())
        ))
    })
}

#[test]
fn a_peer_without_endpoint_hides_what_comes_after_it_by_the_text_of_keys() {
    // As bytes 2 < 80 < 200 < 250, as texts `+vr6…` < `AgIC…` < `UFBQ…` < `yMjI…`.
    let nodes = TWO
        .replace("b pod", &format!("b key={} pod", key(2)))
        .replace("a pod", &format!("a key={} pod", key(251)));
    let with_mute = |mute: &str| {
        format!("high 200 10.1.0.0/24 1.1.1.1:1\nlow 250 10.2.0.0/24 2.2.2.2:1\n{mute}")
    };
    let finding = |mute: &str| unapplied(&nodes, &with_mute(mute));
    assert_eq!(finding("mute 80 10.3.0.0/24").as_deref(), Some("mute: high; "));
    assert_eq!(finding("mute 1 10.3.0.0/24").as_deref(), Some("mute: high; node:b"));
    assert_eq!(
        finding("mute 80 10.3.0.0/24\nmuter 1 10.4.0.0/24").as_deref(),
        Some("muter mute: high; node:b")
    );
    assert_eq!(finding("none 1 10.3.0.0/24 192.0.2.1:9"), None);
    // Kilo writes objects that it does not accept as Peers into no configuration.
    assert_eq!(finding("bare 1 -"), None);
    // A node has no tunnel to itself.
    assert_eq!(unapplied(ONE, &with_mute("mute 1 10.3.0.0/24")).as_deref(), Some("mute: high; "));
}
