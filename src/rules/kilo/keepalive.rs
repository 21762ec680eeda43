//! Keepalive: do nodes behind NAT keep their way open?

use super::{MISSING_KEEPALIVE, UNDECLARED_KEEPALIVE, annotate, annotated};
use crate::diagnostic::{Label, Quoted};
use crate::fleet::Member;
use crate::kilo::node::{annotation, keepalive};
use crate::rules::Finding;
use crate::rules::roster::on_node;
use crate::snapshot::Node;

/// Returns what there is to tell about the two keepalives of nodes that speak: Kilo's own, which
/// sends packets, and the mesh's, which only tells others not to insist on an endpoint.
pub(super) fn findings(member: &Member) -> Vec<Finding> {
    let speakers = member.roster.speakers.iter();
    let found = speakers.filter_map(|speaker| {
        let name = speaker.leader.as_str();
        let node = member.node(name)?;
        let key = annotation::PERSISTENT_KEEPALIVE;
        let sends = annotated(node, key).and_then(keepalive).unwrap_or_default();
        let mut place = speaker.place.key("annotations").key(key);
        let declared = Label {
            place: member.entry.place.key("persistentKeepalive"),
            text: String::new(),
        };
        match (member.entry.keepalive, sends) {
            (Some(_), 0) => {
                if annotated(node, key).is_none() {
                    place = speaker.place.key("name");
                }
                let message = missing(node);
                let mut finding = on_node(&MISSING_KEEPALIVE, member, name, message, &place);
                finding.labels.push(declared);
                finding.help = Some(annotate(node, &format!("{key}=25")));
                Some(finding)
            }
            (None, 1..) => {
                let message = format!(
                    "its Kilo sends keepalives every {sends} seconds, as from behind NAT, but its \
                     cluster declares none"
                );
                let mut finding = on_node(&UNDECLARED_KEEPALIVE, member, name, message, &place);
                finding.labels.push(Label {
                    place: member.entry.place.key("name"),
                    text: "has no `persistentKeepalive`".to_owned(),
                });
                Some(finding)
            }
            _ => None,
        }
    });
    found.collect()
}

fn missing(node: &Node) -> String {
    let key = annotation::PERSISTENT_KEEPALIVE;
    let says = match annotated(node, key) {
        None => format!("annotation {key} is missing"),
        Some(text) => format!("annotation {key} is {}", Quoted(text)),
    };
    format!(
        "{says}, so its Kilo sends no keepalives; the `persistentKeepalive` of its Peers makes nobody \
         send any"
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::told;

    fn of(fields: &str, says: &str) -> String {
        let node =
            "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full endpoint=192.168.0.1:51820";
        let nodes = format!("{node} {says}");
        told(
            super::super::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn behind_nat_the_node_itself_has_to_send() {
        insta::assert_snapshot!(of("persistentKeepalive: 25", ""), @"
        warning[missing-keepalive] east/n: annotation kilo.squat.ai/persistent-keepalive is missing, so its Kilo sends no keepalives; the `persistentKeepalive` of its Peers makes nobody send any
          east.json#/nodes/0/name 
          mesh.yaml#/spec/clusters/0/persistentKeepalive 
          help: kubectl annotate node n --overwrite kilo.squat.ai/persistent-keepalive=25
        ");
        insta::assert_snapshot!(of("persistentKeepalive: 25", "external=198.18.0.1 persistent-keepalive=0"), @"
        warning[missing-keepalive] east/n: annotation kilo.squat.ai/persistent-keepalive is `0`, so its Kilo sends no keepalives; the `persistentKeepalive` of its Peers makes nobody send any
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive 
          mesh.yaml#/spec/clusters/0/persistentKeepalive 
          help: kubectl annotate node n --overwrite kilo.squat.ai/persistent-keepalive=25
        ");
    }

    #[test]
    fn who_sends_may_be_behind_nat() {
        insta::assert_snapshot!(of("", "external=198.18.0.1 persistent-keepalive=25"), @"
        notice[undeclared-keepalive] east/n: its Kilo sends keepalives every 25 seconds, as from behind NAT, but its cluster declares none
          east.json#/nodes/0/annotations/kilo.squat.ai~1persistent-keepalive 
          mesh.yaml#/spec/clusters/0/name has no `persistentKeepalive`
        ");
    }

    #[test]
    fn quiet_where_both_or_neither_say_so() {
        assert_eq!(of("persistentKeepalive: 25", "persistent-keepalive=10"), "");
        assert_eq!(of("", "external=198.18.0.1"), "");
        assert_eq!(of("", "external=198.18.0.1 persistent-keepalive=0"), "");
    }
}
