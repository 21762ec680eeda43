//! Nodes as text, for tests.

use crate::snapshot::{Address, AddressKind, Node};

/// Three keys, by letter.
pub(crate) fn key(letter: &str) -> String {
    match letter {
        "A" => "Z2uLuEznJn3VIN7KSBHI8QpT5jY1LwaYf0L+QlrO3YA=".to_owned(),
        "B" => "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=".to_owned(),
        "C" => "GY5aT1N9dTR/nJnT1N2f4ClZWVj0jOAld0r8ysWLyjg=".to_owned(),
        other => other.to_owned(),
    }
}

/// Reads a node from `name what=value …`: `pod`, `label` (or `label:KEY`), `external`, `internal`
/// (addresses), `stale`; all else is an annotation of Kilo's, where `·` stands for a space.
pub(crate) fn node(line: &str) -> Node {
    let mut words = line.split_whitespace();
    let mut node = Node {
        name: words.next().unwrap().to_owned(),
        ..Node::default()
    };
    for word in words {
        let (what, value) = word.split_once('=').unwrap_or((word, ""));
        let value = value.replace('·', " ");
        let address = |kind| Address {
            address: value.clone(),
            kind,
        };
        match what {
            "pod" => node.pod_cidrs.push(value),
            "external" => node.addresses.push(address(AddressKind::ExternalIP)),
            "internal" => node.addresses.push(address(AddressKind::InternalIP)),
            "label" => drop(node.labels.insert("pick".to_owned(), value)),
            "stale" => node.stale = true,
            "key" => drop(
                node.annotations
                    .insert("kilo.squat.ai/key".to_owned(), key(&value)),
            ),
            "wg" => drop(
                node.annotations
                    .insert("kilo.squat.ai/wireguard-ip".to_owned(), value),
            ),
            other => match other.strip_prefix("label:") {
                Some(label) => drop(node.labels.insert(label.to_owned(), value)),
                None => drop(
                    node.annotations
                        .insert(format!("kilo.squat.ai/{other}"), value),
                ),
            },
        }
    }
    node
}
