use std::fmt::Write as _;

use super::*;
use crate::testing::key;
use crate::wireguard::PublicKey;

fn peer(node: &str, keepalive: &str) -> String {
    let key = key("A");
    format!(
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  labels:\n    \
         app.kubernetes.io/managed-by: clustermesh\n    kilo-clustermesh.io/mesh: m\n    \
         kilo-clustermesh.io/source-cluster: west\n  name: m--west--{node}\nspec:\n  allowedIPs:\n  \
         - \"10.1.0.0/24\"\n  endpoint:\n    dnsOrIP:\n      ip: \"192.0.2.1\"\n    port: 51820\n\
         {keepalive}  publicKey: \"{key}\"\n"
    )
}

fn file(peers: &[String]) -> String {
    format!("{HEADER}\n{}", peers.join("---\n"))
}

/// Returns what is odd, with the text that is meant.
fn odd(text: &str) -> Vec<String> {
    let oddities = reading(text).oddities.into_iter();
    let lines = oddities.map(|oddity| match oddity {
        Oddity::Edited { bytes } => format!("edited: {}", &text[bytes]),
        Oddity::Variable { bytes } => format!("variable: {}", &text[bytes]),
        Oddity::Unreadable { bytes, problem } => format!("{problem}: {}", &text[bytes]),
        Oddity::Refused { peer, bytes, why } => format!("{peer} {why:?}: {}", &text[bytes]),
        other => format!("{other:?}"),
    });
    lines.collect()
}

#[test]
fn what_we_write_is_read_as_it_is() {
    let keepalive = "  persistentKeepalive: 25\n";
    let text = file(&[peer("a", ""), peer("b", keepalive)]);
    let Reading { peers, oddities } = reading(&text);
    assert_eq!(oddities, []);
    let names: Vec<&str> = peers.iter().map(|it| &text[it.bytes.clone()]).collect();
    assert_eq!(names, ["m--west--a", "m--west--b"]);
    assert_eq!(peers[1].source.as_deref(), Some("west"));
    assert_eq!(peers[1].ranges, ["10.1.0.0/24".parse().unwrap()]);
    let key: PublicKey = key("A").parse().unwrap();
    assert_eq!(peers[1].key.as_ref(), Some(key.as_bytes()));
}

#[test]
fn what_we_would_not_write_is_edited_from_there_on() {
    let text = file(&[peer("a", ""), peer("b", "")]);
    for (from, to, line) in [
        ("port: 51820", "port: 51820 # mine", "port: 51820 # mine"),
        ("10.1.0.0/24", "10.1.0.1/24", "- \"10.1.0.1/24\""),
        ("---\n", "---\n# mine\n", "# mine"),
        ("  name: m--west--b", "  name: \"m--west--b\"", "name: \"m--west--b\""),
        ("do not edit.\n", "do not edit.\n\n", ""),
        ("    port", "    host: x\n    port", "host: x"),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_eq!(odd(&edited), [format!("edited: {line}")], "{edited}");
        assert_eq!(reading(&edited).peers.len(), 2);
    }
    assert_eq!(odd(&format!("{text}---\n")), ["edited: "]);
}

#[test]
fn one_peer_less_is_no_sign_of_an_edit() {
    assert_eq!(odd(&file(&[peer("a", "")])), Vec::<String>::new());
}

#[test]
fn a_checkout_of_windows_is_not_edited() {
    let text = file(&[peer("a", ""), peer("b", "")]).replace('\n', "\r\n");
    assert_eq!(odd(&text), ["Returns"]);
    assert_eq!(reading(&text).peers.len(), 2);
}

#[test]
fn says_what_would_be_refused() {
    let sound = file(&[peer("a", "")]);
    let odd_with = |from: &str, to: &str| odd(&sound.replace(from, to)).pop().unwrap();
    insta::assert_snapshot!(odd_with("name: m--", "name: M--"), @"M--west--a Name: M--west--a");
    insta::assert_snapshot!(odd_with("mesh: m", "mesh: [m]"), @r#"m--west--a Label("kilo-clustermesh.io/mesh"): m--west--a"#);
    insta::assert_snapshot!(odd_with("mesh: m", "mesh: m/n"), @r#"m--west--a Label("kilo-clustermesh.io/mesh"): m--west--a"#);
    insta::assert_snapshot!(odd_with("port: 51820", "port: -1"), @r#"m--west--a Spec(Undecodable(Undecodable { field: "spec.endpoint.port", wanted: "an unsigned 32-bit integer", found: "-1" })): m--west--a"#);
    insta::assert_snapshot!(odd_with("port: 51820", "port: 70000"), @"m--west--a Spec(Ignored(Port(70000))): m--west--a");
    // Kilo would take these, but an API server stores none of them.
    insta::assert_snapshot!(odd_with("port: 51820", "port: 2147483648"), @r#"m--west--a Spec(NotStored(Mismatch { field: "spec.endpoint.port", problem: Type("a 32-bit integer") })): m--west--a"#);
    insta::assert_snapshot!(odd_with("publicKey:", "PublicKey:"), @r#"m--west--a Spec(NotStored(Mismatch { field: "spec.publicKey", problem: Missing })): m--west--a"#);
    insta::assert_snapshot!(odd_with("  allowedIPs:\n  - \"10.1.0.0/24\"\n", ""), @r#"m--west--a Spec(NotStored(Mismatch { field: "spec.allowedIPs", problem: Missing })): m--west--a"#);
}

#[test]
fn a_variable_of_flux_is_seen_wherever_it_is() {
    let text = file(&[peer("a", "")]).replace("192.0.2.1", "${HOST}");
    assert_eq!(odd(&text)[0], "variable: ip: \"${HOST}\"");
}

#[test]
fn what_is_no_yaml_hides_no_other_peer() {
    let text = file(&[peer("a", ""), "a: [\n".to_owned(), peer("b", "")]);
    insta::assert_snapshot!(odd(&text).join("\n"), @"
    edited: a: [
    not valid YAML: `[` is never closed: [
    ");
    assert_eq!(reading(&text).peers.len(), 2);
}

#[test]
fn a_file_without_a_peer_is_reported() {
    for text in ["", HEADER, "# x\n---\n---\n", "kind: ConfigMap\n"] {
        assert_eq!(odd(text), ["NoPeer"], "{text}");
    }
}

#[test]
fn stays_within_bounds() {
    let many = "---\n".repeat(DOCUMENTS + 2);
    assert!(matches!(reading(&many).oddities[..], [Oddity::Unreadable { .. }]));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..9 {
        let alias = format!("*a{}, ", i - 1).repeat(10);
        writeln!(laughs, "a{i}: &a{i} [{alias}]").unwrap();
    }
    assert!(odd(&laughs)[1].contains("more than"), "{:?}", odd(&laughs));
    assert_eq!(odd(&"[".repeat(100_000)).len(), 2);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text: String, at in 0..400_usize) {
        reading(&text);
        let sound = file(&[peer("a", ""), peer("b", "")]);
        reading(&format!("{}{text}{}", &sound[..at], &sound[at..]));
    }
}
